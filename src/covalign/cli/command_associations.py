"""associations: the factors of a model against other columns of a table."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covalign._core.messages import message
from covalign._core.text_tables import plain
from covalign.cli import options
from covalign.cli.application import app, in_flags, note, reply
from covalign.cli.model_files import FactorModelFile, factor_model
from covalign.cli.options import DATA, METHOD, option
from covalign.cli.outputs import TABLES, check_outputs, working, write_frame

if TYPE_CHECKING:
    import pandas as pd

BELOW = 0.05  # the q of what the answer calls found
SHOWN = 20  # rows of the answer
HEAD = ["factor", "column", "measure", "value", "rows", "p", "q"]


class Method(StrEnum):
    """The measures of an association."""

    pearson = "pearson"
    rank = "rank"


@app.command()
def associations(
    model_file: FactorModelFile,
    metadata: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Table of the fitted samples, in any format of covariates.")
    ],
    index: options.Index = None,
    survival: Annotated[
        str | None, option(DATA, "TIME,EVENT", "Columns of times and events (1 or 0) for a Cox regression.")
    ] = None,
    method: Annotated[
        Method, option(METHOD, "CHOICE", "Correlation and analysis of variance (pearson), or their ranks (rank).")
    ] = Method.pearson,
    out: options.TableFile = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Compare every factor of a model with every column of a table that the model did not use.

    q is the false discovery rate of Benjamini and Hochberg over all rows of the table. Factors that a covariate informs
    are marked with a star.

    Example: covalign associations ifa.covalign clinic.csv -o associations.csv
    """
    with working(as_json):
        files = check_outputs({"--out": (out, TABLES)}, [model_file, metadata], force=force)
        columns = None if survival is None else _two(survival)
        from covalign.tables.table_files import read_table

        model = factor_model(model_file)
        saved = model._reading or {}
        table = read_table(metadata, index or saved.get("index"), saved.get("na", ()))
        frame = model.associations(matched(table, model, metadata), survival=columns, method=method.value)
        about: dict[Any, Any] = frame.attrs
        frame.attrs = {}
        if out is not None:
            write_frame(frame, out)
    for name, why in about["left_out"].items():
        note(f"note: column {name!r} was not tested: {in_flags(why)}")
    first = frame.head(SHOWN)
    names = [
        f"{name}*" if informed else name for name, informed in zip(first["factor"], first["informed"], strict=True)
    ]
    first = first.assign(factor=names, p=[f"{p:.1e}" for p in first["p"]], q=[f"{q:.1e}" for q in first["q"]])
    found = int((frame["q"] < BELOW).sum())
    reply(
        as_json,
        {**about, "tests": len(frame), "found": found, "associations": frame.to_dict("records"), "files": files},
        *plain(HEAD, first[HEAD].itertuples(index=False, name=None), left=3),
        f"{found} of {len(frame)} tests have q < {BELOW}; the {len(first)} smallest p are shown.",
        "* A covariate informs this factor.",
        *files,
    )


def matched(table: pd.DataFrame, model: Any, where: Path) -> pd.DataFrame:
    """The table with names of rows that are matched with those of the fitted samples as in the fit."""
    import pandas as pd

    from covalign.tables.name_rules import NameRule
    from covalign.tables.view_layout import named_alike

    saved, samples = model._reading or {}, model._table.samples
    if samples is None or isinstance(table.index, pd.RangeIndex):
        return table
    rule = NameRule(saved.get("match", "exact"), saved.get("strip"))
    fitted = pd.DataFrame(index=pd.Index(samples, dtype=object).astype(str))
    return named_alike({}, {"the fitted samples": fitted, str(where): table}, rule)[1][str(where)]


def _two(text: str) -> tuple[str, str]:
    time, _, event = text.partition(",")
    if not (time and event):
        remedy = "write for example months,died"
        raise ValueError(message("--survival needs TIME,EVENT", got=repr(text), remedy=remedy))
    return time, event
