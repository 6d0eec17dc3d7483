"""Noise with heavy tails: a scale for every sample and view, so that an outlying sample counts less where it is one.

    x_nd ~ N(w_d'z_n, 1 / (u_nv tau_d)),   u_nv ~ Gamma(nu_v / 2, nu_v / 2),   v the view of feature d.

With u integrated out the noise of a sample in a view is a multivariate Student t with nu_v degrees of freedom; nu_v is
a parameter of the bound. Given E[u] the model is that of ``gaps`` with weights in place of flags, so its kernel does
the rest:

    Cov(z_n)^-1 = Pi_n + sum_v E[u_nv] Q_nv,   Q_nv = sum over the observed d of view v of E[tau_d] E[w_d w_d'],
    q(u_nv) = Gamma((nu_v + D_nv) / 2, (nu_v + s_nv) / 2),   s_nv = E sum_d tau_d (x_nd - intercept_d - w_d'z_n)^2.

Covariates that are a view (``supervision``) have no scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from covalign._core.linalg import Array
from covalign.factor.inference import row_evidence
from covalign.factor.inference.patterns import Gapped, Index, Patterns
from covalign.factor.inference.state import Problem, State, View

DEGREES = np.geomspace(3.0, 1e6, 60)  # of freedom: the variance exists at 3, and at a million the noise is Gaussian
SETTLED, MOST_STEPS = 1e-9, 200  # relative change of a scale, given loadings; steps from 1


class Scales(NamedTuple):
    """q(u_nv) = Gamma(shape_nv, rate_nv), and the degrees of freedom of every view."""

    shape: Array  # N x V
    rate: Array
    dof: Array  # V

    @property
    def mean(self) -> Array:
        """E[u_nv]."""
        return np.asarray(self.shape / self.rate)

    @property
    def mean_inverse(self) -> Array:
        """E[1 / u_nv]: what the noise variance of a sample is multiplied by."""
        return np.asarray(self.rate / (self.shape - 1))

    def gain(self, cells: Array) -> float:
        """What the scales add to the bound: sum_nv D_nv E[log u_nv] / 2 - KL(q(u_nv) || Gamma(nu_v / 2, nu_v / 2))."""
        a, b, a_0 = self.shape, self.rate, self.dof / 2
        kl = (a - a_0) * digamma(a) - gammaln(a) + gammaln(a_0) + a_0 * (np.log(b) - np.log(a_0)) + a * (a_0 - b) / b
        return float(np.sum(cells / 2 * (digamma(a) - np.log(b)) - kl))


@dataclass(frozen=True, eq=False)
class Scaled(Gapped):
    """``Gapped`` data whose rows count u_nv in view v. ``X`` is u x; every row is a pattern of its own."""

    plain: Gapped  # the same rows without scales
    u: Array  # N x V, and a column of ones for covariates that are a view
    of_view: Index  # the column of u of every feature
    n_scaled: int  # V

    @classmethod
    def of_views(cls, X: Array, Y: Array, S_y: Array, bounds: Sequence[slice]) -> Scaled:
        """From standardised rows with NaN in gaps, with scales for a start.

        A start with scales of 1 would have a component for an outlying sample, which then is none.
        """
        plain = Gapped.of_rows(X, Y, S_y)
        return cls.of_plain(plain, bounds, len(bounds)).at(of_lengths(plain, bounds))

    @classmethod
    def of_plain(cls, plain: Gapped, bounds: Sequence[slice], n_scaled: int) -> Scaled:
        """All scales 1; the first ``n_scaled`` views have some."""
        of_view = np.concatenate([np.full(b.stop - b.start, v, dtype=np.intp) for v, b in enumerate(bounds)])
        rows = (plain.X, plain.observed, plain.Y, plain.has_y, plain.S_y, plain.one, np.ones(len(plain.X)))
        return cls(*rows, plain, np.ones((len(plain.X), len(bounds))), of_view, n_scaled)

    def at(self, u: Array) -> Scaled:
        """The same rows with other scales (N x V); what does not depend on them is kept."""
        u = np.hstack([u, np.ones((len(u), self.u.shape[1] - u.shape[1]))])
        new = replace(self, X=self.plain.X * u[:, self.of_view], u=u)
        for name in ("rows", "columns", "labels", "samples", "of_label", "cells"):
            new.__dict__[name] = getattr(self, name)
        return new

    @property
    def table(self) -> Array:
        """The rows of features as they came, NaN in gaps; without covariates that are a view."""
        d = np.flatnonzero(self.of_view < self.n_scaled)[-1] + 1
        return np.where(self.observed[:, :d], self.plain.X[:, :d], np.nan)

    @cached_property
    def rows(self) -> Patterns:
        """No two rows count alike."""
        return Patterns(np.empty((len(self.u), 0)), np.arange(len(self.u)))

    @cached_property
    def columns(self) -> Index:
        """Features of one view that the same rows lack."""
        view = self.of_view[:, None] == np.arange(self.u.shape[1])
        return Patterns.of(np.hstack([self.observed.T, view])).group

    @cached_property
    def between(self) -> Array:
        """What row n counts in column pattern h (N x H)."""
        first = np.unique(self.columns, return_index=True)[1]
        return np.asarray(self.observed[:, first] * self.u[:, self.of_view[first]])

    @cached_property
    def cells(self) -> Array:
        """Observed cells of each feature."""
        return np.asarray(self.observed.sum(axis=0), dtype=np.float64)

    @cached_property
    def xx(self) -> Array:
        """sum of u x^2 over observed cells."""
        return np.asarray(np.einsum("nd,nd->d", self.X, self.plain.X))

    def with_covariates(self) -> Scaled:
        """The same rows, the covariates also as the last features; they always count 1."""
        last = np.full(self.Y.shape[1], self.u.shape[1], dtype=np.intp)
        plain, of_view = self.plain.with_covariates(), np.concatenate([self.of_view, last])
        u = np.hstack([self.u, np.ones((len(self.u), 1))])
        rows = (plain.X * u[:, of_view], plain.observed, self.Y, self.has_y, self.S_y, self.one, self.sizes)
        return Scaled(*rows, plain, u, of_view, self.n_scaled)


def scaled(problem: Problem, state: State) -> Problem:
    """The problem with the scales of the state."""
    if state.scales is None:
        return problem
    return problem._replace(data=problem.data.at(state.scales.mean))


def gain(problem: Problem, state: State) -> float:
    """What the scales add to the bound; 0 without scales."""
    if state.scales is None:
        return 0.0
    return float(state.scales.gain(observed_cells(problem.data.observed, problem.features)))


def update_scales(problem: Problem, views: tuple[View, ...], z: Any) -> Scales | None:
    """q(u), and the best degrees of freedom, given everything else; None where noise is Gaussian."""
    data = problem.data
    if not isinstance(data, Scaled):
        return None
    features, cov = len(problem.features), z.cov[z.group]
    s = [of.distances(data.plain, z.mean, cov) for of in row_evidence.of_views(views, data.plain)[:features]]
    return of_distances(np.column_stack(s), observed_cells(data.observed, problem.features))


def observed_cells(observed: NDArray[np.bool_], bounds: Sequence[slice]) -> Array:
    """D_nv (N x V)."""
    return np.column_stack([observed[:, b].sum(axis=1) for b in bounds]).astype(np.float64)


def of_distances(s: Array, cells: Array, dof: Array | None = None) -> Scales:
    """q(u) for distances s_nv, at the degrees of freedom with the highest bound where none are given."""
    dof = best_degrees(s, cells) if dof is None else dof
    return Scales((dof + cells) / 2, (dof + s) / 2, dof)


def of_lengths(data: Gapped, bounds: Sequence[slice]) -> Array:
    """Scales of rows (N x V) by their mean square in each view, that of the median row counting 1; no row above 1."""
    cells, squares = (
        observed_cells(data.observed, bounds),
        np.column_stack([(data.X[:, b] ** 2).sum(1) for b in bounds]),
    )
    lengths = np.divide(squares, cells, out=np.ones_like(squares), where=cells > 0)
    typical = [np.median(of[there > 0]) if there.any() else 1.0 for of, there in zip(lengths.T, cells.T, strict=True)]
    away = lengths / np.where(np.array(typical) > 0, typical, 1.0)
    return np.minimum(of_distances(away * cells, cells, np.full(len(bounds), DEGREES[0])).mean, 1.0)


def best_degrees(s: Array, cells: Array) -> Array:
    """nu_v that maximises sum_n log of the Student density of s_nv, q(u) being the best for each nu; on a grid."""
    return np.array([DEGREES[np.argmax(_log_density(DEGREES, s[:, v], cells[:, v]))] for v in range(s.shape[1])])


def _log_density(nu: Array, s: Array, cells: Array) -> Array:
    """sum_n log Gamma((nu + D) / 2) - log Gamma(nu / 2) + (nu / 2) log(nu / 2) - ((nu + D) / 2) log((nu + s) / 2)."""
    half, there = nu[:, None] / 2, cells > 0
    a, b = half + cells[there] / 2, half + s[there] / 2
    return np.asarray(np.sum(gammaln(a) - gammaln(half) + half * np.log(half) - a * np.log(b), axis=1))
