"""The part of the views and covariates that confounders explain: estimated on some rows, subtracted from any."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.linalg import Array, is_explained
from covalign.moments.adjustment import coefficients, follow_from_confounders
from covalign.tables import confounders, covariates


class Nuisance(NamedTuple):
    """Confounders: their coding, their means c, and what they explain, (C - c) B_x of X and (C - c) B_y of Y."""

    coding: confounders.Coding
    centre: Array  # q
    B_x: Array  # q x D
    B_y: Array  # q x P

    @classmethod
    def of(cls, coding: confounders.Coding, C: Array, X: Array, Y: Array) -> Nuisance:
        """Regress every column over the rows that have it; an error if confounders explain a covariate fully."""
        made = cls(coding, C.mean(axis=0), coefficients(C, X)[1], coefficients(C, Y)[1])
        made.refuse_explained(C, Y)
        return made

    def refuse_explained(self, C: Array, Y: Array) -> None:
        """Raise an error if confounders explain a covariate fully."""
        left = np.nanvar(Y - self.of_y(C), axis=0)
        follows = is_explained(left, np.nanvar(Y, axis=0))
        if follows.any():
            raise follow_from_confounders(np.array(self.coding.covariates.names)[follows])

    @classmethod
    def none(cls, encoding: covariates.Encoding, d: int) -> Nuisance:
        """That of a fit without confounders."""
        return cls(confounders.Coding(encoding), np.empty(0), np.empty((0, d)), np.empty((0, len(encoding.names))))

    def of_x(self, C: Array, features: slice = slice(None)) -> Array:
        """What the confounders explain of X."""
        return np.asarray((C - self.centre) @ self.B_x[:, features])

    def of_y(self, C: Array) -> Array:
        """What the confounders explain of Y."""
        return np.asarray((C - self.centre) @ self.B_y)


def learn_nuisance(
    table: Any, named: bool, encoding: covariates.Encoding, index: pd.Index | None, X: Array, Y: Array
) -> tuple[Nuisance, Array]:
    """What confounders explain, and their coded values (n x 0 if there are none)."""
    frame = None if table is None else confounders.matched(table, index, len(X))
    coding, C = confounders.Coding.add(encoding, frame, named, len(X))
    if frame is None:
        return Nuisance.none(encoding, X.shape[1]), C
    return Nuisance.of(coding, C, X, Y), C


def without(X: Array, explained: Array) -> Array:
    """X minus its explained part; a feature that is explained fully becomes constant instead of rounding noise."""
    before, left = np.nanvar(X, axis=0), X - explained
    gone = is_explained(np.nanvar(left, axis=0), before)
    left[:, gone] = np.where(np.isnan(X[:, gone]), np.nan, np.nanmean(X[:, gone], axis=0))
    return left
