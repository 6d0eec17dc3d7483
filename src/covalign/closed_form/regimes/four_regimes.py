"""T of the four regimes from the polar form, and the largest lambda within a coupling."""

from __future__ import annotations

from numbers import Real

import numpy as np

from covalign._core.checks import check_lam, check_max_coupling, check_regime
from covalign._core.data_errors import no_exclusive
from covalign._core.linalg import Array, rank_cutoff, to_correlation, unit_rows
from covalign._core.messages import message, shown
from covalign._core.user_arrays import as_matrix
from covalign.closed_form.crowded import only_strongest
from covalign.closed_form.measures import off_diagonal_squares
from covalign.closed_form.regimes.polar import Polar, checked_polar, whitened_polar
from covalign.moments.moments import Moments

ENDS = {"independent": 0.0, "strongest": 1.0}  # regimes that are an end of the lambda scale


def independent(m: Moments, *, shrinkage: float = 0.0) -> Array:
    """T_0 = V U' W: the uncorrelated dimensions with the highest alignment.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.independent(m)
    >>> round(ca.regimes.alignment(T, m).mean().item(), 4), round(ca.regimes.coupling(T, m), 4)
    (0.5613, 0.0)
    """
    return turned(whitened_polar(m, shrinkage), "independent")


def tunable(m: Moments, lam: float, *, shrinkage: float = 0.0) -> Array:
    """T_lambda = unit_rows((1 - lam) I + lam M) T_0.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.tunable(m, 0.5)
    >>> round(ca.regimes.alignment(T, m).mean().item(), 4), round(ca.regimes.coupling(T, m), 4)
    (0.6292, 1.2358)
    """
    return turned(whitened_polar(m, shrinkage), "tunable", lam)


def strongest(m: Moments, *, shrinkage: float = 0.0) -> Array:
    """T_1 = unit_rows(M) T_0: the regression of each covariate on Z, scaled to unit variance.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.strongest(m)
    >>> round(ca.regimes.alignment(T, m).mean().item(), 4), round(ca.regimes.coupling(T, m), 4)
    (0.6704, 8.2566)
    """
    return turned(whitened_polar(m, shrinkage), "strongest")


def exclusive(m: Moments, *, shrinkage: float = 0.0) -> Array:
    """T_ex = unit_rows(M^-1) T_0: dimension p is uncorrelated with every covariate but p.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.exclusive(m)
    >>> round(ca.regimes.alignment(T, m).mean().item(), 4), round(ca.regimes.coupling(T, m), 4)
    (0.351, 4.1039)
    """
    return turned(whitened_polar(m, shrinkage), "exclusive")


def turned(polar: Polar, regime: str, lam: float = 0.5) -> Array:
    """T of a regime from its polar form.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> bool((ca.regimes.turned(polar, "tunable", 0.3) == ca.regimes.tunable(m, 0.3)).all())
    True
    """
    return mixing(polar, regime, lam) @ polar.T_0


def mixing(polar: Polar, regime: str, lam: float = 0.5) -> Array:
    """unit_rows(f(M)), the P x P matrix that takes T_0 to the regime (P x k with more covariates than dimensions).

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> ca.regimes.mixing(polar, "independent").trace().item()
    5.0
    """
    check_regime(regime)
    polar = checked_polar(polar)
    if polar.crowded:
        if regime == "strongest" or (regime == "tunable" and check_lam(lam) == 1):
            return polar.basis.T
        raise only_strongest(polar.basis.shape[1], len(polar.M))
    if regime == "exclusive":
        if polar.M_inverse is None:
            raise no_exclusive(polar.dependent)
        return unit_rows(polar.M_inverse)
    lam = ENDS.get(regime, lam)
    return mixed(polar.M, check_lam(lam))


def mixed(M: Array, lam: float | Array) -> Array:
    """unit_rows((1 - lam) I + lam M); M and lam may have leading axes.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> ca.regimes.mixed(polar.M, 0.5).shape
    (5, 5)
    """
    if not (isinstance(M, np.ndarray) and M.ndim >= 2 and M.dtype.kind == "f" and isinstance(lam, np.ndarray | Real)):
        problem, got = "mixing needs the matrix M of a Polar and a number", f"{shown(M)} and {shown(lam)}"
        raise ValueError(message(problem, got=got, remedy="use whitened_polar(moments).M"))
    return unit_rows((1 - lam) * np.eye(M.shape[-1]) + lam * M)


def lam_within(M: Array, max_coupling: float, C: Array | None = None) -> float:
    """The largest lambda whose T_lambda couples its dimensions by at most ``max_coupling``; NaN if there is none.

    Alignment rises with lambda, so this is the strongest alignment within the budget. Coupling need not be monotone:
    a grid brackets the last crossing, bisection finds it. ``C`` is the covariance of T_0 Z on the rows that count, by
    default I, as on the rows that T_0 was fitted to.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> lam = ca.regimes.lam_within(polar.M, 0.5)
    >>> round(ca.regimes.coupling(ca.regimes.tunable(m, lam), m), 6)
    0.5
    """
    M, max_coupling = as_matrix(M, "M"), check_max_coupling(max_coupling)
    if M.shape[-1] > len(M):
        raise only_strongest(M.shape[-1], len(M))
    if M.size == 0 or M.shape[0] != M.shape[1] or not np.isfinite(M).all():
        problem, got = "lam_within needs the matrix M of a Polar", f"shape {M.shape}, or NaN or infinity (inf)"
        raise ValueError(message(problem, got=got, remedy="use whitened_polar(moments).M"))
    S = np.eye(len(M)) if C is None else C

    def coupling_at(lam: Array) -> Array:
        F = mixed(M, lam[:, None, None])
        return off_diagonal_squares(to_correlation(F @ S @ F.transpose(0, 2, 1)))

    grid = np.linspace(0, 1, 201)
    within = np.flatnonzero(coupling_at(grid) <= max_coupling + rank_cutoff(len(M), 1.0))
    if len(within) == 0 or within[-1] == len(grid) - 1:
        return 1.0 if len(within) else float("nan")
    low, high = grid[within[-1]], grid[within[-1] + 1]
    kept = max_coupling * (1 - 1e-9)  # within the budget also for who computes it by another route
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if coupling_at(np.array([middle]))[0] <= kept else (low, middle)
    return float(low)
