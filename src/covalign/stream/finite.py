"""Search for NaN and infinity: errors name row and column, and finite data cost almost nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from covalign._core.messages import message
from covalign.exceptions import NotFiniteError
from covalign.stream.source import Source


def checked(source: Source, chunks: Iterable[Any], start: int = 0) -> Iterator[Any]:
    """The chunks of ``source`` from row ``start`` on, each after a check that its numbers are finite."""
    for chunk in chunks:
        refuse_not_finite(chunk, start, source)
        start += chunk.shape[0]
        yield chunk


def refuse_not_finite(chunk: Any, start: int, source: Any = None, what: str | None = None, *, sums: Any = None) -> None:
    """Raise an error that names row and column if a number of the chunk, whose first row is ``start``, is not finite.

    A sum is finite only if its terms are (and they do not overflow), so good chunks are summed, or not even that where
    the ``sums`` of their columns are known; only a chunk with a suspicious sum is searched.
    """
    values = chunk.data if sparse.issparse(chunk) else chunk
    if values.dtype.kind != "f" or values.size == 0:
        return
    if sums is None:
        with np.errstate(invalid="ignore", over="ignore"):  # the error below names the number
            sums = values.sum(dtype=values.dtype)
    if np.isfinite(sums).all():
        return
    at = first_not_finite(chunk)
    if at is None:  # finite numbers whose sum overflows
        return
    row, column, value = at
    names, index = (None, None) if source is None else (source.names, source.index)
    numbers = getattr(source, "rows", None)  # of the rows, if some were left out
    raise not_finite_at(
        what or ("Z" if source is None else source.where),
        value,
        start + row if numbers is None else int(numbers[start + row]),
        column,
        None if names is None else names[column],
        None if index is None else index[start + row],
    )


def first_not_finite(chunk: Any) -> tuple[int, int, float] | None:
    """(row, column, value) of the first number that is not finite, by rows, or None."""
    if sparse.issparse(chunk):
        bad = np.flatnonzero(~np.isfinite(chunk.data))
        if not len(bad):
            return None
        row = int(np.searchsorted(chunk.indptr, bad[0], side="right")) - 1
        return row, int(chunk.indices[bad[0]]), float(chunk.data[bad[0]])
    bad = ~np.isfinite(chunk)
    if not bad.any():
        return None
    row, column = divmod(int(bad.argmax()), chunk.shape[1])
    return row, column, float(chunk[row, column])


def not_finite_at(what: str, value: Any, row: int, column: int, name: Any = None, label: Any = None) -> NotFiniteError:
    """The error for a number that is not finite, with its row and column (and their names, if they have any)."""
    number = "NaN" if value != value else value
    of_row = f"row {row}" if label is None else f"row {row} ({str(label)!r})"
    of_column = f"column {column}" if name is None else f"column {str(name)!r}"
    got = f"{number} in {of_row}, {of_column}"
    error = NotFiniteError(message(f"{what} needs finite numbers", got=got, remedy="drop or impute such rows first"))
    error.row, error.column, error.value = row, column, value
    return error
