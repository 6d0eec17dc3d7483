"""compare: all methods on one's own data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from covalign._core import validation as errors
from covalign._core.linalg import dense
from covalign.cli import options
from covalign.cli.application import FAILED, RESUMES, Force, Json, app, note, say, say_json
from covalign.cli.command_fit import together
from covalign.cli.data_files import SINGLE, check_given, named_paths, open_study
from covalign.cli.outputs import (
    FIGURES,
    TABLES,
    check_outputs,
    check_suffix,
    drawing,
    save_figure,
    working,
    write_frame,
)

NOT_KEPT = "nothing was written (with -o, finished methods are kept)"
HEADS = {
    "held_out_alignment": "held out",
    "alignment": "in sample",
    "coupling": "coupling",
    "variance": "variance",
    "total_variance": "total",
    "disentanglement": "D",
    "completeness": "C",
    "informativeness": "I",
    "sap": "SAP",
    "nsap": "nSAP",
    "seconds": "seconds",
}


@app.command()
def compare(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[TABLE COVARIATES]", help="One table or representation (.h5mu: all its views), and its covariates."
        ),
    ] = None,
    view: Annotated[
        list[str] | None, typer.Option("--view", metavar="NAME=PATH", help="A table of features; may be repeated.")
    ] = None,
    covariates: Annotated[Path | None, typer.Option(help="The covariates' table, where there are views.")] = None,
    covariate: options.Covariate = None,
    index: options.Index = None,
    by_position: options.ByPosition = False,
    key: options.Key = None,
    factors: Annotated[int, typer.Option("--factors", "-k", min=1, help="Factors of every method.")] = 10,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="Only this one, or family (iFA); may be repeated.")
    ] = None,
    list_methods: Annotated[bool, typer.Option("--list", help="Name the methods and stop.")] = False,
    gaps: Annotated[
        str | None, typer.Option(help="drop: without samples that have gaps; mean: features' means in them.")
    ] = None,
    folds: Annotated[int, typer.Option(min=0, help="Folds of held-out alignment (0: none).")] = 5,
    slow_folds: Annotated[int, typer.Option(min=0, help="The same for SOFA, MOFA-FLEX and MuVI.")] = 0,
    skip_slow: Annotated[bool, typer.Option("--skip-slow", help="Leave out SOFA, MOFA-FLEX and MuVI.")] = False,
    budget: Annotated[int, typer.Option(min=1, help="Iterations, epochs or steps at most.")] = 2000,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds a fit; obeyed by MOFA, SOFA, MOFA-FLEX and MuVI."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds and of methods that draw.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help=f"All numbers: {', '.join(TABLES)}.")] = None,
    figure: Annotated[Path | None, typer.Option(help=f"Alignment against coupling: {', '.join(FIGURES)}.")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """All installed methods on your data: one table, one figure.

    The table is sorted by held-out alignment: corr(z_p, y_p) of samples that were left out of the fit and placed from
    their features alone. "In sample" is the same on the rows fitted.

    Interrupt it whenever you like: with -o, finished methods are kept in the folder OUT.kept, and the same command goes
    on from there. So does one with other methods or folds; delete the folder to start afresh.

    Example: covalign compare --view rna=rna.csv --view protein=protein.csv --covariates clinic.csv --factors 10 --gaps drop -o comparison.csv --figure comparison.png
    """  # noqa: E501  (a line to copy)
    from covalign.study import comparison as study
    from covalign.study import complete_cases as filling
    from covalign.study import contenders

    if list_methods:
        return _list(contenders.everything(representation=True), as_json)
    with working(as_json, NOT_KEPT if out is None else RESUMES):
        paths = named_paths(view or [])
        check_suffix("--out", out, TABLES)
        check_suffix("--figure", figure, FIGURES)
        check_outputs({"--out": out, "--figure": figure}, [*(files or []), covariates, *paths.values()], force=force)
        draw = None if figure is None else drawing("study.comparison_figure").comparison
        contenders.chosen(method, representation=True)  # a typo is noticed before anything is read
        X, Y = _views(files or [], paths, covariates, covariate, index, key, by_position)
        ready = filling.complete(X, Y, gaps)
        table = study.compare(
            ready.views,
            ready.Y,
            factors,
            method,
            seed=seed,
            budget=budget,
            folds=folds,
            slow_folds=slow_folds,
            skip_slow=skip_slow,
            timeout=timeout,
            keep=None if out is None else out.with_name(f"{out.name}.kept"),
        )
        made = []
        if out is not None:
            write_frame(table, out)
            made.append(out)
        if draw is not None and figure is not None and table["alignment"].notna().any():
            save_figure(draw(table)[0], figure)
            made.append(figure)
    _answer(table, made, len(ready.Y), ready.said, as_json)
    if (table["status"] == "failed").any():
        raise typer.Exit(FAILED)


def _list(methods: list[Any], as_json: bool) -> None:
    absent = {method.name: method.absent() for method in methods}
    if as_json:
        return say_json([{"method": name, "present": why is None, "reason": why} for name, why in absent.items()])
    for name, why in absent.items():
        say(f"{name:18} {'present' if why is None else f'absent: {why}'}")


def _answer(table: Any, files: list[Path], n: int, said: str | None, as_json: bool) -> None:
    """The table and its notes on standard output; what is missing on standard error (in JSON: all of it)."""
    shown = table[table["alignment"].notna()]
    missing = {
        status: dict(table.loc[table["status"] == status, ["method", "note"]].itertuples(index=False))
        for status in ("absent", "failed")
    }
    if as_json:
        rows = shown.to_dict("records")
        say_json({"samples": n, "gaps": said, "methods": rows, **missing, "files": [str(file) for file in files]})
    else:
        for line in [*([said] if said else []), *_lines(shown), *_notes(shown[shown["status"] == "done"])]:
            say(line)
    for status, reasons in missing.items():
        for name, why in reasons.items():
            note(f"{status}: {name}: {why}")


def _lines(shown: Any) -> list[str]:
    """Aligned columns; what a method does not have is a dash."""
    width = max(map(len, [*shown["method"], "method"]))
    lines = [f"{'method':{width}}  " + "  ".join(f"{head:>{max(len(head), 5)}}" for head in HEADS.values())]
    for _, row in shown.iterrows():
        cells = [f"{_number(row[column], column):>{max(len(head), 5)}}" for column, head in HEADS.items()]
        lines.append(f"{row['method']:{width}}  " + "  ".join(cells))
    return lines


def _number(value: float, column: str) -> str:
    if value != value:
        return "-"
    return f"{value:.3g}" if column == "seconds" else f"{value + 0.0:.3f}"


def _notes(done: Any) -> list[str]:
    """Why a number is missing, each reason once."""
    notes: dict[str, list[str]] = {}
    for name, why in zip(done["method"], done["note"], strict=True):
        if why:
            notes.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: {why}" for why, names in notes.items()]


def _views(
    files: list[Path],
    paths: dict[str, Path],
    covariates: Path | None,
    names: list[str] | None,
    index: str | None,
    key: str | None,
    by_position: bool,
) -> tuple[Any, Any]:
    """X (a table, or tables by name) and Y of the same samples, in memory: every method needs all of it."""
    if len(files) > 2 or (len(files) == 2 and covariates is not None):
        raise errors.too_many_files([str(file) for file in files])
    data = files[0] if files else None
    check_given(data, paths)
    table = files[1] if len(files) == 2 else covariates
    X, Y = together(open_study(data, paths, table, names, None, index, key), by_position, False)
    held = {name: view if isinstance(view, pd.DataFrame) else _loaded(view) for name, view in X.items()}
    return held[SINGLE] if [*held] == [SINGLE] else held, Y


def _loaded(source: Any) -> pd.DataFrame:
    names = None if source.names is None else list(source.names)
    return pd.DataFrame(np.concatenate([dense(chunk) for chunk in source.chunks()]), source.index, names)
