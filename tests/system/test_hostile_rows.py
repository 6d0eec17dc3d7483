"""Arrays and tables that are damaged or make false claims: FileFormatError with the file's name, or rows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from covalign import read_table
from covalign.exceptions import FileFormatError
from covalign.stream import open_rows
from covalign.stream.chunked import refuse_code
from tests import hostile

N, K = 60, 4
FORMATS = [".npy", ".npz", ".zarr", ".parquet", ".h5ad"]


def made(folder, suffix):
    """A small file of each format."""
    X, path = np.random.default_rng(1).standard_normal((N, K)), folder / f"x{suffix}"
    if suffix == ".npy":
        np.save(path, X)
    elif suffix == ".npz":
        np.savez_compressed(path, X=X)
    elif suffix == ".zarr":
        array = pytest.importorskip("zarr").create_array(str(path), shape=X.shape, chunks=(20, K), dtype=X.dtype)
        array[:] = X
    elif suffix == ".parquet":
        pd.DataFrame(X, columns=list("abcd")).to_parquet(path, row_group_size=20)
    else:
        pytest.importorskip("anndata").AnnData(X).write_h5ad(path)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return {suffix: made(folder, suffix) for suffix in FORMATS}


def rows_or_refusal(path):
    """All rows, or FileFormatError (ValueError for data that are no table of numbers); no warning, nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            source = open_rows(path)
            n = sum(chunk.shape[0] for chunk in source.chunks(25))
        except FileFormatError as error:
            told = str(error)
        except ValueError as error:  # of one dimension, of text, without rows
            told = f"{path.name}: {error}"
            if not any(word in told for word in ("need", "names one", "has no")):
                raise
        else:
            told = path.name if n == source.shape[0] else ""
    assert path.name in told


def copied(original, folder):
    path = folder / original.name
    if path.is_dir():
        shutil.rmtree(path)
    (shutil.copytree if original.is_dir() else shutil.copyfile)(original, path)
    return path


# The HDF5 library can crash on random bytes (docs/reliability.md), so .h5ad files are only cut off here.
@pytest.mark.parametrize("suffix", [suffix for suffix in FORMATS if suffix != ".h5ad"])
@given(seed=st.integers(0, 2**32 - 1))
def test_random_bytes(whole, tmp_path_factory, suffix, seed):
    rng, path = np.random.default_rng(seed), copied(whole[suffix], tmp_path_factory.getbasetemp())
    for _ in range(3):
        original = whole[suffix]
        files = sorted(file for file in original.rglob("*") if file.is_file()) if original.is_dir() else [original]
        file = files[int(rng.integers(len(files)))]
        (path / file.relative_to(original) if original.is_dir() else path).write_bytes(
            hostile.damaged(rng, file.read_bytes())
        )
        rows_or_refusal(path)


def test_h5ad_files_that_are_cut_off(whole, tmp_path):
    path, data = tmp_path / "x.h5ad", whole[".h5ad"].read_bytes()
    for size in np.linspace(0, len(data) - 1, 30).astype(int):
        path.write_bytes(data[:size])
        with pytest.raises(FileFormatError, match=r"x\.h5ad"):
            open_rows(path)


@given(seed=st.integers(0, 2**32 - 1))
def test_random_edits_of_the_metadata_of_zarr(whole, tmp_path_factory, seed):
    rng, path = np.random.default_rng(seed), copied(whole[".zarr"], tmp_path_factory.getbasetemp())
    meta = json.loads((whole[".zarr"] / "zarr.json").read_text())
    for _ in range(5):
        (path / "zarr.json").write_text(json.dumps(hostile.edited_json(rng, meta)))
        rows_or_refusal(path)


# -- claims -----------------------------------------------------------------------------------------------------------

HUGE = [(10**12, 4), (2**62, 4), (2**40, 2**40), (-3, 4)]


@pytest.mark.parametrize("shape", HUGE)
@pytest.mark.parametrize("by_columns", [False, True])
def test_numpy_headers_that_claim_too_much(shape, by_columns, tmp_path):
    data = hostile.npy_bytes(np.zeros((3, 4)), shape=shape, fortran_order=by_columns)
    (tmp_path / "x.npy").write_bytes(data)
    hostile.zipped(tmp_path / "x.npz", {"X.npy": data})
    for name, word in (("x.npy", r"x\.npy'"), ("x.npz", r"x\.npz'.* member 'X\.npy'")):
        with pytest.raises(FileFormatError, match=word):
            open_rows(tmp_path / name)
        with pytest.raises(FileFormatError, match=name):
            read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("shape", "chunks"), [((10**12, 4), (20, 4)), ((60, 4), (10**12, 4)), ((10**9, 10**9), (1, 4))]
)
def test_zarr_metadata_that_claim_too_much(whole, tmp_path, shape, chunks):
    path = copied(whole[".zarr"], tmp_path)
    meta = json.loads((path / "zarr.json").read_text())
    meta["shape"], meta["chunk_grid"]["configuration"]["chunk_shape"] = shape, chunks
    (path / "zarr.json").write_text(json.dumps(meta))
    with pytest.raises(FileFormatError, match=r"x\.zarr' claims \d+ bytes of numbers and has \d+ bytes"):
        open_rows(path)


def test_hdf5_that_claims_too_much(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file.create_dataset("X", shape=(10**11, 10), chunks=(100, 10), dtype="f8")  # nothing is stored
    with pytest.raises(FileFormatError, match=r"x\.h5ad' claims 8000000000000 bytes of numbers and has 0 bytes"):
        open_rows(tmp_path / "x.h5ad")


def test_parquet_that_claims_other_numbers_of_rows(whole, tmp_path, monkeypatch):
    from covalign.stream import parquet

    path, real = copied(whole[".parquet"], tmp_path), parquet.head_of

    class Head:
        """A table of contents whose groups claim other numbers of rows; pyarrow writes none such."""

        def __init__(self, file, rows):
            self.true, self.rows = real(file), rows
            self.schema, self.num_row_groups = self.true.schema, self.true.num_row_groups

        def row_group(self, i):
            return type("Group", (), {"num_rows": self.rows})

    for rows, why in [
        (10**12, "claims"),
        (-1, "less than no rows"),
        (21, "3 rows are missing"),
        (19, "3 rows are too"),
    ]:
        monkeypatch.setattr(parquet, "head_of", lambda file, rows=rows: Head(file, rows))
        with pytest.raises(FileFormatError, match=why):
            list(open_rows(path).chunks())


def test_an_archive_of_text_zeros_is_no_bomb(tmp_path):
    """Compressed zeros are honest: as many as the header says."""
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros((20_000, 20)))
    assert sum(map(len, open_rows(tmp_path / "x.npz").chunks())) == 20_000


def test_pickled_chunks_are_never_loaded(tmp_path):
    """A compressor of zarr's second format would unpickle them, and this pickle makes a folder."""
    zarr = pytest.importorskip("zarr")
    path, mark = tmp_path / "x.zarr", tmp_path / "mark"
    zarr.create_array(str(path), shape=(N, K), chunks=(N, K), dtype="f8", zarr_format=2)
    meta = json.loads((path / ".zarray").read_text())
    (path / ".zarray").write_text(json.dumps({**meta, "compressor": {"id": "pickle", "protocol": 0}, "filters": None}))
    (path / "0.0").write_bytes(b"cos\nmkdir\n(V" + str(mark).encode() + b"\ntR.")
    with pytest.raises(FileFormatError, match=r"x\.zarr"):
        list(open_rows(path).chunks())
    assert not mark.exists()
    codec = pytest.importorskip("numcodecs").Pickle()
    with pytest.raises(FileFormatError, match="'x' needs plain numbers, got pickled chunks"):  # before zarr sees them
        refuse_code(SimpleNamespace(filters=(), compressors=(codec,)), "x")


# -- what is no file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [*FORMATS, ".csv", ".tsv", ".csv.gz"])
def test_a_fifo_is_refused_and_never_waited_for(suffix, tmp_path):
    os.mkfifo(tmp_path / f"x{suffix}")
    reader = read_table if suffix.startswith((".csv", ".tsv")) else open_rows
    with pytest.raises(FileFormatError, match="is a FIFO, and only regular files are read"):
        reader(tmp_path / f"x{suffix}")


def test_links_to_devices_and_circles(tmp_path):
    (tmp_path / "x.npy").symlink_to("/dev/zero")
    with pytest.raises(FileFormatError, match="is a device"):
        open_rows(tmp_path / "x.npy")
    (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
    for path in (tmp_path / "loop.npy", tmp_path / f"{'n' * 300}.npy"):
        with pytest.raises(FileFormatError, match="cannot be read"):
            open_rows(path)


MEMORY = """
import resource, sys
from covalign.exceptions import FileFormatError
from covalign.stream import open_rows
from covalign.stream.chunked import refuse_code
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        open_rows(path)
    except FileFormatError:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_nothing_is_allocated_for_a_claim(tmp_path):
    """Kilobytes of memory that false claims of 3 GB added, in a process of its own."""
    paths = [tmp_path / "x.npy", tmp_path / "y.npy"]
    for path, by_columns in zip(paths, (False, True), strict=True):
        path.write_bytes(hostile.npy_bytes(np.zeros((3, 4)), shape=(10**8, 4), fortran_order=by_columns))
    told = subprocess.run([sys.executable, "-c", MEMORY, *map(str, paths)], capture_output=True, text=True, check=True)
    assert int(told.stdout) < 50_000, told.stderr
