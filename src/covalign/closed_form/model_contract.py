"""What an estimator needs to say, so that regimes, scores and reports work on it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from sklearn.exceptions import NotFittedError

from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign._core.output_tables import OutputTables
from covalign._core.parameters import check_parameters
from covalign.closed_form.budget import Budget
from covalign.closed_form.heldout import HeldOut, Measured
from covalign.closed_form.regimes import Polar
from covalign.moments.incomplete import Rows
from covalign.tables.covariates import Encoding


class ModelContract(OutputTables):
    """An estimator whose dimension p stands for covariate p, as the rooms above see it."""

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
