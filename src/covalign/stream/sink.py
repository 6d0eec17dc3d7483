"""Where results go: a file that appears only when it is complete, and that an interrupted run goes on with."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from covalign._core import validation as errors
from covalign.stream.pairs import read
from covalign.stream.source import CHUNK_BYTES, Source, is_zarr, stacked, working_dtype
from covalign.stream.writers import NpyWriter, ParquetWriter, Writer, ZarrWriter

VERSION = 1
NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
MOST_ROWS = 2**20  # of a narrow table in one row group or zarr chunk


def open_sink(
    path: Any,
    shape: tuple[int, int],
    dtype: Any = np.float64,
    names: Sequence[Any] | None = None,
    *,
    chunk_rows: int | None = None,
    key: str = "",
    overwrite: bool = False,
    checkpoint_seconds: float = 1.0,
) -> Sink:
    """A place for ``shape`` results at ``path`` (``.npy``, ``.zarr`` or ``.parquet``), to be filled in order of rows.

    Rows are collected in a hidden folder beside ``path``, which gets its name when all are there; before, nothing is
    to be seen under it. If the same call was interrupted before, ``sink.start`` is the first row that is still to be
    written. "The same" means shape, type, names, chunk size and ``key``, into which the caller puts whatever else
    decides the result (a hash of the map and of the input, say); otherwise the work begins anew. Progress is recorded
    at most every ``checkpoint_seconds``: that much work is repeated after a power failure. ``chunk_rows`` is the size
    of zarr chunks and parquet row groups. An ``.npy`` has no place for ``names``; a ``.parquet`` needs room for its
    rows twice while it is completed.
    """
    return Sink(Path(path), shape, dtype, names, chunk_rows, key, overwrite, checkpoint_seconds)


def write_rows(source: Source, function: Callable[[Any], Any], sink: Sink, rows: int | None = None) -> int:
    """Write ``function(chunk)`` for every chunk of ``source``; returns how many rows were computed.

    Chunks are cut at the same places whether or not this run began in the middle, so the last bits of the results do
    not tell: matrix products may round differently for other numbers of rows.
    """
    rows = source.chunk_rows if rows is None else rows
    n, first = source.shape[0], sink.start - sink.start % rows
    at = first if sink.start < n else n
    for chunk in read(source, rows, at):
        at += chunk.shape[0]
        result = function(chunk)
        sink.write(result[max(0, len(result) - (at - sink.start)) :])
    return at - first if sink.start < n else 0


def collected(source: Source, function: Callable[[Any], Any], columns: int, dtype: Any) -> Any:
    """``function(chunk)`` for every chunk of ``source``, in one array."""
    out, at = np.empty((source.shape[0], columns), dtype=dtype), 0
    for chunk in read(source):
        out[at : at + chunk.shape[0]] = function(chunk)
        at += chunk.shape[0]
    return out


class Sink:
    """A target for rows; use it as ``with open_sink(...) as sink``, which completes it unless there was an error."""

    def __init__(
        self,
        path: Path,
        shape: tuple[int, int],
        dtype: Any,
        names: Sequence[Any] | None,
        chunk_rows: int | None,
        key: str,
        overwrite: bool,
        checkpoint_seconds: float,
    ) -> None:
        if len(shape) != 2 or min(shape) < 1:
            raise errors.sink_shape(path, tuple(shape))
        self.path, self.shape = path, (int(shape[0]), int(shape[1]))
        self.dtype = working_dtype(str(path), dtype)
        self._names = None if names is None else tuple(map(str, names))
        if self._names is not None and len(set(self._names)) != self.shape[1]:
            raise errors.sink_names(path, self.shape[1], self._names)
        self._row_bytes = self.shape[1] * self.dtype.itemsize
        self._overwrite, self._pause = overwrite, checkpoint_seconds
        self._folder = path.parent / f".{path.name}.part"
        grain = _default_rows(self._row_bytes) if chunk_rows is None else errors.check_chunk_rows(chunk_rows)
        self._writer = self._writer_for(path.suffix.lower(), grain)
        self._fingerprint = {
            "version": VERSION,
            "shape": list(self.shape),
            "dtype": self.dtype.str,
            "names": None if self._names is None else list(self._names),
            "grain": self._writer.grain,
            "key": str(key),
        }
        self._restore()
        self._refuse_existing()
        self._begin()

    def _writer_for(self, suffix: str, grain: int) -> Writer:
        """The writer of the format; it touches nothing yet."""
        if suffix == ".npy":
            return NpyWriter(self._folder, self.shape, self.dtype)
        if suffix == ".zarr":
            return ZarrWriter(self._folder, self.shape, self.dtype, self._names, grain)
        if suffix == ".parquet":
            return ParquetWriter(self._folder, self.shape, self.dtype, self._names, grain)
        raise errors.unknown_sink(self.path)

    def _begin(self) -> None:
        if not self.path.parent.is_dir():
            raise errors.data_not_found(self.path.parent, f"a folder for {self.path.name}")
        self.start = self._done = 0
        self._had = 0.0
        self._pending: list[Any] = []
        with self._disk():
            self._folder.mkdir(exist_ok=True)
            self._lock = locked(self._folder / "lock", self.path)
        try:
            with self._disk():
                self.start = self._done = self._writer.begin(self._recorded())
                self._record()
            if isinstance(self._writer, NpyWriter):  # the size is known: better now than after hours of work
                need, free = (self.shape[0] - self.start) * self._row_bytes, _free(self.path.parent)
                if free is not None and need > free:
                    raise errors.disk_full(self.path, need, free, self.start)
        except BaseException:
            self._release()
            raise

    def write(self, rows: Any) -> None:
        """Take in the next rows."""
        rows = np.asarray(rows)
        waiting = sum(map(len, self._pending))
        room = self.shape[0] - self._done - waiting
        if rows.ndim != 2 or rows.shape[1] != self.shape[1] or len(rows) > room:
            raise errors.sink_rows_differ(self.path, (room, self.shape[1]), rows.shape)
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
        if time.monotonic() - self._had >= self._pause:
            self._checkpoint()

    def close(self) -> None:
        """Give the result its name; an error if rows are missing."""
        if self._done < self.shape[0]:
            self.interrupt()
            raise errors.rows_missing(self.path, self.shape[0], self._done)
        try:
            with self._disk():
                self._checkpoint()
                self._refuse_existing()
                whole = self._writer.finish()
                _rename(whole, self.path, self._folder / "old")
        finally:
            self._release()
        shutil.rmtree(self._folder, ignore_errors=True)

    def interrupt(self) -> None:
        """Stop here: what was written stays in the hidden folder, for a later call to go on with."""
        with suppress(OSError):  # a full disk has no room for a record either; the one before is still true
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
        """First the rows, then the record of them, each safely on the disk."""
        with self._disk():
            self._writer.sync()
            self._record()

    def _record(self) -> None:
        note = self._folder / "progress.json"
        fresh = note.with_suffix(".new")
        with fresh.open("w") as file:
            json.dump({**self._fingerprint, "done": self._done}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, note)
        self._had = time.monotonic()

    def _recorded(self) -> int:
        """Rows that an earlier run with the same fingerprint has completed."""
        try:
            note = json.loads((self._folder / "progress.json").read_text())
            done = note.pop("done")
        except (OSError, ValueError, KeyError, TypeError):  # no record, or none of ours
            return 0
        return int(done) if note == self._fingerprint else 0

    def _refuse_existing(self) -> None:
        if self.path.exists() and not self._overwrite:
            raise errors.target_exists(self.path)
        if not replaceable(self.path):
            raise errors.folder_in_the_way("out", self.path)

    def _restore(self) -> None:
        """Put back what an earlier run had moved aside when it was killed between two renames."""
        old = self._folder / "old"
        if old.exists() and not self.path.exists():
            os.rename(old, self.path)

    def _release(self) -> None:
        self._writer.close()
        self._lock.close()

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """Say how much room is needed where there is none."""
        try:
            yield
        except errors.DiskFullError:
            raise
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            need = (self.shape[0] - self._done) * self._row_bytes
            raise errors.disk_full(self.path, need, _free(self.path.parent), self._done) from error


def replaceable(path: Path) -> bool:
    """No folder, which may hold anything, but one that zarr has made."""
    return not path.is_dir() or (path.suffix.lower() == ".zarr" and is_zarr(path))


def _default_rows(row_bytes: int) -> int:
    return int(np.clip(CHUNK_BYTES // row_bytes, 1, MOST_ROWS))


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def locked(path: Path, target: Path) -> Any:
    """An open file that no other process has locked; the lock ends with the process, however that ends."""
    file = path.open("w")
    try:
        import fcntl
    except ImportError:  # Windows: no lock
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise errors.being_written(target) from None
    except OSError:  # a file system without locks
        pass
    return file


def _rename(whole: Path, target: Path, aside: Path) -> None:
    """Put the result in place: in one step, or, where a folder is in the way, with the old one kept until then."""
    if target.is_dir() or (target.exists() and whole.is_dir()):
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(target, aside)
        os.rename(whole, target)
    else:
        os.replace(whole, target)
    with suppress(OSError):  # not every file system lets a folder be synced
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
