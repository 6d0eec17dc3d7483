"""Sums of the rows of every fold, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from covalign._core.data_errors import no_rows
from covalign._core.linalg import (
    Array,
)
from covalign.moments.accumulator import Accumulator
from covalign.moments.block_sizes import block_bytes, block_rows, is_wide
from covalign.moments.moments import Moments
from covalign.moments.moments_sum import merge
from covalign.moments.numeric_rows import as_rows, covariate_names
from covalign.stream import is_source, refuse_not_finite
from covalign.stream.folds import FoldSorter
from covalign.stream.levels import Levels
from covalign.stream.reduction import Size, of_rows


class FoldSums:
    """Sums of the rows of every fold. ``fold_of_rows`` decides the fold of a row.

    ``accumulator(k, p, block_bytes=...)`` makes the sums of one fold. The last ``n_confounders`` columns of Z do not
    influence folds. ``grouped``: the last column of Y has the numbers of groups, of which there are about ``expected``.
    ``levels``: Y is a short table (``stream.levels``).
    """

    def __init__(
        self,
        folds: int,
        accumulator: Callable[..., Any],
        names: Sequence[str],
        n_confounders: int = 0,
        grouped: bool = False,
        expected: int | None = None,
        levels: Levels | None = None,
    ) -> None:
        self._new, self._names = partial(accumulator, block_bytes=block_bytes(expected or folds)), names
        self._sorter = FoldSorter(folds, n_confounders, grouped, levels)
        self._sums: list[Any] = [None] * folds
        self._n = 0

    def add(self, start: int, Z: Any, Y: Array) -> None:
        """Add rows of Z and Y."""
        self._n += len(Y)
        many = not is_wide(self._n, Z.shape[1])
        for sums in self._sums if many else ():
            if sums is not None:
                sums.forget_rows()
        for fold, z, y in self._sorter.sorted(Z, Y):
            if self._sums[fold] is None and len(y):
                self._sums[fold] = self._new(z.shape[1], y.shape[1])
                if many:
                    self._sums[fold].forget_rows()
            if len(y):
                self._sums[fold].add(z, y)

    def finish(self) -> list[Any]:
        """Moments of every fold, None for a fold without rows."""
        return [None if sums is None else sums.moments(self._names) for sums in self._sums]


def fold_moments(Z: Any, Y: Any, folds: int, n_confounders: int = 0) -> list[Moments | None]:
    """Moments of every fold, None for a fold without rows, in one pass."""
    return sums_of_folds(Z, Y, folds, Accumulator, merge, n_confounders)


def sums_of_folds(
    Z: Any,
    Y: Any,
    folds: int,
    accumulator: Callable[..., Any],
    merge: Callable[..., Any],
    n_confounders: int,
    grouped: bool = False,
    names: Sequence[str] | None = None,
    levels: Levels | None = None,
) -> list[Any]:
    """What accumulators make of the rows of every fold, in one pass; ``merge`` joins the results of threads.

    ``grouped``: the last column of Y has the numbers of groups (``stream.folds``). ``levels``: Y is a short table
    (``stream.levels``), which becomes columns with these names.
    """
    names = covariate_names(Y)[: -1 if grouped else None] if names is None else names
    Z, Y = as_rows(Z, Y)
    if Y.shape[0] == 0:
        raise no_rows()

    def locate(start: int, z: Any, y: Array) -> None:
        refuse_not_finite(z, start, Z if is_source(Z) else None, "Z")
        gaps = accumulator is not Accumulator and y.dtype.kind == "f"
        refuse_not_finite(np.where(np.isnan(y), 0.0, y) if gaps else y, start, what="Y")

    columns = Z.shape[1] + Y.shape[1]
    expected = min(folds, len(np.unique(Y[:, -1]))) if grouped else folds
    size = Size(columns, expected, block_rows(columns, block_bytes(expected)))
    new = partial(FoldSums, folds, accumulator, names, n_confounders, grouped, expected, levels)
    found: list[Any] = of_rows([Z, Y], new, partial(merge_folds, merge=merge), size, locate)
    return found


def merge_folds(several: Sequence[Sequence[Any]], merge: Callable[[Iterable[Any]], Any]) -> list[Any]:
    """The results of several ``FoldSums``, merged fold by fold."""
    return [merge(parts) for parts in zip(*several, strict=True)]
