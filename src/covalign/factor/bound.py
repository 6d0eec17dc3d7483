"""The evidence lower bound as named terms: expected log-likelihood minus Kullback-Leibler divergences."""

from __future__ import annotations

from typing import Any

import numpy as np

from covalign._linalg import Array
from covalign.factor import gaps, updates
from covalign.factor.state import Gamma, Problem, State


def bound(problem: Problem, state: State) -> float:
    """E_q[log p(X, Z, W, alpha, tau | Y)] - E_q[log q]."""
    if isinstance(problem.data, gaps.Gapped):
        return gaps.of_views(problem, state) - gaps.kl_factors(problem, state)
    return of_views(problem, state) - kl_factors(problem, state, state.z.second_moment(problem.n))


def of_views(problem: Problem, state: State) -> float:
    """Everything in the bound but the divergence of the factors: likelihood, loadings, ARD and noise of every view."""
    if isinstance(problem.data, gaps.Gapped):
        return gaps.of_views(problem, state)
    total, S = 0.0, state.z.second_moment(problem.n)
    for view, where in zip(state.views, problem.bounds, strict=True):
        residuals = updates.expected_residuals(problem.data.xx[where], state.z.xz[where], S, view.w)
        total += expected_loglik(problem.n, residuals, view.noise)
        total -= kl_loadings(view.w, view.ard) + view.ard.kl() + view.noise.kl()
    return total


def expected_loglik(n: int, residuals: Array, noise: Gamma) -> float:
    """sum_d N/2 (E[log tau_d] - log 2 pi) - E[tau_d] E sum_n (x_nd - w_d'z_n)^2 / 2."""
    return float(np.sum(n / 2 * (noise.mean_log - np.log(2 * np.pi)) - noise.mean * residuals / 2))


def kl_factors(problem: Problem, state: State, S: Array) -> float:
    """sum_n KL(q(z_n) || N(beta y_n, D^-1)) = (sum_k D_k E|z_k - prior mean|^2 - N K - N log|cov| - N log|D|) / 2."""
    n, p, k, beta = problem.n, problem.p, problem.k, state.beta
    distance = np.diag(S).copy()
    distance[:p] += beta**2 * np.diag(problem.data.yy) - 2 * beta * np.diag(state.z.zy[:p])
    prior = updates.prior_precision(beta, k)
    log_det = np.linalg.slogdet(state.z.cov)[1] + np.sum(np.log(prior))
    return float((prior @ distance - n * k - n * log_det) / 2)


def kl_loadings(w: Any, ard: Gamma) -> float:
    """sum_d E KL(q(w_d) || N(0, 1/alpha)) = (E[alpha]'E[w^2] - D K - sum_d log|C_d| - D sum_k E[log alpha_k]) / 2."""
    d, k = w.mean.shape
    return float((ard.mean @ w.second_moment_diagonal - d * k - w.log_det - d * np.sum(ard.mean_log)) / 2)
