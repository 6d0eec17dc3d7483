"""Stage 2: informed factors moved to a regime and held there, everything else adapts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covalign._core.linalg import Array
from covalign.factor.inference import coordinates, updates
from covalign.factor.inference.bound import of_views
from covalign.factor.inference.kernel import kernel_of, update_views
from covalign.factor.inference.rotation import rotate
from covalign.factor.inference.state import Held, Problem, State
from covalign.factor.inference.sweeps import Fit, iterate
from covalign.moments.moments import Moments


class Realigned(NamedTuple):
    """The regime a model was moved to, and its map: R (K x K), or T (P x P) in the paper's way."""

    regime: str
    lam: float
    T: Array
    R: Array | None = None
    gap: float = np.nan  # of the exact regime


def model_moments(beta: Array, S_y: Array, names: list[str]) -> Moments:
    """S_z = D_b S_y D_b + D_(1-b^2) and S_zy = D_b S_y, from which every regime's T follows."""
    S_z = beta[:, None] * S_y * beta + np.diag(1 - beta**2)
    return Moments.from_covariances(S_z, beta[:, None] * S_y, S_y, covariate_names=names)


def hold(problem: Problem, state: State, T: Array) -> Held:
    """mu -> T mu, Sigma -> T Sigma T' (which exists where T is singular, too); the divergence is that of z itself."""
    informed = state.z.moved(np.eye(problem.k)[: problem.p], full=True)
    kl = kernel_of(problem).kl_factors(problem._replace(k=problem.p), state._replace(z=informed))
    return Held(informed.moved(T, full=True), state.beta, kl)


def realigned_start(problem: Problem, state: State, held: Held, T: Array) -> State:
    """Loadings W T^+, so that X is explained as before (as well as can be, where T is singular)."""
    p = problem.p
    undo = np.eye(problem.k)
    undo[:p, :p] = np.linalg.pinv(T)
    views = tuple(view._replace(w=view.w.moved(undo, problem.full)) for view in state.views)
    return State(kernel_of(problem).update_free(problem, views, held), views, state.beta)


def held_bound(problem: Problem, state: State, held: Held) -> float:
    """The bound with q(z_I) held, at a state whose free factors have just been updated."""
    S = state.z.second_moment(problem.n)
    kl_free = updates.kl_free(*kernel_of(problem).evidence(problem, state.views), S, problem.p, problem.full)
    return of_views(problem, state) - held.kl - kl_free


def realign(problem: Problem, state: State, T: Array, accelerate: bool, max_iter: int, tol: float) -> Fit:
    """Hold the informed factors at T and iterate loadings, ARD, noise and free factors to convergence."""
    if problem.coordinates:
        return by_coordinates(problem, state, T, max_iter, tol)
    kernel = kernel_of(problem)
    held = hold(problem, state, T)
    start = realigned_start(problem, state, held, T)

    def step(current: State) -> State:
        # The start is all but converged where T is regular: look first whether anything moves.
        if accelerate and problem.k > problem.p and current is not start:
            current = rotate(problem, current, problem.p, hold_beta=True)
            current = kernel.shifted(problem, current, problem.p)
        views = update_views(problem, current.z, current.views)
        return State(kernel.update_free(problem, views, held), views, current.beta)

    def refresh(leapt: State) -> State:
        return State(kernel.update_free(problem, leapt.views, held), leapt.views, state.beta)

    leap = refresh if accelerate else None
    return iterate(step, lambda s: held_bound(problem, s, held), start, max_iter, tol, leap, rounding=problem.rounding)


def by_coordinates(problem: Problem, state: State, T: Array, max_iter: int, tol: float) -> Fit:
    """The paper's stage 2: only the means of the informed factors and beta are held.

    Loadings start where stage 1 left them; Cov(z~) is updated like everything else.
    """

    def step(current: State) -> State:
        views = update_views(problem, current.z, current.views)
        return current._replace(z=coordinates.update_held(problem, views, state.beta, current.z, T), views=views)

    def measure(current: State) -> float:
        """The bound; the divergence of the informed factors is that of z itself, whose means are those of stage 1."""
        Q, p = updates.evidence(current.views), problem.p
        informed = state.z.moved(np.eye(problem.k)[:p], full=True)
        informed = informed._replace(cov=coordinates.informed_covariance(Q, state.beta, T))
        kl = kernel_of(problem).kl_factors(problem._replace(k=p), state._replace(z=informed))
        kl_free = updates.kl_free(Q, problem.n, current.z.second_moment(problem.n), p, full=False)
        return of_views(problem, current) - kl - kl_free

    start = state._replace(z=coordinates.transformed_means(problem, state.z, T))
    return iterate(step, measure, start, max_iter, tol, rounding=problem.rounding)
