"""Informed factor analysis where nothing is missing: samples share one covariance. One of two kernels (``kernel``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.factor.inference import updates
from covalign.factor.inference.state import Factors, Loadings, Problem, State, View, cannot_resume


def update_factors(problem: Problem, views: tuple[View, ...], beta: Array) -> Factors:
    """E[z_n] = (D + Q)^-1 (sum_d E[tau_d] x_nd E[w_d] + D (beta y_n)),  D prior precisions, Q the evidence.

    The covariance is (D + Q)^-1; in the mean field its informed block is inverted alone and free factors one by one.
    Given the covariances, the means of all factors solve this one system in both cases.
    """
    p, k = problem.p, problem.k
    prior = updates.prior_precision(beta, k)
    precision = np.diag(prior) + updates.evidence(views)
    inverse = updates.symmetric_inverse(precision)
    of_x = np.vstack([view.w.mean * view.noise.mean[:, None] for view in views]) @ inverse
    of_y = (beta * prior[:p])[:, None] * inverse[:p]
    if problem.full:
        cov = inverse
    else:
        cov = np.diag(1 / np.diag(precision))
        cov[:p, :p] = updates.symmetric_inverse(precision[:p, :p])
    return Factors(of_x, of_y, cov, *problem.data.sums(of_x, of_y))


def update_views(problem: Problem, z: Factors, views: tuple[View, ...]) -> tuple[View, ...]:
    """Loadings, ARD and noise of every view, given the factors."""
    S, new = z.second_moment(problem.n), []
    for view, where in zip(views, problem.bounds, strict=True):
        w = updates.update_loadings(S, z.xz[where], view.ard, view.noise, problem.full)
        residuals = updates.expected_residuals(problem.data.xx[where], z.xz[where], S, w)
        new.append(View(w, updates.update_ard(w), updates.update_noise(problem.n, residuals)))
    return tuple(new)


def shifted(problem: Problem, state: State, held: int = 0) -> State:
    """The state itself: data and factors are centred."""
    return state


# -- bound ------------------------------------------------------------------------------------------------------------


def of_views(problem: Problem, state: State) -> float:
    """Likelihood, loadings, ARD and noise of every view."""
    total, S = 0.0, state.z.second_moment(problem.n)
    for view, where in zip(state.views, problem.bounds, strict=True):
        residuals = updates.expected_residuals(problem.data.xx[where], state.z.xz[where], S, view.w)
        total += updates.expected_loglik(problem.n, residuals, view.noise)
        total -= updates.kl_loadings(view.w, view.ard) + view.ard.kl() + view.noise.kl()
    return total


def kl_factors(problem: Problem, state: State) -> float:
    """sum_n KL(q(z_n) || N(beta y_n, D^-1)) = (sum_k D_k E|z_k - prior mean|^2 - N K - N log|cov| - N log|D|) / 2."""
    n, p, k, beta = problem.n, problem.p, problem.k, state.beta
    distance = np.diag(state.z.second_moment(n)).copy()
    distance[:p] += beta**2 * np.diag(problem.data.yy) - 2 * beta * np.diag(state.z.zy[:p])
    prior = updates.prior_precision(beta, k)
    log_det = np.linalg.slogdet(state.z.cov)[1] + np.sum(np.log(prior))
    return float((prior @ distance - n * k - n * log_det) / 2)


# -- realigning -------------------------------------------------------------------------------------------------------


class Held(NamedTuple):
    """q(z~) of the informed factors: mean X of_x + Y of_y and covariance, and their divergence from the prior."""

    of_x: Array
    of_y: Array
    cov: Array
    kl: float


def hold(problem: Problem, state: State, T: Array) -> Held:
    """mu -> T mu, Sigma -> T Sigma T' (which exists where T is singular, too); the divergence is that of z itself."""
    n, p, z, beta = problem.n, problem.p, state.z, state.beta
    cov, D = z.cov[:p, :p], updates.prior_precision(beta, p)
    distance = np.diag(z.second_moment(n))[:p] - 2 * beta * np.diag(z.zy[:p]) + beta**2 * np.diag(problem.data.yy)
    kl = (D @ distance - n * p - n * (np.linalg.slogdet(cov)[1] + np.sum(np.log(D)))) / 2
    return Held(z.of_x[:, :p] @ T.T, z.of_y[:, :p] @ T.T, T @ cov @ T.T, float(kl))


def update_free(problem: Problem, views: tuple[View, ...], held: Held) -> Factors:
    """q(z_F | z_I) = N(C (r - Q_FI z_I), C), C = (I + Q_FF)^-1, r_n = sum_d E[tau_d] x_nd E[w_d,F], q(z_I) held.

    In the mean field free factors do not depend on the informed ones: only their means do.
    """
    p, k = problem.p, problem.k
    Q = updates.evidence(views)
    inverse = updates.symmetric_inverse(np.eye(k - p) + Q[p:, p:])
    direct = np.vstack([view.w.mean[:, p:] * view.noise.mean[:, None] for view in views])
    of_x = np.hstack([held.of_x, (direct - held.of_x @ Q[:p, p:]) @ inverse])
    of_y = np.hstack([held.of_y, -held.of_y @ Q[:p, p:] @ inverse])
    cov = np.zeros((k, k))
    cov[:p, :p] = held.cov
    if problem.full:
        B = -inverse @ Q[p:, :p]
        cov[p:, :p], cov[:p, p:] = B @ held.cov, held.cov @ B.T
        cov[p:, p:] = inverse + B @ held.cov @ B.T
    else:
        cov[p:, p:] = np.diag(1 / (1 + np.diag(Q)[p:]))
    return Factors(of_x, of_y, cov, *problem.data.sums(of_x, of_y))


def kl_free(problem: Problem, state: State) -> float:
    """sum_n E KL(q(z_F | z_I) || N(0, I)), free factors having just been updated."""
    n, p, S = problem.n, problem.p, state.z.second_moment(problem.n)
    precision = np.eye(problem.k - p) + updates.evidence(state.views)[p:, p:]
    log_det = -np.linalg.slogdet(precision)[1] if problem.full else -np.sum(np.log(np.diag(precision)))
    return float(np.trace(S[p:, p:]) - n * (problem.k - p) - n * log_det) / 2


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


def own_variances(state: State, group: NDArray[np.intp]) -> Array:
    """Var(z_nk), the same for every sample (n x K)."""
    return np.tile(np.diag(state.z.cov), (len(group), 1))
