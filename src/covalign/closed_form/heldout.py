"""Scores on left-out rows: folds as moments, the shrinkage path, the held-out frontier.

The moments of a training set are those of all folds but one, merged, so cross-validation needs one pass over the data
and then only K x K matrices. If covariates have gaps, a training set is completed (``incomplete``), and left-out rows
are scored by the pairs that they have. If the last q columns of Z are confounders, the part that they explain is
estimated in the training set and subtracted from the left-out rows, too (``adjustment``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import t as student

from covalign._core.linalg import Array, range_eigh, to_correlation
from covalign._core.threads import in_threads
from covalign.closed_form import regimes
from covalign.closed_form.measures import correlation, quotient
from covalign.closed_form.regimes import Polar
from covalign.moments.adjustment import adjusted, explained
from covalign.moments.incomplete import Rows, merged
from covalign.moments.moments import Moments

# From 0 (no shrinkage) to 1 (marginal covariances), evenly spaced in log-odds in between.
SHRINKAGE_GRID = np.concatenate([[0.0], expit(np.linspace(logit(1e-4), logit(0.999), 23)), [1.0]])
LEAST_LEFT_OUT, FEW_FOLDS = 10, 5  # with more folds than FEW_FOLDS, a fold has at least so many rows on average


class Split(NamedTuple):
    """Moments of a training set and of the rows left out of it."""

    fold: int
    train: Moments
    test: Rows


def splits(buckets: Sequence[Rows | None], folds: int | None = None, q: int = 0) -> list[Split]:
    """Leave each usable fold out once. Bucket b belongs to fold b mod ``folds``; by default ``sensible`` decides."""
    if folds is None:
        buckets = sensible(buckets)
        folds = len(buckets)
    made = []
    for fold in range(folds):
        train = merged(part for b, part in enumerate(buckets) if b % folds != fold)
        test = merged(buckets[fold::folds])
        if train is not None and test is not None and _is_usable(train, test, q):
            fitted, adjustment = adjusted(train, q)
            made.append(Split(fold, fitted, adjustment.apply(test)))
    return made


def sensible(buckets: Sequence[Rows | None]) -> Sequence[Rows | None]:
    """The buckets; if more than ``FEW_FOLDS`` have on average fewer than ``LEAST_LEFT_OUT`` rows, some are merged.

    Any two rows have a correlation of 1 or -1, so tiny folds say nothing.
    """
    n = sum(part.n or 0 for part in buckets if part is not None)
    folds = max(FEW_FOLDS, n // LEAST_LEFT_OUT)
    return buckets if len(buckets) <= folds else [merged(buckets[fold::folds]) for fold in range(folds)]


def shrinkage_path(folds: Sequence[Rows | None], q: int = 0) -> pd.DataFrame:
    """Held-out alignment of the ridge regressions for every shrinkage on the grid: shrinkage, alignment, se."""
    scores = in_threads(lambda split: _path_scores(split.train, [split.test])[0], splits(folds, q=q), _order(folds))
    return _path_frame(scores)


def _order(buckets: Sequence[Rows | None]) -> int:
    """The order of the matrices that are decomposed."""
    return max((len(part.cov_z) for part in buckets if part is not None), default=0)


def best_shrinkage(path: pd.DataFrame) -> float:
    """The grid point with the highest held-out alignment, the smaller of equals; 0 if nothing could be held out."""
    scores = path["alignment"].to_numpy()
    return float(path["shrinkage"].iloc[int(np.nanargmax(scores))]) if not np.isnan(scores).all() else 0.0


def nested_shrinkages(buckets: Sequence[Rows | None], folds: int, q: int = 0) -> list[float]:
    """For every outer fold, the best shrinkage by cross-validation over the buckets of its training set.

    The training set without buckets a and b is needed twice (a or b is the outer fold), and decomposed once.
    """
    there = [b for b, part in enumerate(buckets) if part is not None]
    wanted: dict[frozenset[int], list[tuple[int, int]]] = {}
    for fold in range(folds):
        outer = {b for b in there if b % folds == fold}
        for inner in set(there) - outer:
            wanted.setdefault(frozenset(outer | {inner}), []).append((fold, inner))

    def scores_without(left_out: frozenset[int]) -> list[tuple[int, Array]]:
        train = merged(buckets[b] for b in there if b not in left_out)
        tests = [(fold, buckets[inner]) for fold, inner in wanted[left_out]]
        usable = [(fold, test) for fold, test in tests if test is not None and _is_usable(train, test, q)]
        if train is None or not usable:
            return []
        fitted, adjustment = adjusted(train, q)
        found = _path_scores(fitted, [adjustment.apply(test) for _, test in usable])
        return [(fold, score) for (fold, _), score in zip(usable, found, strict=True)]

    scores: list[list[Array]] = [[] for _ in range(folds)]
    for fold, score in chain.from_iterable(in_threads(scores_without, list(wanted), _order(buckets))):
        scores[fold].append(score)
    return [best_shrinkage(_path_frame(of_fold)) for of_fold in scores]


def erasure_path(folds: Sequence[Rows | None], q: int = 0) -> pd.DataFrame:
    """Held-out squared change when one covariate is erased, for every shrinkage on the grid: shrinkage, change, se.

    With s_p = S_zy e_p and b_p its ridge regression, both of the training set, and S of the left-out rows, erasing y_p
    changes the left-out rows by |s_p|^2 b_p'S b_p / (b_p's_p)^2 on average; ``change`` is the mean over covariates,
    relative to the variance tr S_z of the training set. The change is least for b_p = S^-1 s_p, so it measures how well
    this b_p was estimated.
    """
    scores = in_threads(lambda split: _change_scores(split.train, split.test), splits(folds, q=q), _order(folds))
    return _path_frame(scores).rename(columns={"alignment": "change"})


def least_change(path: pd.DataFrame) -> float:
    """The grid point with the least held-out change, the smaller of equals; 0 if nothing could be held out."""
    return best_shrinkage(path.assign(alignment=-path["change"]))


def _change_scores(train: Moments, test: Rows) -> Array:
    S_zy = regimes.standardised_cross_covariance(train)
    B = _ridge_path(train, S_zy).reshape(len(S_zy), -1)
    variance = np.sum(B * (test.cov_z @ B), axis=0).reshape(len(SHRINKAGE_GRID), -1)
    reach = np.einsum("krp,kp->rp", B.reshape(len(B), len(SHRINKAGE_GRID), -1), S_zy) ** 2
    # A covariate that is uncorrelated with Z in the training rows needs no erasing.
    change = quotient(variance * np.sum(S_zy**2, axis=0), reach)
    return np.asarray(change.mean(axis=1) / np.trace(train.cov_z))


def _ridge_path(train: Moments, S_zy: Array) -> Array:
    """Ridge regressions for every shrinkage (K x shrinkages x P) from one eigendecomposition, S_z = E diag(l) E':

    B(rho) = E ((1 - rho) l + rho mean(diag S_z))^-1 E' S_zy.
    """
    values, vectors = range_eigh(train.cov_z)
    G = vectors.T @ S_zy
    ridged = (1 - SHRINKAGE_GRID) * values[:, None] + SHRINKAGE_GRID * np.mean(np.diag(train.cov_z))
    B = vectors @ (G[:, None, :] / ridged[:, :, None]).reshape(len(G), -1)  # all shrinkages side by side
    return np.asarray(B.reshape(len(B), len(SHRINKAGE_GRID), -1))


def _path_scores(train: Moments, tests: Sequence[Any]) -> list[Array]:
    """Mean held-out alignment for each shrinkage, on each test set."""
    B = _ridge_path(train, regimes.standardised_cross_covariance(train))
    return [_mean_alignment(B, test) for test in tests]


def _mean_alignment(B: Array, test: Rows) -> Array:
    """Mean over covariates of their alignment on the rows that have them, for the regressions of every shrinkage."""
    known = np.hstack([_alignments(B[:, :, columns], seen) for columns, seen in test.pairs])
    return np.asarray(known.mean(axis=1)) if known.size else np.full(B.shape[1], np.nan)


def _alignments(B: Array, seen: Moments) -> Array:
    """Shrinkages x covariates, without the covariates that are constant on these rows. B: K x shrinkages x P."""
    k, r, p = B.shape
    flat = np.ascontiguousarray(B).reshape(k, r * p)
    variance = np.sum(flat * (seen.cov_z @ flat), axis=0).reshape(r, p)
    # A regression that is constant on the held-out rows predicts nothing there: correlation 0.
    found = correlation(np.einsum("krp,kp->rp", B, seen.cov_zy), variance, np.diag(seen.cov_y), constant=0.0)
    return found[:, np.diag(seen.cov_y) > 0]


def _path_frame(scores: Sequence[Array]) -> pd.DataFrame:
    usable = np.array([score for score in scores if not np.isnan(score).any()]).reshape(-1, len(SHRINKAGE_GRID))
    mean = usable.mean(axis=0) if len(usable) else np.full(len(SHRINKAGE_GRID), np.nan)
    return pd.DataFrame({"shrinkage": SHRINKAGE_GRID, "alignment": mean, "se": standard_error(usable)})


def _is_usable(train: Rows | None, test: Rows | None, q: int) -> bool:
    """Whether both sides have a covariance, and confounders explain no covariate fully in the training rows."""
    if train is None or test is None or min(train.n or 0, test.n or 0, *train.n_pairs) < 2:
        return False
    return not explained(train, q).any() and bool(np.any(np.diag(train.cov_z) > 0))


class HeldOut(NamedTuple):
    """For each fold: the polar form fitted without it, and the (P x P) moments of T_0 Z and Y on it."""

    polars: list[Polar]
    reduced: list[Rows]

    def measure(self, regime: str, lam: float) -> tuple[Array, float]:
        """Alignment (folds x P), and the coupling of the correlations averaged over folds.

        Each fold's own coupling would be inflated by about P (P - 1) / n_fold; that of the average is not.
        """
        return self.measure_mixed([regimes.mixing(polar, regime, lam) for polar in self.polars])

    def measure_mixed(self, mixings: Sequence[Array]) -> tuple[Array, float]:
        """``measure`` for any dimensions F T_0 z, given by the F of every fold."""
        aligned = [regimes.observed_alignment(F, reduced) for F, reduced in zip(mixings, self.reduced, strict=True)]
        correlations = [
            to_correlation(F @ reduced.cov_z @ F.T) for F, reduced in zip(mixings, self.reduced, strict=True)
        ]
        average = np.average(correlations, axis=0, weights=[reduced.n or 0 for reduced in self.reduced])
        return np.array(aligned), regimes.squared_distance_from_identity(average)


def held_out(made: Sequence[Split], shrinkages: Sequence[float]) -> HeldOut:
    """Fit every training set with its own shrinkage, and reduce its left-out rows to moments."""
    settings = list(zip(made, shrinkages, strict=True))
    polars = in_threads(
        lambda setting: regimes.whitened_polar(setting[0].train, setting[1]), settings, len(made[0].train.mean_z)
    )
    reduced: list[Rows] = [split.test.transform(polar.T_0) for split, polar in zip(made, polars, strict=True)]
    return HeldOut(polars, reduced)


def held_out_frontier(held: HeldOut, lams: Iterable[float] | None, names: Sequence[str]) -> pd.DataFrame:
    """A frontier measured on left-out rows, with ``alignment_se``, the standard error of the mean alignment."""
    rows, errors_of_mean = [], []
    # The exclusive regime needs to exist in every fold.
    settings, why_not = regimes.frontier_settings(min(held.polars, key=lambda polar: polar.M_inverse is not None), lams)
    for regime, lam in settings:
        per_fold, coupling = held.measure(regime, lam)
        rows.append((regime, lam, column_means(per_fold), coupling))
        errors_of_mean.append(standard_error(column_means(per_fold.T)[:, None])[0])
    frame = regimes.frontier_frame(rows, names)
    frame.insert(3, "alignment_se", errors_of_mean)
    frame.attrs["exclusive"] = why_not
    return frame


def column_means(values: Array) -> Array:
    """The mean of each column over its values that are not NaN; NaN if there are none."""
    return np.array([regimes.mean_or_nan(column) for column in values.T])


def standard_error(values: Array) -> Array:
    """Standard error of the mean over the first axis, NaN-aware; NaN with fewer than two values."""
    count = np.sum(~np.isnan(values), axis=0)
    enough = count >= 2
    spread = np.full(values.shape[1:], np.nan)
    if np.any(enough):
        spread[enough] = np.nanstd(values[:, enough], axis=0, ddof=1) / np.sqrt(count[enough])
    return spread


def summarised(per_fold: Array) -> dict[str, Array]:
    """held_out, se, low, high of each column of a table of folds."""
    low, high = interval(per_fold)
    return {"held_out": column_means(per_fold), "se": standard_error(per_fold), "low": low, "high": high}


def interval(per_fold: Array, level: float = 0.9) -> tuple[Array, Array]:
    """Limits for the mean over folds (first axis): tanh(mean(a) -+ t se(a)), a = atanh(alignment).

    se is the delete-one-fold jackknife of the mean (for a mean, its standard error over folds) and t Student's quantile
    with folds - 1 degrees of freedom, because few folds estimate their spread poorly. The interval is for the alignment
    of the fitted transformation on new rows, also if the model is overfitted. The fit of a fold has fewer rows than the
    whole, so with nearly as many dimensions as rows the interval is too low.
    """
    # A fold of two rows has a correlation of 1, which becomes large, but not infinite, on this scale.
    scaled = np.arctanh(np.clip(per_fold, -1 + 1e-12, 1 - 1e-12))
    count = np.sum(~np.isnan(scaled), axis=0)
    middle = column_means(scaled)
    reach = student.ppf((1 + level) / 2, np.maximum(count - 1, 1)) * standard_error(scaled)
    return np.tanh(middle - reach), np.tanh(middle + reach)
