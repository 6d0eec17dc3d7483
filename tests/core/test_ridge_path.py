"""Wide data: the space of the rows gives what the columns give."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign._core.linalg import banded, is_constant, range_root, whitener
from covalign.closed_form import regimes, ridge_path, validation
from covalign.closed_form.shrinkage import SHRINKAGE_GRID
from covalign.moments import block_sizes
from covalign.moments.incomplete import merged_with_terms

SCALES = ("raw", "root", "standard")


def wide(n: int = 90, k: int = 210, seed: int = 0) -> tuple[np.ndarray, pd.DataFrame]:
    """Features with variances that fall like 1 / i, in several units, and a category, a number and a flag."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 4, n)
    H = (rng.normal(size=(4, k))[level] + rng.normal(size=(n, k))) / np.sqrt(np.arange(1, k + 1))
    Z = H @ np.linalg.qr(rng.normal(size=(k, k)))[0] * np.exp(rng.normal(size=k)) + 1
    Y = {"stage": np.array(["a", "b", "c", "d"])[level], "age": Z[:, 0] + rng.normal(size=n), "flag": H[:, 0] > 0}
    return Z, pd.DataFrame(Y)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 61])
def test_a_band_matrix_has_the_same_solutions(size):
    rng = np.random.default_rng(size)
    A, c = rng.normal(size=(size, size + 3)), rng.normal(size=(size, 2))
    S, scales, shifts = A @ A.T, np.array([1.0, 0.5, 0.0]), np.array([0.0, 0.3, 2.0])
    found = banded(S, width=8)
    x = found.solutions(scales, shifts, found.turned(c))
    for scale, shift, of in zip(scales, shifts, x, strict=True):
        expected = np.linalg.solve(scale * S + shift * np.eye(size), c)
        np.testing.assert_allclose(of, found.turned(expected), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.products(of), found.turned(S @ expected), rtol=1e-6, atol=1e-8)
    for block in found.below:
        np.testing.assert_allclose(np.tril(block, -1), 0, atol=1e-12 * np.trace(S))


def test_a_root_squares_to_its_covariance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 60)) * np.logspace(-4, 4, 60)
    X[:, 3], X[:, 4] = 0, X[:, 5]
    S, sd = X.T @ X, np.where(X.any(axis=0), np.linalg.norm(X, axis=0), 1.0)
    L = range_root(S)
    assert L.shape == (60, 20)
    np.testing.assert_allclose((L @ L.T) / sd / sd[:, None], S / sd / sd[:, None], atol=1e-12)


def test_the_root_of_a_sum_comes_from_its_terms():
    Z, Y = wide()
    cuts = [0, 1, 30, 55, 90]  # one part is a single row
    y = Y[["age"]].to_numpy()
    parts = [ca.Moments.from_arrays(Z[a:b], y[a:b]) for a, b in pairwise(cuts)]
    whole = merged_with_terms(parts)
    assert whole.root.shape == (210, 89)
    np.testing.assert_allclose(whole.root @ whole.root.T, whole.cov_z, atol=1e-12 * np.trace(whole.cov_z))
    # Other numbers have another root.
    doubled = whole.transform(2 * np.eye(210))
    np.testing.assert_allclose(doubled.root @ doubled.root.T, 4 * whole.cov_z, atol=1e-12 * np.trace(whole.cov_z))


def test_tall_data_have_no_root():
    Z, Y = wide(n=200)
    assert ca.Moments.from_arrays(Z, Y[["age"]]).root is None


def test_both_whitenings_span_the_same_space():
    Z, Y = wide()
    Z[:, 7] = 3.0
    m = ca.Moments.from_arrays(Z, Y[["age"]])
    constant = is_constant(m.mean_z, np.diag(m.cov_z))
    W, slow = whitener(m.cov_z, constant, m.root), whitener(m.cov_z, constant)
    np.testing.assert_allclose(W @ m.cov_z @ W.T, np.eye(89), atol=1e-9)
    np.testing.assert_allclose(W.T @ W, slow.T @ slow, rtol=1e-6, atol=1e-8 * np.abs(slow).max() ** 2)


@pytest.mark.parametrize("scale", SCALES)
def test_rows_and_columns_give_the_same_regressions(scale):
    Z, Y = wide()
    y = Y[["age", "flag"]].astype(float)
    train, test = ca.Moments.from_arrays(Z[:70], y[:70]), ca.Moments.from_arrays(Z[70:], y[70:])
    S_zy = regimes.standardised_cross_covariance(train)
    fast = ridge_path.of_root(train, train.root, S_zy, SHRINKAGE_GRID, scale)
    slow = ridge_path.of_eigenvectors(train, S_zy, SHRINKAGE_GRID, scale)
    assert fast is not None
    for a, b in ((fast, slow), (fast.unit, slow.unit), (fast.of([1]), slow.of([1]))):
        np.testing.assert_allclose(a.own, b.own, rtol=1e-8)
        np.testing.assert_allclose(a.variance(test), b.variance(test), rtol=1e-8)
        np.testing.assert_allclose(a.predictions(Z[:3].T), b.predictions(Z[:3].T), rtol=1e-8)
    np.testing.assert_allclose(fast.products(test.cov_zy), slow.products(test.cov_zy), rtol=1e-8)


def test_many_covariates_have_the_variance_of_few():
    """Few regressions are multiplied by the columns of Z, many by the eigenvectors."""
    rng = np.random.default_rng(0)
    Z, Y = rng.normal(size=(300, 12)) @ rng.normal(size=(12, 12)), rng.normal(size=(300, 10))
    train, test = ca.Moments.from_arrays(Z[:200], Y[:200]), ca.Moments.from_arrays(Z[200:], Y[200:])
    for scale in SCALES:
        many = ridge_path.ridge_path(train, SHRINKAGE_GRID[::4], scale)
        assert many.own.size > 2 * 12
        few = ridge_path.ridge_path(train, SHRINKAGE_GRID[::4], scale, columns=[3])
        assert few.own.size < 2 * 12
        np.testing.assert_allclose(many.of([3]).own, few.own, rtol=1e-12)
        np.testing.assert_allclose(many.unit.variance(test)[:, [3]], few.unit.variance(test), rtol=1e-10)
        B = np.stack([regimes.ridge(train, rho, scale) for rho in SHRINKAGE_GRID[::4]])
        expected = np.einsum("rkp,kl,rlp->rp", B, test.cov_z, B)
        np.testing.assert_allclose(many.variance(test), expected, rtol=1e-8)
        np.testing.assert_allclose(many.predictions(Z[:2].T), np.einsum("nk,rkp->nrp", Z[:2], B), rtol=1e-7, atol=1e-9)


def _gaps(Y: pd.DataFrame) -> pd.DataFrame:
    some = np.random.default_rng(1).random((len(Y), 2))
    return Y.assign(stage=Y["stage"].where(some[:, 0] > 0.2), age=Y["age"].where(some[:, 1] > 0.3))


CASES = {
    "plain": lambda Z, Y: (Z, Y, {}),
    "all levels": lambda Z, Y: (Z, Y, {}),
    "float32": lambda Z, Y: (Z.astype(np.float32), Y, {}),
    "gaps": lambda Z, Y: (Z, _gaps(Y[["stage", "age"]]), {}),
    "groups": lambda Z, Y: (Z, Y, {"groups": np.arange(len(Y)) // 3}),
    "confounders": lambda Z, Y: (Z, Y, {"confounders": pd.DataFrame({"batch": ["x", "y", "z"] * (len(Y) // 3)})}),
    "copies of rows": lambda Z, Y: (np.vstack([Z[:60], Z[:30]]), Y, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_and_columns_give_the_same_aligner(case, monkeypatch):
    Z, Y, more = CASES[case](*wide())
    monkeypatch.setattr(validation, "wide_rows", lambda parts: None)  # tests/core/test_wide_rows.py
    used = []
    original = ridge_path.of_root
    monkeypatch.setattr(ridge_path, "of_root", lambda *args: used.append(found := original(*args)) or found)
    fast = ca.LatentAligner(drop_first=case != "all levels").fit(Z, Y, **more)
    few = fast.summary()
    rows = len(used)
    assert any(found is not None for found in used)
    monkeypatch.setattr(block_sizes, "WIDE", 10**6)
    slow = ca.LatentAligner(drop_first=case != "all levels").fit(Z, Y, **more)
    many = slow.summary()
    assert len(used) == rows  # nothing more
    assert (fast.shrinkage_, fast.scale_) == (slow.shrinkage_, slow.scale_)
    np.testing.assert_allclose(fast.T_, slow.T_, atol=1e-8 * np.abs(slow.T_).max())
    pd.testing.assert_frame_equal(fast.shrinkage_path_, slow.shrinkage_path_, rtol=1e-8, atol=1e-8)
    pd.testing.assert_frame_equal(few, many, rtol=1e-8, atol=1e-8)


def test_the_order_of_rows_does_not_matter():
    Z, Y = wide()
    back = np.arange(len(Y))[::-1]
    one, other = ca.LatentAligner().fit(Z, Y), ca.LatentAligner().fit(Z[back], Y.iloc[back].reset_index(drop=True))
    np.testing.assert_allclose(one.T_, other.T_, atol=1e-8 * np.abs(one.T_).max())
    pd.testing.assert_frame_equal(one.summary(), other.summary(), rtol=1e-8)
