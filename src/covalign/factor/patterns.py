"""Data with gaps, by pattern: samples that lack the same features, features that the same samples lack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._linalg import Array, range_eigh

Index = NDArray[np.intp]
CHUNK = 2_000_000  # numbers in a temporary


class Patterns(NamedTuple):
    """Distinct rows of a table of flags (as 0.0 and 1.0), and which of them each row has."""

    distinct: Array
    group: Index

    @classmethod
    def of(cls, flags: NDArray[np.bool_]) -> Patterns:
        """Found by their bytes, in order of first appearance."""
        if len(flags) and (flags == flags[0]).all():
            return cls(flags[:1].astype(np.float64), np.zeros(len(flags), dtype=np.intp))
        packed = np.packbits(flags, axis=1)
        _, first, group = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        return cls(flags[np.sort(first)].astype(np.float64), rank[group.reshape(-1)])


class Labels(NamedTuple):
    """Samples that have the same covariates: E[y | y_o] for each, and Cov(y | y_o), zero where observed."""

    rows: Index
    mean: Array  # n x P
    cov: Array  # P x P


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

    @property
    def n(self) -> int:
        """Samples."""
        return int(self.sizes.sum())

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
    def labels(self) -> list[Labels]:
        """One for every pattern of missing covariates."""
        patterns = Patterns.of(self.has_y)
        return [
            given(np.flatnonzero(patterns.group == g), self.Y, flags > 0, self.S_y)
            for g, flags in enumerate(patterns.distinct)
        ]

    @cached_property
    def samples(self) -> tuple[Index, Index, Index]:
        """Which combination each row has, and the two patterns of each combination."""
        label = np.empty(len(self.X), dtype=np.intp)
        for i, one in enumerate(self.labels):
            label[one.rows] = i
        both, group = np.unique(np.column_stack([self.rows.group, label]), axis=0, return_inverse=True)
        return group.reshape(-1), both[:, 0], both[:, 1]

    @cached_property
    def has(self) -> Array:
        """Whether combination c has column pattern h (C x H)."""
        return np.asarray(self.between[self.samples[1]])

    @cached_property
    def of_label(self) -> Array:
        """Samples of each label pattern."""
        return np.asarray(np.bincount(self.samples[2], self.sizes, len(self.labels)), dtype=np.float64)

    @cached_property
    def column_counts(self) -> Array:
        """Samples that have each column pattern."""
        return np.asarray(self.sizes @ self.has)

    @property
    def counts(self) -> Array:
        """Observed cells of each feature."""
        return np.asarray(self.column_counts[self.columns])

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


def compressed(data: Gapped) -> Gapped:
    """The same sums from fewer rows: H = [x_o, y_o, 1] of a combination becomes the root of H'H.

    Every mean is linear in a row of H, so all that a sweep sums over samples are quadratic forms of H'H. Combinations
    with no more rows than columns stay as they are.
    """
    group, of_row, of_label = data.samples
    parts: list[tuple[Array, Index]] = []
    for c, (g, label) in enumerate(zip(of_row, of_label, strict=True)):
        rows = np.flatnonzero(group == c)
        x, y = data.rows.distinct[g] > 0, data.has_y[data.labels[label].rows[0]]
        H = np.column_stack([data.X[rows], data.Y[rows], data.one[rows]])
        kept = np.concatenate([x, y, [True]])
        if len(rows) > kept.sum():
            root = np.zeros((int(kept.sum()), H.shape[1]))
            values, vectors = np.linalg.eigh(H[:, kept].T @ H[:, kept])
            root[:, kept] = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
            H, rows = root, np.full(len(root), rows[0])
        parts.append((H, rows))
    H, rows = np.vstack([H for H, _ in parts]), np.concatenate([rows for _, rows in parts])
    order = np.argsort(rows, kind="stable")  # patterns keep their order of first appearance
    H, rows, d = H[order], rows[order], data.X.shape[1]
    return Gapped(H[:, :d], data.observed[rows], H[:, d:-1], data.has_y[rows], data.S_y, H[:, -1], data.sizes)


def given(rows: Index, Y: Array, observed: NDArray[np.bool_], S: Array) -> Labels:
    """mu = S_.o S_oo^+ y_o and C = S - S_.o S_oo^+ S_o., exactly y_o and zero where observed."""
    p = len(S)
    mean, cov = np.zeros((len(rows), p)), S.copy()
    if observed.any():
        values, vectors = range_eigh(S[np.ix_(observed, observed)])
        gain = S[:, observed] @ (vectors / values) @ vectors.T
        mean = Y[np.ix_(rows, observed)] @ gain.T
        cov = S - gain @ S[observed]
        mean[:, observed] = Y[np.ix_(rows, observed)]
        cov[observed], cov[:, observed] = 0.0, 0.0
    return Labels(rows, mean, (cov + cov.T) / 2)


def slices(n: int, width: int) -> list[slice]:
    """Parts of n rows that make temporaries of CHUNK numbers."""
    step = max(1, CHUNK // max(width, 1))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]
