"""Batches (X, Y) that come one after the other, as a list, a generator or a loader gives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.data_errors import not_numeric, not_two_dimensional
from covalign._core.messages import kind_of, listed, message
from covalign._core.user_arrays import in_pandas, plain
from covalign.stream.formats import is_elsewhere


class Batch(NamedTuple):
    """The tables of X by name ("X" if there is only one), and Y, all with two dimensions and equally many rows."""

    tables: dict[str, Any]
    Y: Any


def is_batches(data: Any) -> bool:
    """Whether this is an iterable of batches (X, Y), and not a table of rows without Y."""
    if is_elsewhere(data) or sparse.issparse(data) or hasattr(data, "shape") or hasattr(data, "__array__"):
        return False
    if isinstance(data, list | tuple) and data:  # of pairs of tables, not of rows
        pair = data[0]
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2
        return is_pair and (isinstance(pair[0], Mapping) or len(np.shape(pair[0])) == 2)
    return isinstance(data, Iterable) and not isinstance(data, dict | bytes)


class Batches:
    """Checked batches (X, Y), X a table or a dict of tables (views). Each needs the tables and columns of the first.

    The caller's own thread reads them: a user's generator may be bound to it. ``label`` is what messages call X if X is
    one table.
    """

    def __init__(self, batches: Iterable[Any], label: str = "Z") -> None:
        each_batch(batches)
        self._batches, self._label, self._used_up = batches, label, False
        self.single = True  # X is one table
        self.names: dict[str, list[str]] = {}  # columns of every table; 0, 1, ... if they have no names

    @property
    def again(self) -> bool:
        """Whether they can be read a second time: a list can, a generator cannot."""
        return iter(self._batches) is not self._batches

    def __iter__(self) -> Iterator[Batch]:
        if self._used_up:
            problem = "A generator of batches can be read once, and it has been read"
            remedy = "Pass a new generator, or something that can be read again (a list of batches, or a path)"
            raise ValueError(message(problem, remedy=remedy))
        iterator = iter(self._batches)
        self._used_up = iterator is self._batches
        return self._checked(iterator)

    def _checked(self, iterator: Iterator[Any]) -> Iterator[Batch]:
        first: Batch | None = None
        for number, pair in enumerate(iterator):
            X, Y = as_pair(pair, number)
            if first is None:
                self.single = not isinstance(X, Mapping)
            tables = {str(name): table for name, table in X.items()} if isinstance(X, Mapping) else {"X": X}
            tables = {name: _table(table, self._called(name)) for name, table in tables.items()}
            batch = Batch(tables, _table(Y, "Y"))
            if first is None:
                first = batch
                self.names = {name: _columns(t) or [str(i) for i in range(t.shape[1])] for name, t in tables.items()}
            self._compare(number, batch, first)
            if batch.Y.shape[0]:
                yield batch

    def _called(self, name: str) -> str:
        return self._label if self.single else f"view {name!r}"

    def _compare(self, number: int, batch: Batch, first: Batch) -> None:
        if list(batch.tables) != list(first.tables):
            problem = f"Every batch needs the views of the first, {listed(first.tables)}"
            remedy = "yield the same views every time, in the same order"
            raise ValueError(message(problem, got=f"{listed(batch.tables)} in batch {number}", remedy=remedy))
        for name, table in batch.tables.items():
            _compare_columns(number, self._called(name), first.tables[name], table)
        _compare_columns(number, "Y", first.Y, batch.Y)
        for table in batch.tables.values():
            if table.shape[0] != batch.Y.shape[0]:
                problem = "Z and Y need the same number of rows (samples)"
                got = f"{table.shape[0]} and {batch.Y.shape[0]} in batch {number}"
                raise ValueError(message(problem, got=got, remedy="yield one row of covariates for each row of Z"))


def each_batch(batches: Any) -> Iterable[Any]:
    """Something to iterate over, and no table."""
    table = isinstance(batches, str | bytes | Mapping | np.ndarray | pd.DataFrame | type) or sparse.issparse(batches)
    if isinstance(batches, Iterable) and not table:
        return batches
    problem = "Rows without Y need to be an iterable of (Z, Y) batches"
    raise ValueError(message(problem, got=kind_of(batches), remedy="pass Y, or yield pairs"))


def as_pair(pair: Any, number: int) -> tuple[Any, Any]:
    """(Z, Y) of a batch."""
    if isinstance(pair, tuple | list) and len(pair) == 2:
        return pair[0], pair[1]
    got = f"{kind_of(pair)} in batch {number}"
    raise ValueError(message("Every batch needs to be a pair (Z, Y)", got=got, remedy="yield pairs"))


def _compare_columns(number: int, name: str, first: Any, table: Any) -> None:
    if table.shape[1] != first.shape[1]:
        problem = f"{name} needs {first.shape[1]} columns in every batch as in the first"
        remedy = "yield the same columns every time"
        raise ValueError(message(problem, got=f"{table.shape[1]} in batch {number}", remedy=remedy))
    need, have = _columns(first), _columns(table)
    if need is not None and have is not None and need != have:
        right, wrong = next(pair for pair in zip(need, have, strict=True) if pair[0] != pair[1])
        problem = f"{name} needs the columns of the first batch in the same order"
        got = f"{wrong!r} in place of {right!r} in batch {number}"
        raise ValueError(message(problem, got=got, remedy="reorder or rename the columns"))


def _columns(table: Any) -> list[str] | None:
    return [str(name) for name in table.columns] if hasattr(table, "columns") else None


def _table(part: Any, name: str) -> Any:
    """A table with two dimensions: a frame or a sparse matrix unchanged, anything else as an array of numbers."""
    part = in_pandas(plain(part, name), name)
    if sparse.issparse(part):
        part = part.tocsr()
    elif not hasattr(part, "columns"):
        part = np.asarray(part)
    if part.ndim == 1 and name == "Y":
        part = part[:, None]
    if part.ndim != 2:
        raise not_two_dimensional(name, part.shape)
    if name != "Y" and not hasattr(part, "columns") and part.dtype.kind not in "fiubO":
        raise not_numeric(name, part.dtype)
    return part
