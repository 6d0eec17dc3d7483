"""Views in dask: sums and factors are computed where the rows are."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from covalign._core.linalg import Array, dense
from covalign.factor.view_sums import MOST_HELD, Cell, Gathered, Parts, Sizes, ViewSums, gathered, merged
from covalign.moments import cluster
from covalign.stream import is_dask
from covalign.stream.dask_reduction import of_dask


def is_lazy(X: Any) -> bool:
    """Whether all views are in dask."""
    views = list(X.values()) if isinstance(X, Mapping) else [X]
    return bool(views) and all(is_dask(view) for view in views)


class Joined(NamedTuple):
    """Views side by side as one dask array, and the columns of each."""

    X: Any
    bounds: list[slice]

    @classmethod
    def of(cls, views: Sequence[Any]) -> Joined:
        """Join views, in the chunks of rows of the first one."""
        X = cluster.side_by_side(views, cluster.row_counts(views[0]))
        ends = np.cumsum([len(view.columns) if hasattr(view, "columns") else view.shape[1] for view in views]).tolist()
        return cls(X, [slice(start, stop) for start, stop in zip([0, *ends[:-1]], ends, strict=True)])

    def gather(self, Y: Array, C: Array, sizes: Sizes, cell: Cell) -> Gathered:
        """``view_sums.gather`` where the rows are: only sums are moved, and rows with rare combinations of gaps."""
        table = cluster.in_chunks(np.hstack([Y, C]), self.X.chunks[0])
        new = partial(ChunkViewSums, self.bounds, sizes, cell, MOST_HELD)
        return gathered(of_dask(self.X, table, new, _merge_runs))

    def by_block(self, work: Callable[[list[Any], Array], Array], table: Array, width: int) -> Any:
        """``work(parts of all views, rows of the table)`` of every chunk, lazily: a dask array (n x width)."""
        return cluster.by_block(partial(_split, work, self.bounds), self.X, table, width)


class ChunkViewSums(ViewSums):
    """``ViewSums`` of chunks of all views side by side, and of [Y C]."""

    def __init__(self, bounds: list[slice], sizes: Sizes, cell: Cell, most: int) -> None:
        super().__init__(sizes, cell, most)
        self._bounds = bounds

    def add_chunk(self, number: int, start: int | None, X: Any, table: Array) -> None:
        """Add a chunk."""
        p = self.sizes.p
        self.add(start or 0, *(X[:, where] for where in self._bounds), table[:, :p], table[:, p:])


def _merge_runs(several: Sequence[Parts]) -> Parts:
    """``merged`` of copies: dask merges the same parts again if a worker is lost."""
    return merged([(complete, copy.deepcopy(partial)) for complete, partial in several])


def _split(work: Callable[[list[Any], Array], Array], bounds: list[slice], x: Any, t: Array) -> Array:
    x = dense(x)
    return work([x[:, where] for where in bounds], t)
