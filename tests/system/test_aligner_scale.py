"""LatentAligner on rows that are not in memory: the same numbers from any source or batches; errors that say where."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import covalign as ca
from covalign.stream import Kept, open_rows, open_sink, reduction
from covalign.stream import memory as rows_memory
from tests.conftest import thorough

N, K, P = 157, 7, 3
GENES = [f"g{i}" for i in range(K)]


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((N, K)) @ rng.standard_normal((K, K)) + 2
    Y = pd.DataFrame(Z[:, :P] + rng.standard_normal((N, P)), columns=["dose", "age", "score"])
    Y["site"] = rng.choice(["a", "b", "c"], N)
    return Z, Y.set_axis([f"cell{i}" for i in range(N)], axis=0)


def frame(Z):
    return pd.DataFrame(Z, columns=GENES, index=[f"cell{i}" for i in range(len(Z))])


def npy(folder, Z):
    np.save(folder / "z.npy", Z)
    return folder / "z.npy"


def parquet(folder, Z):
    (folder / "z").mkdir()
    frame(Z)[:100].to_parquet(folder / "z" / "a.parquet")
    frame(Z)[100:].to_parquet(folder / "z" / "b.parquet")
    return folder / "z"


def zarr(folder, Z):
    import zarr

    array = zarr.create_array(folder / "z.zarr", shape=Z.shape, chunks=(20, 3), dtype=Z.dtype)
    array[:] = Z
    return folder / "z.zarr"


def anndata(folder, Z):
    import anndata

    return anndata.AnnData(frame(Z))


def h5ad(folder, Z):
    anndata(folder, Z).write_h5ad(folder / "z.h5ad")
    return folder / "z.h5ad"


def torch(folder, Z):
    return pytest.importorskip("torch").from_numpy(Z)


def npz(folder, Z):
    np.savez_compressed(folder / "z.npz", Z)
    return folder / "z.npz"


def mapped(folder, Z):
    return open_rows(np.load(npy(folder, Z), mmap_mode="r"), chunk_rows=50)


FORMATS = {
    "path to npy": npy,
    "npz": npz,
    "memmap": mapped,
    "parquet folder": parquet,
    "zarr": zarr,
    "anndata": anndata,
    "h5ad": h5ad,
    "torch": torch,
    "zarr object": lambda folder, Z: __import__("zarr").open(str(zarr(folder, Z)), mode="r"),
    "backed anndata": lambda folder, Z: __import__("anndata").read_h5ad(h5ad(folder, Z), backed="r"),
    "h5ad sparse": lambda folder, Z: sparse_h5ad(folder, Z),
}


def sparse_h5ad(folder, Z):
    import anndata

    anndata.AnnData(sparse.csr_matrix(Z)).write_h5ad(folder / "s.h5ad")
    return open_rows(folder / "s.h5ad", chunk_rows=13)


# -- the same numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", ["auto", *thorough(0.1)])
@pytest.mark.parametrize("name", FORMATS)
def test_any_source_gives_the_bits_of_an_array(tmp_path, data, name, shrinkage):
    Z, Y = data
    Z, Y = (Z.astype(np.float32) if name == "npz" else Z), Y.drop(columns="site").reset_index(drop=True).to_numpy()
    there = FORMATS[name](tmp_path, Z)
    whole = ca.LatentAligner(shrinkage=shrinkage).fit(Z, Y)
    al = ca.LatentAligner(shrinkage=shrinkage, chunk_rows=11).fit(there, Y)
    assert_array_equal(al.moments_.cov_z, whole.moments_.cov_z)
    assert_array_equal(al.transform_, whole.transform_)
    got = al.transform(there)
    assert isinstance(got, np.ndarray)
    assert got.dtype == Z.dtype
    assert_allclose(got, whole.transform(Z), rtol=1e-12 if Z.dtype == np.float64 else 1e-6, atol=1e-6)
    assert_array_equal(ca.Moments.from_arrays(there, Y).cov_zy, ca.Moments.from_arrays(Z, Y).cov_zy)


@pytest.mark.parametrize("missing", ["pairs", "drop"])
@pytest.mark.parametrize("rows", [7, *thorough(1, 10**6)])
def test_gaps_confounders_and_categories_from_a_file(tmp_path, data, missing, rows):
    Z, Y = data
    Y.iloc[3:40, 0] = np.nan
    Y.iloc[30:60, 1] = np.nan
    C = pd.DataFrame({"batch": np.random.default_rng(0).choice(["x", "y"], N), "depth": Z[:, -1] ** 2}, index=Y.index)
    settings = {"missing": missing, "keep_rest": True}
    whole = ca.LatentAligner(**settings).fit(frame(Z), Y, confounders=C)
    al = ca.LatentAligner(chunk_rows=rows, **settings).fit(parquet(tmp_path, Z), Y, confounders=C)
    assert al.covariate_names_ == whole.covariate_names_
    assert al.n_rows_ == whole.n_rows_
    assert_array_equal(al.transform_, whole.transform_)
    shuffled = C.sample(frac=1, random_state=0)  # matched by the names of the rows
    assert_allclose(al.transform(tmp_path / "z", confounders=shuffled), whole.transform(frame(Z), confounders=C))


def test_lanes_over_a_file_are_the_lanes_over_an_array(tmp_path, data, monkeypatch):
    monkeypatch.setattr(reduction, "FEW", 0)
    monkeypatch.setattr(reduction.Size, "threads", (3, 3))
    monkeypatch.setattr("covalign.moments.block_sizes.BLOCK_BYTES", 0)
    rng = np.random.default_rng(0)
    Z, Y = rng.standard_normal((6000, 5)), rng.standard_normal((6000, 2))
    spans = []
    original = reduction.portions
    monkeypatch.setattr(reduction, "portions", lambda t, a, b, s: spans.append((a, b)) or original(t, a, b, s))
    whole = ca.LatentAligner(folds=2).fit(Z, Y)
    al = ca.LatentAligner(folds=2, chunk_rows=77).fit(npy(tmp_path, Z), Y)
    assert sorted(spans) == sorted(2 * [(0, 2000), (2000, 4000), (4000, 6000)])
    assert_array_equal(al.moments_.cov_z, whole.moments_.cov_z)
    assert_allclose(al.moments_.cov_z, np.cov(Z.T, ddof=0), rtol=1e-12, atol=1e-14)


def test_rows_are_matched_by_name_where_both_have_names(tmp_path, data):
    Z, Y = data
    whole = ca.LatentAligner().fit(frame(Z), Y)
    for there in (parquet(tmp_path, Z), h5ad(tmp_path, Z), anndata(tmp_path, Z)):
        al = ca.LatentAligner().fit(there, Y.sample(frac=1, random_state=1))
        assert_array_equal(al.transform_, whole.transform_)
        with pytest.raises(ValueError, match="same row names"):
            ca.LatentAligner().fit(there, Y.rename(index={"cell0": "other"}))


def test_covariates_by_the_names_of_columns_beside_the_rows(tmp_path, data):
    Z, Y = data
    whole = ca.LatentAligner().fit(frame(Z), Y)
    cells = anndata(tmp_path, Z)
    cells.obs = Y
    cells.write_h5ad(tmp_path / "named.h5ad")
    frame(Z).join(Y).to_parquet(tmp_path / "named.parquet")
    names = list(Y.columns)
    for there in (cells, tmp_path / "named.h5ad", str(tmp_path / "named.parquet")):
        al = ca.LatentAligner()
        turned = al.fit_transform(there, names)
        assert al.covariate_names_ == whole.covariate_names_
        assert list(al.feature_names_in_) == GENES
        assert_array_equal(al.transform_, whole.transform_)
        assert_allclose(turned, whole.transform(frame(Z)), rtol=1e-12, atol=1e-12)
        with pytest.raises(ValueError, match="'dosage'"):
            ca.LatentAligner().fit(there, ["dosage"])
    assert ca.LatentAligner().fit(cells, "dose").covariate_names_ == ["dose"]
    labels = list(Y["site"])  # one a row: these are no names
    assert ca.LatentAligner().fit(cells, labels).covariate_names_ == ["y0_b", "y0_c"]


def test_covariates_from_a_file(tmp_path, data):
    Z, Y = data
    numbers = Y.drop(columns="site")
    whole = ca.LatentAligner().fit(Z, numbers.to_numpy())
    np.save(tmp_path / "y.npy", numbers.to_numpy())
    numbers.to_csv(tmp_path / "y.csv", index=False)
    Y.sample(frac=1, random_state=0).to_parquet(tmp_path / "y.parquet")
    path = npy(tmp_path, Z)
    for file in ("y.npy", "y.csv"):
        assert_allclose(ca.LatentAligner().fit(path, tmp_path / file).transform_, whole.transform_, rtol=1e-10)
    # Row names of both files decide.
    al = ca.LatentAligner().fit(parquet(tmp_path, Z), str(tmp_path / "y.parquet"))
    assert_array_equal(al.transform_, ca.LatentAligner().fit(Z, Y).transform_)


def test_the_frontier_of_a_file(tmp_path, data):
    Z, Y = data
    whole = ca.cross_validated_frontier(Z, Y, [0, 1], folds=3)
    there = ca.cross_validated_frontier(npy(tmp_path, Z), Y, [0, 1], folds=3, chunk_rows=10)
    pd.testing.assert_frame_equal(there, whole, rtol=0, atol=0)


def test_partial_fit_of_files(tmp_path, data):
    Z, Y = data
    al = ca.LatentAligner(chunk_rows=9).partial_fit(frame(Z[:50]), Y[:50])
    frame(Z).iloc[50:].to_parquet(tmp_path / "rest.parquet")
    al.partial_fit(tmp_path / "rest.parquet", Y[50:])
    assert_allclose(al.transform_, ca.LatentAligner().fit(Z, Y).transform_, rtol=1e-9, atol=1e-12)


# -- batches ----------------------------------------------------------------------------------------------------------


def in_batches(Z, Y, size):
    for i in range(0, len(Z), size):
        yield Z[i : i + size], Y[i : i + size]


@pytest.mark.parametrize("lanes", [1, 3])
def test_batches_of_any_size_give_the_same_bits(data, monkeypatch, lanes):
    monkeypatch.setattr(reduction, "FEW", 40 * (K + 6) ** 2)  # the first forty rows or so have a lane to themselves
    monkeypatch.setattr(reduction.Size, "threads", (lanes, lanes))
    monkeypatch.setattr("covalign.moments.block_sizes.BLOCK_BYTES", 0)
    Z, Y = data
    Y["site"] = Y["site"].astype("category")
    found = [ca.LatentAligner().fit(in_batches(Z, Y, size)).transform_ for size in (1, 10, 64, N)]
    for other in found[1:]:
        assert_array_equal(other, found[0])
    assert_allclose(found[0], ca.LatentAligner().fit(Z, Y).transform_, rtol=1e-9, atol=1e-12)


def test_gaps_that_begin_in_a_later_batch(data):
    Z, Y = data
    Y.iloc[80:120, 0] = np.nan
    Y.iloc[130:, 1] = np.nan
    Y["site"] = Y["site"].astype("category")
    al = ca.LatentAligner(drop_first=True).fit(in_batches(frame(Z), Y, 20), confounders="score")
    whole = ca.LatentAligner(drop_first=True).fit(frame(Z), Y, confounders="score")
    assert_array_equal(al.n_pairs_, whole.n_pairs_)
    assert_allclose(al.transform_, whole.transform_, rtol=1e-8, atol=1e-10)
    drop = ca.LatentAligner(missing="drop")
    assert drop.fit(in_batches(Z, Y, 20)).n_rows_ == Y.notna().all(axis=1).sum()


def test_a_buffer_that_is_filled_again_does_no_harm(data):
    Z, Y = data[0], data[1].drop(columns="site").to_numpy()

    def refilled():
        z, y = np.empty((1, K)), np.empty((1, P))
        for i in range(N):
            z[:], y[:] = Z[i], Y[i]
            yield z, y

    assert_allclose(ca.LatentAligner().fit(refilled()).transform_, ca.LatentAligner().fit(Z, Y).transform_, rtol=1e-9)


def test_lists_and_loaders_of_batches(data):
    torch = pytest.importorskip("torch")
    Z, Y = data[0], data[1].drop(columns="site").to_numpy()
    whole = ca.LatentAligner().fit(Z, Y).transform_
    pairs = torch.utils.data.TensorDataset(torch.from_numpy(Z), torch.from_numpy(Y))
    loader = torch.utils.data.DataLoader(pairs, batch_size=32)
    for batches in (list(in_batches(Z, Y, 40)), loader):
        assert_allclose(ca.LatentAligner().fit(batches).transform_, whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda Z, Y: (Z[:, :4], Y), "Z needs 7 columns in every batch as in the first, got 4 in batch 2"),
        (lambda Z, Y: (Z, Y[:-1]), "same number of rows.*got 20 and 19 in batch 2"),
        (lambda Z, Y: (Z, np.hstack([Y, Y])), "Y needs 3 columns.*got 6 in batch 2"),
        (lambda Z, Y: (np.where(np.isin(Z, Z[5, 4]), np.nan, Z), Y), "got NaN in row 45, column 4"),
        (lambda Z, Y: Z, "pair"),
    ],
)
def test_ragged_and_spoiled_batches(data, spoil, message):
    Z, Y = data[0], data[1].drop(columns="site").to_numpy()
    batches = [spoil(z, y) if i == 2 else (z, y) for i, (z, y) in enumerate(in_batches(Z, Y, 20))]
    with pytest.raises(ValueError, match=message):
        ca.LatentAligner().fit(batches)


def test_rows_without_covariates_are_no_batches(tmp_path, data):
    for rows in (data[0], frame(data[0]), npy(tmp_path, data[0]), data[0].tolist(), sparse.csr_matrix(data[0])):
        with pytest.raises(ValueError, match="requires y"):
            ca.LatentAligner().fit(rows)
    with pytest.raises(ValueError, match="at least one row"):
        ca.LatentAligner().fit(iter([]))
    with pytest.raises(ValueError, match="columns of their Y"):
        ca.LatentAligner().fit(in_batches(*data, 20), confounders=data[1])


# -- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".parquet"])
def test_transform_to_a_path(tmp_path, data, suffix):
    Z, Y = data
    al = ca.LatentAligner(chunk_rows=30).fit(Z, Y)
    source, out = npy(tmp_path, Z), tmp_path / f"out{suffix}"
    assert al.transform(source, out=out) == out
    got = np.concatenate(list(open_rows(out).chunks()))
    assert_allclose(got, al.transform(Z), rtol=1e-12, atol=1e-12)
    if suffix != ".npy":
        assert open_rows(out).names == tuple(al.get_feature_names_out())
    with pytest.raises(ValueError, match="exists"):
        al.transform(source, out=out)
    al.transform(Z, out=out, overwrite=True)  # an array, too
    assert_array_equal(np.concatenate(list(open_rows(out).chunks())), got)
    al.set_output(transform="pandas").transform(Z, out=out, overwrite=True)  # a path is no table
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def interrupted(monkeypatch, after):
    """Stop reading after so many chunks; returns how often ``_read`` was called."""
    calls = []
    original = rows_memory.MappedRows._read

    def read(self, start, stop):
        calls.append(start)
        if len(calls) > after:
            raise KeyboardInterrupt
        return original(self, start, stop)

    monkeypatch.setattr(rows_memory.MappedRows, "_read", read)
    return calls


def test_an_interrupted_transform_goes_on(tmp_path, data, monkeypatch):
    Z, Y = data
    C = np.sin(np.arange(N))
    al = ca.LatentAligner(shrinkage=0.1).fit(Z, Y, confounders=C)
    np.save(tmp_path / "z.npy", Z)

    def opened():
        return open_rows(np.load(tmp_path / "z.npy", mmap_mode="r"), chunk_rows=20)

    al.transform(opened(), confounders=C, out=tmp_path / "whole.npy")
    out = tmp_path / "out.npy"
    with monkeypatch.context() as patch:
        interrupted(patch, 4)
        with pytest.raises(KeyboardInterrupt):
            al.transform(opened(), confounders=C, out=out)
    assert not out.exists()
    done = json.loads((tmp_path / ".out.npy.part" / "progress.json").read_text())["done"]
    assert 0 < done < N
    with monkeypatch.context() as patch:
        calls = interrupted(patch, 99)
        al.transform(opened(), confounders=C, out=out)
    assert calls == list(range(done, N, 20))
    assert_array_equal(np.load(out), np.load(tmp_path / "whole.npy"))


@pytest.mark.parametrize("change", ["map", "rows", "confounders"])
def test_other_rows_or_another_map_begin_anew(tmp_path, data, monkeypatch, change):
    Z, Y = data
    C = np.sin(np.arange(N))
    al = ca.LatentAligner(shrinkage=0.1).fit(Z, Y, confounders=C)
    np.save(tmp_path / "z.npy", Z)
    out = tmp_path / "out.npy"

    def opened():
        return open_rows(np.load(tmp_path / "z.npy", mmap_mode="r"), chunk_rows=20)

    with monkeypatch.context() as patch:
        interrupted(patch, 4)
        with pytest.raises(KeyboardInterrupt):
            al.transform(opened(), confounders=C, out=out)
    if change == "map":
        al = al.at(lam=0.9)
    elif change == "rows":
        np.save(tmp_path / "z.npy", Z + 1)
    else:
        C = C + 1
    al.transform(opened(), confounders=C, out=out)
    now = np.load(tmp_path / "z.npy")
    assert_allclose(np.load(out), al.transform(now, confounders=C), rtol=1e-12, atol=1e-12)


def test_a_process_that_is_killed_leaves_nothing_under_the_name(tmp_path, data):
    Z, Y = data
    np.save(tmp_path / "z.npy", Z)
    np.save(tmp_path / "y.npy", Y.drop(columns="site").to_numpy())
    code = f"""
import os, numpy as np, covalign as ca
from covalign.stream import npy
al = ca.LatentAligner(chunk_rows=10).fit({str(tmp_path / "z.npy")!r}, np.load({str(tmp_path / "y.npy")!r}))
original, calls = npy.NpyRows._pieces, []
def read(self, rows, start):
    for piece in original(self, rows, start):
        calls.append(len(piece))
        if len(calls) > 6:
            os._exit(9)
        yield piece
npy.NpyRows._pieces = read
al.transform({str(tmp_path / "z.npy")!r}, out={str(tmp_path / "out.parquet")!r})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert not (tmp_path / "out.parquet").exists()
    al = ca.LatentAligner(chunk_rows=10).fit(tmp_path / "z.npy", tmp_path / "y.npy")
    al.transform(tmp_path / "z.npy", out=tmp_path / "out.parquet")
    assert_allclose(pd.read_parquet(tmp_path / "out.parquet"), al.transform(Z), rtol=1e-12, atol=1e-12)


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["path to npy", "parquet folder", "backed anndata", "zarr", "frame", "array", "csr"])
def test_a_number_that_is_not_finite_is_located(tmp_path, data, name, value):
    Z, Y = data
    al = ca.LatentAligner().fit(frame(Z) if name in ("parquet folder", "backed anndata", "frame") else Z, Y)
    Z = Z.copy()
    Z[131, 5] = value
    memory = {"frame": frame, "array": np.asarray, "csr": sparse.csr_matrix}
    there = memory[name](Z) if name in memory else FORMATS[name](tmp_path, Z)
    named = name in ("parquet folder", "backed anndata", "frame")
    number = "NaN" if np.isnan(value) else "inf"
    place = r"row 131 \('cell131'\), column 'g5'" if named else r"row 131, column 5"
    for shrinkage in (0.1, "auto"):
        with pytest.raises(ValueError, match=f"got {number} in {place}"):
            ca.LatentAligner(shrinkage=shrinkage, chunk_rows=10).fit(there, Y)
    with pytest.raises(ValueError, match=f"got {number} in {place}"):
        al.transform(there)
    with pytest.raises(ValueError, match=f"got {number} in {place}"):
        al.transform(there, out=tmp_path / "out.npy")
    assert not (tmp_path / "out.npy").exists()
    with pytest.raises(ValueError, match=f"got {number} in row 131"):
        ca.cross_validated_frontier(there, Y, [0.5])


@pytest.mark.parametrize("elsewhere", [True, False])
def test_rows_left_out_count(tmp_path, data, elsewhere):
    Z, Y = data
    Y.iloc[10:50, 0] = np.nan
    Z[131, 5] = np.nan
    with pytest.raises(ValueError, match=r"row 131 \('cell131'\), column 'g5'"):
        ca.LatentAligner(missing="drop").fit(parquet(tmp_path, Z) if elsewhere else frame(Z), Y)
    with pytest.raises(ValueError, match=r"row 131 \('cell131'\), column 'g5'"):
        ca.LatentAligner(missing="drop").fit(in_batches(frame(Z), Y, 30))
    Y.iloc[131, 1] = np.nan  # now that row is not asked for
    assert ca.LatentAligner(missing="drop").fit(frame(Z), Y).n_rows_ == N - 41
    Y["site"] = Y["site"].astype("category")
    assert ca.LatentAligner(missing="drop").fit(in_batches(frame(Z), Y, 30)).n_rows_ == N - 41


def test_a_truncated_file(tmp_path, data):
    Z, Y = data
    path = npy(tmp_path, Z)
    al = ca.LatentAligner().fit(path, Y)
    path.write_bytes(path.read_bytes()[:-1000])
    for work in (lambda: al.fit(path, Y), lambda: al.transform(path, out=tmp_path / "out.npy")):
        with pytest.raises(ValueError, match="truncated"):
            work()
    assert not (tmp_path / "out.npy").exists()


def test_a_changed_schema(tmp_path, data):
    Z, Y = data
    folder = parquet(tmp_path, Z)
    al = ca.LatentAligner().fit(folder, Y)
    frame(Z)[100:].rename(columns={"g3": "other"}).to_parquet(folder / "b.parquet")
    for work in (lambda: al.fit(folder, Y), lambda: al.transform(folder, out=tmp_path / "out.npy")):
        with pytest.raises(ValueError, match=r"b\.parquet' needs column 'g3'"):
            work()


def test_columns_differ_from_those_fitted(tmp_path, data):
    Z, Y = data
    al = ca.LatentAligner().fit(npy(tmp_path, Z), Y)
    np.save(tmp_path / "few.npy", Z[:, 1:])
    with pytest.raises(ValueError, match="has 6 features, but LatentAligner is expecting 7"):
        al.transform(tmp_path / "few.npy")
    named = ca.LatentAligner().fit(parquet(tmp_path, Z), Y)
    with pytest.raises(ValueError, match="feature names should match"):
        named.transform(frame(Z)[GENES[::-1]])
    frame(Z)[GENES[::-1]].to_parquet(tmp_path / "reversed.parquet")  # columns of a file are taken by name
    assert_allclose(named.transform(tmp_path / "reversed.parquet"), named.transform(frame(Z)), rtol=1e-12)


def test_lengths_paths_and_types_that_cannot_be(tmp_path, data):
    Z, Y = data
    path = npy(tmp_path, Z)
    with pytest.raises(ValueError, match="same number of rows"):
        ca.LatentAligner().fit(path, Y[:-1])
    with pytest.raises(ValueError, match="nowhere"):
        ca.LatentAligner().fit(tmp_path / "nowhere.npy", Y)
    with pytest.raises(ValueError, match="chunk_rows needs"):
        ca.LatentAligner(chunk_rows=0).fit(path, Y)
    with pytest.raises(ValueError, match=r"\.npy, \.zarr or \.parquet"):
        ca.LatentAligner().fit(path, Y).transform(path, out=tmp_path / "out.txt")


# -- memory -----------------------------------------------------------------------------------------------------------


def test_pages_of_a_map_are_given_back(tmp_path):
    Z = np.random.default_rng(0).standard_normal((4000, 500)).astype(np.float32)
    np.save(tmp_path / "z.npy", Z)
    array = np.load(tmp_path / "z.npy", mmap_mode="r")

    def resident():
        text = Path("/proc/self/smaps").read_text().split("z.npy")[1]
        return int(text.split("Rss:")[1].split()[0])

    source = open_rows(array[100:], chunk_rows=300)
    got = np.concatenate([chunk.copy() for chunk in source.chunks()])
    assert_array_equal(got, Z[100:])
    assert resident() < 1000  # kB, of 8,000
    changed = np.load(tmp_path / "z.npy", mmap_mode="c")
    changed[5] = 1.0
    for _ in range(2):  # what is changed in memory only stays
        assert next(open_rows(changed).chunks())[5, 0] == 1.0


def test_kept_rows_begin_anywhere(data):
    Z, keep = data[0], np.random.default_rng(0).random(N) < 0.4
    source = Kept(open_rows(Z, chunk_rows=10), keep)
    for start in (0, 1, 29, keep.sum()):
        chunks = list(source.chunks(start=start))
        assert_array_equal(np.concatenate([Z[:0], *chunks]), Z[keep][start:])
        assert all(len(chunk) == 10 for chunk in chunks[1:-1])


def test_a_sink_of_the_same_name_may_not_be_shared(tmp_path, data):
    Z, Y = data
    al = ca.LatentAligner().fit(Z, Y)
    with open_sink(tmp_path / "out.npy", (N, 6)) as sink:
        sink.write(np.zeros((N, 6)))
        with pytest.raises(ValueError, match="Another run is writing"):
            al.transform(Z, out=tmp_path / "out.npy")
