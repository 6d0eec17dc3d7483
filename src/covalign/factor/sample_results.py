"""What a fitted model says of its samples: factors, their uncertainty, gaps filled in, X reconstructed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from covalign._core.checks import check_flag
from covalign._core.data_errors import rows_not_kept
from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign.closed_form.aligned_model import AlignedModel
from covalign.factor import cross_validation, ownership, placement
from covalign.factor.feature_regression import Regression
from covalign.factor.fitted_rows import FittedRows, Rows
from covalign.factor.inference import sweeps, uncertainty
from covalign.factor.inference.n_factors import ACTIVE_SHARE
from covalign.factor.inference.patterns import Gapped
from covalign.factor.inference.realignment import Realigned
from covalign.factor.inference.row_evidence import intercept
from covalign.factor.inference.state import Problem, State
from covalign.factor.table import Table
from covalign.tables.representations import SINGLE


class SampleResults(AlignedModel):
    """The part of ``InformedFactorAnalysis`` that is about its samples; it computes when first asked."""

    beta_: Array
    factor_names_: list[str]
    _problem: Problem
    _state: State
    _stage_1: State
    _table: Table
    _rows: FittedRows
    _laplace: uncertainty.Laplace | None = None  # of stage 1
    _once: Any = None  # the model in which covariates count once, once asked for
    supervision_: float
    _factor_std: Array | None = None
    _factors: Array | None = None
    _realigned: Realigned | None
    _regression: Regression | None = (
        None  # what features say beyond the factors, in those of samples without covariates
    )
    _owners: list[ownership.Finding] | None = None  # among samples, once looked for

    @property
    def _paper_T(self) -> Array:
        """T (P x P) of the paper's stage 2; the identity if the model is not in it."""
        realigned = self._realigned
        return np.eye(self._problem.p) if realigned is None or realigned.R is not None else realigned.T

    @property
    def factors_(self) -> Array:
        """Posterior means of the factors of the fitted samples (n x K), computed when first asked for.

        Where the fit did not hold the rows, this reads them again; a model of a stream, or a saved one, cannot.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.factors_.shape
        (200, 10)
        """
        self._check_fitted()
        if self._factors is None:
            self._factors = self._means(self._state)
            if self._realigned is None and self._owners is None:  # ``fit`` had no rows to look at
                self._owners = self._owners_among_samples(self._factors)
                ownership.warn(ownership.frame(self._owners), self.covariate_names_, stacklevel=3)
        return self._factors

    @property
    def factor_std_(self) -> Array:
        """Standard deviations of ``factors_`` (n x K), for informed factors with that of their rotation.

        On simulated data ``factors_ -+ 1.645 factor_std_`` contains the true informed factor 83 to 92 times in 100
        (docs/notes.md). A free factor has only its own standard
        deviation, as no rotation of it is the true one. Computed when first asked for. With a supervision above 1, that
        takes a fit with supervision 1, and intervals contain the distance to its factors; they are NaN if the rows are
        not in memory.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.factor_std_.shape, bool((fa.factor_std_ > 0).all())
        ((200, 10), True)
        """
        self._check_fitted()
        if self._factor_std is None:
            self._factor_std = self._finish()(self._placed.variances, self._means(self._stage_1))
        return self._factor_std

    @property
    def ownership_(self) -> pd.DataFrame:
        """Single samples, features and views that own what many should share: an empty frame if all is well.

        One row for each: kind, factor, view, owner, share, advice. "sample of a factor": one sample, or two, have more
        than half of the sum of squares of an active factor (more where there are few samples), and not of its
        covariate. "feature of a factor in a view": one of at least ten features has more than 90 % of the squared
        loadings. "view of all factors": one of several views has more than 95 % of the explained variance. ``fit``
        warns of them. Samples whose rows are not in memory are looked at when ``factors_`` are asked for. All
        regimes of a fit have the same owners.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> len(ca.InformedFactorAnalysis(10).fit(s.X, s.Y).ownership_)
        0
        """
        self._check_fitted()
        if self._owners is None and isinstance(self._rows, Rows):
            self._owners = self._owners_among_samples(self._means(self._stage_1))
        views, first = self._table.views, self._stage_1
        explained = placement.shares(self._problem, first, "loadings")
        loadings = {name: view.w.mean for name, view in zip(views, first.views, strict=False)}
        names = {name: view.names for name, view in views.items()}
        features = ownership.of_features(loadings, names, self.factor_names_, explained > ACTIVE_SHARE)
        of_views = ownership.of_views(explained.sum(axis=1), list(views))
        return ownership.frame([*(self._owners or []), *features, *of_views])

    @property
    def sample_weights_(self) -> pd.DataFrame:
        """What every fitted sample counts in every view: E[u_nv] with ``noise="student"``, otherwise 1.

        1 is a usual sample; a sample with .1 has ten times the noise variance there. A view that the sample lacks has
        1, too.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=100)
        >>> s.X[3] *= 10
        >>> fa = ca.InformedFactorAnalysis(10, noise="student").fit(s.X, s.Y)
        >>> int(fa.sample_weights_.iloc[:, 0].idxmin())
        3
        """
        self._check_fitted()
        scales, views = self._stage_1.scales, list(self._table.views)
        weights = np.ones((self._problem.n, len(views))) if scales is None else scales.mean
        index = None if self._table.samples is None else pd.Index(self._table.samples)
        return pd.DataFrame(weights, index=index, columns=views)

    def _owners_among_samples(self, Z: Array) -> list[ownership.Finding]:
        explained = placement.shares(self._problem, self._stage_1, "loadings")
        active = explained.max(axis=0) > ACTIVE_SHARE
        return ownership.of_samples(Z, self._rows.Y, self.factor_names_, active, self._table.samples)

    def _circumstances(self) -> dict[str, Any]:
        return {**super()._circumstances(), "ownership": self.ownership_.to_dict("records")}

    def _means(self, state: State) -> Array:
        """E[z_n] of the fitted samples."""
        R = None if self._realigned is None else self._realigned.R
        if R is None or state is self._stage_1:
            z = self._rows.means(self._table, self._problem, self._stage_1, state, self._paper_T)
            return z if self._regression is None else self._without_covariates(z, self._regression)
        return np.asarray(self._means(self._stage_1) @ R.T)

    def _without_covariates(self, z: Array, regression: Regression) -> Array:
        """Samples of the fit without any covariate have the factors that ``transform`` gives them."""
        data = self._problem.data
        if not isinstance(data, Gapped) or data.has_y.any(axis=1).all():
            return z
        z = z.copy()
        for here, parts, Y, C in self._rows.chunks(self._table):
            alone = np.isnan(Y).all(axis=1)
            if alone.any():
                X = self._table.standardised(
                    {name: part[alone] for name, part in parts.items()}, None if C is None else C[alone]
                )
                z[here][alone] = regression.mixed(z[here][alone], np.nan_to_num(X), ~np.isnan(X))
        return z

    @property
    def _placed(self) -> placement.Placed:
        """q(z) of the fitted samples."""
        n, k = self._problem.n, self._problem.k
        with_gaps = isinstance(self._problem.data, Gapped)
        group = self._rows.combinations(self._table, self._problem) if with_gaps else np.zeros(n, dtype=np.intp)
        return placement.Placed(self.factors_, self._state.z.cov.reshape(-1, k, k), group, self._state.scales)

    @property
    def beta_std_(self) -> Array:
        """Standard deviations of ``beta_``, at most 1, which says that nothing is known.

        With a supervision above 1, that takes a fit with supervision 1; NaN if the rows are not in memory.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> bool((abs(fa.beta_ - s.beta) < 4 * fa.beta_std_).all())
        True
        """
        rotation, once = self._rotation(), self._counted_once()  # the first refuses a model without a fit
        if once is None:
            return np.full(len(self.beta_), np.nan)
        if once is not self:
            return np.asarray(np.minimum(np.hypot(once.beta_std_, self.beta_ - once.beta_), 1.0))
        noise = uncertainty.Noise.of(self._problem, self._stage_1)
        chance = uncertainty.by_chance(self.beta_, noise.chance, self._problem.k)
        return uncertainty.beta_std(self.beta_, rotation.gamma + noise.gamma, self._rows.tails, chance)

    def _counted_once(self) -> Any:
        """The model with supervision 1: this one, or a fit to the same rows; None if they are not in memory.

        What counts more than once looks more certain than it is. So intervals are those of the model in which
        covariates count once, as wide as the distance to it needs.
        """
        if self.supervision_ <= 1:
            return self
        if self._once is None and isinstance(self._rows, Rows):
            self._once = cross_validation.with_supervision_1(self)
        return self._once

    def _rotation(self) -> uncertainty.Laplace:
        self._check_fitted()
        if self._laplace is None:
            with sweeps.few_threads(self._problem):
                self._laplace = uncertainty.laplace(self._problem, self._stage_1)
        return self._laplace

    def _finish(self) -> uncertainty.Finish:
        once, p, T = self._counted_once(), self._problem.p, self.T_[:, : self._problem.p]
        if once is self:
            return uncertainty.Finish(self._rotation().rows, T, self._problem.n, np.zeros(len(T)))
        if once is None:
            return uncertainty.Finish(self._rotation().rows, T, self._problem.n, np.full(len(T), np.nan))
        away = (self._means(self._stage_1) - once._means(once._stage_1))[:, :p]
        B = away.T @ away / len(away) + _mean_cov(once)[:p, :p] - _mean_cov(self)[:p, :p]
        bend = np.maximum(np.einsum("pq,qr,pr->p", T, B, T), 0.0)
        return uncertainty.Finish(once._rotation().rows, T, self._problem.n, bend)

    def impute(self, view: str | None = None, *, return_std: bool = False) -> Any:
        """A view as a DataFrame, observed cells as they were and gaps at their posterior means.

        ``return_std`` adds a DataFrame of standard deviations, 0 where observed: they contain the uncertainty of
        factors and loadings, and the noise of the feature.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> s.X[:20, :3] = float("nan")
        >>> filled, std = ca.InformedFactorAnalysis(10).fit(s.X, s.Y).impute(return_std=True)
        >>> int(filled.isna().sum().sum()), int((std > 0).sum().sum())
        (0, 60)
        """
        self._check_fitted()
        return_std = check_flag("return_std", return_std)
        view = self._table.view(view)
        if not isinstance(self._rows, Rows):
            need = "impute needs rows in memory, and this model was fitted to data that were read by chunks"
            remedy = "Fit it to an array, or use transform(X) and loadings_ for some rows at a time"
            raise ValueError(message(need, remedy=remedy))
        at = list(self._table.views).index(view)
        scale, where = self._table.views[view], self._problem.bounds[at]
        values, std = placement.imputed(self._rows.X[:, where], scale, self._state.views[at], at, self._placed)
        index = None if self._table.samples is None else pd.Index(self._table.samples)
        frame = pd.DataFrame(values + self._explained[:, where], index=index, columns=scale.names)
        return (frame, pd.DataFrame(std, index=index, columns=scale.names)) if return_std else frame

    @property
    def _explained(self) -> Array:
        """What confounders explain of X (n x D)."""
        if self._rows.C is None:
            raise rows_not_kept()
        return self._table.nuisance.of_x(self._rows.C)

    def reconstruct(self) -> Any:
        """E[Z] E[W]' in the units of X, with what confounders explain: a dict of arrays, or one where X was a table.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30, "protein": 20})
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> {view: table.shape for view, table in fa.reconstruct().items()}
        {'rna': (200, 30), 'protein': (200, 20)}
        """
        self._check_fitted()
        explained, table = self._explained, self._table
        parts = zip(table.views.items(), self._state.views[: len(table.views)], table.bounds, strict=True)
        views = {
            name: (self.factors_ @ view.w.mean.T + intercept(view.w)) * scale.sd + scale.mean + explained[:, where]
            for (name, scale), view, where in parts
        }
        return views[SINGLE] if self._table.single else views


def _mean_cov(model: Any) -> Array:
    """The mean of Cov(z_n) over the fitted samples."""
    problem: Problem = model._problem
    return np.asarray(model._stage_1.z.total_cov(problem.n) / problem.n)
