"""The q-factors of informed factor analysis as named tuples. Updates return new ones; nothing is edited in place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from covalign._core.linalg import Array
from covalign._core.messages import message

SHAPE_0 = RATE_0 = 1e-3  # the Gamma priors of ARD and noise precisions


class Gamma(NamedTuple):
    """Independent Gamma factors with one shape (or one each, where features were observed differently often)."""

    shape: Any
    rate: Array

    @property
    def mean(self) -> Array:
        """E[a]."""
        return np.asarray(self.shape / self.rate)

    @property
    def mean_log(self) -> Array:
        """E[log a]."""
        return np.asarray(digamma(self.shape) - np.log(self.rate))

    def kl(self, rate_0: Any = RATE_0) -> float:
        """KL from the prior Gamma(SHAPE_0, rate_0), summed."""
        a, b = self.shape, self.rate
        per = (a - SHAPE_0) * digamma(a) - gammaln(a) + gammaln(SHAPE_0)
        return float(np.sum(per + SHAPE_0 * (np.log(b) - np.log(rate_0)) + a * (rate_0 - b) / b))


class Factors(NamedTuple):
    """q(z_n) = N(mean_n, cov), all n: the map from data to means, and the sums over n that the rest needs.

    E[Z] = X of_x + Y of_y. ``cov`` is shared by all samples (no data are missing here).
    """

    of_x: Array  # D x K
    of_y: Array  # P x K
    cov: Array  # K x K
    zz: Array  # E[Z]'E[Z]
    xz: Array  # X'E[Z]
    zy: Array  # E[Z]'Y

    def second_moment(self, n: int) -> Array:
        """S = E[Z'Z] = E[Z]'E[Z] + n cov."""
        return self.zz + n * self.cov

    def total_cov(self, n: int) -> Array:
        """sum_n Cov(z_n)."""
        return n * self.cov

    def by_column(self, n: int) -> tuple[Array, Array]:
        """E[Z]'E[Z] and sum_n Cov(z_n), one group of features (1 x K x K)."""
        return self.zz[None], self.total_cov(n)[None]

    @property
    def zy_held(self) -> Array:
        """The part of E[Z'Y] that is covariance: covariates are known."""
        return np.zeros_like(self.zy)

    @property
    def excess(self) -> Array:
        """E[y_p'y_p] - N: covariates are standardised and complete."""
        return np.zeros(self.zy.shape[1])

    def moved(self, R: Array, full: bool) -> Factors:
        """z -> R z (R may choose some factors); in the mean field only means move."""
        return Factors(
            of_x=self.of_x @ R.T,
            of_y=self.of_y @ R.T,
            cov=R @ self.cov @ R.T if full else self.cov,
            zz=R @ self.zz @ R.T,
            xz=self.xz @ R.T,
            zy=R @ self.zy,
        )


class Loadings(NamedTuple):
    """q(w_d) = N(mean_d, C_d) of one view.

    C_d = V diag(scale_d) V' with one V for all features. In the mean field V is the identity (or, once factors have
    been rearranged, a signed permutation), so one form serves both.
    """

    mean: Array  # D x K
    V: Array  # K x K
    scale: Array  # D x K

    def weighted_second_moment(self, weights: Array) -> Array:
        """sum_d weights_d E[w_d w_d']."""
        return (self.mean.T * weights) @ self.mean + (self.V * (weights @ self.scale)) @ self.V.T

    @property
    def patterns(self) -> NDArray[np.intp]:
        """Groups of features that the same samples have: all in one."""
        return np.zeros(1, dtype=np.intp)

    def held_by_column(self, tau: Array) -> tuple[Array, Array]:
        """sum_d tau_d Var(w_d) (1 x K) and sum_d tau_d E[w_d]E[w_d]' (1 x K x K)."""
        return (tau @ self.variance)[None], ((self.mean.T * tau) @ self.mean)[None]

    @property
    def second_moment_diagonal(self) -> Array:
        """sum_d E[w_dk^2] for every k."""
        return np.asarray(np.sum(self.mean**2, axis=0) + (self.V**2) @ self.scale.sum(axis=0))

    def quadratic(self, S: Array) -> Array:
        """E[w_d' S w_d] for every d."""
        inner = np.sum((self.V.T @ S) * self.V.T, axis=1)  # diag(V' S V)
        return np.asarray(np.sum((self.mean @ S) * self.mean, axis=1) + self.scale @ inner)

    @property
    def log_det(self) -> float:
        """sum_d log |C_d|."""
        return float(len(self.mean) * 2 * np.linalg.slogdet(self.V)[1] + np.sum(np.log(self.scale)))

    @property
    def variance(self) -> Array:
        """Var(w_dk), D x K."""
        return np.asarray(self.scale @ (self.V**2).T)

    def moved(self, P: Array, full: bool) -> Loadings:
        """w -> P' w; in the mean field only means move."""
        return self._replace(mean=self.mean @ P, V=P.T @ self.V if full else self.V)


class View(NamedTuple):
    """What is known of one view: its loadings, their ARD precisions, its noise precisions."""

    w: Any  # Loadings, or grouped.GroupedLoadings
    ard: Gamma
    noise: Gamma
    weight: float = 1.0  # the power of its likelihood; not 1 only for covariates that are a view (``supervision``)

    @property
    def precision(self) -> Array:
        """weight E[tau_d]: what a cell of each feature counts."""
        return self.weight * self.noise.mean


class State(NamedTuple):
    """Everything that is inferred."""

    z: Any  # Factors, or grouped.Factors
    views: tuple[View, ...]
    beta: Array
    scales: Any = None  # heavy_tails.Scales, where noise has heavy tails


class Held(NamedTuple):
    """q(z~) of the informed factors alone, moved to a regime and held there, and its divergence from the prior."""

    z: Any  # Factors, or grouped.Factors
    beta: Array
    kl: float


class Problem(NamedTuple):
    """What does not change during a fit: the data as an engine, sizes, and how the posterior factorises."""

    data: Any  # an engine of ``engines``, or ``patterns.Gapped``
    n: int
    p: int
    k: int
    bounds: tuple[slice, ...]  # where each view's features are among all D
    full: bool
    beta_prior: float = 0.0  # kappa of p(beta) ~ (1 - beta^2)^kappa
    of_y: float = 0.0  # the weight of the last view, if that is the covariates; 0: it is a view like the others
    coordinates: bool = False  # means one by one, as in the paper, not all at once; complete data and mean field only

    @property
    def features(self) -> tuple[slice, ...]:
        """The views of features: all but the covariates, where these are a view."""
        return self.bounds[:-1] if self.of_y else self.bounds

    @property
    def rounding(self) -> float:
        """What rounding may change in the bound (nats). In 90 odd fits it was at most 1e-11 for each cell."""
        return 1e-9 * self.n * (int(self.bounds[-1].stop) + self.of_y * self.p)

    def supervised(self, weight: float) -> Problem:
        """The problem with the covariates as a further view whose likelihood has this power; 0 leaves them out."""
        if not weight:
            return self
        d = self.bounds[-1].stop
        return self._replace(
            data=self.data.with_covariates(), bounds=(*self.bounds, slice(d, d + self.p)), of_y=float(weight)
        )

    def weight(self, where: slice) -> float:
        """The power of the likelihood of a view."""
        return self.of_y if self.of_y and where == self.bounds[-1] else 1.0


def cannot_resume() -> ValueError:
    """The error of a warm start from a model of other data."""
    problem = "warm_start needs a model of the same views, features, covariates and factors that was not realigned"
    return ValueError(message(problem, got="another", remedy="fit without warm_start"))
