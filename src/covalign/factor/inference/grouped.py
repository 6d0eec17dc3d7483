"""The q-factors where data have gaps: samples and features with the same pattern share a covariance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covalign._core.linalg import Array
from covalign.factor.inference.patterns import Index, few, group_sums, grouped_product, slices


class Factors(NamedTuple):
    """q(z_n) = N(mean_n, cov of its combination), and the sums the rest needs."""

    mean: Array  # N x K
    cov: Array  # one for each combination of row and label pattern
    group: Index
    means: Array  # sum over the observed rows of each column pattern: of m m' (H x K x K),
    covs: Array  # of Cov(z) (H x K x K),
    sums: Array  # and of m (H x K)
    total: Array  # sum_n Cov(z_n)
    zz: Array
    xz: Array  # X'E[Z], intercepts not taken out
    zy: Array  # E[Z'Y], missing covariates by their posterior
    zy_held: Array  # the part of it that is Cov(z, y)
    excess: Array  # E[y_p'y_p] - N

    def second_moment(self, n: int) -> Array:
        """E[Z'Z]."""
        return self.zz + self.total

    def total_cov(self, n: int) -> Array:
        """sum_n Cov(z_n)."""
        return self.total

    def by_column(self, n: int) -> tuple[Array, Array]:
        """E[Z]'E[Z] and sum_n Cov(z_n) over the rows of each column pattern (H x K x K)."""
        return self.means, self.covs

    def moved(self, R: Array, full: bool) -> Factors:
        """z -> R z (R may choose some factors); in the mean field only means move."""
        return self._replace(
            mean=self.mean @ R.T,
            cov=R @ self.cov @ R.T if full else self.cov,
            means=R @ self.means @ R.T,
            covs=R @ self.covs @ R.T if full else self.covs,
            sums=self.sums @ R.T,
            total=R @ self.total @ R.T if full else self.total,
            zz=R @ self.zz @ R.T,
            xz=self.xz @ R.T,
            zy=R @ self.zy if full else R @ (self.zy - self.zy_held) + self.zy_held,
            zy_held=R @ self.zy_held if full else self.zy_held,
        )


class GroupedLoadings(NamedTuple):
    """q(w_d) = N(mean_d, V_h diag(scale_d) V_h'), h the column pattern of d; and intercepts.

    ``patterns`` are those that occur in the view, among the H of all views; ``group`` counts within them.
    """

    mean: Array  # D x K
    V: Array  # h x K x K
    scale: Array  # D x K
    group: Index
    patterns: Index
    intercept: Array

    def by_pattern(self, weights: Array) -> Array:
        """sum over the features of each of the view's patterns of weights_d E[w_d w_d'] (h x K x K)."""
        return self.means_by_pattern(weights) + self.covariance_by_pattern(weights)

    def means_by_pattern(self, weights: Array) -> Array:
        """The same of weights_d E[w_d]E[w_d]'."""
        k, patterns, weighted = self.mean.shape[1], len(self.V), self.mean * weights[:, None]
        if patterns == 1:
            return np.asarray((weighted.T @ self.mean)[None])
        if few(patterns, len(self.mean)):
            of = [np.flatnonzero(self.group == h) for h in range(patterns)]
            return np.array([weighted[d].T @ self.mean[d] for d in of])
        out = np.zeros((patterns, k, k))
        for part in slices(len(self.mean), k * k):
            np.add.at(out, self.group[part], weighted[part, :, None] * self.mean[part, None, :])
        return out

    def covariance_by_pattern(self, weights: Array) -> Array:
        """The same of weights_d Cov(w_d)."""
        scales = group_sums(weights[:, None] * self.scale, self.group, len(self.V))
        return np.asarray((self.V * scales[:, None, :]) @ self.V.transpose(0, 2, 1))

    def held_by_column(self, tau: Array) -> tuple[Array, Array]:
        """sum of tau_d Var(w_d) (h x K) and of tau_d E[w_d]E[w_d]' (h x K x K) over each of the view's patterns."""
        v = group_sums(tau[:, None] * self.variance, self.group, len(self.V))
        return v, self.means_by_pattern(tau)

    def weighted_second_moment(self, weights: Array) -> Array:
        """sum_d weights_d E[w_d w_d']."""
        return np.asarray((self.mean.T * weights) @ self.mean + self.covariance_by_pattern(weights).sum(axis=0))

    @property
    def second_moment_diagonal(self) -> Array:
        """sum_d E[w_dk^2]."""
        scales = group_sums(self.scale, self.group, len(self.V))
        return np.asarray(np.sum(self.mean**2, axis=0) + np.sum((self.V**2) @ scales[:, :, None], axis=(0, 2)))

    @property
    def variance(self) -> Array:
        """Var(w_dk), D x K."""
        return grouped_product(self.scale, self.V.transpose(0, 2, 1) ** 2, self.group)

    def quadratic(self, S: Array) -> Array:
        """E[w_d' S_h w_d] with S one matrix for each column pattern of all views."""
        S = S[self.patterns]
        inner = np.sum((S @ self.V) * self.V, axis=1)  # the diagonal of V' S V
        out = np.sum(grouped_product(self.mean, S, self.group) * self.mean, axis=1)
        return np.asarray(out + np.sum(self.scale * inner[self.group], axis=1))

    @property
    def log_det(self) -> float:
        """sum_d log |C_d|."""
        return float(2 * np.linalg.slogdet(self.V)[1][self.group].sum() + np.sum(np.log(self.scale)))

    def moved(self, P: Array, full: bool) -> GroupedLoadings:
        """w -> P' w."""
        return self._replace(mean=self.mean @ P, V=P.T @ self.V if full else self.V)
