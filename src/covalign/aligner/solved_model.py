"""What a fitted aligner has: the map of its regime, the shrinkage, and the moments of the fitted rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.linalg import Array
from covalign.aligner.solution import Solution
from covalign.closed_form import regimes
from covalign.closed_form.aligned_model import AlignedModel
from covalign.moments.adjustment import Adjustment, adjusted
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments
from covalign.tables.confounders import Coding


class SolvedModel(AlignedModel):
    """Sums of rows, and the regime that is solved from them when it is first asked for."""

    _coding: Coding
    _whole: Rows
    _groups: Any
    _solved: Solution | None
    _adjusted: tuple[Moments, Adjustment] | None

    @abstractmethod
    def _solve(self) -> Solution:
        """The regime of these parameters, from the sums."""

    @property
    def _solution(self) -> Solution:
        self._check_fitted()
        if self._solved is None:
            self._solved = self._solve()
        return self._solved

    @property
    def moments_(self) -> Moments:
        """Moments of the fitted rows, completed where covariates have gaps, without what confounders explain.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.moments_
        Moments(n=200, 10 latent dimensions, 5 covariates: 'y0', 'y1', 'y2', 'y3', 'y4')
        """
        return self._adjusted_moments()[0]

    @property
    def _adjustment(self) -> Adjustment:
        return self._adjusted_moments()[1]

    def _adjusted_moments(self) -> tuple[Moments, Adjustment]:
        self._check_fitted()
        if self._adjusted is None:
            self._adjusted = adjusted(self._whole, self._coding.q)
        return self._adjusted

    @property
    def n_rows_(self) -> int:
        """Rows of Z that were fitted.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.n_rows_
        200
        """
        self._check_fitted()
        return int(self._whole.n or 0)

    @property
    def n_groups_(self) -> int | None:
        """Groups of rows, None if rows were taken as independent.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner().fit(s.Z, s.Y).n_groups_ is None
        True
        """
        self._check_fitted()
        return None if self._groups is None else len(self._groups)

    @property
    def transform_(self) -> Array:
        """The whole map: T, and the rest of the space below it if kept.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.transform_.shape
        (5, 10)
        """
        return np.vstack([self._solution.T, self._solution.rest])

    @property
    def T_(self) -> Array:
        """The map without the rest of the space (P x K): its rows stand for the covariates.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner(keep_rest=True).fit(s.Z, s.Y)
        >>> al.T_.shape, al.transform_.shape
        ((5, 10), (10, 10))
        """
        return self._solution.T

    @property
    def regime_(self) -> str:
        """The regime that was solved.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner().fit(s.Z, s.Y).at(regime="exclusive").regime_
        'exclusive'
        """
        return self._solution.regime

    @property
    def lam_(self) -> float:
        """The lambda that was solved: 0 of the independent regime, 1 of the strongest, NaN of the exclusive one.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner(lam=0.3).fit(s.Z, s.Y)
        >>> al.lam_, al.at(regime="strongest").lam_, al.at(regime="exclusive").lam_
        (0.3, 1.0, nan)
        """
        s = self._solution
        return float("nan") if s.regime in ("exclusive", "exact") else float(regimes.ENDS.get(s.regime, s.lam))

    @property
    def gap_(self) -> float:
        """Certificate of the exact regime: no admissible map has a (weighted) mean alignment larger by more than this.

        It is an upper bound, from the concavity of the problem, and NaN in other regimes.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.gap_, al.at(max_coupling=0.5, exact=True).gap_ < 1e-9
        (nan, True)
        """
        return self._solution.gap

    @property
    def shrinkage_(self) -> float:
        """The ridge weight in use.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> ca.LatentAligner(shrinkage=0.1).fit(s.Z, s.Y).shrinkage_
        0.1
        """
        return self._solution.shrinkage

    @property
    def scale_(self) -> str:
        """The scale of the columns of Z for the ridge: "raw", "root" or "standard" (``regimes.ridge``).

        ``shrinkage="auto"`` chooses it with the amount, by held-out alignment. A fixed shrinkage takes columns as they
        are.

        >>> import numpy as np, covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=60)
        >>> units = np.logspace(-3, 3, s.Z.shape[1])  # one column in nanometres, another in kilometres
        >>> ca.LatentAligner().fit(s.Z * units, s.Y).scale_
        'standard'
        """
        return self._solution.scale

    @property
    def shrinkage_path_(self) -> pd.DataFrame | None:
        """Held-out alignment along the shrinkage (None if it was fixed).

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.shrinkage_path_.columns.tolist()
        ['scale', 'shrinkage', 'alignment', 'se']
        """
        return self._solution.path

    @property
    def rank_(self) -> int:
        """How many covariates are linearly independent as seen from Z.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().fit(s.Z, s.Y)
        >>> al.rank_
        5
        """
        return self._solution.polar.rank
