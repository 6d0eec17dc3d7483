"""Sums in single precision: within the bound that is promised, exact where that is promised, refused elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import covalign as ca
from covalign.moments import gap_accumulator, single
from tests.conftest import correlated


def data(n=6000, k=12, p=3, far=0.0, dtype=np.float32):
    Z, Y = correlated(0, n, k, p)
    return (Z + far).astype(dtype), Y


def relative(found, want):
    sd = np.sqrt(np.diag(want.cov_z))
    return np.abs(found.cov_z - want.cov_z) / (sd * sd[:, None])


@pytest.mark.parametrize("far", [0.0, 1e3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("folds", [1, 4])
def test_covariances_are_within_the_bound(far, dtype, folds):
    Z, Y = data(far=far, dtype=dtype)
    for one, two in zip(*(gap_accumulator.fold_moments(Z, Y, folds, single=how) for how in (True, False)), strict=True):
        assert 0 < relative(one, two).max() < single.BOUND / 10  # other sums, and far from the worst case
        np.testing.assert_allclose(one.mean_z, two.mean_z, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(one.cov_zy, two.cov_zy, atol=1e-5)
        np.testing.assert_allclose(one.cov_y, two.cov_y, rtol=1e-12, atol=1e-14)


def test_the_bound_does_not_grow_with_the_rows():
    """The worst case of float32: one sum of many equal squares. A single sum of all rows would stop growing."""
    rows = np.full((400_000, 1), 0.1, np.float32)
    Z = np.hstack([rows, -rows]).reshape(-1, 1)
    (found,) = gap_accumulator.fold_moments(Z, np.arange(len(Z)) % 7.0, 1, single=True)
    assert abs(found.cov_z[0, 0] / float(np.float32(0.1)) ** 2 - 1) < single.BOUND


def test_portions_make_no_difference():
    Z, Y = data()
    whole = single.SingleAccumulator(Z.shape[1], 3)
    whole.add(Z, Y)
    parts = single.SingleAccumulator(Z.shape[1], 3)
    for i in range(0, len(Z), 701):
        parts.add(Z[i : i + 701], Y[i : i + 701])
    np.testing.assert_array_equal(whole.moments().cov_z, parts.moments().cov_z)


def test_dependent_covariates_are_seen_as_in_double():
    Z, Y = data()
    Y = np.column_stack([Y, Y @ [0.3, 0.5, 0.7]])
    with pytest.raises(ca.exceptions.DependentCovariatesError):
        ca.LatentAligner("exclusive", shrinkage=0.0, precision="single").fit(Z, Y)


@pytest.mark.parametrize("shrinkage", ["auto", 0.0])
def test_an_aligner_is_nearly_the_same(shrinkage):
    Z, Y = data()
    one, two = (ca.LatentAligner(shrinkage=shrinkage, precision=how).fit(Z, Y) for how in ("single", "double"))
    np.testing.assert_allclose(one.alignment_, two.alignment_, atol=1e-5)
    np.testing.assert_allclose(one.transform(Z), two.transform(Z), atol=1e-3)


def test_gaps_batches_and_partial_fit_take_it():
    Z, Y = data(n=3000)
    Y[::3, 0] = np.nan
    batches = [(Z[i : i + 1000], Y[i : i + 1000]) for i in range(0, 3000, 1000)]
    want = ca.LatentAligner().fit(Z, Y).alignment_
    partly = ca.LatentAligner(precision="single")
    for batch in batches:
        partly.partial_fit(*batch)
    for found in (
        ca.LatentAligner(precision="single").fit(Z, Y),
        partly,
        ca.LatentAligner(precision="single").fit(batches),
    ):
        np.testing.assert_allclose(found.alignment_, want, atol=1e-5)


def wide(Z):
    return Z[:10]


def dependent(Z):
    return np.column_stack([Z, Z[:, 0] + Z[:, 1]])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (wide, "more rows than columns"),
        (dependent, "no column of Z that others can predict"),
        (lambda Z: Z * np.float32(1e25), "between 1e-15 and 1e15"),
        (lambda Z: Z * np.float32(1e-25), "between 1e-15 and 1e15"),
    ],
)
def test_what_single_precision_cannot_do_is_refused(change, says):
    Z, Y = data()
    Z = change(Z)
    ca.LatentAligner(shrinkage=0.1).fit(Z, Y[: len(Z)])
    with pytest.raises(ValueError, match=says):
        ca.LatentAligner(shrinkage=0.1, precision="single").fit(Z, Y[: len(Z)])


def test_not_finite_is_named():
    Z, Y = data()
    Z[7, 2] = np.nan
    with pytest.raises(ca.exceptions.NotFiniteError, match="row 7"):
        ca.LatentAligner(precision="single").fit(Z, Y)


def test_an_unknown_precision_is_refused():
    Z, Y = data(n=60)
    with pytest.raises(ValueError, match="precision needs one of double, single, got 'half'"):
        ca.LatentAligner(precision="half").fit(Z, Y)
