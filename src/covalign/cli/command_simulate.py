"""simulate: data with a known answer, as files."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

import covalign as package
from covalign._core import validation as errors
from covalign.cli.application import Force, Json, answering, app, check_free, say, say_json
from covalign.closed_form import simulate as scenarios

LAST = "settings.json"  # where it is, all the rest is


@app.command()
def simulate(
    scenario: Annotated[str, typer.Argument(help="PN, AR, P or N: how the covariates are correlated.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for the files; a new or an empty one.")],
    samples: Annotated[int, typer.Option(help="Rows of all tables.")] = 500,
    features: Annotated[int | None, typer.Option(help="Features of the one table X (100).")] = None,
    view: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FEATURES", help="A table of its own instead; may be repeated.")
    ] = None,
    factors: Annotated[int, typer.Option(help="Factors, informed ones first.")] = 10,
    covariates: Annotated[int, typer.Option(help="Covariates, each of which informs a factor.")] = 5,
    alpha: Annotated[float, typer.Option(help="How correlated covariates are, 0 to 1.")] = 1.0,
    b: Annotated[float, typer.Option("--b", help="How strongly covariates inform their factors, 0 to 1.")] = 1.0,
    noise: Annotated[float, typer.Option(help="Noise variance of a feature, in units of its signal's.")] = 0.1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Draw one of the paper's scenarios: covariates, tables of features, and the factors behind them.

    The folder appears when it is complete. In one that has files, --force replaces those of the same names.

    Example: covalign simulate PN --samples 200 --view rna=60 --view protein=40 -o simulated
    """
    with answering(as_json=as_json):
        _check_folder(out, force)
        wanted = _views(features, view)
        settings: dict[str, Any] = {
            **{"name": scenario, "n_samples": samples, "n_features": wanted, "n_factors": factors, "alpha": alpha},
            **{"b": b, "noise": noise, "random_state": errors.check_seed(seed), "n_covariates": covariates},
        }
        drawn = scenarios.scenario(**settings)
        with _filling(out) as folder:
            files = write(drawn, settings, folder)
    views = drawn.X if isinstance(drawn.X, Mapping) else {"X": drawn.X}
    following = _next_command(out, list(views))
    if as_json:
        sizes = {name: X.shape[1] for name, X in views.items()}
        shape = {"samples": samples, "covariates": covariates, "factors": factors, "views": sizes}
        say_json({"folder": str(out), "scenario": scenario, **shape, "files": list(files), "next": following})
        return
    say(f"{out}: scenario {scenario}, {samples} samples")
    for name, what in files.items():
        say(f"  {name:14} {what}")
    say(f"Try: {following}")


def write(drawn: scenarios.Scenario, settings: dict[str, Any], folder: Path) -> dict[str, str]:
    """Write a scenario's tables, its truth and its settings; file name -> what it is."""
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
    made["truth.npz"] = f"the truth behind them: {', '.join(_truth(drawn))}"
    made[LAST] = "how they were drawn"
    about = {"covalign": package.__version__, "scenario": settings, "files": made}
    (folder / LAST).write_text(json.dumps(about, indent=1) + "\n")
    return made


def _truth(drawn: scenarios.Scenario) -> dict[str, Any]:
    """beta, and for every view W (features x factors) and the noise variance of its features."""
    if not isinstance(drawn.W, Mapping):
        return {"beta": drawn.beta, "W": drawn.W, "noise_variance": drawn.noise_variance}
    loadings = {f"W_{name}": W for name, W in drawn.W.items()}
    return {"beta": drawn.beta, **loadings, **{f"noise_variance_{n}": v for n, v in drawn.noise_variance.items()}}


def _views(features: int | None, views: list[str] | None) -> int | dict[str, int]:
    if not views:
        return 100 if features is None else errors.check_number("--features", features)
    if features is not None:
        raise errors.features_or_views()
    wanted: dict[str, int] = {}
    for text in views:
        name, count = errors.check_view(text)
        # Some file systems do not tell y.csv from Y.csv.
        if name.lower() in {"y", "z", *(other.lower() for other in wanted)}:
            raise errors.view_name_taken(name)
        wanted[name] = count
    return wanted


def _next_command(folder: Path, views: list[str]) -> str:
    words = ["covalign", "fit"]
    for name in views:
        words += ["--view", f"{name}={folder / f'{name}.csv'}"]
    return shlex.join([*words, "--covariates", str(folder / "Y.csv"), "-o", str(folder / "model.covalign")])


# -- folders ----------------------------------------------------------------------------------------------------------


def _check_folder(out: Path, force: bool) -> None:
    if out.exists() and not out.is_dir():
        raise errors.not_a_folder(out)
    empty = out.is_dir() and not any(out.iterdir())
    check_free(out, force=force or empty)


@contextmanager
def _filling(out: Path) -> Iterator[Path]:
    """A folder beside ``out``, which takes its place, or whose files move into it, when all went well."""
    target = out.resolve()
    folder = target.parent / f".{target.name}.{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        yield folder
        if target.exists():  # perhaps with other files in it, perhaps somebody's working directory
            for file in sorted(folder.iterdir(), key=lambda file: file.name == LAST):
                os.replace(file, target / file.name)
        else:
            os.rename(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
