"""Intervals of pooled correlations: what heavy tails, skewness and groups change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from covalign.closed_form.pooled_correlation import (
    NONE,
    Gain,
    Pairs,
    certain_share,
    estimate,
    excess_kurtosis,
    gain_of,
    learned,
    mean_estimate,
    usual_gain,
)
from covalign.closed_form.ridge_path import error_of, gain_at
from covalign.closed_form.shrinkage import Ridge
from covalign.closed_form.wide_rows import error_of_inverse, wide_rows
from covalign.moments.moments import Moments

FITTED, FOLDS = np.array([0.8]), 5
CERTAIN = np.array([0.1])  # fits that are no better on their own rows have certain directions: nothing is left to learn


def sums(z, y, parts):
    """The sums of ``Pairs`` over parts of equal size."""
    columns = np.stack([np.ones_like(z), z, y, z * z, y * y, z * y])
    return Pairs(*(column.reshape(parts, -1).sum(axis=1)[:, None] for column in columns))


def rows(seed, n, kind):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    y = 0.8 * z + 0.6 * rng.normal(size=n)
    return z, {"normal": y, "heavy": y * np.sqrt(3 / rng.chisquare(3, size=n)), "flag": (y > 1.3) * 1.0}[kind]


@pytest.mark.parametrize("kind", ["normal", "heavy", "flag"])
def test_excess_kurtosis_of_parts_with_one_row_is_that_of_the_rows(kind):
    z, y = rows(0, 400, kind)
    expected = max(0.0, (stats.kurtosis(y, fisher=False) - 1) * 400 / 399 - 2) / 400
    assert excess_kurtosis(sums(z, y + 5, 400)).item() == pytest.approx(expected, rel=1e-6)


def test_excess_kurtosis_follows_from_parts_of_many_rows():
    found = [excess_kurtosis(sums(*rows(seed, 4000, "flag"), 20)).item() * 4000 for seed in range(40)]
    y = rows(0, 400_000, "flag")[1]
    assert np.mean(found) == pytest.approx(stats.kurtosis(y), rel=0.2)


def test_heavy_tails_lower_the_lower_limit_and_groups_know_none():
    pairs = sums(*rows(2, 2000, "heavy"), 20)
    found, of_groups = estimate(pairs, FITTED, FOLDS), estimate(pairs, FITTED, FOLDS, grouped=True)
    assert found.low < of_groups.low - 0.01
    assert found.se == of_groups.se
    assert excess_kurtosis(pairs) > 0 == excess_kurtosis(pairs, grouped=True)


def test_the_mean_of_equal_pairs_has_the_interval_of_each():
    one = sums(*rows(1, 2000, "heavy"), 20)
    both = Pairs(*(np.hstack([part, part]) for part in one))
    np.testing.assert_allclose(mean_estimate(both, np.repeat(FITTED, 2), FOLDS), np.ravel(estimate(one, FITTED, FOLDS)))


def test_what_heavy_tails_add_below_is_limited_by_the_variance_that_parts_show():
    z = rows(2, 2000, "normal")[0]
    found = estimate(sums(z, np.sinh(2 * z), 20), CERTAIN, FOLDS)  # rows that are far out in both
    below, above = np.arctanh(found.value) - np.arctanh(found.low), np.arctanh(found.high) - np.arctanh(found.value)
    assert (below / above) ** 2 == pytest.approx(2.5)
    found = estimate(sums(*rows(2, 2000, "normal"), 20), CERTAIN, FOLDS)
    below, above = np.arctanh(found.value) - np.arctanh(found.low), np.arctanh(found.high) - np.arctanh(found.value)
    assert below / above < 1.2


def test_a_limit_becomes_what_the_map_of_all_rows_reaches():
    """Regressions on d of n rows in whitened coordinates: |e|^2 = x d / (n - d), r = |c|^2 / sqrt(|c|^2 + |e|^2)."""
    c, n, x = np.array([0.9, 0.7, 0.3]), 101, np.array([0.1, 1.0, 2.0])

    def reached(rows, d):
        return c / np.sqrt(1 + x * d / (rows - d) / c**2)

    for folds, d in ((2, 20), (5, 60), (10, 1)):
        of_fits = reached(n * (folds - 1) / folds - 1, d)
        share = (of_fits / c) ** 2
        gain = gain_of(d / (n - 1 - d), n - 1, n * (folds - 1) / folds - 1, pytest.fail)
        np.testing.assert_allclose(learned(of_fits, share, gain.high), reached(n - 1, d))
        assert gain.high < gain.low < 1


def test_dimensions_that_a_ridge_leaves_out_have_the_usual_gain():
    assert gain_of(0.0, 100, 80, pytest.fail) == usual_gain(5) == (0.8, 0.8)


def test_as_many_dimensions_as_rows_and_no_ridge_leave_the_gain_open():
    assert gain_of(9.0, 100, 80, lambda: 100.0) == (0.8, 0.0)
    assert gain_of(9.0, 100, 80, lambda: 3.0) == (3.0, 0.0)


def test_limits_keep_their_order_their_sign_and_their_bounds():
    limits = np.linspace(-1, 1, 201)
    for value, fitted in ((-0.2, 0.9), (0.0, 0.5), (0.3, 0.9), (0.6, 0.7), (0.99, 0.999)):
        share = certain_share(np.array(value), np.array(fitted))
        for gain in (1.0, 0.8, 0.3):
            found = learned(limits, share, gain)
            assert np.all(np.diff(found) > 0)
            assert np.all(found >= limits - 1e-15)
            assert found[-1] == 1
            np.testing.assert_array_equal(found[limits <= 0], limits[limits <= 0])
    np.testing.assert_allclose(learned(limits, np.array(1.0), 0.5), limits)
    np.testing.assert_allclose(learned(limits, np.array(0.3), 1.0), limits)


def test_the_held_out_correlation_is_in_its_interval_if_many_rows_were_left_out_of_poor_fits():
    pairs = sums(*rows(0, 400_000, "normal"), 20)
    found = estimate(pairs, np.array([0.999]), FOLDS)
    assert learned(found.value, found.value**2, usual_gain(FOLDS).high) > found.high - 0.02
    assert found.low == found.value < found.high
    of_fits = estimate(pairs, np.array([0.999]), FOLDS, gain=NONE)
    assert of_fits.low < found.low
    assert of_fits.high < found.high


def test_a_map_that_may_be_worse_than_the_fits_has_a_wide_interval():
    """Without a ridge and with as many dimensions as rows, more rows can make regressions worse."""
    pairs = sums(*rows(0, 2000, "normal"), 20)
    of_fits, found = (estimate(pairs, np.array([0.999]), FOLDS, gain=gain) for gain in (NONE, Gain(5.0, 0.0)))
    assert found.low < of_fits.low - 0.1
    assert found.low < found.value < of_fits.high < found.high


@pytest.mark.parametrize("k", [30, 90, 250])
@pytest.mark.parametrize("rho", [0.0, 0.01, 0.1, 0.5])
def test_the_error_of_a_ridge_regression_is_that_of_regressions_on_noise(k, rho):
    """b'Sb on average, S the true covariance, for noise with variance 1: simulated."""
    rng, n, true = np.random.default_rng(0), 200, 1.0 / (1 + np.arange(k)) ** 0.5
    errors, found = [], []
    for _ in range(12):
        Z = rng.normal(size=(n, k)) * np.sqrt(true)
        Z -= Z.mean(axis=0)
        S = Z.T @ Z / n
        B = np.linalg.pinv((1 - rho) * S + rho * np.diag(S).mean() * np.eye(k), rcond=1e-10) @ ((1 - rho) * Z.T / n)
        errors.append(np.sum(B**2 * true[:, None]))
        found.append(error_of(Moments.from_arrays(Z, rng.normal(size=(n, 1))), rho))
    assert np.mean(found) == pytest.approx(np.mean(errors), rel=0.06)


def test_the_error_is_that_of_ordinary_regressions_without_a_ridge_and_the_same_in_the_space_of_the_rows():
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(100, 60)), rng.normal(size=(100, 1))
    assert error_of(Moments.from_arrays(Z, y), 0.0) == pytest.approx(60 / 39)
    few = [Moments.from_arrays(Z[:rows, :3], y[:rows]) for rows in (100, 80)]
    assert gain_at(*few, 0.1, "raw") == pytest.approx((79 / 99, (79 - 3) / (99 - 3)))
    assert error_of(few[0], 0.0) == pytest.approx(3 / 96)
    parts = [Moments.from_arrays(rng.normal(size=(10, 300)), y[:10]) for _ in range(5)]
    assert parts[0].root is not None
    train, whole = parts[0] + parts[1] + parts[2] + parts[3], sum(parts[1:], parts[0])
    space = wide_rows(parts)
    for ridge in (Ridge(0.0), Ridge(0.01), Ridge(0.3, "standard")):
        H = space.inverse(ridge.scale, 50 * ridge.shrinkage / (1 - ridge.shrinkage))
        # ``wide_rows`` has the same penalty in all training sets.
        assert error_of_inverse(H, slice(0, 0)) == pytest.approx(error_of(whole, *ridge), rel=1e-6)
        assert error_of_inverse(H, space.rows_of([4])) == pytest.approx(error_of(train, *ridge), rel=0.3)


def test_a_part_that_decides_leaves_few_degrees_of_freedom():
    """Groups of which one has a much higher correlation than the others: the interval is wider than its error says."""
    z, y = rows(2, 2000, "normal")
    alike = estimate(sums(z, y, 20), FITTED, FOLDS, grouped=True)
    z[:100] *= 3
    y[:100] = z[:100]
    found = estimate(sums(z, y, 20), FITTED, FOLDS, grouped=True)
    errors = [np.arctanh(of.high) - np.arctanh(of.value) for of in (found, alike)]
    errors = [error / (of.se / (1 - of.value**2)) for error, of in zip(errors, (found, alike), strict=True)]
    assert errors[0] > 1.5 * errors[1]
