"""Whatever keeps a file from being written is told in our words, loses nothing, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import covalign as ca
from covalign._core import files
from covalign._core.files import replacing, write_text
from covalign.exceptions import CannotWriteError, DataNotFoundError, DiskFullError
from covalign.stream import open_rows

Z, Y = np.random.default_rng(0).standard_normal((2, 50, 4))
ALIGNER = ca.LatentAligner(shrinkage=0.1, folds=0).fit(Z, Y[:, :2])


def save(path):
    ALIGNER.save(path)


def report(path):
    ca.report.write(ALIGNER, path, overwrite=True)


def rows(path):
    ALIGNER.transform(Z, out=path, overwrite=True)


WRITERS = {"save": (save, ".covalign"), "report": (report, ".html"), "rows": (rows, ".npy"), "zarr": (rows, ".zarr")}
each = pytest.mark.parametrize(("write", "suffix"), WRITERS.values(), ids=WRITERS)


@each
def test_what_is_no_path(write, suffix):
    for path, got in [(3, "a int"), ("", "an empty text"), (b"x.npy", "a bytes"), ([], "a list")]:
        with pytest.raises(ValueError, match=f"A path to write to is needed, got {got}: give a file name"):
            write(path)
    if write is not rows:  # out=None is an array
        with pytest.raises(ValueError, match="A path to write to is needed, got None: give a file name"):
            write(None)


@each
def test_paths_that_cannot_be(write, suffix, tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / f"folder{suffix}" / "thesis").write_text("mine")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / f"fifo{suffix}")
    before = sorted(tmp_path.rglob("*"))
    cases = [
        (tmp_path / "nowhere" / f"a{suffix}", DataNotFoundError, r"There is no '.*nowhere'\. Give a folder for"),
        (tmp_path / "file" / f"a{suffix}", CannotWriteError, "is in a folder that is a file"),
        (tmp_path / f"folder{suffix}", ValueError, "choose another name, or remove the folder yourself"),
        (tmp_path / "loop" / f"a{suffix}", CannotWriteError, "a symbolic link that leads to itself"),
        (tmp_path / f"fifo{suffix}", CannotWriteError, "is a FIFO, and only regular files are replaced"),
        (tmp_path / ("n" * 300 + suffix), CannotWriteError, "is too long for this file system. Choose a shorter name"),
        (tmp_path / ("d/" * 2500 + suffix), CannotWriteError, "is too long for this file system"),
        (f"{tmp_path}/a\0b{suffix}", ValueError, "has characters that no file name can have"),
        (f"{tmp_path}/a\ud800b{suffix}", ValueError, "has characters that no file name can have"),
    ]
    for path, kind, words in cases:
        with pytest.raises(kind, match=words) as caught:
            write(path)
        assert isinstance(caught.value, ValueError)
        assert len(str(caught.value)) < 700
    assert sorted(tmp_path.rglob("*")) == before


def test_devices_are_never_replaced():
    for path in ("/dev/null", "/dev/full"):
        for write in (save, report):
            with pytest.raises(CannotWriteError, match=r"is a device, and only regular files are replaced\. Choose"):
                write(path)


@each
@pytest.mark.parametrize("letter", ["n", "é"])
def test_names_as_long_as_the_system_allows(write, suffix, letter, tmp_path):
    """Temporary names must not be longer than the name itself may be."""
    size = len(letter.encode())
    path = tmp_path / (letter * ((255 - len(suffix)) // size) + suffix)
    write(path)
    write(path)
    assert os.listdir(tmp_path) == [path.name]


@each
@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (errno.EACCES, CannotWriteError, "cannot be written: permission is denied. Choose another folder"),
        (errno.EROFS, CannotWriteError, "is on a disk that is read-only. Choose a folder on another disk"),
        (errno.ENOSPC, DiskFullError, "on its disk, .* are free. The disk is full or a size limit was reached"),
        (errno.EIO, CannotWriteError, r"cannot be written \(Input/output error\). Choose another path"),
    ],
)
def test_errors_of_the_system_are_told_in_our_words(write, suffix, code, kind, words, tmp_path, monkeypatch):
    path = tmp_path / f"a{suffix}"
    write(path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    def refused(*args, **options):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "mkstemp", refused)
        with pytest.raises(kind, match=f"{re.escape(str(path))}' .*{words}") as caught:
            write(path)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, OSError)
    now = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and ".part" not in str(file)}
    assert now == before


LIMITED = """
import resource, sys
import numpy as np
import covalign as ca
from covalign.exceptions import DiskFullError
rng = np.random.default_rng(0)
big = ca.LatentAligner(shrinkage=0.1, folds=0).fit(rng.standard_normal((300, 200)), rng.standard_normal((300, 3)))
small = ca.LatentAligner(shrinkage=0.1, folds=0).fit(rng.standard_normal((50, 4)), rng.standard_normal((50, 2)))
small.save(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))  # no file may grow beyond
for write in (big.save, lambda path: ca.report.write(big, path, overwrite=True)):
    try:
        write(sys.argv[1])
    except DiskFullError as error:
        print(error)
"""


def test_a_full_disk_says_what_is_needed_and_keeps_the_old_file(tmp_path):
    path = tmp_path / "old"
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIMITED, str(path)], capture_output=True, text=True, check=True
    )
    lines = told.stdout.splitlines()
    assert len(lines) == 2, told.stderr
    for line in lines:
        need = re.match(rf"'{path}' needs about (\d+) bytes more on its disk, \d+ are free\. The disk is full", line)
        assert need, line
        assert int(need[1]) > 50_000
        assert line.endswith("Nothing is lost: what was there is unchanged. Make room and write again.")
    assert told.stderr == ""
    assert ca.load(path).n_features_in_ == 4
    assert os.listdir(tmp_path) == ["old"]


# -- writers that were killed -----------------------------------------------------------------------------------------

STUCK = """
import sys, time
from covalign._core.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"part")
    print("writing", flush=True)
    time.sleep(60)
"""


def stuck(path):
    """A process in the middle of a write."""
    process = subprocess.Popen([sys.executable, "-c", STUCK, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "writing\n"
    return process


def test_the_next_write_removes_what_dead_writers_left(tmp_path):
    path = tmp_path / "model.covalign"
    other = tmp_path / "model.covalign.old"
    living = stuck(path)
    dead = [stuck(path), stuck(other)]
    for process in dead:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert len(os.listdir(tmp_path)) == 3
    mine = tmp_path / ".model.covalign.settings"
    mine.write_text("not a temporary file")
    save(path)
    left = sorted(set(os.listdir(tmp_path)) - {path.name, mine.name})
    assert len(left) == 2  # that of the living writer, and that of another file
    assert sum(name.startswith(".model.covalign.old.") for name in left) == 1
    living.terminate()
    living.communicate()
    save(path)
    write_text(other, "")
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, other.name, mine.name])


def test_a_temporary_file_that_was_taken_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    """Between its making and its lock another writer may remove it."""
    real, made = tempfile.mkstemp, []

    def removed(*args):
        handle, name = real(*args)
        made.append(name)
        if len(made) == 1:
            os.unlink(name)
        return handle, name

    monkeypatch.setattr(tempfile, "mkstemp", removed)
    with replacing(tmp_path / "a") as file:
        file.write(b"all")
    assert (tmp_path / "a").read_bytes() == b"all"
    assert len(made) == 2


def test_where_nothing_can_be_locked_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_lock", lambda file, wait=False: False)
    left = tmp_path / ".a.abcdefgh.covalign-tmp"
    left.write_bytes(b"")
    write_text(tmp_path / "a", "text")
    assert left.exists()
    monkeypatch.undo()
    write_text(tmp_path / "a", "text")
    assert not left.exists()


# -- two writers ------------------------------------------------------------------------------------------------------

WRITERS_AT_ONCE = """
import os, signal, sys, time
import numpy as np
import covalign as ca
Z, Y = np.random.default_rng(0).standard_normal((2, 50, 4))
model = ca.LatentAligner(shrinkage=0.1, folds=0).fit(Z, Y[:, :2])
import zarr

def write(path, end):
    told = set()
    while time.monotonic() < end:
        try:
            if path.endswith(".covalign"):
                model.save(path)
            else:
                model.transform(Z, out=path, overwrite=True)
        except Exception as error:
            told.add(f"{type(error).__name__}: {error}")
    if told:
        print(*told, sep=chr(10), flush=True)
    os._exit(0)

for path in sys.argv[1:]:
    end, children = time.monotonic() + 0.6, []
    for _ in range(3):
        children.append(os.fork())
        if children[-1] == 0:
            write(path, end)
    time.sleep(0.3)
    os.kill(children[0], signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
"""


def test_writers_at_once_and_a_killed_one_leave_whole_files(tmp_path):
    """One wins, whole, and the others are told so in our words; the next write removes what the killed one left."""
    paths = [tmp_path / suffix[1:] / f"o{suffix}" for suffix in (".zarr", ".npy", ".covalign")]
    for path in paths:
        path.parent.mkdir()
    command = [sys.executable, "-c", WRITERS_AT_ONCE, *map(str, paths)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    wait = "Wait until it has finished, or choose another path."
    assert set(told.stdout.splitlines()) <= {f"ValueError: Another run is writing {str(p)!r}. {wait}" for p in paths}
    for path in paths:
        (save if path.suffix == ".covalign" else rows)(path)
        assert os.listdir(path.parent) == [path.name]
    assert ca.load(paths[2]).n_features_in_ == 4
    assert open_rows(paths[0]).shape == open_rows(paths[1]).shape == (50, 2)
