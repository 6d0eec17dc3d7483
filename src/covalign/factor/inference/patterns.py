"""Data with gaps, by pattern: samples that lack the same features, features that the same samples lack."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.flags import distinct_rows
from covalign._core.linalg import Array, rank_cutoff
from covalign._core.threads import limited

Index = NDArray[np.intp]
CHUNK = 2_000_000  # numbers in a temporary
SPANS = 32
SMALL = 1000  # columns of a matrix that one thread decomposes as fast as two


class Patterns(NamedTuple):
    """Distinct rows of a table of flags (as 0.0 and 1.0), and which of them each row has."""

    distinct: Array
    group: Index

    @classmethod
    def of(cls, flags: NDArray[np.bool_]) -> Patterns:
        """In order of first appearance."""
        distinct, group = distinct_rows(flags)
        return cls(distinct.astype(np.float64), group)


class Labels(NamedTuple):
    """E[y | y_o] of every row, and Cov(y | y_o) of every pattern of missing covariates, zero where observed."""

    group: Index
    mean: Array  # N x P
    cov: Array  # patterns x P x P

    @classmethod
    def of(cls, Y: Array, has_y: NDArray[np.bool_], S: Array) -> Labels:
        """mu = S_.o S_oo^+ y_o and C = S - S_.o S_oo^+ S_o., exactly y_o and zero where observed."""
        patterns = Patterns.of(has_y)
        gains = _gains(S, patterns.distinct)
        mean = grouped_product(Y, gains, patterns.group)
        mean[has_y] = Y[has_y]
        cov = S - gains.transpose(0, 2, 1) @ S
        unknown = 1 - patterns.distinct
        cov = (cov + cov.transpose(0, 2, 1)) / 2 * unknown[:, :, None] * unknown[:, None, :]
        return cls(patterns.group, mean, cov)


def _gains(S: Array, observed: Array) -> Array:
    """S_oo^+ S_o. in the rows of o, zero elsewhere, for every pattern (patterns x P x P)."""
    values, vectors = np.linalg.eigh(S * observed[:, :, None] * observed[:, None, :])  # zeros outside S_oo stay zeros
    kept = values > rank_cutoff(len(S), 1.0) * values.max(axis=1, keepdims=True)
    inverse = (vectors * np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.asarray(inverse @ (observed[:, :, None] * S))


@dataclass(frozen=True, eq=False)
class Gapped:
    """X (standardised, 0 in gaps), which cells are observed, and the covariates by pattern.

    A combination is a pattern of missing features with one of missing covariates. Rows are samples, or stand for all
    samples of a combination (``compressed``): ``one`` is what became of the 1 that every sample counts in a sum, and
    ``sizes`` are the samples of each combination.
    """

    X: Array
    observed: NDArray[np.bool_]
    Y: Array  # standardised, 0 in gaps
    has_y: NDArray[np.bool_]
    S_y: Array  # P x P, unit diagonal
    one: Array
    sizes: Array

    @classmethod
    def of(cls, X: Array, observed: NDArray[np.bool_], Y: Array, has_y: NDArray[np.bool_], S_y: Array) -> Gapped:
        """Every row a sample."""
        rows = cls(X, observed, Y, has_y, S_y, np.ones(len(X)), np.zeros(0))
        group, of_row, _ = rows.samples
        return replace(rows, sizes=np.bincount(group, minlength=len(of_row)).astype(np.float64))

    @classmethod
    def of_rows(cls, X: Array, Y: Array, S_y: Array, copy: bool = True) -> Gapped:
        """From standardised rows with NaN in gaps. Without ``copy`` the gaps of X itself become 0."""
        observed, has_y = ~np.isnan(X), ~np.isnan(Y)
        return cls.of(np.nan_to_num(X, copy=copy), observed, np.nan_to_num(Y), has_y, S_y)

    @property
    def n(self) -> int:
        """Samples."""
        return int(self.sizes.sum())

    def cells_of(self, rows: Any) -> NDArray[np.bool_]:
        """Whether these rows have each feature."""
        return np.asarray(self.observed[rows])

    @cached_property
    def rows(self) -> Patterns:
        """Rows that lack the same features."""
        return Patterns.of(self.observed)

    @cached_property
    def columns(self) -> Index:
        """Which column pattern each feature has: features that the same rows lack share one."""
        return Patterns.of(self.observed.T).group

    @cached_property
    def between(self) -> Array:
        """Whether row pattern g has column pattern h (G x H)."""
        first = np.unique(self.columns, return_index=True)[1]
        return np.ascontiguousarray(self.rows.distinct[:, first])

    @cached_property
    def labels(self) -> Labels:
        """The covariates of every row, by pattern."""
        return Labels.of(self.Y, self.has_y, self.S_y)

    @cached_property
    def samples(self) -> tuple[Index, Index, Index]:
        """Which combination each row has, and the two patterns of each combination."""
        rows, labels = self.rows.group, self.labels.group
        pairs = rows * len(self.labels.cov) + labels
        both, group = np.unique(pairs, return_inverse=True)
        return group.reshape(-1), both // len(self.labels.cov), both % len(self.labels.cov)

    @cached_property
    def has(self) -> Array:
        """Whether combination c has column pattern h (C x H)."""
        return np.asarray(self.between[self.samples[1]])

    @cached_property
    def of_label(self) -> Array:
        """Samples of each label pattern."""
        return np.asarray(np.bincount(self.samples[2], self.sizes, len(self.labels.cov)), dtype=np.float64)

    @property
    def label_counts(self) -> Array:
        """Samples that have each covariate."""
        first = np.unique(self.samples[0], return_index=True)[1]
        return np.asarray(self.sizes @ self.has_y[first])

    @cached_property
    def column_counts(self) -> Array:
        """Samples that have each column pattern."""
        return np.asarray(self.sizes @ self.has)

    @property
    def counts(self) -> Array:
        """What the observed cells of each feature count."""
        return np.asarray(self.column_counts[self.columns])

    @property
    def cells(self) -> Array:
        """Observed cells of each feature: all count 1 here."""
        return self.counts

    @cached_property
    def x(self) -> Array:
        """sum of each feature over its observed cells."""
        return np.asarray(self.one @ self.X)

    @cached_property
    def xx(self) -> Array:
        """x_d'x_d over observed cells."""
        return np.asarray(np.einsum("nd,nd->d", self.X, self.X))

    @property
    def yy(self) -> Array:
        """N S_y: what Y'Y is where nothing is missing."""
        return self.n * self.S_y

    def with_covariates(self) -> Gapped:
        """The same rows, the covariates also as the last features, with their gaps."""
        X, observed = np.hstack([self.X, self.Y]), np.hstack([self.observed, self.has_y])
        rows = Gapped(X, observed, self.Y, self.has_y, self.S_y, self.one, np.zeros(0))
        sizes = np.zeros(len(self.sizes))
        sizes[rows.samples[0]] = self.sizes[self.samples[0]]  # combinations are the same, their numbers may differ
        return replace(rows, sizes=sizes)


def compressed(data: Gapped) -> Gapped:
    """The same sums from fewer rows: H = [x_o, y_o, 1] of a combination becomes the root of H'H.

    Every mean is linear in a row of H, so all that a sweep sums over samples are quadratic forms of H'H. Combinations
    with no more rows than columns stay as they are.
    """
    group, (d, p) = data.samples[0], (data.X.shape[1], data.Y.shape[1])
    first = np.unique(group, return_index=True)[1]
    x, y = data.observed[first], data.has_y[first]
    large = np.flatnonzero(data.sizes > x.sum(axis=1) + y.sum(axis=1) + 1)
    if not len(large):
        return data
    stay = np.flatnonzero(~np.isin(group, large))
    parts, rows = [np.column_stack([data.X[stay], data.Y[stay], data.one[stay]])], [stay]
    for c in large:
        at = np.flatnonzero(group == c)
        here: Any = slice(at[0], at[-1] + 1) if at[-1] - at[0] + 1 == len(at) else at
        block = np.column_stack([some_columns(data.X[here], x[c]), some_columns(data.Y[here], y[c]), data.one[here]])
        root = np.zeros((block.shape[1], d + p + 1))
        root[:, np.concatenate([x[c], y[c], [True]])] = root_of(block.T @ block)
        parts.append(root)
        rows.append(np.full(len(root), first[c]))
    order = np.argsort(np.concatenate(rows), kind="stable")  # patterns keep their order of first appearance
    H, of = np.vstack(parts)[order], np.concatenate(rows)[order]
    return Gapped(H[:, :d], data.observed[of], H[:, d:-1], data.has_y[of], data.S_y, H[:, -1], data.sizes)


def some_columns(A: Array, wanted: NDArray[np.bool_]) -> Array:
    """Those columns, by spans where they lie together: picking cells one by one is slow."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]]).astype(int)))
    spans = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
    if len(spans) > SPANS:
        return A[:, wanted]
    return np.hstack([A[:, start:stop] for start, stop in spans]) if spans else A[:, :0]


def root_of(S: Array) -> Array:
    """R with R'R = S, for S positive semi-definite to rounding."""
    with limited() if len(S) < SMALL else nullcontext():  # a second thread would not help
        values, vectors = np.linalg.eigh(S)
    return np.asarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


def slices(n: int, width: int) -> list[slice]:
    """Parts of n rows that make temporaries of CHUNK numbers."""
    step = max(1, CHUNK // max(width, 1))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def few(groups: int, rows: int) -> bool:
    """Whether one product for each group is better than one for all rows at once."""
    return groups <= max(1, rows // 8)


def group_sums(rows: Array, group: Index, groups: int) -> Array:
    """The sum of the rows of each group; every group has rows."""
    if groups == 1:
        return np.asarray(rows.sum(axis=0)[None])
    if groups == len(rows):
        out = np.empty_like(rows)
        out[group] = rows
        return out
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(groups))
    return np.asarray(np.add.reduceat(rows[order], starts, axis=0))


def grouped_product(r: Array, matrices: Array, group: Index) -> Array:
    """r_n' matrices[group_n] for every n."""
    if len(matrices) == 1:
        return np.asarray(r @ matrices[0])
    out = np.empty((len(r), matrices.shape[2]))
    if few(len(matrices), len(r)):
        order = np.argsort(group, kind="stable")
        for rows in np.split(order, np.cumsum(np.bincount(group, minlength=len(matrices)))[:-1]):
            if len(rows):
                out[rows] = r[rows] @ matrices[group[rows[0]]]
        return out
    for part in slices(len(r), r.shape[1] ** 2):
        out[part] = np.matmul(r[part, None, :], matrices[group[part]])[:, 0]
    return out
