"""An interrupted transform resumes if nothing has changed, and starts again if any number of its input has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import covalign as ca
from covalign.stream import Beside, Kept, fingerprint, identity, open_rows, open_sink
from covalign.stream import row_map as row_map_module
from covalign.stream.memory import ArrayRows
from tests.conftest import thorough

pytestmark = pytest.mark.filterwarnings("ignore")
N, D, CHUNK, STOP = 240, 8, 20, 120


@pytest.fixture(scope="module")
def data():
    s = ca.simulate.scenario("PN", n_samples=N, n_features=D, n_factors=4, n_covariates=2, random_state=1)
    return s.X, s.Y, np.sin(np.arange(float(N)))


@pytest.fixture(scope="module")
def models(data):
    X, Y, C = data
    factor = ca.InformedFactorAnalysis(4, max_iter=5).fit(X, Y, confounders=C)
    return {"aligner": ca.LatentAligner(shrinkage=0.1).fit(X, Y, confounders=C), "factor": factor}


both = pytest.mark.parametrize("which", ["aligner", "factor"])


def npy(folder, X):
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


def npz(folder, X):
    np.savez(folder / "x.npz", X=X)
    return folder / "x.npz"


def zarr(folder, X):
    module = pytest.importorskip("zarr")
    array = module.create_array(folder / "x.zarr", shape=X.shape, chunks=(40, D), dtype=X.dtype, overwrite=True)
    array[:] = X
    return folder / "x.zarr"


def parquet(folder, X):
    pytest.importorskip("pyarrow")
    (folder / "x").mkdir(exist_ok=True)
    for name, part in (("a", X[:100]), ("b", X[100:])):
        pd.DataFrame(part, columns=[str(i) for i in range(D)]).to_parquet(folder / "x" / f"{name}.parquet")
    return folder / "x"


def h5ad(folder, X):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(sparse.csr_matrix(X)).write_h5ad(folder / "x.h5ad")
    return folder / "x.h5ad"


def array(folder, X):
    return X.copy()


def matrix(folder, X):
    return sparse.csr_matrix(X)


def changed(X, row):
    other = X.copy()
    other[row, 3] += 1.0
    return other


def run(model, rows, C, out, monkeypatch, stop=None):
    """``transform`` to a file, interrupted after ``stop`` rows; returns how many rows were computed."""
    rows = open_rows(rows, chunk_rows=CHUNK)
    real, seen = row_map_module.in_step, []

    def in_step(*args):
        for parts in real(*args):
            if stop is not None and sum(seen) >= stop:
                raise KeyboardInterrupt
            seen.append(parts[0].shape[0])
            yield parts

    with monkeypatch.context() as patch:
        patch.setattr(row_map_module, "in_step", in_step)
        if stop is None:
            model.transform(rows, confounders=C, out=out)
        else:
            with pytest.raises(KeyboardInterrupt):
                model.transform(rows, confounders=C, out=out)
    return sum(seen)


@both
@pytest.mark.parametrize("row", [N // 2, None, *thorough(0, N - 1)])
@pytest.mark.parametrize("store", [npy, npz, zarr, parquet, h5ad, array, matrix])
def test_a_changed_row_starts_again_and_unchanged_rows_resume(which, store, row, models, data, tmp_path, monkeypatch):
    X, _, C = data
    model, out = models[which], tmp_path / "out.npy"
    assert run(model, store(tmp_path, X), C, out, monkeypatch, STOP) == STOP
    assert json.loads((tmp_path / ".out.npy.part" / "progress.json").read_text())["done"] == STOP
    names = {"npy": "x.npy", "npz": "x.npz", "zarr": "x.zarr", "parquet": "x", "h5ad": "x.h5ad"}
    if row is not None:
        rows = store(tmp_path, changed(X, row))
    else:
        rows = tmp_path / names[store.__name__] if store.__name__ in names else store(tmp_path, X)
    assert run(model, rows, C, out, monkeypatch) == (N - STOP if row is None else N)
    now = X if row is None else changed(X, row)
    np.testing.assert_allclose(np.load(out), model.transform(now, confounders=C), rtol=1e-9, atol=1e-9)


@both
@pytest.mark.parametrize("restored", [False, True])
def test_a_write_into_the_middle_of_a_file_is_noticed(which, restored, models, tmp_path, data, monkeypatch):
    X, _, C = data
    model, out, path = models[which], tmp_path / "out.npy", npy(tmp_path, X)
    run(model, path, C, out, monkeypatch, STOP)
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(before.st_size - (N // 2) * D * 8)
        file.write(np.float64(7.5).tobytes())
    if restored:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_size == before.st_size
    assert run(model, path, C, out, monkeypatch) == N
    assert np.load(path)[N // 2, 0] == 7.5
    np.testing.assert_allclose(np.load(out), model.transform(np.load(path), confounders=C), rtol=1e-9, atol=1e-9)


def test_a_change_without_any_trace_in_times_is_noticed(tmp_path, monkeypatch):
    """A memory map of another program may write without a time: all bytes up to 64 MB count, wherever they are."""
    X = np.random.default_rng(3).standard_normal((40_000, D))
    stores = {"one": [npy(tmp_path, X)], "many": []}
    (tmp_path / "folder").mkdir()
    for i in range(30):
        part = pd.DataFrame(X[i * 50 : i * 50 + 50], columns=[str(j) for j in range(D)])
        part.to_parquet(tmp_path / "folder" / f"{i:02}.parquet")
        stores["many"].append(tmp_path / "folder" / f"{i:02}.parquet")
    for name, files in stores.items():
        source = open_rows(files[0] if name == "one" else tmp_path / "folder")
        frozen = {file.resolve(): file.stat() for file in files}
        with monkeypatch.context() as patch:
            stat = Path.stat
            patch.setattr(Path, "stat", lambda self, frozen=frozen, stat=stat, **o: frozen.get(self) or stat(self, **o))
            known = identity(source)
            for file in (files[0], files[len(files) // 2], files[-1]):
                data = file.read_bytes()
                for at in (len(data) // 3, len(data) - 9):
                    file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
                    assert identity(source) != known
                file.write_bytes(data)
            assert identity(source) == known


@both
def test_a_map_that_is_written_to_is_noticed(which, models, tmp_path, data, monkeypatch):
    X, _, C = data
    model, out, path = models[which], tmp_path / "out.npy", npy(tmp_path, X)
    rows = np.load(path, mmap_mode="r+")
    run(model, rows, C, out, monkeypatch, STOP)
    rows[N // 2, 0] = 7.5  # and not flushed
    assert run(model, rows, C, out, monkeypatch) == N
    np.testing.assert_allclose(np.load(out), model.transform(np.array(rows), confounders=C), rtol=1e-9, atol=1e-9)


@both
def test_a_file_of_hdf5_that_is_written_to_is_noticed(which, models, tmp_path, data, monkeypatch):
    h5py = pytest.importorskip("h5py")
    X, _, C = data
    model, out = models[which], tmp_path / "out.npy"
    with h5py.File(tmp_path / "x.h5", "w") as file:
        rows = file.create_dataset("X", data=X, chunks=(40, D))
        run(model, rows, C, out, monkeypatch, STOP)
        rows[N // 2, 0] = 7.5  # and not flushed
        assert run(model, rows, C, out, monkeypatch) == N
        np.testing.assert_allclose(np.load(out), model.transform(rows[:], confounders=C), rtol=1e-9, atol=1e-9)


@both
def test_changed_confounders_or_a_changed_model_start_again(which, models, tmp_path, data, monkeypatch):
    X, _, C = data
    model, path = models[which], npy(tmp_path, X)
    other = model.at(lam=0.9) if which == "aligner" else model.realign(0.9)
    for model_now, now in ((model, C + (np.arange(N) == N // 2)), (other, C)):
        out = tmp_path / f"{id(model_now)}.npy"
        run(model, path, C, out, monkeypatch, STOP)
        assert run(model_now, path, now, out, monkeypatch) == N
        np.testing.assert_allclose(np.load(out), model_now.transform(X, confounders=now), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("change", ["a", "b", "swapped", "y", None])
def test_a_changed_view_among_several_starts_again(change, data, tmp_path, monkeypatch):
    X, Y, _ = data
    views = {"a": X[:, :4].copy(), "b": X[:, 4:].copy()}
    model = ca.InformedFactorAnalysis(4, max_iter=5).fit(views, Y)
    out, y, starts = tmp_path / "out.npy", Y.copy(), []
    real = row_map_module.write_rows

    def transform(stop):
        def write_rows(function, sources, sink):
            starts.append(sink.start)

            def stopping(start, *parts):
                if stop and start >= STOP:
                    raise KeyboardInterrupt
                return function(start, *parts)

            return real(stopping, sources, sink)

        monkeypatch.setattr(row_map_module, "write_rows", write_rows)
        model.transform({name: open_rows(view, chunk_rows=CHUNK) for name, view in views.items()}, y, out=out)

    monkeypatch.setattr(ArrayRows, "chunk_rows", CHUNK)
    with pytest.raises(KeyboardInterrupt):
        transform(True)
    if change in views:
        views[change][N // 2, 1] += 1
    elif change == "swapped":
        views = {"a": views["b"], "b": views["a"]}
    elif change == "y":
        y[N // 2] += 1
    transform(False)
    assert starts == [0, STOP if change is None else 0]
    np.testing.assert_allclose(np.load(out), model.transform(views, y), rtol=1e-9, atol=1e-9)


def test_a_saved_model_resumes(models, tmp_path, data, monkeypatch):
    X, _, C = data
    for which, model in models.items():
        model.save(tmp_path / which)
        run(model, npy(tmp_path, X), C, tmp_path / f"{which}.npy", monkeypatch, STOP)
        rest = run(ca.load(tmp_path / which), tmp_path / "x.npy", C, tmp_path / f"{which}.npy", monkeypatch)
        assert rest == N - STOP


def test_identity_follows_from_rows_and_columns(tmp_path, data):
    X = data[0]
    path = npy(tmp_path, X)
    source, flags = open_rows(path), np.arange(N) % 2 == 0
    assert identity(source) == identity(open_rows(path))
    others = [
        open_rows(path, [0, 1, 2, 3, 4, 5, 7, 6]),
        Kept(source, flags),
        Kept(source, ~flags),
        Beside(source, np.zeros((N, 1))),
        Beside(source, np.ones((N, 1))),
        open_rows(X),
        open_rows(X.astype(np.float32)),
    ]
    assert len({identity(other) for other in [source, *others]}) == len(others) + 1


def test_rows_that_cannot_be_compared_never_have_the_same_identity(data):
    da = pytest.importorskip("dask.array")
    source = open_rows(da.from_array(data[0], chunks=(50, D)))
    assert identity(source) != identity(source)


def test_a_backed_anndata_is_identified_by_its_file(tmp_path, data):
    anndata = pytest.importorskip("anndata")
    backed = anndata.read_h5ad(h5ad(tmp_path, data[0]), backed="r")
    assert identity(open_rows(backed)) == identity(open_rows(backed))
    assert identity(open_rows(backed[:50])) != identity(open_rows(backed[50:100]))  # rows of one file


def test_fingerprints_tell_arrays_apart():
    a = np.arange(6.0)
    different = [
        a,
        a.reshape(2, 3),
        a.reshape(3, 2),
        a.astype(np.float32),
        [a[:2], a[2:]],
        [a[:3], a[3:]],
        None,
        "a",
        1,
    ]
    assert len({fingerprint(one) for one in different}) == len(different)


RACE = """
import sys
import numpy as np
from covalign.stream import open_sink
path, value = sys.argv[1], float(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
done = 0
while done < 15:
    try:
        with open_sink(path, (30, 4), chunk_rows=10, key=str(value), overwrite=True) as sink:
            sink.write(np.full((30 - sink.start, 4), value))
        done += 1
    except ValueError as error:
        assert "Another run is writing" in str(error), error
print(done)
"""


@pytest.mark.parametrize("suffix", [".npy", *thorough(".zarr")])
def test_two_processes_that_replace_the_same_result_lose_nothing(suffix, tmp_path):
    path = tmp_path / f"out{suffix}"
    with open_sink(path, (30, 4), chunk_rows=10) as sink:
        sink.write(np.zeros((30, 4)))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen([sys.executable, "-c", RACE, str(path), value], **pipes) for value in ("1", "2", "3")]
    assert [process.stdout.readline() for process in runs] == ["ready\n"] * 3
    for process in runs:
        process.stdin.write("go\n")
        process.stdin.flush()
    done = [process.communicate()[0].strip() for process in runs]
    assert done == ["15", "15", "15"]
    rows = np.concatenate(list(open_rows(path).chunks()))
    assert np.unique(rows).tolist() in ([1.0], [2.0], [3.0])
    assert [entry.name for entry in Path(tmp_path).iterdir()] == [path.name]
