"""Informed factor analysis where nothing is missing: samples share one covariance. One of two kernels (``kernel``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.factor.inference import coordinates, updates
from covalign.factor.inference.state import Factors, Held, Loadings, Problem, State, View, cannot_resume


def update_factors(problem: Problem, views: tuple[View, ...], beta: Array) -> Factors:
    """E[z_n] = (D + Q)^-1 (sum_d E[tau_d] x_nd E[w_d] + D (beta y_n)),  D prior precisions, Q the evidence.

    The covariance is (D + Q)^-1; in the mean field its informed block is inverted alone and free factors one by one.
    Given the covariances, the means of all factors solve this one system in both cases.
    """
    p, k = problem.p, problem.k
    prior = updates.prior_precision(beta, k)
    precision = np.diag(prior) + updates.evidence(views)
    inverse = updates.symmetric_inverse(precision)
    of_x = np.vstack([view.w.mean * view.precision[:, None] for view in views]) @ inverse
    of_y = (beta * prior[:p])[:, None] * inverse[:p]
    cov = inverse if problem.full else updates.mean_field_covariance(precision, p)
    return Factors(of_x, of_y, cov, *problem.data.sums(of_x, of_y))


def update_loadings(problem: Problem, z: Factors, where: slice, view: View) -> Loadings:
    """The loadings of a view, given the factors."""
    S, xz = z.second_moment(problem.n), z.xz[where]
    if problem.coordinates:
        return coordinates.update_loadings(S, xz, view.ard, view.precision, view.w.mean)
    return updates.update_loadings(S, xz, view.ard, view.precision, problem.full)


def expected_residuals(problem: Problem, z: Factors, where: slice, w: Loadings) -> Array:
    """E sum_n (x_nd - w_d'z_n)^2 for every feature of a view."""
    return updates.expected_residuals(problem.data.xx[where], z.xz[where], z.second_moment(problem.n), w)


def counts(problem: Problem, where: slice) -> int:
    """Observed cells of each feature: all samples have all of them."""
    return problem.n


def shifted(problem: Problem, state: State, held: int = 0) -> State:
    """The state itself: data and factors are centred."""
    return state


# -- bound ------------------------------------------------------------------------------------------------------------


def kl_factors(problem: Problem, state: State) -> float:
    """sum_n KL(q(z_n) || N(beta y_n, D^-1)) = (sum_k D_k E|z_k - prior mean|^2 - N K - N log|cov| - N log|D|) / 2."""
    n, p, k, beta = problem.n, problem.p, problem.k, state.beta
    distance = np.diag(state.z.second_moment(n)).copy()
    distance[:p] += beta**2 * np.diag(problem.data.yy) - 2 * beta * np.diag(state.z.zy[:p])
    prior = updates.prior_precision(beta, k)
    log_det = np.linalg.slogdet(state.z.cov)[1] + np.sum(np.log(prior))
    return float((prior @ distance - n * k - n * log_det) / 2)


# -- realigning -------------------------------------------------------------------------------------------------------


def update_free(problem: Problem, views: tuple[View, ...], held: Held) -> Factors:
    """q(z_F | z_I) = N(C (r - Q_FI z_I), C), C = (I + Q_FF)^-1, r_n = sum_d E[tau_d] x_nd E[w_d,F], q(z_I) held."""
    p, Q = problem.p, updates.evidence(views)
    inverse = updates.symmetric_inverse(updates.free_precision(Q, p))
    direct = np.vstack([view.w.mean[:, p:] * view.precision[:, None] for view in views])
    of_x = np.hstack([held.z.of_x, (direct - held.z.of_x @ Q[:p, p:]) @ inverse])
    of_y = np.hstack([held.z.of_y, -held.z.of_y @ Q[:p, p:] @ inverse])
    cov = updates.held_covariance(Q, held.z.cov, problem.full)
    return Factors(of_x, of_y, cov, *problem.data.sums(of_x, of_y))


def evidence(problem: Problem, views: tuple[View, ...]) -> tuple[Array, int]:
    """The evidence about z, the same for all samples, and their number."""
    return updates.evidence(views), problem.n


def known_covariates(problem: Problem) -> Array:
    """1: no covariate is missing."""
    return np.ones((1, problem.p))


# -- start ------------------------------------------------------------------------------------------------------------


def filled(problem: Problem) -> Problem:
    """The problem itself: nothing is missing."""
    return problem


def started(problem: Problem, state: State) -> State:
    """The start itself."""
    return state


def resumed(problem: Problem, state: State) -> State:
    """Loadings as they are, on other data."""
    if not all(isinstance(view.w, Loadings) for view in state.views):
        raise cannot_resume()
    return state._replace(z=update_factors(problem, state.views, state.beta))


# -- what a fitted model shows ----------------------------------------------------------------------------------------


def observed_sums(problem: Problem, state: State, where: slice) -> tuple[Array, Array, Array]:
    """Per feature: x'x, X'M (D x K) and the diagonal of M'M (1 x K)."""
    return problem.data.xx[where], state.z.xz[where], np.diag(state.z.zz)[None]


def centred_products_of_means(problem: Problem, state: State) -> tuple[Array, NDArray[np.intp]]:
    """M'M (1 x K x K), the same for every feature."""
    return state.z.zz[None], np.zeros(len(state.z.xz), dtype=np.intp)
