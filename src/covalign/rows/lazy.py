"""Rows that dask computes when they are asked for: arrays and DataFrames, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from covalign.rows.memory import frame_dtype, frame_values
from covalign.rows.source import Table, positions


class _Blocks(Table):
    """Rows in blocks of various lengths, of which whole ones are computed at a time."""

    _ends: Any  # last row of every block, plus one

    def _pieces(self, rows: int, start: int) -> Iterator[Any]:
        starts = np.concatenate([[0], self._ends[:-1]])
        first = int(np.searchsorted(self._ends, start, side="right"))
        while first < len(self._ends):
            # As many blocks as fit into a chunk, and at least one.
            last = max(first + 1, int(np.searchsorted(self._ends, starts[first] + rows, side="right")))
            yield self._finish(self._compute(first, last), max(0, start - int(starts[first])))
            first = last

    def _read(self, start: int, stop: int) -> Any:
        raise NotImplementedError  # blocks are read whole

    def _compute(self, first: int, last: int) -> Any:
        """All rows of the blocks [first, last)."""
        raise NotImplementedError

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk: whole blocks where they are all of a size."""
        rows = super().chunk_rows
        block = max(1, int(self._ends[0]))
        return rows if self._chunk_rows is not None else max(1, rows // block) * block


class DaskArrayRows(_Blocks):
    """A dask array. Where the sizes of its blocks are unknown they are computed first, which is a pass of its own."""

    def __init__(self, array: Any, where: str, **options: Any) -> None:
        if any(np.isnan(size) for size in array.chunks[0]):
            array = array.compute_chunk_sizes()
        self._array = array
        super().__init__(where, array.shape, array.dtype, **options)
        self._ends = _ends(array.chunks[0])

    def _compute(self, first: int, last: int) -> Any:
        start = int(self._ends[first - 1]) if first else 0
        return self._array[start : int(self._ends[last - 1])].compute()


class DaskFrameRows(_Blocks):
    """A dask DataFrame. The lengths of its partitions are computed first."""

    def __init__(self, frame: Any, where: str, *, columns: Any = None, **options: Any) -> None:
        take = positions(where, columns, [str(name) for name in frame.columns], len(frame.columns))
        if take is not None:
            frame = frame[[frame.columns[i] for i in take]]
        dtype = frame_dtype(frame.dtypes, where)
        lengths = frame.map_partitions(len).compute()
        self._frame = frame
        super().__init__(where, (int(sum(lengths)), len(frame.columns)), dtype, names=frame.columns, **options)
        self._ends = _ends(lengths)

    def _compute(self, first: int, last: int) -> Any:
        return frame_values(self._frame.partitions[first:last].compute(), self.dtype)


def _ends(lengths: Sequence[int]) -> Any:
    return np.cumsum(np.asarray(lengths, dtype=np.int64))
