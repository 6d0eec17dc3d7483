"""The factors that samples get from their features alone, and the regimes that follow from them.

New samples come without covariates, so a regime has to hold for E[z | x]: its T (P x K) follows from the moments of
these factors and of the covariates on the fitted rows, all K factors used, as ``LatentAligner`` does it with any
representation. Below T stand K - P dimensions that are uncorrelated with T_0 E[z | x], turned as close to the free
factors as they can be. Together they are one map R (K x K), and the model in a regime is z~ = R z with loadings W R^-1:
it explains X as before. R is invertible wherever T has rank P, also if factors are turned off or there are fewer
samples than factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from covalign._core.linalg import Array
from covalign.closed_form import regimes
from covalign.closed_form.heldout import all_rows
from covalign.closed_form.regimes import Polar
from covalign.closed_form.shrinkage import analytic_shrinkage
from covalign.factor import placement
from covalign.factor.feature_regression import Regression
from covalign.factor.inference import gaps, updates
from covalign.factor.inference.heavy_tails import Scaled
from covalign.factor.inference.patterns import Gapped, grouped_product
from covalign.factor.inference.state import Problem, State
from covalign.moments.incomplete import Blocks, IncompleteMoments, Part, Rows
from covalign.moments.moments import Moments

# Of the unit variance of z. A factor that is turned off has less (1e-20 or 1e-70, as convergence goes), and to whiten
# it would multiply rounding errors. At 1e-10 couplings of factors that X tells anything about stay below 1e-9.
FLOOR = 1e-10


def moments(
    problem: Problem, state: State, names: Sequence[str], blocks: Blocks, regression: Regression | None = None
) -> Rows:
    """Moments of (E[z | x], y) on the fitted rows, from the sums of the fit; with a share of ``regression``."""
    if isinstance(problem.data, Gapped):
        return _with_gaps(problem.data, problem, state, names, blocks, regression)
    n, yy = problem.n, problem.data.yy
    linear = placement.linear(state, yy / n, np.eye(problem.p), [True] * len(problem.features), False)
    of_x = linear.of_x
    if regression is not None:
        of_x = regression.linear(linear, np.ones(len(of_x), dtype=bool)).of_x
    padded = np.vstack([of_x, np.zeros((len(problem.data.xx) - len(of_x), problem.k))])
    zz, _, zy = problem.data.sums(padded, np.zeros((problem.p, problem.k)))
    return Moments.from_covariances(zz / n, zy / n, yy / n, n=n, covariate_names=list(names))


def _with_gaps(
    data: Gapped,
    problem: Problem,
    state: State,
    names: Sequence[str],
    blocks: Blocks,
    regression: Regression | None,
) -> Rows:
    """The sums of each pattern of missing covariates; rows may stand for several samples."""
    u, parts = _means(data, problem, state), {}
    if regression is not None:
        u = _mixed(data, u, regression, problem.features[-1].stop)
    for label in range(len(data.labels.cov)):
        at = data.labels.group == label
        columns = np.flatnonzero(data.has_y[at][0]).tolist()
        n, H = float(data.of_label[label]), np.hstack([u[at], data.Y[at][:, columns]])
        mean = data.one[at] @ H / n
        S = H.T @ H / n - np.outer(mean, mean)
        z, y, k = slice(0, problem.k), slice(problem.k, None), problem.k
        some = tuple(names[c] for c in columns)
        parts[Part(tuple(columns), True)] = Moments(round(n), mean[z], mean[y], S[z, z], S[z, k:], S[y, y], some)
    complete = Part(tuple(range(problem.p)), True)
    if list(parts) == [complete]:
        return parts[complete]
    made = IncompleteMoments(parts, blocks, tuple(names))
    return made.sum_of([made])


def _means(data: Gapped, problem: Problem, state: State) -> Array:
    """E[z | x_o] of every row: covariates are no evidence, neither in the prior nor as a view."""
    if isinstance(data, Scaled):  # scales of rows whose covariates nobody knows
        return placement.place(state, data.S_y, data.table, np.full_like(data.Y, np.nan), np.eye(problem.p)).mean
    views = (*state.views[:-1], state.views[-1]._replace(weight=0.0)) if problem.of_y else state.views
    prior = gaps.priors(data.S_y[None], state.beta, problem.k)
    inverse = updates.symmetric_inverse(prior + gaps.evidence(problem, views)[0])
    return grouped_product(gaps.direct(data, views), inverse, data.samples[0])


def _mixed(data: Gapped, u: Array, regression: Regression, d: int) -> Array:
    """These factors with a share of the regression."""
    if isinstance(data, Scaled):
        observed = ~np.isnan(data.table)
        return regression.mixed(u, np.where(observed, data.table, 0.0), observed)
    return regression.mixed(u, data.X[:, :d], data.observed[:, :d], data.one)


def completed(rows: Rows) -> Moments:
    """Moments as if no covariate were missing."""
    return rows.completed() if isinstance(rows, IncompleteMoments) else rows


def floored(m: Moments) -> Moments:
    """Moments with ``FLOOR`` added to every variance."""
    return replace(m, cov_z=m.cov_z + FLOOR * np.eye(len(m.cov_z)))


def shrinkage(m: Moments) -> float:
    """K / (n + K), or less if the covariances of the factors are known better.

    E[z | x] is already shrunk: a factor that features tell little about has a small variance. ``analytic_shrinkage`` is
    best for covariances, and for regressions on few rows it is too much (.3 to 1 with 30 to 200 rows).
    """
    k = len(m.cov_z)
    return min(analytic_shrinkage(m), k / ((m.n or 0) + k))


@dataclass(frozen=True, eq=False)
class Placing:
    """What every regime of a model follows from: the moments of its label-free factors, and their polar form.

    The polar form needs P dimensions. With fewer features there is none: the model has no regime, but all else.
    """

    rows: Rows

    @classmethod
    def of(
        cls, problem: Problem, state: State, names: Sequence[str], blocks: Blocks, regression: Regression | None = None
    ) -> Placing:
        """From the sums of the fit."""
        return cls(moments(problem, state, names, blocks, regression))

    @cached_property
    def polar(self) -> Polar:
        """With the shrinkage that suits the number of rows."""
        m = completed(self.rows)
        regimes.whitened_polar(m)  # refuses fewer dimensions than covariates, which a floor would hide
        return regimes.whitened_polar(floored(m), shrinkage(m))

    @cached_property
    def rest(self) -> Array:
        """The dimensions below T ((K - P) x K)."""
        return nearest_rest(floored(completed(self.rows)), self.polar)

    @property
    def mean(self) -> Array:
        """The mean of E[z | x] on the fitted rows; 0 if nothing is missing."""
        return all_rows(self.rows).mean_z

    def plain(self) -> Polar:
        """The polar form of the informed factors alone, without a regime."""
        p = len(self.polar.covariate_names)
        return regimes.whitened_polar(floored(completed(self.rows.transform(np.eye(p, len(self.mean))))))

    def map(self, mixing: Array) -> Array:
        """R (K x K): T = mixing T_0 above the rest."""
        return np.vstack([mixing @ self.polar.T_0, self.rest])


def nearest_rest(m: Moments, polar: Polar) -> Array:
    """K - P orthonormal rows r, r z uncorrelated with T_0 z, as close to the free factors as they can be.

    To whiten E[z | x] here would divide by the variance of factors that are turned off. The rows span the null space
    of T_0 cov(z), which has K - P dimensions and shares none with T_0, whatever the rank of cov(z).
    """
    p = m.cov_zy.shape[1]
    rest = scipy.linalg.qr(m.cov_z @ polar.T_0.T)[0][:, p:].T
    left, _, right = np.linalg.svd(rest[:, p:])
    return np.asarray((left @ right).T @ rest)
