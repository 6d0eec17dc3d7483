"""Correlations on left-out rows, pooled over folds, and how well they are known.

Every left-out row i has z_i, from the fit without its fold and centred by the means of that fit, and y_i. Their
correlation over all rows together is what ``cross_val_predict`` followed by ``corrcoef`` would give. Averages of the
correlations of folds would give a fold of two rows (correlation 1 or -1) the same weight as any other.

Rows are summed in parts. A part never shares a row, or a group of rows, with another, so parts count as independent:

    var(atanh r) = (A - 1) / A  sum_a (atanh r_(-a) - atanh r)^2,       r_(-a) without part a, of A parts,

the delete-one jackknife, times (A + 1) / A. It takes the fits as given, but these were fitted to rows that are left
out elsewhere. If w = c + e is a direction that a fit found, c what there is to find and e its error, the error of r is
that of c'e + |e|^2 - E|e|^2 instead of c'e alone. This multiplies the variance by

    1 + k / (k - 1) (1 - share),     share = |c|^2 / |c + e|^2, of k folds,

by 1 if the direction is certain, by more than 2 if there is nothing to find (to first order without k / (k - 1); with
it, the factor agrees with simulations of directions of unit length to .15). The share is r / r_fitted, r_fitted the
alignment of the fits on their own rows, or less, since r_fitted cannot exceed 1: we take (r / r_fitted)^2.

The interval is tanh(atanh r - lower, atanh r + upper), with Student's t at the degrees of freedom below:

    upper = sd t,     lower = sqrt(sd^2 + h) t,     h = min((r / (1 - r^2))^2 excess / (4 n), 3/2 sd^2).

Rows far out in a heavy tail of y lower r, and most samples have fewer of them than the population has on average. So
their share h of the variance counts again below r. excess is the excess kurtosis of y, which follows from the sums of
squares of parts. Groups have sums of squares that vary without heavy tails: excess = 0 there. Rows that are far out in
z and y lower r less than this formula says, so h has a limit: what parts show.

This is the interval of the fits without a fold. The map has seen all rows, n instead of n' = n (k - 1) / k, and its
error |e|^2 is that of the fits times a gain. As r = |c| sqrt(share), the map reaches

    r_map = r / sqrt(share + (1 - share) gain),     gain = (n' - d) / (n - d),

and a limit of the interval becomes what the map reaches if the fits reach this limit (``learned``). A regression on d
dimensions has the error d / (n - d); d counts those that a ridge leaves (``ridge_path.error_of``). Both the share and
the gain are uncertain. The lower limit has the share r / r_fitted and a gain of few dimensions, (k - 1) / k, the upper
one the square of this share and the gain above (``Gain``).

With d_a = atanh r_(-a) - atanh r, the degrees of freedom are the smaller of 3 (sum d^2)^2 / sum d^4 - 1, which is A - 1
for parts that count the same and few if some parts decide (rare levels), and A / (1 + excess A / (2 n)) - 1.
``docs/held_out.md`` has the derivation, and how often the interval covered the truth in simulations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from covalign._core.linalg import Array
from covalign.closed_form.measures import correlation, quotient
from covalign.moments.moments import Moments

LEVEL = 0.9  # of all intervals
ALMOST_ONE = 1 - 1e-12  # atanh of it is large, but finite
CONSTANT = 1e-12  # a smaller share of the sum of squares is rounding
TAILS = 1.5  # times the variance that parts show: the most that heavy tails add to it below the correlation
SMALL = 0.3  # a correlation: less than a tenth of the variance
VERDICTS = ("captured", "unclear", "not captured")


class Pairs(NamedTuple):
    """Sums over the rows of A parts (first axis) for any number of pairs z, y: rows, z, y, z^2, y^2, z y."""

    n: Array
    z: Array
    y: Array
    zz: Array
    yy: Array
    zy: Array

    def correlation(self) -> Array:
        """corr(z, y) over all parts; NaN where z or y is constant."""
        return _correlation(*(part.sum(axis=0) for part in self))

    def without_each(self) -> Array:
        """corr(z, y) over all parts but one (A x ...); NaN where it is not defined."""
        return _correlation(*(part.sum(axis=0) - part for part in self))


class Estimate(NamedTuple):
    """A correlation, its standard error and the limits of its interval; NaN where they are not known."""

    value: Array
    se: Array
    low: Array
    high: Array


def _correlation(n: Array, z: Array, y: Array, zz: Array, yy: Array, zy: Array) -> Array:
    per_row = quotient(1.0, n)
    s_zz, s_yy, s_zy = zz - z * z * per_row, yy - y * y * per_row, zy - z * y * per_row
    # What is left of a constant is rounding.
    s_zz, s_yy = np.where(s_zz > CONSTANT * zz, s_zz, 0.0), np.where(s_yy > CONSTANT * yy, s_yy, 0.0)
    return np.clip(correlation(s_zy, s_zz, s_yy, constant=np.nan), -1, 1)


def pair_sums(seen: Moments, mean: Array, variance: Array, covariance: Array, origin: Array) -> list[Array]:
    """The sums of ``Pairs`` from means, variances and covariances; y counts from an origin near its mean."""
    y, n = seen.mean_y - origin, float(seen.n or 0)
    sums = (1.0, mean, y, variance + mean**2, np.diag(seen.cov_y) + y**2, covariance + mean * y)
    return [n * np.broadcast_to(part, mean.shape) for part in sums]


class _Parts(NamedTuple):
    """A correlation, or the mean of some, with what is left of it without each part (A x ...)."""

    value: Array
    without: Array
    has_rows: Any
    excess: Array  # excess kurtosis of y, over n
    pull: Array  # how much of the value heavy tails may take: r / 2 times the root of that


def estimate(pairs: Pairs, fitted: Array, folds: int, grouped: bool = False, gain: Gain | None = None) -> Estimate:
    """corr(z, y) with its interval; ``fitted`` is what the fits of the folds reach on their own rows.

    ``gain`` is the error of the map over that of the fits, by default that of few dimensions.
    """
    value, excess = pairs.correlation(), excess_kurtosis(pairs, grouped)
    pull = np.abs(value) / 2 * np.sqrt(excess)
    return _estimate(_Parts(value, pairs.without_each(), pairs.n > 0, excess, pull), fitted, folds, gain)


def mean_estimate(pairs: Pairs, fitted: Array, folds: int, grouped: bool = False, gain: Gain | None = None) -> Estimate:
    """The same of the mean over all pairs (last axis) that have a correlation."""
    values, excess = pairs.correlation(), excess_kurtosis(pairs, grouped)
    there = ~np.isnan(values)
    if not there.any():
        return Estimate(*(np.asarray(np.nan) for _ in Estimate._fields))
    without = np.nan_to_num(pairs.without_each()[:, there]).mean(axis=1)
    has_rows = (pairs.n[:, there] > 0).any(axis=1)
    pull = np.asarray(np.mean(np.abs(values[there]) / 2 * np.sqrt(excess[there])))
    parts = _Parts(values[there].mean(), without, has_rows, excess[there].mean(), pull)
    return _estimate(parts, fitted[there].mean(), folds, gain)


def _estimate(parts: _Parts, fitted: Array, folds: int, gain: Gain | None) -> Estimate:
    value, without, has_rows, excess, pull = parts
    middle, A = _scaled(value), np.sum(has_rows, axis=0)
    # If nothing is left without a part, all that is known comes from it: 0 is left.
    apart = np.where(has_rows, _scaled(np.nan_to_num(without)) - middle, 0.0)
    squares = np.sum(apart**2, axis=0)
    variance = quotient(A - 1.0, A) * squares * quotient(A + 1.0, A) * inflation(value, fitted, folds)
    freedom = np.minimum(quotient(3 * squares**2, np.sum(apart**4, axis=0), 2.0), A / (1 + excess * A / 2))
    t = student.ppf((1 + LEVEL) / 2, np.floor(np.clip(freedom - 1 + 1e-9, 1, np.maximum(A - 1, 1))))
    sd = np.where(A >= 2, np.sqrt(variance), np.nan)
    tails = np.minimum(quotient(pull, 1 - np.square(value)) ** 2, TAILS * variance)
    low, high = np.tanh(middle - t * np.sqrt(sd**2 + tails)), np.tanh(middle + t * sd)
    gain = usual_gain(folds) if gain is None else gain
    low, high = gain.limits(low, high, certain_share(value, fitted))
    low, high = np.minimum(low, value), np.maximum(high, value)  # what was measured is in the interval
    se = np.minimum(sd * (1 - np.square(value)), 1.0)  # no correlation is known worse
    return Estimate(np.asarray(value), se, low, high)


def excess_kurtosis(pairs: Pairs, grouped: bool = False) -> Array:
    """Excess kurtosis of y over the number of rows, at least 0; 0 with groups.

    The sum of squares of the m rows of a part has the variance m (kurtosis - 1) s^4, s^2 the variance of y.
    """
    n, y = pairs.n.sum(axis=0), pairs.y.sum(axis=0)
    A = np.sum(pairs.n > 0, axis=0)
    if grouped:
        return np.zeros(n.shape)
    mean = y * quotient(1.0, n)
    squares = pairs.yy - 2 * mean * pairs.y + pairs.n * mean**2
    ratio = squares * quotient(n, squares.sum(axis=0)) - pairs.n
    spread = np.sum(ratio**2, axis=0) * quotient(1.0, n) * quotient(A, A - 1.0)
    return np.asarray(np.maximum(spread - 2, 0.0) * quotient(1.0, n))


def inflation(value: Array, fitted: Array, folds: int) -> Array:
    """1 + k / (k - 1) (1 - share): what uncertain directions add to the variance."""
    return np.asarray(1 + folds / max(folds - 1, 1) * (1 - certain_share(value, fitted)))


def certain_share(value: Array, fitted: Array) -> Array:
    """(r / r_fitted)^2, 0 to 1: how certain the directions of the fits are."""
    ratio = np.clip(quotient(np.maximum(value, 0.0), np.maximum(fitted, 0.0)), 0, 1)
    return np.asarray(ratio**2)


class Gain(NamedTuple):
    """The error of the map over that of the fits without a fold, as the lower and the upper limit take it."""

    low: float
    high: float

    def limits(self, low: Array, high: Array, share: Array) -> tuple[Array, Array]:
        """The limits of the map, from those of the fits; ``share`` is (r / r_fitted)^2."""
        root = np.sqrt(share)  # the larger share: the map is less different
        return learned(low, root if self.low <= 1 else share, self.low), learned(high, share, self.high)


NONE = Gain(1.0, 1.0)  # the interval of the fits


def usual_gain(folds: int) -> Gain:
    """The gain if dimensions are few: (k - 1) / k."""
    return Gain(1 - 1 / max(folds, 2), 1 - 1 / max(folds, 2))


def gain_of(error: float, n: float, n_train: float, error_of_fits: Callable[[], float]) -> Gain:
    """The gain of a map with this error (d / (n - d), ``ridge_path.error_of``); n and n' are rows less one.

    If d is n' or more, as many as without a ridge and with as many dimensions as rows, the formula says nothing: the
    upper limit allows for a map without errors, and the lower one for the error of the fits if that is less.
    """
    d, usual = n * error / (1 + error), n_train / n
    if d < n_train:
        return Gain(usual, (n_train - d) / (n - d))
    of_fits = error_of_fits()
    return Gain(max(usual, error / of_fits if of_fits > 0 else usual), 0.0)


def learned(limit: Array, share: Array, gain: float) -> Array:
    """What the map of all rows reaches if the fits without a fold reach ``limit``.

    limit / sqrt(share + (1 - share) gain). No share is smaller than limit^2, as |c| is at most 1, so no result is
    larger than 1. Nothing is to be learned below 0: such limits stay as they are.
    """
    share = np.maximum(share, np.square(limit))
    return np.asarray(np.where(limit > 0, limit / np.sqrt(share + (1 - share) * gain), limit))


def _scaled(r: Array) -> Array:
    return np.asarray(np.arctanh(np.clip(r, -ALMOST_ONE, ALMOST_ONE)))


def verdict(low: float, high: float) -> str:
    """captured: left-out samples exclude 0; not captured: they exclude all but a small beta; else unclear.

    ``low`` is that of the correlation on left-out samples; ``high`` also counts the error of the factor's direction.
    """
    if np.isnan(low) or np.isnan(high):
        return "unclear"
    if low > 0:
        return "captured"
    return "not captured" if high < SMALL else "unclear"
