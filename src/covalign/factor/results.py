"""A fitted model as tables: shares of variance, features, factors, the bound, gaps."""

from __future__ import annotations

from typing import Any

import pandas as pd

from covalign._core.checks import check_choice
from covalign._core.linalg import Array
from covalign._core.messages import message, shown
from covalign.closed_form.aligned_model import AlignedModel
from covalign.factor import frames, placement
from covalign.factor.inference.state import Problem, State
from covalign.factor.table import Table


class Tables(AlignedModel):
    """The tables of a fitted ``InformedFactorAnalysis``; nothing here changes the model."""

    _problem: Problem
    _state: State
    _table: Table
    elbo_: Array
    converged_: bool
    factor_names_: list[str]
    loadings_: dict[str, Array]
    loadings_std_: dict[str, Array]

    def variance_explained(self, kind: str = "marginal") -> pd.DataFrame:
        """Share of each view's variance per factor (views x factors).

        ``"marginal"``: R^2 of each feature regressed on that factor alone, averaged over features.
        ``"loadings"``: 1 - |X - z_k w_k'|^2 / |X|^2. Neither adds up for correlated factors; see
        ``total_variance_explained``.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30, "protein": 20})
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.variance_explained().shape
        (2, 10)
        """
        self._check_fitted()
        check_choice("kind", kind, ("marginal", "loadings"))
        shares = placement.shares(self._problem, self._state, kind)
        return pd.DataFrame(shares, index=list(self._table.views), columns=self.factor_names_)

    def total_variance_explained(self) -> pd.Series:
        """R^2 of each feature on all factors jointly, averaged over each view's features.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30, "protein": 20})
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.total_variance_explained().round(1).to_dict()
        {'rna': 0.9, 'protein': 0.9}
        """
        self._check_fitted()
        totals = placement.total_shares(self._problem, self._state)
        return pd.Series(dict(zip(self._table.views, totals, strict=True)), name="total")

    def top_features(self, factor: str | int, view: str | None = None, n: int = 10) -> pd.DataFrame:
        """The n features with the largest |loading| on a factor: feature, loading, std; the largest first.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30, "protein": 20})
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.top_features("y0", "protein", n=3).columns.tolist()
        ['feature', 'loading', 'std']
        """
        self._check_fitted()
        if factor is None or isinstance(factor, list | tuple | set):
            need = "top_features needs one factor, by name or position"
            raise ValueError(message(need, got=shown(factor), remedy="features_frame has those of several"))
        at, *_ = frames.positions(factor, self.factor_names_)
        top = frames.top_features(self, at, self._table.view(view), n)
        return top[["feature", "loading", "std"]]

    def factors_frame(self) -> pd.DataFrame:
        """``factors_`` with names: samples x factors.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_factors=7)
        >>> ca.InformedFactorAnalysis(7).fit(s.X, s.Y).factors_frame().columns.tolist()
        ['y0', 'y1', 'y2', 'y3', 'y4', 'free0', 'free1']
        """
        self._check_fitted()
        return frames.factors(self)

    def loadings_frame(self, factors: Any = None, views: Any = None, n: int | None = None) -> pd.DataFrame:
        """One row per view, feature and factor: view, feature, factor, loading, std.

        Of some ``factors`` and ``views`` only (a name or several), and with ``n`` only of the features that are among
        the n largest |loading| of their view on any of these factors; the largest first, by the factor they are of.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_factors=7)
        >>> ca.InformedFactorAnalysis(7).fit(s.X, s.Y).loadings_frame(["y0", "y1"], n=3).columns.tolist()
        ['view', 'feature', 'factor', 'loading', 'std']
        """
        self._check_fitted()
        return frames.loadings(self, factors, views, n)

    def bound_frame(self) -> pd.DataFrame:
        """One row per sweep: sweep, elbo, below_end (nats below the last), converged (whether it had by then).

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_factors=7)
        >>> ca.InformedFactorAnalysis(7).fit(s.X, s.Y).bound_frame()["converged"].iloc[-1].item()
        True
        """
        self._check_fitted()
        return frames.bound(self.elbo_, self.converged_)

    def missing_frame(self) -> pd.DataFrame:
        """Which data are missing, one row per pattern of gaps and table: pattern, samples, kind, name, observed.

        Samples of a pattern have the same views and covariates (``kind``), wholly, in part or not at all; ``observed``
        is the share of cells that are there. The most frequent pattern comes first.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_factors=3, n_covariates=1)
        >>> s.Y[:50] = float("nan")
        >>> ca.InformedFactorAnalysis(3).fit(s.X, s.Y).missing_frame()
           pattern  samples       kind name  observed
        0        0      150       view    X       1.0
        1        0      150  covariate   y0       1.0
        2        1       50       view    X       1.0
        3        1       50  covariate   y0       0.0
        """
        self._check_fitted()
        return frames.missing(self)
