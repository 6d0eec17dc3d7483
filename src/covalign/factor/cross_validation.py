"""Alignment of informed factors on samples that were not fitted: the model is fitted again without each fold.

Left-out samples are placed from their features alone: with their covariates in the prior, a factor would agree with its
covariate whatever the features say. A regime moves the informed factors to T z, T that of the fold's own fit, so what
is kept of a fold are moments of (T_0 z, y), and every regime follows from them (``heldout.HeldOut``).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from covalign._core.checks import check_folds
from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign.closed_form import fold_packing, regimes
from covalign.closed_form.heldout import HeldOut, LeftOut, second_moments
from covalign.closed_form.regimes import Polar
from covalign.exceptions import CannotHoldOutError
from covalign.factor.fitted_rows import Rows
from covalign.factor.inference.realignment import model_moments
from covalign.factor.table import Table
from covalign.moments.block_sizes import MANY, bucket_count
from covalign.moments.gap_accumulator import fold_moments
from covalign.stream.folds import fold_of_rows
from covalign.tables import groups as grouping

LEAST = 20  # samples: fewer say nothing


class Judged(NamedTuple):
    """Left-out samples in every regime, and as stage 1 places them."""

    in_regimes: HeldOut
    plain: HeldOut

    @property
    def reliability(self) -> Array:
        """The standard deviation of every informed factor of left-out samples; z has 1, so it says how well z is known.

        One for each covariate, from the features alone.
        """
        spread = []
        for of in self.plain.folds:
            back = np.linalg.inv(of.polar.T_0)
            n, C = second_moments(of.parts)
            spread.append(np.diag(back @ np.tensordot(n / n.sum(), C, 1) @ back.T))
        return np.asarray(np.sqrt(np.mean(spread, axis=0)))


def held_out(model: Any, folds: int, settings: Any = None) -> Judged:
    """Fit without each fold, and look at its left-out samples; folds where a covariate does not vary are left out.

    A sample's fold follows from its numbers, not from its position. Fits have the settings of the model, or others.
    """
    if settings is None:
        settings = clone(model).set_params(supervision=model.supervision_, regression_share=model.regression_share_)
    return with_shares(model, folds, settings, [settings.regression_share])[0]


def with_shares(model: Any, folds: int, settings: Any, shares: Sequence[Any]) -> list[Judged]:
    """``held_out`` with each of these shares of the regression on all features, from the same fits."""
    settings = settings.set_params(n_factors=model.n_factors_, folds=0, regression_share=shares[0])
    rows: Any = model._rows
    if not isinstance(rows, Rows):
        need = "leaving samples out needs rows in memory, and this model was fitted to data that were read by chunks"
        remedy = "Fit it to an array, use folds=0, or judge it with score(X, y) on samples it has not seen"
        raise CannotHoldOutError(message(need, remedy=remedy))
    fold_of, bucket = folds_of(model, folds)
    made = []
    for fold in range(fold_of.max() + 1 if len(rows.Y) >= LEAST else 0):
        test = fold_of == fold
        if not _varies(rows.Y[~test]):
            continue
        made.append(without(model, settings, test, bucket, shares))
    if not made:
        need = f"leaving samples out needs at least {LEAST}, with every covariate varying in the rest"
        got, remedy = f"{len(rows.Y)} in all", "use fewer folds (0: none) or more samples"
        raise CannotHoldOutError(message(need, got=got, remedy=remedy))
    return [_judged(model, of_share) for of_share in zip(*made, strict=True)]


def _judged(model: Any, folds: Sequence[tuple[LeftOut, LeftOut]]) -> Judged:
    in_regimes, plain = ([*of] for of in zip(*folds, strict=True))
    grouped = model._groups is not None
    return Judged(
        HeldOut(model._polar(), in_regimes, grouped),
        HeldOut(model._plain_polar(), plain, grouped),
    )


def folds_of(model: Any, folds: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The fold of each sample, and its bucket."""
    bucket = buckets_of(model, check_folds(folds))
    return fold_packing.fold_of_rows(bucket, model._rows.Y, folds), bucket


def buckets_of(model: Any, folds: int) -> NDArray[np.int64]:
    """The bucket of each sample: by its group, or by its features.

    Features are rounded, as their last digits depend on the order of rows.
    """
    if model._groups is not None:
        return grouping.buckets(model._groups, MANY)
    ((_, parts, Y, C),) = model._rows.chunks(model._table)
    table = np.round(model._table.standardised(parts, C), 6)
    return fold_of_rows(table, np.empty((len(Y), 0)), bucket_count(folds, 0))


class Tables(NamedTuple):
    """The rows of a model as they came: views, covariates and coded confounders."""

    views: dict[str, Array]
    Y: pd.DataFrame
    C: pd.DataFrame | None

    @classmethod
    def of(cls, model: Any, fitted: NDArray[np.bool_]) -> Tables:
        """Without features that no row among the fitted ones has."""
        table: Table = model._table
        rows: Rows = model._rows
        X, Y = rows.X + table.nuisance.of_x(rows.C), rows.Y * table.sd_y + table.mean_y + table.nuisance.of_y(rows.C)
        C = pd.DataFrame(rows.C, columns=model.confounder_names_) if rows.C.shape[1] else None
        seen = np.asarray(~np.isnan(X[fitted]).all(axis=0))
        views = {
            name: X[:, where][:, seen[where]]
            for name, where in zip(table.views, table.bounds, strict=True)
            if seen[where].any()
        }
        return cls(views, pd.DataFrame(Y, columns=table.encoding.names), C)

    def fit(self, settings: Any, which: NDArray[np.bool_]) -> Any:
        """A model with these settings of these rows. Warnings are of the whole fit."""
        fit = clone(settings)
        fit._fit_quietly(_some(self.views, which), self.Y[which], None if self.C is None else self.C[which])
        if fit._unfinished:  # numbers of fits that were cut short would say nothing of the model
            raise KeyboardInterrupt
        return fit


def with_supervision_1(model: Any) -> Any:
    """The same rows fitted with every covariate counting once."""
    settings = clone(model).set_params(supervision=1.0, regression_share=0.0, n_factors=model.n_factors_, folds=0)
    all_rows = np.ones(len(model._rows.Y), dtype=bool)
    return Tables.of(model, all_rows).fit(settings, all_rows)


def without(
    model: Any, settings: Any, test: NDArray[np.bool_], bucket: NDArray[np.int64], shares: Sequence[Any]
) -> list[tuple[LeftOut, LeftOut]]:
    """These samples in the regimes of a fit without them, and as its stage 1 places them, for each share."""
    table: Table = model._table
    rows: Rows = model._rows
    views, named, C = tables = Tables.of(model, ~test)
    fit = tables.fit(settings, ~test)
    new, left = _some(views, test), named[test] - fit._table.nuisance.of_y(rows.C[test])
    blocks, own = table.encoding.blocks, bucket[test]

    def left_out(polar: Polar, z: Array) -> LeftOut:
        u = z[:, : polar.T_0.shape[1]] @ polar.T_0.T
        parts = [fold_moments(u[own == b], left[own == b], 1, blocks)[0] for b in np.unique(own)]
        known = np.ones(named.shape[1], dtype=bool)
        return LeftOut(polar, [part for part in parts if part is not None], known, int((~test).sum()))

    made = []
    for i, share in enumerate(shares):
        if i:
            fit._regress(share)
        placed = fit.transform(new, confounders=None if C is None else C[test])
        z = np.asarray(placed) - fit._label_free_mean  # a frame after set_output
        try:
            polars = fit._polar(), fit._plain_polar()
        except ValueError as why:
            need = "leaving samples out needs features that distinguish the informed factors in every training set"
            raise CannotHoldOutError(message(need, remedy="Use folds=0, more features, or fewer covariates")) from why
        made.append((left_out(polars[0], z), left_out(polars[1], z)))
    return made


def model_polar(model: Any) -> Polar:
    """What every regime of the informed factors is a function of in the paper's way: beta and the covariates alone."""
    return regimes.whitened_polar(model_moments(model._stage_1.beta, model._sy, model.covariate_names_))


def _some(views: dict[str, Array], which: NDArray[np.bool_]) -> dict[str, Array]:
    return {name: view[which] for name, view in views.items()}


def _varies(Y: Array) -> bool:
    if len(Y) == 0:  # all groups share a bucket, and so a fold
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value
        spread = np.nanmax(Y, axis=0) - np.nanmin(Y, axis=0)
    return bool(np.all(spread > 0))
