"""How much to shrink: held-out alignment of ridge regressions over a grid of shrinkages, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from covalign._core.linalg import Array
from covalign._core.threads import in_threads
from covalign.closed_form import regimes
from covalign.closed_form.fold_packing import packed
from covalign.closed_form.measures import quotient
from covalign.closed_form.pooled_correlation import Pairs, pair_sums
from covalign.closed_form.ridge_path import EigenPath, RidgePath, of_solutions, ridge_path
from covalign.closed_form.splits import Split, all_rows, mean_of_y, splits, training
from covalign.moments.incomplete import Rows, merged, merged_with_terms
from covalign.moments.moments import Moments

# From 0 (no shrinkage) to 1 (marginal covariances), evenly spaced in log-odds in between.
SHRINKAGE_GRID = np.concatenate([[0.0], expit(np.linspace(logit(1e-4), logit(0.999), 23)), [1.0]])

COARSE = slice(1, None, 4)  # of the grid
WORTH_IT = 0.01  # alignment
PAIRED, INNER = 8, 4  # folds, and folds inside a training set if there are more
ALIKE = 1.25  # deviations that differ by less are as good as equal


class Ridge(NamedTuple):
    """The amount of shrinkage, and the scale of the columns (``regimes.ridge``)."""

    shrinkage: float
    scale: str = "raw"


def shrinkage_path(buckets: Sequence[Rows | None], folds: int | None = None, q: int = 0) -> pd.DataFrame:
    """Held-out alignment of the ridge regressions: scale, shrinkage (a grid), alignment, se.

    Columns as they are come first. Columns on another scale are tried if they can change something: if their deviations
    differ, and the regressions are so much worse on left-out rows than on fitted ones that another ridge may help.
    First for few shrinkages; then the best of them for all, if it is better.
    """
    origin = mean_of_y(part for part in buckets if part is not None)
    return path_of_splits(splits(buckets, folds, q), origin, order_of(buckets))


def path_of_splits(made: Sequence[Split], origin: Array, order: int) -> pd.DataFrame:
    """``shrinkage_path`` of training sets; ``origin`` is near the mean of y, and matrices have this order."""

    def path(scale: str) -> pd.DataFrame:
        return _whole_path(made, scale, origin, order)

    raw = path("raw")
    best = best_ridge(raw)
    if best is None or not scale_matters(made, best, float(raw["alignment"].max())):
        return raw
    others = {scale: _few_or_all(made, scale, origin, order) for scale in ("root", "standard")}
    few = pd.concat([frame[frame["shrinkage"].isin(SHRINKAGE_GRID[COARSE])] for frame in others.values()])
    better = best_ridge(few)
    if better is None or not few["alignment"].max() > raw["alignment"].max():
        return raw
    whole = others[better.scale]
    return pd.concat([raw, whole if len(whole) == len(raw) else path(better.scale)], ignore_index=True)


def scale_matters(made: Sequence[Split], best: Ridge, held_out: float) -> bool:
    """Whether deviations differ, and alignment on fitted rows exceeds that on left-out rows by more than WORTH_IT."""
    train = made[0].train
    sd = np.sqrt(np.diag(train.cov_z)[np.diag(train.cov_z) > 0])
    if len(sd) == 0 or sd.max() < ALIKE * sd.min():
        return False
    B = regimes.ridge(train, best.shrinkage)
    own = quotient(np.sum(B * regimes.standardised_cross_covariance(train), axis=0), np.sqrt(_variance(B, train)))
    return float(own[made[0].known].mean()) - held_out > WORTH_IT


def _variance(B: Array, m: Moments) -> Array:
    return np.asarray(np.sum(B * (m.cov_z @ B), axis=0))


def _whole_path(made: Sequence[Split], scale: str, origin: Array, order: int) -> pd.DataFrame:
    def sums(split: Split) -> Pairs:
        return _sums(ridge_path(split.train, SHRINKAGE_GRID, scale).unit, split, origin)

    return path_frame(in_threads(sums, made, order), scale)


def _few_or_all(made: Sequence[Split], scale: str, origin: Array, order: int) -> pd.DataFrame:
    """``shrinkage_path`` for few shrinkages, which need no eigendecomposition; for all in the space of few rows."""
    if all(split.train.root is not None for split in made):
        return _whole_path(made, scale, origin, order)
    grid = SHRINKAGE_GRID[COARSE]

    def sums(split: Split) -> Pairs:
        return _sums(of_solutions(split.train, grid, scale).unit, split, origin)

    return path_frame(in_threads(sums, made, order), scale, grid)


def sums_at(made: Sequence[Split], ridge: Ridge, origin: Array, order: int) -> list[Pairs]:
    """Sums over the left-out rows of every fold (1 x 1 x P) at one shrinkage."""
    one = np.array([ridge.shrinkage])

    def sums(split: Split) -> Pairs:
        return _sums(of_solutions(split.train, one, ridge.scale).unit, split, origin)

    return in_threads(sums, made, order)


def order_of(buckets: Sequence[Rows | None]) -> int:
    """The order of the matrices that are decomposed."""
    return max((len(part.cov_z) for part in buckets if part is not None), default=0)


def best_ridge(path: pd.DataFrame) -> Ridge | None:
    """The highest held-out alignment, the first of equals; None if nothing could be held out."""
    scores = path["alignment"].to_numpy()
    if np.isnan(scores).all():
        return None
    row = path.iloc[int(np.nanargmax(scores))]
    return Ridge(float(row["shrinkage"]), str(row["scale"]))


def analytic_shrinkage(m: Moments) -> float:
    """The oracle-approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010), for rows that cannot be held out:

    rho = ((1 - 2/K) tr S^2 + tr^2 S) / ((n + 1 - 2/K) (tr S^2 - tr^2 S / K)), at most 1.
    """
    k, n = len(m.cov_z), m.n or 0
    squares, trace = float(np.sum(m.cov_z**2)), float(np.trace(m.cov_z)) ** 2
    apart = (n + 1 - 2 / k) * (squares - trace / k)
    return float(min(1.0, ((1 - 2 / k) * squares + trace) / apart)) if apart > 0 else 1.0


def ridges_of_splits(
    buckets: Sequence[Rows | None], made: Sequence[Split], folds: int, q: int, scales: Sequence[str]
) -> list[Ridge]:
    """The ridge that the training set of every split chooses by itself (``nested_ridges``)."""
    found = nested_ridges(buckets, folds, q, scales)
    return [found[split.fold] or Ridge(analytic_shrinkage(split.train)) for split in made]


def nested_ridges(
    buckets: Sequence[Rows | None], folds: int, q: int = 0, scales: Sequence[str] = ("raw",)
) -> list[Ridge | None]:
    """For every outer fold, the best shrinkage and scale by cross-validation over the folds of its training set.

    The training set without folds a and b is needed twice (a or b is the outer fold), and decomposed once. With fewer
    than four outer folds, each is divided into three. With more than PAIRED, pairs are many, so the folds of a training
    set are joined to INNER.
    """
    outer, origin = packed(buckets, folds), mean_of_y(part for part in buckets if part is not None)
    inner, wanted = inner_sets(outer)
    rows = [merged(buckets[b] for b in piece) for _, piece in inner]

    def sums_without(left_out: frozenset[int]) -> list[tuple[int, str, Pairs]]:
        train = training(merged_with_terms(part for i, part in enumerate(rows) if i not in left_out), q)
        if train is None:
            return []
        found = []
        for scale in scales:
            path = ridge_path(train.moments, SHRINKAGE_GRID, scale).unit
            for fold, some in wanted[left_out]:
                test = merged(rows[i] for i in some)
                if test is not None:
                    left_out_rows = train.adjustment.apply(test)
                    split = Split(fold, train.moments, left_out_rows, [], train.known)
                    found.append((fold, scale, _sums(path, split, origin)))
        return found

    sums: dict[tuple[int, str], list[Pairs]] = {}
    for fold, scale, of_piece in chain.from_iterable(in_threads(sums_without, list(wanted), order_of(buckets))):
        sums.setdefault((fold, scale), []).append(of_piece)
    paths = [[path_frame(sums.get((fold, scale), []), scale) for scale in scales] for fold in range(len(outer))]
    return [best_ridge(pd.concat(of_fold, ignore_index=True)) for of_fold in paths]


def inner_sets(
    outer: Sequence[Sequence[int]],
) -> tuple[list[tuple[int, Sequence[int]]], dict[frozenset[int], list[tuple[int, list[int]]]]]:
    """Pieces of the outer folds (fold, buckets), and what is left out together.

    {pieces left out: [(outer fold, pieces that are scored for it), ...]}
    """
    pieces = 1 if len(outer) >= 4 else 3
    inner = [(fold, pack[i::pieces]) for fold, pack in enumerate(outer) for i in range(pieces) if pack[i::pieces]]
    wanted: dict[frozenset[int], list[tuple[int, list[int]]]] = {}
    for fold in range(len(outer)):
        own = [i for i, (other, _) in enumerate(inner) if other == fold]
        others = [i for i, (other, _) in enumerate(inner) if other != fold]
        count = len(others) if len(outer) <= PAIRED else INNER
        for some in (others[i::count] for i in range(count)):
            wanted.setdefault(frozenset([*own, *some]), []).append((fold, some))
    return inner, wanted


def erasure_path(buckets: Sequence[Rows | None], folds: int | None = None, q: int = 0) -> pd.DataFrame:
    """Held-out squared change when one covariate is erased, for every shrinkage on the grid: shrinkage, change, se.

    With s_p = S_zy e_p and b_p its ridge regression, both of the training set, and S of the left-out rows, erasing y_p
    changes the left-out rows by |s_p|^2 b_p'S b_p / (b_p's_p)^2 on average; ``change`` is the mean over covariates,
    relative to the variance tr S_z of the training set. The change is least for b_p = S^-1 s_p, so it measures how well
    this b_p was estimated.
    """
    made = [split for split in splits(buckets, folds, q) if (split.test.n or 0) >= 2]
    scores = np.array(in_threads(_change_scores, made, order_of(buckets))).reshape(-1, len(SHRINKAGE_GRID))
    mean = scores.mean(axis=0) if len(scores) else np.full(len(SHRINKAGE_GRID), np.nan)
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.full(len(mean), np.nan)
    return pd.DataFrame({"shrinkage": SHRINKAGE_GRID, "change": mean, "se": error})


def least_change(path: pd.DataFrame) -> float | None:
    """The grid point with the least held-out change, the smaller of equals; None if nothing could be held out."""
    best = best_ridge(path.assign(alignment=-path["change"], scale="raw"))
    return None if best is None else best.shrinkage


def _change_scores(split: Split) -> Array:
    S_zy = regimes.standardised_cross_covariance(split.train)[:, split.known]
    path = ridge_path(split.train, SHRINKAGE_GRID, columns=split.known)
    variance, reach = path.variance(all_rows(split.test)), path.products(S_zy) ** 2
    # A covariate that is uncorrelated with Z in the training rows needs no erasing.
    change = quotient(variance * np.sum(S_zy**2, axis=0), reach)
    return np.asarray(change.mean(axis=1) / np.trace(split.train.cov_z))


def _sums(path: RidgePath | EigenPath, split: Split, origin: Array) -> Pairs:
    """Sums over left-out rows (1 x shrinkages x P) of b'(z - mean of the training set), for regressions b, and y."""
    found = np.zeros((len(Pairs._fields), *path.own.shape))
    for columns, seen in split.test.pairs:
        b = path.of(columns)
        (mean,) = b.predictions((seen.mean_z - split.train.mean_z)[:, None])
        found[:, :, columns] = pair_sums(seen, mean, b.variance(seen), b.products(seen.cov_zy), origin[columns])
    return Pairs(*np.where(split.known, found, 0.0)[:, None])


def path_frame(sums: Sequence[Pairs], scale: str, grid: Array = SHRINKAGE_GRID) -> pd.DataFrame:
    """The mean over covariates of pooled correlations, and its delete-one-fold standard error."""
    empty = np.full(len(grid), np.nan)
    unknown = pd.DataFrame({"scale": scale, "shrinkage": grid, "alignment": empty, "se": empty})
    if not sums:
        return unknown
    pairs = Pairs(*(np.concatenate(part) for part in zip(*sums, strict=True)))
    # A regression that is constant on the held-out rows predicts nothing there: correlation 0.
    judged = np.any(pairs.yy > 0, axis=(0, 1))
    if not judged.any():
        return unknown
    mean = np.nan_to_num(pairs.correlation()[:, judged]).mean(axis=1)
    without = np.nan_to_num(pairs.without_each()[:, :, judged]).mean(axis=2)
    A = len(without)
    error = np.sqrt((A - 1) / A * np.sum((without - mean) ** 2, axis=0)) if A > 1 else empty
    return unknown.assign(alignment=mean, se=error)
