"""Arrays saved by numpy: ``.npy`` files, and ``.npz`` archives, which are read as streams. Nothing is unpickled."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from covalign._core.files import DAMAGED, reading
from covalign._core.messages import message
from covalign.stream.memory import ArrayRows, MappedRows
from covalign.stream.source import Table, which_array

NEED = "an array saved with numpy.save or numpy.savez"


def from_npy(path: Path, member: str | None = None, **options: Any) -> Table:
    """Rows of an ``.npy`` file, or of one in an archive, after a check that it is complete."""
    with opened(path, member) as (file, size):
        shape, by_columns, dtype = header(file, path)
        need = file.tell() + int(np.prod(shape)) * dtype.itemsize
    if size < need:
        raise truncated_file(path, need, size)
    if not by_columns and 0 not in shape:
        return NpyRows(path, member, shape, dtype, **options)
    if member is None and 0 not in shape:  # a row is spread over the file, so it is mapped
        return MappedRows(np.load(path, mmap_mode="r", allow_pickle=False), str(path), **options)
    with opened(path, member) as (file, _):
        return ArrayRows(npy.read_array(file, allow_pickle=False), str(path), **options)


def from_npz(path: Path, key: str | None, **options: Any) -> Table:
    """Rows of one array of an ``.npz`` archive: the one called ``key``, or the only one."""
    have = members(path)
    if key is None and len(have) == 1:
        (key,) = have
    if key not in have:
        raise which_array(path, key, have)
    return from_npy(path, f"{key}.npy", **options)


def members(path: Path) -> list[str]:
    """Names of the arrays in an ``.npz`` archive."""
    with reading(path, NEED, DAMAGED), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


class NpyRows(Table):
    """Rows stored one after the other: each chunk is read into a new buffer.

    Plain reads rather than a memory map: the pages of a map count as memory of the process, and every one of them is
    an interruption of its own when it is first touched.
    """

    def __init__(self, path: Path, member: str | None, shape: Any, dtype: np.dtype[Any], **options: Any) -> None:
        self._path, self._member, self._stored = path, member, dtype
        super().__init__(str(path), shape, dtype, **options)

    def _pieces(self, rows: int, start: int) -> Iterator[Any]:
        n, width = self.shape[0], self._stored_width
        with opened(self._path, self._member) as (file, _):
            header(file, self._path)
            file.seek(start * width * self._stored.itemsize, 1)
            while start < n:
                stop = min(n, start - start % rows + rows)
                yield self._finish(self._next(file, stop - start))
                start = stop

    def _next(self, file: IO[bytes], rows: int) -> Any:
        piece = np.empty((rows, self._stored_width), dtype=self._stored)
        flat: Any = piece.reshape(-1).view(np.uint8)
        into, got = memoryview(flat), 0
        while got < len(into):
            more = file.readinto(into[got:])  # type: ignore[attr-defined]  # every binary file has it
            if not more:
                raise truncated_file(self._path, len(into), got)
            got += more
        return piece


@contextmanager
def opened(path: Path, member: str | None) -> Iterator[tuple[IO[bytes], int]]:
    """The file, or one member of the archive, and its size."""
    if member is None:
        with path.open("rb", buffering=0) as file:  # chunks are far larger than a buffer
            yield file, path.stat().st_size
    else:
        with reading(path, NEED, DAMAGED), zipfile.ZipFile(path) as archive, archive.open(member) as file:
            yield file, archive.getinfo(member).file_size


def header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns are contiguous, and type; the file is then at the first number."""
    with reading(path, NEED):
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = read(file)
    if dtype.hasobject:
        problem = f"{str(path)!r} needs plain numbers"
        got = "pickled objects, which are never loaded because they can run code"
        raise ValueError(message(problem, got=got, remedy="save the array with a numeric dtype"))
    return tuple(shape), bool(by_columns) and len(shape) > 1, dtype


def truncated_file(path: Path, need: int, got: int) -> ValueError:
    """The error for a file that is shorter than its header says."""
    problem = f"{str(path)!r} needs {need} bytes according to its header"
    return ValueError(message(problem, got=got, remedy="the file is truncated, copy or write it again"))
