"""Every format gives the same rows as the array itself, however it is cut; what is wrong with one is said."""

from __future__ import annotations

import gzip
import importlib.util
import io
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile

import anndata
import dask.array
import dask.dataframe
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from scipy import io as matrix_io
from scipy import sparse

from covalign.exceptions import ColumnLayoutWarning
from covalign.moments.moments import Moments
from covalign.stream import Batches, ahead, checked, in_step, open_rows, read, recut, refuse_not_finite
from covalign.stream import source as source_module
from tests import late
from tests.conftest import thorough

HAS_TORCH = importlib.util.find_spec("torch") is not None  # without it, tests of tensors alone skip and say so
torch = late.Late("torch")

N, K = 53, 4
NAMES = [f"gene{j}" for j in range(K)]


def numbers(n: int = N, k: int = K) -> np.ndarray:
    """Rows that are all different, with zeros among them for the sparse formats."""
    rng = np.random.default_rng(3)
    return rng.standard_normal((n, k)) * (rng.random((n, k)) < 0.6)


def frame() -> pd.DataFrame:
    return pd.DataFrame(numbers(), columns=NAMES, index=[f"cell{i}" for i in range(N)])


def annotated(X) -> anndata.AnnData:
    data = anndata.AnnData(X, obs=pd.DataFrame(index=frame().index), var=pd.DataFrame(index=NAMES))
    data.obsm["X_pca"] = numbers()[:, :2]
    data.layers["twice"] = 2 * X
    return data


# -- one maker a format: the same numbers, kept in its own way --------------------------------------------------------


def as_npy(folder):
    np.save(folder / "a.npy", numbers())
    return folder / "a.npy"


def as_npy_by_columns(folder):
    np.save(folder / "f.npy", np.asfortranarray(numbers()))
    return str(folder / "f.npy")


def as_npy_big_endian(folder):
    np.save(folder / "big.npy", numbers().astype(">f8"))
    return folder / "big.npy"


def as_memmap(folder):
    return np.load(as_npy(folder), mmap_mode="r")


def as_npz(folder):
    np.savez(folder / "a.npz", only=numbers())
    return folder / "a.npz"


def as_npz_compressed(folder):
    np.savez_compressed(folder / "c.npz", only=numbers())
    return folder / "c.npz"


def as_zarr(version):
    def make(folder):
        store = zarr.create_array(str(folder / "a.zarr"), shape=(N, K), chunks=(10, 3), dtype="f8", zarr_format=version)
        store[:] = numbers()
        return folder / "a.zarr"

    return make


def as_zarr_array(folder):
    return zarr.open_array(str(as_zarr(3)(folder)), mode="r")


def as_zarr_sharded(folder):
    store = zarr.create_array(str(folder / "s.zarr"), shape=(N, K), chunks=(5, 2), shards=(20, 4), dtype="f8")
    store[:] = numbers()
    return folder / "s.zarr"


def as_parquet(folder):
    frame().to_parquet(folder / "a.parquet", row_group_size=11)
    return folder / "a.parquet"


def as_parquet_folder(folder):
    (folder / "parts").mkdir()
    for part, (start, stop) in enumerate([(0, 20), (20, 21), (21, 21), (21, N)]):
        table = pa.table(dict(zip(NAMES, numbers()[start:stop].T, strict=True)))
        pq.write_table(table.select(NAMES[:: -1 if part == 1 else 1]), folder / "parts" / f"{part}.parquet")
    (folder / "parts" / "_SUCCESS").touch()
    return folder / "parts"


def as_h5ad(X):
    def make(folder):
        annotated(X).write_h5ad(folder / "a.h5ad")
        return folder / "a.h5ad"

    return make


def as_backed(X):
    def make(folder):
        return anndata.read_h5ad(as_h5ad(X)(folder), backed="r")

    return make


def as_mtx(names, suffix=""):
    """Features as rows with names of cells and features beside, as Cell Ranger writes it; else cells as rows."""

    def make(folder):
        opened = gzip.open if suffix else open
        with opened(folder / f"matrix.mtx{suffix}", "wb") as file:
            matrix_io.mmwrite(file, sparse.coo_matrix(numbers().T if names else numbers()), precision=17)
        for stem, lines in {"barcodes": frame().index, "features": NAMES}.items() if names else ():
            with opened(folder / f"{stem}.tsv{suffix}", "wt") as file:
                file.write("\n".join(lines))
        return folder if names else folder / f"matrix.mtx{suffix}"

    return make


def as_hdf5(folder):
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("table", data=numbers(), chunks=(8, 2))
    return h5py.File(folder / "a.h5", "r")["table"]


def as_dask_frame(folder):
    return dask.dataframe.from_pandas(frame(), npartitions=4, sort=False)


def as_dask_of_unknown_sizes(folder):
    return as_dask_frame(folder).to_dask_array()


FORMATS = {
    "array": lambda folder: numbers(),
    "array by columns": lambda folder: np.asfortranarray(numbers()),
    "lists": lambda folder: numbers().tolist(),
    "objects": lambda folder: numbers().astype(object),
    "frame": lambda folder: frame(),
    "frame with nullable types": lambda folder: frame().astype({"gene1": "Float64"}),
    "csr": lambda folder: sparse.csr_matrix(numbers()),
    "csc": lambda folder: sparse.csc_array(numbers()),
    "npy": as_npy,
    "npy by columns": as_npy_by_columns,
    "npy big endian": as_npy_big_endian,
    "memmap": as_memmap,
    "npz": as_npz,
    "npz compressed": as_npz_compressed,
    "zarr 2": as_zarr(2),
    "zarr 3": as_zarr(3),
    "zarr array": as_zarr_array,
    "zarr sharded": as_zarr_sharded,
    "parquet": as_parquet,
    "parquet folder": as_parquet_folder,
    "arrow table": lambda folder: pa.Table.from_pandas(frame()),
    "anndata": lambda folder: annotated(numbers()),
    "anndata sparse": lambda folder: annotated(sparse.csr_matrix(numbers())),
    "h5ad": as_h5ad(numbers()),
    "h5ad sparse": as_h5ad(sparse.csr_matrix(numbers())),
    "backed": as_backed(numbers()),
    "backed sparse": as_backed(sparse.csr_matrix(numbers())),
    "mtx": as_mtx(names=False),
    "mtx framed by names": as_mtx(names=True, suffix=".gz"),
    "hdf5": as_hdf5,
    "torch": lambda folder: torch.tensor(numbers(), requires_grad=True),
    "dask array": lambda folder: dask.array.from_array(numbers(), chunks=(9, 3)),
    "dask of sparse blocks": lambda folder: dask.array.from_array(numbers(), chunks=(9, K)).map_blocks(
        sparse.csr_matrix
    ),
    "dask of unknown sizes": as_dask_of_unknown_sizes,
    "dask frame": as_dask_frame,
}
if not HAS_TORCH:
    del FORMATS["torch"]
NAMED = {name for name in FORMATS if any(word in name for word in ("frame", "parquet", "h5ad", "backed", "anndata"))}
WITH_INDEX = NAMED - {"parquet folder"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Every format, opened once."""
    return {name: open_rows(make(tmp_path_factory.mktemp("rows"))) for name, make in FORMATS.items()}


def tensors(*values):
    """Each as a tensor, where torch is installed."""
    return [torch.tensor(value) for value in values] if HAS_TORCH else []


def dense(chunk):
    return chunk.toarray() if sparse.issparse(chunk) else chunk


@pytest.mark.parametrize("rows", [None, 7, *thorough(1, 10, 20, N, 1000)])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_rows_of_the_array(sources, name, rows):
    source = sources[name]
    assert source.shape == (N, K)
    for start in (0, 1, 20, N - 1, N):
        chunks = list(source.chunks(rows, start))
        assert all(chunk.dtype == source.dtype == np.float64 for chunk in chunks)
        got = np.concatenate([np.empty((0, K)), *map(dense, chunks)])
        np.testing.assert_array_equal(got, numbers()[start:])
        step = rows or source.chunk_rows
        cuts = [start, *range(step * (start // step + 1), N, step), N] if start < N else [N]
        # The grid is the same wherever reading begins.
        assert [chunk.shape[0] for chunk in chunks] == np.diff(cuts).tolist()


@pytest.mark.parametrize("name", FORMATS)
def test_names_and_index_come_along(sources, name):
    assert sources[name].names == (tuple(NAMES) if name in NAMED or name == "arrow table" else None)
    index = sources[name].index
    if name in WITH_INDEX or name == "arrow table":
        assert list(index) == list(frame().index)
    else:
        assert index is None


@pytest.mark.parametrize("name", FORMATS)
def test_columns_are_chosen_in_the_order_asked_for(tmp_path, name):
    chosen = [2, 0]
    named = name in NAMED or name == "arrow table"
    source = open_rows(FORMATS[name](tmp_path), columns=[NAMES[i] for i in chosen] if named else chosen)
    assert source.shape == (N, 2)
    got = np.concatenate([dense(chunk) for chunk in source.chunks(10)])
    np.testing.assert_array_equal(got, numbers()[:, chosen])
    assert source.names == (("gene2", "gene0") if named else None)


@pytest.mark.parametrize("name", FORMATS)
def test_moments_of_any_format_are_those_of_the_array(sources, name):
    Y = np.random.default_rng(1).standard_normal((N, 2))
    whole = Moments.from_arrays(numbers(), Y)
    for rows in (None, 9):
        parts = Moments.from_batches(in_step([sources[name], open_rows(Y)], rows or sources[name].chunk_rows))
        for field in ("n", "mean_z", "mean_y", "cov_z", "cov_zy", "cov_y"):
            np.testing.assert_array_equal(getattr(parts, field), getattr(whole, field))  # bit for bit


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    rows=st.integers(1, 30),
    start=st.integers(0, 40),
    as_csr=st.booleans(),
)
def test_recut_keeps_rows_and_ignores_portions(sizes, rows, start, as_csr):
    total = np.arange(2.0 * sum(sizes)).reshape(-1, 2)
    pieces = np.split(total, np.cumsum(sizes)[:-1])
    chunks = list(recut((sparse.csr_matrix(p) if as_csr else p for p in pieces), rows, start))
    got = np.concatenate([dense(chunk) for chunk in chunks]) if chunks else total[:0]
    np.testing.assert_array_equal(got, total)
    ends = start + np.cumsum([chunk.shape[0] for chunk in chunks])
    assert all(end % rows == 0 for end in ends[:-1])
    assert all(0 < chunk.shape[0] <= rows for chunk in chunks)


@given(rows=st.integers(1, 60), start=st.integers(0, N))
def test_any_chunk_size_and_start(sources, rows, start):
    for name in ("npy", "zarr 3", "parquet folder", "dask array", "backed sparse"):
        got = [dense(chunk) for chunk in sources[name].chunks(rows, start)]
        np.testing.assert_array_equal(np.concatenate([np.empty((0, K)), *got]), numbers()[start:])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool, np.uint16])
def test_types_are_kept(tmp_path, dtype):
    values = (numbers() * 10).astype(dtype)
    np.save(tmp_path / "a.npy", values)
    for data in (values, tmp_path / "a.npy", pd.DataFrame(values), *tensors(values)):
        source = open_rows(data)
        (chunk,) = source.chunks()
        assert chunk.dtype == source.dtype == dtype
        np.testing.assert_array_equal(chunk, values)


def test_half_precision_is_widened():
    values = numbers().astype(np.float16)
    for data in (values, *tensors(values), *(tensor.to(torch.bfloat16) for tensor in tensors(values))):
        (chunk,) = open_rows(data).chunks()
        assert chunk.dtype == np.float32
        np.testing.assert_allclose(chunk, values, rtol=2**-8)


def test_missing_values_of_tables_are_nan(tmp_path):
    table = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [True, False, True]})
    table.to_parquet(tmp_path / "a.parquet")
    for data in (table, tmp_path / "a.parquet"):
        (chunk,) = open_rows(data).chunks()
        np.testing.assert_array_equal(chunk, [[1, 1], [np.nan, 0], [3, 1]])


def test_numeric_types_may_differ_between_parquet_files(tmp_path):
    for part, kind in enumerate([pa.float32(), pa.int64(), pa.decimal128(30, 2)]):
        pq.write_table(pa.table({"a": pa.array([1, 2**60]).cast(kind, safe=False)}), tmp_path / f"{part}.parquet")
    source = open_rows(tmp_path)
    assert source.dtype == np.float64
    np.testing.assert_array_equal(np.concatenate(list(source.chunks(4))), [[1], [2**60]] * 3)


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float32()), pa.list_(pa.float32(), 3)])
def test_a_column_of_lists_is_an_embedding(tmp_path, kind):
    values = numbers()[:, :3].astype(np.float32)
    for part, (start, stop) in enumerate([(0, 0), (0, 30), (30, N)]):
        rows = values[start:stop]
        table = pa.table({"text": ["a"] * len(rows), "age": rows[:, 0], "e": pa.array(rows.tolist(), kind)})
        pq.write_table(table, tmp_path / f"{part}.parquet", row_group_size=7)
    source = open_rows(tmp_path, columns=["e"])
    assert source.names == ("e_0", "e_1", "e_2")
    assert source.dtype == np.float32
    for start in (0, 11, 40):
        np.testing.assert_array_equal(np.concatenate(list(source.chunks(9, start))), values[start:])
    both = open_rows(tmp_path, columns=["e", "age"])
    assert both.names == ("e_0", "e_1", "e_2", "age")
    np.testing.assert_array_equal(np.concatenate(list(both.chunks(9))), values[:, [0, 1, 2, 0]])


@pytest.mark.parametrize(("odd", "got"), [([1.0], "1"), (None, "no list")])
def test_lists_of_another_length_are_named(tmp_path, odd, got):
    pq.write_table(pa.table({"e": [[1.0, 2.0], odd]}), tmp_path / "a.parquet")
    message = rf"a\.parquet' needs lists of 2 numbers in column 'e' as in its first row, got {got} in another"
    with pytest.raises(ValueError, match=message):
        list(open_rows(tmp_path / "a.parquet").chunks())


def test_chunks_fit_the_storage():
    wide = zarr.create_array({}, shape=(100_000, 1000), chunks=(300, 1000), dtype="f4")
    rows = open_rows(wide).chunk_rows
    assert rows % 300 == 0
    assert 0.9 < rows * 4000 / source_module.CHUNK_BYTES <= 1
    coarse = zarr.create_array({}, shape=(100_000, 1000), chunks=(50_000, 10), dtype="f4")
    assert open_rows(coarse).chunk_rows == 50_000  # a stored chunk is never taken apart
    assert open_rows(np.empty((10, 3)), chunk_rows=4).chunk_rows == 4
    assert open_rows(dask.array.zeros((10_000, 100), chunks=(3000, 100))).chunk_rows % 3000 == 0


@pytest.mark.parametrize("rows", [None, 4, 10, 25])
def test_no_stored_chunk_is_read_twice(tmp_path, monkeypatch, rows):
    source = open_rows(as_zarr(3)(tmp_path))
    asked = []
    get = zarr.storage.LocalStore.get

    async def counting(self, key, *args, **kwargs):
        asked.append(key)
        return await get(self, key, *args, **kwargs)

    monkeypatch.setattr(zarr.storage.LocalStore, "get", counting)
    list(source.chunks(rows))
    chunks = [key for key in asked if key.startswith("c/")]
    assert sorted(chunks) == sorted(f"c/{i}/{j}" for i in range(6) for j in range(2))


def test_parquet_reads_only_what_is_wanted(tmp_path, monkeypatch):
    source = open_rows(as_parquet_folder(tmp_path), columns=["gene1"])
    opened = []
    monkeypatch.setattr(
        pq, "ParquetFile", lambda file, real=pq.ParquetFile, **kw: opened.append(file.name) or real(file)
    )
    got = np.concatenate(list(source.chunks(5, 21)))
    np.testing.assert_array_equal(got, numbers()[21:, [1]])
    assert opened == ["3.parquet"]


def test_keys(tmp_path):
    np.savez(tmp_path / "two.npz", a=numbers(), b=numbers()[:, :2])
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    group.create_array("b", data=numbers()[:, :2])
    group.create_array("a", data=numbers())
    path = as_h5ad(numbers())(tmp_path)
    data = anndata.read_h5ad(path, backed="r")
    for owner, key in [
        (tmp_path / "two.npz", "b"),
        (tmp_path / "g.zarr", "b"),
        (group, "b"),
        (path, "X_pca"),
        (path, "obsm/X_pca"),
        (data, "X_pca"),
        (data, "obsm/X_pca"),
    ]:
        (chunk,) = open_rows(owner, key=key).chunks()
        np.testing.assert_array_equal(chunk, numbers()[:, :2])
    for owner in (path, data):
        source = open_rows(owner, key="layers/twice")
        np.testing.assert_array_equal(next(source.chunks()), 2 * numbers())
        assert source.names == tuple(NAMES)
        assert open_rows(owner, key="X_pca").names is None
    for owner in (tmp_path / "two.npz", tmp_path / "g.zarr", path, data):
        with pytest.raises(ValueError, match=r"needs the name of one of its arrays, got key='nothing'.*(X_pca|'b')"):
            open_rows(owner, key="nothing")
    without = anndata.AnnData(obs=data.obs.copy(), obsm={"X_pca": numbers()[:, :2]})
    with pytest.raises(ValueError, match="got no key: pass key= with one of 'obsm/X_pca'"):
        open_rows(without)
    for owner in (tmp_path / "two.npz", tmp_path / "g.zarr"):
        with pytest.raises(ValueError, match="got no key: pass key= with one of 'a', 'b'"):
            open_rows(owner)
    for owner in (numbers(), as_npy(tmp_path), as_zarr(3)(tmp_path)):
        with pytest.raises(ValueError, match="needs no key=, got 'b'"):
            open_rows(owner, key="b")


def test_sparse_by_columns_on_disk_is_loaded_once_and_said(tmp_path):
    path = as_h5ad(sparse.csc_matrix(numbers()))(tmp_path)
    for data in (path, anndata.read_h5ad(path, backed="r")):
        with pytest.warns(ColumnLayoutWarning, match=r"stored by columns.*Store the matrix by rows \(csr\)"):
            source = open_rows(data)
        np.testing.assert_array_equal(np.concatenate([dense(c) for c in source.chunks(9)]), numbers())


@pytest.mark.parametrize("name", ["csr", "csc", "h5ad sparse", "backed sparse", "anndata sparse"])
def test_sparse_stays_sparse(sources, name):
    assert all(sparse.issparse(chunk) and chunk.format == "csr" for chunk in sources[name].chunks(9))


def test_a_single_column(tmp_path):
    y = numbers()[:, 0]
    np.save(tmp_path / "y.npy", y)
    data = [
        y,
        tmp_path / "y.npy",
        *tensors(y),
        dask.array.from_array(y, chunks=9),
        pd.Series(y),
        np.asfortranarray(y),
    ]
    for one in data:
        source = open_rows(one, single=True)
        assert source.shape == (N, 1)
        np.testing.assert_array_equal(np.concatenate(list(source.chunks(10))), y[:, None])


# -- memory -----------------------------------------------------------------------------------------------------------


def peak_chunks(data, rows: int, reader) -> float:
    """Most memory in use while all chunks are read and summed, in chunks of this many rows."""
    source = open_rows(data, chunk_rows=rows)
    for _ in zip(range(2), source.chunks(), strict=False):  # buffers that are made once are not counted
        pass
    tracemalloc.start()  # what was allocated before is not counted
    total = sum(float(chunk.sum()) for chunk in reader(source))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == pytest.approx(float(source.shape[0] * source.shape[1]))
    return peak / (rows * source.shape[1] * source.dtype.itemsize)


@pytest.mark.parametrize("reader", [lambda source: source.chunks(), lambda source: ahead(source.chunks()), read])
@pytest.mark.parametrize("n", [12, 48])
def test_memory_is_two_chunks_whatever_the_number_of_rows(tmp_path, reader, n):
    rows, k = 1000, 64
    np.save(tmp_path / "a.npy", np.ones((n * rows, k)))
    assert peak_chunks(tmp_path / "a.npy", rows, reader) < 2.3
    assert peak_chunks(np.load(tmp_path / "a.npy", mmap_mode="r"), rows, reader) < 2.3


def test_memory_of_cutting_across_the_storage(tmp_path):
    np.savez(tmp_path / "a.npz", np.ones((20_000, 64)))
    assert peak_chunks(tmp_path / "a.npz", 1000, read) < 3.5  # an archive hands out copies
    store = zarr.create_array(str(tmp_path / "a.zarr"), shape=(20_000, 64), chunks=(700, 64), dtype="f8")
    store[:] = 1
    assert peak_chunks(tmp_path / "a.zarr", 1000, read) < 5  # rows held, a stored chunk twice, the chunk in use


def test_memory_of_parquet_does_not_depend_on_its_row_groups(tmp_path):
    """What pyarrow allocates at most, in a process that does nothing else with it."""
    values = np.random.default_rng(0).standard_normal((80_000, 16))
    table = pa.table({f"x{i}": column for i, column in enumerate(values.T)})
    for group in (80_000, 2000):
        path = tmp_path / f"{group}.parquet"
        pq.write_table(table, path, row_group_size=group, use_dictionary=False, data_page_size=2**14)
    code = f"""
import pyarrow as pa
from covalign.stream import open_rows, read
for group in (2000, 80_000):
    source = open_rows({str(tmp_path)!r} + f"/{{group}}.parquet", chunk_rows=2000)
    print(sum(float(chunk.sum()) for chunk in read(source)), pa.default_memory_pool().max_memory())
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for line in result.stdout.splitlines():
        total, peak = map(float, line.split())
        assert total == pytest.approx(values.sum())
        assert peak < values.nbytes / 2, result.stdout


# -- reading ahead ----------------------------------------------------------------------------------------------------


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "covalign-ahead"]


def test_the_next_chunk_is_read_while_this_one_is_in_use():
    asked = [threading.Event() for _ in range(4)]

    def reading():
        for i, event in enumerate(asked):
            event.set()
            yield i

    for i in ahead(reading()):
        if i + 1 < len(asked):
            assert asked[i + 1].wait(5), "the next chunk was not asked for while this one was in use"
    assert not threads()


def test_no_more_is_read_ahead_than_agreed():
    for depth in (1, 3):
        asked, waiting = [], threading.Event()

        def reading(asked=asked, waiting=waiting, depth=depth):
            for i in range(20):
                asked.append(i)
                if len(asked) == depth + 1:
                    waiting.set()
                yield i

        with ahead(reading(), depth) as chunks:
            assert next(chunks) == 0
            assert waiting.wait(5)
            threading.Event().wait(0.05)  # time enough to run ahead if it could
            assert asked == list(range(depth + 1))


def test_errors_of_the_reader_keep_their_type_and_place():
    class OddError(Exception):
        pass

    def reading():
        yield 1
        raise OddError("here")

    chunks = ahead(reading())
    assert next(chunks) == 1
    with pytest.raises(OddError, match="here") as caught:
        next(chunks)
    assert any(entry.name == "reading" for entry in caught.traceback)
    assert next(chunks, "over") == "over"
    assert not threads()


def test_an_error_before_the_first_item():
    class Unreadable:
        def __iter__(self):
            raise KeyError("no rows")

    with pytest.raises(KeyError, match="no rows"):
        list(ahead(Unreadable()))
    assert not threads()


@pytest.mark.parametrize("leave", ["break", "error", "interrupt", "close", "with", "never begun", "forgotten"])
def test_leaving_early_ends_the_thread_and_closes_the_file(leave):
    closed = threading.Event()

    def reading():
        try:
            yield from range(100)
        finally:
            closed.set()

    def use():
        if leave == "never begun":
            ahead(reading())
        elif leave == "forgotten":
            next(ahead(reading()))
        elif leave == "close":
            chunks = ahead(reading())
            next(chunks)
            chunks.close()
            assert next(chunks, "over") == "over"
        elif leave == "with":
            with ahead(reading()) as chunks:
                next(chunks)
        else:
            for i in ahead(reading()):
                if i == 3:
                    if leave == "break":
                        break
                    raise KeyboardInterrupt if leave == "interrupt" else OSError

    if leave in ("error", "interrupt"):
        with pytest.raises((OSError, KeyboardInterrupt)):
            use()
    else:
        use()
    assert not threads()
    assert closed.is_set() or leave == "never begun"


def test_an_interrupt_while_waiting_for_the_reader():
    """A real SIGINT, sent once the reader is at work on a slow item."""

    def reading():
        yield 0
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        yield 1

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs us in the background
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            list(ahead(reading()))
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.traceback  # which holds the frames of the loop
    assert not threads()


def test_a_reader_of_its_own_kind_is_closed_by_the_thread():
    class Reader:
        closed_by = None

        def __iter__(self):
            return self

        def __next__(self):
            return 1

        def close(self):
            self.closed_by = threading.current_thread().name

    reader = Reader()
    with ahead(reader) as chunks:
        next(chunks)
    assert reader.closed_by == "covalign-ahead"


def test_what_is_in_memory_is_not_read_by_a_thread(tmp_path):
    assert not isinstance(read(open_rows(numbers())), ahead)
    assert isinstance(read(open_rows(as_npy(tmp_path))), ahead)


def test_a_memmap_is_copied_by_the_reader(tmp_path):
    mapped = as_memmap(tmp_path)
    for chunk in open_rows(mapped).chunks(10):
        assert not np.shares_memory(chunk, mapped)
        assert type(chunk) is np.ndarray


# -- streams ----------------------------------------------------------------------------------------------------------


def batches(sizes=(20, 0, 33)):
    Y = np.random.default_rng(1).standard_normal((N, 2))
    ends = np.cumsum(sizes)
    return [(numbers()[e - s : e], Y[e - s : e]) for s, e in zip(sizes, ends, strict=True)]


def pairs(stream):
    return ((*batch.tables.values(), batch.Y) for batch in stream)


def test_a_stream_is_read_once_and_a_list_again():
    whole = Moments.from_arrays(*(np.concatenate(part) for part in zip(*batches(), strict=True)))
    stream = Batches(pair for pair in batches())
    assert not stream.again
    np.testing.assert_array_equal(Moments.from_batches(pairs(stream)).cov_zy, whole.cov_zy)
    with pytest.raises(ValueError, match="generator of batches can be read once, and it has been read"):
        iter(stream)
    listed = Batches(batches())
    assert listed.again
    for _ in range(2):
        np.testing.assert_array_equal(Moments.from_batches(pairs(listed)).cov_zy, whole.cov_zy)


def test_batches_of_tensors_frames_and_single_columns():
    Z, Y = batches((N,))[0]
    kinds = [
        *zip(tensors(Z), tensors(Y), strict=True),
        (pd.DataFrame(Z), pd.DataFrame(Y)),
        (sparse.csr_matrix(Z), Y),
    ]
    for kind in kinds:
        ((z, y),) = pairs(Batches([kind]))
        np.testing.assert_array_equal(dense(z), Z)
        np.testing.assert_array_equal(y, Y)
    for y in (Y[:, 0], *tensors(Y[:, 0]), pd.Series(Y[:, 0], name="age")):
        ((_, got),) = pairs(Batches([(Z, y)]))
        assert got.shape == (N, 1)
    assert list(got.columns) == ["age"]
    for half in (tensor.to(torch.bfloat16) for tensor in tensors(Z)):
        ((z, _),) = pairs(Batches([(half, Y)]))
        assert z.dtype == np.float32


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda z, y: (z[:, :3], y), "Z needs 4 columns in every batch as in the first, got 3 in batch 2"),
        (lambda z, y: (z, y[:, :1]), "Y needs 2 columns in every batch as in the first, got 1 in batch 2"),
        (lambda z, y: (z[1:], y), "same number of rows .*got 32 and 33 in batch 2"),
        (lambda z, y: (z, y, y), "pair .*got a tuple in batch 2"),
        (lambda z, y: z, "pair .*got a ndarray in batch 2"),
        (lambda z, y: (z[:, 0], y), "Z needs two dimensions"),
    ],
)
def test_a_bad_batch_is_named(spoil, message):
    def stream():
        *good, bad = batches()
        yield from good
        yield spoil(*bad)

    with pytest.raises(ValueError, match=message):
        list(Batches(stream()))


def test_columns_of_frames_keep_their_order():
    Z, Y = batches((N,))[0]
    first, second = pd.DataFrame(Y, columns=["a", "b"]), pd.DataFrame(Y, columns=["b", "a"])
    with pytest.raises(ValueError, match="got 'b' in place of 'a' in batch 1"):
        list(Batches([(Z, first), (Z, second)]))


def test_what_is_no_stream():
    for data in (7, "rows", numbers(), sparse.csr_matrix(numbers())):
        with pytest.raises(ValueError, match=r"iterable of \(Z, Y\) batches, got"):
            Batches(data)


def test_sources_of_different_length():
    with pytest.raises(ValueError, match=r"same number of rows .*got 53 and 52"):
        Moments.from_arrays(open_rows(numbers()), numbers()[1:])


# -- numbers that are not finite --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["npy", "parquet", "csr", "backed sparse", "frame"])
def test_a_number_that_is_not_finite_is_found(tmp_path, monkeypatch, name, value):
    spoiled = numbers()
    spoiled[37, 2] = value
    monkeypatch.setattr(sys.modules[__name__], "numbers", lambda: spoiled)
    make = as_backed(sparse.csr_matrix(spoiled)) if name == "backed sparse" else FORMATS[name]
    source = open_rows(make(tmp_path))
    named = source.names is not None
    place = r"row 37 \('cell37'\), column 'gene2'" if named else "row 37, column 2"
    for start in (0, 30):
        with pytest.raises(ValueError, match=f"got {'NaN' if np.isnan(value) else value} in {place}"):
            list(read(source, 8, start, finite=True))
    assert sum(chunk.shape[0] for chunk in read(source, 8, 38, finite=True)) == N - 38


def test_opposite_infinities_and_overflow():
    opposite = np.ones((5, 2), dtype=np.float32)
    opposite[1, 0], opposite[3, 0] = np.inf, -np.inf
    with pytest.raises(ValueError, match="Z needs finite numbers, got inf in row 101, column 0"):
        refuse_not_finite(opposite, 100)
    refuse_not_finite(np.full((5, 2), 3e38, dtype=np.float32), 0)  # finite, though the sum is not
    refuse_not_finite(np.array([[2**62]]), 0)
    refuse_not_finite(sparse.csr_matrix((3, 3)), 0)


def test_known_sums_save_the_search():
    spoiled = np.array([[1.0, np.nan]])
    refuse_not_finite(spoiled, 0, sums=np.array([1.0, 2.0]))  # the caller's word is taken
    with pytest.raises(ValueError, match="got NaN in row 0, column 1"):
        refuse_not_finite(spoiled, 0, sums=spoiled.sum(axis=0))


def test_checked_passes_the_chunks_on():
    source = open_rows(numbers())
    np.testing.assert_array_equal(np.concatenate(list(checked(source, source.chunks(10)))), numbers())


# -- what else can be wrong -------------------------------------------------------------------------------------------


def test_truncated_npy(tmp_path):
    path = as_npy(tmp_path)
    whole = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=f"needs {whole} bytes according to its header, got {whole - 9}: .*truncated"):
        open_rows(path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(ValueError, match=r"cannot be read as .*array saved with numpy.save"):
        open_rows(path)


def test_a_file_that_shrinks_while_it_is_read(tmp_path):
    path = as_npy(tmp_path)
    source = open_rows(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="truncated"):
        list(read(source, 10))
    assert not threads()


def test_damaged_archives(tmp_path):
    path = as_npz_compressed(tmp_path)
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(ValueError, match="cannot be read as"):
        open_rows(path)
    path.write_bytes(good[:600] + bytes(50) + good[650:])
    with pytest.raises(ValueError, match="cannot be read as"):
        list(open_rows(path).chunks())
    with zipfile.ZipFile(path, "w") as archive:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (9, 2)})
        archive.writestr("a.npy", head.getvalue() + bytes(100))
    with pytest.raises(ValueError, match="truncated"):
        open_rows(path)


def test_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[None, 1]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", np.array([[None, 1]], dtype=object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match="got pickled objects, which are never loaded"):
            open_rows(tmp_path / name)


def test_files_that_are_not_what_they_are_called(tmp_path):
    for name in ("a.parquet", "a.h5ad", "a.npz", "a.npy"):
        (tmp_path / name).write_bytes(b"something else")
        with pytest.raises(ValueError, match="cannot be read as"):
            open_rows(tmp_path / name)
    (tmp_path / "a.zarr").mkdir()
    with pytest.raises(ValueError, match="cannot be read as a zarr array"):
        open_rows(tmp_path / "a.zarr")
    (tmp_path / "a.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"\.npy, \.npz, \.zarr, \.parquet .*got the path '.*a\.csv'"):
        open_rows(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"There is no '.*nowhere\.npy'"):
        open_rows(tmp_path / "nowhere.npy")


def test_damaged_pages_of_parquet(tmp_path):
    path = as_parquet(tmp_path)
    good = path.read_bytes()
    path.write_bytes(good[:4] + bytes(200) + good[204:])
    with pytest.raises(ValueError, match=r"cannot be read as a parquet file"):
        list(open_rows(path).chunks())


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0], "b": ["x"]}, r"'.*1\.parquet' needs column 'b' to be double as in the first file .*got string"),
        ({"a": [1.0], "b": [["x"]]}, r"'.*1\.parquet' needs column 'b' to be double .*got list"),
        ({"a": [1.0], "b": [[1.0]]}, r"'.*1\.parquet' needs column 'b' to be double .*got list"),
        ({"a": [1.0]}, r"'.*1\.parquet' needs column 'b' to be double .*got no such column"),
        ({"a": [1.0], "b": [1.0], "c": [1.0]}, r"'.*1\.parquet' needs column 'c' to be absent .*got double"),
    ],
)
def test_a_changed_schema_names_file_and_column(tmp_path, columns, message):
    pq.write_table(pa.table({"a": [1.0], "b": [1.0]}), tmp_path / "0.parquet")
    pq.write_table(pa.table(columns), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=message):
        open_rows(tmp_path)
    assert open_rows(tmp_path, columns=["a"]).shape == (2, 1)  # as the message says


def test_columns_that_are_no_numbers_are_named(tmp_path):
    table = pd.DataFrame({"age": [1.0, 2.0], "sex": ["f", "m"]})
    table.to_parquet(tmp_path / "a.parquet")
    lazy = dask.dataframe.from_pandas(table, npartitions=1)
    for data in (table, table.astype({"sex": "category"}), tmp_path / "a.parquet", lazy):
        with pytest.raises(ValueError, match=r"needs numbers in every column, got .* in column 'sex': .*columns="):
            open_rows(data)
        assert open_rows(data, columns=["age"]).shape == (2, 1)
    for data in (
        np.array([["a"]]),
        np.array([[None, "a"]]),
        np.array([[1j]]),
        np.array([["2020-01-01"]], dtype="M8[D]"),
    ):
        with pytest.raises(ValueError, match="Z needs real numbers, got values of type"):
            open_rows(data)
    with pytest.raises(ValueError, match="in column 'c'"):
        open_rows(pd.DataFrame({"c": [1j]}))


def test_repeated_columns():
    with pytest.raises(ValueError, match="distinct column names, got 'a' more than once"):
        open_rows(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_unknown_columns(tmp_path):
    for data in (frame(), as_parquet(tmp_path), as_dask_frame(None), annotated(numbers())):
        with pytest.raises(ValueError, match=r"columns= needs columns of .*'gene0'.*, got 'gene9'"):
            open_rows(data, columns=["gene1", "gene9"])
    for wrong in (["gene1"], [4], [-1], []):
        with pytest.raises(ValueError, match="positions from 0 to 3, since Z has no column names"):
            open_rows(numbers(), columns=wrong)


def test_nothing_there(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"folder with \.parquet files is needed, and '.*empty' has none"):
        open_rows(tmp_path / "empty")
    np.save(tmp_path / "a.npy", np.empty((0, 3)))
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), tmp_path / "a.parquet")
    none = [
        np.empty((0, 3)),
        np.empty((3, 0)),
        pd.DataFrame({"a": []}),
        sparse.csr_matrix((0, 2)),
        *tensors(np.empty((0, 2))),
    ]
    for data in [*none, tmp_path / "a.npy", tmp_path / "a.parquet", dask.array.zeros((0, 2))]:
        with pytest.raises(ValueError, match="at least one row and one column, got shape"):
            open_rows(data)


def test_wrong_dimensions(tmp_path):
    np.save(tmp_path / "a.npy", np.ones(5))
    zarr.create_array(str(tmp_path / "a.zarr"), data=np.ones((2, 2, 2)))
    shapes = [np.ones(5), np.ones((2, 2, 2)), *tensors(np.ones(3)), np.float64(3), dask.array.ones((2, 2, 2))]
    for data in [*shapes, tmp_path / "a.npy", tmp_path / "a.zarr"]:
        with pytest.raises(ValueError, match="needs two dimensions"):
            open_rows(data)


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_sparse_tensors_are_not_read():
    with pytest.raises(ValueError, match=r"X needs a table .* got a sparse tensor of torch"):
        open_rows(torch.eye(3).to_sparse(), name="X")


def test_unknown_objects():
    ragged = [[1, 2], [3]]
    for data in (7, {"a": 1}, None, (row for row in numbers()), ragged):
        with pytest.raises(ValueError, match=r"X needs an array or DataFrame, .*\.h5ad, got"):
            open_rows(data, name="X")


@pytest.mark.parametrize("rows", [0, -1, 1.5, "many", True])
def test_chunk_rows_is_a_positive_whole_number(rows):
    with pytest.raises(ValueError, match="chunk_rows needs a whole number of at least 1"):
        open_rows(numbers(), chunk_rows=rows)
    with pytest.raises(ValueError, match="chunk_rows needs a whole number of at least 1"):
        open_rows(numbers()).chunks(rows)
    with pytest.raises(ValueError, match="start needs a row from 0 to 53"):
        open_rows(numbers()).chunks(1, -1)


def test_a_missing_package_names_its_extra(tmp_path):
    """In a process where the packages cannot be imported; covalign.stream itself can."""
    missing = {"zarr": ("zarr", "a.zarr"), "pyarrow": ("parquet", "a.parquet"), "h5py": ("scverse", "a.h5ad")}
    for _, name in missing.values():
        (tmp_path / name).mkdir()
    code = f"""
import sys
sys.modules |= dict.fromkeys({list(missing)!r})
from covalign.stream import open_rows, open_sink
for name in {[name for _, name in missing.values()]!r}:
    for call in (open_rows, lambda path: open_sink(path.replace("a.", "b."), (3, 2))):
        try:
            call({str(tmp_path)!r} + "/" + name)
        except (ImportError, ValueError) as error:
            print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for package, (extra, _) in missing.items():
        message = f"This needs {package}, which is not installed. Install it with  pip install 'covalign[{extra}]'"
        assert result.stdout.count(message) == (1 if package == "h5py" else 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(name for _, name in missing.values())
