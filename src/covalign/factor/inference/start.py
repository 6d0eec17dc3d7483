"""Where a fit begins: principal components, the first P turned to the covariates, the rest their complement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.factor.inference import complete, updates
from covalign.factor.inference.kernel import kernel_of
from covalign.factor.inference.state import RATE_0, SHAPE_0, Factors, Gamma, Problem, State, View

START_COV = 0.01  # q(z) starts close to the components
LEAST_NOISE = 0.01  # of a feature's variance
MOST_CHOICES, MOST_ALTERNATIVES = 1000, 8
LEAST_CHOICE = 0.1  # of the largest determinant: below, what is left would still be nearly dependent
UNDECIDED = 12.0  # N d^2, twice the nats by which a correlation d with the covariates speaks against the mirror image


class Ground(NamedTuple):
    """What every start is made of: the problem with gaps filled, its leading components, and their sums with Y."""

    problem: Problem
    components: Array  # D x r
    zy: Array  # r x P

    @classmethod
    def of(cls, problem: Problem) -> Ground:
        """One decomposition for all starts."""
        filled = kernel_of(problem).filled(problem)
        components = filled.data.principal_map(problem.k)
        return cls(filled, components, components.T @ filled.data.xy)

    @property
    def undecided(self) -> tuple[Array, NDArray[np.bool_]]:
        """Directions among the covariates, one a row, and which of them the components hardly see."""
        _, strengths, Vt = np.linalg.svd(self.zy / self.problem.n, full_matrices=False)
        return Vt, self.problem.n * strengths**2 < UNDECIDED


def starts(problem: Problem) -> list[State]:
    """The start, and its mirror images along the (at most two) directions the covariates hardly determine.

    Along a direction that no covariate sees, a factor and its mirror image fit the covariates equally well, no
    continuous rotation leads from one to the other, and only X can tell which it is.
    """
    ground = Ground.of(problem)
    weak = np.flatnonzero(ground.undecided[1])[-2:]
    mirrored = [of for size in range(len(weak) + 1) for of in combinations(weak, size)]
    return [turned(problem, ground, covariate_turn(ground.zy, problem.k, of)) for of in mirrored]


def alternatives(problem: Problem) -> list[State]:
    """Starts that each give up as many covariates as there are directions the covariates leave undetermined.

    Where covariates are dependent (all dummies of a category), fewer directions of X stand for them than there are
    informed factors, and which of them goes without is a choice no sweep revises. The starts differ in that choice;
    what is given up has to leave the rest independent.
    """
    ground, p = Ground.of(problem), problem.p
    directions, weak = ground.undecided
    null = directions[weak]
    if len(ground.zy) <= p or not 0 < len(null) < p or comb(p, len(null)) > MOST_CHOICES:
        return []
    choices = {of: abs(np.linalg.det(null[:, of])) for of in combinations(range(p), len(null))}
    best = sorted(choices, key=lambda of: -choices[of])[:MOST_ALTERNATIVES]
    good = [list(of) for of in best if choices[of] > LEAST_CHOICE * choices[best[0]]]
    return [turned(problem, ground, turn_without(ground.zy, problem.k, of)) for of in good]


def start(problem: Problem, rng: np.random.Generator | None = None) -> State:
    """The start; with ``rng`` its turn is random."""
    ground = Ground.of(problem)
    turn = covariate_turn(ground.zy, problem.k)
    return turned(problem, ground, turn if rng is None else _random_orthogonal(rng, len(turn)) @ turn)


def turned(problem: Problem, ground: Ground, turn: Array) -> State:
    """Factors at the turned components; loadings, ARD and noise from them."""
    filled, k, p = ground.problem, problem.k, problem.p
    of_x, of_y = np.zeros((len(ground.components), k)), np.zeros((p, k))
    of_x[:, : turn.shape[1]] = ground.components @ turn
    if len(ground.zy) < p:  # too few components for the covariates: the covariates themselves are added
        of_y[:, :p] = np.eye(p)
    z = Factors(of_x, of_y, START_COV * np.eye(k), *filled.data.sums(of_x, of_y))
    beta = np.clip(np.abs(np.diag(z.zy[:p])) / problem.n, 0.01, 0.99)
    views = tuple(_view(filled, z, where) for where in problem.bounds)
    state = updates.point_at_covariates(State(z, views, beta), p)
    state = state._replace(z=complete.update_factors(filled, state.views, beta))
    return kernel_of(problem).started(problem, state)


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
    weight = problem.weight(where)
    noise = Gamma(SHAPE_0 + weight * n / 2, updates.noise_rate(variance) + weight * n * left / 2)
    ard = Gamma(SHAPE_0 + len(regression) / 2, RATE_0 + np.sum(regression**2, axis=0) / 2)
    w = updates.update_loadings(S, z.xz[where], ard, weight * noise.mean, problem.full)
    return View(w, updates.update_ard(w), noise, weight)


def _random_orthogonal(rng: np.random.Generator, size: int) -> Array:
    Q, R = np.linalg.qr(rng.standard_normal((size, size)))
    return np.asarray(Q * np.sign(np.diag(R)))
