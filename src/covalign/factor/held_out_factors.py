"""What left-out samples say of a factor model: it is fitted again without each fold, once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from covalign.closed_form.aligned_model import AlignedModel
from covalign.closed_form.alignment_scores import plain_mixing
from covalign.closed_form.heldout import HeldOut
from covalign.closed_form.pooled_correlation import Estimate
from covalign.exceptions import CannotHoldOutError, NotHeldOutWarning
from covalign.factor import cross_validation, verdicts
from covalign.factor.inference.state import Problem
from covalign.factor.saved_folds import SavedFolds


class HeldOutFactors(AlignedModel):
    """The held-out numbers of a fitted ``InformedFactorAnalysis``."""

    _problem: Problem
    _held: dict[int, cross_validation.Judged | SavedFolds | CannotHoldOutError]  # by the folds, once asked for
    ownership_: pd.DataFrame

    def _judged(self) -> cross_validation.Judged | None:
        """Fits without each fold; all regimes of a stage 1 share them. CannotHoldOutError if there can be none."""
        folds = int(self.folds)
        if folds == 0:
            return None
        if folds not in self._held:
            try:
                self._held[folds] = cross_validation.held_out(self, folds)
            except CannotHoldOutError as why:
                self._held[folds] = why
        found = self._held[folds]
        if isinstance(found, CannotHoldOutError):
            raise CannotHoldOutError(str(found))
        if isinstance(found, SavedFolds):
            found = self._held[folds] = found.judged(self)
        return found

    def _judged_if_possible(self) -> cross_validation.Judged | None:
        """``_judged``, or None if nothing can be left out; the first time it warns and says why."""
        first = int(self.folds) not in self._held
        try:
            return self._judged()
        except CannotHoldOutError as why:
            if first:
                warnings.warn(f"There are no held-out numbers: {why}", NotHeldOutWarning, stacklevel=5)
            return None

    def _held_out(self, own: bool = False) -> HeldOut | None:
        judged = self._judged_if_possible()
        if judged is None:
            return None
        return judged.plain if own and self.regime_ is None else judged.in_regimes

    def _circumstances(self) -> dict[str, Any]:
        found = self._held.get(int(self.folds))
        why = str(found) if isinstance(found, CannotHoldOutError) else None
        return {**super()._circumstances(), "not_held_out": why}

    @property
    def informed_(self) -> pd.DataFrame:
        """What left-out samples say of every covariate: beta, low, high, held_out, verdict.

        ``beta`` is the correlation of a covariate with its factor in the population, ``low`` and ``high`` a 90 %
        interval, ``held_out`` the alignment of left-out samples in this model's regime, as in ``summary``. A covariate
        is "captured" if left-out samples exclude a correlation of 0, "not captured" if they exclude all above .3, and
        "unclear" in between or where nothing can be left out. The model is fitted again without each fold, once.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=500)
        >>> ca.InformedFactorAnalysis(10).fit(s.X, s.Y).informed_["verdict"].tolist()
        ['captured', 'captured', 'captured', 'captured', 'captured']
        """
        self._check_fitted()
        judged, own = self._judged_if_possible(), self._measured()
        p, k = self._problem.p, self._problem.k
        unknown = Estimate(*(np.full(p, np.nan) for _ in Estimate._fields))
        if judged is None:
            return verdicts.informed(self.covariate_names_, unknown, unknown, np.ones(p), k, self.n_rows_)
        plain = judged.plain
        stage_1 = plain.measure_mixed(
            plain_mixing(plain.whole), [plain_mixing(of.polar) for of in plain.folds]
        ).alignment
        n_train = float(np.mean([of.n_train for of in plain.folds]))
        held = unknown if own is None else own.alignment
        return verdicts.informed(self.covariate_names_, stage_1, held, judged.reliability, k, n_train)

    def _shows_held_out(self) -> bool:
        return int(self.folds) in (0, *self._held)

    def _verdicts(self, summary: pd.DataFrame) -> list[str]:
        return self.informed_["verdict"].tolist()

    def _cautions(self) -> list[str]:
        said = [] if self.converged_ else [f"The fit did not converge in {self.n_iter_} iterations: raise max_iter."]
        owned = self.ownership_["advice"].tolist()
        return [*super()._cautions(), *said, *dict.fromkeys(owned)]
