"""Intervals of pooled correlations: what heavy tails, skewness and groups change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from covalign.closed_form.pooled_correlation import Pairs, estimate, excess_kurtosis, learned, mean_estimate

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
    """Directions c + e with |e|^2 = x / n in whitened coordinates: r(n) = |c| / sqrt(1 + x / (n |c|^2))."""
    c, n, x = np.array([0.9, 0.7, 0.3]), 100, np.array([0.1, 10.0, 200.0])

    def reached(n):
        return c / np.sqrt(1 + x / (n * c**2))

    for folds in (2, 5, 10):
        of_fits = reached(n * (folds - 1) / folds)
        fitted = c  # so that the share (r / r_fitted)^2 is |c|^2 / (|c|^2 + x / n)
        np.testing.assert_allclose(learned(of_fits, of_fits, fitted, folds), reached(n))


def test_limits_keep_their_order_their_sign_and_their_bounds():
    limits = np.linspace(-1, 1, 201)
    for value, fitted in ((-0.2, 0.9), (0.0, 0.5), (0.3, 0.9), (0.6, 0.7), (0.99, 0.999)):
        found = learned(limits, np.array(value), np.array(fitted), FOLDS)
        assert np.all(np.diff(found) > 0)
        assert np.all(found >= limits)
        assert found[-1] == 1
        np.testing.assert_array_equal(found[limits <= 0], limits[limits <= 0])
    np.testing.assert_allclose(learned(limits, np.array(0.7), CERTAIN, FOLDS), limits)


def test_the_held_out_correlation_is_in_its_interval_if_many_rows_were_left_out_of_poor_fits():
    found = estimate(sums(*rows(0, 400_000, "normal"), 20), np.array([0.999]), FOLDS)
    assert learned(found.value, found.value, np.array([0.999]), FOLDS) > found.high - 0.02
    assert found.low == found.value < found.high
    of_fits = estimate(sums(*rows(0, 400_000, "normal"), 20), np.array([0.999]), FOLDS, learns=False)
    assert of_fits.low < found.low
    assert of_fits.high < found.high


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
