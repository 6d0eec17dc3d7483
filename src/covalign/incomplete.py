"""Moments of rows whose covariates have gaps: every observed pair (z, y_p) counts, from one pass, exactly mergeable.

Rows with the same covariates observed are summed together, so gaps cost no more arithmetic than none. From the sums,
``completed`` makes the moments the regimes work with. With o the rows where y_p is observed (n_p of n, K latents),

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

Where the last columns of Z are confounders c that ride along, S_z, S_z(o) and s_zy(o) in C and b are those of what c
leaves of z and y, each on its own rows, so that adding a linear function of c to y_p does not change b.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covalign import _validation as errors
from covalign import moments
from covalign._linalg import Array, is_constant, positive_semidefinite, whitener
from covalign.moments import Accumulator, Moments, as_rows, merge_groups

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
            raise errors.no_rows()
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
        counting = [m for part, m in self.parts.items() if part.counts]
        return merge_groups(counting, [dict.fromkeys(range(len(counting)), ())])[0]

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

    def completed(self, riding: int = 0) -> Moments:
        """Moments as if nothing were missing: S_zy = S_z b and S_y = b'S_z b + cov(e), as above.

        ``riding`` is how many of the last columns of Z are confounders.
        """
        if len(self.parts) == 1 and len(next(iter(self.parts)).columns) == len(self.covariate_names):
            return next(iter(self.parts.values()))
        few = self.n_pairs < 2
        if few.any():
            raise errors.too_few_observed(np.array(self.covariate_names)[few], self.n_pairs[few])
        z = self.rows
        k, p = len(z.mean_z), len(self.covariate_names)
        S_z, S_zy, B, shift, mean_y = z.cov_z, np.empty((k, p)), np.empty((k, p)), np.empty(p), np.empty(p)
        for columns, seen in self.pairs:
            b = slopes(seen, z, riding)
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

    def residual(self, centre: Array, B_z: Array, b_y: Array) -> IncompleteMoments:
        """``Moments.residual`` of every part, with the covariates it brings."""
        parts = {part: m.residual(centre, B_z, b_y[:, list(part.columns)]) for part, m in self.parts.items()}
        return replace(self, parts=parts)

    def __add__(self, other: Moments | IncompleteMoments) -> IncompleteMoments:
        parts = dict(self.parts)
        for part, m in self._lifted(other).items():
            parts[part] = parts[part] + m if part in parts else m
        return replace(self, parts=_not_too_many(parts, self.blocks))

    def __radd__(self, other: Moments | IncompleteMoments) -> IncompleteMoments:
        return replace(self, parts=self._lifted(other)) + self

    def _lifted(self, other: Moments | IncompleteMoments) -> Mapping[Part, Moments]:
        if isinstance(other, IncompleteMoments):
            return other.parts
        return {Part(tuple(range(len(self.covariate_names))), True): other}


Rows: TypeAlias = Moments | IncompleteMoments


def merged(parts: Iterable[Rows | None]) -> Rows | None:
    """``moments.merge`` for rows with and without gaps."""
    there = [part for part in parts if part is not None]
    return reduce(add, there) if there else None


def slopes(seen: Moments, z: Moments, riding: int = 0) -> Array:
    """b = C^+ s_zy(o), C = (n_p S_z(o) + K S_z) / (n_p + K): regression on the rows seen, steadied by all rows z.

    With confounders these are partial covariances; then (b, b_c) is returned, b_c = S_c(o)^+ (s_cy(o) - S_cz(o) b).
    """
    if riding:
        c, B_z, b_y = seen.regression(riding)
        b = slopes(seen.residual(c, B_z, b_y), z.residual(*z.regression(riding)))
        return np.vstack([b, b_y - B_z @ b])
    n_p, k = seen.n or 0, len(z.mean_z)
    C = (n_p * seen.cov_z + k * z.cov_z) / (n_p + k)
    W = whitener(C, is_constant(z.mean_z, np.diag(z.cov_z)))
    return np.asarray(W.T @ (W @ seen.cov_zy))


class IncompleteAccumulator:
    """An ``Accumulator`` per pattern of gaps.

    Patterns take their place in the order in which rows arrive, so portions leave no trace here either.
    """

    def __init__(self, k: int, blocks: Blocks) -> None:
        self.k, self.p, self.blocks = k, sum(map(len, blocks)), blocks
        self._sums: dict[Part, Accumulator] = {}

    def add(self, Z: Any, Y: Array, rows: NDArray[np.intp] | None = None) -> None:
        """Take in Z[rows], Y[rows] (all of them by default)."""
        if Y.shape[1] != self.p:
            raise errors.columns_differ("Y", self.p, Y.shape[1])
        rows = np.arange(len(Y)) if rows is None else rows
        y = Y[rows]
        if np.isinf(y).any():
            raise errors.not_finite("Y", str(int(np.flatnonzero(np.isinf(y).any(axis=0))[0])))
        rows_of: dict[Part, list[NDArray[np.intp]]] = {}
        for pattern, at in _patterns(~np.isnan(y)):
            for part in self._parts_for(tuple(np.flatnonzero(pattern).tolist())):
                rows_of.setdefault(part, []).append(at)
        for part, several in rows_of.items():
            self._sums[part].add(Z, Y[:, list(part.columns)], rows[np.sort(np.concatenate(several))])

    def _parts_for(self, columns: tuple[int, ...]) -> list[Part]:
        """The part of a pattern, or those it is split into when there are too many to give it one."""
        whole = Part(columns, True)
        full = sum(part.counts for part in self._sums) >= _most_parts(self.k + self.p, self.blocks)
        parts = _split(columns, self.blocks) if full and whole not in self._sums else [whole]
        for part in parts:
            if part not in self._sums:
                self._sums[part] = Accumulator(self.k, len(part.columns), block_bytes=BLOCK_BYTES)
        return parts

    @property
    def empty(self) -> bool:
        """No row has come yet."""
        return not self._sums

    def moments(self, names: Sequence[str]) -> IncompleteMoments:
        """The sums of all rows so far."""
        if self.empty:
            raise errors.no_rows()
        parts = {part: s.moments([names[c] for c in part.columns]) for part, s in self._sums.items()}
        return IncompleteMoments(parts, self.blocks, tuple(names))


def fold_moments(Z: Any, Y: Any, folds: int, blocks: Blocks | None = None, riding: int = 0) -> Sequence[Rows | None]:
    """``moments.fold_moments`` for a Y that may have gaps (NaN); where it has none, exactly that."""
    Z, values = as_rows(Z, Y)
    if values.dtype.kind != "f" or not np.isnan(values).any():
        return moments.fold_moments(Z, Y, folds, riding)
    columns = blocks or _single(values.shape[1])
    return moments.sums_of_folds(Z, Y, folds, lambda: IncompleteAccumulator(Z.shape[1], columns), riding)


def _single(p: int) -> Blocks:
    return tuple((column,) for column in range(p))


def _patterns(observed: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
    """Distinct rows of a table of flags, in order of appearance, and where each of them occurs."""
    packed = np.ascontiguousarray(np.packbits(observed, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return [(observed[first[i]], np.flatnonzero(which == i)) for i in np.argsort(first)]


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
