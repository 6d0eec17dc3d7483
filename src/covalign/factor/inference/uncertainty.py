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
from covalign.factor.inference.rotation import Landscape
from covalign.factor.inference.state import Problem, State

# A turn of two factors by an angle phi has |E|^2 = 2 phi^2. If nothing is known of it, the turned factor is off by 2 on
# average over the circle (two unrelated variables of unit variance), so phi^2 counts as 2 and |E|^2 as 4 at most.
UNKNOWN = 1 / 4
LEADING = 30  # factors whose turns among each other are followed: K^2 directions soon are too many for one matrix


class Laplace(NamedTuple):
    """The covariance of the informed rows of R (P x K x P x K) and the variances of gamma = arctanh beta."""

    rows: Array
    gamma: Array


def laplace(problem: Problem, state: State) -> Laplace:
    """(-H + UNKNOWN I)^-1, H the Hessian of L by (R, gamma); where L is not concave nothing counts as known.

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
    variances, rows = few_samples(problem.n, k) / (np.maximum(values, 0) + UNKNOWN), vectors[: p * k]
    return Laplace(((rows * variances) @ rows.T).reshape(p, k, p, k), vectors[-p:] ** 2 @ variances)


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

    sqrt(Sigma_pp + m_n' C_pp m_n + 1/N) for informed factors, sqrt(Sigma_kk) for free ones: no covariate names a free
    factor, so there is no true rotation for it to miss.
    """

    rows: Array  # of ``Laplace``
    T: Array
    n: int

    def __call__(self, own: Array, first_means: Array) -> Array:
        """n x K."""
        variance = own.copy()
        variance[:, : len(self.T)] += of_rotation(self.rows, self.T, first_means) + 1 / self.n
        return np.sqrt(variance)


class Tails(NamedTuple):
    """Kurtosis of every standardised covariate, and the number of samples that have it."""

    kurtosis: Array
    counts: Array

    @classmethod
    def of(cls, Y: Array) -> Tails:
        """From the rows that have it."""
        return cls(np.nanmean(Y**4, axis=0), np.count_nonzero(~np.isnan(Y), axis=0).astype(np.float64))


def beta_std(beta: Array, of_gamma: Array, tails: Tails) -> Array:
    """(1 - beta^2) sqrt(Var(gamma) + beta^2 (kurtosis - 1) / (4 N)), by the delta method.

    beta is a correlation in the population, but y was divided by its standard deviation in the sample, whose logarithm
    has the variance (kurtosis - 1) / (4 N); sinh gamma is proportional to it.
    """
    of_scale = beta**2 * (tails.kurtosis - 1) / (4 * tails.counts)
    return np.asarray((1 - beta**2) * np.sqrt(of_gamma + of_scale))
