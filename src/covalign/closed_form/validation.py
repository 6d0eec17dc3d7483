"""Cross-validation of an aligner: the path of shrinkages, the choice of each training set, the fits without each fold.

``FoldValidation`` works with the moments of training sets. ``WideValidation`` does the same for data with fewer rows
than columns, without gaps and confounders, in the space of the rows (``wide_rows``): there a shrinkage costs one
inverse for all training sets together, those inside of training sets included. If rows are many there, or covariates
elsewhere, not all shrinkages of the grid are tried (``shrinkage_search``). Training sets of wide data choose among the
shrinkages that were tried for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.closed_form.fold_packing import packed
from covalign.closed_form.heldout import HeldOut, LeftOut, held_out, reduced
from covalign.closed_form.measures import quotient
from covalign.closed_form.pooled_correlation import Gain, Pairs, gain_of, usual_gain
from covalign.closed_form.regimes import MANY_COVARIATES, Polar
from covalign.closed_form.ridge_path import gain_at
from covalign.closed_form.shrinkage import (
    ALIKE,
    SHRINKAGE_GRID,
    WORTH_IT,
    Ridge,
    analytic_shrinkage,
    best_ridge,
    inner_sets,
    order_of,
    path_frame,
    path_of_splits,
    ridges_of_splits,
    scale_matters,
    sums_at,
)
from covalign.closed_form.shrinkage_search import Search, place
from covalign.closed_form.splits import Split, mean_of_y, splits, training, varies
from covalign.closed_form.wide_rows import Prediction, TrainingRows, WideRows, error_of_inverse, wide_rows
from covalign.moments.adjustment import explained
from covalign.moments.incomplete import Rows, merged, merged_with_terms
from covalign.moments.moments import Moments, without_z

ALL_SHRINKAGES = 400  # rows, up to which every shrinkage of the grid is tried


class Validation(Protocol):
    """Cross-validation over the folds that buckets of rows are packed into."""

    @property
    def possible(self) -> bool:
        """Whether any fold can be left out."""

    def path(self) -> pd.DataFrame:
        """``shrinkage_path``."""

    def ridges(self, path: pd.DataFrame | None, overall: Ridge) -> list[Ridge]:
        """What each training set chooses by itself, of what the path has; the same for all without a path."""

    def held_out(self, whole: Polar, ridges: Sequence[Ridge], overall: Ridge, grouped: bool) -> HeldOut | None:
        """The fits without each fold; None if there are none. The map of all rows has the ridge ``overall``."""


def validation(buckets: Sequence[Rows | None], folds: int, q: int = 0, nested: bool = True) -> Validation:
    """The cross-validation of these sums; ``nested`` says that training sets will choose."""
    if q == 0:
        outer = packed(buckets, folds)
        inner, wanted = inner_sets(outer)
        order = [b for _, piece in inner for b in piece]
        rows = wide_rows([buckets[b] for b in order]) if len(outer) > 1 else None
        if rows is not None:
            parts = [part for part in (buckets[b] for b in order) if isinstance(part, Moments)]
            pieces = np.repeat(np.arange(len(inner)), [len(piece) for _, piece in inner])
            return WideValidation(rows, parts, pieces, [fold for fold, _ in inner], wanted if nested else {})
    return FoldValidation(buckets, folds, q)


class Trials:
    """Ridge regressions of training sets on the rows left out of them, at one shrinkage after the other."""

    def __init__(self, made: Sequence[Split], origin: Array, order: int) -> None:
        self._made, self._origin, self._order = made, origin, order
        self._sums: dict[Ridge, list[Pairs]] = {}

    def frame(self, scale: str, places: Sequence[int]) -> pd.DataFrame:
        """The path at these places of the grid."""
        tried = [self._at(Ridge(float(SHRINKAGE_GRID[i]), scale)) for i in places]
        sums = [_joined(fold) for fold in zip(*tried, strict=True)]
        return path_frame(sums, scale, SHRINKAGE_GRID[list(places)])

    def _at(self, ridge: Ridge) -> list[Pairs]:
        """Sums of every fold (1 x 1 x P)."""
        if ridge not in self._sums:
            self._sums[ridge] = sums_at(self._made, ridge, self._origin, self._order)
        return self._sums[ridge]


class FoldValidation:
    """From the moments of every training set."""

    def __init__(self, buckets: Sequence[Rows | None], folds: int, q: int) -> None:
        self._buckets, self._folds, self._q = buckets, folds, q

    @cached_property
    def _made(self) -> list[Split]:
        return splits(self._buckets, self._folds, self._q)

    @property
    def possible(self) -> bool:
        """Whether any fold can be left out."""
        return bool(self._made)

    def path(self) -> pd.DataFrame:
        """``shrinkage_path``; of the shrinkages that a search tries if covariates are many."""
        origin, order = mean_of_y(part for part in self._buckets if part is not None), order_of(self._buckets)
        many = bool(self._made) and len(origin) >= MANY_COVARIATES
        if not many or any(split.train.root is not None for split in self._made):
            return path_of_splits(self._made, origin, order)
        # Covariates of a table may be in an order, so those that long steps look at are spread.
        at = np.arange(0, len(origin), len(origin) // MANY_COVARIATES)
        some = [split.select(at.tolist()) for split in self._made]
        trials, few = Trials(self._made, origin, order), Trials(some, origin[at], order)
        return Search(trials.frame, partial(scale_matters, some), few.frame).path()

    def ridges(self, path: pd.DataFrame | None, overall: Ridge) -> list[Ridge]:
        """What each training set chooses by itself, of the scales of the path."""
        if path is None:
            return [overall] * len(self._made)
        scales = path["scale"].unique().tolist()
        return ridges_of_splits(self._buckets, self._made, self._folds, self._q, scales)

    def held_out(self, whole: Polar, ridges: Sequence[Ridge], overall: Ridge, grouped: bool) -> HeldOut | None:
        """The fits without each fold."""
        if not self._made:
            return None
        gain = None if grouped else self._gain(overall)
        return held_out(whole, self._made, ridges, grouped=grouped, gain=gain)

    def _gain(self, ridge: Ridge) -> Gain:
        """What the map has over a fit without a fold, both with this ridge."""
        whole = training(merged_with_terms(self._buckets), self._q)
        if whole is None:
            return usual_gain(len(self._made))
        return gain_at(whole.moments, self._made[0].train, *ridge)


class Training(NamedTuple):
    """A training set: the parts left out of it, the covariates that it knows, their deviations, its rows."""

    left_out: list[int]
    known: NDArray[np.bool_]
    sd: Array
    n: int


class Trial(NamedTuple):
    """Ridge regressions at one shrinkage, on left-out rows."""

    folds: list[Pairs]  # of each fold (fields of P)
    nested: list[tuple[int, Pairs]]  # for an outer fold, of some pieces left out with it
    fitted: float  # mean alignment of the first training set on its own rows


class WideValidation:
    """In the space of the rows, which are many fewer than columns."""

    def __init__(
        self,
        rows: WideRows,
        parts: Sequence[Moments],
        pieces: NDArray[np.intp],  # of every part
        fold_of_piece: Sequence[int],
        wanted: dict[frozenset[int], list[tuple[int, list[int]]]],
    ) -> None:
        self._rows, self._parts, self._pieces, self._wanted = rows, parts, pieces, wanted
        fold_of_part = np.array(fold_of_piece)[pieces]
        self._tests = [np.flatnonzero(fold_of_part == fold).tolist() for fold in range(max(fold_of_piece) + 1)]
        self._y = [without_z(part) for part in parts]
        self._few: dict[tuple[str, int], Trial] = {}
        made = [self._training(test) for test in self._tests]
        scored = varies([(self._y[i], of.known) for of in made for i in of.left_out])
        self._made = [of._replace(known=of.known & scored) for of in made]

    @property
    def possible(self) -> bool:
        """Whether any fold can be left out."""
        return any(of.known.any() for of in self._made)

    def _training(self, left_out: Sequence[int]) -> Training:
        seen = merged(part for i, part in enumerate(self._y) if i not in left_out)
        p = len(self._rows.origin)
        if seen is None or (seen.n or 0) < 2 or not isinstance(seen, Moments):
            return Training(list(left_out), np.zeros(p, dtype=bool), np.full(p, np.inf), 0)
        known = ~explained(seen, 0)
        return Training(list(left_out), known, np.where(known, np.sqrt(np.diag(seen.cov_y)), np.inf), seen.n or 0)

    def _penalty(self, ridge: Ridge) -> float:
        """lam of ``wide_rows``: rho / (1 - rho) times the mean size of a training set."""
        size = self._rows.n.sum() * (1 - 1 / len(self._tests))
        return float(size * ridge.shrinkage / (1 - ridge.shrinkage)) if ridge.shrinkage < 1 else np.inf

    # -- the path -----------------------------------------------------------------------------------------------------

    def path(self) -> pd.DataFrame:
        """``shrinkage_path``; of the shrinkages that a search tries if rows are many."""
        search = Search(self._frame, self._scale_matters)
        return search.whole_path() if len(self._rows.v) <= ALL_SHRINKAGES else search.path()

    def _scale_matters(self, best: Ridge, held: float) -> bool:
        """``shrinkage._scale_matters``, by the deviations of all rows."""
        sd = np.sqrt(self._rows.variance[self._rows.variance > 0])
        if len(sd) == 0 or sd.max() < ALIKE * sd.min():
            return False
        return self._trial(best.scale, place(best)).fitted - held > WORTH_IT

    def _frame(self, scale: str, places: Sequence[int]) -> pd.DataFrame:
        trials = [self._trial(scale, i) for i in places]
        sums = [_stacked([trial.folds[fold] for trial in trials]) for fold, of in enumerate(self._made) if of.n]
        return path_frame(sums, scale, SHRINKAGE_GRID[list(places)])

    def _trial(self, scale: str, at: int) -> Trial:
        if (scale, at) not in self._few:
            self._few[scale, at] = self._tried(Ridge(float(SHRINKAGE_GRID[at]), scale))
        return self._few[scale, at]

    def _tried(self, ridge: Ridge) -> Trial:
        sets = [of.left_out for of in (*self._made, *self._inner)]
        found = self._rows.without(ridge.scale, self._penalty(ridge), sets, single=True)
        folds = [self._sums(one, of, of.left_out) for one, of in zip(found[: len(self._made)], self._made, strict=True)]
        nested = [
            (fold, self._sums(one, of, self._parts_of(some)))
            for one, of, scored in zip(found[len(self._made) :], self._inner, self._wanted.values(), strict=True)
            for fold, some in scored
            if of.n
        ]
        return Trial(folds, nested, self._fitted(found[0], self._made[0]))

    @cached_property
    def _inner(self) -> list[Training]:
        return [self._training(self._parts_of(pieces)) for pieces in self._wanted]

    def _parts_of(self, pieces: Sequence[int] | frozenset[int]) -> list[int]:
        return np.flatnonzero(np.isin(self._pieces, list(pieces))).tolist()

    def _sums(self, found: Prediction, of: Training, scored: list[int]) -> Pairs:
        """Sums over the rows of some parts, of predictions with variance 1 on the training set, and y."""
        rows, unit = self._rows, quotient(1.0, np.sqrt(found.own))
        at = rows.rows_of(scored)
        z, y, v = found.values[at] * unit, rows.y[at], rows.v[at]
        n = np.full(len(unit), rows.n[scored].sum())
        sums = (n, v @ z, v @ y, np.sum(z**2, axis=0), rows.yy[scored].sum(axis=0), np.sum(z * y, axis=0))
        return Pairs(*(np.where(of.known, part, 0.0) for part in sums))

    def _fitted(self, found: Prediction, of: Training) -> float:
        at = self._rows.rows_of([i for i in range(len(self._parts)) if i not in of.left_out])
        cov = np.sum(found.values[at] * self._rows.y[at], axis=0) / max(of.n, 1)
        return float(quotient(cov / of.sd, np.sqrt(found.own))[of.known].mean()) if of.known.any() else np.nan

    # -- the fits without each fold -----------------------------------------------------------------------------------

    def ridges(self, path: pd.DataFrame | None, overall: Ridge) -> list[Ridge]:
        """What each training set chooses by itself, of the shrinkages of the path."""
        if path is None:
            return [overall] * len(self._made)
        tried = [
            (str(scale), [place(Ridge(rho)) for rho in rows["shrinkage"]])
            for scale, rows in path.groupby("scale", sort=False)
        ]
        return [
            best_ridge(pd.concat([self._nested_frame(fold, *one) for one in tried], ignore_index=True))
            or Ridge(analytic_shrinkage(self._moments_without(of)))
            for fold, of in enumerate(self._made)
        ]

    def _nested_frame(self, fold: int, scale: str, places: Sequence[int]) -> pd.DataFrame:
        trials = [[pairs for of, pairs in self._trial(scale, i).nested if of == fold] for i in places]
        return path_frame([_stacked(of) for of in zip(*trials, strict=True)], scale, SHRINKAGE_GRID[list(places)])

    def _moments_without(self, of: Training) -> Moments:
        whole = merged(part for i, part in enumerate(self._parts) if i not in of.left_out)
        assert isinstance(whole, Moments)  # parts have no gaps
        return whole

    def held_out(self, whole: Polar, ridges: Sequence[Ridge], overall: Ridge, grouped: bool) -> HeldOut | None:
        """The fits without each fold."""
        H, rows, found = self._rows.inverse("standard", 0.0), self._rows, []
        settings = [(of, ridge) for of, ridge in zip(self._made, ridges, strict=True) if of.known.any()]
        values = {id(of): one for ridge in set(ridges) for of, one in self._predictions(settings, ridge)}
        for of, _ in settings:
            train = TrainingRows(rows, H, of.left_out)
            polar = train.polar(of.sd, values.get(id(of)), whole.covariate_names)
            if isinstance(polar, Polar):
                found.append((of, train.mean, polar))
        if not found:
            return None
        folds = [
            LeftOut(polar, reduced([self._parts[i] for i in of.left_out], mean, polar, len(found)), of.known, of.n)
            for of, mean, polar in found
        ]
        gain = None if grouped else self._gain(overall, H)
        return HeldOut(whole, folds, grouped, gain, self._rows.R.shape[1])

    def _gain(self, ridge: Ridge, H: Any) -> Gain:
        """``FoldValidation._gain``: lam H has the eigenvalues g of ``ridge_path.error_of``."""
        lam = self._penalty(ridge)
        if np.isinf(lam):
            return usual_gain(len(self._tests))
        if ridge != Ridge(0.0, "standard"):
            H = self._rows.inverse(ridge.scale, lam, single=True)
        of, n = max(self._made, key=lambda one: one.n), float(self._rows.n.sum())
        without = self._rows.rows_of(of.left_out)
        return gain_of(error_of_inverse(H, slice(0, 0)), n - 1, of.n - 1.0, lambda: error_of_inverse(H, without))

    def _predictions(self, settings: Sequence[tuple[Training, Ridge]], ridge: Ridge) -> list[tuple[Training, Array]]:
        """The values of ridge regressions on the rows of the training sets that chose this ridge."""
        these = [of for of, chosen in settings if chosen == ridge]
        if ridge.shrinkage == 0 or not these:
            return []
        found = self._rows.without(ridge.scale, self._penalty(ridge), [of.left_out for of in these])
        return [(of, one.values) for of, one in zip(these, found, strict=True)]


def _joined(several: Sequence[Pairs]) -> Pairs:
    """Sums of several shrinkages, each 1 x 1 x P: 1 x shrinkages x P."""
    return Pairs(*(np.concatenate(part, axis=1) for part in zip(*several, strict=True)))


def _stacked(several: Sequence[Pairs]) -> Pairs:
    """Sums of several shrinkages: 1 x shrinkages x P."""
    return Pairs(*(np.stack(part)[None] for part in zip(*several, strict=True)))
