"""Representations as rows with names, streamed wherever they can be, and the covariates that belong to them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core import validation as errors
from covalign._core.extras import optional
from covalign.cli import table_files as tables
from covalign.cli.watched import Watched
from covalign.stream import is_source, open_rows
from covalign.stream.derived import Derived
from covalign.stream.memory import frame_dtype, frame_values
from covalign.stream.parquet import columns_of, parquet_files


class Rows(NamedTuple):
    """Rows of numbers, in memory or streamed, and what they are called."""

    data: Any  # a DataFrame, or a Source
    labels: pd.Index | None  # None where rows have no names
    where: str

    @property
    def n(self) -> int:
        """How many."""
        return int(self.data.shape[0])

    @property
    def names(self) -> pd.Index | None:
        """As text, which is what tables have."""
        if self.labels is not None and self.labels.nlevels > 1:
            raise errors.several_names(self.where, self.labels.nlevels)
        return None if self.labels is None else self.labels.astype(str)


class Named(Derived):
    """The rows of a source (or of a frame) with other names, or without any."""

    def __init__(self, source: Any, index: pd.Index | None) -> None:
        super().__init__(source if is_source(source) else open_rows(source))
        self._index = index

    @property
    def index(self) -> Any:
        """Names of the rows, or None."""
        return self._index

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """Those of the source."""
        return self.source.chunks(rows, start)


class Pair(NamedTuple):
    """A representation and its table of covariates and confounders, not yet in the same order."""

    rows: Rows
    table: pd.DataFrame
    where: str
    together: bool  # both are in one file, hence in the same order


def open_pair(
    path: Path,
    table: Path | None,
    covariates: Sequence[str] | None,
    confounders: Sequence[str] | None,
    index: str | None,
    key: str | None,
) -> Pair:
    """Rows and table; without a table its columns come from the file of the rows."""
    files = [path] if table is None else [path, table]
    tables.check_index(index, {file: tables.columns_in(file) for file in files if index is not None})
    if table is not None:
        known = tables.chosen(tables.read_table(table, index), covariates, confounders, table)
        return Pair(open_representation(path, key, index), known, str(table), False)
    if tables.suffix_of(path) in (".h5ad", ".npz"):
        known = tables.chosen(tables.read_table(path), covariates, confounders, path)
        return Pair(open_representation(path, key, index), known, str(path), True)
    if not covariates:
        raise errors.covariates_needed(path)
    known = tables.chosen(_beside(path, [*covariates, *(confounders or [])], index), covariates, confounders, path)
    return Pair(open_representation(path, key, index, without=list(known.columns)), known, str(path), True)


def _beside(path: Path, names: Sequence[str], index: str | None) -> pd.DataFrame:
    """Columns that lie beside the rows; of a parquet file only these are read."""
    if tables.is_parquet(path):
        have = tables.columns_in(path)
        wrong = [name for name in dict.fromkeys(names) if name not in have]
        if wrong:
            raise errors.unknown_columns(path, wrong, have)
        return tables.read_parquet(path, list(dict.fromkeys(names)))
    if tables.is_text(path):
        return tables.read_table(path, index)
    raise errors.covariates_needed(path)


def open_representation(
    path: Path,
    key: str | None = None,
    index: str | None = None,
    *,
    without: Sequence[str] = (),
    only: Sequence[str] | None = None,
) -> Rows:
    """What a path holds: text is read, anything else is streamed.

    ``without`` are columns with another role; ``only`` are the columns a model knows, taken if they are all there.
    """
    if not path.exists():
        raise errors.data_not_found(path, "a file or folder of rows")
    if tables.is_text(path) and key is None:
        return from_frame(tables.read_text(path, index), str(path), without, only)
    if tables.is_parquet(path) and key is None:
        return _from_parquet(path, index, without, only)
    if tables.suffix_of(path) == ".npz" and key is None and "Z" in _members(path):
        key = "Z"  # what covalign embed calls it
    source = Watched(open_rows(path, key=key))
    return Rows(source, source.index, str(path))


def from_frame(frame: pd.DataFrame, where: str, without: Sequence[str] = (), only: Sequence[str] | None = None) -> Rows:
    """The numbers of a table in memory."""
    frame = frame.drop(columns=[name for name in without if name in frame.columns])
    if only is not None and {*only} <= {*frame.columns}:
        frame = frame[list(only)]
    if 0 in frame.shape:
        raise errors.source_without_rows(where, frame.shape)
    dtype = frame_dtype(frame.dtypes, where)
    numbers = frame_values(frame, dtype if dtype.kind == "f" else np.dtype(np.float64))
    frame = pd.DataFrame(numbers, frame.index, frame.columns)
    return Rows(frame, None if isinstance(frame.index, pd.RangeIndex) else frame.index, where)


def _from_parquet(path: Path, index: str | None, without: Sequence[str], only: Sequence[str] | None) -> Rows:
    """Streamed; names of rows are pandas' own, or a column of text, which is read."""
    have = columns_of(path)
    labels = None
    if index in have:
        labels = tables.read_parquet(path, [str(index)])[index]
    elif have == tables.columns_in(path) and have[0] not in without:  # pandas wrote no names
        labels = _text(path, have[0])
    wanted = [name for name in have if name not in without and (labels is None or name != labels.name)]
    if only is not None and {*only} <= {*wanted}:
        wanted = list(only)
    source = Watched(open_rows(path, wanted))
    if labels is None:
        return Rows(source, source.index, str(path))
    names = tables.row_names(labels, path)
    return Rows(Named(source, names), names, str(path))


def _text(path: Path, name: str) -> pd.Series | None:
    """The column if it is text that never repeats; numbers are not read for that."""
    types = optional("pyarrow", "parquet").types
    kind = optional("pyarrow.parquet", "parquet").read_schema(parquet_files(path)[0]).field(name).type
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        return None
    column = tables.read_parquet(path, [name])[name]
    return column if tables.are_names(column) else None


def _members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError):
        return []  # who reads it says it better
