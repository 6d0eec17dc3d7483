"""Sparse views stay sparse with confounders, missing views and missing covariates, and give the fit of dense ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covalign as ca
from covalign.factor import sparse_fit
from covalign.factor.inference.engines import Sparse
from covalign.factor.inference.sparse_gaps import SparseGapped
from covalign.factor.inference.sparse_rows import SparseX, squares_left

N, SIZES = 60, {"rna": 90, "atac": 60}


def counts(n=N, seed=0, sizes=SIZES):
    """Counts with the structure of four factors, covariates (one a category), and confounders; a constant feature."""
    rng = np.random.default_rng(seed)
    Z, batch = rng.normal(size=(n, 4)), rng.integers(0, 3, n)
    views = {}
    for name, d in sizes.items():
        rate = np.exp(0.7 * Z @ rng.normal(size=(4, d)) + 0.5 * rng.normal(size=(3, d))[batch] - 0.5)
        views[name] = np.log1p(rng.poisson(rate)).astype(float)
    views["rna"][:, 7] = 0
    Y = Z[:, :2] + 0.5 * rng.normal(size=(n, 2)) + batch[:, None]
    C = pd.DataFrame({"batch": [f"b{i}" for i in batch], "age": rng.normal(size=n)})
    return views, pd.DataFrame(Y, columns=["dose", "time"]), C


def case(name):
    """Dense views with NaN, sparse ones (rows of NaN where a sample lacks a view), Y and confounders."""
    views, Y, C = counts()
    if "views" in name:
        views["rna"][3:9] = np.nan
        views["atac"][[0, 7, 8, 40]] = np.nan
    if "labels" in name:
        Y.loc[10:15, "dose"] = np.nan
    thin = {view: sparse.csr_matrix(values) for view, values in views.items()}
    return views, thin, Y, {"confounders": C} if "confounders" in name else {}


CASES = ["confounders", "views", "labels", "views labels", "views confounders", "views labels confounders"]


def model(**more):
    return ca.InformedFactorAnalysis(5, **{"supervision": 1, "max_iter": 40, "folds": 0, **more})


@pytest.fixture(autouse=True)
def no_dense_table(monkeypatch):
    """Small tables would become dense, and whole tables must not."""
    monkeypatch.setattr(sparse_fit, "SMALL_BYTES", 0)


@pytest.fixture(params=CASES)
def both(request):
    views, thin, Y, more = case(request.param)
    return model().fit(thin, Y, **more), model().fit(views, Y, **more)


def test_fits_are_those_of_dense_views(both):
    fa, need = both
    assert isinstance(fa._problem.data, Sparse | SparseGapped)
    np.testing.assert_allclose(fa.elbo_, need.elbo_, rtol=1e-9)
    assert np.all(np.diff(fa.elbo_) > -1e-7 * abs(fa.elbo_[-1]))
    np.testing.assert_allclose(fa.beta_, need.beta_, atol=1e-7)
    for view in SIZES:
        np.testing.assert_allclose(fa.loadings_[view], need.loadings_[view], atol=1e-6)
        np.testing.assert_allclose(fa.noise_precision_[view], need.noise_precision_[view], rtol=1e-6)
    np.testing.assert_allclose(fa.factors_, need.factors_, atol=1e-6)
    np.testing.assert_allclose(fa.factor_std_, need.factor_std_, atol=1e-6)
    np.testing.assert_allclose(fa.alignment_, need.alignment_, atol=1e-7)
    np.testing.assert_allclose(fa.at(0.0).coupling_, need.at(0.0).coupling_, atol=1e-7)
    pd.testing.assert_frame_equal(fa.variance_explained(), need.variance_explained(), atol=1e-7)
    pd.testing.assert_frame_equal(fa.missing_frame(), need.missing_frame())


def test_the_engine_has_the_sums_of_a_dense_one(both):
    fa, need = both
    rng = np.random.default_rng(0)
    data, dense = fa._problem.data, need._problem.data
    A, Z = rng.normal(size=(150, 3)), rng.normal(size=(N, 3))
    np.testing.assert_allclose(data.X @ A, dense.X @ A, atol=1e-9)
    np.testing.assert_allclose(data.X.T @ Z, dense.X.T @ Z, atol=1e-9)
    np.testing.assert_allclose(data.xx, dense.xx, atol=1e-9)
    np.testing.assert_allclose(data.X.rows, dense.X @ dense.X.T, atol=1e-9)
    if isinstance(data, SparseGapped):
        np.testing.assert_array_equal(data.cells_of(np.arange(N)), dense.observed)
        for name in ("x", "counts", "column_counts", "between", "label_counts"):
            np.testing.assert_allclose(getattr(data, name), getattr(dense, name), atol=1e-9)


def test_saved_models_and_new_samples(both, tmp_path):
    fa, need = both
    fa.save(tmp_path / "model.covalign")
    again = ca.load(tmp_path / "model.covalign")
    np.testing.assert_allclose(again.at(0.3).T_, fa.at(0.3).T_, atol=1e-9)
    views, _, C = counts(n=8, seed=5)
    more = {"confounders": C} if fa.confounder_names_ else {}
    new = {"rna": sparse.csr_matrix(views["rna"])}
    placed = need.transform({"rna": views["rna"]}, **more)
    for one in (fa, again):
        np.testing.assert_allclose(one.transform(new, **more), placed, atol=1e-6)


def test_supervision_adds_the_covariates_as_a_view():
    views, thin, Y, more = case("views labels")
    fa, need = (model(supervision=4).fit(X, Y, **more) for X in (thin, views))
    np.testing.assert_allclose(fa.elbo_, need.elbo_, rtol=1e-9)
    np.testing.assert_allclose(fa.factors_, need.factors_, atol=1e-6)


@pytest.mark.parametrize("posterior", ["full", "mean_field"])
def test_sparse_views_are_joined_by_name(posterior):
    """AnnData whose cells differ: views over the union of the cells, as tables are."""
    anndata = pytest.importorskip("anndata")
    views, Y, _ = counts()
    names = pd.Index([f"cell{i}" for i in range(N)])
    Y = Y.set_axis(names)
    some = {"rna": np.arange(0, 50), "atac": np.random.default_rng(1).permutation(np.arange(8, N))}
    thin = {
        v: anndata.AnnData(sparse.csr_matrix(views[v][at]), pd.DataFrame(index=names[at])) for v, at in some.items()
    }
    tables = {v: pd.DataFrame(views[v][at], index=names[at]) for v, at in some.items()}
    fa, need = (model(posterior=posterior).fit(X, Y) for X in (thin, tables))
    assert isinstance(fa._problem.data, SparseGapped)
    order = pd.Index(fa._table.samples or names)
    np.testing.assert_allclose(fa.elbo_, need.elbo_, rtol=1e-9)
    assert len(order) == N


def test_a_table_of_many_rows_stays_sparse(monkeypatch):
    """More samples than features, but too many features for sums of all pairs."""
    monkeypatch.setattr(sparse_fit, "LARGE", 100)
    views, Y, C = counts(n=220)
    thin = {view: sparse.csr_matrix(np.where(values > 1.2, values, 0)) for view, values in views.items()}
    fa = model().fit(thin, Y, confounders=C)
    assert isinstance(fa._problem.data, Sparse)
    need = model().fit({view: S.toarray() for view, S in thin.items()}, Y, confounders=C)
    np.testing.assert_allclose(fa.elbo_[-1], need.elbo_[-1], rtol=1e-7)


def test_many_rows_start_without_a_matrix_of_rows_by_rows():
    views, *_ = counts(n=100)
    X = SparseX.of([sparse.csr_matrix(views["rna"])], views["rna"].mean(axis=0), np.ones(90))
    values, vectors = X.leading(3)
    expected, exact = np.linalg.eigh(X.rows)
    np.testing.assert_allclose(values, expected[::-1][:3], rtol=1e-3)
    assert np.all(np.abs(np.sum(vectors * exact[:, ::-1][:, :3], axis=0)) > 0.99)


def test_squares_of_features_that_are_never_zero_keep_their_digits():
    rng = np.random.default_rng(0)
    X = np.column_stack([1e6 + rng.normal(size=50), rng.poisson(0.3, 50), np.zeros(50)])
    L, R = np.column_stack([np.ones(50), rng.normal(size=50)]), np.vstack([X.mean(axis=0), rng.normal(size=3)])
    np.testing.assert_allclose(squares_left(sparse.csr_matrix(X), L, R), np.sum((X - L @ R) ** 2, axis=0), rtol=1e-10)


def test_gaps_within_a_view_become_dense():
    views, thin, Y, _ = case("labels")
    views["rna"][2, 3] = np.nan
    thin["rna"] = sparse.csr_matrix(views["rna"])
    fa, need = (model().fit(X, Y) for X in (thin, views))
    assert not isinstance(fa._problem.data, SparseGapped)
    np.testing.assert_allclose(fa.elbo_, need.elbo_, rtol=1e-9)


def test_faults_are_named():
    _, thin, Y, more = case("confounders")
    Y = Y.assign(copy=more["confounders"]["age"] * 2)
    with pytest.raises(ValueError, match="copy"):
        model().fit(thin, Y, **more)
    thin["atac"] = sparse.csr_matrix(np.full((N, 60), np.nan))
    with pytest.raises(ValueError, match="view 'atac'"):
        model().fit(thin, Y)
