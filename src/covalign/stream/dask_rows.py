"""Rows that dask computes on demand: arrays and DataFrames, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.extras import optional
from covalign.stream.dask_reduction import checked_block
from covalign.stream.memory import frame_dtype, frame_values
from covalign.stream.source import Table, positions


class _Blocks(Table):
    """Rows in blocks of different lengths; whole blocks are computed at a time."""

    _ends: Any  # last row of every block, plus one

    def _pieces(self, rows: int, start: int) -> Iterator[Any]:
        starts = np.concatenate([[0], self._ends[:-1]])
        first = int(np.searchsorted(self._ends, start, side="right"))
        while first < len(self._ends):
            # As many blocks as fit into a chunk, and at least one.
            last = max(first + 1, int(np.searchsorted(self._ends, starts[first] + rows, side="right")))
            yield self._finish(self._compute(first, last), max(0, start - int(starts[first])))
            first = last

    def _compute(self, first: int, last: int) -> Any:
        """All rows of the blocks [first, last)."""
        raise NotImplementedError

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk: whole blocks if all have the same size."""
        rows = super().chunk_rows
        block = max(1, int(self._ends[0]))
        return rows if self._chunk_rows is not None else max(1, rows // block) * block


class DaskArrayRows(_Blocks):
    """A dask array. Unknown sizes of its blocks are computed first, in a separate pass."""

    def __init__(self, array: Any, where: str, **options: Any) -> None:
        if any(np.isnan(size) for size in array.chunks[0]):
            array = array.compute_chunk_sizes()
        self._array = array
        super().__init__(where, array.shape, array.dtype, **options)
        self._ends = np.cumsum(array.chunks[0])

    def _compute(self, first: int, last: int) -> Any:
        return checked_block(self._array.blocks[first:last].compute(), self._stored_width)


class DaskFrameRows(_Blocks):
    """A dask DataFrame. The lengths of its partitions are computed first."""

    def __init__(self, frame: Any, where: str, *, columns: Any = None, **options: Any) -> None:
        take = positions(where, columns, [str(name) for name in frame.columns], len(frame.columns))
        if take is not None:
            frame = frame[[frame.columns[i] for i in take]]
        dtype = frame_dtype(frame.dtypes, where)
        lengths = frame.map_partitions(len).compute()
        self._frame = frame
        names = {"names": frame.columns, "index": cache(lambda: row_names(frame))}  # of rows, computed on demand
        super().__init__(where, (int(sum(lengths)), len(frame.columns)), dtype, **{**options, **names})
        self._ends = np.cumsum(np.asarray(lengths))

    def _compute(self, first: int, last: int) -> Any:
        return frame_values(self._frame.partitions[first:last].compute(), self.dtype)


def row_names(frame: Any) -> pd.Index | None:
    """The index of a dask DataFrame; None if every partition counts its own rows (parquet without an index)."""
    dask = optional("dask", "dask")
    with partitions_kept():
        parts = dask.compute(*frame.index.to_delayed())
    if len(parts) > 1 and all(part.equals(pd.RangeIndex(len(part))) for part in parts):
        return None
    names: pd.Index = parts[0].append(list(parts[1:])) if len(parts) > 1 else parts[0]
    return names.astype(object) if isinstance(names.dtype, pd.StringDtype) else names


def partitions_kept() -> Any:
    """A context in which dask does not merge partitions if few columns are read: X and Y need the same partitions."""
    return optional("dask", "dask").config.set({"optimization.tune.active": False})
