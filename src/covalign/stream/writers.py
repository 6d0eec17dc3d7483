"""Writers that append rows to each format in a temporary folder, and can resume after an interruption.

All have the same methods. Rows come in whole grains (the last ones may be fewer); the sink decides when, and records
how many rows there are.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from covalign._core.extras import optional
from covalign._core.files import UNREADABLE, replacing, sync
from covalign.stream.npy import from_npy


class NpyWriter:
    """One ``.npy`` file, whose header has the final shape from the start."""

    grain = 1

    def __init__(self, folder: Path, shape: tuple[int, int], dtype: np.dtype[Any], names: Any, grain: int) -> None:
        self._path = folder / "rows.npy"
        self._file: Any = None
        head = BytesIO()
        npy.write_array_header_1_0(
            head, {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
        )
        self._head, self._row_bytes = head.getvalue(), shape[1] * dtype.itemsize

    def has(self, rows: int) -> bool:
        """Whether an earlier run left these rows: a file that begins with our header and is long enough."""
        if self._path.is_symlink() or not self._path.is_file() or self._path.stat().st_size < self._offset(rows):
            return False
        with self._path.open("rb") as file:
            return file.read(len(self._head)) == self._head

    def begin(self, done: int) -> None:
        """Prepare to resume after ``done`` rows; 0 is a new start."""
        self._file = self._path.open("r+b" if done else "wb", buffering=0)
        if not done:
            _write_all(self._file, self._head)

    def append(self, start: int, rows: Any) -> None:
        """Write rows whose first one is ``start``."""
        self._file.seek(self._offset(start))
        _write_all(self._file, np.ascontiguousarray(rows).reshape(-1).view(np.uint8))

    def sync(self) -> None:
        """Wait until all that was appended is on the disk."""
        os.fsync(self._file.fileno())

    def finish(self) -> Path:
        """The complete file or folder, ready to be renamed."""
        self.close()
        return self._path

    def close(self) -> None:
        """Close open files."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _offset(self, row: int) -> int:
        return len(self._head) + row * self._row_bytes


class ZarrWriter:
    """A zarr array (format 3) with one file for each chunk of rows; its attribute ``names`` has the column names."""

    def __init__(self, folder: Path, shape: tuple[int, int], dtype: np.dtype[Any], names: Any, grain: int) -> None:
        self._zarr = optional("zarr", "zarr")
        self._path, self._unsynced = folder / "rows.zarr", set[Path]()
        self._shape, self._dtype, self._names, self.grain = shape, dtype, names, min(grain, shape[0])
        self._array: Any = None

    def has(self, rows: int) -> bool:
        """Whether an earlier run left an array of this shape, type and chunks."""
        try:
            found = self._zarr.open_array(str(self._path), mode="r")
            same = found.shape == tuple(self._shape) and found.dtype == self._dtype
            return bool(same and found.chunks == (self.grain, self._shape[1]) and not self._path.is_symlink())
        except UNREADABLE:
            return False

    def begin(self, done: int) -> None:
        """Open the array, or make a new one."""
        if done:
            self._array = self._zarr.open_array(str(self._path), mode="r+")
            return
        self._array = self._zarr.create_array(
            str(self._path),
            shape=self._shape,
            chunks=(self.grain, self._shape[1]),
            dtype=self._dtype,
            attributes=None if self._names is None else {"names": list(self._names)},
            zarr_format=3,
            overwrite=True,
        )
        self._unsynced.add(self._path / "zarr.json")

    def append(self, start: int, rows: Any) -> None:
        """Write whole chunks."""
        self._array[start : start + len(rows)] = rows
        chunks = range(start // self.grain, -(-(start + len(rows)) // self.grain))
        self._unsynced |= {self._path / "c" / str(i) / "0" for i in chunks}

    def sync(self) -> None:
        """Wait for the disk; a chunk of zeros has no file."""
        for path in self._unsynced:
            if path.exists():
                sync(path, os.O_RDWR)
        self._unsynced.clear()

    def finish(self) -> Path:
        """The folder."""
        return self._path

    def close(self) -> None:
        """Nothing is kept open."""


class ParquetWriter(NpyWriter):
    """Rows as an ``.npy`` file first; at the end they are copied, a row group at a time, into one parquet file.

    A parquet file has its table of contents at the end, so one that was interrupted can be neither read nor continued.
    The rows need twice their disk space while they are copied.
    """

    def __init__(self, folder: Path, shape: tuple[int, int], dtype: np.dtype[Any], names: Any, grain: int) -> None:
        self._pa, self._pq = optional("pyarrow", "parquet"), optional("pyarrow.parquet", "parquet")
        self._folder, self._group = folder, grain
        labels = [f"x{i}" for i in range(shape[1])] if names is None else list(names)
        self._schema = self._pa.schema([(name, self._pa.from_numpy_dtype(dtype)) for name in labels])
        super().__init__(folder, shape, dtype, names, grain)

    def finish(self) -> Path:
        """One file of all row groups."""
        plain, whole = super().finish(), self._folder / "rows.parquet"
        # Dictionaries are for repeated values: for results they take a third more space and most of the time.
        options = {"schema": self._schema, "use_dictionary": False}
        # A Python file, so that a full disk raises an OSError of Python.
        with replacing(whole) as file, self._pq.ParquetWriter(file, **options) as writer:
            for chunk in from_npy(plain).chunks(self._group):
                columns = [self._pa.array(column) for column in np.ascontiguousarray(chunk.T)]
                writer.write_table(self._pa.Table.from_arrays(columns, schema=self._schema), self._group)
        return whole


WRITERS: dict[str, type[NpyWriter | ZarrWriter]] = {".npy": NpyWriter, ".zarr": ZarrWriter, ".parquet": ParquetWriter}


def _write_all(file: Any, data: Any) -> None:
    """Write all bytes: an unbuffered file may write only a part of them at once."""
    left = memoryview(data)
    while len(left):
        left = left[file.write(left) :]
