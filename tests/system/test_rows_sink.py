"""Results appear complete or not at all, and a run that was interrupted goes on to the very same bytes."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import zarr

from covalign.exceptions import CannotWriteError, DiskFullError
from covalign.stream import open_rows, open_sink, write_rows
from covalign.stream import sink as sink_module
from tests.conftest import thorough

N, K, P = 47, 6, 3
NAMES = ["age", "dose", "stage"]
SUFFIXES = [".npy", ".zarr", ".parquet"]


def table() -> np.ndarray:
    return np.random.default_rng(5).standard_normal((N, K))


T = np.random.default_rng(6).standard_normal((K, P))


def project(start, chunk):
    return chunk @ T


def contents(path: Path) -> dict[str, bytes]:
    """Every byte of a file or folder."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def results(path: Path) -> np.ndarray:
    """What another program would read."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".zarr":
        return zarr.open_array(str(path), mode="r")[:]
    return pd.read_parquet(path).to_numpy()


def sink_at(path, **options):
    options = {"names": NAMES, "chunk_rows": 5, "key": "map 1", "checkpoint_seconds": 0, **options}
    return open_sink(path, (N, P), np.float64, **options)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Waiting for the disk guards against power failures, which no test has; it is what takes the time."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(handle))
    return synced


@pytest.fixture(params=SUFFIXES)
def path(request, tmp_path):
    return tmp_path / f"result{request.param}"


@pytest.fixture
def expected(path):
    """The bytes of a run without interruption."""
    other = path.parent / "whole" / path.name
    other.parent.mkdir()
    with sink_at(other) as sink:
        write_rows(project, [open_rows(table(), chunk_rows=7)], sink)
    whole = contents(other)
    shutil.rmtree(other.parent)
    return whole


@pytest.mark.parametrize("portions", [1, 4, 5, 12, N])
def test_what_is_written_is_read_again(path, portions):
    values = table()[:, :P]
    with sink_at(path) as sink:
        for start in range(0, N, portions):
            assert not path.exists()
            sink.write(values[start : start + portions])
    np.testing.assert_array_equal(results(path), values)
    assert os.listdir(path.parent) == [path.name]  # nothing is left beside it
    source = open_rows(path)
    np.testing.assert_array_equal(np.concatenate(list(source.chunks(10))), values)
    assert source.names == (None if path.suffix == ".npy" else tuple(NAMES))


def test_portions_leave_no_trace(path):
    written = set()
    for portions in (3, 5, N):
        with sink_at(path, overwrite=True) as sink:
            for start in range(0, N, portions):
                sink.write(table()[start : start + portions, :P])
        written.add(tuple(sorted(contents(path).items())))
    assert len(written) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_types(path, dtype):
    values = (100 * table()[:, :P]).astype(dtype)
    with open_sink(path, (N, P), dtype) as sink:
        sink.write(values)
    assert results(path).dtype == dtype
    np.testing.assert_array_equal(results(path), values)


def test_chunk_rows_are_those_of_the_format(tmp_path):
    for suffix in (".zarr", ".parquet"):
        with sink_at(tmp_path / f"a{suffix}", chunk_rows=20) as sink:
            sink.write(table()[:, :P])
    assert zarr.open_array(str(tmp_path / "a.zarr"), mode="r").chunks == (20, P)
    with sink_at(tmp_path / "small.zarr", chunk_rows=None) as sink:
        sink.write(table()[:, :P])
    assert zarr.open_array(str(tmp_path / "small.zarr"), mode="r").chunks == (N, P)  # no larger than the array
    head = pq.read_metadata(tmp_path / "a.parquet")
    assert [head.row_group(i).num_rows for i in range(head.num_row_groups)] == [20, 20, 7]


def test_a_buffer_may_be_used_again(path):
    buffer = np.empty((3, P))
    with sink_at(path) as sink:
        for start in range(0, 45, 3):
            buffer[:] = table()[start : start + 3, :P]
            sink.write(buffer)
        sink.write(table()[45:, :P])
    np.testing.assert_array_equal(results(path), table()[:, :P])


def test_zeros_need_no_chunk_file(tmp_path):
    """zarr leaves chunks of nothing but zeros out; that is no missing file."""
    with sink_at(tmp_path / "a.zarr") as sink:
        sink.write(np.zeros((N, P)))
    np.testing.assert_array_equal(results(tmp_path / "a.zarr"), np.zeros((N, P)))


# -- interruption -----------------------------------------------------------------------------------------------------


class Interrupted(BaseException):
    """Like Ctrl-C."""


def interrupted_after(path, rows, **options):
    """A run that wrote this many rows and no more."""
    sink = sink_at(path, **options)
    sink.write(rows)
    sink.interrupt()


def failing_after(calls, count):
    def function(start, chunk):
        if len(calls) == count:
            raise Interrupted
        calls.append(len(chunk))
        return project(start, chunk)

    return function


def test_an_interrupted_run_goes_on_where_it_stopped(path, expected):
    source, first, second = open_rows(table(), chunk_rows=7), [], []
    with pytest.raises(Interrupted), sink_at(path) as sink:
        write_rows(failing_after(first, 4), [source], sink)
    assert sink.start == 0
    assert not path.exists()
    with sink_at(path) as sink:
        assert sink.start == (25 if path.suffix == ".zarr" else 28)  # whole zarr chunks
        computed = write_rows(failing_after(second, 99), [source], sink)
    # Chunks that were complete are not computed again; one that was stored in part is, from its beginning.
    assert first == [7] * 4
    assert second == ([7, 7, 7, 5] if path.suffix == ".zarr" else [7, 7, 5])
    assert computed == sum(second)
    assert contents(path) == expected
    assert os.listdir(path.parent) == [path.name]


def test_several_interruptions(path, expected):
    source = open_rows(table(), chunk_rows=7)
    starts = []
    for _ in range(20):
        try:
            with sink_at(path) as sink:
                starts.append(sink.start)
                write_rows(failing_after([], 2), [source], sink)
            break
        except Interrupted:
            assert not path.exists()
    assert starts == sorted(set(starts))
    assert len(starts) >= 3
    assert contents(path) == expected


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from tests.system.test_rows_sink import open_rows, project, sink_at, table, write_rows
for path in {paths!r}:
    if os.fork() == 0:
        calls = []
        def function(start, chunk):
            calls.append(1)
            if len(calls) == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            return project(start, chunk)
        with sink_at(path) as sink:
            write_rows(function, [open_rows(table(), chunk_rows=7)], sink)
    else:
        print(os.wait()[1])
"""


def test_a_run_killed_in_the_middle_goes_on(tmp_path):
    """SIGKILL: no handler runs, nothing is tidied up."""
    paths = [tmp_path / f"killed{suffix}" for suffix in SUFFIXES]
    code = KILLED.format(root=str(Path(__file__).parents[2]), paths=[str(path) for path in paths])
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.split() == [str(int(signal.SIGKILL))] * 3, process.stderr
    for path in paths:
        assert not path.exists()
        whole = path.with_stem("whole")
        with sink_at(whole) as sink:
            write_rows(project, [open_rows(table(), chunk_rows=7)], sink)
        calls: list[int] = []
        with sink_at(path) as sink:
            assert sink.start == (25 if path.suffix == ".zarr" else 28)
            write_rows(failing_after(calls, 99), [open_rows(table(), chunk_rows=7)], sink)
        assert sum(calls) < N
        assert list(contents(path).values()) == list(contents(whole).values())
    assert {path.stem for path in tmp_path.iterdir()} == {"killed", "whole"}


def test_rows_after_the_last_record_are_written_again(path, expected):
    """With rare checkpoints a killed run has rows on disk that no record vouches for."""
    sink = sink_at(path, checkpoint_seconds=1e9)
    values = project(0, table())
    sink.write(values[:20] + 1)  # not what the second run computes: it has to write over them
    sink._release()  # as if killed: no record
    with sink_at(path) as sink:
        assert sink.start == 0
        write_rows(project, [open_rows(table(), chunk_rows=7)], sink)
    assert contents(path) == expected


def test_killed_between_the_last_row_and_the_name(path, expected, monkeypatch):
    real = sink_module._rename

    def killed(*args):
        raise Interrupted

    monkeypatch.setattr(sink_module, "_rename", killed)
    with pytest.raises(Interrupted), sink_at(path) as sink:
        write_rows(project, [open_rows(table(), chunk_rows=7)], sink)
    monkeypatch.setattr(sink_module, "_rename", real)
    assert not path.exists()
    with sink_at(path) as sink:
        assert sink.start == N
        assert write_rows(failing_after([], 0), [open_rows(table(), chunk_rows=7)], sink) == 0
    assert contents(path) == expected


@pytest.mark.parametrize(
    "change",
    [{"key": "map 2"}, {"names": ["a", "b", "c"]}, {"chunk_rows": 4}],
    ids=lambda change: next(iter(change)),
)
def test_another_fingerprint_begins_anew(path, change):
    interrupted_after(path, np.zeros((20, P)))
    with sink_at(path, **change) as sink:
        assert sink.start == (20 if path.suffix != ".zarr" and "chunk_rows" in change else 0)
        write_rows(project, [open_rows(table(), chunk_rows=7)], sink)
    if sink.start == 0:
        np.testing.assert_allclose(results(path), project(0, table()), rtol=1e-12)


def test_another_shape_or_type_begins_anew(path):
    for shape, dtype in [((N, P), "f8"), ((N + 1, P), "f8"), ((N, P), "f4")]:
        sink = open_sink(path, shape, dtype, chunk_rows=5, checkpoint_seconds=0)
        assert sink.start == 0
        sink.write(np.zeros((20, P)))
        sink.interrupt()


@pytest.mark.parametrize("note", ["", "[]", '{"done": 20}', *thorough("{", "null", "7", "[" * 100_000, "\x00")])
def test_a_damaged_record_begins_anew(path, note):
    interrupted_after(path, np.zeros((20, P)))
    record = path.parent / f".{path.name}.part" / "progress.json"
    assert json.loads(record.read_text())["done"] == 20
    record.write_text(note)
    with sink_at(path) as sink:
        assert sink.start == 0
        sink.write(table()[:, :P])


@pytest.mark.parametrize("done", [-5, "20", None, 3, *thorough(48, 1e9, True, 20.5, [20])])
def test_a_record_that_cannot_be_begins_anew(path, done):
    interrupted_after(path, np.zeros((20, P)))
    record = path.parent / f".{path.name}.part" / "progress.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "done": done}))
    with sink_at(path) as sink:
        assert sink.start == (3 if done == 3 and path.suffix != ".zarr" else 0)  # a number that could be true
        sink.write(table()[sink.start :, :P])


def test_foreign_files_in_the_hidden_folder_begin_anew(path):
    """Rows of another program, and links that lead out of the folder: what they lead to is never written to."""
    folder, mine = path.parent / f".{path.name}.part", path.parent / "mine"
    mine.write_text("mine")
    for name in ("rows.npy", "rows.zarr", "progress.json", "old"):
        interrupted_after(path, np.zeros((20, P)), overwrite=True)
        shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(mine)
        with sink_at(path, overwrite=True) as sink:
            sink.write(table()[sink.start :, :P])
        assert mine.read_text() == "mine"
        assert sorted(os.listdir(path.parent)) == sorted(["mine", path.name])


def test_a_record_without_its_rows_begins_anew(path):
    interrupted_after(path, np.ones((20, P)))
    folder = path.parent / f".{path.name}.part"
    (folder / ("rows.zarr/zarr.json" if path.suffix == ".zarr" else "rows.npy")).unlink()
    with sink_at(path) as sink:
        assert sink.start == 0
        sink.write(table()[:, :P])
    np.testing.assert_array_equal(results(path), table()[:, :P])


def test_a_record_of_more_rows_than_there_are_begins_anew(tmp_path):
    interrupted_after(tmp_path / "a.npy", np.ones((20, P)))
    part = tmp_path / ".a.npy.part" / "rows.npy"
    part.write_bytes(part.read_bytes()[:-1])
    with sink_at(tmp_path / "a.npy") as sink:
        assert sink.start == 0
        sink.write(table()[:, :P])
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), table()[:, :P])


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_an_existing_result_is_kept_unless_told(path):
    with sink_at(path) as sink:
        sink.write(table()[:, :P])
    before = contents(path)
    with pytest.raises(ValueError, match=r"exists already\. Choose another path, or pass overwrite=True"):
        sink_at(path)
    assert contents(path) == before
    interrupted_after(path, table()[:20, :P] + 1, overwrite=True)
    assert contents(path) == before  # until the new one is complete
    with sink_at(path, overwrite=True) as sink:
        sink.write(table()[sink.start :, :P] + 1)
    np.testing.assert_array_equal(results(path), table()[:, :P] + 1)
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_is_never_taken_for_an_old_result(path):
    (path / "thesis").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"the folder .*choose another name"):
        sink_at(path, overwrite=True)
    assert os.listdir(path.parent) == [path.name]
    assert (path / "thesis").is_dir()


def test_a_result_that_appears_meanwhile_is_kept(path):
    with pytest.raises(ValueError, match="exists already"), sink_at(path) as sink:  # noqa: PT012  # the end raises
        sink.write(table()[:, :P])
        path.write_text("mine")
    assert path.read_text() == "mine"


def test_killed_between_moving_the_old_folder_and_the_new(tmp_path, monkeypatch):
    path = tmp_path / "a.zarr"
    with sink_at(path) as sink:
        sink.write(table()[:, :P])
    before, real = contents(path), os.rename

    def killed(old, new):
        if Path(new) == path:
            raise Interrupted
        real(old, new)

    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(Interrupted), sink_at(path, overwrite=True) as sink:
        sink.write(table()[:, :P] + 1)
    monkeypatch.undo()
    assert not path.exists()
    with pytest.raises(ValueError, match="exists already"):  # the old one is back, and protected
        sink_at(path)
    assert contents(path) == before


def test_one_writer_at_a_time(path):
    with sink_at(path) as sink:
        with pytest.raises(ValueError, match="Another run is writing"):
            sink_at(path)
        sink.write(table()[:, :P])
    assert path.exists()


def test_missing_rows(path):
    with pytest.raises(ValueError, match="needs 47 rows, got 20 before it was closed"), sink_at(path) as sink:
        sink.write(table()[:20, :P])
    assert not path.exists()
    with sink_at(path) as sink:
        assert sink.start == 20
        sink.write(table()[20:, :P])
    assert path.exists()


@pytest.mark.parametrize("shape", [(N + 1, P), (3, P + 1), (3,), (3, 3, 3)])
def test_rows_of_a_wrong_shape(path, shape):
    with pytest.raises(ValueError, match=r"need shape \(at most 47, 3\), got"), sink_at(path) as sink:
        sink.write(np.zeros(shape))
    assert not path.exists()


def test_too_many_rows_in_portions(path):
    with pytest.raises(ValueError, match=r"at most 1, 3"), sink_at(path) as sink:  # noqa: PT012  # the second raises
        sink.write(np.zeros((46, P)))
        sink.write(np.zeros((2, P)))


def test_targets_that_cannot_be(tmp_path):
    with pytest.raises(ValueError, match=r"\.npy, \.zarr or \.parquet, got the path '.*a\.csv'"):
        sink_at(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"There is no .*Give a folder for a\.npy"):
        sink_at(tmp_path / "nowhere" / "a.npy")
    for names in (["a", "b"], ["a", "b", "b"]):
        with pytest.raises(ValueError, match="need 3 distinct column names"):
            sink_at(tmp_path / "a.npy", names=names)
    for shape in ((0, 3), (3, 0), (3,)):
        with pytest.raises(ValueError, match="shape of rows and columns, both at least 1"):
            open_sink(tmp_path / "a.npy", shape)
    with pytest.raises(ValueError, match="real numbers"):
        open_sink(tmp_path / "a.npy", (3, 3), "U5")
    with pytest.raises(ValueError, match="chunk_rows"):
        sink_at(tmp_path / "a.npy", chunk_rows=0)
    assert not os.listdir(tmp_path)


# -- a full disk ------------------------------------------------------------------------------------------------------

LIMITED = """
import resource
import numpy as np
from covalign.stream import open_sink
from covalign.exceptions import CannotWriteError, DiskFullError
sinks = [open_sink(path, (4000, 50), chunk_rows=1000, checkpoint_seconds=0, key="k") for path in {paths!r}]
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))  # no file may grow beyond
for sink in sinks:
    rng = np.random.default_rng(0)
    try:
        with sink:
            for _ in range(40):
                sink.write(rng.standard_normal((100, 50)))
    except DiskFullError as error:
        print(isinstance(error, ValueError), error)
"""


def test_a_size_limit_of_the_system(tmp_path):
    paths = [tmp_path / f"result{suffix}" for suffix in SUFFIXES]
    code = LIMITED.format(paths=[str(path) for path in paths])
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = process.stdout.splitlines()
    assert len(lines) == 3, process.stderr
    values = np.random.default_rng(0).standard_normal((4000, 50))
    for path, line in zip(paths, lines, strict=True):
        done = 0 if path.suffix == ".zarr" else 100
        assert line.startswith(f"True '{path}' needs about {(4000 - done) * 400} bytes more on its disk")
        assert line.endswith(f"it resumes at row {done}.")
        assert not path.exists()
        with open_sink(path, (4000, 50), chunk_rows=1000, key="k") as sink:
            assert sink.start == done
            sink.write(values[sink.start :])
        np.testing.assert_array_equal(results(path), values)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("step", ["append", "sync", "finish"])
def test_a_disk_that_fills_up(path, monkeypatch, step, code):
    sink = sink_at(path)
    real, calls = getattr(sink._writer, step), []

    def full(*args):
        calls.append(1)
        if len(calls) == (1 if step == "finish" else 3):
            raise OSError(code, "No space left on device")
        return real(*args)

    monkeypatch.setattr(sink._writer, step, full)
    message = rf"'{path}' needs about \d+ bytes more on its disk, \d+ are free"
    with pytest.raises(DiskFullError, match=message) as caught, sink:
        write_rows(project, [open_rows(table(), chunk_rows=7)], sink)
    assert isinstance(caught.value, ValueError)
    assert not path.exists()
    with sink_at(path) as again:  # once there is room
        assert again.start == N if step == "finish" else 0 < again.start < N
        write_rows(project, [open_rows(table(), chunk_rows=7)], again)
    np.testing.assert_allclose(results(path), project(0, table()), rtol=1e-12)


def test_other_errors_of_the_disk_are_told_in_our_words(path, monkeypatch):
    sink = sink_at(path)

    def broken(*args):
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(sink._writer, "append", broken)
    told = rf"'{path}' cannot be written: permission is denied\. Choose another folder"
    with pytest.raises(CannotWriteError, match=told) as caught, sink:
        sink.write(table()[:, :P])
    assert caught.value.errno == errno.EACCES


def test_a_disk_too_small_from_the_start(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(DiskFullError, match=rf"needs about {N * P * 8} bytes more on its disk, 1000 are free"):
        sink_at(tmp_path / "a.npy")
    monkeypatch.undo()
    with sink_at(tmp_path / "a.npy") as sink:  # the refusal left no lock behind
        sink.write(table()[:, :P])


def test_checkpoints_are_as_rare_as_asked(path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    sink, synced = sink_at(path, checkpoint_seconds=10), []
    real = sink._writer.sync
    monkeypatch.setattr(sink._writer, "sync", lambda: synced.append(now[0]) or real())
    with sink:
        for start in range(0, N, 5):
            now[0] += 4
            sink.write(table()[start : start + 5, :P])
    assert synced == [12, 24, 36, 40]  # and at the end


def test_rows_are_on_the_disk_before_the_record_of_them(path, quick_disk, monkeypatch):
    sink, order = sink_at(path), []
    real_record, real_sync = sink._record, sink._writer.sync
    monkeypatch.setattr(sink, "_record", lambda: order.append("record") or real_record())
    monkeypatch.setattr(sink._writer, "sync", lambda: order.append("rows") or real_sync())
    quick_disk.clear()
    sink.write(table()[:10, :P])
    assert order == ["rows", "record"]
    assert len(quick_disk) == {".npy": 2, ".zarr": 4, ".parquet": 2}[path.suffix]  # files of rows, and the record
    sink.interrupt()
