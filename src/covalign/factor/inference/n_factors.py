"""The number of factors: what the spectrum suggests, or too many, of which the weakest are dropped.

A factor that explains nothing still costs the divergence of its precisions from their prior, so the bound falls with
every superfluous factor and rises when one is dropped. Numbers are compared after a few sweeps from the same state;
only the number that wins gets a fit to convergence.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign._core.progress import Progress
from covalign.factor import placement as placing
from covalign.factor.inference.heavy_tails import scaled
from covalign.factor.inference.kernel import kernel_of, update_views
from covalign.factor.inference.state import Problem, State
from covalign.factor.inference.sweeps import Fit, height

ACTIVE_SHARE = 1e-3  # of the variance of a view; what ARD turns off explains many orders less
SWEEPS, FEW = 12, 4  # to compare neighbouring numbers, and numbers that are far apart
SAME = 1e-7  # of the bound: what differs by less is the same optimum
SPARE = 5  # factors to begin with beyond what the spectrum suggests


class Choice(NamedTuple):
    """A fit and its number of factors; every number that was tried, and the bound it reached; what Ctrl-C left out."""

    problem: Problem
    fit: Fit
    tried: dict[int, float]
    unfinished: tuple[str, ...] = ()


class Search(Protocol):
    """How a fit begins and goes on."""

    def begin(self, problem: Problem) -> Fit:
        """A start."""

    def explored(self, problem: Problem, begun: Fit) -> Fit:
        """The best of this start and of others after some sweeps."""

    def explore(self, problem: Problem, begun: Fit, most: int, bar: Progress, target: float = -np.inf) -> Fit:
        """At most so many sweeps from here, fewer where the bound will not reach ``target``."""

    def run(self, problem: Problem, begun: Fit) -> Fit:
        """Sweeps until the fit has converged."""


def choose(problem: Problem, search: Search) -> Choice:
    """The best number of factors and its fit.

    Where fits settle at once, numbers above what the spectrum suggests are tried until the bound falls. Otherwise too
    many are pruned; if none is given up, there were not enough to begin with, and twice as many are tried.
    """
    most = max(problem.p + 1, min(problem.n - 1, problem.bounds[-1].stop))
    tried = dict[int, float]()
    with Progress(None) as bar:
        found = problem._replace(k=min(suggested(problem), most - 1))
        climbed = from_below(found, most, search, bar, tried)
        if climbed is None:
            found, other = from_above(found, most, search, bar, tried)
            fresh = search.explore(found, search.begin(found), SWEEPS, bar)
        else:
            found, fresh = climbed
            other = fresh
        chosen, fresh = anew(found, fresh, search, bar, tried)
    fresh = search.run(chosen, search.explored(chosen, fresh))
    if height(other) > height(fresh) + SAME * abs(height(fresh)):  # that start leads to a lesser optimum
        chosen, fresh = found, search.run(found, other)
    note(tried, chosen, fresh)
    return Choice(chosen, fresh, tried)


def from_below(
    problem: Problem, most: int, search: Search, bar: Progress, tried: dict[int, float]
) -> tuple[Problem, Fit] | None:
    """One more factor each time until the bound falls; None if fits do not settle, or many more are needed."""
    best = search.explore(problem, search.begin(problem), SWEEPS, bar)
    for _ in range(min(SPARE, most - problem.k)):
        note(tried, problem, best)
        if len(best.elbo) >= SWEEPS:
            return None
        larger = problem._replace(k=problem.k + 1)
        more = search.explore(larger, search.begin(larger), SWEEPS, bar, height(best))
        note(tried, larger, more)
        if height(more) <= height(best):
            return problem, best
        problem, best = larger, more
    return None


def from_above(
    problem: Problem, most: int, search: Search, bar: Progress, tried: dict[int, float]
) -> tuple[Problem, Fit]:
    """More factors than this, pruned; twice as many as long as all of them are needed."""
    k, step = min(problem.k + SPARE, most), SPARE
    while True:
        larger = problem._replace(k=k)
        found, fit = pruned(larger, search.begin(larger), step, search, bar, tried)
        if found.k < k or k == most:
            return found, fit
        k = min(2 * k, most)
        step = (k - problem.p) // 2


def anew(problem: Problem, best: Fit, search: Search, bar: Progress, tried: dict[int, float]) -> tuple[Problem, Fit]:
    """Starts with fewer factors than the fit ``best`` has, as long as the bound rises.

    Dropping factors may have led to a lesser optimum, in which none can be spared any more: an informed factor that is
    off is never dropped, and a free one may have its place.
    """
    note(tried, problem, best)
    while problem.k > problem.p:
        smaller = problem._replace(k=problem.k - 1)
        fewer = search.explore(smaller, search.begin(smaller), SWEEPS, bar, height(best))
        note(tried, smaller, fewer)
        if height(fewer) <= height(best):
            break
        problem, best = smaller, fewer
    return problem, best


def suggested(problem: Problem) -> int:
    """P or the eigenvalues of X above those of noise alone (Marchenko and Pastur's edge), whatever is more.

    The edge is sigma^2 (1 + sqrt(D / N))^2 with sigma^2 the mean variance of a feature.
    """
    values = kernel_of(problem).filled(problem).data.spectrum()
    d = problem.bounds[-1].stop
    edge = values.sum() / d * (1 + np.sqrt(d / problem.n)) ** 2
    return max(problem.p, int(np.count_nonzero(values > edge)))


def pruned(
    problem: Problem, fit: Fit, step: int, search: Search, bar: Progress, tried: dict[int, float]
) -> tuple[Problem, Fit]:
    """The weakest free factors are dropped as long as the bound is higher without them.

    ``step`` of them first. As the bound rises to one number and falls beyond it, nothing more can be dropped once the
    weakest factor cannot. Both sides of a comparison have the same sweeps; a few tell where many are dropped.
    """
    step = max(1, min(step, problem.k - problem.p))
    fit = search.explore(problem, fit, FEW, bar)
    while problem.k > problem.p:
        smaller, begun = without_weakest(problem, fit.state, step)
        most = FEW if step > 1 else SWEEPS
        without = search.explore(smaller, begun, most, bar, height(fit))
        rival = search.explore(problem, fit, most, bar) if height(without) > height(fit) else fit
        note(tried, problem, rival)
        note(tried, smaller, without)
        if height(without) > height(rival):
            problem, fit = smaller, without
            step = min(2 if step == 1 else 1, max(1, problem.k - problem.p))
        elif step == 1:
            return problem, rival
        else:
            fit, step = rival, step // 2
    return problem, fit


def note(tried: dict[int, float], problem: Problem, fit: Fit) -> None:
    """The best bound of every number."""
    tried[problem.k] = max(height(fit), tried.get(problem.k, -np.inf))


def without_weakest(problem: Problem, state: State, number: int) -> tuple[Problem, Fit]:
    """The free factors that explain least dropped."""
    free = (
        problem.p + np.argsort(-strength(problem, state)[problem.p :], kind="stable")[: problem.k - problem.p - number]
    )
    return kept(problem, state, np.concatenate([np.arange(problem.p), np.sort(free)]))


def strength(problem: Problem, state: State) -> Array:
    """The largest share of a view's variance that a factor explains (K)."""
    return np.asarray(placing.shares(scaled(problem, state), state, "loadings").max(axis=0))


def kept(problem: Problem, state: State, factors: NDArray[np.intp]) -> tuple[Problem, Fit]:
    """These factors alone, loadings adapted to the lack of the others."""
    smaller, now = problem._replace(k=len(factors)), scaled(problem, state)._replace(k=len(factors))
    views = tuple(v._replace(ard=v.ard._replace(rate=v.ard.rate[factors])) for v in state.views)
    views = update_views(now, state.z.moved(np.eye(problem.k)[factors], full=True), views)
    z = kernel_of(now).update_factors(now, views, state.beta)
    return smaller, Fit(State(z, views, state.beta, state.scales), [], False)
