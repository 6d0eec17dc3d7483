"""InformedFactorAnalysis: validate, delegate to the kernel, remember."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from covalign._core import validation as errors
from covalign._core.linalg import Array
from covalign._core.progress import Progress
from covalign.closed_form import heldout, regimes
from covalign.factor import chunked_fit as outofcore
from covalign.factor import cross_validation as crossvalidation
from covalign.factor import dask_views as lazy
from covalign.factor import factor_archive as storage
from covalign.factor import new_samples as newcomers
from covalign.factor import placement as placing
from covalign.factor import preparation as data
from covalign.factor import views as streaming
from covalign.factor.inference import n_factors as selection
from covalign.factor.inference import realignment, uncertainty, updates
from covalign.factor.inference import sweeps as fitting
from covalign.factor.inference.kernel import kernel_of
from covalign.factor.inference.patterns import Gapped
from covalign.factor.inference.start import alternatives, covariate_turn, start, starts
from covalign.factor.inference.state import Factors, Problem, State
from covalign.factor.results import Tables
from covalign.moments.moments import Moments
from covalign.persist import archive as store
from covalign.tables.covariates import numbered

TRIAL_SWEEPS = 1  # enough to tell which mirror image is better
EXPLORE_SWEEPS = 20  # enough to tell which covariate is best given up, where a fit has not converged by then


class InformedFactorAnalysis(Tables, BaseEstimator):
    """Bayesian multi-view factor analysis whose first P factors are informed by P covariates.

    x^(m)_n = W^(m) z_n + noise, z_np ~ N(beta_p y_np, 1 - beta_p^2) for the informed factors, N(0, 1) for free ones,
    with automatic relevance determination of every factor in every view. Fitted by variational inference whose bound
    (``elbo_``) never falls.

    Parameters
    ----------
    n_factors : int or "auto"
        Informed and free factors together. Too many are harmless: the ones not needed are turned off. ``"auto"`` starts
        with more than enough and drops what the bound is better without; ``n_factors_`` is the number in use and
        ``n_factors_path_`` the bound reached with every number that was tried to the end.
    posterior : "full" or "mean_field"
        Joint Gaussians over all factors, or the paper's factorisation.
    accelerate : bool
        After each sweep maximise over all invertible transformations of the factors.
    max_iter, tol
        Stop after so many sweeps, or when the bound's relative change falls below tol.
    pretrain_iter : int
        Sweeps of the model without covariates before the fit (the paper's warm-up).
    random_state : int, Generator or None
        Only restarts (``n_init`` > 1) draw random numbers.
    n_init : int
        Starts; the first from turned principal components, others from random turns. The best bound is kept.
    scale : bool, or dict view -> bool
        Divide features by their standard deviation. They are always centred.
    engine : "auto", "gram" or "dense"
        Work on the Gram matrix (sweeps free of N) or on the rows (more features than rows).
    drop_first : bool
        Leave out the first dummy of every categorical covariate.

    Attributes
    ----------
    factors_, loadings_[view], noise_precision_[view], ard_precision_[view]
        Posterior means, in standardised units; ``factor_std_`` (n x K) and ``loadings_std_`` their standard deviations.
        Informed factors come first, in the order of the covariates and correlated positively with them; then the free
        ones in the order of what they explain, each with its largest loading positive.
    alignment_, category_alignment_
        corr(factor, covariate) of the samples that have it; eta squared of every category.
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

    _problem: Problem
    _realigned: realignment.Realigned | None
    n_iter_: int
    _laplace: uncertainty.Laplace | None = None  # of stage 1, once asked for
    _held: dict[int, heldout.HeldOut]  # by the number of folds, once asked for
    _factor_std: Array | None = None
    _factors: Array | None = None

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
        drop_first: bool = False,
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

    @classmethod
    def paper(cls, n_factors: int | str = 10, **settings: Any) -> InformedFactorAnalysis:
        """The paper's inference: mean field, no acceleration, 250 warm-up sweeps, relative change 5e-7, 2000 sweeps.

        >>> import covalign as ca
        >>> ca.InformedFactorAnalysis.paper(5).posterior
        'mean_field'
        """
        paper = {
            "posterior": "mean_field",
            "accelerate": False,
            "max_iter": 2000,
            "tol": 5e-7,
            "pretrain_iter": 250,
        }
        return cls(n_factors, **{**paper, **settings})

    # -- fitting ------------------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, *, confounders: Any = None, warm_start: bool = False
    ) -> InformedFactorAnalysis:
        """Fit to X (table, or dict name -> table) and y (n x P); ``warm_start`` goes on from where the model is.

        A table is an array or DataFrame, or rows that need not fit into memory: whatever ``rows.open_rows`` takes. In
        place of X and y, ``fit(batches)`` takes an iterable of (X, y). If there are more rows than features, such data
        are read once, and again when ``factors_`` are asked for; else they are loaded.

        ``confounders`` (batch, age where it is not of interest) are regressed out of X and of y: a table, matched by
        index where it has one, or names of columns of y, which then are not covariates. New samples need theirs.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.factor_names_[3:7]
        ['y3', 'y4', 'free0', 'free1']
        """
        self._check_parameters()
        asked = data.Asked(self.scale, self.engine, self.drop_first)
        in_memory = y is not None and streaming.is_in_memory(X)
        prepare = data.prepare if in_memory else outofcore.prepare
        table, engine, rows = prepare(X, y, confounders, asked)
        p, n = len(table.mean_y), len(rows.Y)
        resume = warm_start and hasattr(self, "_state")
        k = self._problem.k if resume else p if self.n_factors == "auto" else int(self.n_factors)
        if p > k:
            raise errors.too_many_factors_asked(p, k)
        problem = Problem(engine, n, p, k, table.bounds, self.posterior == "full")
        tried: dict[int, float] = {}
        with fitting.few_threads(problem):
            if resume:
                fits = [self._run(problem, fitting.Fit(self._resume(problem), [], False))]
            else:
                problem, first, tried = self._first(problem)
                seeds = errors.check_random_state(self.random_state).spawn(self.n_init - 1)
                fits = [first, *(self._run(problem, self._begin(problem, rng)) for rng in seeds)]
        best = max(fits, key=fitting.height)
        tried[problem.k] = fitting.height(best)
        self.n_factors_path_ = pd.Series(tried, name="elbo").rename_axis("n_factors").sort_index()
        self._table, self._problem, self._rows, self._realigned = table, problem, rows, None
        best = best._replace(state=updates.in_order(best.state, p))
        self._stage_1, self._laplace, self._held = best.state, None, {}
        self._remember(best)
        if not best.converged:
            warnings.warn(errors.not_converged(self.n_iter_), ConvergenceWarning, stacklevel=2)
        return self

    def fit_transform(self, X: Any, y: Any, *, confounders: Any = None) -> Array:
        """``fit(X, y).factors_``.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.InformedFactorAnalysis(10).fit_transform(s.X, s.Y).shape
        (200, 10)
        """
        return np.asarray(self.fit(X, y, confounders=confounders).factors_)

    def _check_parameters(self) -> None:
        if self.posterior not in ("full", "mean_field"):
            raise errors.unknown_posterior(self.posterior)
        if self.n_factors != "auto" and not _is_count(self.n_factors):
            raise errors.number_of_factors(self.n_factors)
        for what in ("max_iter", "n_init"):
            if not _is_count(getattr(self, what)):
                raise errors.not_positive(what, getattr(self, what))

    def _first(self, problem: Problem) -> selection.Choice:
        """A fit from the start without chance, with the number of factors chosen if that is wanted."""

        def begin(chosen: Problem) -> fitting.Fit:
            return self._explored(chosen, self._begin(chosen, None))

        if self.n_factors == "auto":
            return selection.choose(problem, begin, self._run)
        return selection.Choice(problem, self._run(problem, begin(problem)), {})

    def _begin(self, problem: Problem, rng: Any) -> fitting.Fit:
        """A start: the best of its mirror images after a few sweeps, or what a warm-up without covariates gives."""
        if rng is None and self.accelerate and not self.pretrain_iter:
            images = starts(problem)
            sweeps = min(TRIAL_SWEEPS, self.max_iter) if len(images) > 1 else 0
            tried = [fitting.fit(problem, image, True, sweeps, -np.inf) for image in images]
            return max(tried, key=fitting.height)
        state = start(problem, rng)
        if not self.pretrain_iter:
            return fitting.Fit(state, [], False)
        state = state._replace(beta=np.zeros(problem.p))
        state = state._replace(z=kernel_of(problem).update_factors(problem, state.views, state.beta))
        state = fitting.fit(problem, state, self.accelerate, self.pretrain_iter, self.tol, supervised=False).state
        turn = covariate_turn(state.z.zy, problem.k)  # K x K orthonormal: the first P factors at the covariates
        return fitting.Fit(updates.transformed(state, turn.T, problem.full), [], False)

    def _resume(self, problem: Problem) -> State:
        same = [len(v.w.mean) for v in self._state.views] == [b.stop - b.start for b in problem.bounds]
        if not same or problem.k != self._problem.k or problem.p != self._problem.p or self._realigned is not None:
            raise errors.cannot_resume()
        return kernel_of(problem).resumed(problem, self._state)

    def _explored(self, problem: Problem, begun: fitting.Fit) -> fitting.Fit:
        """The fit after some sweeps; where it has not converged by then, the best of it and of alternative starts."""
        if not self.accelerate or self.pretrain_iter or self.max_iter <= EXPLORE_SWEEPS:
            return begun
        first = self._run(problem, begun, EXPLORE_SWEEPS)
        if first.converged:
            return first
        others = [fitting.Fit(state, [], False) for state in alternatives(problem)]
        return max([first, *(self._run(problem, other, EXPLORE_SWEEPS) for other in others)], key=fitting.height)

    def _run(self, problem: Problem, begun: fitting.Fit, most: int | None = None) -> fitting.Fit:
        """Sweeps until there are ``most`` of them, or the fit has converged."""
        left = (self.max_iter if most is None else most) - len(begun.elbo)
        if begun.converged or left < 1:
            return begun
        with Progress(None) as bar:

            def tick(elbo: list[float]) -> None:
                bar.update(len(elbo), fitting.described(elbo, self.tol))

            rest = fitting.fit(problem, begun.state, self.accelerate, left, self.tol, tick=tick)
        return rest._replace(elbo=[*begun.elbo, *rest.elbo])

    def _remember(self, fit: fitting.Fit) -> None:
        """Public attributes from a fit."""
        state, table = fit.state, self._table
        self._state, self._factor_std = state, None
        self.elbo_, self.n_iter_, self.converged_ = np.array(fit.elbo), len(fit.elbo), fit.converged
        self.beta_, self.intercept_ = state.beta, np.zeros(len(state.beta))
        self.covariate_names_ = table.encoding.names
        self.confounder_names_ = table.nuisance.coding.confounders.names
        free = numbered("free", self._problem.k - self._problem.p, self.covariate_names_)
        self.factor_names_ = [*self.covariate_names_, *free]
        named = dict(zip(table.views, state.views, strict=True))
        self.loadings_ = {name: view.w.mean for name, view in named.items()}
        self.loadings_std_ = {name: np.sqrt(view.w.variance) for name, view in named.items()}
        self.noise_precision_ = {name: view.noise.mean for name, view in named.items()}
        self.ard_precision_ = {name: view.ard.mean for name, view in named.items()}
        self._factors = None
        self.active_factors_ = (placing.shares(self._problem, state, "loadings") > selection.ACTIVE_SHARE).any(axis=0)
        self.n_factors_ = self._problem.k

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
        return self._factors

    # -- how sure -----------------------------------------------------------------------------------------------------

    @property
    def factor_std_(self) -> Array:
        """Standard deviations of ``factors_`` (n x K), for informed factors with that of their rotation.

        On simulated data ``factors_ -+ 1.645 factor_std_`` holds the truth of informed factors 87 to 91 times in 100,
        82 where covariates leave a direction unseen (docs/notes.md). A free factor has only its own: no rotation of it
        is the true one. Computed when first asked for.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.factor_std_.shape, bool((fa.factor_std_ > 0).all())
        ((200, 10), True)
        """
        self._check_fitted()
        if self._factor_std is None:
            own = kernel_of(self._problem).own_variances(self._state, self._combinations)
            self._factor_std = self._std(own, self._means(self._stage_1))
        return self._factor_std

    def _means(self, state: State) -> Array:
        """E[z_n] of the fitted samples."""
        if isinstance(self._rows, outofcore.Streamed):
            return self._rows.means(self._table, self._problem, self._stage_1, state, self.T_)
        if isinstance(state.z, Factors):
            return data.project(self._table, self._rows, state.z.of_x, state.z.of_y)
        return placing.fitted_means(self._samples, self._stage_1, state, self.T_)

    @property
    def _samples(self) -> Problem:
        """The problem with every sample a row."""
        return placing.fitted_rows(self._table, self._rows, self._problem)

    @property
    def _combinations(self) -> Any:
        """Which of the covariances of ``_state.z`` each sample has."""
        if isinstance(self._problem.data, Gapped):
            if isinstance(self._rows, outofcore.Streamed):
                return self._rows.combinations(self._problem)
            return self._samples.data.samples[0]
        return np.zeros(self._problem.n, dtype=np.intp)

    @property
    def beta_std_(self) -> Array:
        """Standard deviations of ``beta_``.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> bool((abs(fa.beta_ - s.beta) < 4 * fa.beta_std_).all())
        True
        """
        return uncertainty.beta_std(self.beta_, self._rotation().gamma, self._rows.tails)

    def _rotation(self) -> uncertainty.Laplace:
        self._check_fitted()
        if self._laplace is None:
            with fitting.few_threads(self._problem):
                self._laplace = uncertainty.laplace(self._problem, self._stage_1)
        return self._laplace

    def _std(self, own: Array, first_means: Array) -> Array:
        """From the factors' own variances (n x K) and their means before realigning."""
        return self._finish()(own, first_means)

    def _finish(self) -> uncertainty.Finish:
        return uncertainty.Finish(self._rotation().rows, self.T_, self._problem.n)

    # -- how well ----------------------------------------------------------------------------------------------------

    @property
    def alignment_(self) -> pd.Series:
        """corr(z_p, y_p) of the fitted samples that have y_p, by covariate; of a category, one for each dummy.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.alignment_.index.tolist()
        ['y0', 'y1', 'y2', 'y3', 'y4']
        """
        self._check_fitted()
        values = [self._with_covariates((p,)) for p in range(self._problem.p)]
        return pd.Series(
            [regimes.alignment(np.eye(1), m)[0] for m in values], index=self.covariate_names_, name="alignment"
        )

    @property
    def category_alignment_(self) -> pd.DataFrame:
        """One row per category with several dummies: covariate, eta_squared, dummies.

        The eta squared of a factor is the share of its variance that lies between the levels of the category (R^2 on
        all its dummies, 0 to 1); the category's is the mean over the factors of its dummies.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> import pandas as pd
        >>> stage = pd.cut(s.Y[:, 0], [-9, -1, 1, 9], labels=["low", "mid", "high"]).astype(str)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, pd.DataFrame({"stage": stage}))
        >>> fa.category_alignment_["dummies"].tolist()
        [('stage_high', 'stage_low', 'stage_mid')]
        """
        self._check_fitted()
        rows = [
            (column.source, self._eta_squared(block), column.names)
            for column, block in zip(self._table.encoding.columns, self._table.encoding.blocks, strict=True)
            if column.kind == "dummies" and len(block) > 1
        ]
        return pd.DataFrame(rows, columns=["covariate", "eta_squared", "dummies"])

    def _eta_squared(self, block: tuple[int, ...]) -> float:
        shares = regimes.eta_squared(np.eye(len(block)), self._with_covariates(block), range(len(block)))
        return regimes.mean_or_nan(shares)

    def _with_covariates(self, columns: tuple[int, ...]) -> Moments:
        """Moments of some informed factors and their covariates, over the samples that have these."""
        if isinstance(self._state.z, Factors):  # from sums: no row is read again
            return placing.with_covariates(self._problem, self._state, list(columns))
        Z, Y = self.factors_[:, list(columns)], self._rows.Y[:, list(columns)]
        has = ~np.isnan(Y).any(axis=1)
        return Moments.from_arrays(Z[has], Y[has])

    def summary(self, folds: int = 5) -> pd.DataFrame:
        """One row per covariate: in_sample and held_out alignment, and the samples that have it.

        For ``held_out`` the model is fitted again without each fold, and the left-out samples are placed from their
        features alone. ``se`` is its standard error over folds; ``low`` and ``high`` are a 90 % interval for the
        alignment of new samples (``heldout.interval``). ``folds=0`` leaves them NaN and fits nothing. In sample, a
        factor knows its covariate from the prior, too: with few or noisy features it may show little else.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> table = ca.InformedFactorAnalysis(10).fit(s.X, s.Y).realign(0.5).summary()
        >>> table.columns.tolist()
        ['in_sample', 'held_out', 'se', 'low', 'high', 'rows']
        """
        per_fold = np.empty((0, self._problem.p))
        if folds:
            held = self._held_out(folds)
            if self._realigned is None:
                per_fold = held.measure_mixed([crossvalidation.as_fitted(polar) for polar in held.polars])[0]
            else:
                per_fold = held.measure(self._realigned.regime, self._realigned.lam)[0]
        frame = self.alignment_.rename("in_sample").to_frame().assign(**heldout.summarised(per_fold))
        observed = self._problem.data
        rows = observed.label_counts if isinstance(observed, Gapped) else np.full(len(frame), self._problem.n)
        return frame.assign(rows=rows.astype(int))

    def _held_out(self, folds: int) -> heldout.HeldOut:
        """Fits without each fold; shared by all realigned models of a stage 1."""
        self._check_fitted()
        if folds not in self._held:
            self._held[folds] = crossvalidation.held_out(self, folds)
        return self._held[folds]

    # -- other regimes ------------------------------------------------------------------------------------------------

    def realign(self, lam: float | None = None, *, regime: str | None = None) -> InformedFactorAnalysis:
        """A new fitted model whose informed factors stand in a regime; stage 1 is shared, not repeated.

        ``realign(0.5)`` is the tunable regime; ``realign(regime="exclusive")`` names one. On a realigned model this
        starts again from stage 1. ``T_`` is the transformation, ``regime_`` and ``lam_`` what was asked.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> strong = fa.realign(0.9)
        >>> strong.lam_, bool(strong.alignment_.mean() > fa.realign(0).alignment_.mean())
        (0.9, True)
        """
        self._check_fitted()
        if (lam is None) == (regime is None) and not (regime == "tunable" and lam is not None):
            raise errors.which_realignment()
        regime = errors.check_regime("tunable" if regime is None else regime)
        lam = regimes.ENDS.get(regime, lam)
        problem, first = self._problem, self._stage_1
        m = realignment.model_moments(first.beta, problem.data.yy / problem.n, self.covariate_names_)
        T = regimes.turned(regimes.whitened_polar(m), regime, np.nan if lam is None else lam)
        with fitting.few_threads(problem):
            fit = realignment.realign(problem, first, T, self.accelerate, self.max_iter, self.tol)
        other = copy.copy(self)
        other._realigned = realignment.Realigned(regime, float("nan") if lam is None else float(lam), T)
        other._remember(fit)
        if not fit.converged:
            warnings.warn(errors.not_converged(len(fit.elbo)), ConvergenceWarning, stacklevel=2)
        return other

    def path(self, lams: Iterable[float]) -> dict[float, InformedFactorAnalysis]:
        """lam -> realigned model.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> list(fa.path([0, 0.5, 1]))
        [0.0, 0.5, 1.0]
        """
        return {float(lam): self.realign(lam) for lam in lams}

    @property
    def T_(self) -> Array:
        """The transformation of the informed factors (P x P); the identity before realigning.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.T_.trace().item(), fa.realign(0.5).T_.shape
        (5.0, (5, 5))
        """
        self._check_fitted()
        return np.eye(self._problem.p) if self._realigned is None else self._realigned.T

    @property
    def regime_(self) -> str | None:
        """The regime this model was realigned to, or None.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> fa.regime_, fa.realign(0.5).regime_
        (None, 'tunable')
        """
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
        return None if self._realigned is None else self._realigned.lam

    # -- use ----------------------------------------------------------------------------------------------------------

    def transform(
        self,
        X: Any,
        y: Any = None,
        *,
        confounders: Any = None,
        return_std: bool = False,
        out: Any = None,
        chunk_rows: int | None = None,
        overwrite: bool = False,
    ) -> Any:
        """Posterior means of the factors of new samples (n x K), from any subset of the views.

        Views may have gaps and samples of their own (DataFrames are joined by index); so may y. With y the prior of
        the informed factors is T(beta y); what is missing of it is integrated out: without any, z ~ N(0, T S_z T').
        ``return_std`` adds their standard deviations (n x K), as in ``factor_std_``. ``confounders`` are those of the
        new samples, where the model was fitted with some (columns of y, if they were columns of y then).

        X is what ``fit`` takes, read ``chunk_rows`` at a time where it is not in memory. With ``out``, a path to
        ``.npy``, ``.zarr`` or ``.parquet``, the factors (then their standard deviations) are written as they come, and
        the path is returned: complete or not there, and the same call goes on where an earlier one was interrupted.
        Of views in dask the factors are a dask array, computed where the rows lie when it is asked for.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30, "protein": 20})
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> placed, std = fa.transform({"rna": s.X["rna"][:5]}, return_std=True)
        >>> placed.shape, std.shape
        ((5, 10), (5, 10))
        """
        self._check_fitted()
        stages = [newcomers.Stage(self._state, self._sy, self.T_)]
        if self._realigned is not None and return_std:  # which starts from the means before realigning
            stages = [newcomers.Stage(self._stage_1, self._sy, np.eye(self._problem.p)), *stages]
        std = self._finish() if return_std else None
        if newcomers.needs_chunks(X, out):
            incoming = newcomers.Incoming(self._table, X, y, confounders, chunk_rows)
            place = newcomers.Placer(incoming, stages, std)
            if out is None and lazy.is_lazy(X):
                return newcomers.lazily(place, incoming, X)
            return newcomers.by_chunks(place, incoming, self.factor_names_, out, overwrite)
        return newcomers.placed(*newcomers.whole(self._table, X, y, confounders), stages, std)

    @property
    def _sy(self) -> Array:
        return np.asarray(self._problem.data.yy / self._problem.n)

    def impute(self, view: str | None = None, *, return_std: bool = False) -> Any:
        """A view as a DataFrame, observed cells as they were and gaps at their posterior means.

        ``return_std`` adds a DataFrame of standard deviations, 0 where observed: what is unknown of factors and
        loadings, and the noise of the feature.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> s.X[:20, :3] = float("nan")
        >>> filled, std = ca.InformedFactorAnalysis(10).fit(s.X, s.Y).impute(return_std=True)
        >>> int(filled.isna().sum().sum()), int((std > 0).sum().sum())
        (0, 60)
        """
        self._check_fitted()
        view = next(iter(self._table.views)) if view is None else view
        if view not in self._table.views:
            raise errors.unknown_views([view], list(self._table.views))
        if isinstance(self._rows, outofcore.Streamed):
            raise errors.rows_in_memory_needed("impute")
        at = list(self._table.views).index(view)
        scale, where = self._table.views[view], self._problem.bounds[at]
        cov, k = self._state.z.cov, self._problem.k
        q_z = placing.Placed(self.factors_, cov.reshape(-1, k, k), self._combinations)
        values, std = placing.imputed(self._rows.X[:, where], scale, self._state.views[at], q_z)
        index = None if self._table.samples is None else pd.Index(self._table.samples)
        frame = pd.DataFrame(values + self._explained[:, where], index=index, columns=scale.names)
        return (frame, pd.DataFrame(std, index=index, columns=scale.names)) if return_std else frame

    @property
    def _explained(self) -> Array:
        """What confounders explain of X (n x D)."""
        if self._rows.C is None:
            raise errors.rows_not_kept()
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
        parts = zip(table.views.items(), self._state.views, table.bounds, strict=True)
        views = {
            name: (self.factors_ @ view.w.mean.T + placing.intercept(view.w)) * scale.sd
            + scale.mean
            + explained[:, where]
            for (name, scale), view, where in parts
        }
        return views[data.SINGLE] if self._table.single else views

    def save(self, path: Any) -> None:
        """Write the model to one file (arrays and JSON, no code), whole or not at all; ``covalign.load`` reads it.

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
        store.write(path, *storage.pack(self))

    @classmethod
    def _restored(cls, meta: dict[str, Any], arrays: dict[str, Array]) -> InformedFactorAnalysis:
        """The model ``storage.pack`` packed."""
        model = cls(**meta["parameters"])
        model._held = {}
        state = storage.unpack(meta, arrays, model)
        if meta["realigned"] is None:
            model._realigned = None
        else:
            regime, lam = meta["realigned"]
            model._realigned = realignment.Realigned(regime, lam, arrays["realigned.T"])
        model._remember(fitting.Fit(state, arrays["elbo"].tolist(), meta["converged"]))
        return model

    def _check_fitted(self) -> None:
        if not hasattr(self, "_state"):
            raise NotFittedError(errors.unfitted(type(self).__name__))


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)
