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
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covalign._core.data_errors import too_few_observed
from covalign._core.linalg import Array, is_constant, positive_semidefinite, whitener
from covalign.moments.moments import Moments
from covalign.moments.moments_sum import merge, merge_groups

SUMS_BYTES = 2**26  # for the sums of all parts of a fold

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
    """``moments_sum.merge`` for rows with and without gaps."""
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


def single_blocks(p: int) -> Blocks:
    return tuple((column,) for column in range(p))


def most_parts(q: int, blocks: Blocks) -> int:
    """How many patterns get sums of their own: what fits SUMS_BYTES, and at least as many as splitting would need."""
    return max(len(blocks) + 1, min(64, SUMS_BYTES // (8 * q * q)))


def split_part(columns: tuple[int, ...], blocks: Blocks) -> list[Part]:
    """Z alone, which counts, then Z with every block of covariates that is there."""
    there = [tuple(c for c in block if c in columns) for block in blocks]
    return [Part((), True), *(Part(block, False) for block in there if block)]


def _not_too_many(parts: dict[Part, Moments], blocks: Blocks) -> dict[Part, Moments]:
    """The same sums with the patterns that have the fewest rows split, if there are too many."""
    q = len(next(iter(parts.values())).mean_z) + sum(map(len, blocks))
    patterns = sorted((part for part in parts if part.counts and part.columns), key=lambda part: (parts[part].n, part))
    surplus = patterns[: max(0, len(patterns) + 1 - most_parts(q, blocks))]
    if not surplus:
        return parts
    pieces: dict[Part, dict[int, Sequence[int]]] = {}
    for i, part in enumerate(surplus):
        for piece in split_part(part.columns, blocks):
            pieces.setdefault(piece, {})[i] = _places(part, piece.columns)
    split = merge_groups([parts[part] for part in surplus], list(pieces.values()))
    kept = {part: m for part, m in parts.items() if part not in surplus}
    for piece, m in zip(pieces, split, strict=True):
        kept[piece] = kept[piece] + m if piece in kept else m
    return kept


def _places(part: Part, columns: Sequence[int]) -> list[int]:
    """Where these covariates are among those of the part."""
    return [part.columns.index(c) for c in columns]
