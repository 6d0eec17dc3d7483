"""How well a fitted model is aligned, on fitted rows and on new ones."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.linalg import Array
from covalign._core.printed_frames import printed
from covalign.closed_form import optimum, regimes
from covalign.closed_form.category_blocks import canonical_on_new_rows
from covalign.closed_form.heldout import Measured
from covalign.closed_form.model_contract import ModelContract
from covalign.closed_form.regimes import Polar

HELD_OUT_VALUES = ("held_out", "se", "low", "high")


class AlignmentScores(ModelContract):
    """Alignment and coupling of a fitted model: fitted rows, left-out rows, and any rows."""

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
        """One row per category with several dummies: covariate, eta_squared, canonical, held_out, dummies.

        The eta squared of a dimension is the share of its variance that lies between the levels of the category (R^2 on
        all its dummies, 0 to 1); the category's is the mean over the dimensions of its dummies. ``canonical`` is the
        root mean square of the canonical correlations of these dimensions and the category; if the category is the only
        covariate, it does not depend on the level that is left out. Both are those of the fitted rows. ``held_out`` is
        the same as ``canonical`` on left-out rows: the correlation of the category, whitened, with its regression on
        these dimensions, over all dummies together, which is ``canonical`` on the rows of the regression. NaN if
        nothing is held out.

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
            (column.source, *self._of_category(block), self._category_on_new_rows(block), column.names)
            for column, block in zip(encoding.columns, encoding.blocks, strict=True)
            if column.kind == "dummies" and len(block) > 1
        ]
        return pd.DataFrame(rows, columns=["covariate", "eta_squared", "canonical", "held_out", "dummies"])

    def _category_on_new_rows(self, block: tuple[int, ...]) -> float:
        """The canonical alignment on left-out rows."""
        held = self._held_out(own=True)
        if held is None or (self.regime_ == "exclusive" and not held.all_exclusive):
            return float("nan")
        return canonical_on_new_rows(held, [self._mixing(of.polar) for of in held.folds], block)

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
        interval allows for that. All four are NaN if nothing is held out (``folds=0``, a fixed
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
        categories = self.category_alignment_
        shares = {name: of["eta_squared"] for of in categories.to_dict("records") for name in of["dummies"]}
        frame = frame.assign(eta_squared=pd.Series(shares).reindex(frame.index)) if shares else frame
        frame.attrs.update(self._circumstances())
        frame.attrs["categories"] = self._categories(categories)
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
        return {"groups": self.n_groups_}

    def _categories(self, alignment: pd.DataFrame) -> dict[str, dict[str, Any]]:
        """Levels and reference level of every category, with the canonical alignment of those with several dummies."""
        found = self._coded_covariates().categories(self._dimensions)
        for of in alignment.to_dict("records"):
            numbers = {"canonical": of["canonical"], "canonical_held_out": of["held_out"]}
            about = found[of["covariate"]]
            about |= {**numbers, "about": f"{about['about']} {as_a_whole(**numbers)}"}
        return found

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


def plain_mixing(polar: Polar) -> Array:
    """F with F T_0 = I: z itself in the coordinates of T_0."""
    return np.asarray(np.linalg.inv(polar.T_0), dtype=np.float64)


def as_a_whole(canonical: float, canonical_held_out: float) -> str:
    """The sentence about the canonical alignment of a category."""
    known = f"{canonical:.2f} on fitted rows"
    held_out = "" if np.isnan(canonical_held_out) else f" and {canonical_held_out:.2f} on new ones"
    return f"All its levels together have the canonical alignment {known}{held_out}."
