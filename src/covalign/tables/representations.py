"""Rows of numbers with their names, and the covariates that belong to them, opened from files and joined by name.

Text is read whole, anything else is streamed. The commands and the estimators both open files here.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.data_errors import lengths_differ, repeated_views, source_without_rows, view_rows_differ
from covalign._core.extras import optional
from covalign._core.files import data_not_found, reading
from covalign._core.messages import GIVE_COVARIATES, message
from covalign._core.paths import exists, file_of, is_file, sheet_of, suffix_of
from covalign._core.user_arrays import check_names
from covalign.exceptions import TransposedWarning
from covalign.stream import is_source, open_rows
from covalign.stream.cell_ranger import is_cell_ranger
from covalign.stream.h5ad import pulling
from covalign.stream.memory import frame_dtype, frame_values
from covalign.stream.mtx import is_mtx
from covalign.stream.npy import members
from covalign.stream.parquet import columns_of, schema_of
from covalign.tables import covariates as coding
from covalign.tables import groups as grouping
from covalign.tables import join, mofa_models, table_columns, table_index, text_files
from covalign.tables import table_files as files
from covalign.tables.foreign_tables import is_foreign, other_sheets
from covalign.tables.named_rows import Named, Representation, loaded
from covalign.tables.view_layout import AS_IT_IS, Layout, arranged, asked, is_count, transposed

LOADED_BYTES = 2**28  # of all views as float64, up to which they are loaded into memory to be joined by name
ROWS = (*files.PARQUET, ".h5ad", ".h5", ".hdf5", ".npy", ".npz", ".zarr")  # files that are streamed
SINGLE = "X"  # the name of the view where X is one table


# -- files of rows ----------------------------------------------------------------------------------------------------


def open_representation(
    path: Path,
    key: str | None = None,
    index: str | None = None,
    *,
    without: Sequence[str] = (),
    only: Sequence[str] | None = None,
    chunk_rows: int | None = None,
    na: Sequence[str] = (),
    turned: bool = False,
) -> Representation:
    """The rows in a file or folder.

    ``na`` are texts that mark gaps. ``without`` are columns with another role. ``only`` are the columns that a model
    knows, chosen if all are there. If they are all names of rows, the file has samples as columns and is read
    transposed, with a warning; ``turned`` says that it has.
    """
    view = _opened(path, key, index, without, None if turned else only, chunk_rows, na)
    if turned:
        return turned_for(view, only)
    if only is None or view.names is None or view.features is None or {*only} & {*view.features}:
        return view
    if not {*only} <= {*view.names}:
        return view
    warnings.warn(f"{path} has samples as columns: it is read transposed", TransposedWarning, stacklevel=2)
    return chosen(transposed(view), only)


def turned_for(view: Representation, only: Sequence[str] | None) -> Representation:
    """Columns as rows, unless the columns have the names of all features that a model knows."""
    if only is None or view.features is None or is_count(only) or not {*only} <= {*view.features}:
        return chosen(transposed(view), only)
    text = f"{view.where} has the features of the model as columns: it is not transposed"
    warnings.warn(text, TransposedWarning, stacklevel=2)
    return chosen(view, only)


def chosen(view: Representation, only: Sequence[str] | None) -> Representation:
    """The columns that a model knows, if all are there; of rows on disk they are chosen when these are read."""
    if only is None or not isinstance(view.data, pd.DataFrame) or not {*only} <= {*view.data.columns}:
        return view
    return replace(view, data=view.data[list(only)])


def _opened(
    path: Path,
    key: str | None,
    index: str | None,
    without: Sequence[str],
    only: Sequence[str] | None,
    chunk_rows: int | None,
    na: Sequence[str],
) -> Representation:
    """The rows in a file or folder, as they are there."""
    if not exists(file_of(path)):
        raise data_not_found(path, "a file or folder of rows")
    if text_files.is_text(path) and key is None:
        return from_frame(text_files.read_text(path, index, na), str(path), without, only)
    if is_foreign(path):
        try:
            return from_frame(files.read_table(path, index, na), str(path), without, only)
        except table_columns.OddCellError:
            raise
        except ValueError as why:
            raise ValueError(f"{str(why).removesuffix('.')}{other_sheets(path)}.") from why
    if is_mtx(file_of(path)) or is_cell_ranger(file_of(path)):
        rows = open_rows(file_of(path), key=sheet_of(path) or key, chunk_rows=chunk_rows)
        return Representation(rows, str(path))
    if is_file(path) and suffix_of(path) not in ROWS:
        raise files.unknown_format(path)
    if files.is_parquet(path) and key is None:
        return _from_parquet(path, index, without, only, chunk_rows)
    if key is None and mofa_models.is_model(path):
        return from_frame(mofa_models.read_model(path).Z, str(path), without, only)
    if suffix_of(path) == ".npz" and key is None and "Z" in members(path):
        key = "Z"  # the name that covalign embed gives it
    return Representation(open_rows(path, key=key, chunk_rows=chunk_rows), str(path))


def from_frame(
    frame: pd.DataFrame, where: str, without: Sequence[str] = (), only: Sequence[str] | None = None
) -> Representation:
    """The numbers of a table in memory."""
    frame = frame.drop(columns=[name for name in without if name in frame.columns])
    if only is not None and {*only} <= {*frame.columns}:
        frame = frame[list(only)]
    if 0 in frame.shape:
        raise source_without_rows(where, frame.shape)
    table_columns.refuse_text(frame, where)
    dtype = frame_dtype(frame.dtypes, where)
    numbers = frame_values(frame, dtype if dtype.kind == "f" else np.dtype(np.float64))
    return Representation(pd.DataFrame(numbers, frame.index, frame.columns), where)


def _from_parquet(
    path: Path, index: str | None, without: Sequence[str], only: Sequence[str] | None, chunk_rows: int | None
) -> Representation:
    """Streamed; row names are the index that pandas wrote, or a column of text, which is read."""
    schema = schema_of(path)
    have = columns_of(schema)
    labels = None
    if index in have:
        labels = files.read_parquet(path, [str(index)])[index]
    elif have == schema.names and have[0] not in without:  # pandas wrote no names
        labels = _text(path, have[0], schema.field(have[0]).type)
    wanted = [name for name in have if name not in without and (labels is None or name != labels.name)]
    if only is not None and {*only} <= {*wanted}:
        wanted = list(only)
    source = open_rows(path, wanted, chunk_rows=chunk_rows)
    return Representation(source if labels is None else Named(source, table_index.row_names(labels, path)), str(path))


def _text(path: Path, name: str, kind: Any) -> pd.Series | None:
    """The column if it is text that never repeats; a column of numbers is not read."""
    types = optional("pyarrow", "parquet").types
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        return None
    column = files.read_parquet(path, [name])[name]
    return column if table_index.are_names(column) else None


def open_views(
    paths: Mapping[str, Path],
    key: str | None,
    index: str | None,
    only: Mapping[str, list[str]] | None = None,
    na: Sequence[str] = (),
    turned: Sequence[str] = (),
) -> dict[str, Representation]:
    """Views from files. ``key`` is for files of several arrays; ``only`` has the features that a model knows.

    ``turned`` are views whose samples are columns.
    """
    several = [name for name, path in paths.items() if has_arrays(path)]
    settings: dict[str, Any] = {"index": index, "na": na}
    return {
        name: open_representation(
            path,
            key if name in several or not several else None,
            only=(only or {}).get(name),
            turned=asked(turned, name),
            **settings,
        )
        for name, path in paths.items()
    }


def has_arrays(path: Path) -> bool:
    """A file or folder of several arrays, one of which a key names."""
    return suffix_of(path) in (".h5ad", ".h5mu", ".h5", ".npz", ".zarr", ".mtx") or is_mtx(file_of(path))


def named_views(X: Any) -> dict[str, Any]:
    """X as name -> table. Two names that are the same text would be one view."""
    if not isinstance(X, Mapping):
        return {SINGLE: X}
    views = {str(name): view for name, view in X.items()}
    if len(views) < len(X):
        texts = [str(name) for name in X]
        raise repeated_views(name for name in views if texts.count(name) > 1)
    check_names("X", views)
    return views


def is_study(path: Any) -> bool:
    """A file of several views."""
    return files.is_path(path) and suffix_of(Path(path)) == ".h5mu"


def modalities(path: Path, key: str | None = None, wanted: Sequence[str] | None = None) -> dict[str, Representation]:
    """The views of an ``.h5mu``: X of each modality, or ``key``; the wanted ones, if any of them is there."""
    if not exists(path):
        raise data_not_found(path, "a file of several views (.h5mu)")
    mudata = optional("mudata", "scverse")
    with reading(path, "an .h5mu file written by mudata"), pulling(False):
        data = mudata.read_h5mu(path)
    names = [name for name in data.mod if wanted is None or name in wanted] or list(data.mod)
    where = {name: f"{path}[{name}]" for name in names}
    return {str(name): Representation(open_rows(data.mod[name], key=key, name=at), at) for name, at in where.items()}


# -- rows and covariates ----------------------------------------------------------------------------------------------


class Study(NamedTuple):
    """Views and their table of covariates, confounders and groups, not yet in the same order."""

    views: dict[str, Representation]
    table: pd.DataFrame
    where: str  # the file of the table
    together: bool  # views and table are in one file, hence in the same order
    notes: list[str]
    likely: tuple[str, str] | None = None  # a column that may name groups, and a covariate that is constant within them


def open_study(
    data: Path | None,
    paths: Mapping[str, Path],
    table: Path | None,
    covariates: Sequence[str] | None = None,
    confounders: Sequence[str] | None = None,
    index: str | None = None,
    key: str | None = None,
    chunk_rows: int | None = None,
    groups: str | None = None,
    layout: Layout = AS_IT_IS,
    ordered: Mapping[str, Sequence[str]] | None = None,
    na: Sequence[str] = (),
) -> Study:
    """One file of rows, or views by name, and a table. Without a table its columns come from the file of the rows.

    ``layout`` says what to do with the views: samples as columns, other names, logarithms, a choice of features.
    ``ordered`` has the levels of ordered columns, lowest first. ``na`` are texts that mark gaps in all tables.
    """
    several = data is None or is_study(data)
    source = table or data
    if source is None:
        raise files.covariates_needed(" and ".join(map(str, paths.values())))
    every = [*([] if data is None else [data]), *paths.values(), *([] if table is None else [table])]
    table_columns.check_index(index, {file: files.columns_in(file) for file in every if index is not None})
    together = table is None and not several
    among = together and suffix_of(source) not in (".h5ad", ".npz")  # covariates are columns among the rows
    if among:
        asked = [*covariates, *(confounders or []), *([] if groups is None else [groups])] if covariates else []
        every_column = _columns_beside(source, asked, index, na)
    else:
        every_column = files.read_table(source, index, na)
    notes = [] if covariates else table_index.numbers_as_names(every_column, source)
    known = coding.ordered(table_columns.chosen(every_column, covariates, confounders, source, groups), ordered or {})
    likely = grouping.likely_column(known, every_column) if groups is None else None
    without = list(known.columns) if among else []
    if data is None:
        views = open_views(paths, key, index, na=na)
    elif several:
        views = modalities(data, key)
    else:
        views = {SINGLE: open_representation(data, key, index, without=without, chunk_rows=chunk_rows, na=na)}
    if together and layout.transpose:
        problem = f"transpose needs covariates in a table of their own, and they are read from {str(source)!r}"
        raise ValueError(message(problem, remedy=GIVE_COVARIATES))
    found = arranged(views, known, str(source), layout._replace(by_name=layout.by_name and not together))
    alike = [] if together else also_features(found.table, found.views)
    return Study(found.views, found.table, str(source), together, [*notes, *found.notes, *alike], likely)


def also_features(table: pd.DataFrame, views: Mapping[str, Representation]) -> list[str]:
    """A note for every covariate that a view has, too: its factor would be that feature."""
    columns, notes = {str(name).casefold(): str(name) for name in table.columns}, []
    for name, view in views.items():
        for feature in () if view.features is None else map(str, view.features):
            column = columns.get(feature.casefold())
            if column is not None:
                where = f"feature {feature!r} of {name or view.where}"
                notes.append(f"covariate {column!r} is also {where}: a factor may be nothing but that feature")
    return notes


def _columns_beside(path: Path, names: Sequence[str], index: str | None, na: Sequence[str]) -> pd.DataFrame:
    """Columns in the file of the rows; of a parquet file only these are read."""
    if names and files.is_parquet(path):
        have = files.columns_in(path)
        wrong = [name for name in dict.fromkeys(names) if name not in have]
        if wrong:
            raise table_columns.unknown_columns(path, wrong, have)
        return table_columns.with_gaps(files.read_parquet(path, list(dict.fromkeys(names))), na)
    if names and text_files.is_text(path):
        return files.read_table(path, index, na)
    if not exists(path):
        raise data_not_found(path, "a file or folder of rows")
    raise files.covariates_needed(path)


class Matched(NamedTuple):
    """A table in the order of rows, and what was left out or left empty."""

    table: pd.DataFrame
    notes: list[str]


def matched(
    rows: Representation, table: pd.DataFrame, where: str, *, by_position: bool = False, needed: bool = False
) -> Matched:
    """The table with a row for each of ``rows``, and with their index where they have one.

    By name where both have names: rows that only the table has are left out. Rows that the table lacks are empty in
    all columns, or an error where they are ``needed``. By position otherwise.
    """
    names, called = rows.names, (where, rows.where)
    if by_position or names is None or isinstance(table.index, pd.RangeIndex):
        if len(table) != rows.n:
            raise lengths_differ(rows.n, len(table))
        notes = []
        if names is None and not by_position and _says_something(table.index):
            notes = [f"{rows.where} has no row names: rows of {where} are taken by position"]
        index = getattr(rows.data, "index", None) if names is None else rows.labels
        return Matched(table if index is None else table.set_axis(index, axis=0), notes)
    join.refuse_duplicates(names, rows.where)
    join.refuse_duplicates(table.index, where)
    join.refuse_disjoint(table.index, names, called)
    absent = "refuse" if needed else "leave empty"
    ordered = join.in_order(table, names, absent=absent, extra="leave out", called=called)
    return Matched(ordered.set_axis(rows.labels, axis=0), join.notes(table.index, names, called))


def _says_something(index: pd.Index) -> bool:
    """Whether the names are not just the numbers of the rows."""
    return not isinstance(index, pd.RangeIndex) and list(index) != [str(i) for i in range(len(index))]


class Joined(NamedTuple):
    """Views of the same samples: DataFrames, or Sources read in step where they are large."""

    views: dict[str, Any]
    rows: Representation  # all samples: what tables are matched with
    notes: list[str]


def joined(views: Mapping[str, Representation], *, by_position: bool = False) -> Joined:
    """Views over the union of their samples, in order of appearance, where they have names; else by position."""
    named = [name for name, view in views.items() if view.labels is not None]
    if not by_position:
        join.refuse_unnamed(named, [name for name in views if name not in named])
    where = " and ".join(view.where for view in views.values())
    first = next(iter(views.values()))
    nameless = by_position or not named
    if not _fit_into_memory(views):
        sources = {name: Named(view.data, None) if nameless else view.data for name, view in views.items()}
        return Joined(sources, Representation(next(iter(sources.values())), where), [])
    if nameless:
        counts = {name: view.n for name, view in views.items()}
        if len(set(counts.values())) > 1:
            raise view_rows_differ(counts)
        index = first.names if first.names is not None and first.names.is_unique else pd.RangeIndex(first.n)
        frames = {name: loaded(view, index) for name, view in views.items()}
        return Joined(frames, Representation(pd.DataFrame(index=index), where), [])
    samples = join.union({view.where: view.names for view in views.values() if view.names is not None})
    frames = {name: loaded(view, view.names).reindex(samples) for name, view in views.items()}
    notes = [
        f"{len(samples) - view.n} of {len(samples)} samples are not in {view.where}: {name} is missing for them"
        for name, view in views.items()
        if view.n < len(samples)
    ]
    return Joined(frames, Representation(pd.DataFrame(index=samples), where), notes)


def _fit_into_memory(views: Mapping[str, Representation]) -> bool:
    """Whether the views are in memory, or small."""
    there = not any(is_source(view.data) for view in views.values())
    return there or sum(8 * view.n * view.data.shape[1] for view in views.values()) <= LOADED_BYTES
