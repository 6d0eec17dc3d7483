"""Measures of a map T on the moments of some rows: alignment, coupling, and shares of categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covalign._core.checks import check_positions
from covalign._core.linalg import Array, is_constant, to_correlation, whitener
from covalign._core.user_arrays import as_matrix
from covalign.closed_form.measures import correlation, explained_share, off_diagonal_squares
from covalign.closed_form.regimes.polar import checked_moments
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments


def _map(T: Any, m: Any) -> Array:
    """T as a matrix with a column for every dimension of Z."""
    return as_matrix(T, "T", len(checked_moments(m).cov_z))


def alignment(T: Array, m: Moments) -> Array:
    """corr(z~_p, y_p) of every covariate; NaN if either is constant in these moments.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.regimes.alignment(ca.regimes.independent(m), m).round(2).tolist()
    [0.79, 0.69, 0.56, 0.43, 0.33]
    """
    T = _map(T, m)[: m.cov_zy.shape[1]]
    variance = np.sum((T @ m.cov_z) * T, axis=1)
    return correlation(np.sum(T * m.cov_zy.T, axis=1), variance, np.diag(m.cov_y), constant=np.nan)


def observed_alignment(T: Array, m: Rows) -> Array:
    """corr(z~_p, y_p) over the rows that have y_p; NaN if it is not defined there.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.regimes.observed_alignment(ca.regimes.strongest(m), m).round(2).tolist()
    [0.91, 0.8, 0.68, 0.51, 0.46]
    """
    values = np.full(len(m.n_pairs), np.nan)
    for columns, seen in m.pairs:
        values[columns] = alignment(T[: len(values)][columns], seen)
    return values


def eta_squared(T: Array, m: Moments, columns: Sequence[int]) -> Array:
    """R^2 of every dimension of TZ regressed on these covariates: c'S_y^+ c / var(z~), c = cov(y, z~).

    For the dummies of a category this is the classical eta squared: the share of the dimension's variance that lies
    between the levels.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.exclusive(m)
    >>> bool(abs(ca.regimes.eta_squared(T[:1], m, [1, 2])).max() < 1e-9)  # uncorrelated with both
    True
    """
    T, at = _map(T, m), check_positions("columns", columns, len(m.mean_y))
    S_y = m.cov_y[np.ix_(at, at)]
    W = whitener(S_y, is_constant(m.mean_y[at], np.diag(S_y)))
    variance = np.sum((T @ m.cov_z) * T, axis=1)
    between = np.sum((W @ (T @ m.cov_zy[:, at]).T) ** 2, axis=0)
    return explained_share(between, variance, constant=np.nan)


def canonical_alignment(T: Array, m: Moments, columns: Sequence[int]) -> float:
    """Root mean square of the canonical correlations of TZ and these covariates: |W_z T S_zy W_y'|_F / sqrt(rank S_y).

    It depends only on the spaces that the rows of T and the covariates span. So for a category that is the only
    covariate, it is the same for every left-out level and every lambda.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T_0, T_half = ca.regimes.independent(m), ca.regimes.tunable(m, 0.5)
    >>> both = [ca.regimes.canonical_alignment(T, m, range(5)) for T in (T_0, T_half)]
    >>> abs(both[0] - both[1]) < 1e-9
    True
    """
    T, at = _map(T, m), check_positions("columns", columns, len(m.mean_y))
    S_y, S_z = m.cov_y[np.ix_(at, at)], T @ m.cov_z @ T.T
    W_y = whitener(S_y, is_constant(m.mean_y[at], np.diag(S_y)))
    W_z = whitener(S_z, is_constant(T @ m.mean_z, np.diag(S_z)))
    if len(W_y) == 0:
        return float("nan")
    return float(np.linalg.norm(W_z @ T @ m.cov_zy[:, at] @ W_y.T) / np.sqrt(len(W_y)))


def coupling(T: Array, m: Rows) -> float:
    """|corr(TZ) - I|_F^2.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.regimes.coupling(ca.regimes.independent(m), m) < 1e-12
    True
    """
    T = _map(T, m)
    return squared_distance_from_identity(to_correlation(T @ m.cov_z @ T.T))


def squared_distance_from_identity(C: Array) -> float:
    """|C - I|_F^2 off the diagonal, where a correlation matrix can differ from I.

    >>> import numpy as np, covalign as ca
    >>> ca.regimes.squared_distance_from_identity(np.array([[1, 0.5], [0.5, 1]]))
    0.5
    """
    return float(off_diagonal_squares(C))


def mean_or_nan(values: ArrayLike) -> float:
    """The mean of the values that are not NaN; NaN (without a warning) if there is none.

    >>> import covalign as ca
    >>> ca.regimes.mean_or_nan([1.0, float("nan"), 3.0]), ca.regimes.mean_or_nan([])
    (2.0, nan)
    """
    there = np.asarray(values, dtype=np.float64)
    there = there[~np.isnan(there)]
    return float(there.mean()) if there.size else float("nan")
