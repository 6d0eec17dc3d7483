"""Representation and covariates side by side: two sources read in step, or a stream of batches that comes once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from covalign._core import validation as errors
from covalign.stream.formats import open_rows
from covalign.stream.memory import tensor_values
from covalign.stream.prefetch import in_step
from covalign.stream.source import Source, is_source


class Pairs(Protocol):
    """Rows of (Z, Y)."""

    @property
    def n(self) -> int | None:
        """Number of rows; None for a stream."""

    def chunks(self, rows: int | None = None) -> Iterator[tuple[Any, Any]]:
        """(Z, Y), a chunk of rows at a time."""


def open_pairs(Z: Any, Y: Any = None, *, chunk_rows: int | None = None) -> SourcePairs | Stream:
    """Rows of Z and Y (anything ``open_rows`` takes), or, without Y, of an iterable of (Z, Y) batches."""
    if Y is not None:
        return SourcePairs(_source(Z, "Z", chunk_rows=chunk_rows), _source(Y, "Y", chunk_rows=chunk_rows, single=True))
    return Stream(Z)


class SourcePairs:
    """Two sources of equally many rows, read in step."""

    def __init__(self, Z: Source, Y: Source) -> None:
        if Z.shape[0] != Y.shape[0]:
            raise errors.lengths_differ(Z.shape[0], Y.shape[0])
        self.Z, self.Y = Z, Y

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.Z.shape[0]

    def chunks(self, rows: int | None = None) -> Iterator[tuple[Any, Any]]:
        """(Z, Y), a chunk of rows at a time, read ahead where they are not in memory."""
        return in_step([self.Z, self.Y], self.Z.chunk_rows if rows is None else rows)


class Stream:
    """Batches (Z, Y) as they come; each needs the columns of the first. A generator can be read once only.

    It is read by the caller's own thread: a user's generator may be bound to it.
    """

    n = None

    def __init__(self, batches: Iterable[tuple[Any, Any]]) -> None:
        if not hasattr(batches, "__iter__") or isinstance(batches, str | np.ndarray) or sparse.issparse(batches):
            raise errors.not_a_stream(batches)
        self._batches, self._spent = batches, False

    def chunks(self, rows: int | None = None) -> Iterator[tuple[Any, Any]]:
        """The batches as they are, checked; ``rows`` has no say in them."""
        if self._spent:
            raise errors.stream_used_up()
        iterator = iter(self._batches)
        self._spent = iterator is self._batches
        return self._checked(iterator)

    def _checked(self, iterator: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        columns: dict[str, tuple[int, Any]] = {}
        for batch, pair in enumerate(iterator):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise errors.not_a_pair(batch, pair)
            Z, Y = (_table(part, name) for part, name in zip(pair, "ZY", strict=True))
            for name, part in (("Z", Z), ("Y", Y)):
                labels = tuple(map(str, part.columns)) if hasattr(part, "columns") else None
                need, known = columns.setdefault(name, (part.shape[1], labels))
                if part.shape[1] != need:
                    raise errors.batch_columns_differ(batch, name, need, part.shape[1])
                if labels is not None and known is not None and labels != known:
                    raise errors.batch_names_differ(batch, name, known, labels)
            if Z.shape[0] != Y.shape[0]:
                raise errors.batch_lengths_differ(batch, Z.shape[0], Y.shape[0])
            if Z.shape[0]:
                yield Z, Y


def _source(data: Any, name: str, **options: Any) -> Source:
    """A Source as it is, anything else opened."""
    return data if is_source(data) else open_rows(data, name=name, **options)


def _table(part: Any, name: str) -> Any:
    """A batch's Z or Y with two dimensions: frames and sparse matrices as they are, all else as an array."""
    if hasattr(part, "to_frame"):  # a Series keeps its name
        part = part.to_frame()
    elif hasattr(part, "detach"):
        part = tensor_values(part)
    elif not sparse.issparse(part) and not hasattr(part, "columns"):
        part = np.asarray(part)
    if part.ndim == 1 and name == "Y":
        part = part[:, None]
    if part.ndim != 2:
        raise errors.not_two_dimensional(name, part.shape)
    return part
