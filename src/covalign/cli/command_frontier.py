"""frontier: what every lambda gives and costs, on rows that were not fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from covalign._core import validation as errors
from covalign.aligner.nested_frontier import cross_validated_frontier
from covalign.cli import options
from covalign.cli.application import Force, Json, app, say, say_json
from covalign.cli.data_files import matched, open_pair
from covalign.cli.options import METHOD, RESULTS, Missing
from covalign.cli.outputs import (
    FIGURES,
    TABLES,
    check_outputs,
    check_suffix,
    drawing,
    lines_of,
    save_figure,
    working,
    write_frame,
)

HEAD = ["regime", "lam", "alignment", "alignment_se", "coupling", "alignment_in_sample", "coupling_in_sample"]


@app.command()
def frontier(
    z: Annotated[Path, typer.Argument(metavar="Z", help="The representation, as for align.", show_default=False)],
    covariates: Annotated[Path | None, typer.Argument(metavar="COVARIATES", help="The table, as for align.")] = None,
    covariate: options.Covariate = None,
    confounder: options.Confounder = None,
    index: options.Index = None,
    by_position: options.ByPosition = False,
    key: options.Key = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"The whole table: {', '.join(TABLES)}.", rich_help_panel=RESULTS),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help=f"Drawn: {', '.join(FIGURES)}.", rich_help_panel=RESULTS)
    ] = None,
    lams: Annotated[
        str | None,
        typer.Option("--lams", help="Lambdas, comma-separated (0 to 1 in 20 steps).", rich_help_panel=METHOD),
    ] = None,
    shrinkage: options.Shrinkage = "auto",
    missing: options.Gaps = Missing.pairs,
    folds: options.Folds = 5,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Alignment against coupling along lambda, measured on rows that were not fitted.

    Each training set chooses its own shrinkage, so that left-out rows take no part in any choice.

    Example: covalign frontier Z.npy covariates.csv -o frontier.csv --figure frontier.png
    """
    with working(as_json):
        check_suffix("--out", out, TABLES)
        check_suffix("--figure", figure, FIGURES)
        check_outputs({"--out": out, "--figure": figure}, [z, covariates], force=force)
        draw = None if figure is None else drawing("show.plot").frontier
        along = None if lams is None else errors.check_lams(lams)
        weight = errors.check_auto("--shrinkage", shrinkage, float)
        rows, table, where, together = open_pair(z, covariates, covariate, confounder, index, key)
        Y = matched(rows, table, where, by_position=by_position or together, needed=bool(confounder))
        C = confounder or None
        frame = cross_validated_frontier(
            rows.data, Y, along, folds, shrinkage=weight, missing=missing.value, confounders=C
        )
        about: dict[Any, Any] = dict(frame.attrs)
        frame.attrs = {}
        if out is not None:
            write_frame(frame, out)
        if draw is not None and figure is not None:
            save_figure(draw(frame), figure)
        answer(frame, about, [str(path) for path in (out, figure) if path is not None], as_json)


def answer(frame: pd.DataFrame, about: dict[Any, Any], files: list[str], as_json: bool) -> None:
    """The table, without the columns of covariates."""
    if as_json:
        covariates = list(frame.columns[len(HEAD) :])
        points = [{**row[HEAD].to_dict(), "covariates": row[covariates].to_dict()} for _, row in frame.iterrows()]
        said = {"shrinkage": about["shrinkage"], "rows": about["n"], "no_exclusive": about["exclusive"]}
        say_json({**said, "frontier": points, "files": files})
        return
    header = ["regime", "lambda", "alignment", "se", "coupling", "in sample", "coupling"]
    for line in lines_of(header, frame[HEAD].to_numpy().tolist()):
        say(line)
    say("alignment and coupling on left-out rows, then in sample")
    say(f"{about['n']} rows, shrinkage {about['shrinkage']:.3g}")
    for file in files:
        say(file)
