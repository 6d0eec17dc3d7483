"""Where a fit begins: principal components, the first P turned to the covariates, the rest their complement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np
import scipy.linalg

from covalign._linalg import Array
from covalign.factor import gaps, updates
from covalign.factor.state import RATE_0, SHAPE_0, Factors, Gamma, Problem, State, View

START_COV = 0.01  # q(z) starts close to the components
LEAST_NOISE = 0.01  # of a feature's variance
MOST_CHOICES, MOST_ALTERNATIVES = 1000, 8
UNDECIDED = 12.0  # N d^2, twice the nats by which a correlation d with the covariates speaks against the mirror image


def starts(problem: Problem) -> list[State]:
    """The start, and its mirror images along the (at most two) directions the covariates hardly determine.

    Along a direction that no covariate sees, a factor and its mirror image fit the covariates equally well, no
    continuous rotation leads from one to the other, and only X can tell which it is.
    """
    if isinstance(problem.data, gaps.Gapped):
        filled = problem._replace(data=gaps.filled(problem.data, problem.k))
        return [gaps.started(problem, state) for state in starts(filled)]
    strengths = np.linalg.svd(problem.data.principal_map(problem.k).T @ problem.data.xy, compute_uv=False) / problem.n
    weak = [i for i in range(len(strengths)) if problem.n * strengths[i] ** 2 < UNDECIDED][-2:]
    return [start(problem, mirrored=of) for size in range(len(weak) + 1) for of in combinations(weak, size)]


def alternatives(problem: Problem) -> list[State]:
    """Starts that each give up as many covariates as there are directions the covariates leave undetermined.

    Where covariates are dependent (all dummies of a category), fewer directions of X stand for them than there are
    informed factors, and which of them goes without is a choice no sweep revises. The starts differ in that choice;
    what is given up has to leave the rest independent.
    """
    if isinstance(problem.data, gaps.Gapped):
        filled = problem._replace(data=gaps.filled(problem.data, problem.k))
        return [gaps.started(problem, state) for state in alternatives(filled)]
    components = problem.data.principal_map(problem.k)
    if components.shape[1] <= problem.p:
        return []
    _, strengths, Vt = np.linalg.svd(components.T @ problem.data.xy / problem.n, full_matrices=False)
    null = Vt[problem.n * strengths**2 < UNDECIDED]
    if not 0 < len(null) < problem.p or comb(problem.p, len(null)) > MOST_CHOICES:
        return []
    choices = {of: abs(np.linalg.det(null[:, of])) for of in combinations(range(problem.p), len(null))}
    best = sorted(choices, key=lambda of: -choices[of])[:MOST_ALTERNATIVES]
    return [start(problem, given_up=of) for of in best if choices[of] > 0.1 * choices[best[0]]]


def start(
    problem: Problem,
    rng: np.random.Generator | None = None,
    mirrored: Sequence[int] = (),
    given_up: Sequence[int] = (),
) -> State:
    """Factors at the (turned) components, loadings, ARD and noise from them. With ``rng`` the turn is random."""
    if isinstance(problem.data, gaps.Gapped):
        filled = problem._replace(data=gaps.filled(problem.data, problem.k))
        return gaps.started(problem, start(filled, rng, mirrored, given_up))
    components = problem.data.principal_map(problem.k)
    of_x, of_y = np.zeros((len(components), problem.k)), np.zeros((problem.p, problem.k))
    turn = covariate_turn(components.T @ problem.data.xy, problem.k, mirrored)
    if given_up:
        turn = turn_without(components.T @ problem.data.xy, problem.k, list(given_up))
    if rng is not None:
        turn = _random_orthogonal(rng, len(turn)) @ turn
    of_x[:, : turn.shape[1]] = components @ turn
    if components.shape[1] < problem.p:  # too few components to stand for every covariate: let it stand for itself
        of_y[:, : problem.p] = np.eye(problem.p)
    z = Factors(of_x, of_y, START_COV * np.eye(problem.k), *problem.data.sums(of_x, of_y))
    beta = np.clip(np.abs(np.diag(z.zy[: problem.p])) / problem.n, 0.01, 0.99)
    views = tuple(_view(problem, z, where) for where in problem.bounds)
    state = updates.point_at_covariates(State(z, views, beta), problem.p)
    return state._replace(z=updates.update_factors(problem, state.views, beta))


def covariate_turn(zy: Array, k: int, mirrored: Sequence[int] = ()) -> Array:
    """r x min(r, K): orthonormal; its first P columns U V' point at the covariates (zy = U D V'), then a complement."""
    r, p = zy.shape
    U, _, Vt = np.linalg.svd(zy, full_matrices=False)
    U[:, list(mirrored)] *= -1
    if r <= p:
        return np.asarray(U @ Vt)[:, : max(p, k)] if r else np.zeros((0, 0))
    informed = U @ Vt
    complement = scipy.linalg.qr(informed)[0][:, p:]
    # Complements are many; the one closest to the components themselves keeps the largest first.
    left, _, right = np.linalg.svd(complement @ complement.T[:, p:], full_matrices=False)
    return np.hstack([informed, left[:, : r - p] @ right[: r - p]])


def turn_without(zy: Array, k: int, given_up: list[int]) -> Array:
    """``covariate_turn`` of the other covariates; those given up take the last, least, columns of the complement."""
    p, g = zy.shape[1], len(given_up)
    others = [i for i in range(p) if i not in given_up]
    turn = covariate_turn(zy[:, others], k)
    order = np.empty(turn.shape[1], dtype=np.intp)
    order[others], order[given_up] = np.arange(p - g), np.arange(turn.shape[1] - g, turn.shape[1])
    order[p:] = np.arange(p - g, turn.shape[1] - g)
    return turn[:, order]


def _view(problem: Problem, z: Factors, where: slice) -> View:
    """Noise from what the components leave, ARD from plain regression, then the loadings' own update."""
    n, S = problem.n, z.second_moment(problem.n)
    regression = z.xz[where] / n
    variance = problem.data.xx[where] / n
    left = np.maximum(variance - np.sum(regression**2, axis=1), LEAST_NOISE * variance)
    noise = Gamma(SHAPE_0 + n / 2, RATE_0 + n * left / 2)
    ard = Gamma(SHAPE_0 + len(regression) / 2, RATE_0 + np.sum(regression**2, axis=0) / 2)
    w = updates.update_loadings(S, z.xz[where], ard, noise, problem.full)
    return View(w, updates.update_ard(w), noise)


def _random_orthogonal(rng: np.random.Generator, size: int) -> Array:
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    return np.asarray(Q * np.sign(np.diag(R)))
