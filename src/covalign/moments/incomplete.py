"""Moments of rows whose covariates have gaps: every observed pair (z, y_p) counts, from one pass, exactly mergeable.

Rows with the same covariates observed are summed together; where patterns are many, the rest of the rows is summed
covariate by covariate (``SplitSums``). From the sums, ``completed`` makes the moments the regimes work with. With o the
rows where y_p is observed (n_p of n, K latents),

    C   = (n_p S_z(o) + K S_z) / (n_p + K)       the rows of o, and all rows at the weight of K rows
    b   = C^+ s_zy(o)                            regression of y_p on Z
    S_zy = S_z b,   S_y = b'S_z b + cov_o(e),    e = y_p - b'z

and the mean of y_p is that of its prediction for all rows. Why this and not the covariances as they are:

- What is compared is on the same rows. If labels are missing at random given Z, a covariance on o describes the rows
  that were labelled; the regression does not depend on which were, and tends to the truth (C tends to S_z(o)). With
  C = S_z(o) it is the maximum-likelihood estimate under normality (Anderson 1957).
- The K borrowed rows keep C regular where n_p is not much larger than K; they fade as n_p grows.
- [[S_z, S_zy], [S_zy', S_y]] is a covariance matrix for any b, so no correlation exceeds 1 and every regime keeps its
  constraint exactly. For this cov(e) of several covariates, each entry from the rows that have both, needs to be
  positive semi-definite; where it is not, negative eigenvalues of its correlation matrix are set to zero and the
  variances restored. Two covariates never observed together count as independent given Z.
- Where every y_p is observed, S_z(o) = S_z and nothing changes.

Where the last columns of Z are confounders c, S_z, S_z(o) and s_zy(o) in C and b are those of what c
leaves of z and y, each on its own rows, so that adding a linear function of c to y_p does not change b.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covalign._core.checks import columns_differ, not_finite, too_few_observed
from covalign._core.flags import rows_by_pattern
from covalign._core.linalg import Array, is_constant, positive_semidefinite, whitener
from covalign.moments import moments
from covalign.moments.level_sums import LevelAccumulator
from covalign.moments.moments import Accumulator, FoldSums, Moments, as_rows, merge, merge_folds, merge_groups, no_rows
from covalign.moments.single import SingleAccumulator
from covalign.stream.levels import Levels
from covalign.stream.reduction import Size, of_batches

SUMS_BYTES = 2**26  # for the sums of all parts of a fold
BLOCK_BYTES = 2**20  # blocks of a part: there are many parts, and blocks wait in memory until they are full

Blocks: TypeAlias = tuple[tuple[int, ...], ...]


class Part(NamedTuple):
    """Rows summed together: the covariates they bring, and whether they stand for themselves as rows of Z.

    When patterns of gaps are many, further rows are split: Z alone is one part, Z with each covariate another, which
    must not count as rows again.
    """

    columns: tuple[int, ...]
    counts: bool


@dataclass(frozen=True, eq=False)
class IncompleteMoments:
    """Moments of rows with gaps, part by part; ``a + b`` are those of the rows of both.

    ``blocks`` are the columns that are missing together (the dummies of a category).
    """

    parts: Mapping[Part, Moments]
    blocks: Blocks
    covariate_names: tuple[str, ...]

    @classmethod
    def from_batches(cls, batches: Iterable[tuple[Any, Any]], blocks: Blocks | None = None) -> IncompleteMoments:
        """Sums of all rows of an iterable of (Z, Y), NaN where Y has gaps, however the rows are cut into batches."""
        rows: IncompleteAccumulator | None = None
        names: tuple[str, ...] = ()
        for Z, Y in batches:
            batch_names = moments.covariate_names(Y)
            Z, Y = as_rows(Z, Y)
            if rows is None:
                rows, names = IncompleteAccumulator(Z.shape[1], blocks or _single(Y.shape[1])), batch_names
            rows.add(Z, Y)
        if rows is None:
            raise no_rows()
        return rows.moments(names)

    @property
    def n(self) -> int:
        """Rows of Z."""
        return sum(m.n or 0 for part, m in self.parts.items() if part.counts)

    @property
    def n_pairs(self) -> NDArray[np.int64]:
        """Rows with each covariate."""
        counts = np.zeros(len(self.covariate_names), dtype=np.int64)
        for part, m in self.parts.items():
            counts[list(part.columns)] += m.n or 0
        return counts

    @cached_property
    def rows(self) -> Moments:
        """Moments of Z alone, over all rows."""
        return _sum_of([m.select(()) for part, m in self.parts.items() if part.counts])

    @property
    def cov_z(self) -> Array:
        """Covariance of Z over all rows."""
        return self.rows.cov_z

    @cached_property
    def pairs(self) -> list[tuple[list[int], Moments]]:
        """Covariates observed on the same rows, and the moments of Z and them on these rows."""
        together: dict[tuple[Part, ...], list[int]] = {}
        for column in range(len(self.covariate_names)):
            together.setdefault(tuple(part for part in self.parts if column in part.columns), []).append(column)
        together.pop((), None)
        groups = [
            {i: _places(part, columns) for i, part in enumerate(self.parts) if part in parts}
            for parts, columns in together.items()
        ]
        return list(zip(together.values(), merge_groups(list(self.parts.values()), groups), strict=True))

    def completed(self, n_confounders: int = 0) -> Moments:
        """Moments as if nothing were missing: S_zy = S_z b and S_y = b'S_z b + cov(e), as above.

        The last ``n_confounders`` columns of Z are confounders.
        """
        if len(self.parts) == 1 and len(next(iter(self.parts)).columns) == len(self.covariate_names):
            return next(iter(self.parts.values()))
        few = self.n_pairs < 2
        if few.any():
            raise too_few_observed(np.array(self.covariate_names)[few], self.n_pairs[few])
        z = self.rows
        k, p = len(z.mean_z), len(self.covariate_names)
        S_z, S_zy, B, shift, mean_y = z.cov_z, np.empty((k, p)), np.empty((k, p)), np.empty(p), np.empty(p)
        for columns, seen in self.pairs:
            b = slopes(seen, z, n_confounders)
            B[:, columns] = b
            S_zy[:, columns] = seen.cov_zy if seen.n == z.n else S_z @ b
            shift[columns] = seen.mean_y - seen.mean_z @ b
            mean_y[columns] = seen.mean_y + (z.mean_z - seen.mean_z) @ b
        cov_e = positive_semidefinite(self._residual_covariance(B, shift))
        return replace(z, mean_y=mean_y, cov_zy=S_zy, cov_y=B.T @ S_z @ B + cov_e, covariate_names=self.covariate_names)

    def _residual_covariance(self, B: Array, shift: Array) -> Array:
        """cov(e_p, e_q) over the rows that have both, e = y - shift - b'z; 0 where no row has."""
        count, first, second = np.zeros((3, len(shift), len(shift)))
        for part, m in self.parts.items():
            at, b, n = np.ix_(part.columns, part.columns), B[:, list(part.columns)], m.n or 0
            mean = m.mean_y - m.mean_z @ b - shift[list(part.columns)]
            cross = m.cov_zy.T @ b
            count[at] += n
            first[at] += n * mean[:, None]
            second[at] += n * (m.cov_y - cross - cross.T + b.T @ m.cov_z @ b + np.outer(mean, mean))
        count = np.maximum(count, 1)
        return np.asarray(second / count - (first / count) * (first.T / count))

    def transform(self, T: Array) -> IncompleteMoments:
        """Moments of (TZ, Y)."""
        return replace(self, parts={part: m.transform(T) for part, m in self.parts.items()})

    def shifted(self, by: Array) -> IncompleteMoments:
        """Moments of (Z + by, Y)."""
        return replace(self, parts={part: m.shifted(by) for part, m in self.parts.items()})

    def select(self, columns: Sequence[int]) -> IncompleteMoments:
        """The same rows with these covariates only; rows without any of them count as rows of Z."""
        place = {column: i for i, column in enumerate(columns)}
        parts: dict[Part, Moments] = {}
        for part, m in self.parts.items():
            kept = [column for column in part.columns if column in place]
            if kept or part.counts:
                few, piece = Part(tuple(place[c] for c in kept), part.counts), m.select(_places(part, kept))
                parts[few] = parts[few] + piece if few in parts else piece
        blocks = (tuple(place[c] for c in block if c in place) for block in self.blocks)
        names = tuple(self.covariate_names[column] for column in columns)
        return IncompleteMoments(parts, tuple(block for block in blocks if block), names)

    def residual(self, centre: Array, B_z: Array, b_y: Array) -> IncompleteMoments:
        """``Moments.residual`` of every part, with the covariates it brings."""
        parts = {part: m.residual(centre, B_z, b_y[:, list(part.columns)]) for part, m in self.parts.items()}
        return replace(self, parts=parts)

    def __add__(self, other: Moments | IncompleteMoments) -> IncompleteMoments:
        return self.sum_of([self, other])

    def __radd__(self, other: Moments | IncompleteMoments) -> IncompleteMoments:
        return self.sum_of([other, self])

    def sum_of(self, several: Iterable[Moments | IncompleteMoments]) -> IncompleteMoments:
        """The sum of these, which have the covariates of this one."""
        together: dict[Part, list[Moments]] = {}
        for one in several:
            for part, m in self._lifted(one).items():
                together.setdefault(part, []).append(m)
        parts = {part: _sum_of(of_part) for part, of_part in together.items()}
        return replace(self, parts=_not_too_many(parts, self.blocks))

    def _lifted(self, other: Moments | IncompleteMoments) -> Mapping[Part, Moments]:
        if isinstance(other, IncompleteMoments):
            return other.parts
        return {Part(tuple(range(len(self.covariate_names))), True): other}


Rows: TypeAlias = Moments | IncompleteMoments


def merged(parts: Iterable[Rows | None]) -> Rows | None:
    """``moments.merge`` for rows with and without gaps."""
    there = [part for part in parts if part is not None]
    for part in there:
        if isinstance(part, IncompleteMoments):
            return part.sum_of(there)
    return merge(part for part in there if isinstance(part, Moments))


def merged_with_terms(parts: Iterable[Rows | None]) -> Rows | None:
    """``merged`` of parts that stay in memory: the sum remembers them, if it has no gaps (``Moments.with_terms``)."""
    there = [part for part in parts if part is not None]
    whole = merged(there)
    complete = [part for part in there if isinstance(part, Moments)]
    return whole.with_terms(complete) if isinstance(whole, Moments) and len(complete) > 1 else whole


def _sum_of(parts: Sequence[Moments]) -> Moments:
    """The sum of at least one part."""
    whole = merge(parts)
    assert whole is not None
    return whole


def slopes(seen: Moments, z: Moments, n_confounders: int = 0) -> Array:
    """b = C^+ s_zy(o), C = (n_p S_z(o) + K S_z) / (n_p + K): regression on the rows seen, steadied by all rows z.

    With confounders these are partial covariances; then (b, b_c) is returned, b_c = S_c(o)^+ (s_cy(o) - S_cz(o) b).
    """
    if n_confounders:
        c, B_z, b_y = seen.regression(n_confounders)
        b = slopes(seen.residual(c, B_z, b_y), z.residual(*z.regression(n_confounders)))
        return np.vstack([b, b_y - B_z @ b])
    n_p, k = seen.n or 0, len(z.mean_z)
    C = (n_p * seen.cov_z + k * z.cov_z) / (n_p + k)
    W = whitener(C, is_constant(z.mean_z, np.diag(z.cov_z)))
    return np.asarray(W.T @ (W @ seen.cov_zy))


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
        room = sum(part.counts for part in self._sums) < _most_parts(self.k + self.p, self.blocks)
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
        return [part for part in _split(columns, self.blocks)[1:] if part.columns not in self.common]

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
        self.k, self.blocks, self._levels = k, blocks or _single(p if levels is None else levels.p), levels
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
    """``moments.fold_moments`` for a Y that may have gaps (NaN); equal to it if there is none.

    With ``levels``, Y is a short table, which becomes columns with these names (``stream.levels``).
    """
    accumulator = partial(AnyAccumulator, blocks=blocks, single=single, levels=levels)
    return moments.sums_of_folds(Z, Y, folds, accumulator, merged, n_confounders, grouped, names, levels)


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
    size = Size(columns, expected, moments.block_rows(columns, moments.block_bytes(expected)))
    accumulator = partial(AnyAccumulator, blocks=blocks, single=single, levels=levels)
    new = partial(FoldSums, folds, accumulator, names, n_confounders, grouped, expected, levels)
    found: list[Rows | None] = of_batches(batches, new, partial(merge_folds, merge=merged), size)
    return found


def _single(p: int) -> Blocks:
    return tuple((column,) for column in range(p))


def _most_parts(q: int, blocks: Blocks) -> int:
    """How many patterns get sums of their own: what fits SUMS_BYTES, and at least as many as splitting would need."""
    return max(len(blocks) + 1, min(64, SUMS_BYTES // (8 * q * q)))


def _split(columns: tuple[int, ...], blocks: Blocks) -> list[Part]:
    """Z alone, which counts, then Z with every block of covariates that is there."""
    there = [tuple(c for c in block if c in columns) for block in blocks]
    return [Part((), True), *(Part(block, False) for block in there if block)]


def _not_too_many(parts: dict[Part, Moments], blocks: Blocks) -> dict[Part, Moments]:
    """The same sums with the patterns that have the fewest rows split, if there are too many."""
    q = len(next(iter(parts.values())).mean_z) + sum(map(len, blocks))
    patterns = sorted((part for part in parts if part.counts and part.columns), key=lambda part: (parts[part].n, part))
    surplus = patterns[: max(0, len(patterns) + 1 - _most_parts(q, blocks))]
    if not surplus:
        return parts
    pieces: dict[Part, dict[int, Sequence[int]]] = {}
    for i, part in enumerate(surplus):
        for piece in _split(part.columns, blocks):
            pieces.setdefault(piece, {})[i] = _places(part, piece.columns)
    split = merge_groups([parts[part] for part in surplus], list(pieces.values()))
    kept = {part: m for part, m in parts.items() if part not in surplus}
    for piece, m in zip(pieces, split, strict=True):
        kept[piece] = kept[piece] + m if piece in kept else m
    return kept


def _places(part: Part, columns: Sequence[int]) -> list[int]:
    """Where these covariates are among those of the part."""
    return [part.columns.index(c) for c in columns]
