"""Scores on left-out rows: buckets packed into folds, the shrinkage path, the held-out frontier.

Rows are summed in buckets, and buckets are packed into folds (``fold_packing``). The moments of a training set are
those of all folds but one, merged, so cross-validation needs one pass over the data and then only K x K matrices. If
covariates have gaps, a training set is completed (``incomplete``), and left-out rows are scored by the pairs that they
have. If the last q columns of Z are confounders, the part that they explain is estimated in the training set and
subtracted from the left-out rows, too (``adjustment``). A covariate that a training set does not know (too few labels,
or constant there) is not scored on the rows left out of it; the others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

from covalign._core.linalg import Array, is_constant, range_eigh, to_correlation, unit_rows, whitener
from covalign._core.threads import in_threads
from covalign.closed_form import regimes
from covalign.closed_form.fold_packing import packed
from covalign.closed_form.measures import off_diagonal_squares, quotient
from covalign.closed_form.pooled_correlation import Estimate, Pairs, estimate, mean_estimate
from covalign.closed_form.regimes import Polar
from covalign.moments.adjustment import Adjustment, adjusted, explained
from covalign.moments.incomplete import Rows, merged
from covalign.moments.moments import Moments

# From 0 (no shrinkage) to 1 (marginal covariances), evenly spaced in log-odds in between.
SHRINKAGE_GRID = np.concatenate([[0.0], expit(np.linspace(logit(1e-4), logit(0.999), 23)), [1.0]])

COARSE = slice(1, None, 4)  # of the grid
WORTH_IT = 0.01  # alignment
ALIKE = 1.25  # deviations that differ by less are as good as equal
PART_NUMBERS = 50_000  # for the moments of the left-out rows of all folds, which a report carries with it


class Split(NamedTuple):
    """A training set, and the rows left out of it."""

    fold: int
    train: Moments
    test: Rows
    parts: list[Rows]  # the buckets of the left-out rows
    known: NDArray[np.bool_]  # covariates that vary in the training set


def splits(buckets: Sequence[Rows | None], folds: int | None = None, q: int = 0) -> list[Split]:
    """Leave each fold out once. By default every bucket is a fold.

    A covariate that is constant on all rows on which it could be scored is not scored (a level with one row: unknown
    where that row is left out, and absent elsewhere).
    """
    made, raw = [], []
    packs = [[b] for b in range(len(buckets))] if folds is None else packed(buckets, folds)
    whole = [merged(buckets[b] for b in pack) for pack in packs]
    for fold, pack in enumerate(packs):
        parts, test = [part for part in (buckets[b] for b in pack) if part is not None], whole[fold]
        train = training(merged(rows for other, rows in enumerate(whole) if other != fold), q)
        if train is not None and test is not None:
            left = train.adjustment.apply
            made.append(Split(fold, train.moments, left(test), [left(part) for part in parts], train.known))
            raw.append((test, train.known))
    varies = _varies(raw)
    return [split._replace(known=split.known & varies) for split in made]


def _varies(parts: Sequence[tuple[Rows, NDArray[np.bool_]]]) -> NDArray[np.bool_]:
    """Covariates with more than one value in parts, each with the covariates that count in it."""
    if not parts:
        return np.zeros(0, dtype=bool)
    origin = _mean_y(part for part, _ in parts)
    n, y, yy = np.zeros((3, len(origin)))
    for part, known in parts:
        for columns, seen in part.pairs:
            d, rows = seen.mean_y - origin[columns], (seen.n or 0) * known[columns]
            n[columns] += rows
            y[columns] += rows * d
            yy[columns] += rows * (np.diag(seen.cov_y) + d**2)
    return np.asarray(yy - y**2 * quotient(1.0, n) > 1e-12 * yy)


class Ridge(NamedTuple):
    """The amount of shrinkage, and the scale of the columns (``regimes.ridge``)."""

    shrinkage: float
    scale: str = "raw"


class Training(NamedTuple):
    """What a training set knows: completed moments without what confounders explain."""

    moments: Moments
    adjustment: Adjustment
    known: NDArray[np.bool_]


def training(rows: Rows | None, q: int = 0) -> Training | None:
    """None if the rows determine nothing.

    A covariate with fewer than two labels, one that is constant, and one that follows from the confounders are unknown:
    they get variance 1 and no covariance, so that they do not influence the others.
    """
    if rows is None or (rows.n or 0) < 2 or not np.any(np.diag(rows.cov_z) > 0):
        return None
    known = (rows.n_pairs >= 2) & ~explained(rows, q)
    if known.all():
        return Training(*adjusted(rows, q), known)
    if not known.any():
        return None
    at = np.flatnonzero(known)
    some, adjustment = adjusted(rows.select(at.tolist()), q)
    p = len(known)
    mean_y, cov_zy, cov_y, b_y = np.zeros(p), np.zeros((len(some.mean_z), p)), np.eye(p), np.zeros((q, p))
    mean_y[at], cov_zy[:, at], cov_y[np.ix_(at, at)], b_y[:, at] = some.mean_y, some.cov_zy, some.cov_y, adjustment.b_y
    whole = replace(some, mean_y=mean_y, cov_zy=cov_zy, cov_y=cov_y, covariate_names=rows.covariate_names)
    return Training(whole, adjustment._replace(b_y=b_y), known)


# -- the shrinkage path -----------------------------------------------------------------------------------------------


def shrinkage_path(buckets: Sequence[Rows | None], folds: int | None = None, q: int = 0) -> pd.DataFrame:
    """Held-out alignment of the ridge regressions: scale, shrinkage (a grid), alignment, se.

    Columns as they are come first. Columns on another scale are tried if they can change something: if their deviations
    differ, and the regressions are so much worse on left-out rows than on fitted ones that another ridge may help.
    First for few shrinkages; then the best of them for all, if it is better.
    """
    origin, made = _mean_y(part for part in buckets if part is not None), splits(buckets, folds, q)

    def path(scale: str) -> pd.DataFrame:
        found = in_threads(lambda of: _sums(_unit_ridge_path(of.train, scale), of, origin), made, _order(buckets))
        return _path_frame(found, scale)

    raw = path("raw")
    best = best_ridge(raw)
    if best is None or not _scale_matters(made, best, float(raw["alignment"].max())):
        return raw
    others = pd.concat([_coarse_path(made, scale, origin, _order(buckets)) for scale in ("root", "standard")])
    better = best_ridge(others)
    if better is None or not others["alignment"].max() > raw["alignment"].max():
        return raw
    return pd.concat([raw, path(better.scale)], ignore_index=True)


def _scale_matters(made: Sequence[Split], best: Ridge, held_out: float) -> bool:
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


def _coarse_path(made: Sequence[Split], scale: str, origin: Array, order: int) -> pd.DataFrame:
    """``shrinkage_path`` for few shrinkages, which need no eigendecomposition."""

    def sums(split: Split) -> Pairs:
        B = np.stack([regimes.ridge(split.train, rho, scale) for rho in SHRINKAGE_GRID[COARSE]], axis=1)
        flat = B.reshape(len(B), -1)
        unit = B * quotient(1.0, np.sqrt(_variance(flat, split.train))).reshape(B.shape[1:])
        return _sums(unit, split, origin)

    return _path_frame(in_threads(sums, made, order), scale, SHRINKAGE_GRID[COARSE])


def _order(buckets: Sequence[Rows | None]) -> int:
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


def nested_ridges(
    buckets: Sequence[Rows | None], folds: int, q: int = 0, scales: Sequence[str] = ("raw",)
) -> list[Ridge | None]:
    """For every outer fold, the best shrinkage and scale by cross-validation over the folds of its training set.

    The training set without folds a and b is needed twice (a or b is the outer fold), and decomposed once. With fewer
    than four outer folds, each is divided into three.
    """
    outer, origin = packed(buckets, folds), _mean_y(part for part in buckets if part is not None)
    pieces = 1 if len(outer) >= 4 else 3
    inner = [(fold, pack[i::pieces]) for fold, pack in enumerate(outer) for i in range(pieces) if pack[i::pieces]]
    wanted: dict[frozenset[int], list[tuple[int, list[int]]]] = {}
    for fold, pack in enumerate(outer):
        for other, piece in inner:
            if other != fold:
                wanted.setdefault(frozenset([*pack, *piece]), []).append((fold, piece))

    def sums_without(left_out: frozenset[int]) -> list[tuple[int, str, Pairs]]:
        train = training(merged(part for b, part in enumerate(buckets) if b not in left_out), q)
        if train is None:
            return []
        found = []
        for scale in scales:
            B = _unit_ridge_path(train.moments, scale)
            for fold, piece in wanted[left_out]:
                test = merged(buckets[b] for b in piece)
                if test is not None:
                    left_out_rows = train.adjustment.apply(test)
                    split = Split(fold, train.moments, left_out_rows, [], train.known)
                    found.append((fold, scale, _sums(B, split, origin)))
        return found

    sums: dict[tuple[int, str], list[Pairs]] = {}
    for fold, scale, of_piece in chain.from_iterable(in_threads(sums_without, list(wanted), _order(buckets))):
        sums.setdefault((fold, scale), []).append(of_piece)
    paths = [[_path_frame(sums.get((fold, scale), []), scale) for scale in scales] for fold in range(len(outer))]
    return [best_ridge(pd.concat(of_fold, ignore_index=True)) for of_fold in paths]


def erasure_path(buckets: Sequence[Rows | None], folds: int | None = None, q: int = 0) -> pd.DataFrame:
    """Held-out squared change when one covariate is erased, for every shrinkage on the grid: shrinkage, change, se.

    With s_p = S_zy e_p and b_p its ridge regression, both of the training set, and S of the left-out rows, erasing y_p
    changes the left-out rows by |s_p|^2 b_p'S b_p / (b_p's_p)^2 on average; ``change`` is the mean over covariates,
    relative to the variance tr S_z of the training set. The change is least for b_p = S^-1 s_p, so it measures how well
    this b_p was estimated.
    """
    made = [split for split in splits(buckets, folds, q) if (split.test.n or 0) >= 2]
    scores = np.array(in_threads(_change_scores, made, _order(buckets))).reshape(-1, len(SHRINKAGE_GRID))
    mean = scores.mean(axis=0) if len(scores) else np.full(len(SHRINKAGE_GRID), np.nan)
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.full(len(mean), np.nan)
    return pd.DataFrame({"shrinkage": SHRINKAGE_GRID, "change": mean, "se": error})


def least_change(path: pd.DataFrame) -> float | None:
    """The grid point with the least held-out change, the smaller of equals; None if nothing could be held out."""
    best = best_ridge(path.assign(alignment=-path["change"], scale="raw"))
    return None if best is None else best.shrinkage


def _change_scores(split: Split) -> Array:
    S_zy = regimes.standardised_cross_covariance(split.train)[:, split.known]
    B = _ridge_path(split.train, S_zy)[0].reshape(len(S_zy), -1)
    variance = np.sum(B * (split.test.cov_z @ B), axis=0).reshape(len(SHRINKAGE_GRID), -1)
    reach = np.einsum("krp,kp->rp", B.reshape(len(B), len(SHRINKAGE_GRID), -1), S_zy) ** 2
    # A covariate that is uncorrelated with Z in the training rows needs no erasing.
    change = quotient(variance * np.sum(S_zy**2, axis=0), reach)
    return np.asarray(change.mean(axis=1) / np.trace(split.train.cov_z))


def _ridge_path(train: Moments, S_zy: Array, scale: str = "raw") -> tuple[Array, Array]:
    """Ridge regressions for every shrinkage (K x shrinkages x P) from one eigendecomposition, S_z = E diag(l) E':

    B(rho) = E ((1 - rho) l + rho mean(diag S_z))^-1 E' S_zy; and the variances b'S_z b (shrinkages x P). On another
    scale this is done with columns Z / u, u^2 proportional to the penalty, so that D = mean(diag S_z) I there.
    """
    S, u = train.cov_z, np.ones((len(S_zy), 1))
    if scale != "raw":
        u = np.sqrt(regimes.penalty(train, scale))[:, None]
        S, S_zy = S / u / u.T, S_zy / u
    values, vectors = range_eigh(S)
    ridged = (1 - SHRINKAGE_GRID) * values[:, None] + SHRINKAGE_GRID * (np.mean(np.diag(S)) if scale == "raw" else 1.0)
    G = (vectors.T @ S_zy)[:, None, :] / ridged[:, :, None]
    B = (vectors @ G.reshape(len(G), -1)) / u  # all shrinkages side by side
    return B.reshape(len(B), len(SHRINKAGE_GRID), -1), np.einsum("k,krp->rp", values, G**2)


def _unit_ridge_path(train: Moments, scale: str = "raw") -> Array:
    """The regressions, scaled so that predictions have variance 1 on the training set."""
    B, variance = _ridge_path(train, regimes.standardised_cross_covariance(train), scale)
    return B * quotient(1.0, np.sqrt(variance))


def _mean_y(parts: Iterable[Rows]) -> Array:
    """The mean of every covariate over the rows that have it: an origin for sums of y."""
    total, count = 0.0, 0.0
    for part in parts:
        sums = np.zeros((2, len(part.n_pairs)))
        for columns, seen in part.pairs:
            sums[0, columns], sums[1, columns] = (seen.n or 0) * seen.mean_y, seen.n or 0
        total, count = total + sums[0], count + sums[1]
    return quotient(total, count)


def _sums(B: Array, split: Split, origin: Array) -> Pairs:
    """Sums over left-out rows (1 x shrinkages x P) of b'(z - mean of the training set), for regressions B, and y."""
    found = np.zeros((len(Pairs._fields), *B.shape[1:]))
    for columns, seen in split.test.pairs:
        b = np.ascontiguousarray(B[:, :, columns])
        flat = b.reshape(len(b), -1)
        mean = ((seen.mean_z - split.train.mean_z) @ flat).reshape(b.shape[1:])
        variance = np.sum(flat * (seen.cov_z @ flat), axis=0).reshape(b.shape[1:])
        covariance = np.einsum("krp,kp->rp", b, seen.cov_zy)
        found[:, :, columns] = pair_sums(seen, mean, variance, covariance, origin[columns])
    return Pairs(*np.where(split.known, found, 0.0)[:, None])


def pair_sums(seen: Moments, mean: Array, variance: Array, covariance: Array, origin: Array) -> list[Array]:
    """The sums of ``Pairs`` from means, variances and covariances; y counts from an origin near its mean."""
    y, n = seen.mean_y - origin, float(seen.n or 0)
    sums = (1.0, mean, y, variance + mean**2, np.diag(seen.cov_y) + y**2, covariance + mean * y)
    return [n * np.broadcast_to(part, mean.shape) for part in sums]


def _path_frame(sums: Sequence[Pairs], scale: str, grid: Array = SHRINKAGE_GRID) -> pd.DataFrame:
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


# -- the regimes on left-out rows -------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """A regime on left-out rows."""

    alignment: Estimate  # of every covariate
    mean: Estimate  # over covariates
    coupling: float


class LeftOut(NamedTuple):
    """A fit without a fold, and the rows left out of it."""

    polar: Polar
    parts: list[Rows]  # moments of (T_0 (z - mean of the training set), y)
    known: NDArray[np.bool_]  # covariates that the fit knows
    n_train: int

    def coupled(self, F: Array, grouped: bool) -> CoupledFold:
        """The coupling of F T_0 z."""
        n, C = second_moments(self.parts)
        return CoupledFold(left_out_coupling(n, F @ C @ F.T, grouped), coupling_of(F @ F.T), n.sum(), self.n_train)


class HeldOut(NamedTuple):
    """All folds of a model, and the polar form of the model itself."""

    whole: Polar
    folds: list[LeftOut]
    grouped: bool = False  # rows belong together, and parts are groups

    @property
    def all_exclusive(self) -> bool:
        """Whether the exclusive regime exists in every fold."""
        return all(of.polar.M_inverse is not None for of in self.folds)

    def measure(self, regime: str, lam: float) -> Measured:
        """Alignment and coupling of a regime."""
        return self.measure_mixed(
            regimes.mixing(self.whole, regime, lam), [regimes.mixing(of.polar, regime, lam) for of in self.folds]
        )

    def measure_mixed(self, whole: Array, mixings: Sequence[Array]) -> Measured:
        """``measure`` for any dimensions F T_0 z, given by the F of the model and of every fold."""
        origin, k = self.origin, len(self.folds)
        sums, fitted, coupled = [], [], []
        for F, of in zip(map(unit_rows, mixings), self.folds, strict=True):
            sums += [np.where(of.known, part_sums(F, part, origin), 0.0) for part in of.parts]
            fitted.append(np.diag(F @ of.polar.M))
            coupled.append(of.coupled(F, self.grouped))
        pairs, own = Pairs(*np.stack(sums, axis=1)), np.mean(fitted, axis=0)
        coupling = coupling_on_new_rows(coupling_of(whole @ whole.T), coupled)
        return Measured(estimate(pairs, own, k), mean_estimate(pairs, own, k), coupling)

    @property
    def origin(self) -> Array:
        """A value near the mean of every covariate."""
        return _mean_y(chain.from_iterable(of.parts for of in self.folds))


def part_sums(F: Array, part: Rows, origin: Array) -> Array:
    """The sums of ``Pairs`` over the rows of a part (fields x P), of F u and y."""
    sums = np.zeros((len(Pairs._fields), len(F)))
    for columns, seen in part.pairs:
        f = F[columns]
        variance, covariance = np.sum((f @ seen.cov_z) * f, axis=1), np.sum(f * seen.cov_zy.T, axis=1)
        sums[:, columns] = pair_sums(seen, f @ seen.mean_z, variance, covariance, origin[columns])
    return sums


class CoupledFold(NamedTuple):
    """The coupling of a fit on the rows left out of it, and on its own."""

    left_out: float
    fitted: float
    n: float  # left-out rows
    n_train: float


def coupling_of(cov: Array) -> float:
    """|corr - I|_F^2."""
    return float(off_diagonal_squares(to_correlation(cov)))


def coupling_on_new_rows(fitted: float, folds: Sequence[CoupledFold]) -> float:
    """The coupling c(n) of the fit to all n rows, from c_f on the rows left out of a fit to n_f rows.

    Coupling beyond that of the fitted rows comes from errors of the fit, which go with 1 / n:
    c(n) = c_fitted + mean_f (c_f - c_f,fitted) n_f / n.
    """
    n = sum(of.n for of in folds)
    beyond = sum(of.n / n * (of.left_out - of.fitted) * of.n_train / (of.n_train + of.n) for of in folds)
    return max(0.0, fitted + beyond)


def left_out_coupling(n: Array, C: Array, grouped: bool = False) -> float:
    """|corr(z~) - I|_F^2 of left-out rows, without what is due to chance; given in parts: rows n, E[z~ z~'].

    z~ has the mean 0 on the training set. Of m independent rows, C_pq^2 is 1 / m on average where nothing couples, so

        sum_{p != q} 1 - (1 - C_pq^2) m / (m - 1)

    is 0 on average there. With groups, parts are independent and rows are not: C_pq^2 less its variance between parts,
    sum_a (C_pq,a - C_pq h_ap)^2 / (1 - h_ap), where h_ap is the share of part a in the sum of squares of dimension p.
    """
    scatter = n[:, None, None] * C
    whole = scatter.sum(axis=0)
    scale = quotient(1.0, np.sqrt(np.diag(whole)))
    C, rows = whole * scale[:, None] * scale, max(float(n.sum()), 2.0)
    off = ~np.eye(len(C), dtype=bool)
    if not grouped or len(n) == 1:
        return float(np.sum(1 - (1 - C[off] ** 2) * rows / (rows - 1)))
    share = (np.einsum("app->ap", scatter) * scale**2)[:, :, None]
    one = np.sum(quotient((scatter * scale[:, None] * scale - C * share) ** 2, 1 - share), axis=0)
    return float(np.sum((C**2 - (one + one.T) / 2)[off]))


def second_moments(parts: Sequence[Rows]) -> tuple[Array, Array]:
    """Rows of every part, and E[u u']."""
    rows = [all_rows(part) for part in parts]
    n = np.array([m.n or 0 for m in rows], dtype=np.float64)
    return n, np.array([m.cov_z + np.outer(m.mean_z, m.mean_z) for m in rows])


def all_rows(part: Rows) -> Moments:
    """Moments of all rows, with or without covariates."""
    return part if isinstance(part, Moments) else part.rows


def held_out(whole: Polar, made: Sequence[Split], ridges: Sequence[Ridge], *, grouped: bool = False) -> HeldOut | None:
    """Fit every training set with its own ridge, and reduce its left-out rows to moments.

    A training set whose rows span fewer dimensions than there are covariates cannot be fitted, and is left out; None if
    none can.
    """
    settings = [(of, ridge) for of, ridge in zip(made, ridges, strict=True) if _spans(of.train)]
    if not settings:
        return None
    polars = in_threads(
        lambda setting: regimes.whitened_polar(setting[0].train, *setting[1]), settings, len(made[0].train.mean_z)
    )
    made = [of for of, _ in settings]
    most = max(1, PART_NUMBERS // (2 * len(whole.M) ** 2 * len(made)))
    found = []
    for split, polar in zip(made, polars, strict=True):
        few = [merged(split.parts[i::most]) for i in range(min(most, len(split.parts)))]
        parts = [part.shifted(-split.train.mean_z).transform(polar.T_0) for part in few if part is not None]
        found.append(LeftOut(polar, parts, split.known, split.train.n or 0))
    return HeldOut(whole, found, grouped)


def _spans(train: Moments) -> bool:
    """Whether Z has as many dimensions in these rows as there are covariates."""
    k, p = train.cov_zy.shape
    if (train.n or 0) - 1 >= k + p:  # more rows than columns: looked at only where it may fail
        return True
    return bool(len(whitener(train.cov_z, is_constant(train.mean_z, np.diag(train.cov_z)))) >= p)


def held_out_frontier(held: HeldOut, lams: Iterable[float] | None, names: Sequence[str]) -> pd.DataFrame:
    """A frontier measured on left-out rows, with ``alignment_se``, the standard error of the mean alignment."""
    rows, errors_of_mean = [], []
    # The exclusive regime needs to exist in every fold.
    polars = [held.whole, *(of.polar for of in held.folds)]
    settings, why_not = regimes.frontier_settings(min(polars, key=lambda polar: polar.M_inverse is not None), lams)
    for regime, lam in settings:
        found = held.measure(regime, lam)
        rows.append((regime, lam, found.alignment.value, found.coupling))
        errors_of_mean.append(float(found.mean.se))
    frame = regimes.frontier_frame(rows, names)
    frame.insert(3, "alignment_se", errors_of_mean)
    frame.attrs["exclusive"] = why_not
    return frame
