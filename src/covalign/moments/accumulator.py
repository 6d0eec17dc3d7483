"""Sums of rows that arrive in any portions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from covalign._core.data_errors import columns_differ, no_rows, not_finite
from covalign._core.linalg import Array, add_gram, mirror
from covalign._core.number_range import LARGEST, out_of_range
from covalign.moments.block_sizes import block_rows, is_wide
from covalign.moments.moments import Moments
from covalign.moments.numeric_rows import default_names


class Accumulator:
    """Running mean and scatter of the rows [z y], which may arrive in any portions.

    Rows are collected in blocks of a fixed size, so the result does not depend on the portions. A block is shifted by
    its first row (a constant column becomes exactly zero), then by its mean, and merged with earlier blocks by Chan's
    formula, which is one more row of the block:  scatter += B'B + (n c / (n + c)) d d'.
    """

    def __init__(self, k: int, p: int, block_bytes: int | None = None) -> None:
        self.k, self.p, self.n = k, p, 0
        self.width = p  # columns of Y as they arrive
        self.mean = np.zeros(k + p)
        self._scatter = np.zeros((k + p, k + p))  # its upper triangle counts
        self._block = np.empty((block_rows(k + p, block_bytes) + 1, k + p))
        self._first = np.empty(k + p)
        self._filled = 0
        self._kept: list[Array] | None = []  # rows of Z, less the first of all, as long as they are few

    def add(self, Z: Any, Y: Array, rows: NDArray[np.intp] | None = None) -> None:
        """Add Z[rows], Y[rows] (all rows by default)."""
        if Z.shape[1] != self.k:
            raise columns_differ("Z", self.k, Z.shape[1])
        if Y.shape[1] != self.width:
            raise columns_differ("Y", self.width, Y.shape[1])
        n, room = Y.shape[0] if rows is None else len(rows), len(self._block) - 1
        start = 0
        while start < n:
            stop = min(n, start + room - self._filled)
            take: Any = slice(start, stop) if rows is None else rows[start:stop]
            self._fill(Z[take].toarray() if sparse.issparse(Z) else Z[take], Y[take])
            start = stop
            if self._filled == room:
                self._absorb()

    def _fill(self, z: Any, y: Array) -> None:
        """Copy rows into the block, in float64, shifted by the block's first row."""
        if self._filled == 0:
            self._first[: self.k], self._first[self.k :] = z[0], y[0]
        into = self._block[self._filled : self._filled + len(y)]
        with np.errstate(invalid="ignore", over="ignore"):  # not finite is noticed, and named, in _absorb
            np.subtract(z, self._first[: self.k], out=into[:, : self.k])
            np.subtract(y, self._first[self.k :], out=into[:, self.k :])
        self._filled += len(y)

    def _absorb(self) -> None:
        c, n = self._filled, self.n
        if c == 0:
            return
        B = self._block[:c]
        self._keep(B)
        with np.errstate(invalid="ignore", over="ignore"):
            centre = B.mean(axis=0)
            B -= centre
        if not np.isfinite(centre).all():
            self._refuse(int(np.flatnonzero(~np.isfinite(centre))[0]))
        with np.errstate(over="ignore", invalid="ignore"):  # too large is refused in moments
            d = self._first + centre - self.mean
            self._block[c] = np.sqrt(n * c / (n + c)) * d
            self._add_products(c)
            self.mean += d * (c / (n + c))
        self.n, self._filled = n + c, 0

    def _add_products(self, c: int) -> None:
        """Add the products of c centred rows and the row after them."""
        add_gram(self._scatter, self._block[: c + 1])

    def forget_rows(self) -> None:
        """Keep no rows: they will not be few."""
        self._kept = None

    def _keep(self, B: Array) -> None:
        """Keep rows of Z, from which the root of few rows follows."""
        if self._kept is None:
            return
        if not is_wide(self.n + len(B), self.k):
            self._kept = None
            return
        if not self._kept:
            self._origin = self._first[: self.k].copy()
        with np.errstate(invalid="ignore", over="ignore"):
            self._kept.append(B[:, : self.k] + (self._first[: self.k] - self._origin))

    def _root(self) -> Array | None:
        """L (K x (n - 1)): the centred rows over sqrt(n), reflected so that one of them is 0 and left out."""
        if not self._kept or self.n < 2:
            return None
        X = self._kept[0] if len(self._kept) == 1 else np.vstack(self._kept)
        X = X - X.mean(axis=0)
        # I - 2 u u' / u'u takes sqrt(n) e_1 to the vector of ones, and back.
        u = np.ones(self.n)
        u[0] -= np.sqrt(self.n)
        X -= np.outer(2 / (u @ u) * u, u @ X)
        return np.asarray(X[1:].T / np.sqrt(self.n))

    def _refuse(self, column: int) -> None:
        error = not_finite("Z", str(column)) if column < self.k else not_finite("Y", str(column - self.k))
        error.column = column
        raise error

    def _check_size(self, variance: Array, names: Sequence[str] | None) -> None:
        """Refuse numbers whose squares overflow, or come near it."""
        if variance.max(initial=0.0) <= LARGEST**2 and np.abs(self.mean).max(initial=0.0) <= LARGEST:
            return
        column = int(np.argmax(~(variance <= LARGEST**2) | ~(np.abs(self.mean) <= LARGEST)))
        if column < self.k:
            raise out_of_range("Z", column, large=True, position=column)
        raise out_of_range("Y", column - self.k if names is None else names[column - self.k], large=True)

    @property
    def empty(self) -> bool:
        """Whether no row has been added."""
        return self.n + self._filled == 0

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """The moments of all rows so far."""
        self._absorb()
        if self.empty:
            raise no_rows()
        k, scatter = self.k, mirror(self._scatter)
        self._check_size(scatter.diagonal() / self.n, names)
        return Moments(
            n=self.n,
            mean_z=self.mean[:k].copy(),
            mean_y=self.mean[k:].copy(),
            # Not views, because sums over views run in another order than over what a file gives back.
            cov_z=np.ascontiguousarray(scatter[:k, :k] / self.n),
            cov_zy=np.ascontiguousarray(scatter[:k, k:] / self.n),
            cov_y=np.ascontiguousarray(scatter[k:, k:] / self.n),
            covariate_names=tuple(names) if names is not None else default_names(self.p),
        ).with_root(self._root())
