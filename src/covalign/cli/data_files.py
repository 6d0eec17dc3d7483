"""Files that commands are given: opened and joined as the estimators do it, with notes and a progress bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from covalign._core.messages import message
from covalign.cli.application import in_flags, note
from covalign.cli.watched import Watched
from covalign.stream import is_source
from covalign.tables import representations
from covalign.tables.representations import SINGLE, Joined, Representation, Study, is_study

__all__ = [
    "SINGLE",
    "Representation",
    "check_given",
    "is_study",
    "joined",
    "matched",
    "named_paths",
    "names_for",
    "open_new",
    "open_pair",
    "open_study",
    "open_views",
]


def notes(lines: Sequence[str]) -> None:
    """Print notes of the library to standard error."""
    for line in lines:
        note(in_flags(line))


def named_paths(texts: Sequence[str]) -> dict[str, Path]:
    """The paths of ``--view NAME=PATH`` by name."""
    found: dict[str, Path] = {}
    for text in texts:
        name, sign, path = text.partition("=")
        if not (name and sign and path):
            remedy = f"write for example rna={text or 'rna.csv'}"
            raise ValueError(message("--view needs NAME=PATH", got=repr(text), remedy=remedy))
        if name in found:
            raise ValueError(message("views need distinct names", got=f"{name!r} more than once", remedy="rename one"))
        found[name] = Path(path)
    return found


def check_given(data: Path | None, views: Mapping[str, Path]) -> None:
    """Data are one file, or views."""
    if (data is None) == (not views):
        need = "data are needed once, as one file or as --view NAME=PATH (which may be repeated)"
        raise ValueError(message(need, got="neither" if data is None else "both", remedy="choose one"))


class Pair(NamedTuple):
    """A representation and its table of covariates and confounders, not yet in the same order."""

    rows: Representation
    table: pd.DataFrame
    where: str
    together: bool


def open_pair(
    path: Path,
    table: Path | None,
    covariates: Sequence[str] | None,
    confounders: Sequence[str] | None,
    index: str | None,
    key: str | None,
) -> Pair:
    """Rows and table; without a table its columns come from the file of the rows."""
    if is_study(path):
        representations.open_representation(path, key)  # refuses it
    views, known, where, together, _ = open_study(path, {}, table, covariates, confounders, index, key)
    return Pair(views[SINGLE], known, where, together)


def open_study(
    data: Path | None,
    paths: Mapping[str, Path],
    table: Path | None,
    covariates: Sequence[str] | None,
    confounders: Sequence[str] | None,
    index: str | None,
    key: str | None,
) -> Study:
    """What ``fit`` is given. Covariates come from the table; else from obs, or from columns of the only file."""
    study = representations.open_study(data, paths, table, covariates, confounders, index, key)
    notes(study.notes)
    return study._replace(views=_watched(study.views))


def open_views(
    paths: Mapping[str, Path], key: str | None, index: str | None, only: Mapping[str, list[str]] | None = None
) -> dict[str, Representation]:
    """Views from files."""
    return _watched(representations.open_views(paths, key, index, only))


def open_new(path: Path, key: str | None, index: str | None, only: Sequence[str] | None) -> Representation:
    """New rows for an aligner."""
    rows = representations.open_representation(path, key, index, only=only)
    return _watched({SINGLE: rows})[SINGLE]


def _watched(views: Mapping[str, Representation]) -> dict[str, Representation]:
    """The same views; reading a streamed one shows a progress bar on a terminal."""
    return {
        name: replace(view, data=Watched(view.data)) if is_source(view.data) else view for name, view in views.items()
    }


def matched(
    rows: Representation, table: pd.DataFrame, where: str, *, by_position: bool, needed: bool = False
) -> pd.DataFrame:
    """The table in the order of the rows; what is left out or empty is a note."""
    found = representations.matched(rows, table, where, by_position=by_position, needed=needed)
    notes(found.notes)
    return found.table


def joined(views: Mapping[str, Representation], *, by_position: bool) -> Joined:
    """Views over the union of their samples; what a view lacks is a note."""
    found = representations.joined(views, by_position=by_position)
    notes(found.notes)
    return found


def names_for(rows: Representation, table: Any) -> pd.Index | None:
    """Row names of a result: those of the rows, or those of the table that belongs to them by position."""
    if rows.labels is not None:
        return rows.labels
    return None if table is None or isinstance(table.index, pd.RangeIndex) else table.index
