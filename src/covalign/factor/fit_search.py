"""Where a fit starts and how many sweeps it gets: starts, warm-up, alternatives, the number of factors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from covalign._core.checks import check_random_state
from covalign._core.messages import MORE_SWEEPS
from covalign._core.progress import Progress
from covalign.factor.inference import n_factors as selection
from covalign.factor.inference import sweeps, updates
from covalign.factor.inference.kernel import kernel_of
from covalign.factor.inference.n_factors import Choice
from covalign.factor.inference.start import alternatives, covariate_turn, start, starts
from covalign.factor.inference.state import Problem
from covalign.factor.inference.sweeps import Fit

TRIAL_SWEEPS = 1  # enough to tell which mirror image is better
NUMBER_TOL = 1e-5  # of fits that tell which number of factors is better
EXPLORE_SWEEPS = 20  # enough to tell which covariate is best given up, where a fit has not converged by then


class Best:
    """The fit with the highest bound so far: what is kept if Ctrl-C ends the search."""

    def __init__(self) -> None:
        self.problem: Problem | None = None
        self.fit: Fit | None = None

    def see(self, problem: Problem, fit: Fit) -> None:
        """Keep it if it is better; a start without a sweep is nothing to keep."""
        if fit.elbo and (self.fit is None or sweeps.height(fit) > sweeps.height(self.fit)):
            self.problem, self.fit = problem, fit


class Search(NamedTuple):
    """The settings of ``InformedFactorAnalysis`` that decide which optimum is found."""

    choose_factors: bool
    accelerate: bool
    max_iter: int
    tol: float
    pretrain_iter: int
    n_init: int
    random_state: Any
    seen: Best

    def best(self, problem: Problem, begun: Fit | None = None) -> Choice:
        """The fit with the highest bound over all starts, and the bounds of the numbers of factors that were tried.

        With ``begun``, only this fit goes on. Ctrl-C ends the search: the best fit so far is kept if it had a sweep.
        """
        fits: list[Fit] = []
        tried: dict[int, float] = {}
        try:
            if begun is not None:
                return Choice(problem, self.run(problem, begun), {})
            problem, first, tried, _ = self._first(problem)
            fits.append(first)
            seeds = check_random_state(self.random_state).spawn(self.n_init - 1)
            fits.extend(self.run(problem, self.begin(problem, rng)) for rng in seeds)
        except KeyboardInterrupt:
            if self.seen.problem is None or self.seen.fit is None:
                raise
            kept = self.seen.fit._replace(converged=False)
            return Choice(self.seen.problem, kept, tried, self._unfinished(len(fits), begun is not None))
        return Choice(problem, max(fits, key=sweeps.height), tried)

    def _unfinished(self, done: int, alone: bool) -> tuple[str, ...]:
        """What is left to do after so many starts."""
        left = []
        if not done:
            left += ["the choice of the number of factors"] * (self.choose_factors and not alone)
            left += ["the sweeps until the bound converges"]
        if self.n_init > 1 and not alone:
            left += [f"{self.n_init - done} of {self.n_init} starts"]
        return tuple(left)

    def _first(self, problem: Problem) -> Choice:
        """A fit from the deterministic start; it chooses the number of factors if that is wanted."""
        if self.choose_factors:
            return selection.choose(problem, self)
        return Choice(problem, self.run(problem, self.explored(problem, self.begin(problem))), {})

    def begin(self, problem: Problem, rng: Any = None) -> Fit:
        """A start: the best of its mirror images after a few sweeps, or the result of a warm-up without covariates."""
        if rng is None and self.accelerate and not self.pretrain_iter:
            images = starts(problem)
            trial = min(TRIAL_SWEEPS, self.max_iter) if len(images) > 1 else 0
            return max((sweeps.fit(problem, image, True, trial, -np.inf) for image in images), key=sweeps.height)
        state = start(problem, rng)
        if not self.pretrain_iter:
            return Fit(state, [], False)
        state = state._replace(beta=np.zeros(problem.p))
        state = state._replace(z=kernel_of(problem).update_factors(problem, state.views, state.beta))
        tol = -np.inf if problem.coordinates else self.tol  # the paper stops early only after its warm-up
        state = sweeps.fit(problem, state, self.accelerate, self.pretrain_iter, tol, supervised=False).state
        if problem.coordinates:  # the paper turns no factor: those of the start stay with their covariates
            return Fit(state, [], False)
        turn = covariate_turn(state.z.zy, problem.k)  # K x K orthonormal: the first P factors at the covariates
        return Fit(updates.transformed(state, turn.T, problem.full), [], False)

    def explored(self, problem: Problem, begun: Fit) -> Fit:
        """The fit after some sweeps; where it has not converged by then, the best of it and of alternative starts."""
        if not self.accelerate or self.pretrain_iter or self.max_iter <= EXPLORE_SWEEPS or problem.of_y:
            return begun  # covariates that count more than once leave no factor without its own
        first = self.run(problem, begun, EXPLORE_SWEEPS)
        if first.converged:
            return first
        others = [Fit(state, [], False) for state in alternatives(problem)]
        return max([first, *(self.run(problem, other, EXPLORE_SWEEPS) for other in others)], key=sweeps.height)

    def explore(self, problem: Problem, begun: Fit, most: int, bar: Progress, target: float = -np.inf) -> Fit:
        """Sweeps to compare numbers of factors, fewer than ``most`` where they settle or will not reach ``target``."""
        if begun.converged or _settled(begun.elbo):
            return begun

        def tick(elbo: list[float]) -> bool:
            bar.update(len(elbo), f"number of factors: {problem.k}, sweep {len(elbo)}, bound {elbo[-1]:.2f}")
            left = most - len(elbo)
            return _settled(elbo) or (len(elbo) > 1 and elbo[-1] + left * (elbo[-1] - elbo[-2]) < target)

        return self._continued(problem, begun, min(most, self.max_iter), tick)

    def run(self, problem: Problem, begun: Fit, most: int | None = None) -> Fit:
        """Sweeps until there are ``most`` of them, or the fit has converged."""
        left = (self.max_iter if most is None else most) - len(begun.elbo)
        if begun.converged or left < 1:
            return begun
        with Progress(None) as bar:

            def tick(elbo: list[float]) -> None:
                bar.update(len(elbo), sweeps.described(elbo, self.tol))

            return self._continued(problem, begun, left, tick)

    def _continued(self, problem: Problem, begun: Fit, most: int, tick: Callable[[list[float]], bool | None]) -> Fit:
        """At most so many further sweeps; what they reach is seen even if Ctrl-C ends them."""
        try:
            rest = sweeps.fit(problem, begun.state, self.accelerate, most, self.tol, tick=tick, done=len(begun.elbo))
        except sweeps.Interrupted as why:
            self.seen.see(problem, why.reached._replace(elbo=[*begun.elbo, *why.reached.elbo]))
            raise
        fit = rest._replace(elbo=[*begun.elbo, *rest.elbo])
        self.seen.see(problem, fit)
        return fit


def _settled(elbo: list[float]) -> bool:
    """Whether further sweeps will hardly change which number of factors is better."""
    return len(elbo) > 1 and elbo[-1] - elbo[-2] < NUMBER_TOL * abs(elbo[-1])


def warn_if_not_converged(converged: bool, n_sweeps: int, max_iter: int, stacklevel: int) -> None:
    """Warn where the bound was still rising, or where rounding ended the fit."""
    if converged:
        return
    text = f"the bound was still rising after {n_sweeps} sweeps: {MORE_SWEEPS}."
    if n_sweeps < max_iter:
        text = (
            f"rounding ended the fit after {n_sweeps} sweeps, before it converged: use scale=True, or less supervision."
        )
    warnings.warn(text, ConvergenceWarning, stacklevel=stacklevel)
