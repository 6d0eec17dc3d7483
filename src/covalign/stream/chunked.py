"""Chunked arrays on disk: zarr (formats 2 and 3), HDF5, and sparse matrices of AnnData in either."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

from covalign._core.extras import optional
from covalign._core.files import CLAIM_BYTES, check_claim, explaining, reading
from covalign._core.messages import message
from covalign.exceptions import ColumnLayoutWarning, FileFormatError
from covalign.stream.memory import SparseRows
from covalign.stream.source import Table, no_key, which_array

# What zarr, h5py and anndata raise on damaged bytes; a ValueError may be ours, about numbers that are no table.
DAMAGED_STORE = (RuntimeError, OSError, LookupError, TypeError, AttributeError, ArithmeticError, MemoryError)


class StoredRows(Table):
    """An array that another library reads: its errors name the file."""

    need = "an array on disk"

    def _read(self, start: int, stop: int) -> Any:
        if self.origin is None:
            return self.stored[start:stop]
        with reading(self.origin, self.need):
            return self.stored[start:stop]


class ZarrRows(StoredRows):
    """A zarr array. Its attribute ``names``, if there is one, names the columns."""

    need = "a zarr array"

    def __init__(self, array: Any, where: str, **options: Any) -> None:
        self.stored = array
        root = getattr(array.store, "root", None)  # of a store that is a folder
        self.origin = None if root is None else Path(root) / array.path
        if self.origin is not None:
            refuse_code(array, where)
            sizes = (array.shape, array.chunks or ())
            claimed = array.dtype.itemsize * max(map(math.prod, sizes))
            if claimed > CLAIM_BYTES:
                check_claim(where, claimed, sum(file.stat().st_size for file in self.origin.rglob("*")))
        names = array.attrs.get("names")
        if isinstance(names, list | tuple) and len(array.shape) == 2 and len(names) == array.shape[1]:
            options.setdefault("names", names)
        super().__init__(where, array.shape, array.dtype, unit=max(1, (array.chunks or (1,))[0]), **options)


def refuse_code(array: Any, where: str) -> None:
    """Refuse a zarr array whose chunks are pickled: to read them can run code."""
    filters = [*(getattr(array, "filters", None) or ()), *(getattr(array, "compressors", None) or ())]
    if any("pickle" in f"{type(codec).__name__} {codec!r}".lower() for codec in filters):
        problem = f"{where!r} needs plain numbers"
        got = "pickled chunks, which are never loaded because they can run code"
        raise FileFormatError(message(problem, got=got, remedy="save the array without a pickle filter"))


class HdfRows(StoredRows):
    """A dense HDF5 dataset. The file stays open as long as this is in use."""

    need = "an HDF5 dataset"

    def __init__(self, dataset: Any, where: str, **options: Any) -> None:
        self.stored, self.file, self.origin, self.layout = dataset, dataset.file, dataset.file.filename, dataset.name
        claimed = dataset.dtype.itemsize * max(math.prod(dataset.shape), math.prod(dataset.chunks or ()))
        if claimed > CLAIM_BYTES and Path(self.origin).exists():
            check_claim(where, claimed, dataset.id.get_storage_size())
        super().__init__(where, dataset.shape, dataset.dtype, unit=(dataset.chunks or (1,))[0], **options)


class BackedSparseRows(StoredRows):
    """A sparse matrix of AnnData in a file, by rows: a chunk of it is read at a time."""

    need = "a sparse matrix written by anndata"

    def __init__(self, matrix: Any, where: str, **options: Any) -> None:
        self.stored, self.file = matrix, getattr(matrix.group, "file", None)  # of a group of HDF5
        if self.file is not None:
            self.origin, self.layout = self.file.filename, matrix.group.name
        super().__init__(where, matrix.shape, matrix.dtype, **options)


def from_backed_sparse(matrix: Any, where: str, **options: Any) -> Table:
    """Rows of a sparse matrix in a file: chunk by chunk if it is stored by rows, else loaded once, with a warning."""
    if matrix.format == "csr":
        return BackedSparseRows(matrix, where, **options)
    problem = f"{where} is sparse and stored by columns, so its rows cannot be read a chunk at a time"
    remedy = "All nonzero values are loaded at once. Store the matrix by rows (csr) to keep memory small"
    warnings.warn(message(problem, remedy=remedy), ColumnLayoutWarning, stacklevel=2)
    return SparseRows(matrix.to_memory(), where, **options)


def from_zarr(path: Path, key: str | None, **options: Any) -> Table:
    """Rows of a zarr array in a folder, or of the array called ``key`` in a group."""
    zarr = optional("zarr", "zarr")
    with reading(path, "a zarr array"):  # damaged metadata, or none
        node = zarr.open(str(path), mode="r")
    with explaining(path, "a zarr array", DAMAGED_STORE):
        return open_node(node, key, str(path), **options)


def open_node(node: Any, key: str | None, where: str, **options: Any) -> Table:
    """Rows of a zarr array, or of the array ``key`` of a zarr group."""
    if not hasattr(node, "array_keys"):
        if key is not None:
            raise no_key(where, key)
        return ZarrRows(node, where, **options)
    have = sorted(node.array_keys())
    if key is None and len(have) == 1:
        (key,) = have
    if key is None or key not in node or hasattr(node[key], "array_keys"):
        raise which_array(where, key, have)
    return ZarrRows(node[key], f"{where}/{key}", **options)
