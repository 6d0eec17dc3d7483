"""Standardised rows of a sparse table, which is never made dense: X = (S - 1 m' - L R) diag(w).

S is what was measured, m are means, and L R (few columns and rows) is what else is subtracted: what confounders
explain, and -m again in rows without a view, where S has no entry, so that X is 0 there. Products with X and X' are
those with S, less products with L and R.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from covalign._core.linalg import Array

AT_ONCE = 200_000  # stored numbers in a temporary
EXTRA, PASSES = 10, 4  # directions beyond those asked for, and products with XX'


@dataclass(frozen=True, eq=False)
class SparseX:
    """X as a matrix: products, and the squares of its columns. Features that do not vary have w = 0."""

    parts: tuple[Any, ...]  # S, csr matrices side by side: to join them would copy the data
    mean: Array  # m
    weight: Array  # w
    left: Array  # L (n x r)
    right: Array  # R (r x D)

    @classmethod
    def of(
        cls, parts: Sequence[Any], mean: Array, weight: Array, left: Array | None = None, right: Array | None = None
    ) -> SparseX:
        """From csr matrices side by side."""
        left = np.empty((parts[0].shape[0], 0)) if left is None else left
        right = np.empty((0, len(mean))) if right is None else right
        return cls(tuple(parts), mean, weight, left, right)

    __array_ufunc__ = None  # numpy leaves products with X to this class

    def __len__(self) -> int:
        return int(self.parts[0].shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """n x D."""
        return len(self), len(self.mean)

    @property
    def bounds(self) -> list[slice]:
        """The features of every part."""
        ends = np.cumsum([0, *(part.shape[1] for part in self.parts)]).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]

    @property
    def S(self) -> Any:
        """As one scipy matrix."""
        return self.parts[0] if len(self.parts) == 1 else sparse.hstack(self.parts, format="csr")

    def __matmul__(self, of_x: Array) -> Array:
        """X of_x."""
        of_s = self.weight[:, None] * of_x
        found = -(self.mean @ of_s) - self.left @ (self.right @ of_s)
        for part, where in zip(self.parts, self.bounds, strict=True):
            found = found + part @ of_s[where]
        return np.asarray(found)

    def back(self, Z: Array) -> Array:
        """X'Z."""
        found = np.vstack([part.T @ Z for part in self.parts])
        found -= np.outer(self.mean, Z.sum(axis=0))
        if len(self.right):
            found -= self.right.T @ (self.left.T @ Z)
        found *= self.weight[:, None]
        return found

    @property
    def T(self) -> Transposed:
        """X'."""
        return Transposed(self)

    @cached_property
    def xx(self) -> Array:
        """x_d'x_d."""
        E, R = np.column_stack([np.ones(len(self)), self.left]), np.vstack([self.mean, self.right])
        squares = [squares_left(part, E, R[:, at]) for part, at in zip(self.parts, self.bounds, strict=True)]
        return np.concatenate(squares) * self.weight**2

    @cached_property
    def farthest(self) -> Array:
        """The largest |x_nd| of every feature."""
        if not self.left.shape[1]:
            high, low = (np.asarray(part.todense()).ravel() for part in (self.S.max(axis=0), self.S.min(axis=0)))
            return np.asarray(np.maximum(high - self.mean, self.mean - low) * self.weight)
        found, step = np.zeros(len(self.mean)), max(1, AT_ONCE // len(self.mean))
        for at in range(0, len(self), step):
            here = slice(at, at + step)
            X = self.S[here].toarray() - self.mean - self.left[here] @ self.right
            np.maximum(found, np.abs(X).max(axis=0), out=found)
        return found * self.weight

    @cached_property
    def rows(self) -> Array:
        """XX' (n x n)."""
        scaled = self.S @ sparse.diags(self.weight)
        L, R = np.column_stack([np.ones(len(self)), self.left]), np.vstack([self.mean, self.right]) * self.weight
        across = scaled @ R.T @ L.T
        return np.asarray((scaled @ scaled.T).toarray() - across - across.T + L @ (R @ R.T) @ L.T)

    def leading(self, k: int) -> tuple[Array, Array]:
        """About the k largest eigenvalues of XX', falling, and their vectors, by subspace iterations (for a start)."""
        Q = np.linalg.qr(np.random.default_rng(0).normal(size=(len(self), min(k + EXTRA, *self.shape))))[0]
        for _ in range(PASSES):
            Q = np.linalg.qr(self @ self.back(Q))[0]
        B = self.back(Q)
        values, turn = np.linalg.eigh(B.T @ B)
        return values[::-1][:k], Q @ turn[:, ::-1][:, :k]

    def beside(self, Y: Array) -> SparseX:
        """[X Y]."""
        p = Y.shape[1]
        mean, weight = np.concatenate([self.mean, np.zeros(p)]), np.concatenate([self.weight, np.ones(p)])
        right = np.hstack([self.right, np.zeros((len(self.right), p))])
        return SparseX((*self.parts, sparse.csr_matrix(Y)), mean, weight, self.left, right)


@dataclass(frozen=True, eq=False)
class Transposed:
    """X'."""

    of: SparseX

    __array_ufunc__ = None

    def __matmul__(self, Z: Array) -> Array:
        """X'Z."""
        return self.of.back(Z)


def squares_left(S: Any, E: Array, R: Array, n: int | None = None) -> Array:
    """sum_n (s_nd - e_n'r_d)^2 for every d, e_n a row of E and r_d a column of R; n rows count, others are empty.

    What is stored counts as it is; all zeros of a feature that are not stored count r_d'(E'E - sum e_n e_n')r_d, the
    sum over the rows where it is stored.
    """
    d, m = S.shape[1], E.shape[1]
    i, j = np.triu_indices(m)
    pairs = E[:, i] * E[:, j]
    found, stored, count = np.zeros(d), np.zeros((d, len(i))), np.zeros(d)
    for rows in _parts(S):
        some = S[rows]
        at = np.repeat(np.arange(some.shape[0]), np.diff(some.indptr))
        away = some.data - np.einsum("er,re->e", E[rows][at], R[:, some.indices])
        found += np.bincount(some.indices, weights=away**2, minlength=d)
        count += np.bincount(some.indices, minlength=d)
        where = sparse.csr_matrix((np.ones(len(some.data)), some.indices, some.indptr), shape=some.shape)
        stored += where.T @ pairs[rows]
    weights = (pairs.sum(axis=0) - stored) * np.where(i == j, 1.0, 2.0)
    zeros = np.sum(weights * (R[i] * R[j]).T, axis=1)
    return np.asarray(found + np.where(count < (len(E) if n is None else n), np.maximum(zeros, 0.0), 0.0))


def _parts(S: Any) -> Iterator[slice]:
    """Slices of rows with about AT_ONCE stored numbers each."""
    at, n = 0, S.shape[0]
    while at < n:
        stop = int(np.searchsorted(S.indptr, S.indptr[at] + AT_ONCE, side="right")) - 1
        stop = min(max(stop, at + 1), n)
        yield slice(at, stop)
        at = stop
