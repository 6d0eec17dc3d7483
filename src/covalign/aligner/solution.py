"""A regime solved from moments."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd

from covalign._core.linalg import Array, regular_cholesky
from covalign._core.messages import listed
from covalign.closed_form import optimum, regimes
from covalign.closed_form.budget import Budget
from covalign.closed_form.regimes import Polar
from covalign.exceptions import SingularTransformWarning
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments
from covalign.tables import covariates

MANY_DIGITS = 3e4  # norm of a whitening; below, moments make dimensions uncorrelated to 1e-6


class Solution(NamedTuple):
    """A regime solved: everything the aligner shows follows from this and the moments."""

    regime: str
    lam: float
    shrinkage: float
    path: pd.DataFrame | None
    polar: Polar
    mixing: Array  # P x P (P x k with more covariates than dimensions)
    rest: Array  # (k - P) x K, or 0 x K if not asked for
    budget: Budget | None = None  # of the exact regime
    gap: float = np.nan  # of its optimum
    scale: str = "raw"  # of the columns, for the ridge
    correction: Array | None = None  # of T_0: what the fitted rows correct of T_0

    @property
    def T(self) -> Array:
        """The map without the rest of the space (P x K)."""
        return np.asarray(self.on_T_0 @ self.polar.T_0)

    @property
    def on_T_0(self) -> Array:
        """The matrix that takes T_0 to T."""
        return self.mixing if self.correction is None else np.asarray(self.mixing @ self.correction)

    @property
    def badly_conditioned(self) -> bool:
        """Moments do not have the digits that uncorrelated dimensions take."""
        return self.polar.whitening.size > MANY_DIGITS

    @property
    def singular(self) -> bool:
        """T merges dimensions."""
        F = self.mixing
        if (
            F.shape[1] >= len(F) >= regimes.MANY_COVARIATES
            and regular_cholesky(F @ F.T, len(F), regimes.REGULAR) is not None
        ):
            return False  # without singular values
        return bool(np.linalg.matrix_rank(F) < min(F.shape))

    def moved(self, regime: str, lam: float) -> Solution:
        """Another regime from the same polar form."""
        F = regimes.mixing(self.polar, regime, lam)
        return self._replace(regime=regime, lam=lam, mixing=F, budget=None, gap=np.nan)

    def within(self, budget: Budget) -> Solution:
        """The largest alignment within a budget, from the same polar form."""
        best = optimum.largest_alignment(self.polar.M, budget)
        return self._replace(regime="exact", lam=np.nan, mixing=best.mixing, budget=budget, gap=best.gap)


def solved(
    m: Moments,
    regime: str,
    lam: float,
    shrinkage: float,
    keep_rest: bool,
    path: pd.DataFrame | None,
    budget: Budget | None = None,
    scale: str = "raw",
    correction: Array | None = None,
) -> Solution:
    """The regime, or the optimum within the budget, at this shrinkage; ``path`` are the shrinkages compared."""
    polar = regimes.whitened_polar(m, shrinkage, scale)
    rest = regimes.rest_of_space(m, polar) if keep_rest else np.empty((0, polar.T_0.shape[1]))
    if budget is not None:
        exact = Solution("exact", np.nan, shrinkage, path, polar, np.eye(len(polar.M)), rest, None, np.nan, scale)
        return exact.within(budget)._replace(correction=correction)
    F = regimes.mixing(polar, regime, lam)
    return Solution(regime, lam, shrinkage, path, polar, F, rest, None, np.nan, scale, correction)


def correction_by(scores: Array) -> Array | None:
    """C^-1/2, C the covariance of scores that moments take for uncorrelated; None if they are something else."""
    centred = scores - scores.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    near = len(values) and 0.5 < values[0] <= values[-1] < 2
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T) if near else None


def refuse_unused_reference(encoding: covariates.Encoding, rows: Rows) -> None:
    """``covariates.refuse_unused_reference``, from the sums over rows."""
    sums = np.zeros(len(encoding.names))
    for columns, seen in rows.pairs:
        sums[columns] = (seen.n or 0) * seen.mean_y
    covariates.refuse_unused_reference(encoding, rows.n_pairs, sums)


def cannot_hold_out(rho: float) -> str:
    """The warning where no row can be left out."""
    return (
        "No covariate is known on both sides of any split into folds, so nothing can be held out and the shrinkage was "
        f"not chosen by held-out alignment: {rho:.3g} follows from the numbers of rows and dimensions alone. "
        "Add rows with labels, join rare levels, or give shrinkage a number."
    )


def warned(solution: Solution) -> Solution:
    """The solution, with a warning where its map has no inverse."""
    if solution.singular:
        text = (
            f"the covariates {listed(solution.polar.dependent, 12)} are linearly dependent as seen from Z, so T_1 is "
            "singular: alignment is unaffected, but it has no exact inverse. Use lam < 1 or drop one of them if you "
            "need one."
        )
        warnings.warn(text, SingularTransformWarning, stacklevel=4)
    return solution
