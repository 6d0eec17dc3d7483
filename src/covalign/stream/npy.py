"""Arrays saved by numpy: ``.npy`` files, and ``.npz`` archives, which are read as streams. Nothing is unpickled."""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from covalign._core.files import DAMAGED, explaining, reading
from covalign._core.messages import message
from covalign.exceptions import FileFormatError
from covalign.stream.memory import ArrayRows, MappedRows
from covalign.stream.source import Table, which_array

NEED = "an array saved with numpy.save or numpy.savez"
VERSIONS = ((1, 0), (2, 0), (3, 0))


def from_npy(path: Path, member: str | None = None, **options: Any) -> Table:
    """Rows of an ``.npy`` file, or of one in an archive, after a check that it is complete."""
    with opened(path, member) as (file, size):
        shape, by_columns, dtype = header(file, path, member, size)
        offset = file.tell()
    if not by_columns and 0 not in shape:
        return NpyRows(path, member, shape, dtype, offset, **options)
    if member is None and 0 not in shape:  # a row is spread over the file, so it is mapped
        return MappedRows(np.load(path, mmap_mode="r", allow_pickle=False), str(path), **options)
    return ArrayRows(read_member(path, member), str(path), **options)


def read_member(path: Path, member: str | None) -> Any:
    """A whole array of an archive, or the array of the file, after a check that its bytes are there."""
    with opened(path, member) as (file, size):
        return _whole(file, path, member, size)


def read_archive(path: Path) -> dict[str, Any]:
    """All arrays of an ``.npz`` archive by name; only members that hold arrays are read."""
    with reading(path, NEED, DAMAGED), zipfile.ZipFile(path) as archive:
        arrays = {}
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                with explaining(path, called(info.filename), DAMAGED), archive.open(info) as file:
                    arrays[info.filename.removesuffix(".npy")] = _whole(file, path, info.filename, info.file_size)
        return arrays


def _whole(file: IO[bytes], path: Path, member: str | None, size: int) -> Any:
    shape, by_columns, dtype = header(file, path, member, size)
    flat = np.empty(math.prod(shape), dtype)
    _fill(file, flat, path, member)
    file.read(1)  # an archive compares checksums at the end
    return flat.reshape(shape, order="F" if by_columns else "C")


def _fill(file: IO[bytes], into: Any, path: Path, member: str | None) -> None:
    """Fill a contiguous array with the next bytes of the file."""
    flat: Any = into.reshape(-1).view(np.uint8) if into.size and into.dtype.itemsize else np.empty(0, np.uint8)
    room, got = memoryview(flat), 0
    while got < len(room):
        more = file.readinto(room[got:])  # type: ignore[attr-defined]  # every binary file has it
        if not more:
            raise truncated_file(path, member, len(room), got)
        got += more


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

    def __init__(
        self, path: Path, member: str | None, shape: Any, dtype: np.dtype[Any], offset: int, **options: Any
    ) -> None:
        self._path, self._member, self._stored, self._offset = path, member, dtype, offset
        super().__init__(str(path), shape, dtype, **options)

    def _pieces(self, rows: int, start: int) -> Iterator[Any]:
        n, width = self.shape[0], self._stored_width
        with opened(self._path, self._member) as (file, _):
            file.seek(self._offset + start * width * self._stored.itemsize)
            while start < n:
                stop = min(n, start - start % rows + rows)
                piece = np.empty((stop - start, width), dtype=self._stored)
                _fill(file, piece, self._path, self._member)
                yield self._finish(piece)
                start = stop


@contextmanager
def opened(path: Path, member: str | None) -> Iterator[tuple[IO[bytes], int]]:
    """The file, or one member of the archive, and its size."""
    if member is None:
        with reading(path, NEED, DAMAGED), path.open("rb", buffering=0) as file:  # chunks are larger than a buffer
            yield file, path.stat().st_size
    else:
        need = called(member)
        with reading(path, need, DAMAGED), zipfile.ZipFile(path) as archive, archive.open(member) as file:
            yield file, archive.getinfo(member).file_size


def header(file: IO[bytes], path: Path, member: str | None, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns are contiguous, and type; the file is then at the first number.

    ``size`` is that of the file, which needs to hold all numbers that the header claims.
    """
    with explaining(path, called(member)), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on headers that Python 2 wrote
        version = npy.read_magic(file)
        if version not in VERSIONS:
            raise ValueError(f"version {version} of the format is unknown")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = read(file)
        if min(shape, default=0) < 0:
            raise ValueError(f"its shape is {shape}")
    if dtype.hasobject:
        problem = f"{str(path)!r}{'' if member is None else f', member {member!r},'} needs plain numbers"
        got = "pickled objects, which are never loaded because they can run code"
        raise FileFormatError(message(problem, got=got, remedy="save the array with a numeric dtype"))
    need = file.tell() + math.prod(shape) * dtype.itemsize
    if size < need:
        raise truncated_file(path, member, need, size)
    return tuple(shape), bool(by_columns) and len(shape) > 1, dtype


def called(member: str | None) -> str:
    """What a file, or a member of it, should have been."""
    return NEED if member is None else f"{NEED}, member {member!r}"


def truncated_file(path: Path, member: str | None, need: int, got: int) -> FileFormatError:
    """The error for a file that is shorter than its header says."""
    which = "" if member is None else f", member {member!r},"
    problem = f"{str(path)!r}{which} needs {need} bytes according to its header"
    return FileFormatError(message(problem, got=got, remedy="the file is truncated, copy or write it again"))
