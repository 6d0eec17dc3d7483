"""One pass over rows of any number: mean and scatter of [x c y], for every combination of gaps on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covalign._core import validation as errors
from covalign._core.linalg import Array, dense
from covalign._core.threads import blas_threads, limited
from covalign.factor.inference.patterns import Patterns
from covalign.factor.views import Chunk, numbered
from covalign.moments.moments import Accumulator, Moments, merge
from covalign.stream.finite import first_not_finite
from covalign.stream.source import stacked

Cell: TypeAlias = Callable[[int, int, int], tuple[Any, ...]]  # (view, column, row) -> (table, feature, sample)
Parts: TypeAlias = "tuple[Moments | None, dict[bytes, Combination]]"

SLAB_BYTES = 2**24  # of float64 in what a thread is given at a time: some blocks of an Accumulator
MOST_HELD = 2**27  # numbers kept for combinations of gaps: 1 GB
SMALL = 5e9  # multiplications below which a second thread costs more than it brings
LANES_BYTES = 2**28


class Sizes(NamedTuple):
    """Columns: d features, q confounders, p covariates."""

    d: int
    q: int
    p: int

    @property
    def slab(self) -> int:
        """Rows in a slab; a function of the sizes alone, so that chunks leave no trace in the result."""
        return int(np.clip(SLAB_BYTES // (8 * sum(self)), 256, 32768))


class Combination:
    """Rows that lack the same cells: themselves while they are few, then their moments."""

    def __init__(self, flags: NDArray[np.bool_]) -> None:
        self.flags, self.n = flags, 0  # which of [x c y] they have
        self.width = int(np.count_nonzero(flags))
        self.rows: list[Array] = []
        self._sums: list[Accumulator] = []

    @property
    def held(self) -> int:
        """Numbers that are kept."""
        return (self.width**2) * len(self._sums) if self._sums else self.n * self.width

    def add(self, H: Array) -> None:
        """Take in rows of observed cells."""
        self.n += len(H)
        if self._sums:
            self._sums[0].add(H, H[:, :0])
        elif self.width:
            self.rows.append(H)
            if self.n > self.width + 1:
                self._sum_up()

    def _sum_up(self) -> None:
        """From now on sums, in the smallest blocks: there may be many combinations."""
        self._sums = [Accumulator(self.width, 0, block_bytes=1)]
        for rows in self.rows:
            self._sums[0].add(rows, rows[:, :0])
        self.rows = []

    def merge(self, other: Combination) -> None:
        """The rows of both."""
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
        """Of the observed cells; None where the rows themselves are kept."""
        return merge(sums.moments() for sums in self._sums)


class Lane:
    """What one thread has gathered."""

    def __init__(self, sizes: Sizes, cell: Cell, most: int) -> None:
        self.sizes, self._cell, self._most = sizes, cell, most
        self.whole = Accumulator(sizes.d + sizes.q, sizes.p)
        self.partial: dict[bytes, Combination] = {}

    def add(self, start: int, chunk: Chunk) -> None:
        """Take in rows, the first of which has the number ``start``."""
        room = self.sizes.slab
        for at in range(0, len(chunk.Y), room):
            here = slice(at, at + room)
            self._add(start + at, [dense(part[here]) for part in chunk.parts], chunk.Y[here], chunk.C[here])

    def parts(self) -> Parts:
        """Moments of the complete rows, and the combinations of the others."""
        return None if self.whole.empty else self.whole.moments(), self.partial

    def _add(self, start: int, parts: list[Any], Y: Array, C: Array) -> None:
        finite = [is_finite(part) for part in parts]
        for view, part in enumerate(parts):
            if not finite[view]:
                self._refuse_infinite(view, part, start)
        X = parts[0] if len(parts) == 1 and not C.shape[1] else np.hstack([*parts, C])
        if all(finite) and np.isfinite(Y.sum()):
            self.whole.add(X, Y)
        else:
            self._by_combination(np.hstack([X, Y]).astype(np.float64, copy=False))

    def _by_combination(self, H: Array) -> None:
        """Rows with gaps, each to those that lack the same cells."""
        k, flags = self.sizes.d + self.sizes.q, ~np.isnan(H)
        complete = flags.all(axis=1)
        if complete.any():
            self.whole.add(H[complete, :k], H[complete, k:])
        left = np.flatnonzero(~complete)
        if not len(left):
            return
        patterns = Patterns.of(flags[left])
        order = np.argsort(patterns.group, kind="stable")
        ends = np.cumsum(np.bincount(patterns.group, minlength=len(patterns.distinct)))
        for rows in np.split(left[order], ends[:-1]):
            seen = flags[rows[0]]
            self.partial.setdefault(seen.tobytes(), Combination(seen)).add(H[np.ix_(rows, np.flatnonzero(seen))])
        if sum(combination.held for combination in self.partial.values()) > self._most:
            raise errors.too_many_combinations(len(self.partial), 8 * MOST_HELD)

    def _refuse_infinite(self, view: int, part: Any, start: int) -> None:
        """An infinite number is named with its row and column; NaN is a gap."""
        at = first_not_finite(np.where(np.isnan(part), 0, part))
        if at is not None:
            row, column, value = at
            where, name, label = self._cell(view, column, start + row)
            raise errors.not_finite_at(where, value, start + row, column, name, label)


def is_finite(part: Any) -> bool:
    """A sum is finite only if its terms are (one that overflows is looked at again)."""
    if part.dtype.kind != "f":
        return True
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.isfinite(part.sum()))


class Gathered(NamedTuple):
    """Rows in all; moments of the complete ones ([x c] and y); combinations of the others."""

    n: int
    complete: Moments | None
    partial: list[Combination]


def gather(chunks: Iterable[Chunk], sizes: Sizes, n: int | None, cell: Cell) -> Gathered:
    """One pass. Slabs of rows go to the threads in turn, the BLAS threads shared out among them.

    ``cell`` is what messages call a number.
    """
    threads = lanes_for(sizes, n)
    lanes = [Lane(sizes, cell, MOST_HELD // threads) for _ in range(threads)]
    if threads == 1:
        for start, chunk in numbered(chunks):
            lanes[0].add(start, chunk)
        return gathered(merged([lane.parts() for lane in lanes]))
    with limited(max(1, blas_threads() // threads)), ThreadPoolExecutor(threads) as pool:
        work: list[Future[None] | None] = [None] * threads
        for turn, (start, slab) in enumerate(numbered(slabs(chunks, sizes.slab))):
            busy = work[turn % threads]
            if busy is not None:
                busy.result()  # raises what went wrong there
            work[turn % threads] = pool.submit(lanes[turn % threads].add, start, slab)
        for last in work:
            if last is not None:
                last.result()
    return gathered(merged([lane.parts() for lane in lanes]))


def lanes_for(sizes: Sizes, n: int | None) -> int:
    """Threads that pay: centring is bound by memory and runs on one thread, another multiplies meanwhile."""
    q = sum(sizes)
    if n is not None and n * q * q < SMALL:
        return 1
    return int(max(1, min(blas_threads(), LANES_BYTES // (8 * q * q + 2**23))))


def slabs(chunks: Iterable[Chunk], rows: int) -> Iterator[Chunk]:
    """The same rows in slabs of a fixed number, whatever the chunks."""
    held: list[Chunk] = []
    room = rows
    for chunk in chunks:
        at, n = 0, len(chunk.Y)
        while at < n:
            stop = min(n, at + room)
            held.append(Chunk(tuple(part[at:stop] for part in chunk.parts), chunk.Y[at:stop], chunk.C[at:stop]))
            room -= stop - at
            at = stop
            if room == 0:
                yield _joined(held)
                held, room = [], rows
    if held:
        yield _joined(held)


def _joined(held: list[Chunk]) -> Chunk:
    if len(held) == 1:
        return held[0]
    parts = tuple(stacked(part) for part in zip(*(chunk.parts for chunk in held), strict=True))
    return Chunk(parts, stacked([chunk.Y for chunk in held]), stacked([chunk.C for chunk in held]))


def merged(several: Sequence[Parts]) -> Parts:
    """The rows of all."""
    partial = several[0][1]
    for _, others in several[1:]:
        for key, combination in others.items():
            if key in partial:
                partial[key].merge(combination)
            else:
                partial[key] = combination
    return merge(complete for complete, _ in several), partial


def gathered(parts: Parts) -> Gathered:
    """All rows, which there need to be some of."""
    complete, partial = parts
    n = (0 if complete is None else complete.n or 0) + sum(combination.n for combination in partial.values())
    if n == 0:
        raise errors.no_rows()
    return Gathered(n, complete, list(partial.values()))
