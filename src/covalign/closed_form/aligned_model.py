"""What both estimators have in common: the regime, how it is changed, and what they report of alignment.

The regimes of either follow from a polar form and the moments of (Z, Y): in the aligner Z is the representation, in a
factor model Z are the informed factors before any regime.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn import get_config
from sklearn.utils import estimator_html_repr

from covalign._core.messages import message
from covalign._core.user_arrays import plain
from covalign.closed_form import model_card, regimes
from covalign.closed_form.alignment_scores import AlignmentScores
from covalign.closed_form.pooled_correlation import verdict
from covalign.closed_form.regime_choice import MOST_EXACT, RegimeChoice

OVERFITTED = 0.1  # a larger difference between the mean alignment on fitted rows and on new ones is pointed out


class AlignedModel(AlignmentScores, RegimeChoice):
    """An estimator whose dimension p stands for covariate p."""

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
