"""Cross-validation of an aligner: the path of shrinkages, the choice of each training set, the fits without each fold.

``FoldValidation`` works with the moments of training sets. ``WideValidation`` does the same for data with fewer rows
than columns, without gaps and confounders, in the space of the rows (``wide_rows``): there a shrinkage costs one
inverse for all training sets together, those inside of training sets included. If rows are many, not all shrinkages of
the grid are tried: a search climbs from its middle in steps of four, for each scale of the columns, and from the best
of all in steps of two and one. Training sets choose among the shrinkages that were tried for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.closed_form.fold_packing import packed
from covalign.closed_form.heldout import HeldOut, LeftOut, held_out, reduced
from covalign.closed_form.measures import quotient
from covalign.closed_form.pooled_correlation import Pairs
from covalign.closed_form.regimes import Polar
from covalign.closed_form.shrinkage import (
    ALIKE,
    COARSE,
    SHRINKAGE_GRID,
    WORTH_IT,
    Ridge,
    analytic_shrinkage,
    best_ridge,
    inner_sets,
    path_frame,
    ridges_of_splits,
    shrinkage_path,
)
from covalign.closed_form.splits import Split, splits, varies
from covalign.closed_form.wide_rows import Prediction, TrainingRows, WideRows, wide_rows
from covalign.moments.adjustment import explained
from covalign.moments.incomplete import Rows, merged
from covalign.moments.moments import Moments, without_z

ALL_SHRINKAGES = 400  # rows, up to which every shrinkage of the grid is tried
STEPS = (4, 2, 1)  # of the search, in shrinkages of the grid
LAST = len(SHRINKAGE_GRID) - 1


class Validation(Protocol):
    """Cross-validation over the folds that buckets of rows are packed into."""

    @property
    def possible(self) -> bool:
        """Whether any fold can be left out."""

    def path(self) -> pd.DataFrame:
        """``shrinkage_path``."""

    def ridges(self, path: pd.DataFrame | None, overall: Ridge) -> list[Ridge]:
        """What each training set chooses by itself, of what the path has; the same for all without a path."""

    def held_out(self, whole: Polar, ridges: Sequence[Ridge], grouped: bool) -> HeldOut | None:
        """The fits without each fold; None if there are none."""


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
        """``shrinkage_path``."""
        return shrinkage_path(self._buckets, self._folds, self._q)

    def ridges(self, path: pd.DataFrame | None, overall: Ridge) -> list[Ridge]:
        """What each training set chooses by itself, of the scales of the path."""
        if path is None:
            return [overall] * len(self._made)
        scales = path["scale"].unique().tolist()
        return ridges_of_splits(self._buckets, self._made, self._folds, self._q, scales)

    def held_out(self, whole: Polar, ridges: Sequence[Ridge], grouped: bool) -> HeldOut | None:
        """The fits without each fold."""
        return held_out(whole, self._made, ridges, grouped=grouped) if self._made else None


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
        """``shrinkage_path``: raw columns first, other scales if they can change something."""
        if len(self._rows.v) <= ALL_SHRINKAGES:
            first: Callable[[str], pd.DataFrame] = self._full
            few: Callable[[str, int], pd.DataFrame] = self._every_fourth
            rest: Callable[[str], pd.DataFrame] = self._full
        else:
            first, few, rest = self._coarse, self._coarse, self._fine
        raw = first("raw")
        best = best_ridge(raw)
        if best is None or not self._scale_matters(best, float(raw["alignment"].max())):
            return rest("raw")
        some = pd.concat([few(scale, _place(best)) for scale in ("root", "standard")])
        better = best_ridge(some)
        if better is None or not some["alignment"].max() > raw["alignment"].max():
            return rest("raw")
        return pd.concat([raw, rest(better.scale)], ignore_index=True)

    def _scale_matters(self, best: Ridge, held: float) -> bool:
        """``shrinkage._scale_matters``, by the deviations of all rows."""
        sd = np.sqrt(self._rows.variance[self._rows.variance > 0])
        if len(sd) == 0 or sd.max() < ALIKE * sd.min():
            return False
        return self._trial(best.scale, _place(best)).fitted - held > WORTH_IT

    def _full(self, scale: str) -> pd.DataFrame:
        return self._frame(scale, range(LAST + 1))

    def _every_fourth(self, scale: str, _: int) -> pd.DataFrame:
        return self._frame(scale, range(LAST + 1)[COARSE])

    def _coarse(self, scale: str, start: int = LAST // 2 + 1) -> pd.DataFrame:
        """The shrinkages that a search in long steps tries."""
        highest(lambda i: self._value(scale, i), start, STEPS[:1])
        return self._seen(scale)

    def _fine(self, scale: str) -> pd.DataFrame:
        """The same, and those that short steps from the best of them try."""
        best = best_ridge(self._seen(scale))
        if best is not None:
            highest(lambda i: self._value(scale, i), _place(best), STEPS[1:])
        return self._seen(scale)

    def _value(self, scale: str, place: int) -> float:
        return float(np.nan_to_num(self._frame(scale, [place])["alignment"].iloc[0], nan=-np.inf))

    def _seen(self, scale: str) -> pd.DataFrame:
        return self._frame(scale, sorted(i for of, i in self._few if of == scale))

    def _frame(self, scale: str, places: Sequence[int]) -> pd.DataFrame:
        trials = [self._trial(scale, i) for i in places]
        sums = [_stacked([trial.folds[fold] for trial in trials]) for fold, of in enumerate(self._made) if of.n]
        return path_frame(sums, scale, SHRINKAGE_GRID[list(places)])

    def _trial(self, scale: str, place: int) -> Trial:
        if (scale, place) not in self._few:
            self._few[scale, place] = self._tried(Ridge(float(SHRINKAGE_GRID[place]), scale))
        return self._few[scale, place]

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
            (str(scale), [_place(Ridge(rho)) for rho in rows["shrinkage"]])
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

    def held_out(self, whole: Polar, ridges: Sequence[Ridge], grouped: bool) -> HeldOut | None:
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
        return HeldOut(whole, folds, grouped)

    def _predictions(self, settings: Sequence[tuple[Training, Ridge]], ridge: Ridge) -> list[tuple[Training, Array]]:
        """The values of ridge regressions on the rows of the training sets that chose this ridge."""
        these = [of for of, chosen in settings if chosen == ridge]
        if ridge.shrinkage == 0 or not these:
            return []
        found = self._rows.without(ridge.scale, self._penalty(ridge), [of.left_out for of in these])
        return [(of, one.values) for of, one in zip(these, found, strict=True)]


def highest(value: Callable[[int], float], start: int, steps: Sequence[int], last: int = LAST) -> int:
    """The place of the highest value that steps up from ``start``, ever smaller ones, find."""
    at = start
    for step in steps:
        while (best := max([at, max(0, at - step), min(last, at + step)], key=value)) != at:
            at = best
    return at


def _place(ridge: Ridge) -> int:
    return int(np.argmin(np.abs(SHRINKAGE_GRID - ridge.shrinkage)))


def _stacked(several: Sequence[Pairs]) -> Pairs:
    """Sums of several shrinkages: 1 x shrinkages x P."""
    return Pairs(*(np.stack(part)[None] for part in zip(*several, strict=True)))
