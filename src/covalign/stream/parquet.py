"""Parquet: one file, or a folder of files of the same columns, read a batch of a row group at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.data_errors import column_not_numeric, repeated_columns
from covalign._core.extras import optional
from covalign._core.files import check_claim, reading, unreadable_data
from covalign._core.messages import message
from covalign.stream.source import Table, positions

NEED = "a parquet file"
BUFFER_BYTES = 2**16  # of every column, while it is read


class ParquetRows(Table):
    """The rows of the files in the order of their names. Chunks are floats, so that nulls can be NaN.

    A column of lists (embeddings are often stored so) becomes as many columns as its lists are long.
    """

    def __init__(self, path: Path, *, columns: Any = None, **options: Any) -> None:
        self._pq = optional("pyarrow.parquet", "parquet")
        self._files = parquet_files(path)
        where, heads = str(path), [head_of(file) for file in self._files]
        schemas = [schema_in(file, head) for file, head in zip(self._files, heads, strict=True)]
        schema = schemas[0]
        known = columns_of(schema)
        repeated = {name for name in known if known.count(name) > 1} if len(set(known)) < len(known) else set()
        if repeated:
            raise repeated_columns(where, sorted(repeated))
        take = positions(where, columns, known, len(known))
        self._names = known if take is None else [known[i] for i in take]
        self._labels = index_columns(schema)
        for name in self._names:
            if number_type(schema.field(name).type) is None:
                raise column_not_numeric(where, name, schema.field(name).type)
        for file, other in zip(self._files[1:], schemas[1:], strict=True):
            self._compare(file, schema, other, whole=take is None)
        self._groups = [[head.row_group(i).num_rows for i in range(head.num_row_groups)] for head in heads]
        n = sum(map(sum, self._groups))
        check_claim(path, 8 * n * len(self._names), sum(file.stat().st_size for file in self._files))
        kinds = {number_type(each.field(name).type) for each in schemas for name in self._names}
        dtype = np.result_type(np.float32, *kinds)
        self._widths = self._list_lengths(schema) if n else {}
        names = [each for name in self._names for each in spread(name, self._widths.get(name))]
        index = self._row_names if self._labels else None
        super().__init__(where, (n, len(names)), dtype, names=names, index=index, **options)

    def _row_names(self) -> pd.Index:
        """Row names that pandas wrote into the files."""
        tables = []
        for file in self._files:
            with reading(file, NEED):
                tables.append(self._pq.read_table(file, columns=self._labels).to_pandas())
        frame = pd.concat(tables)
        stored: pd.Index = (frame.set_index(self._labels) if {*self._labels} <= {*frame.columns} else frame).index
        return stored

    def _list_lengths(self, schema: Any) -> dict[str, int]:
        """Lengths of the lists in columns of lists: those of the first row."""
        names = [name for name in self._names if is_list(schema.field(name).type)]
        if not names:
            return {}
        at = next(i for i, sizes in enumerate(self._groups) if sum(sizes))
        first = next(self._batches(self._files[at], range(len(self._groups[at])), 1, names))
        return {name: len(first.column(name)[0].as_py() or ()) for name in names}

    def _compare(self, file: Path, first: Any, other: Any, *, whole: bool) -> None:
        """Check that all columns used are there and, without a choice of columns, no others."""
        have = columns_of(other)
        for name in self._names:
            if name not in have:
                raise schema_changed(file, name, first.field(name).type, "no such column")
            need, got = first.field(name).type, other.field(name).type
            if number_type(got) is None or is_list(need) != is_list(got):
                raise schema_changed(file, name, need, got)
        extra = [name for name in have if name not in set(self._names)]
        if whole and extra:
            raise schema_changed(file, extra[0], "absent", other.field(extra[0]).type)

    def _pieces(self, rows: int, start: int) -> Iterator[Any]:
        for file, sizes in zip(self._files, self._groups, strict=True):
            ends = np.cumsum([0, *sizes])
            if start >= ends[-1]:  # no row of this file is wanted
                start -= int(ends[-1])
                continue
            first = int(np.searchsorted(ends, start, side="right")) - 1
            skip, start = start - int(ends[first]), 0
            left = int(ends[-1] - ends[first])
            for batch in self._batches(file, range(first, len(sizes)), rows, self._names):
                left -= batch.num_rows
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                # In the order of the selection: versions of pyarrow return different orders.
                yield as_array(batch.select(self._names), self._widths, self.dtype, file)[skip:]
                skip = 0
            if left:
                raise unreadable_data(file, NEED, f"{abs(left)} rows {'are missing' if left > 0 else 'are too many'}")

    def _batches(self, file: Path, groups: range, rows: int, names: list[str]) -> Iterator[Any]:
        # By default pyarrow keeps the bytes of all selected row groups, or at least of a whole one, in memory.
        options = {"pre_buffer": False, "buffer_size": BUFFER_BYTES}
        with reading(file, NEED), self._pq.ParquetFile(file, **options) as opened:  # pages may be damaged
            yield from opened.iter_batches(batch_size=rows, row_groups=list(groups), columns=names)


def parquet_files(path: Path) -> list[Path]:
    """The file, or the files of the folder (without hidden files and the markers that some writers leave)."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.glob("*.parquet") if file.name[0] not in "._")
    if not files:
        problem = f"A folder with .parquet files is needed, and {str(path)!r} has none"
        raise ValueError(message(problem, remedy="Correct the path"))
    return files


def head_of(file: Path) -> Any:
    """The table of contents of a file."""
    with reading(file, NEED):
        return optional("pyarrow.parquet", "parquet").read_metadata(file)


def schema_of(path: Path) -> Any:
    """Names and types of all columns of the file, or of the first one in the folder."""
    first = parquet_files(path)[0]
    return schema_in(first, head_of(first))


def schema_in(file: Path, head: Any) -> Any:
    """The columns of a file, from its table of contents, whose numbers of rows are checked."""
    with reading(file, NEED):
        if min((head.row_group(i).num_rows for i in range(head.num_row_groups)), default=0) < 0:
            raise ValueError("a row group has less than no rows")
        return head.schema.to_arrow_schema()


def columns_of(schema: Any) -> list[str]:
    """Names of the columns, without those in which pandas keeps the names of rows."""
    labels = index_columns(schema)
    return [name for name in schema.names if name not in labels]


def index_columns(schema: Any) -> list[str]:
    """Columns in which pandas keeps the names of rows."""
    text = (schema.metadata or {}).get(b"pandas")
    try:
        index = json.loads(text)["index_columns"] if text else []
        index = index if isinstance(index, list) else []
    except (ValueError, KeyError, TypeError, RecursionError):  # of another program
        index = []
    return [name for name in index if isinstance(name, str) and name in schema.names]


def is_list(kind: Any) -> bool:
    """Whether a column of this type of pyarrow has lists."""
    types = optional("pyarrow", "parquet").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def spread(name: str, width: int | None) -> list[str]:
    """The names of the columns that a column of a file becomes: several for a column of lists."""
    return [name] if width is None else [f"{name}_{i}" for i in range(width)]


def number_type(kind: Any) -> Any:
    """The numpy type for a type of pyarrow, of numbers or lists of numbers; None for other types."""
    types = optional("pyarrow", "parquet").types
    kind = kind.value_type if is_list(kind) else kind
    if types.is_decimal(kind):
        return np.dtype(np.float64)
    number = types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)
    return np.dtype(kind.to_pandas_dtype()) if number else None


def as_array(batch: Any, widths: dict[str, int], dtype: np.dtype[Any], file: Path) -> Any:
    """A batch as a C-ordered array of one type, NaN for null; integers beyond 2^53 are rounded as numpy rounds them."""
    pa = optional("pyarrow", "parquet")
    wide = pa.from_numpy_dtype(dtype)
    if not widths:
        schema = pa.schema([(name, wide) for name in batch.schema.names])
        return np.asarray(batch.cast(schema, safe=False).to_tensor(null_to_nan=True, row_major=True))
    columns = []
    for name in batch.schema.names:
        column = batch.column(name)
        if name in widths:
            column = flat_lists(column, widths[name], name, file)
        numbers = column.cast(wide, safe=False).to_numpy(zero_copy_only=False)
        columns.append(numbers.reshape(batch.num_rows, -1))
    return columns[0] if len(columns) == 1 else np.hstack(columns)


def flat_lists(column: Any, width: int, name: str, file: Path) -> Any:
    """The numbers of lists that are all of one length, one after another."""
    lengths = optional("pyarrow.compute", "parquet").list_value_length(column).to_numpy(zero_copy_only=False)
    wrong = lengths[lengths != width]  # a missing list has no length
    if len(wrong):
        problem = f"{str(file)!r} needs lists of {width} numbers in column {name!r} as in its first row"
        got = f"{'no list' if np.isnan(wrong[0]) else int(wrong[0])} in another"
        raise ValueError(message(problem, got=got, remedy="drop such rows, or pad the lists"))
    return column.flatten()


def schema_changed(file: Path, column: Any, need: Any, got: Any) -> ValueError:
    """The error for a file whose columns are not those of the first file."""
    problem = f"{str(file)!r} needs column {str(column)!r} to be {need} as in the first file of the folder"
    remedy = "write the file again with the same columns, or choose common ones with columns="
    return ValueError(message(problem, got=got, remedy=remedy))
