"""What confounders explain of the views and of the covariates, learned from rows and taken out of others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core import validation as errors
from covalign._core.linalg import Array, is_explained
from covalign.moments.adjustment import coefficients
from covalign.tables import confounders, covariates


class Nuisance(NamedTuple):
    """Confounders: how they are coded, their means c, and what is regressed out, (C - c) B_x of X, (C - c) B_y of Y."""

    coding: confounders.Coding
    centre: Array  # q
    B_x: Array  # q x D
    B_y: Array  # q x P

    @classmethod
    def of(cls, coding: confounders.Coding, C: Array, X: Array, Y: Array) -> Nuisance:
        """Every column by the rows that have it; refused where they explain a covariate altogether."""
        made = cls(coding, C.mean(axis=0), coefficients(C, X)[1], coefficients(C, Y)[1])
        left = np.nanvar(Y - made.of_y(C), axis=0)
        follows = is_explained(left, np.nanvar(Y, axis=0))
        if follows.any():
            raise errors.explained_by_confounders(np.array(coding.covariates.names)[follows])
        return made

    def of_x(self, C: Array) -> Array:
        """What the confounders explain of X."""
        return np.asarray((C - self.centre) @ self.B_x)

    def of_y(self, C: Array) -> Array:
        """What they explain of Y."""
        return np.asarray((C - self.centre) @ self.B_y)


def learn_nuisance(
    table: Any, named: bool, encoding: covariates.Encoding, index: pd.Index | None, X: Array, Y: Array
) -> tuple[Nuisance, Array]:
    """What confounders explain, and their coded values (n x 0 where there are none)."""
    if table is None:
        none = np.empty((0, X.shape[1])), np.empty((0, Y.shape[1]))
        return Nuisance(confounders.Coding(encoding), np.empty(0), *none), np.empty((len(X), 0))
    frame = confounders.matched(table, index)
    if len(frame) != len(X):
        raise errors.confounder_rows_differ(len(X), len(frame))
    coding = confounders.Coding(encoding, confounders.learn(frame), named)
    C = confounders.coded(coding.confounders, frame)
    return Nuisance.of(coding, C, X, Y), C


def without(X: Array, explained: Array) -> Array:
    """X minus what is explained of it; a feature of which nothing is left becomes a constant, not rounding noise."""
    before, left = np.nanvar(X, axis=0), X - explained
    gone = is_explained(np.nanvar(left, axis=0), before)
    left[:, gone] = np.where(np.isnan(X[:, gone]), np.nan, np.nanmean(X[:, gone], axis=0))
    return left
