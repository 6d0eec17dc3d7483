"""Sums of rows whose covariates have gaps, by pattern of gaps, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covalign._core.data_errors import columns_differ, no_rows, not_finite
from covalign._core.flags import rows_by_pattern
from covalign._core.linalg import Array
from covalign.moments.accumulator import Accumulator
from covalign.moments.block_sizes import block_bytes, block_rows
from covalign.moments.fold_accumulator import FoldSums, merge_folds, sums_of_folds
from covalign.moments.incomplete import (
    Blocks,
    IncompleteMoments,
    Part,
    Rows,
    merged,
    most_parts,
    single_blocks,
    split_part,
)
from covalign.moments.level_sums import LevelAccumulator
from covalign.moments.moments import Moments
from covalign.moments.numeric_rows import as_rows, covariate_names
from covalign.moments.single import SingleAccumulator
from covalign.stream.levels import Levels
from covalign.stream.reduction import Size, of_batches

BLOCK_BYTES = 2**20  # blocks of a part: there are many parts, and blocks wait in memory until they are full


class IncompleteAccumulator:
    """An ``Accumulator`` per pattern of gaps, until they are too many; then ``SplitSums`` of the rest.

    Patterns are numbered in the order in which rows arrive, so the result does not depend on portions.
    """

    def __init__(self, k: int, blocks: Blocks) -> None:
        self.k, self.p, self.blocks = k, sum(map(len, blocks)), blocks
        self._sums: dict[Part, Accumulator] = {}
        self._rest: SplitSums | None = None

    def add(self, Z: Any, Y: Array, rows: NDArray[np.intp] | None = None) -> None:
        """Add Z[rows], Y[rows] (all rows by default)."""
        if Y.shape[1] != self.p:
            raise columns_differ("Y", self.p, Y.shape[1])
        rows = np.arange(len(Y)) if rows is None else rows
        y = Y[rows]
        if np.isinf(y).any():
            raise not_finite("Y", str(int(np.flatnonzero(np.isinf(y).any(axis=0))[0])))
        rows_of: dict[Part, list[NDArray[np.intp]]] = {}
        rest: list[NDArray[np.intp]] = []
        for pattern, at in rows_by_pattern(~np.isnan(y)):
            whole = Part(tuple(np.flatnonzero(pattern).tolist()), True)
            if self._has_room_for(whole):
                rows_of[whole] = [at]
                continue
            rest.append(at)
            for part in self._split_sums().apart(whole.columns):
                rows_of.setdefault(part, []).append(at)
        for part, several in rows_of.items():
            sums = self._sums.setdefault(part, Accumulator(self.k, len(part.columns), block_bytes=BLOCK_BYTES))
            sums.add(Z, Y[:, list(part.columns)], rows[np.sort(np.concatenate(several))])
        if rest:
            self._split_sums().add(Z, Y, rows[np.sort(np.concatenate(rest))])

    def _has_room_for(self, whole: Part) -> bool:
        """The pattern has sums of its own, or now gets them; rows without any covariate always do."""
        room = sum(part.counts for part in self._sums) < most_parts(self.k + self.p, self.blocks)
        if whole not in self._sums and (room or not whole.columns):
            self._sums[whole] = Accumulator(self.k, len(whole.columns), block_bytes=BLOCK_BYTES)
        return whole in self._sums

    def _split_sums(self) -> SplitSums:
        if self._rest is None:
            known = [part.columns for part in self._sums if part.counts]
            common = tuple(b for b in self.blocks if 2 * sum({*b} <= {*columns} for columns in known) > len(known))
            self._rest = SplitSums(self.k, self.p, self.blocks, common)
        return self._rest

    @property
    def empty(self) -> bool:
        """Whether no row has been added."""
        return not self._sums

    def moments(self, names: Sequence[str]) -> IncompleteMoments:
        """The sums of all rows so far."""
        if self.empty:
            raise no_rows()
        parts = {part: s.moments([names[c] for c in part.columns]) for part, s in self._sums.items()}
        for part, m in self._rest.moments(names).items() if self._rest else ():
            parts[part] = parts[part] + m if part in parts else m
        return IncompleteMoments(parts, self.blocks, tuple(names))


class SplitSums:
    """Rows of many patterns: sums of Z, and of Z with each of the common blocks over the rows o that have it.

    Few rows l lack a common block, so S_z(o) comes from those: with n_o + n_l = n and d the distance of their means,

        n S_z = n_o S_z(o) + n_l S_z(l) + (n_o n_l / n) d d'.

    The rest is linear in a table of two kinds of columns, m (1 where a block is there) and u = m (y - an origin):
    z(o) = z + cov(z, m) / m,  u(o) = u / m,  cov_o(z, y) = cov(z, u) / m - (z(o) - z) u(o)  where z, m, u are means.
    Other blocks are better summed where they are: ``apart``.
    """

    def __init__(self, k: int, p: int, blocks: Blocks, common: Blocks) -> None:
        self.blocks, self.common = blocks, common
        self._origin = np.full(p, np.nan)  # a value that occurs, so that data far from zero lose no digits
        self._all = Accumulator(k, len(common) + p)
        self._lacking = {block: Accumulator(k, 0, block_bytes=BLOCK_BYTES) for block in common}

    def apart(self, columns: tuple[int, ...]) -> list[Part]:
        """The parts that rows with these covariates belong to as well."""
        return [part for part in split_part(columns, self.blocks)[1:] if part.columns not in self.common]

    def add(self, Z: Any, Y: Array, rows: NDArray[np.intp]) -> None:
        """Add Z[rows], Y[rows]."""
        there = ~np.isnan(Y[rows])
        first = np.where(there.any(axis=0), Y[rows][there.argmax(axis=0), np.arange(Y.shape[1])], np.nan)
        self._origin = np.where(np.isnan(self._origin), first, self._origin)
        has = np.array([there[:, list(block)].all(axis=1) for block in self.common]).reshape(-1, len(rows))
        table = np.zeros((len(Y), len(has) + Y.shape[1]))
        table[rows] = np.hstack([has.T, np.where(there, Y[rows] - self._origin, 0.0)])
        self._all.add(Z, table, rows)
        for sums, having in zip(self._lacking.values(), has, strict=True):
            sums.add(Z, table[:, :0], rows[~having])

    def moments(self, names: Sequence[str]) -> dict[Part, Moments]:
        """Z alone, which counts, then Z with every common block that is there."""
        m = self._all.moments()
        parts = {Part((), True): m.select(())}
        for i, block in enumerate(self.common):
            sums = self._lacking[block]
            lacking = None if sums.empty else sums.moments()
            if lacking is None or lacking.n != m.n:
                parts[Part(block, False)] = self._having(m, lacking, i, block, [names[c] for c in block])
        return parts

    def _having(
        self, m: Moments, lacking: Moments | None, i: int, block: tuple[int, ...], names: Sequence[str]
    ) -> Moments:
        """Moments of Z and a common block, the i-th, over the rows that have it."""
        n, n_l = m.n or 0, (lacking.n or 0) if lacking else 0
        n_o, at = n - n_l, [len(self.common) + c for c in block]
        share = n_o / n
        off, u = m.cov_zy[:, i] / share, m.mean_y[at] / share
        S_u = (m.cov_y[np.ix_(at, at)] + np.outer(m.mean_y[at], m.mean_y[at])) / share
        cov_z = m.cov_z
        if lacking is not None:
            d = lacking.mean_z - m.mean_z - off
            cov_z = (n * m.cov_z - n_l * lacking.cov_z) / n_o - (n_l / n) * np.outer(d, d)
        return Moments(
            n=n_o,
            mean_z=m.mean_z + off,
            mean_y=self._origin[list(block)] + u,
            cov_z=cov_z,
            cov_zy=m.cov_zy[:, at] / share - np.outer(off, u),
            cov_y=S_u - np.outer(u, u),
            covariate_names=tuple(names),
        )


class AnyAccumulator:
    """An ``Accumulator`` of the complete rows and an ``IncompleteAccumulator`` of the others, once there are any."""

    def __init__(
        self,
        k: int,
        p: int,
        blocks: Blocks | None = None,
        block_bytes: int | None = None,
        single: bool = False,
        levels: Levels | None = None,
    ) -> None:
        self.k, self.blocks, self._levels = k, blocks or single_blocks(p if levels is None else levels.p), levels
        if levels is not None:
            self._complete: Accumulator = LevelAccumulator(k, levels, block_bytes)
        else:
            self._complete = (SingleAccumulator if single else Accumulator)(k, p, block_bytes)
        self._gaps: IncompleteAccumulator | None = None

    def add(self, Z: Any, Y: Array) -> None:
        """Add rows of Z and Y."""
        gaps = np.isnan(Y).any(axis=1) if Y.dtype.kind == "f" else np.zeros(len(Y), dtype=bool)
        if not gaps.any():
            self._complete.add(Z, Y)
            return
        if self._gaps is None:
            self._gaps = IncompleteAccumulator(self.k, self.blocks)
        self._complete.add(Z, Y, np.flatnonzero(~gaps))
        if self._levels is None:
            self._gaps.add(Z, Y, np.flatnonzero(gaps))
        else:
            self._gaps.add(Z[gaps], self._levels.expanded(Y[gaps]))

    def forget_rows(self) -> None:
        """``Accumulator.forget_rows``."""
        self._complete.forget_rows()

    def moments(self, names: Sequence[str]) -> Rows | None:
        """Moments of all rows so far; None if there is no row."""
        both = (self._complete, self._gaps)
        return merged(sums.moments(names) for sums in both if sums is not None and not sums.empty)


def incomplete_moments(batches: Iterable[tuple[Any, Any]], blocks: Blocks | None = None) -> IncompleteMoments:
    """Sums of all rows of an iterable of (Z, Y), NaN where Y has gaps, however the rows are cut into batches."""
    rows: IncompleteAccumulator | None = None
    names: tuple[str, ...] = ()
    for Z, Y in batches:
        batch_names = covariate_names(Y)
        Z, Y = as_rows(Z, Y)
        if rows is None:
            rows, names = IncompleteAccumulator(Z.shape[1], blocks or single_blocks(Y.shape[1])), batch_names
        rows.add(Z, Y)
    if rows is None:
        raise no_rows()
    return rows.moments(names)


def fold_moments(
    Z: Any,
    Y: Any,
    folds: int,
    blocks: Blocks | None = None,
    n_confounders: int = 0,
    *,
    grouped: bool = False,
    single: bool = False,
    names: Sequence[str] | None = None,
    levels: Levels | None = None,
) -> list[Rows | None]:
    """``fold_accumulator.fold_moments`` for a Y that may have gaps (NaN); equal to it if there is none.

    With ``levels``, Y is a short table, which becomes columns with these names (``stream.levels``).
    """
    accumulator = partial(AnyAccumulator, blocks=blocks, single=single, levels=levels)
    return sums_of_folds(Z, Y, folds, accumulator, merged, n_confounders, grouped, names, levels)


def batch_moments(
    batches: Iterable[tuple[Any, Any]],
    names: Sequence[str],
    k: int,
    folds: int,
    blocks: Blocks,
    n_confounders: int = 0,
    *,
    grouped: bool = False,
    single: bool = False,
    levels: Levels | None = None,
) -> list[Rows | None]:
    """``fold_moments`` of batches (Z, Y) of numbers that come once; Z has k columns, Y has these names."""
    columns = k + len(names)
    expected = min(folds, 64) if grouped else folds
    size = Size(columns, expected, block_rows(columns, block_bytes(expected)))
    accumulator = partial(AnyAccumulator, blocks=blocks, single=single, levels=levels)
    new = partial(FoldSums, folds, accumulator, names, n_confounders, grouped, expected, levels)
    found: list[Rows | None] = of_batches(batches, new, partial(merge_folds, merge=merged), size)
    return found
