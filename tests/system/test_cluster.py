"""Rows in dask: the answer of rows in memory, on worker processes, and also when one of them is killed meanwhile."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covalign as ca
from covalign._core.threads import blas, limited
from covalign.moments import cluster, gap_accumulator
from covalign.moments.moments import Moments
from covalign.stream import dask_reduction, is_dask
from tests import late
from tests.conftest import correlated, thorough

da = late.importorskip("dask.array", reason="dask is not installed")
dd = late.importorskip("dask.dataframe", reason="dask is not installed")
distributed = late.importorskip("distributed", reason="dask.distributed is not installed")


@pytest.fixture(scope="module")
def client(two_workers):
    """Two worker processes."""
    with distributed.Client(two_workers, set_as_default=False) as client:
        yield client


@pytest.fixture(autouse=True)
def small_runs(monkeypatch):
    """Many tasks, although the data are small."""
    monkeypatch.setattr(dask_reduction, "LEAST_BYTES", 2**12)
    monkeypatch.setattr(dask_reduction, "MOST_BYTES", 2**12)


def assert_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert type(a) is type(b)
        assert np.array_equal(a.n_pairs, b.n_pairs)
        a, b = a.completed(), b.completed()
        assert (a.n, a.covariate_names) == (b.n, b.covariate_names)
        for name in ("mean_z", "mean_y", "cov_z", "cov_zy", "cov_y"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-11, atol=1e-12)


def gappy(Y):
    """Gaps in the middle: some chunks are complete."""
    Y = Y.copy()
    Y[150:300:3, 0] = Y[200:250, 2] = np.nan
    return Y


# -- one answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1e6, *thorough(0.0)])
def test_workers_find_what_memory_finds(client, offset):
    Z, Y = correlated(0, n=700, k=40, offset=offset)
    rows = da.from_array(Z, chunks=(70, 15))
    for table in (Y, da.from_array(Y, chunks=(100, 2))):
        found = cluster.fold_moments(rows, table, 5, client=client)
        for a, b in zip(found, gap_accumulator.fold_moments(Z, Y, 5), strict=True):
            assert a.n == b.n
            np.testing.assert_allclose(a.mean_z, b.mean_z, rtol=1e-14, atol=1e-13)
            for name in ("cov_z", "cov_zy", "cov_y"):
                np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("scheduler", ["threads", *thorough("sync")])
@pytest.mark.parametrize("chunks", [1, 7, 700, (1, 0, 300, 399)])
def test_chunks_and_schedulers_do_not_matter(scheduler, chunks):
    import dask

    Z, Y = correlated(1, n=700)
    with dask.config.set(scheduler=scheduler):
        found = cluster.fold_moments(da.from_array(Z, chunks=(chunks, -1)), gappy(Y), 4)
    assert_same(found, gap_accumulator.fold_moments(Z, gappy(Y), 4))


def test_equal_to_the_bit_whoever_does_it(client):
    import dask

    Z, Y = correlated(2, n=2000, k=20)
    rows = da.from_array(Z, chunks=(50, 20))
    with dask.config.set(scheduler="sync"):
        alone = cluster.fold_moments(rows, Y, 3)
    for a, b in zip(alone, cluster.fold_moments(rows, Y, 3, client=client), strict=True):
        assert np.array_equal(a.cov_z, b.cov_z)
        assert np.array_equal(a.mean_y, b.mean_y)


def test_gaps_blocks_and_dropping(client):
    Z, Y = correlated(3, n=600)
    Y = gappy(Y)
    rows, blocks = da.from_array(Z, chunks=(100, -1)), ((0,), (1,), (2,))
    assert_same(cluster.fold_moments(rows, Y, 3, blocks, client=client), gap_accumulator.fold_moments(Z, Y, 3, blocks))
    there = ~np.isnan(Y).any(axis=1)
    dropped = cluster.fold_moments(rows, Y, 3, drop=True, client=client)
    assert_same(dropped, gap_accumulator.fold_moments(Z[there], Y[there], 3))


def test_confounders_ride_along():
    Z, Y = correlated(4, n=300)
    C = np.random.default_rng(4).standard_normal((300, 2))
    both = cluster.beside(da.from_array(Z, chunks=(40, 3)), C)
    np.testing.assert_array_equal(both.compute(scheduler="sync"), np.hstack([Z, C]))
    assert_same(
        cluster.fold_moments(both, Y, 4, n_confounders=2),
        gap_accumulator.fold_moments(np.hstack([Z, C]), Y, 4, n_confounders=2),
    )
    changed = cluster.fold_moments(cluster.beside(da.from_array(Z, chunks=(40, 3)), 2 * C), Y, 4, n_confounders=2)
    assert [m.n for m in changed] == [m.n for m in gap_accumulator.fold_moments(Z, Y, 4)]  # no say in the folds


def test_sparse_and_single_precision_blocks():
    Z, Y = correlated(5, n=400, k=8)
    Z = np.where(np.abs(Z) > 2, Z, 0).astype(np.float32)
    dense = da.from_array(Z, chunks=(50, 4))
    for rows in (dense, da.from_array(Z, chunks=(50, 8)).map_blocks(sparse.csr_matrix)):
        assert_same(cluster.fold_moments(rows, Y, 3), gap_accumulator.fold_moments(Z, Y, 3))


def test_what_a_cluster_holds_already_is_summed_there(client):
    Z, Y = correlated(6, n=500)
    held = client.persist(da.from_array(Z, chunks=(50, -1)) + 0.0)
    assert_same(cluster.fold_moments(held, Y, 2, client=client), gap_accumulator.fold_moments(Z, Y, 2))


def test_chunks_that_share_work_do_it_once():
    import dask

    calls = []

    def source():
        calls.append(1)
        return correlated(7, n=200)[0]

    Z, Y = correlated(7, n=200)
    whole = dask.delayed(source)()
    rows = da.concatenate([da.from_delayed(whole[i : i + 20], (20, 6), float) for i in range(0, 200, 20)])
    with dask.config.set(scheduler="sync"):
        assert_same(cluster.fold_moments(rows, Y, 2), gap_accumulator.fold_moments(Z, Y, 2))
    assert len(calls) == 1


# -- DataFrames -------------------------------------------------------------------------------------------------------


def frames(seed, n=300):
    Z, Y = correlated(seed, n=n)
    names = [f"s{i:04}" for i in range(n)]
    return pd.DataFrame(Z, names).add_prefix("z"), pd.DataFrame(Y, names).add_prefix("y")


def test_a_frame_is_matched_by_index(client):
    Z, Y = frames(8)
    shuffled = Y.sample(frac=1, random_state=0)
    found = cluster.fold_moments(dd.from_pandas(Z, npartitions=7), shuffled, 3, client=client)
    assert_same(found, gap_accumulator.fold_moments(Z, Y, 3))
    with pytest.raises(ValueError, match="row name"):
        cluster.fold_moments(dd.from_pandas(Z, npartitions=7), Y.rename(index={"s0003": "nobody"}), 3)


def test_partitions_that_count_from_zero_are_matched_by_position(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    Z, Y = (frame.reset_index(drop=True) for frame in frames(9))
    for i in range(3):
        Z[100 * i : 100 * i + 100].to_parquet(tmp_path / f"{i}.parquet", index=False)
    rows = dd.read_parquet(tmp_path)
    assert rows.npartitions > 1
    assert_same(cluster.fold_moments(rows, Y, 3), gap_accumulator.fold_moments(Z, Y, 3))
    with pytest.raises(ValueError, match="same number of rows"):
        cluster.fold_moments(rows, Y[:-1], 3)


def test_few_columns_of_wide_files_stay_in_step(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    Z, Y = frames(9)
    wide = pd.concat([Z, Y, pd.DataFrame(0.0, Z.index, [f"w{i}" for i in range(40)])], axis=1)
    for i in range(6):
        wide[50 * i : 50 * i + 50].to_parquet(tmp_path / f"{i}.parquet")
    both = dd.read_parquet(tmp_path)
    expected = gap_accumulator.fold_moments(Z, Y, 3)
    assert_same(cluster.fold_moments(both[list(Z)], both[list(Y)], 3), expected)
    assert_same(cluster.fold_moments(both[list(Z)], Y.sample(frac=1, random_state=0), 3), expected)


def test_both_in_dask():
    Z, Y = frames(10)
    rows, table = dd.from_pandas(Z, npartitions=6), dd.from_pandas(Y, npartitions=6)
    assert_same(cluster.fold_moments(rows, table, 3), gap_accumulator.fold_moments(Z, Y, 3))
    assert_same(cluster.fold_moments(rows, table["y1"], 3), gap_accumulator.fold_moments(Z, Y["y1"], 3))
    with pytest.raises(ValueError, match="same partitions, got 6 and 5"):
        cluster.fold_moments(rows, dd.from_pandas(Y, npartitions=5), 3)
    shifted = dd.concat([dd.from_pandas(Y[:40], npartitions=1), dd.from_pandas(Y[40:], npartitions=5)])
    with pytest.raises(ValueError, match=r"every partition, got \d+ and \d+ in partition \d"):
        cluster.fold_moments(rows, shifted, 3)


def test_categories_are_coded_in_the_cluster():
    _, Y = frames(11)
    Y = Y.assign(stage=pd.qcut(Y["y0"], 3, labels=["a", "b", "c"]).astype(str).astype("category"), flag=Y["y1"] > 0)
    table = dd.from_pandas(Y, npartitions=4)
    encoding = cluster.learn(table)
    coded = cluster.encoded(table, encoding).compute(scheduler="sync")
    pd.testing.assert_frame_equal(coded, encoding.apply(Y), check_index_type=False)
    assert encoding.names == ["y0", "y1", "y2", "stage_b", "stage_c", "flag"]
    every = cluster.learn(table, drop_first=False)
    assert every.names == ["y0", "y1", "y2", "stage_a", "stage_b", "stage_c", "flag"]
    with pytest.raises(ValueError, match=r"'stage'.*categorize"):
        cluster.learn(dd.from_pandas(Y.astype({"stage": str}), npartitions=4))


# -- lazy -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_transform_is_lazy_and_keeps_the_precision(dtype):
    def refuse(block):
        raise AssertionError("not lazy")

    Z = (10 * correlated(12, n=90)[0]).astype(dtype)
    mean, T = Z.mean(axis=0, dtype=float), np.random.default_rng(0).standard_normal((2, 6))
    assert cluster.lazy_transform(
        da.zeros((90, 6), chunks=(20, 2)).map_blocks(refuse, dtype=float), mean, T
    ).npartitions
    lazy = cluster.lazy_transform(da.from_array(Z, chunks=(20, 4)), mean, T)
    turned = lazy.compute(scheduler="sync")
    assert lazy.chunks == ((20, 20, 20, 20, 10), (2,))
    assert lazy.dtype == turned.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_allclose(turned, (Z - mean) @ T.T, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-4)
    with pytest.raises(ValueError, match="needs 6 columns"):
        cluster.lazy_transform(da.zeros((9, 5)), mean, T)


def test_transform_of_a_frame():
    Z, _ = frames(13)
    lazy = cluster.lazy_transform(dd.from_pandas(Z, npartitions=3), np.zeros(6), np.eye(6)[:2])
    np.testing.assert_array_equal(lazy.compute(scheduler="sync"), Z.to_numpy()[:, :2])


def test_sums_have_all_products(client):
    X, Y = correlated(14, n=300)
    (m,) = cluster.fold_moments(da.from_array(X, chunks=(50, -1)), Y, 1, client=client)
    H = np.hstack([X, Y])
    joint = np.block([[m.cov_z, m.cov_zy], [m.cov_zy.T, m.cov_y]])
    mean = np.concatenate([m.mean_z, m.mean_y])
    np.testing.assert_allclose(m.n * (joint + np.outer(mean, mean)), H.T @ H, rtol=1e-11, atol=1e-9)


# -- what can go wrong ------------------------------------------------------------------------------------------------


def test_a_number_that_is_not_finite_is_found(client):
    Z, Y = correlated(15, n=300)
    Z[231, 4] = np.nan
    with pytest.raises(ValueError, match=r"(?i)nan in row 231, column '?4"):
        cluster.fold_moments(da.from_array(Z, chunks=(50, -1)), Y, 2, client=client)
    with pytest.raises(ValueError, match=r"(?i)partition 4.*nan in row 31, column '?4"):
        cluster.fold_moments(dd.from_pandas(pd.DataFrame(Z), npartitions=6), da.from_array(Y, chunks=(50, -1)), 2)


def test_lengths_and_emptiness():
    with pytest.raises(ValueError, match="same number of rows"):
        cluster.fold_moments(da.zeros((10, 2)), da.zeros((9, 1)), 2)
    with pytest.raises(ValueError, match="at least one row"):
        cluster.fold_moments(da.zeros((0, 2)), np.zeros((0, 1)), 2)
    with pytest.raises(ValueError, match=r"column 'b'.*"):
        cluster.fold_moments(dd.from_pandas(pd.DataFrame({"a": [1.0], "b": ["x"]}), npartitions=1), np.zeros(1), 2)


def test_threads_of_blas_are_given_back():
    def threads():
        return [library["num_threads"] for library in blas().info()]

    before, gate = threads(), threading.Barrier(2)

    def task(first):
        with limited():
            gate.wait(10)
            if first:
                return
            time.sleep(0.05)  # the other has left

    both = [threading.Thread(target=task, args=(first,)) for first in (True, False)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert threads() == before
    with limited():
        assert set(threads()) == {1}
    assert threads() == before


def chunk_that_waits(folder, block_info=None):
    """A chunk of rows. Who has computed one before leaves word, and waits until it is told to go on."""
    (start, stop), _ = block_info[None]["array-location"]
    folder, pid = Path(folder), os.getpid()
    if list(folder.glob(f"done * {pid}")) and not (folder / "go").exists():
        (folder / f"waits {start} {pid}").touch()
        while not (folder / "go").exists():
            time.sleep(0.02)
    (folder / f"done {start} {pid}").touch()
    return correlated(16, n=1000, k=12)[0][start:stop]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("kills", [1, *thorough(2)])
def test_workers_killed_in_the_middle_leave_no_trace(client, tmp_path, kills):
    Z, Y = correlated(16, n=1000, k=12)
    rows = da.map_blocks(chunk_that_waits, str(tmp_path), chunks=((100,) * 10, (12,)), dtype=float)
    found = []
    work = threading.Thread(target=lambda: found.append(cluster.fold_moments(rows, Y, 3, client=client)))
    work.start()
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("waits *"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    waiting = [tuple(map(int, path.name.split()[1:])) for path in tmp_path.glob("waits *")]
    known = [path.name.split()[1] for path in tmp_path.glob("done *")]
    assert len(waiting) == len(known) == 2
    assert work.is_alive()
    for start, pid in waiting[:kills]:
        assert pid != os.getpid()
        os.kill(pid, signal.SIGKILL)
        assert not (tmp_path / f"done {start} {pid}").exists()
    (tmp_path / "go").touch()
    work.join(120)
    assert_same(found[0], gap_accumulator.fold_moments(Z, Y, 3))
    for start, pid in waiting[:kills]:  # what they were at was done by somebody else
        assert list(tmp_path.glob(f"done {start} *"))
        assert not (tmp_path / f"done {start} {pid}").exists()
    if kills == 2:  # and what only they knew was computed again; one alone may have sent its share to the other before
        assert all(len(list(tmp_path.glob(f"done {start} *"))) == 2 for start in known)


def test_a_client_that_is_not_the_default(client):
    """Estimators have no argument for it: ``with client.as_current()``."""
    import dask

    Z, Y = correlated(17, n=300)
    rows = da.from_array(Z, chunks=(50, -1))
    where = dask.delayed(os.getpid, pure=False)
    assert cluster.compute(where())[0] == os.getpid()
    with client.as_current():
        assert cluster.compute(where())[0] != os.getpid()
        there = ca.LatentAligner().fit(rows, Y)
    np.testing.assert_allclose(there.transform_, ca.LatentAligner().fit(Z, Y).transform_, rtol=1e-8)


def test_is_dask():
    assert is_dask(da.zeros(3))
    assert is_dask(dd.from_pandas(pd.DataFrame({"a": [1]}), npartitions=1))
    assert not is_dask(np.zeros(3))
    assert not is_dask(Moments)
