"""Files that commands are given: opened and joined as the estimators do it, with notes and a progress bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from covalign.cli.application import in_flags, note
from covalign.cli.reading_options import Reading
from covalign.cli.watched import Watched
from covalign.stream import is_source
from covalign.tables import groups as grouping
from covalign.tables import representations
from covalign.tables.named_rows import Representation
from covalign.tables.representations import SINGLE, Study, is_study
from covalign.tables.view_layout import nameless_columns


def notes(lines: Sequence[str]) -> None:
    """Print notes of the library to standard error."""
    for line in lines:
        note(in_flags(line))


def one_view(path: Path) -> Path:
    """The path; a file of several views is refused."""
    if is_study(path):
        representations.open_representation(path)
    return path


def aligned_rows(study: Study, by_position: bool, needed: bool) -> tuple[Representation, pd.DataFrame, pd.Index | None]:
    """Rows of the only view, covariates in the same order, and the names of rows for results."""
    notes(study.notes)
    rows = watched(study.views[SINGLE])
    return rows, _covariates(study, rows, by_position, needed), names_for(rows, study.table)


def aligned_views(study: Study, by_position: bool, needed: bool) -> tuple[dict[str, Any], pd.DataFrame]:
    """Views and covariates of the same samples, in the same order, with the names of samples where they are known."""
    notes(study.notes)
    views, rows = joined(study.views, by_position)
    Y, names = _covariates(study, rows, by_position, needed), names_for(rows, study.table)
    if rows.labels is None and names is not None and names.is_unique:
        views = {n: v.set_axis(names, axis=0) if isinstance(v, pd.DataFrame) else v for n, v in views.items()}
        Y = Y.set_axis(names, axis=0)
    elif rows.labels is None:
        Y = Y.reset_index(drop=True)
    return views, Y


def counted_groups(study: Study, Y: pd.DataFrame, groups: str | None, held_out: bool = True) -> int | None:
    """The number of groups in a column of Y.

    Where something is held out, few groups are a warning, and so are rows that seem to have groups if none are given.
    """
    n_groups = None if groups is None else grouping.count(Y[groups])
    if held_out:
        grouping.warn(n_groups, study.likely)
    return n_groups


def reading_of(study: Study, reading: Reading, views: Sequence[str], **more: Any) -> dict[str, Any]:
    """How the tables of a study were read, for the file of a model."""
    chosen = {name: nameless_columns(view) for name, view in study.views.items()}
    return reading.for_later(views, columns={n: at for n, at in chosen.items() if at is not None}, **more)


def _covariates(study: Study, rows: Representation, by_position: bool, needed: bool) -> pd.DataFrame:
    return matched(rows, study.table, study.where, by_position=by_position or study.together, needed=needed)


def watched(rows: Representation) -> Representation:
    """The same rows; if they are streamed, reading them shows a progress bar on a terminal."""
    return replace(rows, data=Watched(rows.data)) if is_source(rows.data) else rows


def matched(
    rows: Representation, table: pd.DataFrame, where: str, *, by_position: bool, needed: bool = False
) -> pd.DataFrame:
    """The table in the order of the rows; what is left out or empty is a note."""
    found = representations.matched(rows, table, where, by_position=by_position, needed=needed)
    notes(found.notes)
    return found.table


def joined(views: Mapping[str, Representation], by_position: bool) -> tuple[dict[str, Any], Representation]:
    """Views over the union of their samples, and these samples; what a view lacks is a note."""
    found = representations.joined({name: watched(view) for name, view in views.items()}, by_position=by_position)
    notes(found.notes)
    return found.views, found.rows


def names_for(rows: Representation, table: Any) -> pd.Index | None:
    """Row names of a result: those of the rows, or those of the table that belongs to them by position."""
    if rows.labels is not None:
        return rows.labels
    return None if table is None or isinstance(table.index, pd.RangeIndex) else table.index
