"""Files for results: a file appears only when it is complete, and a later run resumes an interrupted one."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from covalign._core import files
from covalign._core.checks import check_chunk_rows, check_flag
from covalign._core.messages import listed, message
from covalign._core.paths import replaceable
from covalign.exceptions import CannotWriteError, DiskFullError
from covalign.stream.source import CHUNK_BYTES, stacked, working_dtype
from covalign.stream.writers import WRITERS, NpyWriter

VERSION = 1
MOST_ROWS = 2**20  # of a narrow table in one row group or zarr chunk


class Sink:
    """A file for results of this shape at ``path`` (``.npy``, ``.zarr`` or ``.parquet``), written in order of rows.

    Rows are collected in a hidden folder beside ``path``; the file appears under its name when all rows are there. If
    the same call was interrupted before, ``sink.start`` is the first row that is still missing. "The same" means equal
    shape, type, names, chunk size and ``key`` (``identity.fingerprint`` of all else that decides the result); any other
    call starts again at row 0. Progress is recorded at most every ``checkpoint_seconds``: that much work is repeated
    after a power failure. ``chunk_rows`` is the size of zarr chunks and parquet row groups. An ``.npy`` stores no
    ``names``; a ``.parquet`` needs disk space for its rows twice while it is completed. ``with open_sink(...) as sink``
    completes the file unless there was an error.
    """

    def __init__(
        self,
        path: Any,
        shape: tuple[int, int],
        dtype: Any = np.float64,
        names: Sequence[Any] | None = None,
        *,
        chunk_rows: int | None = None,
        key: str = "",
        overwrite: bool = False,
        checkpoint_seconds: float = 1.0,
    ) -> None:
        path = files.given_path(path)
        if len(shape) != 2 or min(shape) < 1:
            problem = f"The results in {str(path)!r} need a shape of rows and columns, both at least 1"
            raise ValueError(message(problem, got=tuple(shape)))
        self.path, self.shape = path, (int(shape[0]), int(shape[1]))
        self.dtype = working_dtype(str(path), dtype)
        labels = None if names is None else list(map(str, names))
        if labels is not None and len(set(labels)) != self.shape[1]:
            problem = f"The results in {str(path)!r} need {self.shape[1]} distinct column names"
            got = f"{listed(labels)} ({len(labels)})"
            raise ValueError(message(problem, got=got, remedy="pass one name for each column"))
        if path.suffix.lower() not in WRITERS:
            problem = f"Results are written as .npy, .zarr or .parquet, got the path {str(path)!r}"
            raise ValueError(message(problem, remedy="Choose one of these suffixes"))
        self._row_bytes = self.shape[1] * self.dtype.itemsize
        self._overwrite, self._pause = check_flag("overwrite", overwrite), checkpoint_seconds
        self._folder = part_folder(path)
        fitting = int(np.clip(CHUNK_BYTES // self._row_bytes, 1, MOST_ROWS))
        grain = fitting if chunk_rows is None else check_chunk_rows(chunk_rows)
        self._writer = WRITERS[path.suffix.lower()](self._folder, self.shape, self.dtype, labels, grain)
        self._fingerprint = {
            "version": VERSION,
            "shape": list(self.shape),
            "dtype": self.dtype.str,
            "names": labels,
            "grain": self._writer.grain,
            "key": str(key),
        }
        self._begin()

    def _begin(self) -> None:
        self.start = self._done = 0
        self._recorded_at = 0.0
        self._pending: list[Any] = []
        with self._disk():
            self._lock = self._locked()
        try:
            self._restore()
            self._refuse_existing()
            with self._disk():
                done = self._recorded()
                if not (done and self._writer.has(done)):
                    self._clear_folder()
                    done = 0
                self._writer.begin(done)
                self.start = self._done = done
                self._record()
            if isinstance(self._writer, NpyWriter):  # the size is known: fail now, not after hours
                need = (self.shape[0] - self.start) * self._row_bytes
                if need > files.free_bytes(self.path.parent):
                    raise files.disk_full(self.path, need, self.start)
        except BaseException:
            if not any((self._folder / name).exists() for name in ("progress.json", "old")):  # nothing to resume
                self._remove_folder()
            self._release()
            raise

    def _locked(self) -> Any:
        """The lock of the hidden folder. This run holds it for all that follows, until it has removed the folder."""
        while True:
            with suppress(FileExistsError):
                self._folder.mkdir()
            with suppress(FileNotFoundError):  # another run has removed the folder meanwhile
                return files.locked(self._folder / "lock", target=self.path)

    def write(self, rows: Any) -> None:
        """Append the next rows."""
        rows = np.asarray(rows)
        waiting = sum(map(len, self._pending))
        room = self.shape[0] - self._done - waiting
        if rows.ndim != 2 or rows.shape[1] != self.shape[1] or len(rows) > room:
            problem = f"Rows written to {str(self.path)!r} need shape (at most {room}, {self.shape[1]})"
            remedy = "pass the shape of all rows to open_sink, and write no more than these"
            raise ValueError(message(problem, got=rows.shape, remedy=remedy))
        rows = rows.astype(self.dtype, copy=False)
        total = waiting + len(rows)
        grain = self._writer.grain
        ready = total if total + self._done == self.shape[0] else total - total % grain
        if not ready:
            self._pending.append(rows.copy())  # the caller may use its buffer again
            return
        block = stacked([*self._pending, rows])
        with self._disk():
            self._writer.append(self._done, block[:ready])
        self._done += ready
        self._pending = [block[ready:].copy()] if ready < total else []
        if time.monotonic() - self._recorded_at >= self._pause:
            self._checkpoint()

    def close(self) -> None:
        """Give the complete result its name; an error if rows are missing."""
        if self._done < self.shape[0]:
            self.interrupt()
            problem = f"{str(self.path)!r} needs {self.shape[0]} rows"
            remedy = "no file was made; write the other rows (the same call resumes where this one stopped)"
            raise ValueError(message(problem, got=f"{self._done} before it was closed", remedy=remedy))
        try:
            with self._disk():
                self._checkpoint()
                self._refuse_existing()
                whole = self._writer.finish()
                _rename(whole, self.path, self._folder / "old")
            self._remove_folder()
        finally:
            self._release()
        if os.name == "nt":  # Windows removes no open file
            shutil.rmtree(self._folder, ignore_errors=True)

    def interrupt(self) -> None:
        """Stop here. What was written stays in the hidden folder, and a later call resumes."""
        with suppress(OSError):  # a full disk has no space for a record; the last record is still valid
            self._checkpoint()
        self._release()

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.interrupt()

    def _checkpoint(self) -> None:
        """Wait until the rows are on the disk, then record how many there are."""
        with self._disk():
            self._writer.sync()
            self._record()

    def _record(self) -> None:
        files.write_text(self._folder / "progress.json", json.dumps({**self._fingerprint, "done": self._done}))
        self._recorded_at = time.monotonic()

    def _recorded(self) -> int:
        """Rows that an earlier run with the same fingerprint has completed; 0 without a record that can be believed."""
        record = self._folder / "progress.json"
        try:
            note = json.loads(record.read_text()) if record.is_file() else {}
            done = note.pop("done")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return 0
        known = note == self._fingerprint and type(done) is int and 0 <= done <= self.shape[0]
        return done if known and (done % self._writer.grain == 0 or done == self.shape[0]) else 0

    def _refuse_existing(self) -> None:
        if self.path.exists() and not self._overwrite:
            raise files.target_exists(self.path)
        if not replaceable(self.path):
            raise files.folder_in_the_way("out", self.path)

    def _restore(self) -> None:
        """Put back the old result if an earlier run was killed after moving it aside; remove one that was replaced."""
        old = self._folder / "old"
        if old.exists() and not old.is_symlink() and not self.path.exists():
            os.rename(old, self.path)
        _remove(old)

    def _clear_folder(self) -> None:
        for entry in list(self._folder.iterdir()):
            if entry.name != "lock":
                _remove(entry)

    def _remove_folder(self) -> None:
        """Remove the lock last: from then on another run may use the folder."""
        self._clear_folder()
        with suppress(OSError):
            (self._folder / "lock").unlink()
            self._folder.rmdir()

    def _release(self) -> None:
        self._writer.close()
        self._lock.close()

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Errors of the system become ours; on a full disk with the space that is needed and where work resumes."""
        try:
            with files.writing(self.path):
                yield
        except DiskFullError as error:
            need = (self.shape[0] - self._done) * self._row_bytes
            raise files.disk_full(self.path, need, self._done) from error.__cause__
        except CannotWriteError as error:  # of a file in the hidden folder: users know the path
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            raise files.cannot_write(self.path, cause) from cause


open_sink = Sink


def part_folder(path: Path) -> Path:
    """The hidden folder beside ``path`` that collects its rows."""
    return path.parent / files.hidden_name(path.name, "part")


def _remove(entry: Path) -> None:
    """Remove a file, a link or a folder, if there is one."""
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink(missing_ok=True)


def _rename(whole: Path, target: Path, aside: Path) -> None:
    """Put the result in place in one step; an old result that is a folder is moved aside first."""
    if target.is_dir() or (target.exists() and whole.is_dir()):
        _remove(aside)
        os.rename(target, aside)
        os.rename(whole, target)
    else:
        os.replace(whole, target)
    with suppress(OSError):  # not every file system lets a folder be synced
        files.sync(target.parent)
