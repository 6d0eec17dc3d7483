"""Folds of cross-validation: a hash of its numbers decides the fold of a row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from covalign._core.linalg import Array
from covalign.stream.levels import Levels
from covalign.stream.reduction import BLOCK_BYTES


def fold_of_rows(Z: Any, Y: Array, folds: int) -> NDArray[np.int64]:
    """The fold of each row: a hash of its numbers, so neither row order nor chunking matters.

    Equal rows share a fold, so a duplicate never sits on both sides of a split. Only the first and last 32 columns of Z
    and of Y are read: they distinguish rows, and most of the memory is left alone.
    """
    h = np.zeros(Y.shape[0], dtype=np.uint64)
    ends: Any
    for ends in (Z[:, :32], Z[:, 32:][:, -32:], Y[:, :32], Y[:, 32:][:, -32:]):
        values = np.asarray(ends.toarray() if sparse.issparse(ends) else ends, dtype=np.float64)
        bits = (values + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 one value
        weights = _mix(np.arange(1, values.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
        h = _mix(h ^ (bits * weights).sum(axis=1, dtype=np.uint64))
    return (h % np.uint64(folds)).astype(np.int64)


def fold_of_groups(numbers: Array, folds: int) -> NDArray[np.int64]:
    """The fold of each row: a hash of the number of its group, so all rows of a group share a fold."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    return (_mix(bits) % np.uint64(folds)).astype(np.int64)


def _mix(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One round of splitmix64: every bit of h reaches every bit of the result."""
    h = h + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


class FoldSorter:
    """Sorts rows by fold. The last ``n_confounders`` columns of Z do not influence the fold.

    ``grouped``: the last column of Y has the numbers of groups, which decide the fold; it is left out. ``levels``: Y is
    a short table; the columns that it stands for decide.

    The sorted rows are in memory that is used again and again: fresh pages from the system cost as much as the sums of
    some rows, above all where memory is given back at once (workers of dask).
    """

    def __init__(self, folds: int, n_confounders: int = 0, grouped: bool = False, levels: Levels | None = None) -> None:
        self._folds, self._n_confounders, self._grouped, self._levels = folds, n_confounders, grouped, levels
        self._buffers: dict[str, Array] = {}

    def sorted(self, Z: Any, Y: Array) -> Iterator[tuple[int, Any, Array]]:
        """(fold, z, y), some rows at a time; use them before asking for the next."""
        groups = Y[:, -1] if self._grouped else None
        Y = Y[:, :-1] if self._grouped else Y
        if self._folds == 1:
            yield 0, Z, Y
            return
        k = Z.shape[1] - self._n_confounders
        step = int(np.clip(BLOCK_BYTES // (8 * (Z.shape[1] + Y.shape[1])), 256, 8192))
        for i in range(0, len(Y), step):
            z, y = Z[i : i + step], Y[i : i + step]
            if groups is None:
                fold = fold_of_rows(z[:, :k], self._seen(y), self._folds)
            else:
                fold = fold_of_groups(groups[i : i + step], self._folds)
            order = np.argsort(fold, kind="stable")
            z, y = self._taken("z", z, order), self._taken("y", y, order)
            start = 0
            for f, n in enumerate(np.bincount(fold).tolist()):
                if n:
                    yield f, z[start : start + n], y[start : start + n]
                start += n

    def _seen(self, y: Array) -> Array:
        return y if self._levels is None else self._levels.expanded(y, self._levels.ends)

    def _taken(self, name: str, rows: Any, order: NDArray[np.intp]) -> Any:
        if sparse.issparse(rows):
            return rows[order]
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < len(order) or (buffer.shape[1], buffer.dtype) != (rows.shape[1], rows.dtype):
            buffer = self._buffers[name] = np.empty(rows.shape, dtype=rows.dtype)
        return np.take(rows, order, axis=0, out=buffer[: len(order)], mode="clip")  # "raise" would make a copy first
