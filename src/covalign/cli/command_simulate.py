"""simulate: data whose true factors are known, as files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import covalign as package
from covalign._core.messages import message
from covalign._core.text_tables import plain
from covalign.cli import options, shell_line
from covalign.cli.application import answering, app, check_free, note, reply
from covalign.cli.options import METHOD, OUTPUT, option
from covalign.cli.outputs import filled_folder

if TYPE_CHECKING:
    from covalign.closed_form import simulate as scenarios

LAST = "settings.json"  # written last: once it exists, the other files do


@app.command()
def simulate(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Correlation of the covariates: PN, AR, P or N.")],
    *,
    n_samples: Annotated[int, option(METHOD, "INT", "Number of samples.")] = 500,
    n_features: Annotated[
        int | None, option(METHOD, "INT", "Number of features of the one view X. Default: 100.", min=1)
    ] = None,
    view: Annotated[
        list[str] | None,
        option(
            METHOD,
            "NAME=FEATURES",
            "One view and its number of features, instead of X. Repeat the option for several views.",
        ),
    ] = None,
    n_factors: Annotated[int, option(METHOD, "INT", "Number of factors, informed and free.")] = 10,
    n_covariates: Annotated[int, option(METHOD, "INT", "Number of covariates, and of informed factors.")] = 5,
    alpha: Annotated[float, option(METHOD, "NUMBER", "Strength of the correlation of covariates, 0 to 1.")] = 1.0,
    b: Annotated[float, option(METHOD, "NUMBER", "Strength of the relation of factors to covariates, 0 to 1.")] = 1.0,
    noise: Annotated[
        float, option(METHOD, "NUMBER", "Noise variance of a feature, divided by its signal variance.")
    ] = 0.1,
    random_state: options.RandomState = 0,
    out: Annotated[Path, option(OUTPUT, "FOLDER", "Folder of the files, new or empty.", "--out", "-o")],
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Simulate one of the paper's scenarios: covariates, views, and the true factors.

    The folder appears only when it is complete. --force replaces files of the same names in an existing folder.

    Example: covalign simulate PN --n-samples 200 --view rna=60 --view protein=40 -o simulated
    """
    with answering(as_json=as_json):
        _check_folder(out, force)
        wanted = _views(n_features, view)
        settings: dict[str, Any] = {
            **{"name": scenario, "n_samples": n_samples, "n_features": wanted, "n_factors": n_factors, "alpha": alpha},
            **{"b": b, "noise": noise, "random_state": random_state, "n_covariates": n_covariates},
        }

        from covalign.closed_form import simulate as scenarios

        drawn = scenarios.scenario(**settings)
        with filled_folder(out, LAST) as folder:
            files = write(drawn, settings, folder)
    sizes = {"X": wanted} if isinstance(wanted, int) else wanted
    following = _next_command(out, list(sizes))
    shape = {"samples": n_samples, "covariates": n_covariates, "factors": n_factors, "views": sizes}
    facts = {"folder": str(out), "scenario": scenario, **shape, "files": list(files), "next": following}
    reply(as_json, facts, f"{out}: scenario {scenario}, {n_samples} samples", *plain([], files.items(), left=2))
    if not as_json:
        note(f"next: {following}")


def write(drawn: scenarios.Scenario, settings: dict[str, Any], folder: Path) -> dict[str, str]:
    """Write the tables of a scenario, its true parameters and its settings; file name -> description."""
    import numpy as np
    import pandas as pd

    p, k = drawn.Y.shape[1], drawn.Z.shape[1]
    rows = [f"sample{i}" for i in range(len(drawn.Y))]
    covariates = [f"y{i}" for i in range(p)]
    views = drawn.X if isinstance(drawn.X, Mapping) else {"X": drawn.X}
    tables = {"Y": (drawn.Y, covariates, f"{p} covariates")}
    for name, X in views.items():
        stem = "x" if views is not drawn.X else name
        tables[name] = (X, [f"{stem}{i}" for i in range(X.shape[1])], f"{X.shape[1]} features")
    tables["Z"] = (drawn.Z, [*covariates, *(f"free{i}" for i in range(k - p))], f"the {k} true factors")
    made = {}
    for name, (values, columns, what) in tables.items():
        pd.DataFrame(values, index=rows, columns=columns).to_csv(folder / f"{name}.csv", index_label="sample")
        made[f"{name}.csv"] = what
    np.savez(folder / "truth.npz", **_truth(drawn))
    made["truth.npz"] = f"the true parameters: {', '.join(_truth(drawn))}"
    made[LAST] = "the settings of the simulation"
    about = {"covalign": package.__version__, "scenario": settings, "files": made}
    (folder / LAST).write_text(json.dumps(about, indent=1) + "\n")
    return made


def _truth(drawn: scenarios.Scenario) -> dict[str, Any]:
    """beta, and for every view W (features x factors) and the noise variance of its features."""
    if not isinstance(drawn.W, Mapping):
        return {"beta": drawn.beta, "W": drawn.W, "noise_variance": drawn.noise_variance}
    loadings = {f"W_{name}": W for name, W in drawn.W.items()}
    return {"beta": drawn.beta, **loadings, **{f"noise_variance_{n}": v for n, v in drawn.noise_variance.items()}}


def _views(n_features: int | None, views: list[str] | None) -> int | dict[str, int]:
    """The number of features, or that of every view."""
    if not views:
        return 100 if n_features is None else n_features
    if n_features is not None:
        remedy = "Leave out --n-features: --view has the number of features"
        raise ValueError(message("--n-features and --view exclude each other", remedy=remedy))
    wanted: dict[str, int] = {}
    for text in views:
        name, _, count = text.partition("=")
        if not (re.fullmatch(r"\w[\w.-]*", name) and count.isascii() and count.isdigit() and int(count) > 0):
            remedy = "write for example rna=60, with a name of letters, digits, - and _, and at least one feature"
            raise ValueError(message("--view needs NAME=FEATURES", got=repr(text), remedy=remedy))
        # Some file systems do not distinguish y.csv from Y.csv.
        if name.lower() in {"y", "z", *(other.lower() for other in wanted)}:
            remedy = "Choose another name for the view"
            raise ValueError(message(f"The file {name}.csv is needed for something else", remedy=remedy))
        wanted[name] = int(count)
    return wanted


def _next_command(folder: Path, views: list[str]) -> str:
    words = [word for name in views for word in ("--view", f"{name}={folder / f'{name}.csv'}")]
    return shell_line.line("fit", *words, "--covariates", folder / "Y.csv", "-o", folder / "model.covalign")


def _check_folder(out: Path, force: bool) -> None:
    if out.exists() and not out.is_dir():
        raise ValueError(message(f"{str(out)!r} is a file", remedy="Choose another name for the folder"))
    empty = out.is_dir() and not any(out.iterdir())
    check_free(out, force=force or empty)
