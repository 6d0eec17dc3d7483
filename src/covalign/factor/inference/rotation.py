"""The rotation step: WZ = (W R^-1)(R Z) for any invertible R. Plain sweeps crawl along this valley; we maximise over R.

Full posterior (Sw = sum_d E[w_d w_d'] per view, c = E[Z]'Y, D the prior precisions):

    L(R, beta) = -1/2 sum_k D_k (R S R')_kk + sum_p D_p (beta_p (R c)_pp - N beta_p^2 / 2) + N/2 sum_p log D_p
                 + (N - sum_m D_m) log|det R| - sum_m (a0 + D_m/2) sum_k log(b0 + (R^-T Sw_m R^-1)_kk / 2)

with D_p = 1 / (1 - beta_p^2) and the ARD precisions at their optimum for every R. In the mean field covariances are
held, so no determinant appears, S becomes E[Z]'E[Z], Sw the means' own, and what the held covariances cost is added
(``Held``).
R and beta move together (beta = tanh gamma): one without the other crawls where covariates are nearly dependent.
R moves along Cayley curves, R = (I - E/2)^-1 (I + E/2). L is stiff across the set {R S R' = S, R c = c} (a factor of N)
and soft along it; that set is a group, a Cayley curve that starts along it stays in it, a straight line leaves it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.factor.inference import updates
from covalign.factor.inference.state import RATE_0, SHAPE_0, Problem, State
from covalign.factor.inference.updates import BETA_MAX

Indices: TypeAlias = NDArray[np.intp]

NEWTON_STEPS, CG_STEPS, HALVINGS = 4, 40, 30
ENOUGH = 1e-3  # nats; the next sweep moves everything again
LONGEST = 0.5  # of the entries of E: beyond what the second order sees, a shorter step is tried as well
GAMMA_MAX = float(np.arctanh(BETA_MAX))


def rotate(problem: Problem, state: State, held: int = 0, hold_beta: bool = False) -> State:
    """The state after the best (R, beta) found, ARD precisions at their optimum; never worse than before.

    The first ``held`` factors stay as they are (others may still take in parts of them); so does beta, if wanted.
    """
    landscape = Landscape.of(problem, state)
    R, gamma = ascend(landscape, np.arctanh(state.beta), Moving(held, not hold_beta))
    moved = updates.transformed(state._replace(beta=beta_of(gamma)), R, problem.full)
    return moved._replace(views=tuple(view._replace(ard=updates.update_ard(view.w)) for view in moved.views))


def beta_of(gamma: Array) -> Array:
    """tanh gamma, kept away from 1."""
    return np.clip(np.tanh(gamma), -BETA_MAX, BETA_MAX)


class Held(NamedTuple):
    """Covariances that R leaves alone (mean field): -1/2 sum_h (v_h . diag(R S_h R') + tr(cov_h R^-T A_h R^-1)).

    h are groups of features that the same samples have: one where nothing is missing.
    """

    v: Array  # H x K: sum of tau_d Var(w_d) over the group's features
    S: Array  # H x K x K: E[Z]'E[Z] over its samples
    A: Array  # H x K x K: sum of tau_d E[w_d]E[w_d]'
    cov: Array  # H x K x K: sum of Cov(z_n) over its samples

    def moved(self, R: Array, P: Array) -> Held:
        """Seen from R."""
        return self._replace(S=R @ self.S @ R.T, A=P.T @ self.A @ P)

    def value(self, R: Array, P: Array) -> float:
        """As above."""
        of_w = np.sum(self.v * np.sum((R @ self.S) * R, axis=2))
        return -float(of_w + np.sum(self.cov * (P.T @ self.A @ P))) / 2

    def gradient(self) -> Array:
        """By R, at R = I."""
        return np.asarray(np.sum(self.A @ self.cov - self.v[:, :, None] * self.S, axis=0))

    def times(self, E: Array) -> Array:
        """Minus its Hessian along straight lines, E E in tr(cov A E E) left to ``Curvature.G``, times E."""
        return np.asarray(np.sum(self.v[:, :, None] * (E @ self.S) + self.A @ E @ self.cov, axis=0))


class Landscape(NamedTuple):
    """The sums L depends on. ``moved(R)`` shifts the origin, so that R = I can be the point of every expansion."""

    n: int
    S: Array  # E[Z'Z]; in the mean field E[Z]'E[Z]
    c: Array  # Y'E[Z], P x K
    held_z: Array  # posterior variance of informed factors that R does not move, and E[y_p'y_p] - N
    held_c: Array  # their covariance with missing covariates
    log_det: int  # coefficient of log|det R|
    held: Held | None  # mean field
    shapes: list[float]
    Sw: list[Array]
    held_w: list[Array]
    kappa: float = 0.0  # (1 - beta^2)^kappa is the prior of beta

    @classmethod
    def of(cls, problem: Problem, state: State) -> Landscape:
        """The landscape of a state, seen from where it is."""
        z, views, n, k, p = state.z, state.views, problem.n, problem.k, problem.p
        sizes = [len(view.w.mean) for view in views]
        shapes = [SHAPE_0 + size / 2 for size in sizes]
        if problem.full:
            Sw = [view.w.weighted_second_moment(np.ones(size)) for view, size in zip(views, sizes, strict=True)]
            held_w = [np.zeros(k)] * len(views)
            S, log_det, kappa = z.second_moment(n), n - sum(sizes), problem.beta_prior
            return cls(n, S, z.zy.T, z.excess, np.zeros(p), log_det, None, shapes, Sw, held_w, kappa)
        Sw, held_w = [view.w.mean.T @ view.w.mean for view in views], [view.w.variance.sum(axis=0) for view in views]
        means, covs = z.by_column(n)
        v, A = np.zeros(means.shape[:2]), np.zeros_like(means)
        for view in views:
            of_v, of_A = view.w.held_by_column(view.precision)
            v[view.w.patterns] += of_v
            A[view.w.patterns] += of_A
        held_z = np.diag(z.total_cov(n))[:p] + z.excess
        c = (z.zy - z.zy_held).T
        held, kappa = Held(v, means, A, covs), problem.beta_prior
        return cls(n, z.zz, c, held_z, np.diag(z.zy_held[:p]), 0, held, shapes, Sw, held_w, kappa)

    def moved(self, R: Array) -> Landscape:
        """The same landscape seen from R."""
        P = np.asarray(np.linalg.inv(R), dtype=np.float64)
        return self._replace(
            S=R @ self.S @ R.T,
            c=self.c @ R.T,
            held=None if self.held is None else self.held.moved(R, P),
            Sw=[P.T @ Sw @ P for Sw in self.Sw],
        )

    def value(self, R: Array, gamma: Array) -> float:
        """L(R, tanh gamma); -inf where R is singular or mirrors."""
        n, p, beta = self.n, len(gamma), beta_of(gamma)
        sign, log_det = np.linalg.slogdet(R)
        if sign <= 0:
            return -np.inf
        P = np.asarray(np.linalg.inv(R), dtype=np.float64)
        quadratic, C = np.sum((R @ self.S) * R, axis=1), np.sum(R[:p] * self.c, axis=1) + self.held_c
        weight, D = updates.prior_precision(beta, len(R)), 1 / (1 - beta**2)
        value = -weight @ quadratic / 2 - D @ self.held_z / 2 + D @ (beta * C - n * beta**2 / 2)
        value += (n / 2 - self.kappa) * np.sum(np.log(D)) + self.log_det * log_det
        if self.held is not None:
            value += self.held.value(R, P)
        for shape, Sw, held in zip(self.shapes, self.Sw, self.held_w, strict=True):
            value -= shape * np.sum(np.log(RATE_0 + (np.sum((Sw @ P) * P, axis=0) + held) / 2))
        return float(value)

    def gradient(self, gamma: Array) -> tuple[Array, Array]:
        """The derivatives of L by R and by gamma, at R = I."""
        n, p, beta = self.n, len(gamma), beta_of(gamma)
        D, own, C = 1 / (1 - beta**2), np.diag(self.S)[:p] + self.held_z, np.diag(self.c) + self.held_c
        weight = updates.prior_precision(beta, len(self.S))
        by_R = self.log_det * np.eye(len(self.S)) - weight[:, None] * self.S
        by_R[:p] += (D * beta)[:, None] * self.c
        if self.held is not None:
            by_R += self.held.gradient()
        for shape, Sw, held in zip(self.shapes, self.Sw, self.held_w, strict=True):
            by_R += shape * Sw / (RATE_0 + (np.diag(Sw) + held) / 2)
        return by_R, D * ((1 + beta**2) * C - n * beta**3 - beta * own) - 2 * self.kappa * beta

    def curvature(self, gamma: Array, slope: Array) -> Curvature:
        """-L to second order at R = I + E + E^2 / 2, R^-1 = I - E + E^2 / 2, as a linear operator on (E, gamma).

        Straight lines I + E first; what E^2 / 2 adds is its product with the slope, L's gradient by R.
        """
        n, p, beta = self.n, len(gamma), beta_of(gamma)
        D, quadratic, C = 1 / (1 - beta**2), np.diag(self.S)[:p], np.diag(self.c) + self.held_c
        ard, G = [], (slope.T - self.log_det * np.eye(len(self.S))) / 2  # tr(G E E); log|I + E| = tr E - tr E^2 / 2
        for shape, Sw, held in zip(self.shapes, self.Sw, self.held_w, strict=True):
            g = 1 / (RATE_0 + (np.diag(Sw) + held) / 2)
            ard.append((shape, Sw, g))
            G = G - shape * g[:, None] * Sw
        if self.held is not None:
            G = G - np.sum(self.held.cov @ self.held.A, axis=0)
        u = (1 + beta**2) * C - n * beta**3 - beta * (quadratic + self.held_z)
        return Curvature(
            weight=updates.prior_precision(beta, len(self.S)),
            S=self.S,
            G=G,
            ard=ard,
            held=self.held,
            cross=(1 + 2 * beta**2 * D)[:, None] * self.c - (2 * beta * D)[:, None] * self.S[:p],
            of_gamma=quadratic + self.held_z + 3 * n * beta**2 - 2 * beta * C - 2 * beta * D * u + 2 * self.kappa / D,
        )


class Curvature(NamedTuple):
    """The negative Hessian of L at R = I, without its K^2 x K^2 matrix."""

    weight: Array
    S: Array
    G: Array
    ard: list[tuple[float, Array, Array]]
    held: Held | None
    cross: Array
    of_gamma: Array

    def times(self, E: Array, delta: Array) -> tuple[Array, Array]:
        """-H (E, delta), each term the derivative of its quadratic form."""
        p = len(delta)
        EG = E @ self.G + self.G @ E
        out = self.weight[:, None] * (E @ self.S) - EG.T
        for shape, Sw, g in self.ard:
            SwE = Sw @ E
            out += shape * (SwE * g - Sw * (g**2 * np.diag(SwE)))
        if self.held is not None:
            out += self.held.times(E)
        out[:p] -= delta[:, None] * self.cross
        return out, self.of_gamma * delta - np.sum(self.cross * E[:p], axis=1)

    def matrix(self, i: Indices, j: Indices) -> Array:
        """-H itself on the entries E_ij asked for and all of gamma. Between E_ij and E_kl (d is Kronecker's):

        d_ik weight_i S_jl - d_jk G_li - d_il G_jk + d_jl sum_m shape_m (g_j Sw_ik - g_j^2 Sw_ij Sw_kj),

        and d_ik v_i S_jl + A_ik cov_lj for every group of held covariances.
        """
        k, l, i, j, of = i, j, i[:, None], j[:, None], np.arange(len(self.of_gamma))  # noqa: E741 the formula's letters
        by_E = (i == k) * self.weight[i] * self.S[j, l] - (j == k) * self.G[l, i] - (i == l) * self.G[j, k]
        for shape, Sw, g in self.ard:
            by_E += (j == l) * shape * (g[j] * Sw[i, k] - g[j] ** 2 * Sw[i, j] * Sw[k, j])
        if self.held is not None:
            for v, S, A, cov in zip(*self.held, strict=True):
                by_E += (i == k) * v[i] * S[j, l] + A[i, k] * cov[l, j]
        by_both = (i == of) * -self.cross[:, l].T
        return np.block([[by_E, by_both], [by_both.T, np.diag(self.of_gamma)]])

    def pairs(self) -> tuple[Array, Array]:
        """The entries coupling E_ij with itself and with E_ji: nearly all there is once S and Sw are near diagonal."""
        diagonal = self.weight[:, None] * np.diag(self.S)
        crossing = -np.add.outer(np.diag(self.G), np.diag(self.G))
        for shape, Sw, g in self.ard:
            diagonal = diagonal + shape * (np.outer(np.diag(Sw), g) - Sw**2 * g**2)
        if self.held is not None:
            v, S, A, cov = self.held
            diagonal = diagonal + v.T @ np.einsum("hkk->hk", S)
            diagonal = diagonal + np.einsum("hkk->hk", A).T @ np.einsum("hkk->hk", cov)
            crossing = crossing + np.sum(A * cov, axis=0) * ~np.eye(len(self.S), dtype=bool)
        return diagonal, crossing


class Pairs(NamedTuple):
    """The inverse of the 2 x 2 blocks of (E_ij, E_ji), made positive definite, and of the diagonal for gamma."""

    own: Array
    other: Array
    of_gamma: Array

    @classmethod
    def of(cls, curvature: Curvature) -> Pairs:
        """Eigenvalues below a thousandth of the typical are lifted there."""
        a, b = curvature.pairs()
        np.fill_diagonal(a, np.diag(a) + np.diag(b))
        np.fill_diagonal(b, 0.0)
        half, gap = (a + a.T) / 2, np.hypot((a - a.T) / 2, b)
        least = 1e-3 * float(np.median(np.abs(a)))
        low = np.minimum(half - gap - least, 0)  # lifting the whole block keeps its shape
        a = a - low
        det = a * a.T - b * b
        return cls(a.T / det, b / det, 1 / np.maximum(curvature.of_gamma, least))

    def solve(self, E: Array, delta: Array) -> tuple[Array, Array]:
        """The preconditioned gradient."""
        return self.own * E - self.other * E.T, self.of_gamma * delta


class Moving(NamedTuple):
    """Which part of a direction may be followed: not the first ``held`` rows of E, and gamma only where it moves."""

    held: int = 0
    gamma: bool | NDArray[np.bool_] = True

    def part(self, E: Array, delta: Array) -> tuple[Array, Array]:
        """The direction with the rest set to zero, in place."""
        E[: self.held] = 0.0
        return E, np.where(self.gamma, delta, 0.0)

    def within(self, gamma: Array, by_gamma: Array) -> Moving:
        """The same, but gamma at its limit (beta cannot come closer to 1) does not move if it would go beyond."""
        beyond = (np.abs(gamma) >= GAMMA_MAX) & (gamma * by_gamma > 0)
        return self._replace(gamma=self.gamma & ~beyond)


EVERYTHING = Moving()


def ascend(landscape: Landscape, gamma: Array, moving: Moving = EVERYTHING) -> tuple[Array, Array]:
    """Newton's method, its system solved by conjugate gradients, the origin moved along so that R = I every time."""
    R, here = np.eye(len(landscape.S)), landscape
    for _ in range(NEWTON_STEPS):
        slope, by_gamma = here.gradient(gamma)
        free = moving.within(gamma, by_gamma)
        slope, by_gamma = free.part(slope, by_gamma)
        E, delta = newton_direction(here.curvature(gamma, slope), slope, by_gamma, free)
        if (np.vdot(slope, E) + by_gamma @ delta) / 2 < ENOUGH:  # what this step promises
            break
        longest = float(np.abs(E).max())
        lengths = (1.0,) if longest <= LONGEST else (1.0, LONGEST / longest)
        found = [searched(here, gamma, E, delta, length) for length in lengths]
        value, step, ahead = max(found, key=lambda reached: reached[0])
        if value == -np.inf:
            break
        R, gamma, here = step @ R, ahead, here.moved(step)
    return R, gamma


def searched(here: Landscape, gamma: Array, E: Array, delta: Array, length: float) -> tuple[float, Array, Array]:
    """The first point higher than here, steps halved from ``length`` times the direction: its value, R and gamma.

    The value is -inf if there is none.
    """
    value = here.value(np.eye(len(E)), gamma)
    for halving in range(HALVINGS):
        part = length * 0.5**halving
        step, ahead = cayley(part * E), np.clip(gamma + part * delta, -GAMMA_MAX, GAMMA_MAX)
        reached = here.value(step, ahead)
        if reached > value:
            return reached, step, ahead
    return -np.inf, step, ahead


def cayley(E: Array) -> Array:
    """(I - E/2)^-1 (I + E/2) = I + E + E^2 / 2 + ..."""
    eye = np.eye(len(E))
    return np.asarray(np.linalg.solve(eye - E / 2, eye + E / 2))


def newton_direction(curvature: Curvature, E: Array, delta: Array, moving: Moving) -> tuple[Array, Array]:
    """(-H)^-1 gradient by preconditioned conjugate gradients, up to where -H stops being positive (Steihaug)."""
    pairs = Pairs.of(curvature)
    r_E, r_d = E, delta
    x_E, x_d = np.zeros_like(E), np.zeros_like(delta)
    y_E, y_d = moving.part(*pairs.solve(r_E, r_d))
    d_E, d_d = y_E, y_d
    rho = start = np.vdot(r_E, y_E) + r_d @ y_d
    for i in range(CG_STEPS):
        q_E, q_d = moving.part(*curvature.times(d_E, d_d))
        bend = np.vdot(d_E, q_E) + d_d @ q_d
        if bend <= 0:
            return (d_E, d_d) if i == 0 else (x_E, x_d)
        step = rho / bend
        x_E, x_d = x_E + step * d_E, x_d + step * d_d
        r_E, r_d = r_E - step * q_E, r_d - step * q_d
        y_E, y_d = moving.part(*pairs.solve(r_E, r_d))
        rho, before = np.vdot(r_E, y_E) + r_d @ y_d, rho
        if rho <= 1e-4 * start or step * before < ENOUGH / CG_STEPS:  # twice the nats this step was worth
            break
        d_E, d_d = y_E + rho / before * d_E, y_d + rho / before * d_d
    return x_E, x_d
