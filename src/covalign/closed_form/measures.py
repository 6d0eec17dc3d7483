"""Correlations and shares of variance from sums of squares and products, over any rows.

A caller decides which variables are constant (their sum of squares is 0) and which value a constant gets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covalign._core.linalg import Array, is_constant


def quotient(part: Any, whole: Any, otherwise: float = 0.0) -> Array:
    """part / whole where whole > 0, and ``otherwise`` elsewhere."""
    part, whole = np.broadcast_arrays(part, whole)
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, otherwise), where=whole > 0))


def varying(mean: Array, variance: Array) -> Array:
    """The variance, and 0 for a constant."""
    return np.where(is_constant(mean, variance), 0.0, variance)


def inverse_sd(mean: Array, variance: Array) -> Array:
    """1 / sd, and 0 for a constant."""
    return quotient(1.0, np.sqrt(varying(mean, variance)))


def correlation(zy: Any, zz: Any, yy: Any, constant: float = 0.0) -> Array:
    """z'y / sqrt(z'z y'y), and ``constant`` where z or y is constant."""
    return quotient(zy, np.sqrt(np.maximum(zz, 0)) * np.sqrt(np.maximum(yy, 0)), constant)


def explained_share(explained: Any, total: Any, constant: float = 0.0) -> Array:
    """R^2 or eta squared: the explained part of a sum of squares, from 0 to 1 (rounding can exceed 1)."""
    return np.clip(quotient(explained, total, constant), 0, 1)


def mean_share(r2: Array, xx: Array) -> Array:
    """The mean of R^2 over the features (first axis) that vary; 0 if none does."""
    return np.asarray(np.minimum(r2, 1).sum(axis=0) / max(np.count_nonzero(xx), 1))


def marginal_shares(xx: Array, xz: Array, zz: Array) -> Array:
    """mean_d corr(x_d, z_k)^2 (K), from x'x (D), X'Z (D x K) and z'z (K, or D x K if features have other rows)."""
    return mean_share(correlation(xz, xx[:, None], zz) ** 2, xx)


def loading_shares(xx: Array, xz: Array, zz: Array, W: Array) -> Array:
    """1 - |X - z_k w_k'|^2 / |X|^2 = sum_d (2 w_dk x_d'z_k - w_dk^2 z_k'z_k) / sum_d x_d'x_d (K)."""
    return quotient(np.sum(2 * W * xz - zz * W**2, axis=0), xx.sum())


def off_diagonal_squares(C: Array) -> Array:
    """sum_{p != q} C_pq^2, of one matrix or of each in a stack."""
    return np.asarray(np.sum(np.where(np.eye(C.shape[-1], dtype=bool), 0.0, C) ** 2, axis=(-2, -1)))
