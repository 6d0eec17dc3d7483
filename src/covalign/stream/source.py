"""One interface for rows in any storage: a shape, names, and chunks of rows that can be read repeatedly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from covalign._core.checks import check_chunk_rows, is_whole
from covalign._core.data_errors import not_numeric, not_two_dimensional, source_without_rows
from covalign._core.messages import listed, message, shown, text_of

# Large enough that opening, seeking and starting BLAS cost little. Below 32 MB the C library reuses freed buffers; a
# larger buffer consists of new pages, which the system has to clear first (reads are then half as fast).
CHUNK_BYTES = 2**24


class Source(ABC):
    """A table of numbers that is read in chunks."""

    shape: tuple[int, int]  # rows and columns
    dtype: np.dtype[Any]  # of the numbers in every chunk
    names: tuple[str, ...] | None  # of the columns, if they have any
    where: str  # what messages call this table
    in_memory = False  # whether chunks come from memory, so that reading ahead saves no time

    @property
    @abstractmethod
    def index(self) -> Any:
        """Names of the rows as a pandas Index, or None; read on demand."""

    @property
    @abstractmethod
    def chunk_rows(self) -> int:
        """The default number of rows in a chunk."""

    @abstractmethod
    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """The rows from ``start`` on, in order, as dense arrays or csr matrices cut at the multiples of ``rows``."""


def is_source(data: Any) -> bool:
    """Whether this is a Source already."""
    return isinstance(data, Source)


class Table(Source):
    """The base of all adapters: choice of columns, size of chunks, and cutting the stored rows into chunks.

    An adapter sets ``stored``, which can be sliced by rows, or says how rows ``[start, stop)`` are read. ``unit`` is
    the number of rows that are stored together (a chunk of the format): reads begin and end at its multiples, so
    nothing stored is read twice. ``index`` has the names of the rows, or is a function that reads them. ``single`` lets
    one dimension stand for one column.
    """

    stored: Any = None
    hashable = False  # whether all bytes can be hashed though the rows are not in memory
    file: Any = None  # an open HDF5 file, which keeps changes of this process in memory until it is flushed
    origin: Any = None  # the file or folder that the rows are read from, if it is known
    key: str | None = None  # which of the arrays in it
    layout: Any = None  # where in the file the rows are, for formats without keys

    def __init__(
        self,
        where: str,
        shape: Sequence[int],
        dtype: Any,
        *,
        names: Iterable[Any] | None = None,
        index: Any = None,
        columns: Sequence[Any] | None = None,
        chunk_rows: int | None = None,
        unit: int = 1,
        single: bool = False,
    ) -> None:
        if single and len(shape) == 1:
            shape = (shape[0], 1)
        if len(shape) != 2:
            raise not_two_dimensional(where, tuple(shape))
        n, k = int(shape[0]), int(shape[1])
        if n == 0 or k == 0:
            raise source_without_rows(where, (n, k))
        known = None if names is None else tuple(map(str, names))
        self.where, self.unit, self._index = where, unit, index
        self.dtype: np.dtype[Any] = working_dtype(where, dtype)
        self._take = positions(where, columns, known, k)
        self.taken = None if self._take is None else self._take.tolist()
        self.names = known if known is None or self._take is None else tuple(known[i] for i in self._take)
        self.shape: tuple[int, int] = (n, k if self._take is None else len(self._take))
        self._stored_width = k
        self._chunk_rows = None if chunk_rows is None else check_chunk_rows(chunk_rows)

    @property
    def index(self) -> Any:
        """Names of the rows, or None."""
        return self._index() if callable(self._index) else self._index

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk: about CHUNK_BYTES of stored data, in whole stored units."""
        if self._chunk_rows is not None:
            return self._chunk_rows
        rows = max(1, CHUNK_BYTES // (self._stored_width * self.dtype.itemsize))
        return max(1, rows // self.unit) * self.unit

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """The rows from ``start`` on, cut at the multiples of ``rows``."""
        rows = self.chunk_rows if rows is None else check_chunk_rows(rows)
        if not isinstance(start, Integral) or isinstance(start, bool) or not 0 <= start <= self.shape[0]:
            problem = f"start needs a row from 0 to {self.shape[0]}"
            raise ValueError(message(problem, got=repr(start), remedy="0 reads everything"))
        return recut(self._pieces(rows, start), rows, start)

    def _pieces(self, rows: int, start: int) -> Iterator[Any]:
        """Consecutive rows from ``start`` on, in the portions that suit the storage."""
        n, step = self.shape[0], max(1, rows // self.unit) * self.unit
        first = start - start % step
        for at in range(first, n if start < n else 0, step):
            yield self._finish(self._read(at, min(at + step, n)), max(0, start - at))

    def _finish(self, piece: Any, skip: int = 0) -> Any:
        """Chosen columns in the working type, without the first ``skip`` rows."""
        if sparse.issparse(piece):
            piece = piece.tocsr()
        elif piece.ndim == 1:
            piece = piece[:, None]
        if skip:
            piece = piece[skip:]
        if self._take is not None:
            piece = piece[:, self._take]
        return piece.astype(self.dtype, copy=False)

    def _read(self, start: int, stop: int) -> Any:
        """Rows [start, stop) with all columns."""
        return self.stored[start:stop]


def recut(pieces: Iterable[Any], rows: int, start: int = 0) -> Iterator[Any]:
    """The rows of the pieces, cut where the row's number (the first is ``start``) is a multiple of ``rows``.

    The grid does not depend on ``start``, so work taken up in the middle sees the very same chunks.
    """
    held: list[Any] = []
    room = rows - start % rows  # rows that the chunk still takes
    for piece in pieces:
        at = 0
        while piece.shape[0] - at >= room:
            # A piece that is a whole chunk is passed on as it is, without a copy.
            part = piece if at == 0 and piece.shape[0] == room else piece[at : at + room]
            at, room = at + room, rows
            if held:
                part = stacked([*held, part])
                held.clear()
            yield part
        if at < piece.shape[0]:
            held.append(piece[at:])
            room -= piece.shape[0] - at
    if held:
        yield stacked(held)


def stacked(parts: Sequence[Any]) -> Any:
    """Parts below one another."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def working_dtype(where: str, dtype: Any) -> np.dtype[Any]:
    """The type of chunks: as stored, in the byte order of the machine; half precision is widened for BLAS."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "fiub":
        raise not_numeric(where, dtype)
    return np.dtype(np.float32) if dtype == np.float16 else dtype.newbyteorder("=")


def positions(
    where: str, columns: Sequence[Any] | None, names: Sequence[str] | None, width: int
) -> NDArray[np.intp] | None:
    """Positions of the selected columns, by name if there are names, else by number; None for all."""
    if columns is None:
        return None
    several = isinstance(columns, Iterable) and not isinstance(columns, str) and getattr(columns, "ndim", 1) == 1
    asked: list[Any] = list(columns) if several else [columns]
    if names is None:
        wrong = [c for c in asked if not is_whole(c) or not 0 <= c < width]
        if wrong or not asked:
            problem = f"columns= needs positions from 0 to {width - 1}, since {where} has no column names"
            raise ValueError(message(problem, got=listed(wrong) or "no column", remedy="pass whole numbers"))
        return np.array(asked, dtype=np.intp)
    at = {name: i for i, name in enumerate(names)}
    wrong = [c for c in asked if text_of(c) not in at]
    if wrong or not asked:
        problem = f"columns= needs columns of {where} ({listed(names, 8)})"
        got = listed(wrong) or "no column"
        raise ValueError(message(problem, got=got, remedy="correct the names", wrong=wrong, known=names))
    return np.array([at[text_of(c)] for c in asked], dtype=np.intp)


def packages_of(data: Any) -> set[str]:
    """The packages of the type of ``data`` and of its base classes, without importing any."""
    return {kind.__module__.partition(".")[0] for kind in type(data).__mro__}


def which_array(where: Any, key: Any, have: Iterable[Any]) -> ValueError:
    """The error for a key that names none of the arrays in a file."""
    problem = f"{str(where)!r} needs the name of one of its arrays"
    remedy = f"pass key= with one of {listed(have, 10) or 'none (it holds no array)'}"
    return ValueError(message(problem, got="no key" if key is None else f"key={shown(key)}", remedy=remedy))


def no_key(name: str, key: Any) -> ValueError:
    """The error for a key if there is only one array."""
    kinds = "an array within an .npz, .zarr or .h5ad, or a type of features beside an .mtx or in an .h5"
    remedy = f"a key names {kinds}; leave it out here"
    return ValueError(message(f"{name} needs no key=", got=shown(key), remedy=remedy))


def unknown_source(name: str, got: str) -> ValueError:
    """The error for data of a kind that cannot be read."""
    problem = (
        f"{name} needs an array or DataFrame, a scipy sparse matrix, a numpy.memmap, a torch tensor, a zarr array, a "
        "dask array or DataFrame, an AnnData, an HDF5 dataset, or a path to .npy, .npz, .zarr, .parquet or .mtx (file "
        "or folder) or .h5ad"
    )
    return ValueError(message(problem, got=got, remedy="convert the data to one of these"))
