"""The aligner on rows in dask: every number it shows is that of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign.stream import dask_reduction
from tests import late
from tests.conftest import correlated, embedding

da = late.importorskip("dask.array", reason="dask is not installed")
dd = late.importorskip("dask.dataframe", reason="dask is not installed")
late.importorskip("distributed", reason="dask.distributed is not installed")
pytestmark = pytest.mark.usefixtures("default_client")


@pytest.fixture(autouse=True)
def small_runs(monkeypatch):
    """Many tasks, although the data are small."""
    monkeypatch.setattr(dask_reduction, "LEAST_BYTES", 2**14)
    monkeypatch.setattr(dask_reduction, "MOST_BYTES", 2**14)


def assert_same_fit(a, b):
    np.testing.assert_allclose(a.moments_.cov_z, b.moments_.cov_z, rtol=1e-10, atol=1e-12)
    assert a.shrinkage_ == b.shrinkage_
    pd.testing.assert_frame_equal(a.shrinkage_path_, b.shrinkage_path_, rtol=1e-8)
    pd.testing.assert_frame_equal(a.summary(), b.summary(), rtol=1e-8)
    np.testing.assert_allclose(a.transform_, b.transform_, rtol=1e-7, atol=1e-9)
    assert a.n_rows_ == b.n_rows_


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fit_and_transform(dtype):
    Z, Y = embedding(0, 400, 50, 3)
    Z = Z.astype(dtype)
    lazy = da.from_array(Z, chunks=(60, 20))
    here, there = ca.LatentAligner().fit(Z, Y), ca.LatentAligner().fit(lazy, Y)
    assert_same_fit(there, here)
    turned = there.transform(lazy)
    assert isinstance(turned, da.Array)
    assert turned.dtype == dtype
    np.testing.assert_allclose(
        turned.compute(), here.transform(Z), rtol=1e-4 if dtype == np.float32 else 1e-7, atol=1e-5
    )


def test_gaps_and_a_shuffled_table():
    Z, Y = correlated(1, n=300)
    Y[::7, 1] = np.nan
    names = [f"s{i:03}" for i in range(300)]
    Z, Y = pd.DataFrame(Z, names).add_prefix("z"), pd.DataFrame(Y, names).add_prefix("y")
    lazy, shuffled = dd.from_pandas(Z, npartitions=5), Y.sample(frac=1, random_state=0)
    for missing in ("pairs", "drop"):
        here = ca.LatentAligner(missing=missing).fit(Z, Y)
        there = ca.LatentAligner(missing=missing).fit(lazy, shuffled)
        assert_same_fit(there, here)
        assert there.n_pairs_.equals(here.n_pairs_)
    with pytest.raises(ValueError, match="missing"):
        ca.LatentAligner(missing="raise").fit(lazy, shuffled)


def test_confounders():
    Z, Y = correlated(2, n=300)
    batch = pd.DataFrame({"batch": np.array(["a", "b", "c"])[np.arange(300) % 3]})
    lazy = da.from_array(Z, chunks=(70, -1))
    here, there = (ca.LatentAligner().fit(rows, Y, confounders=batch) for rows in (Z, lazy))
    assert_same_fit(there, here)
    turned = there.transform(lazy, confounders=batch).compute()
    np.testing.assert_allclose(turned, here.transform(Z, confounders=batch), rtol=1e-7, atol=1e-9)


def test_covariates_in_dask():
    Z, Y = correlated(3, n=300)
    Y = pd.DataFrame(Y).add_prefix("y").assign(stage=pd.Categorical(np.array(["a", "b", "c"])[np.arange(300) % 3]))
    Z = pd.DataFrame(Z).add_prefix("z")
    here = ca.LatentAligner().fit(Z, Y)
    there = ca.LatentAligner().fit(dd.from_pandas(Z, npartitions=4), dd.from_pandas(Y, npartitions=4))
    assert there.covariate_names_ == here.covariate_names_
    assert_same_fit(there, here)


@pytest.mark.parametrize("folds", [3, 5])
def test_held_out_frontier(folds):
    Z, Y = embedding(4, 400, 30, 3)
    here = ca.cross_validated_frontier(Z, Y, [0, 0.5, 1], folds)
    there = ca.cross_validated_frontier(da.from_array(Z, chunks=(90, -1)), Y, [0, 0.5, 1], folds)
    pd.testing.assert_frame_equal(there, here, rtol=1e-7)
    assert there.attrs["fold_shrinkages"] == here.attrs["fold_shrinkages"]
