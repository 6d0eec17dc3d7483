"""Stage 2: informed factors moved to a regime and held there, everything else adapts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from covalign._linalg import Array
from covalign.factor import gaps, updates
from covalign.factor.bound import of_views
from covalign.factor.fitting import Fit, iterate, rotated, update_views
from covalign.factor.state import Factors, Problem, State, View
from covalign.moments import Moments


class Held(NamedTuple):
    """q(z~) of the informed factors: mean X of_x + Y of_y and covariance, and their divergence from the prior."""

    of_x: Array
    of_y: Array
    cov: Array
    kl: float


def model_moments(beta: Array, S_y: Array, names: list[str]) -> Moments:
    """S_z = D_b S_y D_b + D_(1-b^2) and S_zy = D_b S_y, from which every regime's T follows."""
    S_z = beta[:, None] * S_y * beta + np.diag(1 - beta**2)
    return Moments.from_covariances(S_z, beta[:, None] * S_y, S_y, covariate_names=names)


def hold(problem: Problem, state: State, T: Array) -> Any:
    """mu -> T mu, Sigma -> T Sigma T' (which exists where T is singular, too); the divergence is that of z itself."""
    if isinstance(problem.data, gaps.Gapped):
        return gaps.hold(problem, state, T)
    n, p, z, beta = problem.n, problem.p, state.z, state.beta
    cov, D = z.cov[:p, :p], updates.prior_precision(beta, p)
    distance = np.diag(z.second_moment(n))[:p] - 2 * beta * np.diag(z.zy[:p]) + beta**2 * np.diag(problem.data.yy)
    kl = (D @ distance - n * p - n * (np.linalg.slogdet(cov)[1] + np.sum(np.log(D)))) / 2
    return Held(z.of_x[:, :p] @ T.T, z.of_y[:, :p] @ T.T, T @ cov @ T.T, float(kl))


def realigned_start(problem: Problem, state: State, held: Any, T: Array) -> State:
    """Loadings W T^+, so that X is explained as before (as well as can be, where T is singular)."""
    p = problem.p
    undo = np.eye(problem.k)
    undo[:p, :p] = np.linalg.pinv(T)
    views = tuple(view._replace(w=view.w.moved(undo, problem.full)) for view in state.views)
    return State(update_free(problem, views, held), views, state.beta)


def update_free(problem: Problem, views: tuple[View, ...], held: Any) -> Any:
    """q(z_F | z_I) = N(C (r - Q_FI z_I), C), C = (I + Q_FF)^-1, r_n = sum_d E[tau_d] x_nd E[w_d,F], q(z_I) held.

    In the mean field free factors do not depend on the informed ones: only their means do.
    """
    if isinstance(problem.data, gaps.Gapped):
        return gaps.update_free(problem, views, held)
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


def held_bound(problem: Problem, state: State, held: Any) -> float:
    """The bound with q(z_I) held, at a state whose free factors have just been updated."""
    if isinstance(problem.data, gaps.Gapped):
        return float(of_views(problem, state) - held.kl - gaps.kl_free(problem, state))
    n, p, S = problem.n, problem.p, state.z.second_moment(problem.n)
    precision = np.eye(problem.k - p) + updates.evidence(state.views)[p:, p:]
    log_det = -np.linalg.slogdet(precision)[1] if problem.full else -np.sum(np.log(np.diag(precision)))
    kl_free = (np.trace(S[p:, p:]) - n * (problem.k - p) - n * log_det) / 2
    return float(of_views(problem, state) - held.kl - kl_free)


def realign(problem: Problem, state: State, T: Array, accelerate: bool, max_iter: int, tol: float) -> Fit:
    """Hold the informed factors at T and iterate loadings, ARD, noise and free factors to convergence."""
    held = hold(problem, state, T)
    start = realigned_start(problem, state, held, T)

    def step(current: State) -> State:
        # The start is all but converged where T is regular: look first whether anything moves.
        if accelerate and problem.k > problem.p and current is not start:
            current = rotated(problem, current, lambda s: held_bound(problem, s, held), problem.p, hold_beta=True)
            if isinstance(problem.data, gaps.Gapped):
                current = gaps.shifted(problem, current, problem.p)
        views = update_views(problem, current.z, current.views)
        return State(update_free(problem, views, held), views, current.beta)

    def refresh(leapt: State) -> State:
        return State(update_free(problem, leapt.views, held), leapt.views, state.beta)

    leap = refresh if accelerate else None
    return iterate(step, lambda s: held_bound(problem, s, held), start, max_iter, tol, leap)
