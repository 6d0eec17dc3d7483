"""Uncertainty of the informed factors: q(z) and q(w) hold the rotation fixed; here the rotation is uncertain, too.

X sees only the product WZ. Along (W R^-1)(R Z) the posterior is that of the priors and of the volume element, which is
exp L of the full posterior (``rotation``) against the invariant measure on R, ARD precisions integrated out, whatever
factorisation q has. Its Laplace approximation at R = I gives (R_pk, gamma_p) a covariance, and with it

    Var(z_np) = Sigma_pp + m_n' C_pp m_n + 1/N,    C_pq = Cov(R_p., R_q.),

the last because zero means the mean of the N samples fitted. In a regime z~ = T z, so C_pp becomes
sum_qr T_pq T_pr C_qr, m_n still the means before realigning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from covalign._core.linalg import Array
from covalign.factor.inference import updates
from covalign.factor.inference.kernel import kernel_of
from covalign.factor.inference.patterns import Gapped
from covalign.factor.inference.rotation import GAMMA_MAX, Landscape, cayley
from covalign.factor.inference.state import Problem, State

# A turn of two factors by an angle phi has |E|^2 = 2 phi^2. If nothing is known of it, the turned factor is off by 2 on
# average over the circle (two unrelated variables of unit variance), so phi^2 counts as 2 and |E|^2 as 4 at most.
UNKNOWN = 1 / 4
WIDTH = 1.6449  # standard deviations on either side of a 90 % interval
SOFT, MOST_SOFT, LEAST_INFORMED = 50.0, 20, 0.05  # eigenvalues of -H, directions, and their share of informed rows
GRID, LONGEST = np.linspace(-5.0, 5.0, 21), 3.5  # standard deviations, and |E|: about half a turn
LEADING = 30  # factors whose turns among each other are followed: K^2 directions soon are too many for one matrix


class Laplace(NamedTuple):
    """The covariance of the informed rows of R (P x K x P x K), and the variances of gamma = arctanh beta."""

    rows: Array
    gamma: Array


def laplace(problem: Problem, state: State) -> Laplace:
    """(-H + UNKNOWN I)^-1, H the Hessian of L by (R, gamma); where L is not concave nothing counts as known.

    Along the softest eigenvectors exp L is far from Gaussian, with longer tails than its curvature says. There the
    variance is the mean square by quadrature (``mean_square``), if that is larger.
    Free factors turn among themselves at little cost. That moves no informed factor, but to hold it would leave out
    what it has to do with turns that do. Only turns of free factors beyond the ``LEADING`` are held: free factors come
    in the order of what they explain, and these explain next to nothing.
    """
    p, k, gamma = problem.p, problem.k, np.arctanh(state.beta)
    landscape = Landscape.of(problem._replace(full=True), state)
    curvature = landscape.curvature(gamma, landscape.gradient(gamma)[0])
    i, j = np.indices((k, k)).reshape(2, -1)
    moving = (np.minimum(i, j) < p) | (np.maximum(i, j) < LEADING)
    values, vectors = np.linalg.eigh(curvature.matrix(i[moving], j[moving]))
    variances, rows = 1 / (np.maximum(values, 0) + UNKNOWN), vectors[: p * k]
    informed = np.sum(rows**2, axis=0) + np.sum(vectors[-p:] ** 2, axis=0)
    for soft in np.flatnonzero((values < SOFT) & (informed > LEAST_INFORMED))[:MOST_SOFT]:
        E = np.zeros((k, k))
        E[i[moving], j[moving]] = vectors[:-p, soft]
        wide = mean_square(landscape, gamma, E, vectors[-p:, soft], float(np.sqrt(variances[soft])))
        variances[soft] = np.clip(wide, variances[soft], 1 / UNKNOWN)
    variances = few_samples(problem.n, k) * variances
    fewer = problem.n / known_samples(problem)  # L takes the covariates of all samples as known
    each = np.sqrt(np.repeat(fewer, k))
    of_rows = (rows * variances) @ rows.T * each * each[:, None]
    return Laplace(of_rows.reshape(p, k, p, k), fewer * (vectors[-p:] ** 2 @ variances))


def mean_square(landscape: Landscape, gamma: Array, E: Array, delta: Array, sd: float) -> float:
    """E[t^2] with the density exp L(R(t), gamma + t delta), R(t) the Cayley curve along E; the mode is at t = 0."""
    t = np.clip(sd * GRID, -LONGEST, LONGEST)
    ahead = np.clip(gamma + t[:, None] * delta, -GAMMA_MAX, GAMMA_MAX)
    height = np.array([landscape.value(cayley(s * E), g) for s, g in zip(t, ahead, strict=True)])
    weight = np.exp(height - height.max())
    return float(weight @ t**2 / weight.sum())


def known_samples(problem: Problem) -> Array:
    """How many samples' worth of each covariate is known."""
    kernel = kernel_of(problem)
    sizes = problem.data.sizes if isinstance(problem.data, Gapped) else np.array([problem.n])
    return np.asarray(np.maximum(sizes @ kernel.known_covariates(problem), 1.0))


class Noise(NamedTuple):
    """What the noise of X adds to the variances of gamma, and q of ``by_chance``; L takes the factors as known."""

    gamma: Array
    chance: Array

    @classmethod
    def of(cls, problem: Problem, state: State) -> Noise:
        """From the information J about beta, z unknown.

        X says t_n = z_n + e_n with e_n ~ N(0, Q^-1), Q = sum_d E[tau_d] E[w_d] E[w_d]', so given y the informed part of
        t_n has the mean beta y_n and, with A its inverse covariance, the information about beta (P x P)

            J = sum_n (S_y * A + 2 beta beta' * A * A),   A = (D^-1 + Q^-1)^-1 = Q - Q (D + Q)^-1 Q,   * by entries.

        Without noise A = D and J_c = N (1 + beta^2) / (1 - beta^2)^2: gamma is the diagonal of J^-1 - J_c^-1, as gamma,
        and q = (K - 1) / sum_n (1 - beta^2) A. J + I in place of J: a covariate that X does not carry has a beta with a
        standard deviation of 1.
        """
        p, k, beta, kernel = problem.p, problem.k, state.beta, kernel_of(problem)
        views = tuple(v._replace(w=v.w._replace(scale=0 * v.w.scale)) for v in state.views[: len(problem.features)])
        Q, sizes = kernel.evidence(problem, views)
        Q, known = Q.reshape(-1, k, k), kernel.known_covariates(problem)
        A = (Q - Q @ np.linalg.solve(np.diag(updates.prior_precision(beta, k)) + Q, Q))[:, :p, :p]
        both = np.reshape(sizes, (-1, 1, 1)) * np.sqrt(known[:, :, None] * known[:, None, :])
        J = np.sum(both * (problem.data.yy / problem.n * A + 2 * np.outer(beta, beta) * A**2), axis=0)
        free, seen = 1 - beta**2, np.diag(np.sum(both * A, axis=0))
        of_beta = np.diag(np.linalg.inv(J + np.eye(p))) - free**2 / (known_samples(problem) * (1 + beta**2))
        of_gamma = few_samples(problem.n, k) * np.maximum(of_beta, 0.0) / free**2
        return cls(of_gamma, (k - 1) / np.maximum(free * seen, 1.0))


def few_samples(n: int, k: int) -> float:
    """(n / (n - K - 1))^3, at most 27: what n samples know less of a direction among K factors than n -> infinity says.

    As in regression on K variables, the noise is estimated too small by (n - K - 1) / n and (Z'Z)^-1 is larger by
    n / (n - K - 1) on average. The third power is a finding: it takes the covered share of true factors from .80 - .84
    to .86 - .93 at n = 60 and 100 (K = 10), and changes next to nothing at n = 500.
    """
    return float((n / max(n - k - 1, n / 3)) ** 3)


def of_rotation(rows: Array, T: Array, means: Array) -> Array:
    """sum_qr T_pq T_pr m_n' C_qr m_n (n x P)."""
    C = np.einsum("pq,qkrl,pr->pkl", T, rows, T)
    return np.stack([np.sum((means @ C_p) * means, axis=1) for C_p in C], axis=1)


@dataclass(frozen=True)
class Finish:
    """Standard deviations from the factors' own variances and their means before realigning (both n x K).

    sqrt(Sigma_pp + m_n' C_pp m_n + 1/N + bend_p) for informed factors, sqrt(Sigma_kk) for free ones: no covariate names
    a free factor, so there is no true rotation for it to miss. ``bend`` is the mean square by which covariates that
    count more than once move a factor, and the variance that they hide.
    """

    rows: Array  # of ``Laplace``
    T: Array
    n: int
    bend: Array  # P

    def __call__(self, own: Array, first_means: Array) -> Array:
        """n x K."""
        variance = own.copy()
        variance[:, : len(self.T)] += of_rotation(self.rows, self.T, first_means) + 1 / self.n + self.bend
        return np.sqrt(variance)


class Tails(NamedTuple):
    """Kurtosis of every standardised covariate, and the number of samples that have it."""

    kurtosis: Array
    counts: Array

    @classmethod
    def of(cls, Y: Array) -> Tails:
        """From the rows that have it."""
        return cls(np.nanmean(Y**4, axis=0), np.count_nonzero(~np.isnan(Y), axis=0).astype(np.float64))


def by_chance(beta: Array, q: Array, k: int) -> Array:
    """How much of beta may be due to the choice of a direction among K factors, the one closest to the covariate.

    That choice adds (1 - beta^2) q to beta^2, q = (K - 1) / N samples, more where X says little of the factor
    (``Noise.chance``), with the standard deviation of a chi-square of K - 1 degrees of freedom. Where X says nothing of
    a covariate, all of beta is of this kind.
    """
    added = (1 - beta**2) * q * (1 + WIDTH * np.sqrt(2 / max(k - 1, 1)))
    return np.asarray(beta - np.sqrt(np.maximum(beta**2 - added, 0.0)))


def beta_std(beta: Array, of_gamma: Array, tails: Tails, chance: Array) -> Array:
    """(1 - beta^2) sqrt(Var(gamma) + beta^2 (kurtosis - 1) / (4 N)), by the delta method, and what is due to chance.

    beta is a correlation in the population, but y was divided by its standard deviation in the sample, whose logarithm
    has the variance (kurtosis - 1) / (4 N); sinh gamma is proportional to it.
    A 90 % interval contains beta - ``chance``. 1 says that nothing is known.
    """
    of_scale = beta**2 * (tails.kurtosis - 1) / (4 * tails.counts)
    own = (1 - beta**2) * np.sqrt(of_gamma + of_scale)
    return np.asarray(np.minimum(np.hypot(own, chance / WIDTH), 1.0))
