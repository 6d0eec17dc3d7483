"""The same fit in other regimes: a point of the trade-off, or the whole frontier."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from covalign._core.checks import check_flag, check_lam, check_max_coupling, check_regime, listed_lams
from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign._core.printed_frames import printed
from covalign.closed_form import budget as budgets
from covalign.closed_form import heldout, optimum, regimes
from covalign.closed_form.budget import Budget
from covalign.closed_form.model_contract import ModelContract
from covalign.moments.moments import Moments

HELD_OUT_COLUMNS = ("alignment", "alignment_se", "coupling")
MOST_EXACT = 60  # covariates of a frontier with its optimum, which takes two seconds then and O(P^3) in general


class RegimeChoice(ModelContract):
    """A fitted model in another regime, without the data."""

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
        if not isinstance(rows, Moments) or len(self.covariate_names_) > MOST_EXACT or self._polar().crowded:
            return np.full(len(frame), np.nan)
        M = regimes.whitened_polar(rows).M
        best = [optimum.largest_alignment(M, Budget(c), 1e-6).alignment.mean() for c in frame["coupling"]]
        return np.fmax(best, frame["alignment"])  # the row itself is such a map
