"""Principal components without a covariance matrix, and aligners of them, against routes with one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import covalign as ca
from covalign._core import room


def low_rank(n=150, k=2000, rank=6, seed=0):
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, rank))
    Z = H @ rng.normal(size=(rank, k)) + 1e3 * rng.normal(size=k)
    return Z, H[:, :2] + 0.5 * rng.normal(size=(n, 2))


def test_all_components_give_the_aligner_of_all_columns():
    """An orthonormal map of all columns changes no regime, and no ridge on raw columns."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 60)) * np.linspace(0.5, 3, 60) + 5
    Y = Z[:, :3] + rng.normal(size=(400, 3))
    few = ca.principal_components(Z, rank=60)
    assert few.components.shape == (60, 60)
    for shrinkage in (0.0, 0.1):
        expected = ca.LatentAligner(shrinkage=shrinkage).fit(Z, Y)
        al = ca.LatentAligner(shrinkage=shrinkage).fit(few.transform(Z), Y)
        np.testing.assert_allclose(few.back(al.T_), expected.T_, atol=1e-10)
        np.testing.assert_allclose(al.transform(few.transform(Z)), expected.transform(Z), atol=1e-10)


def test_data_of_low_rank_lose_nothing():
    """The strongest regime is the least-squares regression, which numpy computes from all columns."""
    Z, Y = low_rank()
    few = ca.principal_components(Z, rank=20, passes=2)
    assert few.components.shape == (6, 2000)
    assert few.explained == pytest.approx(1, abs=1e-12)
    assert few.errors.max() < 1e-9
    scores = few.transform(Z)
    np.testing.assert_allclose(scores @ few.components + few.mean, Z, atol=1e-7)
    al = ca.LatentAligner("strongest", shrinkage=0).fit(scores, Y)
    X = Z - Z.mean(axis=0)
    fitted = X @ np.linalg.lstsq(X, Y - Y.mean(axis=0), rcond=1e-8)[0]
    np.testing.assert_allclose(X @ few.back(al.T_).T, fitted / fitted.std(axis=0), atol=1e-8)


def test_leading_components_are_those_of_a_decomposition():
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(300, 120)) / np.arange(1, 121) @ np.linalg.qr(rng.normal(size=(120, 120)))[0]
    _, d, Vt = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
    loose, close = (ca.principal_components(Z, rank=5, passes=passes) for passes in (2, 8))
    np.testing.assert_allclose(close.variance, d[:5] ** 2 / 300, rtol=1e-9)
    np.testing.assert_allclose(np.abs(close.components @ Vt[:5].T), np.eye(5), atol=1e-6)
    np.testing.assert_allclose(close.explained, (d[:5] ** 2).sum() / (d**2).sum(), rtol=1e-9)
    np.testing.assert_allclose(close.components @ close.components.T, np.eye(5), atol=1e-12)
    assert close.errors.max() < 1e-4 * loose.errors.max()
    # errors say how far components are from eigenvectors
    G = np.cov(Z.T, ddof=0)
    off = np.linalg.norm(G @ loose.components.T - loose.components.T * loose.variance, axis=0) / loose.variance[0]
    np.testing.assert_allclose(loose.errors, off, atol=1e-12)


def test_sparse_rows_and_files_are_the_same_rows(tmp_path):
    X = sparse.random(200, 300, 0.05, "csr", random_state=0)
    expected = ca.principal_components(X.toarray(), rank=8)
    np.save(tmp_path / "Z.npy", X.toarray())
    for Z in (X, X.tocsc(), tmp_path / "Z.npy", ca.open_rows(X.toarray(), chunk_rows=7)):
        found = ca.principal_components(Z, rank=8)
        np.testing.assert_allclose(found.components, expected.components, atol=1e-8)
        np.testing.assert_allclose(found.transform(Z), expected.transform(X.toarray()), atol=1e-8)
        np.testing.assert_allclose(found.explained, expected.explained, rtol=1e-10)
    path = expected.transform(tmp_path / "Z.npy", out=tmp_path / "scores.npy")
    np.testing.assert_allclose(np.load(path), expected.transform(X), atol=1e-12)


def test_float32_rows_are_summed_in_float64():
    Z, _ = low_rank(k=300)
    single = Z.astype(np.float32)
    found, expected = ca.principal_components(single, 6), ca.principal_components(single.astype(float), 6)
    np.testing.assert_allclose(found.variance, expected.variance, rtol=1e-12)
    assert found.transform(single).dtype == np.float32


def test_what_cannot_be_reduced_is_refused():
    Z, _ = low_rank(k=30)
    for wrong, kwargs, text in (
        (Z[:1], {"rank": 3}, "2 rows"),
        (np.ones((5, 4)), {"rank": 3}, "vary"),
        (Z, {"rank": 0}, "rank"),
        (Z, {"rank": 3, "passes": 1}, "passes"),
        (np.where(Z[3, 2] == Z, np.nan, Z), {"rank": 3}, "NaN|finite|missing"),
    ):
        with pytest.raises(ValueError, match=text):
            ca.principal_components(wrong, **kwargs)
    few = ca.principal_components(Z, rank=3)
    with pytest.raises(ValueError, match="30"):
        few.transform(Z[:, :20])
    with pytest.raises(ValueError, match="3"):
        few.back(np.eye(4))


@pytest.mark.parametrize(
    ("limit", "got"), [("machine_bytes", r"a machine with 0\.005 GB: "), ("free_bytes", r"of which 0\.005 are free: ")]
)
def test_sums_that_cannot_fit_into_memory_are_refused(monkeypatch, limit, got):
    monkeypatch.setattr(room, limit, lambda: 5e6)
    monkeypatch.setattr(room, "SMALL", 0)
    Z, Y = low_rank(k=600)
    with pytest.raises(ValueError, match=got + ".*principal_components"):
        ca.LatentAligner().fit(Z, Y)
    ca.LatentAligner().fit(ca.principal_components(Z, rank=20).transform(Z), Y)
