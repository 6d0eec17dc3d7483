"""Alignment: how strongly dimension p correlates with covariate p. And corr(Z, Y), which other metrics share."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from covalign._core.checks import check_flags
from covalign._core.data_errors import constant_covariates, no_covariates, too_few_rows, too_many_covariates
from covalign._core.linalg import Array, is_constant
from covalign._core.messages import listed, message
from covalign.closed_form.measures import correlation, varying
from covalign.moments.moments import Moments
from covalign.tables.covariates import match_rows


@overload
def alignment(Z: Any, Y: Any = None, *, per_covariate: Literal[False] = False) -> float: ...
@overload
def alignment(Z: Any, Y: Any = None, *, per_covariate: Literal[True]) -> Array: ...
def alignment(Z: Any, Y: Any = None, *, per_covariate: bool = False) -> float | Array:
    """(1/P) sum_p corr(z_p, y_p), signed, the first P columns of Z paired with those of Y in order.

    ``per_covariate=True`` returns the P correlations instead of their mean.

    >>> from covalign import metrics
    >>> metrics.alignment([[0, 0], [1, 2], [2, 4]], [[1, 9], [3, 8], [5, 7]], per_covariate=True).round(12).tolist()
    [1.0, -1.0]
    """
    check_flags(per_covariate=per_covariate)
    m = moments_of(Z, Y)
    k, p = m.cov_zy.shape
    if p > k:
        raise too_many_covariates(p, k)
    constant_z = is_constant(m.mean_z, np.diag(m.cov_z))[:p]
    if constant_z.any():
        names = Z.columns if hasattr(Z, "columns") else range(k)
        flat = listed(str(names[i]) for i in np.flatnonzero(constant_z))
        problem = f"a latent dimension paired with a covariate needs to vary, got a constant in column {flat} of Z"
        remedy = "Drop the column, or use metrics.match to pair covariates with other columns"
        raise ValueError(message(problem, remedy=remedy))
    constant_y = is_constant(m.mean_y, np.diag(m.cov_y))
    if constant_y.any():
        raise constant_covariates(np.array(m.covariate_names)[constant_y])
    paired = np.diag(cross_correlation(m)).copy()
    return paired if per_covariate else float(paired.mean())


def cross_correlation(m: Moments) -> Array:
    """corr(z_k, y_p), K x P; 0 for a constant."""
    var_z, var_y = varying(m.mean_z, np.diag(m.cov_z)), varying(m.mean_y, np.diag(m.cov_y))
    return np.clip(correlation(m.cov_zy, var_z[:, None], var_y), -1, 1)


def latent_correlation(m: Moments) -> Array:
    """corr(z_k, z_l), K x K; 0 for a constant."""
    variance = varying(m.mean_z, np.diag(m.cov_z))
    return np.clip(correlation(m.cov_z, variance[:, None], variance), -1, 1)


def moments_of(Z: Any, Y: Any) -> Moments:
    """Z itself if it is a Moments, else the moments of (Z, Y); an error if no correlation is defined."""
    if isinstance(Z, Moments) != (Y is None):
        raise arrays_or_moments("Z", "Y", "Z alone" if Y is None else "a Moments and Y")
    m = Z if isinstance(Z, Moments) else Moments.from_arrays(Z, match_rows(Z, Y))
    k, p = m.cov_zy.shape
    if p == 0:
        raise no_covariates()
    if k == 0:
        raise too_many_covariates(p, k)
    if m.n is not None and m.n < 2:
        raise too_few_rows(m.n)
    return m


def arrays_or_moments(first: str, second: str, got: str) -> ValueError:
    """The error of a metric that got one array, or an array too many."""
    problem = f"a metric needs {first} and {second}, or one Moments of both"
    return ValueError(message(problem, got=got, remedy="pass the two, or the Moments alone"))
