"""The sums of the data that a sweep needs: three engines with one interface and the same results.

E[Z] is linear in (X, Y), so with H = [X Y] every sum follows from H'H: the gram engine builds it once and a sweep costs
O((D + P)^2 K) whatever N is. The dense engine multiplies with X itself, O(N D K), for D > N; the sparse one does so
with what was measured, and takes means and scales into account on the way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg

from covalign._core.linalg import Array, rank_cutoff
from covalign.factor.inference.sparse_rows import SparseX

MANY_ROWS = 2000  # of a sparse table, from which XX' is not made


class Engine(Protocol):
    """What a sweep asks of the data; X and Y are centred."""

    @property
    def xx(self) -> Array:
        """x_d'x_d for every feature."""

    @property
    def xy(self) -> Array:
        """X'Y (D x P)."""

    @property
    def yy(self) -> Array:
        """Y'Y (P x P)."""

    def sums(self, of_x: Array, of_y: Array) -> tuple[Array, Array, Array]:
        """E[Z]'E[Z], X'E[Z] and E[Z]'Y for E[Z] = X of_x + Y of_y."""

    def spectrum(self) -> Array:
        """Eigenvalues of X'X / n, zeros left out."""

    def principal_map(self, k: int) -> Array:
        """(D x r), r <= k: X times this are the leading principal components, of unit variance, largest first."""

    def with_covariates(self) -> Engine:
        """The same rows, the covariates also as the last features."""


class Gram(NamedTuple):
    """H'H for H = [X Y], N x N never needed."""

    n: int
    gram: Array  # X'X
    xy: Array
    yy: Array

    @property
    def xx(self) -> Array:
        """x_d'x_d."""
        return np.diag(self.gram)

    def sums(self, of_x: Array, of_y: Array) -> tuple[Array, Array, Array]:
        """Through H'H alone."""
        xz = self.gram @ of_x + self.xy @ of_y
        zy = of_x.T @ self.xy + of_y.T @ self.yy
        zz = of_x.T @ xz + zy @ of_y
        return (zz + zz.T) / 2, xz, zy

    def spectrum(self) -> Array:
        """Those of the Gram matrix."""
        return np.asarray(np.maximum(np.linalg.eigvalsh(self.gram), 0.0) / self.n)

    def principal_map(self, k: int) -> Array:
        """Leading eigenvectors of X'X, scaled."""
        values, vectors = leading_eigh(self.gram, k)
        return largest_positive(vectors / np.sqrt(values) * np.sqrt(self.n))

    def with_covariates(self) -> Gram:
        """[X Y]'[X Y]."""
        both = np.block([[self.gram, self.xy], [self.xy.T, self.yy]])
        return Gram(self.n, both, np.vstack([self.xy, self.yy]), self.yy)


class RowEngine(ABC):
    """What follows from products with X and X'; what a sweep asks for again and again is computed once."""

    Y: Array

    @abstractmethod
    def times(self, of_x: Array) -> Array:
        """X of_x."""

    @abstractmethod
    def back(self, Z: Array) -> Array:
        """X'Z."""

    @property
    @abstractmethod
    def rows(self) -> Array:
        """XX' (N x N)."""

    @cached_property
    def xy(self) -> Array:
        """X'Y."""
        return self.back(self.Y)

    @cached_property
    def yy(self) -> Array:
        """Y'Y."""
        return self.Y.T @ self.Y

    def sums(self, of_x: Array, of_y: Array) -> tuple[Array, Array, Array]:
        """Through E[Z] itself."""
        Z = self.times(of_x) + self.Y @ of_y
        return Z.T @ Z, self.back(Z), Z.T @ self.Y

    def spectrum(self) -> Array:
        """Those of XX'."""
        return np.asarray(np.maximum(np.linalg.eigvalsh(self.rows), 0.0) / len(self.Y))

    def principal_map(self, k: int) -> Array:
        """Leading eigenvectors u of XX', as X'u / s."""
        values, vectors = leading_eigh(self.rows, k)
        return largest_positive(self.back(vectors / values) * np.sqrt(len(self.Y)))


@dataclass(frozen=True, eq=False)
class Dense(RowEngine):
    """X and Y themselves."""

    X: Array
    Y: Array

    @cached_property
    def xx(self) -> Array:
        """x_d'x_d."""
        return np.asarray(np.einsum("nd,nd->d", self.X, self.X))

    @property
    def rows(self) -> Array:
        """XX'."""
        return self.X @ self.X.T

    def times(self, of_x: Array) -> Array:
        """X of_x."""
        return self.X @ of_x

    def back(self, Z: Array) -> Array:
        """X'Z."""
        return self.X.T @ Z

    def with_covariates(self) -> Dense:
        """[X Y]."""
        return Dense(np.hstack([self.X, self.Y]), self.Y)


@dataclass(frozen=True, eq=False)
class Sparse(RowEngine):
    """X of a sparse table, never made dense, and Y."""

    X: SparseX
    Y: Array

    @property
    def xx(self) -> Array:
        """x_d'x_d."""
        return self.X.xx

    @property
    def rows(self) -> Array:
        """XX'."""
        return self.X.rows

    def times(self, of_x: Array) -> Array:
        """X of_x."""
        return self.X @ of_x

    def back(self, Z: Array) -> Array:
        """X'Z."""
        return self.X.back(Z)

    def principal_map(self, k: int) -> Array:
        """Leading eigenvectors of XX'; of many rows without this matrix."""
        if len(self.X) <= MANY_ROWS or k >= min(self.X.shape) - 1:
            return super().principal_map(k)
        values, vectors = self.X.leading(k)
        kept = values > rank_cutoff(len(vectors), float(np.max(np.abs(values))))
        return largest_positive(self.back(vectors[:, kept] / values[kept]) * np.sqrt(len(self.Y)))

    def with_covariates(self) -> Sparse:
        """[X Y]."""
        return Sparse(self.X.beside(self.Y), self.Y)


def leading_eigh(S: Array, k: int) -> tuple[Array, Array]:
    """The up to k largest eigenvalues above the rank cut-off, falling, and their vectors."""
    size = len(S)
    k = min(k, size)
    if k == 0:
        return np.zeros(0), np.zeros((size, 0))
    values, vectors = scipy.linalg.eigh(S, subset_by_index=(size - k, size - 1))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > rank_cutoff(size, float(np.max(np.abs(values))))
    return values[kept], vectors[:, kept]


def largest_positive(columns: Array) -> Array:
    """Columns with their entry of largest size positive: signs that do not depend on the route to them."""
    if columns.size == 0:
        return columns
    return np.asarray(columns * np.sign(columns[np.abs(columns).argmax(axis=0), np.arange(columns.shape[1])]))
