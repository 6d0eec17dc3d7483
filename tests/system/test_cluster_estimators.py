"""Both estimators on rows in dask: summed and placed where the rows lie, every number that of the same rows in memory.

They are in one file because they share a cluster, which takes longer to start than most of these tests.
"""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.factor import dask_views as lazy
from covalign.stream import dask_reduction, is_dask
from covalign.stream.dask_rows import DaskArrayRows, DaskFrameRows
from tests import late
from tests.conftest import correlated, embedding

da = late.importorskip("dask.array", reason="dask is not installed")
dd = late.importorskip("dask.dataframe", reason="dask is not installed")
late.importorskip("distributed", reason="dask.distributed is not installed")
pytestmark = pytest.mark.usefixtures("default_client")

N, K = 400, 5


@pytest.fixture(autouse=True)
def small_runs(monkeypatch):
    """Many tasks, although the data are small; and rows must not come here."""
    monkeypatch.setattr(dask_reduction, "LEAST_BYTES", 2**13)
    monkeypatch.setattr(dask_reduction, "MOST_BYTES", 2**13)
    for kind in (DaskArrayRows, DaskFrameRows):
        monkeypatch.setattr(kind, "_compute", lambda *_: pytest.fail("rows travel"))


# -- the aligner ------------------------------------------------------------------------------------------------------


def assert_same_aligner(a, b):
    np.testing.assert_allclose(a.moments_.cov_z, b.moments_.cov_z, rtol=1e-10, atol=1e-12)
    assert a.shrinkage_ == b.shrinkage_
    pd.testing.assert_frame_equal(a.shrinkage_path_, b.shrinkage_path_, rtol=1e-8)
    pd.testing.assert_frame_equal(a.summary(), b.summary(), rtol=1e-8)
    np.testing.assert_allclose(a.transform_, b.transform_, rtol=1e-7, atol=1e-9)
    assert a.n_rows_ == b.n_rows_


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_aligner_fits_and_transforms(dtype):
    Z, Y = embedding(0, 400, 50, 3)
    Z = Z.astype(dtype)
    lazy = da.from_array(Z, chunks=(60, 20))
    here, there = ca.LatentAligner().fit(Z, Y), ca.LatentAligner().fit(lazy, Y)
    assert_same_aligner(there, here)
    turned = there.transform(lazy)
    assert isinstance(turned, da.Array)
    assert turned.dtype == dtype
    np.testing.assert_allclose(
        turned.compute(), here.transform(Z), rtol=1e-4 if dtype == np.float32 else 1e-7, atol=1e-5
    )


def test_an_aligner_with_gaps_and_a_shuffled_table():
    Z, Y = correlated(1, n=300)
    Y[::7, 1] = np.nan
    names = [f"s{i:03}" for i in range(300)]
    Z, Y = pd.DataFrame(Z, names).add_prefix("z"), pd.DataFrame(Y, names).add_prefix("y")
    lazy, shuffled = dd.from_pandas(Z, npartitions=5), Y.sample(frac=1, random_state=0)
    for missing in ("pairs", "drop"):
        here = ca.LatentAligner(missing=missing).fit(Z, Y)
        there = ca.LatentAligner(missing=missing).fit(lazy, shuffled)
        assert_same_aligner(there, here)
        assert there.n_pairs_.equals(here.n_pairs_)
    with pytest.raises(ValueError, match="missing"):
        ca.LatentAligner(missing="raise").fit(lazy, shuffled)


def test_an_aligner_with_confounders():
    Z, Y = correlated(2, n=300)
    batch = pd.DataFrame({"batch": np.array(["a", "b", "c"])[np.arange(300) % 3]})
    lazy = da.from_array(Z, chunks=(70, -1))
    here, there = (ca.LatentAligner().fit(rows, Y, confounders=batch) for rows in (Z, lazy))
    assert_same_aligner(there, here)
    turned = there.transform(lazy, confounders=batch).compute()
    np.testing.assert_allclose(turned, here.transform(Z, confounders=batch), rtol=1e-7, atol=1e-9)


def test_an_aligner_with_covariates_in_dask():
    Z, Y = correlated(3, n=300)
    Y = pd.DataFrame(Y).add_prefix("y").assign(stage=pd.Categorical(np.array(["a", "b", "c"])[np.arange(300) % 3]))
    Z = pd.DataFrame(Z).add_prefix("z")
    here = ca.LatentAligner().fit(Z, Y)
    there = ca.LatentAligner().fit(dd.from_pandas(Z, npartitions=4), dd.from_pandas(Y, npartitions=4))
    assert there.covariate_names_ == here.covariate_names_
    assert_same_aligner(there, here)


@pytest.mark.parametrize("folds", [3, 5])
def test_the_held_out_frontier(folds):
    Z, Y = embedding(4, 400, 30, 3)
    here = ca.cross_validated_frontier(Z, Y, [0, 0.5, 1], folds)
    there = ca.cross_validated_frontier(da.from_array(Z, chunks=(90, -1)), Y, [0, 0.5, 1], folds)
    pd.testing.assert_frame_equal(there, here, rtol=1e-7)
    assert there.attrs["fold_shrinkages"] == here.attrs["fold_shrinkages"]


# -- informed factor analysis -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated():
    """Two views and covariates, with names."""
    s = ca.simulate.scenario("PN", n_samples=N, n_features=24, n_factors=K, n_covariates=3, random_state=0)
    names = [f"cell{i}" for i in range(N)]
    X = pd.DataFrame(s.X + 3, index=names, columns=[f"g{i}" for i in range(24)])
    return X.iloc[:, :15], X.iloc[:, 15:], pd.DataFrame(s.Y, index=names, columns=["a", "b", "c"])


@pytest.fixture
def tables(simulated):
    """Fits of them stop early, and say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield simulated


def partitioned(table: pd.DataFrame, count: int):
    return dd.from_pandas(table, npartitions=count, sort=False)


def model(**settings) -> InformedFactorAnalysis:
    """Few sweeps: rounding has no time to grow."""
    return InformedFactorAnalysis(K, **{"max_iter": 8, "tol": 0, **settings})


def holed(table: pd.DataFrame, seed: int, share: float = 0.03) -> pd.DataFrame:
    return table.mask(np.random.default_rng(seed).random(table.shape) < share)


def assert_same_fit(got, need, atol=1e-7):
    np.testing.assert_allclose(got.elbo_, need.elbo_, rtol=1e-9)
    np.testing.assert_allclose(got.beta_, need.beta_, atol=atol)
    for view in need.loadings_:
        np.testing.assert_allclose(got.loadings_[view], need.loadings_[view], atol=atol)


def test_a_fit_is_that_of_the_array(tables):
    X, Y = tables[0].to_numpy(), tables[2].to_numpy()
    there, here = model().fit(da.from_array(X, chunks=(70, 4)), Y), model().fit(X, Y)
    assert_same_fit(there, here)
    np.testing.assert_allclose(there.factors_, here.factors_, atol=1e-7)
    np.testing.assert_allclose(there.factor_std_, here.factor_std_, rtol=1e-6)
    np.testing.assert_allclose(there.alignment_, here.alignment_, atol=1e-7)
    again = pickle.loads(pickle.dumps(there))
    with pytest.raises(ValueError, match="rows"):
        again._means(again._state)


def test_views_in_chunks_of_their_own_and_covariates_by_name(tables):
    first, second, Y = tables
    views = {"rna": partitioned(first, 5), "protein": da.from_array(second.to_numpy(), chunks=(90, -1))}
    shuffled = Y.sample(frac=1, random_state=1)
    there, here = model().fit(views, shuffled), model().fit({"rna": first, "protein": second}, Y)
    assert_same_fit(there, here)
    assert there.top_features(0, view="rna")["feature"].str.startswith("g").all()
    np.testing.assert_allclose(there.factors_, here.factors_, atol=1e-7)


def test_covariates_in_dask(tables):
    X, _, Y = tables
    there = model().fit(partitioned(X, 4), partitioned(Y, 3))
    assert_same_fit(there, model().fit(X, Y))
    assert there.covariate_names_ == ["a", "b", "c"]


def test_gaps(tables, monkeypatch):
    X, Y = holed(tables[0], 0), holed(tables[2], 1, 0.1)
    chunks = da.from_array(X.to_numpy(), chunks=(64, -1))
    there, here = (
        model(supervision=1).fit(*of) for of in ((chunks, Y.to_numpy()), (X, Y))
    )  # auto needs rows in memory
    assert_same_fit(there, here, 1e-6)
    got = there.transform(da.from_array(X.to_numpy(), chunks=(64, -1)), Y.to_numpy())
    np.testing.assert_allclose(got.compute(), here.transform(X, Y), atol=1e-6)
    monkeypatch.undo()  # with gaps, the fitted rows are placed here
    np.testing.assert_allclose(there.factors_, here.factors_, atol=1e-6)


def test_confounders(tables):
    X, _, Y = tables
    batch = pd.DataFrame({"batch": np.where(np.arange(N) % 3 == 0, "u", "v")}, index=X.index)
    shifted = X + 2.0 * (batch["batch"] == "u").to_numpy()[:, None]
    there = model().fit(partitioned(shifted, 4), Y, confounders=batch)
    here = model().fit(shifted, Y, confounders=batch)
    assert_same_fit(there, here)
    np.testing.assert_allclose(there.factors_, here.factors_, atol=1e-7)
    got = there.transform(partitioned(shifted, 3), Y, confounders=batch)
    np.testing.assert_allclose(got.compute(), here.transform(shifted, Y, confounders=batch), atol=1e-7)


def test_sparse_chunks(tables):
    X, Y = tables[0].to_numpy().copy(), tables[2].to_numpy()
    X[X < 3] = 0
    chunks = da.from_array(X, chunks=(80, -1)).map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 0)))
    there = model().fit(chunks, Y)
    assert_same_fit(there, model().fit(X, Y))
    np.testing.assert_allclose(there.factors_, model().fit(X, Y).factors_, atol=1e-7)


@pytest.mark.parametrize("realigned", [False, True])
def test_transform_stays_lazy(tables, realigned):
    first, second, Y = tables
    fa = model().fit({"rna": first, "protein": second}, Y)
    fa = fa.realign(lam=0.5) if realigned else fa
    views = {"rna": partitioned(first, 5), "protein": partitioned(second, 3)}
    together = fa.transform(views, Y)
    assert is_dask(together)
    assert together.shape == (N, K)
    np.testing.assert_allclose(together.compute(), fa.transform({"rna": first, "protein": second}, Y), atol=1e-9)
    mean, std = fa.transform({"protein": views["protein"]}, return_std=True)
    need_mean, need_std = fa.transform({"protein": second}, return_std=True)
    np.testing.assert_allclose(mean.compute(), need_mean, atol=1e-9)
    np.testing.assert_allclose(std.compute(), need_std, rtol=1e-9)
    backwards = views["rna"][list(first.columns[::-1])]  # features are found by name
    np.testing.assert_allclose(fa.transform({"rna": backwards}).compute(), fa.transform({"rna": first}), atol=1e-9)


def test_an_infinite_number_is_named(tables):
    X = tables[0].copy()
    X.iloc[233, 7] = np.inf
    fa = model().fit(tables[0], tables[2])
    for broken in (partitioned(X, 6), da.from_array(X.to_numpy(), chunks=(50, -1))):
        with pytest.raises(ValueError, match=r"(?i)inf in row 233, column '?(g7|7)"):
            model().fit(broken, tables[2].to_numpy())
    with pytest.raises(ValueError, match=r"(?i)inf in row 233, column '?g7"):
        fa.transform(partitioned(X, 6)).compute()


def summed(run, bounds, sizes):
    sums = lazy.ChunkViewSums(bounds, sizes, None, lazy.MOST_HELD)
    for chunk in run:
        sums.add_chunk(*chunk)
    return sums.finish()


def test_merging_leaves_what_goes_in_as_it_is(tables):
    """dask may run a merge again after a worker is lost, with the parts it still has."""
    X, Y = holed(tables[0], 2).to_numpy(), tables[2].to_numpy()
    sizes, bounds = lazy.Sizes(15, 0, 3), [slice(0, 15)]
    runs = [[(i, 100 * i, X[100 * i : 100 * i + 100], Y[100 * i : 100 * i + 100])] for i in range(4)]
    parts = [summed(run, bounds, sizes) for run in runs]
    once, twice = (lazy.gathered(lazy._merge_runs(parts)) for _ in range(2))
    assert once.n == twice.n == N
    assert [c.n for c in once.partial] == [c.n for c in twice.partial]
    np.testing.assert_array_equal(once.complete.cov_z, twice.complete.cov_z)
    whole = lazy.gathered(summed([(0, 0, X, Y)], bounds, sizes))
    assert sorted(c.n for c in whole.partial) == sorted(c.n for c in once.partial)
