"""Moments: one pass, any portions, any place, any precision."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import covalign as ca
from covalign.moments.fold_accumulator import fold_moments
from covalign.moments.moments_sum import merge
from covalign.stream import reduction
from covalign.stream.folds import fold_of_rows
from tests.conftest import correlated

FIELDS = ("mean_z", "mean_y", "cov_z", "cov_zy", "cov_y")
seeds = st.integers(0, 2**32 - 1)


def assert_same(a: ca.Moments, b: ca.Moments, tolerance: float = 1e-12) -> None:
    """Equal relative to the scale of each field."""
    assert a.n == b.n
    for field in FIELDS:
        x, y = getattr(a, field), getattr(b, field)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * max(1e-300, np.abs(y).max()), err_msg=field)


def brute_force(Z: np.ndarray, Y: np.ndarray) -> ca.Moments:
    """numpy's own covariance in extended precision."""
    J = np.hstack([Z, Y]).astype(np.longdouble)
    mean = J.mean(axis=0)
    C = ((J - mean).T @ (J - mean) / len(J)).astype(float)
    k = Z.shape[1]
    mean = mean.astype(float)
    names = tuple(f"y{i}" for i in range(Y.shape[1]))
    return ca.Moments(len(Z), mean[:k], mean[k:], C[:k, :k], C[:k, k:], C[k:, k:], names)


@given(seeds, st.integers(1, 300), st.integers(1, 7), st.integers(1, 4))
def test_equal_to_brute_force(seed, n, k, p):
    Z, Y = correlated(seed, n, k, p)
    assert_same(ca.Moments.from_arrays(Z, Y), brute_force(Z, Y))


@given(seeds, st.lists(st.integers(1, 90), min_size=1, max_size=8))
def test_merge_equals_concatenation(seed, sizes):
    Z, Y = correlated(seed, sum(sizes), 4, 2)
    ends = np.cumsum(sizes)
    parts = [ca.Moments.from_arrays(Z[e - s : e], Y[e - s : e]) for s, e in zip(sizes, ends, strict=True)]
    assert_same(sum(parts[1:], parts[0]), ca.Moments.from_arrays(Z, Y))


@given(seeds, st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any))
def test_any_chunking_is_bit_for_bit_one_pass(seed, sizes):
    Z, Y = correlated(seed, sum(sizes), 3, 2)
    cuts = np.cumsum(sizes)[:-1]
    batched = ca.Moments.from_batches(zip(np.split(Z, cuts), np.split(Y, cuts), strict=True))
    whole = ca.Moments.from_arrays(Z, Y)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(batched, field), getattr(whole, field))


def test_single_rows_over_many_blocks(monkeypatch):
    monkeypatch.setattr("covalign.moments.block_sizes.BLOCK_BYTES", 0)  # the smallest blocks there are: 64 rows
    Z, Y = correlated(0, 1000, 5, 2)
    rows = ca.Moments.from_batches((Z[i : i + 1], Y[i : i + 1]) for i in range(len(Z)))
    assert_same(rows, brute_force(Z, Y))


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e6])
def test_far_from_the_origin(offset):
    Z, Y = correlated(1, 3000, 5, 2, offset)
    np.testing.assert_allclose(ca.Moments.from_arrays(Z, Y).cov_z, brute_force(Z, Y).cov_z, rtol=1e-9, atol=1e-9)
    centred = ca.Moments.from_arrays(Z - offset, Y - offset)
    np.testing.assert_allclose(ca.Moments.from_arrays(Z, Y).cov_zy, centred.cov_zy, rtol=1e-8, atol=1e-8)


def test_merge_of_far_apart_groups():
    rng = np.random.default_rng(0)
    groups = [rng.standard_normal((50, 3)) + shift for shift in (0.0, 1e6, -3e5)]
    parts = [ca.Moments.from_arrays(g, g[:, :1]) for g in groups]
    Z = np.vstack(groups)
    assert_same(parts[0] + parts[1] + parts[2], brute_force(Z, Z[:, :1]), 1e-12)


def test_constant_column_has_variance_zero_exactly():
    Z, Y = correlated(0, 5000, 3, 1)
    Z[:, 1] = 0.1  # not a binary fraction: a naive mean of these is off by rounding
    assert ca.Moments.from_arrays(Z, Y).cov_z[1, 1] == 0.0


def test_float32_is_accumulated_in_float64():
    Z, Y = correlated(2, 4000, 4, 2, offset=100.0)
    Z32 = Z.astype(np.float32)
    assert_same(ca.Moments.from_arrays(Z32, Y), brute_force(Z32.astype(float), Y))


@pytest.mark.parametrize("convert", [np.int64, np.uint8, bool])
def test_integers_and_flags(convert):
    Z = np.random.default_rng(0).integers(0, 2, size=(100, 3)).astype(convert)
    assert_same(ca.Moments.from_arrays(Z, Z[:, :1]), brute_force(Z.astype(float), Z[:, :1].astype(float)))


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_equals_dense(form):
    Z = sparse.random(3000, 40, density=0.05, random_state=0).toarray()
    Y = Z[:, :2] + np.random.default_rng(0).standard_normal((3000, 2))
    assert_same(ca.Moments.from_arrays(form(Z), Y), brute_force(Z, Y))
    assert_same(ca.Moments.from_batches([(form(Z[:7]), Y[:7]), (form(Z[7:]), Y[7:])]), brute_force(Z, Y))


def test_lanes_agree_with_one_lane(monkeypatch):
    Z, Y = correlated(3, 3000, 20, 3)
    one_lane = ca.Moments.from_batches([(Z, Y)])
    spans, original = [], reduction.portions
    monkeypatch.setattr(reduction, "FEW", 0)
    monkeypatch.setattr(reduction.Size, "threads", (3, 3))
    monkeypatch.setattr("covalign.moments.block_sizes.BLOCK_BYTES", 0)  # the smallest blocks there are: 64 rows
    monkeypatch.setattr(reduction, "portions", lambda t, a, b, s: spans.append((a, b)) or original(t, a, b, s))
    in_lanes = ca.Moments.from_arrays(Z, Y)
    assert sorted(spans) == [(0, 1000), (1000, 2000), (2000, 3000)]
    assert_same(in_lanes, one_lane, 1e-11)


def test_a_scipy_without_the_known_blas_signature_gives_the_same(monkeypatch):
    Z, Y = correlated(3, 500, 7, 3)
    expected = ca.Moments.from_arrays(Z, Y)
    monkeypatch.setattr("covalign._core.linalg._SYRK", None)
    assert_same(ca.Moments.from_arrays(Z, Y), expected)


def test_extra_memory_does_not_grow_with_rows():
    def peak(n: int) -> int:
        Z, Y = np.ones((n, 100)) * np.arange(n)[:, None], np.arange(float(n))
        tracemalloc.start()
        ca.Moments.from_arrays(Z, Y)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(80_000) < 1.2 * peak(20_000)


def test_folds_partition_the_rows_whatever_their_order_or_portions():
    Z, Y = correlated(4, 1000)
    fold = fold_of_rows(Z, Y, 5)
    assert np.bincount(fold, minlength=5).min() > 140  # five fair parts
    order = np.random.default_rng(0).permutation(1000)
    np.testing.assert_array_equal(fold_of_rows(Z[order], Y[order], 5), fold[order])
    np.testing.assert_array_equal(
        np.concatenate([fold_of_rows(Z[:13], Y[:13], 5), fold_of_rows(Z[13:], Y[13:], 5)]), fold
    )
    np.testing.assert_array_equal(fold_of_rows(sparse.csr_array(Z), Y, 5), fold)
    parts = fold_moments(Z, Y, 5)
    assert [part.n for part in parts] == np.bincount(fold).tolist()
    assert_same(parts[2], ca.Moments.from_arrays(Z[fold == 2], Y[fold == 2]))
    assert_same(merge(parts), ca.Moments.from_arrays(Z, Y))


def test_equal_rows_share_a_fold():
    Z, Y = correlated(5, 50)
    fold = fold_of_rows(np.vstack([Z, Z]), np.vstack([Y, Y]), 5)
    np.testing.assert_array_equal(fold[:50], fold[50:])


def test_moments_of_a_transformed_representation():
    Z, Y = correlated(6, 100, 5, 2)
    T = np.random.default_rng(0).standard_normal((3, 5))
    assert_same(ca.Moments.from_arrays(Z, Y).transform(T), ca.Moments.from_arrays(Z @ T.T, Y), 1e-10)


def test_names_come_from_the_table():
    Z, Y = correlated(0, 20, 3, 2)
    assert ca.Moments.from_arrays(Z, pd.DataFrame(Y, columns=["age", "dose"])).covariate_names == ("age", "dose")
    assert ca.Moments.from_arrays(Z, pd.Series(Y[:, 0], name="age")).covariate_names == ("age",)
    assert ca.Moments.from_arrays(Z, Y).covariate_names == ("y0", "y1")


def test_population_moments_have_no_size():
    m = ca.Moments.from_covariances(np.eye(2), np.full((2, 1), 0.3), np.eye(1))
    assert m.n is None
    with pytest.raises(ValueError, match="n = None"):
        m + m


@pytest.mark.parametrize(
    ("Z", "Y", "words"),
    [
        (np.ones((3, 2)), np.ones(4), "same number of rows .* got 3 and 4"),
        (np.ones(3), np.ones(3), "Z needs two dimensions"),
        (np.ones((3, 2)), np.ones((3, 1, 1)), "Y needs two dimensions"),
        (np.array([[1.0, np.nan], [2.0, 3.0]]), np.ones(2), "Z needs finite numbers.*column 1"),
        (np.ones((2, 2)), np.array([[1.0, 2.0], [3.0, np.inf]]), "Y needs finite numbers.*column 1"),
        (np.empty((0, 2)), np.empty((0, 1)), "at least one row"),
        (np.array([["a", "b"]]), np.ones(1), "Z needs real numbers"),
        (np.array([[{}, 1]], dtype=object), np.ones(1), "Z needs real numbers"),
        (np.ones((2, 2)) * 1j, np.ones(2), "Z needs real numbers"),
    ],
)
def test_bad_input_is_named(Z, Y, words):
    with pytest.raises(ValueError, match=words):
        ca.Moments.from_arrays(Z, Y)


def test_bad_batches_are_named():
    with pytest.raises(ValueError, match="Z needs 2 columns as before, got 3"):
        ca.Moments.from_batches([(np.ones((1, 2)), np.ones(1)), (np.ones((1, 3)), np.ones(1))])
    with pytest.raises(ValueError, match="at least one row"):
        ca.Moments.from_batches([])
    a, b = (ca.Moments.from_arrays(np.ones((2, 2)), np.ones((2, p))) for p in (1, 2))
    with pytest.raises(ValueError, match="Y needs 1 columns"):
        a + b


@pytest.mark.parametrize(
    ("S_z", "S_zy", "S_y", "words"),
    [
        (np.ones((2, 3)), np.ones((2, 1)), np.eye(1), "cov_z"),
        (np.eye(2), np.ones((1, 2)), np.eye(1), "cov_zy.*2 x 1"),
        (np.eye(2), np.ones((2, 1)), np.ones((1, 2)), "cov_y"),
        (np.eye(2), np.ones((2, 1)), np.eye(1), "covariance"),  # correlations of 1 with two uncorrelated variables
        (np.array([[1, 0.5], [0, 1]]), np.zeros((2, 1)), np.eye(1), "covariance"),  # not symmetric
    ],
)
def test_bad_covariances_are_named(S_z, S_zy, S_y, words):
    with pytest.raises(ValueError, match=words):
        ca.Moments.from_covariances(S_z, S_zy, S_y)
