"""InformedFactorAnalysis: validate, delegate to the kernel, remember."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from covalign._core.checks import check_flag
from covalign._core.data_errors import no_columns, too_many_factors_asked, y_required
from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign.closed_form import regimes
from covalign.closed_form.budget import Budget
from covalign.factor import (
    chunked_fit,
    factor_archive,
    feature_regression,
    label_free,
    mofa_export,
    new_samples,
    ownership,
    placement,
    preparation,
    supervision,
)
from covalign.factor.dask_views import is_lazy
from covalign.factor.factor_regimes import RegimesOfFactors
from covalign.factor.feature_regression import Regression
from covalign.factor.findings import Findings
from covalign.factor.fit_search import Best, Search, warn_if_not_converged
from covalign.factor.fitted_rows import Rows as RowsInMemory
from covalign.factor.held_out_factors import HeldOutFactors
from covalign.factor.inference import sweeps, updates
from covalign.factor.inference.engines import Sparse
from covalign.factor.inference.heavy_tails import Scaled
from covalign.factor.inference.kernel import kernel_of
from covalign.factor.inference.n_factors import ACTIVE_SHARE
from covalign.factor.inference.patterns import Gapped
from covalign.factor.inference.realignment import Realigned
from covalign.factor.inference.sparse_gaps import SparseGapped
from covalign.factor.inference.state import Problem, State, cannot_resume
from covalign.factor.inference.sweeps import Fit
from covalign.factor.results import Tables
from covalign.factor.sample_results import SampleResults
from covalign.factor.table import Table
from covalign.factor.views import is_in_memory
from covalign.moments.gap_accumulator import fold_moments
from covalign.persist import archive as store
from covalign.tables import groups as grouping
from covalign.tables.covariates import Encoding, numbered
from covalign.tables.estimator_input import open_tables

CHOICE = "the choice of the supervision"


class InformedFactorAnalysis(RegimesOfFactors, HeldOutFactors, Findings, SampleResults, Tables, BaseEstimator):
    """Bayesian multi-view factor analysis whose first P factors are informed by P covariates.

    x^(m)_n = W^(m) z_n + noise, z_np ~ N(beta_p y_np, 1 - beta_p^2) for the informed factors, N(0, 1) for free ones,
    with automatic relevance determination of every factor in every view. Fitted by variational inference whose bound
    (``elbo_``) never falls.

    Parameters
    ----------
    n_factors : int or "auto"
        Informed and free factors together. Too many are harmless: the ones not needed are turned off. ``"auto"`` starts
        with more than enough and drops what the bound is better without, at the cost of a few fits; ``n_factors_`` is
        the number in use and ``n_factors_path_`` the bound of every number that was tried, most after a few sweeps.
    posterior : "full", "mean_field" or "coordinates"
        Joint Gaussians over all factors, or the paper's factorisation. ``"coordinates"`` is the mean field with the
        paper's updates, which visit factors and loadings one by one; it needs data without missing values.
    accelerate : bool
        After each sweep maximise over all invertible transformations of the factors.
    max_iter, tol
        Stop after so many sweeps, or when the bound's relative change falls below tol. With ``accelerate``, also when
        the gains of the last sweeps promise less than .001 nats for all further ones (tol below 1e-8: even less).
    pretrain_iter : int
        Sweeps of the model without covariates before the fit (the paper's warm-up).
    random_state : int, Generator or None
        Used only by the random starts (``n_init`` > 1).
    n_init : int
        Number of starts. The first, from rotated principal components, is deterministic; the others are random
        rotations. The best bound is kept.
    scale : bool, or dict view -> bool
        Divide features by their standard deviation. They are always centred.
    engine : "auto", "gram" or "dense"
        Work on the Gram matrix (sweeps free of N) or on the rows (more features than rows).
    drop_first : bool
        Leave out the first level of every category, its reference level: the first declared category, otherwise the
        first in sorted order. False gives every level a factor; L levels have only L - 1 independent directions.
    folds : int
        Folds of the cross-validation behind the held-out numbers: the model is fitted again without each fold when one
        of them is first asked for. 0: nothing is held out, and these numbers are NaN.
    chunk_rows : int or None
        Rows read at a time where X is not in memory; by default what suits the storage and the cache.
    supervision : "auto" or float
        How often the covariates count against the features. 1 is the paper's model, in which many features outvote few
        covariates; with more, the covariates are also a view whose likelihood has the power ``supervision - 1``.
        ``"auto"`` is 1 unless features predict the covariates better than the factors do; then it is 4 or 16, whichever
        places left-out samples better, or 1 if that is clearly better still. ``supervision_`` is the value in use.
    beta_prior : float
        kappa of the prior (1 - beta^2)^kappa. Where X says nothing of a covariate any beta would do; the prior then
        says 0. Its weight is that of 2 kappa samples. 0 is the paper's flat prior.
    regime_from : "features" or "model"
        A regime holds for the factors that samples get from their features alone, or (the paper's way) for those of a
        model with this beta and these covariates, which the factors of new samples may not follow.
    noise : "gaussian" or "student"
        ``"student"`` gives every sample a scale in every view, so that a sample whose values in a view are far off
        counts less there (``sample_weights_``); new samples get theirs. Rows must be in memory.
    regression_share : "auto" or float
        K factors may lack what predicts a covariate. So the informed factors of samples without covariates are a
        mixture: a share (0 to 1) of ridge regression on all features, gaps filled by the model, and the rest E[z | x].
        ``"auto"`` is 0 where the factors predict the covariates as well as all features do, or where ``supervision`` is
        given; elsewhere it is .5, unless another is clearly better on left-out samples. ``regression_share_`` is the
        value in use.

    Attributes
    ----------
    factors_, loadings_[view], noise_precision_[view], ard_precision_[view]
        Posterior means, in standardised units; ``factor_std_`` (n x K) and ``loadings_std_`` their standard deviations.
        Informed factors come first, in the order of the covariates and correlated positively with them; then the free
        ones in the order of what they explain, each with its largest loading positive.
    regime_, lam_, T_
        The regime of the informed factors (None before ``at``), and its transformation (P x K; P x P in the paper's
        way).
    alignment_, coupling_, held_out_alignment_, mean_alignment_, category_alignment_
        corr(factor, covariate) of the samples that have it, the coupling of the informed factors, what holds on
        left-out samples, means over covariates, and eta squared of every category; as in ``LatentAligner``.
    n_rows_, n_pairs_, n_features_in_ : int, Series, int
        Samples, samples with each covariate, features of all views.
    feature_names_in_ : array
        Names of the features, where they have any; ``view:feature`` where X was a dict of views.
    beta_, beta_std_, intercept_, covariate_names_, confounder_names_, factor_names_, active_factors_, n_factors_
    elbo_, n_iter_, converged_

    Examples
    --------
    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=500)
    >>> fa = ca.InformedFactorAnalysis(n_factors=10).fit(s.X, s.Y)
    >>> fa.factors_.shape, fa.converged_
    ((500, 10), True)
    """

    n_iter_: int
    supervision_: float
    _unfinished: tuple[str, ...] = ()  # what Ctrl-C left out
    _of_features: Array | None = None  # coefficients of the regression on all features, once there is a share
    _dimensions = "factors"

    def __init__(
        self,
        n_factors: int | str = 10,
        posterior: str = "full",
        accelerate: bool = True,
        max_iter: int = 2000,
        tol: float = 1e-8,
        pretrain_iter: int = 0,
        random_state: Any = None,
        *,
        n_init: int = 1,
        scale: Any = True,
        engine: str = "auto",
        drop_first: bool = True,
        folds: int = 5,
        chunk_rows: int | None = None,
        supervision: Any = "auto",
        beta_prior: float = 4.0,
        regime_from: str = "features",
        noise: str = "gaussian",
        regression_share: Any = "auto",
    ) -> None:
        self.n_factors = n_factors
        self.posterior = posterior
        self.accelerate = accelerate
        self.max_iter = max_iter
        self.tol = tol
        self.pretrain_iter = pretrain_iter
        self.random_state = random_state
        self.n_init = n_init
        self.scale = scale
        self.engine = engine
        self.drop_first = drop_first
        self.folds = folds
        self.chunk_rows = chunk_rows
        self.supervision = supervision
        self.beta_prior = beta_prior
        self.regime_from = regime_from
        self.noise = noise
        self.regression_share = regression_share

    @classmethod
    def paper(cls, n_factors: int | str = 10, **settings: Any) -> InformedFactorAnalysis:
        """The paper's inference: mean field, no acceleration, 250 warm-up sweeps, relative change 5e-7, 2000 sweeps.

        Updates, warm-up and regimes are those of the paper (``posterior="coordinates"``); docs/notes.md lists what the
        paper leaves open. Data with missing values need ``posterior="mean_field"``.

        >>> import covalign as ca
        >>> ca.InformedFactorAnalysis.paper(5).posterior
        'coordinates'
        """
        paper = {
            "posterior": "coordinates",
            "accelerate": False,
            "max_iter": 2000,
            "tol": 5e-7,
            "pretrain_iter": 250,
            "supervision": 1.0,
            "beta_prior": 0.0,
            "regime_from": "model",
            "regression_share": 0.0,
        }
        return cls(n_factors, **{**paper, **settings})

    # -- fitting ------------------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, *, confounders: Any = None, groups: Any = None, warm_start: bool = False
    ) -> InformedFactorAnalysis:
        """Fit to X (table, or dict name -> table) and y (n x P); ``warm_start`` continues from the present fit.

        A table is an array or DataFrame, or rows that need not fit into memory: whatever ``covalign.open_rows`` takes.
        In place of X and y, ``fit(batches)`` takes an iterable of (X, y). If there are more rows than features, such
        data are read once, and again when ``factors_`` are asked for; else they are loaded.

        ``confounders`` (batch, age where it is not of interest) are regressed out of X and of y: a table, matched by
        index where it has one, or names of columns of y, which then are not covariates. New samples need theirs.

        ``groups`` says which samples belong together, such as those of a patient: one label for every sample, matched
        by index where it has one, or the name of a column of y, which then is no covariate. With a given supervision
        they do not change the fit; ``"auto"`` and ``summary`` leave groups out as a whole, and intervals count groups.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.factor_names_[3:7]
        ['y3', 'y4', 'free0', 'free1']
        """
        with self._unchanged_if_it_fails():  # warnings may be errors
            y, groups = self._fit_quietly(X, y, confounders, groups, warm_start)
            self._warn_if_unfinished()
            ownership.warn(self.ownership_, self.covariate_names_, stacklevel=3)
            if self.folds:
                named = groups is None and isinstance(y, pd.DataFrame)
                grouping.warn(self.n_groups_, grouping.likely_column(y, confounders) if named else None)
        return self

    def _fit_quietly(
        self, X: Any, y: Any, confounders: Any, groups: Any = None, warm_start: bool = False
    ) -> tuple[Any, Any]:
        """``fit`` without a look at what it found; y and the groups, once these are no column of y."""
        self._check_parameters()
        warm_start = check_flag("warm_start", warm_start)
        X, y = open_tables(X, y, chunk_rows=self.chunk_rows)
        asked = preparation.Asked(self.scale, self.engine, self.drop_first, self.chunk_rows)
        prepare = preparation.prepare if y is not None and is_in_memory(X) else chunked_fit.prepare
        y, groups = grouping.separated(y, groups, confounders)
        table, engine, rows = prepare(X, y, confounders, asked)
        samples = None if table.samples is None else pd.Index(table.samples)
        numbers = None if groups is None else grouping.numbers(groups, len(rows.Y), samples)
        p, n, d = len(table.mean_y), len(rows.Y), table.bounds[-1].stop
        if d == 0:
            raise no_columns("X", n)
        resume = warm_start and hasattr(self, "_state")
        k = self._problem.k if resume else p if self.n_factors == "auto" else int(self.n_factors)
        if p > k:
            raise too_many_factors_asked(p, k)
        coordinates = self.posterior == "coordinates"
        if coordinates and isinstance(engine, Gapped):
            raise _needs_complete(engine)
        if self.noise == "student":
            engine = _scaled(table, rows, np.asarray(engine.yy / n))
        if self.regime_from == "features":
            table = _with_reach(table, engine, rows)
        full = self.posterior == "full"
        problem = Problem(engine, n, p, k, table.bounds, full, float(self.beta_prior), coordinates=coordinates)
        if resume and self._realigned is not None:
            raise cannot_resume()
        made = copy.copy(self)  # if the fit fails, this model stays as it is
        made._table, made._rows, made._groups, made._realigned = table, rows, numbers, None
        made._budget = made._reading = None
        made._fit_supervised(problem, resume)
        self.__dict__ = made.__dict__
        return y, groups

    def _warn_if_unfinished(self) -> None:
        if not self._unfinished:
            warn_if_not_converged(self.converged_, self.n_iter_, self.max_iter, stacklevel=4)
            return
        text = (
            f"the fit was interrupted after {self.n_iter_} sweeps, and the best state so far is kept. Not done: "
            f"{', '.join(self._unfinished)}. Fit again, or go on with fit(..., warm_start=True)."
        )
        warnings.warn(text, ConvergenceWarning, stacklevel=4)

    def _fit_supervised(self, problem: Problem, resume: bool) -> None:
        """Stage 1 with the supervision that was asked for, or that left-out samples ask for."""
        if resume:
            share = self.regression_share_
        else:
            self.supervision_ = 1.0 if self.supervision == "auto" else float(self.supervision)
            share = 0.0 if self.regression_share == "auto" else float(self.regression_share)
        self._fit_stage_1(problem.supervised(self.supervision_ - 1), self._search(), resume)
        self._regress(share)
        if resume or self.supervision != "auto":
            return
        if self._unfinished:
            self._unfinished = (*self._unfinished, CHOICE)
            return
        try:
            self._choose_supervision(problem)
        except KeyboardInterrupt:  # the fit with supervision 1 is there
            self.supervision_, self.converged_, self._unfinished = 1.0, False, (CHOICE,)
            self._regress(share)

    def _choose_supervision(self, problem: Problem) -> None:
        """Stage 1 again where the covariates should count more."""
        if not supervision.can_leave_out(self):
            return
        factors = label_free.moments(self._problem, self._stage_1, self.covariate_names_, self._table.encoding.blocks)
        if not supervision.is_lost(problem, label_free.completed(factors)):
            return
        self.supervision_, share = supervision.weighed(self)
        if self.supervision_ > 1:
            again = problem._replace(k=self._problem.k).supervised(self.supervision_ - 1)
            self._fit_stage_1(again, self._search()._replace(choose_factors=False), resume=False)
        self._regress(share)

    def _regress(self, share: float) -> None:
        """Put this share of ridge regression on all features into the factors of samples without covariates."""
        self.regression_share_ = float(share) if self.regime_from == "features" else 0.0
        self._regression, self._placing, self._sums = None, {}, None
        if self.regression_share_ == 0:
            return
        if self._of_features is None:
            self._of_features = feature_regression.of_model(self, *supervision.to_regress(self))
        self._regression = Regression.of(self.regression_share_, self._of_features, self._stage_1)

    def _fit_stage_1(self, problem: Problem, search: Search, resume: bool) -> None:
        """Sweeps from the start, or from the present fit, and what follows from them."""
        with sweeps.few_threads(problem):
            begun = Fit(self._resumed(problem), [], False) if resume else None
            problem, best, tried, self._unfinished = search.best(problem, begun)
        tried[problem.k] = sweeps.height(best)
        self.n_factors_path_ = pd.Series(tried, name="elbo").rename_axis("n_factors").sort_index()
        best = best._replace(state=updates.in_order(best.state, problem.p, problem.features[-1].stop))
        if best.state.scales is not None:
            problem, state = placement.with_settled_scales(problem, best.state)
            best = best._replace(state=state)
        self._problem = problem
        self._stage_1, self._laplace, self._sums, self._held, self._placing = best.state, None, None, {}, {}
        self._of_features = self._regression = None
        self._owners = self._once = None
        self._remember(best)

    @property
    def n_groups_(self) -> int | None:
        """Groups of samples, None if samples were taken as independent.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.InformedFactorAnalysis(10).fit(s.X, s.Y, groups=[i // 2 for i in range(200)]).n_groups_
        100
        """
        self._check_fitted()
        return None if self._groups is None else len(np.unique(self._groups))

    def fit_transform(self, X: Any, y: Any, *, confounders: Any = None, groups: Any = None) -> Any:
        """``fit(X, y).factors_``: these samples are placed with their covariates, unlike those of ``transform(X)``.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.InformedFactorAnalysis(10).fit_transform(s.X, s.Y).shape
        (200, 10)
        """
        samples = self.fit(X, y, confounders=confounders, groups=groups)._table.samples
        return self._as_table(self.factors_, None if samples is None else pd.DataFrame(index=pd.Index(samples)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.noise == "student" and (self.regime_from == "model" or self.posterior == "coordinates"):
            need = "noise='student' needs regime_from='features' and posterior 'full' or 'mean_field'"
            raise ValueError(message(need, got=f"{self.regime_from!r} and {self.posterior!r}"))

    def _search(self) -> Search:
        sweeping = (self.accelerate, int(self.max_iter), float(self.tol), int(self.pretrain_iter))
        return Search(self.n_factors == "auto", *sweeping, int(self.n_init), self.random_state, Best())

    def _resumed(self, problem: Problem) -> State:
        same = [len(v.w.mean) for v in self._state.views] == [b.stop - b.start for b in problem.bounds]
        if not same or problem.k != self._problem.k or problem.p != self._problem.p:
            raise cannot_resume()
        return kernel_of(problem).resumed(problem, self._state)._replace(scales=None)

    def _remember(self, fit: Fit) -> None:
        """Set the public attributes from a fit."""
        state, table = fit.state, self._table
        self._state, self._factor_std, self._factors = state, None, None
        self.elbo_, self.n_iter_, self.converged_ = np.array(fit.elbo), len(fit.elbo), fit.converged
        self.beta_, self.intercept_ = state.beta, np.zeros(len(state.beta))
        self.covariate_names_ = table.encoding.names
        self.confounder_names_ = table.nuisance.coding.confounders.names
        free = numbered("free", self._problem.k - self._problem.p, self.covariate_names_)
        self.factor_names_ = [*self.covariate_names_, *free]
        named = dict(zip(table.views, state.views[: len(table.views)], strict=True))
        self.loadings_ = {name: view.w.mean for name, view in named.items()}
        self.loadings_std_ = {name: np.sqrt(view.w.variance) for name, view in named.items()}
        self.noise_precision_ = {name: view.noise.mean for name, view in named.items()}
        self.ard_precision_ = {name: view.ard.mean for name, view in named.items()}
        self.active_factors_ = (placement.shares(self._problem, state, "loadings") > ACTIVE_SHARE).any(axis=0)
        self.n_factors_, self.n_features_in_ = self._problem.k, table.bounds[-1].stop
        features = _feature_names(table)
        if features is not None:
            self.feature_names_in_ = features
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @property
    def n_rows_(self) -> int:
        """Number of fitted samples.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.InformedFactorAnalysis(10).fit(s.X, s.Y).n_rows_
        200
        """
        self._check_fitted()
        return int(self._problem.n)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def _coded_covariates(self) -> Encoding:
        return self._table.encoding

    def _names_out(self) -> list[str]:
        return self.factor_names_

    def _pair_counts(self) -> Any:
        data = self._problem.data
        return data.label_counts if isinstance(data, Gapped) else np.full(self._problem.p, self._problem.n)

    def _alignment_on(self, X: Any, y: Any, confounders: Any) -> Array:
        if y is None:
            raise y_required()
        z, Y = new_samples.factors(self, *self._opened(X, y), confounders, [self._stage], None, blind=True)
        p = self._problem.p
        (sums,) = fold_moments(z[:, :p], Y, 1, self._table.encoding.blocks)
        return np.full(p, np.nan) if sums is None else regimes.observed_alignment(np.eye(p), sums)

    # -- use ----------------------------------------------------------------------------------------------------------

    def transform(
        self,
        X: Any,
        y: Any = None,
        *,
        confounders: Any = None,
        return_std: bool = False,
        out: Any = None,
        overwrite: bool = False,
    ) -> Any:
        """Posterior means of the factors of new samples (n x K), from any subset of the views.

        Views and y may have gaps and samples of their own (DataFrames are joined by index). With y the prior mean of
        the informed factors is T(beta y); what is missing of y is integrated out: without any, z ~ N(0, T S_z T').
        ``return_std`` adds their standard deviations (n x K), as in ``factor_std_``. ``confounders`` are those of the
        new samples, if the model was fitted with some (columns of y, if they were columns of y in ``fit``).

        X is what ``fit`` takes. With ``out``, a path that ends in ``.npy``, ``.zarr`` or ``.parquet``, the factors
        (then their standard deviations) are written there as they are computed, and the path is returned. The file
        appears only when it is complete; after an interruption the same call resumes. For views in dask the result is a
        dask array, which is computed where the rows are.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30, "protein": 20})
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> placed, std = fa.transform({"rna": s.X["rna"][:5]}, return_std=True)
        >>> placed.shape, std.shape
        ((5, 10), (5, 10))
        """
        self._check_fitted()
        return_std = check_flag("return_std", return_std)
        stages = [self._stage]
        if self._realigned is not None and return_std:  # which starts from the means before realigning
            stages = [new_samples.Stage(self._stage_1, self._sy, np.eye(self._problem.p)), *stages]
        std = self._finish() if return_std else None
        X, y = self._opened(X, y)
        result, _ = new_samples.factors(self, X, y, confounders, stages, std, out=out, overwrite=overwrite)
        if out is not None or is_lazy(X):
            return result
        return tuple(self._as_table(part, X) for part in result) if return_std else self._as_table(result, X)

    @property
    def _stage(self) -> new_samples.Stage:
        R = None if self._realigned is None else self._realigned.R
        return new_samples.Stage(
            self._state if R is None else self._stage_1, self._sy, self._paper_T, R, self._regression
        )

    def _opened(self, X: Any, y: Any) -> tuple[Any, Any]:
        """New samples with their files opened, the features of the fit where they have names."""
        known = {name: scale.names for name, scale in self._table.views.items()}
        return open_tables(X, y, known, self.chunk_rows)

    def _row_names(self, X: Any) -> pd.Index | None:
        """Those of the joined views."""
        if not is_in_memory(X):
            return None
        return preparation.index_of(preparation.joined_views(preparation.as_views(X)))

    @property
    def _sy(self) -> Array:
        return np.asarray(self._problem.data.yy / self._problem.n)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def save(self, path: Any) -> None:
        """Write the model to one file (arrays and JSON, no code); ``covalign.load`` reads it.

        The file appears only when it is complete.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.covalign"
        >>> fa.save(file)
        >>> bool((ca.load(file).beta_ == fa.beta_).all())
        True
        """
        self._check_fitted()
        store.write(path, *factor_archive.pack(self))

    def to_mofa(self, path: Any, *, groups: Any = None) -> None:
        """Write the model as an HDF5 file of MOFA2, which mofax and MOFA2's R package read; needs ``covalign[mofa]``.

        Factors keep their order: Factor1 is the first covariate, free factors follow (MOFA has no names for them;
        ``factors/GROUP`` in the file has ours). In R, ``load_model(file, sort_factors = FALSE, remove_inactive_factors
        = FALSE)`` keeps this order. Coded covariates are in the metadata of samples. Values are in units of the fit;
        the metadata of features has ``mean`` and ``sd``. Rows are written if they are in memory. ``groups`` are MOFA's:
        one label for every sample, matched by index where it has one; by default all samples are in "group1". The file
        appears only when it is complete, and replaces another one.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=100)
        >>> fa = ca.InformedFactorAnalysis(7).fit(s.X, s.Y)
        >>> import pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.hdf5"
        >>> fa.to_mofa(file)
        >>> ca.datasets.mofa(file).Z.shape
        (100, 7)
        """
        self._check_fitted()
        mofa_export.write(self, path, groups)

    @classmethod
    def _restored(cls, meta: dict[str, Any], arrays: dict[str, Array]) -> InformedFactorAnalysis:
        """The model ``factor_archive.pack`` packed."""
        # Files of earlier versions have regimes of the model's covariances.
        earlier = {"regime_from": "model", "supervision": 1.0, "beta_prior": 0.0, "regression_share": 0.0}
        model = cls(**{**earlier, **meta["parameters"]})
        model.supervision_ = 1.0 + meta.get("of_y", 0.0)
        model._placing = {}
        state = factor_archive.unpack(meta, arrays, model)
        realigned = meta["realigned"]  # regime and lambda
        if realigned is not None:
            regime, lam = realigned
            budget, gap = meta.get("exact") or (None, np.nan)
            model._realigned = Realigned(regime, lam, arrays["realigned.T"], arrays.get("realigned.R"), gap)
            model._budget = Budget.unpacked(budget)
        else:
            model._realigned = None
        model._reading = meta.get("reading")
        model._remember(Fit(state, arrays["elbo"].tolist(), meta["converged"]))
        return model


def _feature_names(table: Table) -> Any:
    """``feature_names_in_``; None where no view has names but 0, 1, ..."""
    if all(view.names == [str(i) for i in range(len(view.names))] for view in table.views.values()):
        return None
    names = [(view, name) for view, scale in table.views.items() for name in scale.names]
    return np.array([name if table.single else f"{view}:{name}" for view, name in names], dtype=object)


def _scaled(table: Table, rows: Any, S_y: Array) -> Scaled:
    """The rows of a fit with a scale for every sample and view."""
    if not isinstance(rows, RowsInMemory):
        need = "noise='student' needs rows in memory, and these are read by chunks"
        raise ValueError(message(need, remedy="use noise='gaussian', or load the rows"))
    ((_, parts, Y, C),) = rows.chunks(table)
    return Scaled.of_views(table.standardised(parts, C), Y, S_y, table.bounds)


def _with_reach(table: Table, engine: Any, rows: Any) -> Table:
    """The table of a fit that knows its most distant cells: its rows are in memory, or sparse."""
    plain = engine.plain if isinstance(engine, Scaled) else engine
    if not isinstance(rows, RowsInMemory) and not isinstance(plain, Sparse | SparseGapped):
        return table
    sparse: Any = plain
    farthest = table.farthest(rows.X) if isinstance(rows, RowsInMemory) else sparse.X.farthest
    return table.reaching(farthest, plain.xx / (plain.counts if isinstance(plain, Gapped) else len(rows.Y)))


def _needs_complete(data: Gapped) -> ValueError:
    """The error of the paper's updates on data with missing values."""
    need = "posterior='coordinates' needs data without missing values"
    got = "y with missing values" if data.observed.all() else "X with missing values"
    remedy = "use posterior='mean_field', the same model with other updates"
    return ValueError(message(need, got=got, remedy=remedy))
