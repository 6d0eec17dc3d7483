"""Moments of what confounders leave of Z and Y.

The least-squares fit on [1 C], over the rows that have x, is subtracted from x; C itself may not have gaps. Every
coding of a category spans the same space, so one dummy too many, or a constant column, changes nothing.

The coded confounders are the last q columns of Z. The moments of any set of rows then determine what the confounders
explain (``Adjustment``), and with it the moments of what is left, of the same rows or of others. Where Y has gaps, the
moments are completed first (``incomplete``), with Z and C to predict y from, so labels may be missing at random given
both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array, is_constant, is_explained, range_eigh
from covalign._core.messages import listed, message
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments


def coefficients(C: Array, M: Array) -> tuple[Array, Array]:
    """Intercepts a (D) and slopes B (q x D) of M on [1 C], every column by the rows that have it (NaN where missing).

    The smallest of all solutions where several fit: a confounder nobody varies in, or one dummy too many, gets nothing.
    """
    centre = C.mean(axis=0)
    spread = C.std(axis=0)
    A = (C - centre) / np.where(spread > 0, spread, 1.0)
    A = np.column_stack([np.ones(len(A)), A])
    seen = ~np.isnan(M)
    if seen.all():
        solved = np.asarray(np.linalg.lstsq(A, M, rcond=1e-10)[0])
    else:
        q = A.shape[1]
        outer = (A[:, :, None] * A[:, None, :]).reshape(len(A), q * q)
        products = (seen.T.astype(np.float64) @ outer).reshape(-1, q, q)
        right = np.where(seen, M, 0.0).T @ A
        solved = np.empty((q, M.shape[1]))
        for d, (S, r) in enumerate(zip(products, right, strict=True)):
            values, vectors = range_eigh(S)
            solved[:, d] = (vectors / values) @ (vectors.T @ r)
    slopes = solved[1:] / np.where(spread > 0, spread, 1.0)[:, None]
    return solved[0] - centre @ slopes, slopes


class Adjustment(NamedTuple):
    """What confounders explain, as some rows have it: (C - c) B_z of Z and (C - c) b_y of Y."""

    centre: Array  # q
    B_z: Array  # q x K
    b_y: Array  # q x P

    def apply(self, rows: Rows) -> Rows:
        """Moments of what is left of Z and Y in these rows, or in others."""
        if len(self.centre) == 0:
            return rows
        return rows.residual(self.centre, self.B_z, self.b_y)


def adjusted(whole: Rows, q: int) -> tuple[Moments, Adjustment]:
    """Completed moments of (Z - (C - c) B_z, Y - (C - c) b_y), c = mean(C), B_z = S_c^+ S_cz, b_y = S_c^+ S_cy."""
    m = whole.completed(q)
    k = len(m.mean_z) - q
    if q == 0:
        return m, Adjustment(np.empty(0), np.empty((0, k)), np.empty((0, len(m.mean_y))))
    follows = explained(whole, q)
    if follows.any():
        raise follow_from_confounders(np.array(m.covariate_names)[follows])
    fit = Adjustment(*m.regression(q))
    return m.residual(*fit), fit


def follow_from_confounders(names: Iterable[str]) -> ValueError:
    """The error for covariates of which confounders leave nothing."""
    return ValueError(
        message(
            "covariates need to vary where the confounders are the same",
            got=f"{listed(names)}, which the confounders predict exactly",
            remedy="drop the covariate, or the confounder",
        )
    )


def explained(rows: Rows, q: int) -> NDArray[np.bool_]:
    """Covariates (P) that are constant, or a linear function of the confounders, in the rows that have them."""
    follows = np.zeros(len(rows.n_pairs), dtype=bool)
    for columns, seen in rows.pairs:
        variance = np.diag(seen.cov_y)
        follows[columns] = is_constant(seen.mean_y, variance)
        if q:
            left = variance - np.sum(seen.cov_zy[-q:] * seen.regression(q)[2], axis=0)
            follows[columns] |= is_explained(left, variance)
    return follows
