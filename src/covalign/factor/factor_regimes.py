"""The regime of the informed factors, from those that features alone give, or the paper's way."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign.closed_form import optimum, regimes
from covalign.closed_form.aligned_model import AlignedModel
from covalign.closed_form.budget import Budget
from covalign.closed_form.regimes import Polar
from covalign.factor import (
    cross_validation,
    label_free,
)
from covalign.factor.fit_search import warn_if_not_converged
from covalign.factor.inference import realignment, sweeps, updates
from covalign.factor.inference.realignment import Realigned
from covalign.factor.inference.state import Factors, Problem, State
from covalign.factor.inference.sweeps import Fit
from covalign.factor.table import Table
from covalign.moments.gap_accumulator import fold_moments
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments


class RegimesOfFactors(AlignedModel):
    """The regime of a fitted ``InformedFactorAnalysis``, and how it is changed."""

    _problem: Problem
    _table: Table
    _rows: Any
    _stage_1: State
    _realigned: Realigned | None
    _sums: Rows | None = None  # of stage 1, once asked for
    _placing: dict[str, label_free.Placing]  # once asked for
    regression_share_: float = 0.0
    factors_: Array

    @abstractmethod
    def _remember(self, fit: Fit) -> None:
        """Set the public attributes from a fit."""

    if TYPE_CHECKING:  # of ``SampleResults``

        def _means(self, state: State) -> Array: ...

    realign = AlignedModel.at

    def _moved(self, regime: str, lam: float) -> Self:
        problem, first = self._problem, self._stage_1
        if self.regime_from == "features":
            return self._mixed(regimes.mixing(self._polar(), regime, lam), regime, lam)
        other, T = copy.copy(self), regimes.turned(self._polar(), regime, lam)
        with sweeps.few_threads(problem):
            fit = realignment.realign(problem, first, T, self.accelerate, self.max_iter, float(self.tol))
        other._realigned = Realigned(regime, float(lam), T)
        other._remember(fit)
        warn_if_not_converged(fit.converged, len(fit.elbo), self.max_iter, stacklevel=4)
        return other

    def _moved_within(self, budget: Budget) -> Self:
        if self.regime_from == "model":
            need = 'exact=True needs regime_from="features"'
            remedy = "Fit with it, or use at(max_coupling=...) without exact"
            raise ValueError(message(need, got='regime_from="model"', remedy=remedy))
        best = optimum.largest_alignment(self._polar().M, budget)
        return self._mixed(best.mixing, "exact", np.nan, budget, best.gap)

    def _mixed(self, mixing: Array, regime: str, lam: float, budget: Budget | None = None, gap: float = np.nan) -> Self:
        """A copy of this model with the informed factors mixing T_0 z."""
        other, R = copy.copy(self), self._label_free.map(mixing)
        other._realigned, other._budget = Realigned(regime, float(lam), R[: self._problem.p], R, gap), budget
        other._remember(Fit(updates.moved_by_map(self._stage_1, R), self.elbo_.tolist(), self.converged_))
        return other

    @property
    def gap_(self) -> float:
        """Certificate of the exact regime, as in ``LatentAligner``; NaN in other regimes.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.gap_, fa.at(max_coupling=0.5, exact=True).gap_ < 1e-9
        (nan, True)
        """
        self._check_fitted()
        return float("nan") if self._realigned is None else self._realigned.gap

    @property
    def _label_free(self) -> label_free.Placing:
        """The factors that features alone give; all regimes share them."""
        if "here" not in self._placing:
            names, blocks = self.covariate_names_, self._table.encoding.blocks
            self._placing["here"] = label_free.Placing.of(self._problem, self._stage_1, names, blocks, self._regression)
        return self._placing["here"]

    @property
    def T_(self) -> Array:
        """The informed factors of the regime are T z, z all factors of stage 1 (P x K); the identity before realigning.

        In the paper's way (``regime_from="model"``) z are the informed factors alone (P x P).

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.T_.trace().item(), fa.realign(0.5).T_.shape
        (5.0, (5, 10))
        """
        self._check_fitted()
        if self._realigned is not None:
            return self._realigned.T
        return np.eye(self._problem.p, self._problem.k if self.regime_from == "features" else None)

    @property
    def regime_(self) -> str | None:
        """The regime this model was realigned to, or None.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.regime_, fa.realign(0.5).regime_
        (None, 'tunable')
        """
        self._check_fitted()
        return None if self._realigned is None else self._realigned.regime

    @property
    def lam_(self) -> float | None:
        """The lambda this model was realigned to (NaN for the exclusive regime), or None.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.lam_, fa.realign(regime="strongest").lam_
        (None, 1.0)
        """
        self._check_fitted()
        return None if self._realigned is None else self._realigned.lam

    def _polar(self) -> Polar:
        return self._label_free.polar if self.regime_from == "features" else cross_validation.model_polar(self)

    def _default_lam(self) -> float | None:
        return None

    def _fitted_sums(self) -> Rows:
        """Moments of the factors that features alone give, before any regime, and of the covariates.

        In the paper's way, those of the informed factors of the fitted samples, which know their covariates.
        """
        if self.regime_from == "features":
            return self._label_free.rows
        if self._sums is None:
            p, first = self._problem.p, self._stage_1
            if isinstance(first.z, Factors):  # from sums: no row is read again
                n, of, yy = self._problem.n, first.z, self._problem.data.yy
                self._sums = Moments.from_covariances(of.zz[:p, :p] / n, of.zy[:p] / n, yy / n, n=n)
            else:
                z = self.factors_ if self._realigned is None else self._means(first)
                (self._sums,) = fold_moments(z[:, :p], self._rows.Y, 1, self._table.encoding.blocks)
        assert self._sums is not None  # there are samples
        return self._sums

    def _plain_polar(self) -> Polar:
        """The polar form of the informed factors as stage 1 has them."""
        return self._label_free.plain() if self.regime_from == "features" else self._polar()

    @property
    def _label_free_mean(self) -> Any:
        return self._label_free.mean if self.regime_from == "features" else 0.0
