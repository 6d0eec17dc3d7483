"""One pass over the rows of all views: mean and scatter of [x c y] for every combination of gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covalign._core.data_errors import no_rows
from covalign._core.flags import rows_by_pattern
from covalign._core.linalg import Array, dense
from covalign._core.messages import message
from covalign.moments.accumulator import Accumulator
from covalign.moments.moments import Moments
from covalign.moments.moments_sum import merge
from covalign.stream.finite import first_not_finite, not_finite_at
from covalign.stream.reduction import Size, of_batches, of_rows

Cell: TypeAlias = Callable[[int, int, int], tuple[Any, ...]]  # (view, column, row) -> (table, feature, sample)
Parts: TypeAlias = "tuple[Moments | None, dict[bytes, Combination]]"

SLAB_BYTES = 2**24  # of float64 that are added at a time: some blocks of an Accumulator
MOST_HELD = 2**27  # numbers kept for combinations of gaps: 1 GB


class Sizes(NamedTuple):
    """Columns: d features, q confounders, p covariates."""

    d: int
    q: int
    p: int

    @property
    def slab(self) -> int:
        """Rows that are added at a time."""
        return int(np.clip(SLAB_BYTES // (8 * sum(self)), 256, 32768))

    @property
    def reduction(self) -> Size:
        """The size that decides the number of threads."""
        return Size(sum(self), 1, self.slab)


class Combination:
    """Rows with the same missing cells: kept as rows while they are few, then as moments."""

    def __init__(self, flags: NDArray[np.bool_]) -> None:
        self.flags, self.n = flags, 0  # the observed cells of [x c y]
        self.width = int(np.count_nonzero(flags))
        self.rows: list[Array] = []
        self._sums: list[Accumulator] = []

    @property
    def held(self) -> int:
        """The number of numbers in memory."""
        return (self.width**2) * len(self._sums) if self._sums else self.n * self.width

    def add(self, H: Array) -> None:
        """Add rows of observed cells."""
        self.n += len(H)
        if self._sums:
            self._sums[0].add(H, H[:, :0])
        elif self.width:
            self.rows.append(H)
            if self.n > self.width + 1:
                self._sum_up()

    def _sum_up(self) -> None:
        """Replace rows by sums, in the smallest blocks, because there may be many combinations."""
        self._sums = [Accumulator(self.width, 0, block_bytes=1)]
        for rows in self.rows:
            self._sums[0].add(rows, rows[:, :0])
        self.rows = []

    def merge(self, other: Combination) -> None:
        """Add the rows of another."""
        if other._sums:
            if self.rows:
                self._sum_up()
            self._sums += other._sums
            self.n += other.n
        else:
            for rows in other.rows:
                self.add(rows)
            self.n += other.n if not other.width else 0

    def moments(self) -> Moments | None:
        """Moments of the observed cells; None if the rows themselves are kept."""
        return merge(sums.moments() for sums in self._sums)


class ViewSums:
    """Sums of rows of all views, of the covariates Y and of the confounders C, which come in this order."""

    def __init__(self, sizes: Sizes, cell: Cell, most: int) -> None:
        self.sizes, self._cell, self._most = sizes, cell, most
        self.whole = Accumulator(sizes.d + sizes.q, sizes.p)
        self.partial: dict[bytes, Combination] = {}

    def add(self, start: int, *parts: Any) -> None:
        """Add rows, the first of which has the number ``start``."""
        room, (*views, Y, C) = self.sizes.slab, parts
        for at in range(0, len(Y), room):
            here = slice(at, at + room)
            self._add(start + at, [dense(view[here]) for view in views], Y[here], C[here])

    def finish(self) -> Parts:
        """Moments of the complete rows, and the combinations of the others."""
        return None if self.whole.empty else self.whole.moments(), self.partial

    def _add(self, start: int, parts: list[Any], Y: Array, C: Array) -> None:
        finite = [is_finite(part) for part in parts]
        for view, part in enumerate(parts):
            if not finite[view]:
                refuse_infinite(part, start, view, self._cell)
        X = parts[0] if len(parts) == 1 and not C.shape[1] else np.hstack([*parts, C])
        if all(finite) and np.isfinite(Y.sum()):
            self.whole.add(X, Y)
        else:
            self._by_combination(np.hstack([X, Y]).astype(np.float64, copy=False))

    def _by_combination(self, H: Array) -> None:
        """Add each row to the rows with the same missing cells."""
        k, flags = self.sizes.d + self.sizes.q, ~np.isnan(H)
        complete = flags.all(axis=1)
        if complete.any():
            self.whole.add(H[complete, :k], H[complete, k:])
        left = np.flatnonzero(~complete)
        if not len(left):
            return
        for seen, rows in rows_by_pattern(flags[left]):
            observed = H[np.ix_(left[rows], np.flatnonzero(seen))]
            self.partial.setdefault(seen.tobytes(), Combination(seen)).add(observed)
        if sum(combination.held for combination in self.partial.values()) > self._most:
            problem = "Gaps of data that are read by chunks need to recur"
            got = f"{len(self.partial)} combinations of missing cells, more than fit into {8e-9 * MOST_HELD:.1f} GB"
            remedy = "leave out sparsely measured features, fill in single cells, or load X into memory if it fits"
            raise ValueError(message(problem, got=got, remedy=remedy))


def is_finite(part: Any) -> bool:
    """Whether the sum is finite; then all terms are. A finite table whose sum overflows gives False."""
    if part.dtype.kind != "f":
        return True
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.isfinite(part.sum()))


def refuse_infinite(part: Any, start: int, view: int, cell: Cell) -> None:
    """Raise an error that names row and column of an infinite number; NaN is a gap."""
    at = first_not_finite(np.where(np.isnan(part), 0, part))
    if at is not None:
        row, column, value = at
        where, name, label = cell(view, column, start + row)
        raise not_finite_at(where, value, start + row, column, name, label)


class Gathered(NamedTuple):
    """Number of rows, moments of the complete ones ([x c] and y), and combinations of the others."""

    n: int
    complete: Moments | None
    partial: list[Combination]


def gather(tables: Sequence[Any], sizes: Sizes, cell: Cell) -> Gathered:
    """Sums over the rows of all views, Y and C in one pass; ``cell`` names a number in messages."""
    return gathered(of_rows(tables, _new(sizes, cell), merged, sizes.reduction))


def gather_batches(batches: Iterable[tuple[Any, ...]], sizes: Sizes, cell: Cell) -> Gathered:
    """``gather`` from batches that can be read once."""
    return gathered(of_batches(batches, _new(sizes, cell), merged, sizes.reduction))


def _new(sizes: Sizes, cell: Cell) -> Callable[[], ViewSums]:
    return partial(ViewSums, sizes, cell, MOST_HELD // sizes.reduction.threads[0])


def merged(several: Sequence[Parts]) -> Parts:
    """The sums of all rows, from the sums of several parts. The first part is changed."""
    partial = several[0][1]
    for _, others in several[1:]:
        for key, combination in others.items():
            if key in partial:
                partial[key].merge(combination)
            else:
                partial[key] = combination
    return merge(complete for complete, _ in several), partial


def gathered(parts: Parts) -> Gathered:
    """The result, or an error if there is no row."""
    complete, partial = parts
    n = (0 if complete is None else complete.n or 0) + sum(combination.n for combination in partial.values())
    if n == 0:
        raise no_rows()
    return Gathered(n, complete, list(partial.values()))
