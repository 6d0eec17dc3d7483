"""The loop: one sweep is a pure step from state to state, and the bound never falls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from covalign._core.linalg import Array
from covalign._core.threads import limited
from covalign.factor.inference import coordinates, heavy_tails, updates
from covalign.factor.inference.bound import bound
from covalign.factor.inference.engines import Gram
from covalign.factor.inference.kernel import kernel_of, update_views
from covalign.factor.inference.rotation import rotate
from covalign.factor.inference.state import Problem, State

LONGEST_LEAP = 64.0
ROUNDS, SINGLE = 4, 8  # rounds of a sweep, and the sweeps before that have only one: most simulated data need no more
LEFT, SLOWEST = 0.001, 0.98  # nats left to gain that end a fit, and the slowest rate they are computed with
SMALL = 2e8  # multiplications in a sweep; with fewer, BLAS threads cost more than they save


class Fit(NamedTuple):
    """A state and how it was reached."""

    state: State
    elbo: list[float]
    converged: bool


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during sweeps, and the fit so far."""

    def __init__(self, reached: Fit) -> None:
        super().__init__()
        self.reached = reached


def height(fit: Fit) -> float:
    """The bound a fit has reached."""
    return fit.elbo[-1] if fit.elbo else -np.inf


def described(elbo: list[float], tol: float) -> str:
    """How far a fit is, for a progress bar."""
    gain = (elbo[-1] - elbo[-2]) / abs(elbo[-1]) if len(elbo) > 1 else float("inf")
    return f"sweep {len(elbo)}: bound {elbo[-1]:.2f}, relative change {gain:.1e} (stops at {tol:.0e})"


def few_threads(problem: Problem) -> Any:
    """One BLAS thread for small matrices: starting a second takes longer than the work."""
    d = problem.bounds[-1].stop
    work = d * problem.k * (d if isinstance(problem.data, Gram) else 2 * problem.n)
    return limited() if work < SMALL else nullcontext()


def sweep(problem: Problem, state: State, accelerate: bool, supervised: bool = True, rounds: int = 1) -> State:
    """Rotation and shift, then rounds of updates.

    The rotation takes longer than a round on small data. Where noise precisions and the space that the loadings span
    change slowly, several rounds for one rotation need fewer sweeps and less time.
    """
    if accelerate:
        now = heavy_tails.scaled(problem, state)
        state = kernel_of(problem).shifted(now, rotate(now, state, hold_beta=not supervised))
    for _ in range(rounds):
        state = updated(problem, state, supervised)
    return state


def updated(problem: Problem, state: State, supervised: bool) -> State:
    """Beta, loadings, ARD, noise, scales, factors: at the end q(z) is the best for everything else."""
    kernel, problem = kernel_of(problem), heavy_tails.scaled(problem, state)
    if supervised:
        state = updates.point_at_covariates(state, problem.p)
        state = state._replace(beta=updates.update_beta(state.z, problem.n, problem.p, problem.beta_prior))
    views = update_views(problem, state.z, state.views)
    if problem.coordinates:
        return State(coordinates.update_factors(problem, views, state.beta, state.z), views, state.beta)
    scales = heavy_tails.update_scales(problem, views, state.z)
    problem = heavy_tails.scaled(problem, state._replace(scales=scales))
    return State(kernel.update_factors(problem, views, state.beta), views, state.beta, scales)


def iterate(
    step: Callable[[State], State],
    measure: Callable[[State], float],
    state: State,
    max_iter: int,
    tol: float,
    refresh: Callable[[State], State] | None = None,
    tick: Callable[[list[float]], bool | None] = lambda elbo: None,
    rounding: float = 0.0,
) -> Fit:
    """Step until the bound hardly rises (``settled``). Ctrl-C raises ``Interrupted`` with the state so far.

    ``tick`` sees every bound and ends the fit by returning True.

    With ``refresh`` every fourth step starts from an extrapolation of the last three; it counts only if it ends higher.
    A plain step raises the bound up to ``rounding`` (nats). If it falls, the state before that step is the best that
    numbers of this precision can give; the fit has converged only if the fall is rounding, or below the tolerance.
    """
    elbo: list[float] = []
    last: list[State] = []
    try:
        while len(elbo) < max_iter:
            leap = refresh is not None and len(last) == 3
            new = step(refresh(extrapolated(*last)) if refresh is not None and leap else state)
            value = measure(new)
            if leap:
                last = []
                if not value > elbo[-1]:
                    continue
            elif elbo and not value >= elbo[-1]:
                return Fit(state, elbo, elbo[-1] - value <= max(rounding, tol * abs(value)))
            state = new
            elbo.append(value)
            converged = settled(elbo, tol, ahead=refresh is not None)
            last.append(state)
            enough = tick(elbo)
            if converged or enough:
                return Fit(state, elbo, converged)
    except KeyboardInterrupt as why:
        raise Interrupted(Fit(state, elbo, False)) from why
    return Fit(state, elbo, False)


def settled(elbo: list[float], tol: float, ahead: bool) -> bool:
    """Whether the last relative change is below tol or, looking ahead, all further sweeps promise next to nothing.

    The promise is the sum of a geometric series, with the larger of the last two ratios of gains (Aitken 1926); it has
    to be below .001 nats, or less where tol is below 1e-8. A relative change of 1e-8 is far less than that where the
    bound is a few hundred nats (small data).
    """
    if len(elbo) < 2:
        return False
    gains = np.diff(elbo[-4:])
    if gains[-1] < tol * abs(elbo[-1]):
        return True
    if not ahead or len(elbo) <= SINGLE or gains.min() <= 0:  # the first gains say nothing of the last
        return False
    rate = min(float(np.max(gains[1:] / gains[:-1])), SLOWEST)
    return bool(gains[-1] * rate / (1 - rate) < LEFT * min(tol / 1e-8, 1.0))


def extrapolated(first: State, second: State, third: State) -> State:
    """SQUAREM: precisions and beta along t0 - 2 s r + s^2 v, r = t1 - t0, v = t2 - 2 t1 + t0, s = -|r| / |v|.

    Where a precision grows without bound or beta tends to 1, plain steps crawl; on the log (and tanh) scale their path
    is nearly straight, and a leap takes many at once.
    """
    t0, t1, t2 = (_coordinates(state) for state in (first, second, third))
    r, v = t1 - t0, t2 - 2 * t1 + t0
    size = np.linalg.norm(v)
    s = -float(np.clip(np.linalg.norm(r) / size if size > 0 else 1.0, 1.0, LONGEST_LEAP))
    return _with_coordinates(third, t0 - 2 * s * r + s**2 * v)


def _coordinates(state: State) -> Array:
    """arctanh beta, then log rates of noise and ARD of every view."""
    logs = [np.log(gamma.rate) for view in state.views for gamma in (view.noise, view.ard)]
    return np.concatenate([np.arctanh(state.beta), *logs])


def _with_coordinates(state: State, t: Array) -> State:
    """The state with beta and rates at t (not beyond a factor e^5 of where they were)."""
    now = _coordinates(state)
    t = np.clip(t, now - 5, now + 5)
    beta, at, views = np.clip(np.tanh(t[: len(state.beta)]), 0.0, updates.BETA_MAX), len(state.beta), []
    for view in state.views:
        d, k = view.w.mean.shape
        noise, ard = np.exp(t[at : at + d]), np.exp(t[at + d : at + d + k])
        views.append(view._replace(noise=view.noise._replace(rate=noise), ard=view.ard._replace(rate=ard)))
        at += d + k
    return state._replace(views=tuple(views), beta=beta)


def fit(
    problem: Problem,
    state: State,
    accelerate: bool,
    max_iter: int,
    tol: float,
    supervised: bool = True,
    tick: Callable[[list[float]], bool | None] = lambda elbo: None,
    done: int = 0,
) -> Fit:
    """Stage 1; ``done`` sweeps came before."""
    steps = count(done)

    def refresh(leapt: State) -> State:
        beta = leapt.beta if supervised else state.beta
        now = heavy_tails.scaled(problem, leapt)
        return leapt._replace(z=kernel_of(now).update_factors(now, leapt.views, beta), beta=beta)

    def step(s: State) -> State:
        return sweep(problem, s, accelerate, supervised, ROUNDS if accelerate and next(steps) >= SINGLE else 1)

    return iterate(
        step,
        lambda s: bound(problem, s),
        state,
        max_iter,
        tol,
        refresh if accelerate else None,
        tick,
        problem.rounding,
    )
