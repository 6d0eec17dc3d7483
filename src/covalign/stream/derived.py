"""Sources made from other sources: with fewer rows, more columns, or a check of all numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from covalign._core.messages import message
from covalign.stream.finite import checked
from covalign.stream.source import Source, recut


class Derived(Source):
    """A source made from another one, by default with its rows. ``rows`` are the row numbers, if some were left out.

    ``added`` is what determines these rows, besides the rows of the other source.
    """

    def __init__(self, source: Source, shape: tuple[int, int] | None = None, added: Any = None) -> None:
        self.source, self.where, self.in_memory = source, source.where, source.in_memory
        self.shape, self.dtype, self.names = shape or source.shape, source.dtype, source.names
        self.rows: Any = getattr(source, "rows", None)
        self.added = added

    @property
    def index(self) -> Any:
        """Names of the rows, or None."""
        return self.source.index

    @property
    def chunk_rows(self) -> int:
        """The default number of rows in a chunk."""
        return self.source.chunk_rows

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """The rows from ``start`` on, cut at the multiples of ``rows``."""
        return self.source.chunks(rows, start)


class Checked(Derived):
    """The same rows; a number that is not finite raises an error that names row and column."""

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """The rows from ``start`` on, cut at the multiples of ``rows``."""
        return checked(self.source, self.source.chunks(rows, start), start)


class Kept(Derived):
    """The rows whose flag is True."""

    def __init__(self, source: Source, keep: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(keep)
        super().__init__(source, (len(rows), source.shape[1]), added=rows)
        self._keep, self.rows = keep, rows

    @property
    def index(self) -> Any:
        """Names of the rows, or None."""
        index = self.source.index
        return None if index is None else index[self.rows]

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """The rows from ``start`` on, cut at the multiples of ``rows``."""
        rows = self.chunk_rows if rows is None else rows
        return recut(self._pieces(rows, start), rows, start)

    def _pieces(self, rows: int, start: int) -> Iterator[Any]:
        if start >= len(self.rows):
            return
        at = int(self.rows[start])
        for chunk in self.source.chunks(rows, at):
            keep = self._keep[at : at + chunk.shape[0]]
            at += chunk.shape[0]
            yield chunk if keep.all() else chunk[keep]


class Columns(Derived):
    """Some columns, by position."""

    def __init__(self, source: Source, at: NDArray[np.intp]) -> None:
        super().__init__(source, (source.shape[0], len(at)), added=at)
        self.names = None if source.names is None else tuple(source.names[i] for i in at)

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """The rows from ``start`` on, cut at the multiples of ``rows``."""
        for chunk in self.source.chunks(rows, start):
            yield chunk[:, self.added]


class Logged(Derived):
    """log(1 + x) of all numbers."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, added="log1p")
        self.dtype = np.result_type(source.dtype, np.float32)

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """The rows from ``start`` on, cut at the multiples of ``rows``."""
        for chunk in self.source.chunks(rows, start):
            yield log1p(chunk, self.names, self.where)


def log1p(X: Any, names: Sequence[Any] | None, where: str) -> Any:
    """log(1 + x); sparse if X is. A negative number is refused with the name of its column."""
    negative = (X < 0).tocoo().col if sparse.issparse(X) else np.nonzero(X < 0)[1]
    if len(negative):
        column = str(negative[0]) if names is None else str(names[int(negative[0])])
        problem = f"A logarithm needs numbers of at least 0 (such as counts) in {where}"
        raise ValueError(message(problem, got=f"negative ones in column {column!r}", remedy="leave the logarithm out"))
    return X.log1p() if sparse.issparse(X) else np.log1p(X)


class Beside(Derived):
    """[Z C]: the columns of a source, and more columns that are in memory."""

    def __init__(self, source: Source, C: NDArray[np.float64]) -> None:
        super().__init__(source, (source.shape[0], source.shape[1] + C.shape[1]), added=C)
        self.dtype = np.result_type(source.dtype, C.dtype)
        self.names = None if source.names is None else (*source.names, *(f"confounder {i}" for i in range(C.shape[1])))

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """The rows from ``start`` on, cut at the multiples of ``rows``."""
        for chunk in self.source.chunks(rows, start):
            yield beside(chunk, self.added[start : start + chunk.shape[0]])
            start += chunk.shape[0]


def beside(Z: Any, C: NDArray[np.float64]) -> Any:
    """[Z C]; sparse if Z is."""
    return sparse.hstack([Z, sparse.csr_matrix(C)], format="csr") if sparse.issparse(Z) else np.hstack([Z, C])
