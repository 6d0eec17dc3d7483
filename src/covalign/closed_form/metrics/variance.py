"""How much of the features X the factors Z explain: one by one, and together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.checks import check_choice
from covalign._core.data_errors import not_finite, too_few_rows
from covalign._core.linalg import Array, dense, is_constant, whitener
from covalign._core.messages import message
from covalign._core.user_arrays import numbers, plain, shape_of
from covalign.closed_form.measures import loading_shares, marginal_shares, mean_share, quotient
from covalign.closed_form.metrics.alignment import arrays_or_moments
from covalign.moments.moments import Moments
from covalign.moments.numeric_rows import as_rows
from covalign.tables.covariates import match_rows

KINDS = ("marginal", "loadings")


class FeatureMoments(NamedTuple):
    """Second moments of factors and features, without the D x D covariance of the features."""

    cov_z: Array
    constant_z: NDArray[np.bool_]
    cov_xz: Array
    var_x: Array
    constant_x: NDArray[np.bool_]

    @property
    def varying_x(self) -> Array:
        """var(X), and 0 for a constant."""
        return np.where(self.constant_x, 0.0, self.var_x)


def variance_explained(X: Any, Z: Any = None, *, kind: str = "marginal", W: Any = None) -> Array:
    """The share of the variance of X that each factor explains (K).

    ``"marginal"``: corr(z_k, x_d)^2, the R^2 of feature d regressed on factor k alone, averaged over the features that
    vary. In [0, 1] for any correlations between factors.
    ``"loadings"``: 1 - |X - z_k w_k'|^2 / |X|^2 with X and Z centred and the loadings W (D x K). Shares of uncorrelated
    factors add up; those of correlated ones overlap and may be negative.
    A Moments of (Z, X) may replace both.

    >>> from covalign import metrics
    >>> Z = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> metrics.variance_explained([[a, a + b] for a, b in Z], Z).round(12).tolist()
    [0.75, 0.25]
    """
    check_choice("kind", kind, KINDS)
    if (kind == "loadings") != (W is not None):
        got = "none" if W is None else "W with kind='marginal'"
        raise ValueError(message("kind='loadings' needs W (features x factors), and no other kind", got=got))
    m = feature_moments(X, Z)
    var_z = np.diag(m.cov_z)
    if kind == "marginal":
        return marginal_shares(m.varying_x, m.cov_xz, np.where(m.constant_z, 0.0, var_z))
    loadings = np.asarray(dense(numbers(plain(W, "W"), "W")), dtype=np.float64)
    if loadings.shape != m.cov_xz.shape:
        problem = f"W needs shape {m.cov_xz.shape} (features x factors)"
        raise ValueError(message(problem, got=loadings.shape, remedy="transpose it, or check X and Z"))
    return loading_shares(m.var_x, m.cov_xz, var_z, loadings)


def total_variance_explained(X: Any, Z: Any = None) -> float:
    """The R^2 of each feature regressed on all factors, averaged over the features that vary.

    That is the share of the total variance of standardised X. Duplicated or constant factors add nothing. A Moments of
    (Z, X) may replace both.

    >>> from covalign import metrics
    >>> Z = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> round(metrics.total_variance_explained([[a, a + b] for a, b in Z], [[a] for a, _ in Z]), 12)
    0.75
    """
    m = feature_moments(X, Z)
    A = m.cov_xz @ whitener(m.cov_z, m.constant_z).T
    return float(mean_share(quotient(np.sum(A**2, axis=1), m.varying_x), m.varying_x))


def feature_moments(X: Any, Z: Any) -> FeatureMoments:
    """From a Moments of (Z, X), or from arrays by blocks of features: memory grows with K D, not with D^2."""
    if isinstance(X, Moments) != (Z is None):
        raise arrays_or_moments("X", "Z", "X alone" if Z is None else "a Moments and Z")
    if isinstance(X, Moments):
        return _gather([X])
    n_x, n_z = (shape_of(M, name)[:1] for M, name in ((X, "X"), (Z, "Z")))
    if n_x and n_z and n_x != n_z:
        problem = "X and Z need the same number of rows (samples)"
        raise ValueError(message(problem, got=f"{n_x[0]} and {n_z[0]}", remedy="pass one row of factors per row of X"))
    Z, X = as_rows(Z, match_rows(Z, X))
    step = max(64, Z.shape[1])
    parts = []
    for start in range(0, max(X.shape[1], 1), step):
        block = X[:, start : start + step]
        finite = np.isfinite(block).all(axis=0)
        if not finite.all():
            raise not_finite("X", str(start + int(np.argmin(finite))))
        parts.append(Moments.from_arrays(Z, block))
    return _gather(parts)


def _gather(parts: list[Moments]) -> FeatureMoments:
    """The features of all parts side by side; the factors are the same in each."""
    m = parts[0]
    if m.n is not None and m.n < 2:
        raise too_few_rows(m.n)
    mean_x = np.concatenate([part.mean_y for part in parts])
    var_x = np.concatenate([np.diag(part.cov_y) for part in parts])
    return FeatureMoments(
        cov_z=m.cov_z,
        constant_z=is_constant(m.mean_z, np.diag(m.cov_z)),
        cov_xz=np.hstack([part.cov_zy for part in parts]).T,
        var_x=var_x,
        constant_x=is_constant(mean_x, var_x),
    )
