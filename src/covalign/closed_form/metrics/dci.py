"""Disentanglement, completeness and informativeness (Eastwood & Williams 2018), from rows or in closed form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import entr

from covalign._core.checks import check_seed
from covalign._core.data_errors import too_few_rows_for_folds
from covalign._core.linalg import Array, is_constant, whitener
from covalign.closed_form.measures import inverse_sd
from covalign.closed_form.metrics.alignment import moments_of
from covalign.closed_form.metrics.lasso import importances_and_predictions
from covalign.moments.moments import Moments
from covalign.moments.numeric_rows import as_rows
from covalign.tables.covariates import match_rows

FOLDS = 5


class DCI(NamedTuple):
    """Three scores in [0, 1]: one covariate per dimension, one dimension per covariate, and how well Z predicts Y.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("P", n_samples=200)
    >>> bool(0 < ca.metrics.dci(s.Z, s.Y).informativeness < 1)
    True
    """

    disentanglement: float
    completeness: float
    informativeness: float


def dci(Z: Any, Y: Any = None, *, random_state: Any = 0) -> DCI:
    """D, C and I from the importances R_kp of dimension k in the regression of y_p on Z, all variables standardised.

    From rows: R = |coefficients| of a lasso whose penalty is cross-validated, and I the mean R^2 of predictions of rows
    that were used neither for the lasso nor for its penalty. From a ``Moments``: R = |S_z^+ S_zy| and I the mean R^2 of
    least squares, which is that of the population if these are its moments. The paper scores the informed dimensions
    only. With a thousand dimensions the lasso takes minutes per covariate; the closed form is immediate.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> [round(score, 3) for score in ca.metrics.dci(m.transform(ca.regimes.strongest(m)))]
    [1.0, 1.0, 0.478]
    """
    m = moments_of(Z, Y)
    R, r2 = least_squares(m) if isinstance(Z, Moments) else cross_validated_lasso(Z, Y, m, random_state)
    return DCI(concentration(R), concentration(R.T), float(np.mean(np.clip(r2, 0, 1))))


def concentration(R: Array) -> float:
    """sum_k rho_k (1 - H(R_k / sum_p R_kp) / log P) over rows k of P importances, rho_k the row's share of them all.

    Disentanglement is the concentration of R, completeness that of R'. A single column counts as 1, no importance at
    all as 0.
    """
    in_row, p = R.sum(axis=1), R.shape[1]
    if not in_row.any():
        return 0.0
    share = R / np.where(in_row > 0, in_row, 1.0)[:, None]
    entropy = entr(share).sum(axis=1) / np.log(max(p, 2))
    return float(np.clip(in_row / in_row.sum() @ (1 - entropy), 0, 1))


def least_squares(m: Moments) -> tuple[Array, Array]:
    """|S_z^+ S_zy| (K x P) and R^2_p = s_zp' S_z^+ s_zp, S correlations, with S_z^+ = W'W for the whitening W of Z.

    The whitener decides the rank on the correlation scale, where W'W is the Moore-Penrose inverse.
    """
    constant = is_constant(m.mean_z, np.diag(m.cov_z))
    W = whitener(m.cov_z, constant)
    A = W @ (m.cov_zy * inverse_sd(m.mean_y, np.diag(m.cov_y)))
    sd_z = np.sqrt(np.where(constant, 0.0, np.diag(m.cov_z)))
    return np.abs(sd_z[:, None] * (W.T @ A)), np.sum(A**2, axis=0)


def cross_validated_lasso(Z: Any, Y: Any, m: Moments, random_state: Any) -> tuple[Array, Array]:
    """|lasso coefficients| on all rows (K x P), and R^2_p of predictions pooled over held-out folds.

    A constant covariate has importances and R^2 of 0.
    """
    from sklearn.model_selection import KFold

    Z, Y = as_rows(Z, match_rows(Z, Y))
    if len(Y) < 2 * FOLDS:  # so that every inner training fold keeps a handful of rows
        raise too_few_rows_for_folds(len(Y), 2 * FOLDS)
    Z = ((Z.toarray() if sparse.issparse(Z) else Z) - m.mean_z) * inverse_sd(m.mean_z, np.diag(m.cov_z))
    Y = (Y - m.mean_y) * inverse_sd(m.mean_y, np.diag(m.cov_y))
    folds = KFold(FOLDS, shuffle=True, random_state=check_seed(random_state))
    R, r2 = np.zeros(m.cov_zy.shape), np.zeros(Y.shape[1])
    for p in np.flatnonzero(Y.any(axis=0)):
        coefficients, predictions = importances_and_predictions(Z, Y[:, p], folds)
        R[:, p], r2[p] = np.abs(coefficients), 1 - np.mean((Y[:, p] - predictions) ** 2)  # var(y_p) = 1
    return R, r2
