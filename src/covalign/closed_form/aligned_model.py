"""What both estimators have in common: the regime, how it is changed, and what they report of alignment.

The regimes of either follow from a polar form and the moments of (Z, Y): in the aligner Z is the representation, in a
factor model Z are the informed factors before any regime.
"""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from sklearn import get_config
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr

from covalign._core.checks import check_flag, check_lam, check_max_coupling, check_regime, listed_lams
from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign._core.output_tables import OutputTables
from covalign._core.parameters import check_parameters
from covalign._core.printed_frames import printed
from covalign._core.user_arrays import plain
from covalign.closed_form import budget as budgets
from covalign.closed_form import heldout, model_card, optimum, regimes
from covalign.closed_form.budget import Budget
from covalign.closed_form.heldout import HeldOut, Measured
from covalign.closed_form.pooled_correlation import verdict
from covalign.closed_form.regimes import Polar
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments
from covalign.tables.covariates import Encoding

HELD_OUT_COLUMNS = ("alignment", "alignment_se", "coupling")
HELD_OUT_VALUES = ("held_out", "se", "low", "high")
OVERFITTED = 0.1  # a larger difference between the mean alignment on fitted rows and on new ones is pointed out
MOST_EXACT = 60  # covariates of a frontier with its optimum, which takes two seconds then and O(P^3) in general


class AlignedModel(OutputTables):
    """An estimator whose dimension p stands for covariate p."""

    covariate_names_: list[str]
    confounder_names_: list[str]
    n_features_in_: int
    _budget: Budget | None = None  # of the exact regime
    _reading: Mapping[str, Any] | None = None  # how a command read the tables of the fit, for those of new rows
    # The last held-out numbers: summary, means and printed lines ask for the same.
    _last: tuple[tuple[str | None, str], Budget | None, HeldOut, Measured] | None = None
    _dimensions = "dimensions"  # what stands for covariates, in sentences

    if TYPE_CHECKING:  # properties of the estimators, where their documentation is

        @property
        def regime_(self) -> str | None: ...
        @property
        def lam_(self) -> float | None: ...
        @property
        def n_rows_(self) -> int: ...
        @property
        def n_groups_(self) -> int | None: ...
        @property
        def T_(self) -> Array: ...

    # -- what an estimator has to say ---------------------------------------------------------------------------------

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a fit."""

    @abstractmethod
    def _coded_covariates(self) -> Encoding:
        """How covariates became numbers."""

    @abstractmethod
    def _polar(self) -> Polar:
        """What every regime is a function of."""

    @abstractmethod
    def _fitted_sums(self) -> Rows:
        """Moments of (Z, Y) of the fitted rows."""

    def _map_of_sums(self) -> Array:
        """The map to the dimensions that stand for covariates, for use with these moments."""
        return self.T_

    @abstractmethod
    def _pair_counts(self) -> Any:
        """Rows with each covariate."""

    @abstractmethod
    def _held_out(self, own: bool = False) -> HeldOut | None:
        """Fits without each fold, for any regime or only for that of this model (``own``); None if there are none."""

    @abstractmethod
    def _alignment_on(self, X: Any, y: Any, confounders: Any) -> Array:
        """corr(z~_p, y_p) on these rows."""

    @abstractmethod
    def _moved(self, regime: str, lam: float) -> Self:
        """A copy of this model in another regime."""

    @abstractmethod
    def _default_lam(self) -> float | None:
        """Lambda of ``at(regime="tunable")``."""

    @abstractmethod
    def _names_out(self) -> list[str]:
        """Names of the columns of ``transform``."""

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(message(f"This {type(self).__name__} is not fitted", remedy="Call fit first"))

    def _check_parameters(self) -> None:
        check_parameters(self)

    @contextmanager
    def _unchanged_if_it_fails(self) -> Iterator[None]:
        """A block that fits: if it raises, this model is as it was before. Fits replace attributes, and edit none."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    # -- how well it is aligned ---------------------------------------------------------------------------------------

    @property
    def n_pairs_(self) -> pd.Series:
        """Number of fitted rows that have each covariate.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> s.Y[:50, 2] = float("nan")
        >>> ca.LatentAligner().fit(s.Z, s.Y).n_pairs_["y2"].item()
        150
        """
        self._check_fitted()
        return pd.Series(np.asarray(self._pair_counts(), dtype=int), index=self.covariate_names_, name="rows")

    @property
    def alignment_(self) -> pd.Series:
        """corr(z~_p, y_p) on the fitted rows that have y_p; one for each dummy of a category.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner().fit(s.Z, s.Y).alignment_.round(1).tolist()
        [0.8, 0.8, 0.6, 0.5, 0.4]
        >>> ca.InformedFactorAnalysis(10).fit(s.X, s.Y).alignment_.index.tolist()
        ['y0', 'y1', 'y2', 'y3', 'y4']
        """
        self._check_fitted()
        values = regimes.observed_alignment(self._map_of_sums(), self._fitted_sums())
        return pd.Series(values, index=self.covariate_names_, name="alignment")

    @property
    def coupling_(self) -> float:
        """|corr(z~) - I|_F^2 of the dimensions that stand for covariates, on the fitted rows.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.at(regime="independent").coupling_ < 1e-9 < al.coupling_
        True
        """
        self._check_fitted()
        return regimes.coupling(self._map_of_sums(), self._fitted_sums())

    @property
    def held_out_alignment_(self) -> pd.Series:
        """corr(z~_p, y_p) over all left-out rows; NaN if nothing is held out.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> bool(al.held_out_alignment_.mean() < al.alignment_.mean())
        True
        """
        return self.summary()["held_out"]

    @property
    def mean_alignment_(self) -> pd.Series:
        """Means over covariates: in_sample, held_out, and the standard error and 90 % interval of the latter.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner().fit(s.Z, s.Y).mean_alignment_.index.tolist()
        ['in_sample', 'held_out', 'se', 'low', 'high']
        """
        held = self._measured()
        known = [np.nan] * len(HELD_OUT_VALUES) if held is None else [float(value) for value in held.mean]
        return pd.Series({"in_sample": self.alignment_.mean(), **dict(zip(HELD_OUT_VALUES, known, strict=True))})

    @property
    def category_alignment_(self) -> pd.DataFrame:
        """One row per category with several dummies: covariate, eta_squared, canonical, dummies.

        The eta squared of a dimension is the share of its variance that lies between the levels of the category (R^2 on
        all its dummies, 0 to 1); the category's is the mean over the dimensions of its dummies. ``canonical`` is the
        root mean square of the canonical correlations of these dimensions and the category; if the category is the only
        covariate, it does not depend on the level that is left out. Both are those of the fitted rows.

        >>> import covalign as ca, pandas as pd
        >>> s = ca.simulate.scenario("PN", n_samples=300)
        >>> Y = pd.DataFrame({"dose": s.Y[:, 0], "stage": pd.qcut(s.Y[:, 1], 3, labels=["low", "mid", "high"])})
        >>> Y["stage"] = Y["stage"].astype(str)
        >>> ca.LatentAligner().fit(s.Z, Y).category_alignment_["dummies"].tolist()
        [('stage_low', 'stage_mid')]
        """
        self._check_fitted()
        encoding = self._coded_covariates()
        rows = [
            (column.source, *self._of_category(block), column.names)
            for column, block in zip(encoding.columns, encoding.blocks, strict=True)
            if column.kind == "dummies" and len(block) > 1
        ]
        return pd.DataFrame(rows, columns=["covariate", "eta_squared", "canonical", "dummies"])

    def _of_category(self, block: tuple[int, ...]) -> tuple[float, float]:
        """Eta squared and canonical alignment, over the rows that have the category (all its dummies or none)."""
        T = self._map_of_sums()[list(block)]
        for columns, seen in self._fitted_sums().pairs:
            at = np.arange(len(self.covariate_names_))[columns].tolist()
            if block[0] in at:
                its = [at.index(column) for column in block]
                shares = regimes.eta_squared(T, seen, its)
                return regimes.mean_or_nan(shares), regimes.canonical_alignment(T, seen, its)
        return float("nan"), float("nan")

    def summary(self) -> pd.DataFrame:
        """One row per covariate: in_sample and held_out alignment, and the number of rows that have the covariate.

        ``held_out`` is the correlation over all left-out rows together, which take no part in the choice of a shrinkage
        (``docs/held_out.md``); ``se`` is its standard error, and ``low`` and ``high`` are a 90 % interval for the
        alignment of the map on new rows (``closed_form.pooled_correlation``). The fits behind ``held_out`` have seen
        four fifths of the rows (with five folds), so it is slightly too low for the map, which has seen all rows; the
        interval of an aligner allows for that. All four are NaN if nothing is held out (``folds=0``, a fixed
        ``shrinkage`` of an aligner, or too few samples for a factor model), and for a covariate that no fit without a
        fold knows, for example a level with one row. A factor model is fitted again without each fold, and left-out
        samples are placed from their features alone. In sample, a factor also knows its covariate from the prior, so
        with few or noisy features it may show little else. Where there are categories, ``eta_squared`` is that of
        ``category_alignment_``. ``frame.attrs`` has the number of groups (None: rows are independent), the levels and
        the reference level of every category with more than two levels and a sentence about them (``categories``) and,
        of an aligner, the shrinkage and the scale of columns that were chosen; of a factor model, the rows of
        ``ownership_`` and the reason if it cannot be fitted without its folds (``not_held_out``).

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner().fit(s.Z, s.Y).summary().columns.tolist()
        ['in_sample', 'held_out', 'se', 'low', 'high', 'rows']
        >>> ca.LatentAligner().fit(s.Z, s.Y).summary().attrs["scale"]
        'raw'
        """
        frame = self.alignment_.rename("in_sample").to_frame()
        held = self._measured()
        known = [np.full(len(frame), np.nan)] * len(HELD_OUT_VALUES) if held is None else list(held.alignment)
        frame = frame.assign(**dict(zip(HELD_OUT_VALUES, known, strict=True)), rows=self.n_pairs_)
        found = self.category_alignment_.itertuples(index=False)
        shares = {name: share for _, share, _, dummies in found for name in dummies}
        frame = frame.assign(eta_squared=pd.Series(shares).reindex(frame.index)) if shares else frame
        frame.attrs.update(self._circumstances())
        return printed(frame, card=self._card_above(frame["in_sample"].to_numpy()))

    def _card_above(self, in_sample: Array) -> Callable[[], str]:
        """What a notebook shows above a summary, as long as this model exists and has the same fit.

        A summary does not keep the model in memory, which may hold its rows.
        """
        there = weakref.ref(self)

        def card() -> str:
            model = there()
            same = model is not None and np.array_equal(model.alignment_, in_sample, equal_nan=True)
            return model._html_repr() if model is not None and same else ""

        return card

    def _circumstances(self) -> dict[str, Any]:
        """What the numbers of ``summary`` depend on."""
        return {"groups": self.n_groups_, "categories": self._categories()}

    def _categories(self) -> dict[str, dict[str, Any]]:
        return self._coded_covariates().categories(self._dimensions)

    def _measured(self) -> Measured | None:
        """Alignment and coupling on left-out rows; None if nothing is held out."""
        self._check_fitted()
        held = self._held_out(own=True)
        if held is None or (self.regime_ == "exclusive" and not held.all_exclusive):
            return None
        setting = (self.regime_, str(self.lam_))
        if self._last is None or self._last[:2] != (setting, self._budget) or self._last[2] is not held:
            found = held.measure_mixed(self._mixing(held.whole), [self._mixing(of.polar) for of in held.folds])
            self._last = (setting, self._budget, held, found)
        return self._last[3]

    def _mixing(self, polar: Polar) -> Array:
        """F of this model's regime; without a regime, z itself in the coordinates of T_0."""
        if self.regime_ is None:
            return plain_mixing(polar)
        if self._budget is not None:
            return optimum.largest_alignment(polar.M, self._budget).mixing
        return regimes.mixing(polar, self.regime_, np.nan if self.lam_ is None else self.lam_)

    def score(self, X: Any, y: Any, *, confounders: Any = None) -> float:
        """Mean over covariates of corr(transform(X)_p, y_p) on these rows; ``transform`` does not see y.

        A covariate counts on the rows that have it, and not at all if it is constant there; NaN if none is left. With
        confounders, it is the correlation of what they leave of both, as the fitted rows say. ``GridSearchCV`` takes
        this for the score of a setting.

        >>> import covalign as ca
        >>> from sklearn.model_selection import GridSearchCV
        >>> s = ca.simulate.scenario("PN", n_samples=300)
        >>> search = GridSearchCV(ca.LatentAligner(), {"lam": [0.0, 0.5, 1.0]}).fit(s.Z, s.Y)
        >>> search.best_params_
        {'lam': 1.0}
        """
        self._check_fitted()
        return regimes.mean_or_nan(self._alignment_on(X, y, confounders))

    # -- other regimes ------------------------------------------------------------------------------------------------

    def at(
        self,
        lam: float | None = None,
        *,
        regime: str | None = None,
        max_coupling: float | None = None,
        exact: bool = False,
        weights: Mapping[str, float] | None = None,
        uncoupled: Iterable[tuple[str, str]] | None = None,
    ) -> Self:
        """A new fitted model in another regime; the data are not needed again.

        ``at(0.5)`` is the tunable regime, ``at(regime="exclusive")`` names one, and ``at(max_coupling=c)`` takes the
        largest lambda whose ``coupling_`` stays within c. ``regime_`` and ``lam_`` say what was chosen, ``T_`` is the
        map. A factor model starts again from its first stage, which all its regimes share; ``realign`` is another name
        of this method there.

        ``exact=True`` is the linear map with the largest mean alignment of all maps with a coupling of at
        most ``max_coupling``; ``gap_`` bounds what a better map could add. ``weights`` makes it a weighted mean
        (covariates that are not named have weight 1), and the dimensions of the pairs in ``uncoupled`` stay
        uncorrelated on the fitted rows; with pairs, ``max_coupling`` may be left out. The name of a category stands for
        all its dummies.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.at(regime="exclusive").regime_, round(al.at(max_coupling=0.2).coupling_, 6)
        ('exclusive', 0.2)
        >>> best = al.at(max_coupling=0.2, exact=True)
        >>> bool(best.alignment_.mean() > al.at(max_coupling=0.2).alignment_.mean()), best.gap_ < 1e-9
        (True, True)
        >>> apart = al.at(max_coupling=0.2, exact=True, weights={"y0": 3}, uncoupled=[("y0", "y1")])
        >>> abs(ca.metrics.coupling(apart.transform(s.Z)[:, :2])) < 1e-9
        True
        >>> fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
        >>> bool(fa.at(0.9).alignment_.mean() > fa.at(0).alignment_.mean())
        True
        """
        self._check_fitted()
        exact = check_flag("exact", exact)
        if exact and lam is None and regime is None:
            return self._moved_within(budgets.asked(self._positions(), max_coupling, weights, uncoupled))
        if exact or weights is not None or uncoupled is not None:
            problem = "weights= and uncoupled= need exact=True, which excludes lam= and regime="
            raise ValueError(message(problem, remedy="for example at(max_coupling=0.5, exact=True)"))
        return self._moved(*self._chosen_regime(lam, regime, max_coupling))

    def _positions(self) -> dict[str, list[int]]:
        """Positions of each covariate, and of the dummies of each category."""
        encoding = self._coded_covariates()
        sources = {column.source: list(block) for column, block in zip(encoding.columns, encoding.blocks, strict=True)}
        return {**sources, **{name: [i] for i, name in enumerate(self.covariate_names_)}}

    @abstractmethod
    def _moved_within(self, budget: Budget) -> Self:
        """A copy of this model with the largest alignment within the budget."""

    def _chosen_regime(self, lam: Any, regime: Any, max_coupling: Any) -> tuple[str, float]:
        """(regime, lam), lam NaN for the exclusive regime."""
        tunable = regime is None or regime == "tunable"
        if max_coupling is not None and lam is None and regime is None:
            return "tunable", self._lam_within(check_max_coupling(max_coupling))
        if max_coupling is None and regime is not None and lam is None:
            known = check_regime(regime)
            lam = self._default_lam() if tunable else regimes.ENDS.get(known, np.nan)
            if lam is not None:
                return known, lam
        if max_coupling is None and tunable and lam is not None:
            return "tunable", check_lam(lam)
        raise ValueError(
            message(
                "at() needs one of lam=, regime= or max_coupling=",
                got="none, or several that exclude each other",
                remedy="for example at(lam=0.9), at(regime='exclusive') or at(max_coupling=0.5)",
            )
        )

    def _lam_within(self, budget: float) -> float:
        polar = self._polar()
        C = self._fitted_sums().transform(polar.T_0).cov_z
        lam = regimes.lam_within(polar.M, budget, C)
        if np.isnan(lam):
            text = f"no lambda keeps the coupling of the fitted rows within {budget:g}"
            raise ValueError(message(text, remedy="frontier() shows what each lambda reaches"))
        return lam

    def path(self, lams: Iterable[float]) -> dict[float, Self]:
        """lam -> ``at(lam)``.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> list(ca.LatentAligner().fit(s.Z, s.Y).path([0, 0.5, 1]))
        [0.0, 0.5, 1.0]
        """
        self._check_fitted()
        return {check_lam(lam): self.at(lam) for lam in listed_lams(lams)}

    def frontier(self, lams: Iterable[float] | None = None) -> pd.DataFrame:
        """Alignment and coupling along lambda, and of the exclusive regime where it exists.

        Columns: regime, lam, alignment, coupling (fitted rows); held_out_alignment, held_out_alignment_se,
        held_out_coupling (left-out rows, NaN if nothing is held out); exact_alignment, the largest mean alignment of
        any linear map with the coupling of the row (fitted rows, see ``at``; NaN for more than 60 covariates, and for a
        factor model of samples with missing covariates); the alignment of each covariate (fitted rows).
        ``frame.attrs["exclusive"]`` says why there is no exclusive row if there is none. A printed frontier leaves out
        the columns of covariates.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.frontier([0, 0.5, 1])["regime"].tolist()
        ['independent', 'tunable', 'strongest', 'exclusive']
        """
        self._check_fitted()
        lams = None if lams is None else listed_lams(lams)
        frame = regimes.frontier_of(self._polar(), self._fitted_sums(), lams, self.covariate_names_)
        frame.insert(4, "exact_alignment", self._exact_alignment(frame))
        held = self._held_out()
        if held is None:
            left_out = pd.DataFrame(np.nan, index=frame.index, columns=list(HELD_OUT_COLUMNS))
        else:
            left_out = heldout.held_out_frontier(held, lams, self.covariate_names_).set_index(["regime", "lam"])
            left_out = left_out.reindex(pd.MultiIndex.from_frame(frame[["regime", "lam"]]))
        for at, column in enumerate(HELD_OUT_COLUMNS, start=4):
            frame.insert(at, f"held_out_{column}", left_out[column].to_numpy())
        return printed(frame, frame.shape[1] - len(self.covariate_names_))

    def _exact_alignment(self, frame: pd.DataFrame) -> Array:
        """The largest mean alignment at the coupling of every row of a frontier, to six digits."""
        rows = self._fitted_sums().transform(self._polar().T_0)
        if not isinstance(rows, Moments) or len(self.covariate_names_) > MOST_EXACT:
            return np.full(len(frame), np.nan)
        M = regimes.whitened_polar(rows).M
        best = [optimum.largest_alignment(M, Budget(c), 1e-6).alignment.mean() for c in frame["coupling"]]
        return np.fmax(best, frame["alignment"])  # the row itself is such a map

    # -- scikit-learn -------------------------------------------------------------------------------------------------

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters; once fitted the regime, the number of rows, and of rows with each covariate that has gaps."""
        parameters: str = super().__repr__(N_CHAR_MAX)
        if not self.__sklearn_is_fitted__():
            return parameters
        fewer = self.n_pairs_[self.n_pairs_ < self.n_rows_]
        gaps = "".join(f", {name} in {count}" for name, count in fewer.items())
        return f"{parameters} {self._regime_in_words()}, fitted on {self.n_rows_} rows{gaps}"

    def _regime_in_words(self) -> str:
        if self.regime_ is None:
            return "without a regime"
        words = f"in the {self.regime_} regime"
        if self._budget is not None:
            within = self._budget.max_coupling
            return f"{words} (coupling at most {within:.3g})" if np.isfinite(within) else words
        return words if self.lam_ is None or np.isnan(self.lam_) else f"{words} (lambda {self.lam_:.3g})"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What a notebook shows; "text" of scikit-learn's setting ``display`` leaves only the text."""
        drawn = get_config()["display"] == "diagram"
        return {"text/plain": repr(self), **({"text/html": self._html_repr()} if drawn else {})}

    def _repr_html_inner(self) -> str:
        """``_repr_html_`` of scikit-learn calls this."""
        return self._html_repr()

    def _html_repr(self) -> str:
        """A card of the fitted model; without a fit, scikit-learn's box of parameters."""
        return model_card.html(self._card()) if self.__sklearn_is_fitted__() else str(estimator_html_repr(self))

    def _card(self) -> model_card.Card:
        lams = None if len(self.covariate_names_) <= MOST_EXACT else [0.0, 0.5, 1.0]
        frontier = regimes.frontier_of(self._polar(), self._fitted_sums(), lams, self.covariate_names_)
        groups = "" if self.n_groups_ is None else f" in {self.n_groups_:,} groups"
        rows = f"{self._regime_in_words()}, fitted on {self.n_rows_:,} rows{groups}"
        facts = [rows, f"{self.n_features_in_:,} features", f"coupling {self.coupling_:.2g}"]
        here = (self.coupling_, regimes.mean_or_nan(self.alignment_))
        along = frontier.loc[frontier["lam"].notna(), ["coupling", "alignment"]]
        return model_card.Card(type(self).__name__, facts, self._judgements(), along, here, self._cautions())

    def _judgements(self) -> pd.DataFrame:
        """Alignment and verdict of each covariate; held-out numbers only where showing them takes no time."""
        if not self._shows_held_out():
            known = dict.fromkeys(("held_out", "low", "high"), np.nan)
            return self.alignment_.rename("in_sample").to_frame().assign(**known, verdict="")
        frame = self.summary()
        return frame.assign(verdict=self._verdicts(frame))

    def _shows_held_out(self) -> bool:
        """Whether held-out numbers are there already, or take no time."""
        return True

    def _verdicts(self, summary: pd.DataFrame) -> list[str]:
        """captured, unclear or not captured, for each covariate."""
        return [verdict(low, high) for low, high in zip(summary["low"], summary["high"], strict=True)]

    def _cautions(self) -> list[str]:
        """What a reader of the numbers should know."""
        if not self._shows_held_out():
            return ["Held-out numbers were not computed yet: summary() computes them."]
        mean = self.mean_alignment_
        if np.isnan(mean["held_out"]):
            return ["Nothing was held out, so the alignment on new rows is unknown."]
        return overfitting(mean["in_sample"], mean["held_out"])

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns of ``transform``: covariates first, then the rest of the space or the free factors.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200, n_factors=7)
        >>> ca.LatentAligner(keep_rest=True).fit(s.Z, s.Y).get_feature_names_out()[3:7].tolist()
        ['y3', 'y4', 'rest0', 'rest1']
        >>> ca.InformedFactorAnalysis(7).fit(s.X, s.Y).get_feature_names_out()[3:].tolist()
        ['y3', 'y4', 'free0', 'free1']
        """
        self._check_fitted()
        if input_features is not None:
            if hasattr(self, "feature_names_in_") and not np.array_equal(input_features, self.feature_names_in_):
                remedy = "Pass None or the names seen in fit"
                raise ValueError(message("input_features is not equal to feature_names_in_", remedy=remedy))
            given = np.size(plain(input_features, "input_features"))
            if given != self.n_features_in_:
                need = f"input_features should have length equal to number of features ({self.n_features_in_})"
                raise ValueError(message(need, got=given))
        return np.array(self._names_out(), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def overfitting(in_sample: float, held_out: float, called: str = "rows") -> list[str]:
    """The sentence about mean alignments that are much higher on fitted rows than on new ones, if they are."""
    if not in_sample - held_out > OVERFITTED:
        return []
    ends = f"mean alignment {in_sample:.2f} and {held_out:.2f}"
    return [f"Much better on fitted {called} than on new ones ({ends}): overfitted."]


def plain_mixing(polar: Polar) -> Array:
    """F with F T_0 = I: z itself in the coordinates of T_0."""
    return np.asarray(np.linalg.inv(polar.T_0), dtype=np.float64)
