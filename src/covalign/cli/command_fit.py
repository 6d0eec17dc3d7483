"""fit: informed factor analysis of one view or several."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from covalign._core import validation as errors
from covalign.cli import options
from covalign.cli.application import Force, Json, app, note, say, say_json
from covalign.cli.command_align import check_setting
from covalign.cli.data_files import SINGLE, check_given, joined, matched, named_paths, names_for, open_study
from covalign.cli.options import DATA, METHOD, RESULTS, Posterior, Regime
from covalign.cli.outputs import (
    NUMBERS,
    PAGES,
    TABLES,
    check_outputs,
    check_suffix,
    frame_of,
    lines_of,
    working,
    write_frame,
)
from covalign.factor.informed import InformedFactorAnalysis
from covalign.show import report


@app.command()
def fit(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA", help="One view (.csv, .tsv, .parquet, .npy, .npz, .zarr, .h5ad), or several (.h5mu)."
        ),
    ] = None,
    view: Annotated[
        list[str] | None,
        typer.Option("--view", help="NAME=PATH of a view, in place of DATA; may be repeated.", rich_help_panel=DATA),
    ] = None,
    covariates: Annotated[
        Path | None,
        typer.Option("--covariates", help="A table (obs of an .h5ad or .h5mu).", rich_help_panel=DATA),
    ] = None,
    covariate: options.Covariate = None,
    confounder: options.Confounder = None,
    index: options.Index = None,
    by_position: options.ByPosition = False,
    key: options.Key = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The fitted model, for transform.", rich_help_panel=RESULTS),
    ] = None,
    factors_out: Annotated[
        Path | None,
        typer.Option(help=f"Factors of the samples: {', '.join(NUMBERS)}.", rich_help_panel=RESULTS),
    ] = None,
    loadings_out: Annotated[
        Path | None,
        typer.Option(
            help=f"Loadings: one file ({', '.join(TABLES)}), or a folder with a CSV for each view.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    report_file: options.ReportFile = None,
    factors: Annotated[
        str, typer.Option("--factors", help="Informed and free factors together, or auto.", rich_help_panel=METHOD)
    ] = "10",
    regime: Annotated[
        Regime | None,
        typer.Option("--regime", help="Realign the informed factors after the fit.", rich_help_panel=METHOD),
    ] = None,
    lam: options.Lam = None,
    posterior: Annotated[
        Posterior, typer.Option("--posterior", help="mean_field is the paper's.", rich_help_panel=METHOD)
    ] = Posterior.full,
    max_iter: Annotated[int, typer.Option("--max-iter", help="The most sweeps.", rich_help_panel=METHOD)] = 2000,
    starts: Annotated[
        int, typer.Option("--starts", help="Starts; the first is without chance.", rich_help_panel=METHOD)
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Of the further starts.", rich_help_panel=METHOD)] = 0,
    folds: Annotated[
        int,
        typer.Option("--folds", min=0, help="Further fits, for held-out alignment (0: none).", rich_help_panel=METHOD),
    ] = 5,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Fit informed factor analysis: the first factors stand for covariates, the others are free.

    Samples are matched by name across views and covariates; whatever is missing may be missing.

    Example: covalign fit --view rna=rna.csv --view protein=protein.csv --covariates clinic.csv -o ifa.covalign
    """
    with working(as_json):
        outputs = {"--out": out, "--factors-out": factors_out, "--loadings-out": loadings_out, "--report": report_file}
        if not any(outputs.values()):
            raise errors.nothing_asked(list(outputs))
        paths = named_paths(view or [])
        check_given(data, paths)
        check_suffix("--factors-out", factors_out, NUMBERS)
        if loadings_out is not None and loadings_out.suffix:
            check_suffix("--loadings-out", loadings_out, TABLES)
        check_suffix("--report", report_file, PAGES)
        check_outputs(outputs, [data, covariates, *paths.values()], force=force)
        chosen = None if regime is None and lam is None else check_setting(regime, lam, None)
        folds = folds and errors.check_folds(folds)
        wanted, drawn = errors.check_auto("--factors", factors, int), errors.check_seed(seed)
        model = InformedFactorAnalysis(wanted, posterior.value, max_iter=max_iter, n_init=starts, random_state=drawn)
        study = open_study(data, paths, covariates, covariate, confounder, index, key)
        X, Y = together(study, by_position, bool(confounder))
        model.fit(X[SINGLE] if [*X] == [SINGLE] else X, Y, confounders=confounder or None)
        converged = bool(model.converged_)
        if chosen is not None:
            model = realigned(model, chosen, lam)
        write(model, Y.index, out, factors_out, loadings_out)
        summary, folds = judged(model, folds)
        if report_file is not None:
            given: dict[str, Any] = {"--view": view, "--covariates": covariates, "-c": covariate, "--index": index}
            given |= {"--confounder": confounder, "--by-position": by_position, "--key": key, "--factors": factors}
            again = options.command("fit", [data], given)
            name = f"Informed factors of {title(data, paths)}"
            report.write(model, report_file, title=name, folds=folds, command=again, overwrite=force)
        converged = converged and bool(model.converged_)
        files = [str(path) for path in outputs.values() if path is not None]
        answer(model, summary, converged, len(Y), files, as_json)
    if not as_json and out is not None:
        new = ["NEW"] if not paths else ["--view", f"{next(iter(paths))}=NEW"]
        note(f"next: {shlex.join(['covalign', 'transform', str(out), *new, '-o', 'OUT'])}")


def together(study: Any, by_position: bool, needed: bool) -> tuple[dict[str, Any], pd.DataFrame]:
    """Views and covariates of the same samples in the same order, named where something names them."""
    views, rows, _ = joined(study.views, by_position=by_position)
    Y = matched(rows, study.table, study.where, by_position=by_position or study.together, needed=needed)
    names = names_for(rows, study.table)
    if rows.labels is None and names is not None and names.is_unique:
        views = {n: v.set_axis(names, axis=0) if isinstance(v, pd.DataFrame) else v for n, v in views.items()}
        Y = Y.set_axis(names, axis=0)
    elif rows.labels is None:
        Y = Y.reset_index(drop=True)
    return views, Y


def realigned(model: InformedFactorAnalysis, regime: str, lam: float | None) -> InformedFactorAnalysis:
    """Another regime; a half is the default of the tunable one, as for align."""
    if regime == "tunable":
        return model.realign(0.5 if lam is None else lam)
    return model.realign(regime=regime)


def judged(model: InformedFactorAnalysis, folds: int) -> tuple[pd.DataFrame, int]:
    """The model's summary, held out if it can be, and the folds it took; where it cannot be, that is said."""
    try:
        return model.summary(folds), folds
    except errors.CannotHoldOutError as why:
        note(f"nothing is held out: {why}")
        return model.summary(0), 0


def title(data: Path | None, paths: dict[str, Path]) -> str:
    """What was fitted."""
    return ", ".join(paths) if data is None else data.name


def write(
    model: InformedFactorAnalysis, samples: pd.Index, out: Path | None, factors: Path | None, loadings: Path | None
) -> None:
    """What was asked for, the model last: who finds it finds the rest."""
    if factors is not None:
        index = None if isinstance(samples, pd.RangeIndex) else samples
        write_frame(frame_of(model.factors_, index, model.factor_names_), factors)
    if loadings is not None:
        write_loadings(loading_frames(model), loadings)
    if out is not None:
        model.save(out)


def loading_frames(model: InformedFactorAnalysis) -> dict[str, pd.DataFrame]:
    """Features x factors of each view."""
    return {
        name: frame_of(values, pd.Index(model._table.views[name].names, name="feature"), model.factor_names_)
        for name, values in model.loadings_.items()
    }


def write_loadings(frames: dict[str, pd.DataFrame], path: Path) -> None:
    """One table with the columns view and feature first; or, in a folder, a table for each view."""
    if path.suffix:
        parts = [frame.reset_index().assign(view=name) for name, frame in frames.items()]
        whole = pd.concat(parts, ignore_index=True)
        write_frame(whole[["view", *(column for column in whole.columns if column != "view")]], path)
        return
    files: dict[str, list[str]] = {}
    for name in frames:
        files.setdefault(re.sub(r"[^\w.-]+", "_", name).lstrip(".") + ".csv", []).append(name)
    for file, names in files.items():
        if len(names) > 1:
            raise errors.views_share_a_file(names, file)
    with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=f".{path.name}.") as temporary:
        for file, (name,) in files.items():
            write_frame(frames[name], Path(temporary) / file)
        path.mkdir(exist_ok=True)
        for file in files:
            shutil.move(Path(temporary) / file, path / file)


def answer(
    model: InformedFactorAnalysis,
    summary: pd.DataFrame,
    converged: bool,
    samples: int,
    files: list[str],
    as_json: bool,
) -> None:
    """How well covariates are aligned, what the factors explain, and whether the fit has come to an end."""
    alignment, total = summary["in_sample"], model.total_variance_explained()
    if as_json:
        shares = model.variance_explained()
        say_json(
            {
                "alignment": alignment.to_dict(),
                "held_out": summary[["held_out", "low", "high"]].to_dict("index"),
                "beta": dict(zip(alignment.index, model.beta_.tolist(), strict=True)),
                "variance_explained": {
                    name: {"total": total[name], "factors": shares.loc[name].to_dict()} for name in shares.index
                },
                "factors": model.n_factors_,
                "factor_names": model.factor_names_,
                "active": [
                    n for n, on in zip(model.factor_names_, np.atleast_1d(model.active_factors_), strict=True) if on
                ],
                **{"confounders": model.confounder_names_, "samples": samples, "converged": converged},
                **{"sweeps": model.n_iter_, "bound": float(model.elbo_[-1])},
                **{"regime": model.regime_, "lam": model.lam_, "files": files},
            }
        )
        return
    shown = summary[["in_sample", "held_out", "low", "high"]].assign(beta=model.beta_)
    header = ["covariate", "in sample", "held out", "90 % from", "to", "beta"]
    for line in lines_of(header, list(shown.itertuples(name=None))):
        say(line)
    for line in lines_of(["view", "variance explained"], list(total.items())):
        say(line)
    lam = "" if model.lam_ is None or model.lam_ != model.lam_ else f", lambda {model.lam_:.3g}"
    regime = "" if model.regime_ is None else f", {model.regime_}{lam}"
    ended = "converged" if converged else "not converged"
    say(f"{samples} samples, {model.n_factors_} factors ({int(model.active_factors_.sum())} active){regime}")
    say(f"{ended} after {model.n_iter_} sweeps, bound {model.elbo_[-1]:.2f}")
    for file in files:
        say(file)
