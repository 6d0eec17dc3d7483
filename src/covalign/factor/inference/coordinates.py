"""The paper's coordinate ascent where nothing is missing: every mean is updated given the current others, in order.

The factorisation is the mean field of ``updates``: q(z_n) of the informed factors is joint, free factors and loadings
are independent. There all means of z_n, and all of w_d, solve one system; here a sweep visits each of them once.
"""

from __future__ import annotations

import numpy as np

from covalign._core.linalg import Array
from covalign.factor.inference import updates
from covalign.factor.inference.state import Factors, Gamma, Loadings, Problem, View


def update_loadings(S: Array, xz: Array, ard: Gamma, precision: Array, mean: Array) -> Loadings:
    """E[w_dk] = Var(w_dk) tau_d (E[z_k]'x_d - sum_{j != k} E[w_dj] S_jk), k by k, all d at once.

    Var(w_dk) = 1 / (alpha_k + tau_d S_kk), S = E[Z'Z], tau_d what a cell counts; ``mean`` are the current loadings.
    """
    tau, mean = precision[:, None], mean.copy()
    variance = 1 / (ard.mean + tau * np.diag(S))
    for k in range(len(S)):
        others = mean @ S[:, k] - mean[:, k] * S[k, k]
        mean[:, k] = variance[:, k] * precision * (xz[:, k] - others)
    return Loadings(mean, np.eye(len(S)), variance)


def update_factors(problem: Problem, views: tuple[View, ...], beta: Array, z: Factors) -> Factors:
    """E[z_I] = C (r_I - Q_IF E[z_F] + D beta y), C = (D + Q_II)^-1, then the free factors; ``z`` are the current ones.

    r_n = sum_d E[tau_d] x_nd E[w_d], Q the evidence, D prior precisions.
    """
    p, Q = problem.p, updates.evidence(views)
    C = informed_covariance(Q, beta, np.eye(p))
    prior = np.diag(beta * updates.prior_precision(beta, p))  # P x P
    of_x, of_y = z.of_x.copy(), z.of_y.copy()
    of_x[:, :p] = (direct(views)[:, :p] - of_x[:, p:] @ Q[p:, :p]) @ C
    of_y[:, :p] = (prior - of_y[:, p:] @ Q[p:, :p]) @ C
    return _with_free(problem, views, Q, of_x, of_y, C)


def update_held(problem: Problem, views: tuple[View, ...], beta: Array, z: Factors, T: Array) -> Factors:
    """Stage 2: E[z~_I] is held, Cov(z~_I) = T (D + T' Q_II T)^-1 T', then the free factors.

    Where T is regular, this is the paper's ((T')^-1 D T^-1 + Q_II)^-1; this form needs no inverse of T.
    """
    Q = updates.evidence(views)
    cov = T @ informed_covariance(Q, beta, T) @ T.T
    return _with_free(problem, views, Q, z.of_x.copy(), z.of_y.copy(), cov)


def transformed_means(problem: Problem, z: Factors, T: Array) -> Factors:
    """The start of stage 2: z~_I = T z_I, nothing else moves."""
    R = np.eye(problem.k)
    R[: problem.p, : problem.p] = T
    return z.moved(R, full=True)


def informed_covariance(Q: Array, beta: Array, T: Array) -> Array:
    """Cov(z_I) = (D + T' Q_II T)^-1, where X sees z~_I = T z_I."""
    p = len(beta)
    return updates.symmetric_inverse(np.diag(updates.prior_precision(beta, p)) + T.T @ Q[:p, :p] @ T)


def direct(views: tuple[View, ...]) -> Array:
    """E[tau_d] E[w_d] of all features (D x K): x_n times this is r_n."""
    return np.vstack([view.w.mean * view.precision[:, None] for view in views])


def _with_free(
    problem: Problem, views: tuple[View, ...], Q: Array, of_x: Array, of_y: Array, informed: Array
) -> Factors:
    """E[z_k] = (r_k - sum_{j != k} Q_kj E[z_j]) / (1 + Q_kk) for the free factors, one by one; their variances."""
    p, r = problem.p, direct(views)
    for k in range(p, problem.k):
        of_x[:, k] = (r[:, k] - of_x @ Q[:, k] + of_x[:, k] * Q[k, k]) / (1 + Q[k, k])
        of_y[:, k] = (of_y[:, k] * Q[k, k] - of_y @ Q[:, k]) / (1 + Q[k, k])
    cov = np.diag(1 / (1 + np.diag(Q)))
    cov[:p, :p] = informed
    return Factors(of_x, of_y, cov, *problem.data.sums(of_x, of_y))
