"""The number of factors: start with too many, drop those that ARD turns off, then those that lower the bound.

A factor that explains nothing still costs the divergence of its precisions from their prior, so the bound falls with
every superfluous factor and rises when one is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.factor import placement as placing
from covalign.factor.inference.kernel import kernel_of, update_views
from covalign.factor.inference.state import Problem, State
from covalign.factor.inference.sweeps import Fit

ACTIVE_SHARE = 1e-3  # of the variance of a view; what ARD turns off explains many orders less
SPARE = 5  # factors to begin with beyond what the spectrum suggests
FIRST_SWEEPS = 30  # before factors are dropped for the first time: superfluous ones take many more to vanish


class Choice(NamedTuple):
    """A fit and its number of factors; every number that was tried to the end, and the bound it reached."""

    problem: Problem
    fit: Fit
    tried: dict[int, float]


def choose(
    problem: Problem,
    begin: Callable[[Problem], Fit],
    run: Callable[[Problem, Fit, int | None], Fit],
) -> Choice:
    """The best number of factors. ``begin`` makes a start, ``run`` sweeps until some number or convergence.

    If none of the factors is given up, there were not enough to begin with: twice as many are tried.
    """
    most = max(problem.p + 1, min(problem.n - 1, problem.bounds[-1].stop))
    k, tried = min(generous(problem), most), dict[int, float]()
    while True:
        larger = problem._replace(k=k)
        found, fit = pruned(larger, run(larger, begin(larger), FIRST_SWEEPS), run, tried)
        if found.k < k or k == most:
            break
        k = min(2 * k, most)
    return anew(found, fit, begin, run, tried)


def anew(
    problem: Problem,
    fit: Fit,
    begin: Callable[[Problem], Fit],
    run: Callable[[Problem, Fit, int | None], Fit],
    tried: dict[int, float],
) -> Choice:
    """Fits from the start with this number of factors, then with fewer as long as the bound rises.

    Dropping factors one by one may have led to a lesser optimum, in which none can be spared any more.
    """
    best, found = fit, problem
    for k in range(problem.k, problem.p - 1, -1):
        smaller = problem._replace(k=k)
        fresh = run(smaller, begin(smaller), None)
        tried[k] = max(fresh.elbo[-1], tried.get(k, -np.inf))
        if fresh.elbo[-1] > best.elbo[-1]:
            best, found = fresh, smaller
        elif k < problem.k:
            break
    return Choice(found, best, tried)


def generous(problem: Problem) -> int:
    """P, the eigenvalues of X above those of noise alone (Marchenko and Pastur's edge), and some to spare.

    The edge is sigma^2 (1 + sqrt(D / N))^2 with sigma^2 the mean variance of a feature.
    """
    values = kernel_of(problem).filled(problem).data.spectrum()
    d = problem.bounds[-1].stop
    edge = values.sum() / d * (1 + np.sqrt(d / problem.n)) ** 2
    return int(problem.p + np.count_nonzero(values > edge) + SPARE)


def pruned(
    problem: Problem, fit: Fit, run: Callable[[Problem, Fit, int | None], Fit], tried: dict[int, float]
) -> tuple[Problem, Fit]:
    """Free factors that are off are dropped together, then the least as long as the bound is higher without it."""
    on = np.flatnonzero(active(problem, fit.state))
    if len(on) < problem.k:
        problem, fit = kept(problem, fit.state, on)
    fit = run(problem, fit, None)
    tried[problem.k] = fit.elbo[-1]
    while problem.k > problem.p:
        order = np.argsort(-strength(problem, fit.state)[problem.p :], kind="stable")[:-1]
        smaller, begun = kept(problem, fit.state, np.concatenate([np.arange(problem.p), problem.p + np.sort(order)]))
        without = run(smaller, begun, None)
        tried[smaller.k] = max(without.elbo[-1], tried.get(smaller.k, -np.inf))
        if not without.elbo[-1] > fit.elbo[-1]:
            break
        problem, fit = smaller, without
    return problem, fit


def strength(problem: Problem, state: State) -> Array:
    """The largest share of a view's variance that a factor explains (K)."""
    return np.asarray(placing.shares(problem, state, "loadings").max(axis=0))


def active(problem: Problem, state: State) -> NDArray[np.bool_]:
    """Informed factors, and free ones that explain something in some view."""
    return (strength(problem, state) > ACTIVE_SHARE) | (np.arange(problem.k) < problem.p)


def kept(problem: Problem, state: State, factors: NDArray[np.intp]) -> tuple[Problem, Fit]:
    """These factors alone, loadings adapted to the lack of the others."""
    smaller = problem._replace(k=len(factors))
    views = tuple(v._replace(ard=v.ard._replace(rate=v.ard.rate[factors])) for v in state.views)
    views = update_views(smaller, state.z.moved(np.eye(problem.k)[factors], full=True), views)
    return smaller, Fit(
        State(kernel_of(problem).update_factors(smaller, views, state.beta), views, state.beta), [], False
    )
