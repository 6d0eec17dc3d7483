"""Rows in memory or in mapped files: arrays, DataFrames, sparse matrices, memmaps, torch tensors."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.data_errors import column_not_numeric, not_numeric, repeated_columns
from covalign._core.user_arrays import check_tensor, checked_sparse, plain, tensor_values
from covalign.stream.source import Table, positions


class ArrayRows(Table):
    """A numpy array: chunks are views of it."""

    in_memory = True

    def __init__(self, array: Any, where: str, **options: Any) -> None:
        self.stored = as_numbers(plain(array, where), where)
        super().__init__(where, self.stored.shape, self.stored.dtype, **options)


class MappedRows(Table):
    """A numpy.memmap: chunks are copies, so that the thread that reads ahead waits for the disk.

    Pages that were copied are given back to the system: else they count as memory of this process until it ends.
    """

    hashable = True

    def __init__(self, array: Any, where: str, **options: Any) -> None:
        self.stored = array.view(np.ndarray)  # slices of a memmap carry its Python object along
        # Pages of a map with mode "c" cannot be read again from the file.
        self._map: Any = array._mmap if getattr(array, "mode", None) in ("r", "r+", "w+") else None
        self._base = 0 if self._map is None else np.frombuffer(self._map, np.uint8).ctypes.data
        # Not of a map that can be written to: the system may notice such writes late, or never.
        self.origin = array.filename if getattr(array, "mode", None) == "r" else None
        self.layout = (self.stored.ctypes.data - self._base, self.stored.strides)  # within the file
        super().__init__(where, array.shape, array.dtype, **options)

    def _read(self, start: int, stop: int) -> Any:
        rows = self.stored[start:stop]
        piece = np.array(rows, order="C")
        if hasattr(self._map, "madvise") and hasattr(mmap, "MADV_DONTNEED") and rows.flags.c_contiguous:
            self._give_back(rows)
        return piece

    def _give_back(self, rows: Any) -> None:
        """Whole pages between the first and the last byte of these rows."""
        first = rows.ctypes.data - self._base
        begin, end = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, (first + rows.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if end > begin:
            self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)


class SparseRows(Table):
    """A scipy sparse matrix; layouts other than csr are converted once, which copies the nonzero values."""

    in_memory = True

    def __init__(self, matrix: Any, where: str, **options: Any) -> None:
        self.stored = checked_sparse(matrix, where).tocsr()
        super().__init__(where, matrix.shape, matrix.dtype, **options)


class FrameRows(Table):
    """A pandas DataFrame of numbers: one chunk at a time is converted."""

    in_memory = True

    def __init__(self, frame: pd.DataFrame, where: str, *, columns: Any = None, **options: Any) -> None:
        take = positions(where, columns, [str(name) for name in frame.columns], frame.shape[1])
        if take is not None:  # before the check of types: other columns may be text
            frame = frame.iloc[:, take]
        self._frame = frame.infer_objects()
        dtype = frame_dtype(self._frame.dtypes, where)
        super().__init__(where, frame.shape, dtype, **{"index": frame.index, **options, "names": frame.columns})

    def _read(self, start: int, stop: int) -> Any:
        return frame_values(self._frame.iloc[start:stop], self.dtype)


class TorchRows(Table):
    """A torch tensor on any device: one chunk at a time is detached and copied to the CPU."""

    def __init__(self, tensor: Any, where: str, **options: Any) -> None:
        check_tensor(tensor, where)
        self._tensor = tensor
        self.in_memory = tensor.device.type == "cpu"
        super().__init__(where, tuple(tensor.shape), tensor_values(self._tensor[:0], where).dtype, **options)

    def _read(self, start: int, stop: int) -> Any:
        return tensor_values(self._tensor[start:stop], self.where)


def as_numbers(array: Any, where: str) -> Any:
    """An array of objects as float64 if they are numbers; other arrays unchanged."""
    if array.dtype.kind != "O":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise not_numeric(where, array.dtype) from None


def frame_dtype(dtypes: Any, where: str) -> np.dtype[Any]:
    """The common type of the columns of a frame; a column that is not a number is named."""
    if not dtypes.index.is_unique:
        raise repeated_columns(where, dtypes.index[dtypes.index.duplicated()].unique())
    kinds = []
    for name, dtype in dtypes.items():
        numeric = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
        if not numeric or getattr(dtype, "kind", "f") == "c":
            raise column_not_numeric(where, name, dtype)
        # Types with missing values become floats, with NaN for missing values.
        kinds.append(dtype if isinstance(dtype, np.dtype) else np.dtype(np.float64))
    return np.result_type(*kinds) if kinds else np.dtype(np.float64)


def frame_values(frame: pd.DataFrame, dtype: np.dtype[Any]) -> Any:
    """The numbers of a frame, with NaN for missing values."""
    if all(isinstance(kind, np.dtype) for kind in frame.dtypes):
        return frame.to_numpy(dtype=dtype)
    return frame.to_numpy(dtype=dtype, na_value=np.nan)
