"""Ridge regressions for many shrinkages from one decomposition, and what they predict of other rows.

With S_z = L L' (L is K x r) and S_zy = L c, the ridge regressions with the penalty D (``regimes.ridge``) are

    B(rho) = ((1 - rho) S_z + rho D)^-1 L c = D^-1 L ((1 - rho) G + rho I)^-1 c,     G = L'D^-1 L (r x r).

If there are fewer rows than columns, r is small, B is never made, and left-out rows enter by b'm = (Q'L'D^-1 m)'x,
where Q'G Q is a band matrix and x = ((1 - rho) Q'G Q + rho I)^-1 Q'c. Otherwise B follows from the eigenvectors of S_z.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve

from covalign._core.linalg import Array, Banded, banded, range_eigh, range_root, regular_cholesky
from covalign.closed_form import regimes
from covalign.closed_form.measures import quotient
from covalign.closed_form.pooled_correlation import Gain, gain_of
from covalign.moments.moments import Moments

ALL = slice(None)


class RowSpace(NamedTuple):
    """Coordinates in the space of the rows: Q'L'D^-1 m."""

    weighted: Array  # D^-1 L
    band: Banded

    def coordinates(self, M: Array) -> Array:
        """Of the columns of M."""
        return self.band.turned(self.weighted.T @ M)


class RidgePath(NamedTuple):
    """Regressions b for every shrinkage and covariate, as weights of coordinates."""

    weights: Array  # coordinates x shrinkages x P
    own: Array  # b'S_z b on the training set (shrinkages x P)
    space: RowSpace | None = None  # None: coordinates are the columns of Z, and weights are b

    @property
    def unit(self) -> RidgePath:
        """The same, scaled so that predictions have variance 1 on the training set."""
        scale = quotient(1.0, np.sqrt(self.own))
        return self._replace(weights=self.weights * scale, own=self.own * scale**2)

    def of(self, columns: Any) -> RidgePath:
        """The regressions of some covariates."""
        return self._replace(weights=np.ascontiguousarray(self.weights[:, :, columns]), own=self.own[:, columns])

    def predictions(self, M: Array) -> Array:
        """b'm of every column of M (K x m): m x shrinkages x P."""
        at = M if self.space is None else self.space.coordinates(M)
        return np.asarray((at.T @ self.weights.reshape(len(at), -1)).reshape(-1, *self.weights.shape[1:]))

    def products(self, M: Array) -> Array:
        """b_p'm_p of column p of M (shrinkages x P)."""
        at = M if self.space is None else self.space.coordinates(M)
        return np.asarray(np.einsum("krp,kp->rp", self.weights, at))

    def variance(self, rows: Moments) -> Array:
        """b'S_z b on these rows (shrinkages x P)."""
        if self.space is None:
            flat = self.weights.reshape(len(self.weights), -1)
            return np.asarray(np.sum(flat * (rows.cov_z @ flat), axis=0).reshape(self.weights.shape[1:]))
        root = range_root(rows.cov_z) if rows.root is None else rows.root
        return np.asarray(np.sum(self.predictions(root) ** 2, axis=0))


class EigenPath(NamedTuple):
    """The same from S_z = E diag(l) E', with weights c / ridged of the eigenvectors, which are not kept.

    With many covariates, weights of all shrinkages are large; sums over them are products of small matrices.
    """

    vectors: Array  # E (K x k)
    c: Array  # E'S_zy (k x P)
    ridged: Array  # (1 - rho) l + rho (k x shrinkages)
    own: Array  # b'S_z b on the training set (shrinkages x P)
    scale: Array  # of the regressions (shrinkages x P)

    @property
    def unit(self) -> EigenPath:
        """``RidgePath.unit``."""
        scale = quotient(1.0, np.sqrt(self.own))
        return self._replace(scale=self.scale * scale, own=self.own * scale**2)

    def of(self, columns: Any) -> EigenPath:
        """The regressions of some covariates."""
        return self._replace(c=self.c[:, columns], own=self.own[:, columns], scale=self.scale[:, columns])

    def predictions(self, M: Array) -> Array:
        """b'm of every column of M (K x m): m x shrinkages x P."""
        return np.stack([(1 / self.ridged).T @ (self.c * m[:, None]) * self.scale for m in (self.vectors.T @ M).T])

    def products(self, M: Array) -> Array:
        """b_p'm_p of column p of M (shrinkages x P)."""
        return np.asarray((1 / self.ridged).T @ (self.c * (self.vectors.T @ M)) * self.scale)

    def variance(self, rows: Moments) -> Array:
        """b'S_z b on these rows (shrinkages x P)."""
        if self.own.size < 2 * len(self.vectors):  # few regressions are cheaper in the columns of Z
            B = self.vectors @ (self.c[:, None] / self.ridged[:, :, None]).reshape(len(self.c), -1)
            return np.asarray(np.sum(B * (rows.cov_z @ B), axis=0).reshape(self.own.shape) * self.scale**2)
        S, found = self.vectors.T @ rows.cov_z @ self.vectors, np.empty(self.own.shape)
        for i, ridged in enumerate(self.ridged.T):
            weights = self.c / ridged[:, None]
            found[i] = np.sum(weights * (S @ weights), axis=0)
        return found * self.scale**2


def ridge_path(train: Moments, shrinkages: Array, scale: str = "raw", columns: Any = ALL) -> RidgePath | EigenPath:
    """The ridge regressions of these covariates for every shrinkage, in the space of the rows if it is small."""
    S_zy = regimes.standardised_cross_covariance(train)[:, columns]
    if train.root is not None:
        found = of_root(train, train.root, S_zy, shrinkages, scale)
        if found is None:  # parts that share rows have dependent roots
            found = of_root(train, range_root(train.cov_z), S_zy, shrinkages, scale)
        if found is not None:
            return found
    return of_eigenvectors(train, S_zy, shrinkages, scale)


def of_root(train: Moments, L: Array, S_zy: Array, shrinkages: Array, scale: str = "raw") -> RidgePath | None:
    """From S_z = L L'; None if the rank of S_z is not clear on this scale."""
    u = np.sqrt(regimes.penalty(train, scale))[:, None]
    C = L / u
    G, weighted = C.T @ C, C / u
    factor = regular_cholesky(G, len(L))
    if factor is None:
        return None
    c = cho_solve((factor, True), weighted.T @ S_zy)
    band = banded(G)
    x = band.solutions(1 - shrinkages, shrinkages, band.turned(c))
    weights = np.ascontiguousarray(x.transpose(1, 0, 2))
    return RidgePath(weights, np.sum(band.products(x) ** 2, axis=1), RowSpace(weighted, band))


def of_eigenvectors(train: Moments, S_zy: Array, shrinkages: Array, scale: str = "raw") -> EigenPath:
    """From S_z = E diag(l) E':  B(rho) = E ((1 - rho) l + rho mean(diag S_z))^-1 E' S_zy.

    On another scale this is done with columns Z / u, u^2 proportional to the penalty, so that D = mean(diag S_z) I
    there.
    """
    S, u = train.cov_z, np.ones((len(S_zy), 1))
    if scale != "raw":
        u = np.sqrt(regimes.penalty(train, scale))[:, None]
        S, S_zy = S / u / u.T, S_zy / u
    values, vectors = range_eigh(S)
    ridged = (1 - shrinkages) * values[:, None] + shrinkages * (np.mean(np.diag(S)) if scale == "raw" else 1.0)
    c = vectors.T @ S_zy
    own = (values[:, None] / ridged**2).T @ c**2
    return EigenPath(vectors / u, c, ridged, own, np.ones(own.shape))


def of_solutions(train: Moments, shrinkages: Array, scale: str = "raw") -> RidgePath:
    """From a solution for every shrinkage, which is better for few of them.

    S_z b follows from the equation that b solves: (1 - rho) S_z b = s_zy - rho D b.
    """
    S_zy, D = regimes.standardised_cross_covariance(train), regimes.penalty(train, scale)[:, None]
    weights, own = np.empty((len(S_zy), len(shrinkages), S_zy.shape[1])), np.empty((len(shrinkages), S_zy.shape[1]))
    for i, rho in enumerate(shrinkages.tolist()):
        b = regimes.ridge(train, rho, scale)
        S_b = (S_zy - rho * D * b) / (1 - rho) if rho < 1 else train.cov_z @ b
        weights[:, i], own[i] = b, np.sum(b * S_b, axis=0)
    return RidgePath(weights, own)


FEW = 0.05  # dimensions for each row, of which a ridge may keep all or none: this changes a gain by .011


def gain_at(whole: Moments, train: Moments, shrinkage: float, scale: str) -> Gain:
    """What a map of all rows has over the fit to a training set."""
    k, (n, n_train) = len(whole.cov_z), (float(m.n or 0) - 1 for m in (whole, train))
    few = k <= FEW * n_train
    error = k / (n - k) if few else error_of(whole, shrinkage, scale)
    return gain_of(error, n, n_train, lambda: error_of(train, shrinkage, scale))


def error_of(m: Moments, shrinkage: float, scale: str = "raw") -> float:
    """Mean square of the error of a ridge regression on m, relative to that of the noise.

    It is K / (n - K) without a ridge: directions are wrong by 1 / n each, and whitening by a sample covariance makes
    those of little variance worse. With a ridge, K becomes d = tr S^2 (S + kappa D)^-2, S the true covariance and kappa
    the ridge that n rows make of it (Dobriban and Wager 2018). With g_i = 1 - h_i, h_i the eigenvalues of the smoother
    S_z (S_z + rho / (1 - rho) D)^-1 of the sample, which has the rank r,

        d / (n - d) = n (n - r + sum g^2) / (n - r + sum g)^2 - 1.
    """
    n = float(m.n or 0) - 1
    u = np.sqrt(regimes.penalty(m, scale))[:, None]
    L = None if m.root is None else m.root / u
    values = range_eigh(m.cov_z / u / u.T if L is None else L.T @ L)[0]
    # Without a ridge, the limit of a small one.
    if shrinkage == 1:
        return 0.0
    g = shrinkage / ((1 - shrinkage) * values + shrinkage) if shrinkage else values.min() / values * (len(values) >= n)
    return error_of_sums(n - len(values), float(np.sum(g)), float(np.sum(g**2)), n)


def error_of_sums(spare: float, rough: float, squares: float, n: float) -> float:
    """``error_of`` from n - r, sum g and sum g^2."""
    spare = max(spare, 0.0)
    return max(0.0, float(n * (spare + squares) / (spare + rough) ** 2 - 1))
