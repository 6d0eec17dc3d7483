"""Informed factor analysis with the face of the methods it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from covalign._linalg import Array
from covalign.baselines.face import Fitted
from covalign.factor import InformedFactorAnalysis


@dataclass(frozen=True)
class IFA:
    """iFA: stage 1 alone (``lam=None``), or realigned to a lambda."""

    lam: float | None = None

    @property
    def name(self) -> str:
        """iFA, or iFA with its lambda."""
        return "iFA (no T)" if self.lam is None else f"iFA (lam={self.lam:g})"

    paired = True

    def absent(self) -> str | None:
        """It is always here."""
        return None

    def fit(self, views: dict[str, Array], Y: Array, n_factors: int, seed: int, budget: int) -> Fitted:
        """Stage 1 (at most ``budget`` sweeps; a handful suffices) and, if asked, stage 2."""
        fa = InformedFactorAnalysis(n_factors, max_iter=budget, random_state=seed).fit(views, Y)
        fa = fa if self.lam is None else fa.realign(self.lam)
        return Fitted(fa.factors_, fa.loadings_, fa.elbo_)
