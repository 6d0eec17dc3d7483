"""Sums in single precision: half the memory traffic and twice the speed, for covariances that are a little wrong.

Sums of c products in float32 are wrong by at most c 2^-24 of the product of both deviations. A block has at most
``ROWS`` rows, and blocks are added in float64, so every entry of cov_z is wrong by at most ``BOUND`` of that product,
whatever the number of rows. Means, and all products with covariates, are sums in float64.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from scipy.linalg import lapack

from covalign._core.linalg import Array, add_gram, to_correlation
from covalign._core.messages import message
from covalign.moments.accumulator import Accumulator
from covalign.moments.block_sizes import block_rows

ROWS = 2048
BOUND = (ROWS + 4) * 2.0**-24  # rounding of the rows themselves counts as a few products more: 1.2e-4
LEAST = 1e-5  # smallest eigenvalue of the correlations of Z that rounding in float32 does not hide; measured error 1e-6
SMALL, LARGE = 1e-30, 1e30  # squares that float32 has all digits of
SLICE = 256  # rows converted to float64 at once, to stay in the cache
DOUBLE = "use precision='double'"
SCRATCH = threading.local()


class SingleAccumulator(Accumulator):
    """An ``Accumulator`` whose products of the columns of Z with each other are float32 within a block."""

    def __init__(self, k: int, p: int, block_bytes: int | None = None) -> None:
        super().__init__(k, p, 0)
        rows = min(ROWS, 3 * block_rows(k + p, block_bytes))
        self._block = np.empty((rows + 1, k), np.float32)
        self._y = np.ones((rows, p + 1))  # its last column stays 1

    def _fill(self, z: Any, y: Array) -> None:
        """Copy rows into the block, shifted by the block's first row."""
        if self._filled == 0:
            self._first[: self.k], self._first[self.k :] = z[0], y[0]
        at = slice(self._filled, self._filled + len(y))
        first = self._first[: self.k].astype(z.dtype) if z.dtype == np.float32 else self._first[: self.k]
        with np.errstate(invalid="ignore", over="ignore"):
            np.subtract(z, first, out=self._block[at], casting="same_kind")
            np.subtract(y, self._first[self.k :], out=self._y[at, :-1])
        self._filled += len(y)

    def _absorb(self) -> None:
        c, n, k = self._filled, self.n, self.k
        if c == 0:
            return
        B, y = self._block[:c], self._y[:c]
        with np.errstate(invalid="ignore", over="ignore"):
            mean_y = y[:, :-1].mean(axis=0)
            y[:, :-1] -= mean_y
            sums = self._products(B, y)
            centre = np.concatenate([sums[-1] / c, mean_y])
        if not np.isfinite(centre).all():
            self._refuse(int(np.flatnonzero(~np.isfinite(centre))[0]))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            B -= centre[:k].astype(np.float32)
            gram = np.matmul(B.T, B, out=_scratch("gram", k, np.float32, k))
        _refuse_beyond_single(np.diag(gram), B)
        d = self._first + centre - self.mean
        self._scatter[:k, :k] += gram
        self._scatter[:k, k:] += sums[:-1].T
        self._scatter[k:, k:] += y[:, :-1].T @ y[:, :-1]
        add_gram(self._scatter, np.sqrt(n * c / (n + c)) * d[None])
        self.mean += d * (c / (n + c))
        self.n, self._filled = n + c, 0

    def _products(self, B: Any, y: Array) -> Array:
        """[y 1]' B in float64; y is centred, so B need not be."""
        sums, buffer = np.zeros((y.shape[1], self.k)), _scratch("wide", SLICE, np.float64, self.k)
        for i in range(0, len(B), SLICE):
            part = B[i : i + SLICE]
            wide = buffer[: len(part)]
            np.copyto(wide, part)
            sums += y[i : i + SLICE].T @ wide
        return sums


def _scratch(name: str, rows: int, dtype: Any, k: int) -> Any:
    """Memory that all sums of a thread use in turn: fresh pages of the system cost as much as the sums of some rows."""
    buffer = getattr(SCRATCH, name, None)
    if buffer is None or buffer.shape != (rows, k):
        buffer = np.empty((rows, k), dtype)
        setattr(SCRATCH, name, buffer)
    return buffer


def _refuse_beyond_single(squares: Any, B: Any) -> None:
    wrong = ~((squares >= SMALL) & (squares <= LARGE))
    wrong[wrong] = B[:, wrong].any(axis=0)  # a constant is fine
    if wrong.any():
        problem = "precision='single' needs columns of Z whose deviations are between 1e-15 and 1e15"
        raise ValueError(message(problem, got=f"others in column {int(np.flatnonzero(wrong)[0])}", remedy=DOUBLE))


def check_condition(cov_z: Array) -> None:
    """Refuse a Z with a column that is nearly a combination of others: single precision cannot tell them apart.

    A Cholesky factor of R - ``LEAST`` I exists if no eigenvalue of the correlations R is smaller.
    """
    varies = np.diag(cov_z) > 0
    R = to_correlation(cov_z[np.ix_(varies, varies)])
    if len(R) and lapack.dpotrf(R - LEAST * np.eye(len(R)), overwrite_a=True)[1]:
        problem = "precision='single' needs more rows than columns, and no column of Z that others can predict"
        raise ValueError(message(problem, got="dependent columns", remedy=DOUBLE))
