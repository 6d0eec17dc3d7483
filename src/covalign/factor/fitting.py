"""The loop: one sweep is a pure step from state to state, and the bound never falls."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from covalign.factor import updates
from covalign.factor.bound import bound
from covalign.factor.rotation import rotate
from covalign.factor.state import Factors, Problem, State, View


class Fit(NamedTuple):
    """A state and how it was reached."""

    state: State
    elbo: list[float]
    converged: bool


def sweep(problem: Problem, state: State, accelerate: bool, supervised: bool = True) -> State:
    """Rotation, beta, loadings, ARD, noise, then factors: at the end q(z) is the best for everything else."""
    if accelerate:
        state = rotate(problem, state)
    if supervised:
        state = updates.point_at_covariates(state, problem.p)
        state = state._replace(beta=updates.update_beta(state.z, problem.n, problem.p))
    views = update_views(problem, state.z, state.views)
    return State(updates.update_factors(problem, views, state.beta), views, state.beta)


def update_views(problem: Problem, z: Factors, views: tuple[View, ...]) -> tuple[View, ...]:
    """Loadings, ARD and noise of every view, given the factors."""
    S, new = z.second_moment(problem.n), []
    for view, where in zip(views, problem.bounds, strict=True):
        w = updates.update_loadings(S, z.xz[where], view.ard, view.noise, problem.full)
        residuals = updates.expected_residuals(problem.data.xx[where], z.xz[where], S, w)
        new.append(View(w, updates.update_ard(w), updates.update_noise(problem.n, residuals)))
    return tuple(new)


def iterate(
    step: Callable[[State], State],
    measure: Callable[[State], float],
    state: State,
    max_iter: int,
    tol: float,
    tick: Callable[[int, float], None] = lambda i, value: None,
) -> Fit:
    """Step until the bound's relative change is below tol. Interrupted (Ctrl-C), what was reached is returned."""
    elbo: list[float] = []
    try:
        for i in range(max_iter):
            state = step(state)
            elbo.append(measure(state))
            tick(i, elbo[-1])
            if i and elbo[-1] - elbo[-2] < tol * abs(elbo[-1]):
                return Fit(state, elbo, True)
    except KeyboardInterrupt:
        pass
    return Fit(state, elbo, False)


def fit(problem: Problem, state: State, accelerate: bool, max_iter: int, tol: float, supervised: bool = True) -> Fit:
    """Stage 1."""
    return iterate(
        lambda s: sweep(problem, s, accelerate, supervised), lambda s: bound(problem, s), state, max_iter, tol
    )
