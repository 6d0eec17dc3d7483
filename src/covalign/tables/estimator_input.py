"""What estimators are given: paths are opened and joined by name as in the commands, anything else stays as it is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.linalg import dense
from covalign._core.user_arrays import plain
from covalign.stream import is_elsewhere, is_source, open_rows
from covalign.stream.h5ad import obs_of
from covalign.tables import table_columns, table_index
from covalign.tables import table_files as files
from covalign.tables.name_rules import EXACT
from covalign.tables.named_rows import Named, Representation
from covalign.tables.representations import (
    SINGLE,
    Joined,
    is_study,
    joined,
    matched,
    modalities,
    named_views,
    open_representation,
    open_study,
)
from covalign.tables.view_layout import upright


def rows_of(
    Z: Any, chunk_rows: int | None = None, only: Sequence[str] | None = None, where: str = "Z"
) -> Representation:
    """Z with its file opened: a table in memory as it is, anything else as a Source."""
    if files.is_path(Z):
        return open_representation(Path(Z), only=only, chunk_rows=chunk_rows)
    if is_elsewhere(Z) and not is_source(Z):
        Z = open_rows(Z, chunk_rows=chunk_rows, name=where)
    elif not is_source(Z):
        Z = plain(Z, where)
    return Representation(Z, where)


def as_source(rows: Representation, chunk_rows: int | None = None) -> Any:
    """The rows as a Source, with the names they have in their file."""
    if is_source(rows.data):
        return rows.data
    return Named(open_rows(rows.data, name=rows.where, chunk_rows=chunk_rows), rows.labels)


def open_pair(Z: Any, Y: Any, chunk_rows: int | None = None) -> tuple[Any, Any]:
    """Z and Y with their files opened, and Y, if it was in a file, in the order of the rows of Z.

    Y is a table, a path to one, or the names of columns in the file of Z (of ``obs`` where Z is an AnnData). What is
    left out of Y, or empty in it, is a warning.
    """
    names = _column_names(Z, Y)
    if names is not None and files.is_path(Z):
        study = open_study(Path(Z), {}, None, names, chunk_rows=chunk_rows)
        rows = study.views[SINGLE]
        return as_source(rows, chunk_rows), matched(rows, study.table, study.where, by_position=True).table
    rows = rows_of(Z, chunk_rows)
    if names is not None:
        return rows.data, table_columns.chosen(obs_of(Z), names, None, rows.where)
    table = files.read_table(Y) if files.is_path(Y) else Y
    if files.is_path(Z):
        rows = _upright({SINGLE: rows}, table, Y)[SINGLE]
    return as_source(rows, chunk_rows) if files.is_path(Z) else rows.data, table_of(Y, table, rows)


def _upright(views: Mapping[str, Representation], table: Any, Y: Any) -> dict[str, Representation]:
    """Views from files with a row for every sample of the table, which is that of Y, if it has names."""
    if not isinstance(table, pd.DataFrame | pd.Series) or isinstance(table.index, pd.RangeIndex):
        return dict(views)
    samples, where = table_index.as_text(table.index, "Y"), str(Y) if files.is_path(Y) else "Y"
    return {name: upright(view, samples, EXACT, where) for name, view in views.items()}


def table_of(Y: Any, table: Any, rows: Representation) -> Any:
    """Y; from a file (the table), or from a Source, loaded and in the order of the rows. Mismatches are a warning."""
    if files.is_path(Y):
        found = matched(rows, table, str(Y))
        _warn([*table_index.numbers_as_names(table, Y), *found.notes])
        return found.table
    if not is_elsewhere(Y):
        return Y
    source = Y if is_source(Y) else open_rows(Y, name="Y", single=True)
    values = np.concatenate([dense(chunk) for chunk in source.chunks()])
    return values if source.names is None else pd.DataFrame(values, source.index, list(source.names))


def _column_names(Z: Any, Y: Any) -> list[str] | None:
    """Y as names of columns that are stored with the rows of Z, if it is that."""
    names = [Y] if isinstance(Y, str) and not files.is_table_path(Y) else Y
    if not (isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names)):
        return None
    if files.is_path(Z):
        stored = files.columns_in(Path(Z))
    else:
        stored = [str(name) for name in obs_of(Z).columns] if hasattr(Z, "obs_names") else []
    absent = [name for name in names if name not in stored]
    if not stored or (absent and len(names) > len(stored) and len(names) == rows_of(Z).n):
        return None  # a label for every row
    return [str(name) for name in names]


def open_tables(
    X: Any, y: Any, only: Mapping[str, list[str]] | None = None, chunk_rows: int | None = None
) -> tuple[Any, Any]:
    """X (a table, or views by name) and y with their files opened and joined by name; anything else as it is.

    Views that are streamed stay so if their rows have the same names; else they are loaded to be joined.
    """
    if sparse.issparse(X) and X.format == "dok":  # scipy keeps it as a dict
        X = X.tocsr()
    given = named_views(X)
    if not any(files.is_path(item) for item in (*given.values(), y)):
        return X, y
    names = _column_names(X, y) if files.is_path(X) else None
    study = None if names is None else open_study(Path(X), {}, None, names, chunk_rows=chunk_rows)
    if study is not None:
        views = study.views
    elif is_study(X):
        views = modalities(Path(X), wanted=None if only is None else list(only))
    else:
        known = only or {}
        views = {name: rows_of(view, chunk_rows, known.get(name), name) for name, view in given.items()}
    table = files.read_table(y) if files.is_path(y) and study is None else y
    if study is None:
        stored = {name: view for name, view in views.items() if is_study(X) or files.is_path(given[name])}
        views = {**views, **_upright(stored, table, y)}
    found = _in_step(views)
    if found is None and y is not None and not (files.is_path(y) or isinstance(y, pd.DataFrame | pd.Series)):
        return {name: view.data for name, view in views.items()}, y  # an array needs views in one order
    found = found or joined(views)
    _warn(found.notes)
    if study is not None:
        y = matched(found.rows, study.table, study.where, by_position=study.together).table
    elif files.is_path(y):
        y = table_of(y, table, found.rows)
    elif isinstance(y, pd.DataFrame | pd.Series) and found.rows.labels is None:
        y = y.set_axis(pd.RangeIndex(len(y)), axis=0)  # files without row names have positions only
    return (found.views[SINGLE] if [*found.views] == [SINGLE] and not isinstance(X, Mapping) else found.views), y


def _in_step(views: Mapping[str, Representation]) -> Joined | None:
    """Views that can be read in step as they are: only one, or streamed and with the same row names where any."""
    first = next(iter(views.values()))
    if len(views) > 1:
        labels = [view.labels for view in views.values() if view.labels is not None]
        same = all(index.equals(labels[0]) for index in labels) and len({view.n for view in views.values()}) == 1
        if not same or not any(is_source(view.data) for view in views.values()):
            return None
        first = next((view for view in views.values() if view.labels is not None), first)
    where = " and ".join(view.where for view in views.values())
    return Joined({name: view.data for name, view in views.items()}, Representation(first.data, where), [])


def _warn(notes: Sequence[str]) -> None:
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=5)
