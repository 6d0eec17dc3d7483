"""frontier: alignment and coupling along lambda, on rows that were not fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from covalign._core.text_tables import plain
from covalign.cli import option_values, options
from covalign.cli.application import app, reply
from covalign.cli.options import METHOD, Missing, option
from covalign.cli.outputs import (
    FIGURES,
    TABLES,
    category_lines,
    check_inputs,
    check_outputs,
    drawing,
    save_figure,
    size_line,
    working,
    write_frame,
)
from covalign.cli.table_options import TableOptions, flat

if TYPE_CHECKING:
    import pandas as pd

HEAD = {
    "regime": "regime",
    "lam": "lambda",
    "alignment": "alignment",
    "alignment_se": "se",
    "coupling": "coupling",
    "alignment_in_sample": "in sample",
    "coupling_in_sample": "coupling",
}


@app.command()
@flat
def frontier(
    z: options.Representation,
    covariates: options.CovariatesArgument = None,
    covariate: options.Covariate = None,
    confounder: options.Confounder = None,
    *,
    tables: TableOptions,
    lams: Annotated[
        str | None, option(METHOD, "NUMBERS", "Lambdas, separated by commas. Default: 0 to 1 in 20 steps.")
    ] = None,
    shrinkage: options.Shrinkage = "auto",
    missing: options.MissingCovariates = Missing.pairs,
    drop_first: options.DropFirst = True,
    folds: options.Folds = 5,
    out: options.TableFile = None,
    figure: options.FigureFile = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Measure alignment and coupling for every lambda on rows that were not fitted.

    Every training set chooses its own shrinkage, so the held-out rows have no influence on any choice.

    Example: covalign frontier Z.npy covariates.csv -o frontier.csv --figure frontier.png
    """
    with working(as_json):
        outputs = {"--out": (out, TABLES), "--figure": (figure, FIGURES)}
        files = check_outputs(outputs, [z, covariates], force=force)
        along = None
        if lams is not None:
            along = option_values.numbers(
                "--lams", lams, "numbers between 0 and 1", "0,0.5,1", lambda lam: 0 <= lam <= 1
            )
        weight = option_values.shrinkage_of(shrinkage)
        folds = option_values.checked_folds(folds)
        reading = tables.reading()
        check_inputs(z, tables=[covariates])

        from covalign.aligner.nested_frontier import cross_validated_frontier
        from covalign.cli.data_files import aligned_rows, counted_groups, one_view

        draw = None if figure is None else drawing("show.plot").frontier
        study = tables.open(one_view(z), {}, covariates, reading, covariate, confounder)
        rows, Y, _ = aligned_rows(study, tables.by_position, needed=bool(confounder or tables.groups))
        n_groups = counted_groups(study, Y, tables.groups)
        frame = cross_validated_frontier(
            rows.data,
            Y,
            along,
            folds,
            shrinkage=weight,
            drop_first=drop_first,
            missing=missing.value,
            confounders=confounder or None,
            groups=tables.groups,
        )
        about: dict[Any, Any] = {**frame.attrs, "groups": n_groups}
        frame.attrs = {}
        if out is not None:
            write_frame(frame, out)
        if draw is not None and figure is not None:
            save_figure(draw(frame), figure)
        answer(frame, about, files, as_json)


def answer(frame: pd.DataFrame, about: dict[Any, Any], files: list[str], as_json: bool) -> None:
    """Print the table, without the columns of covariates."""
    shown = list(HEAD)
    covariates = [name for name in frame.columns if name not in HEAD]
    points = [{**row[shown].to_dict(), "covariates": row[covariates].to_dict()} for _, row in frame.iterrows()]
    facts = {"shrinkage": about["shrinkage"], "scale": about["scale"], "rows": about["n"], "groups": about["groups"]}
    facts["categories"] = about["categories"]
    reply(
        as_json,
        {**facts, "no_exclusive": about["exclusive"], "frontier": points, "files": files},
        *plain(list(HEAD.values()), frame[shown].to_numpy().tolist()),
        "Alignment and coupling on held-out rows, then in sample.",
        *category_lines(about["categories"]),
        size_line(about["n"], about["groups"], f"shrinkage {about['shrinkage']:.3g}"),
        *files,
    )
