"""The rows of a fit, in memory or read again: the factors of samples follow from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from covalign._core.data_errors import rows_not_kept
from covalign._core.linalg import Array, dense
from covalign._core.messages import message
from covalign.factor import placement as placing
from covalign.factor.dask_views import Joined
from covalign.factor.inference.heavy_tails import Scaled
from covalign.factor.inference.patterns import Gapped, Index, Patterns, slices
from covalign.factor.inference.sparse_gaps import SparseGapped
from covalign.factor.inference.state import Factors, Problem, State
from covalign.factor.inference.uncertainty import Tails
from covalign.factor.table import Table

Chunk = tuple[slice, dict[str, Any], Array, Array | None]  # positions, views, Y, and C if X contains what it explains


class FittedRows(ABC):
    """Rows of a fit. ``Y`` is standardised, without what the confounders ``C`` explain."""

    Y: Any
    C: Any

    @abstractmethod
    def chunks(self, table: Table) -> Iterator[Chunk]:
        """All rows, a chunk at a time."""

    @property
    @abstractmethod
    def kept(self) -> bool:
        """Whether the rows are in memory or can be read again."""

    @property
    @abstractmethod
    def tails(self) -> Tails:
        """Kurtosis and number of values of every covariate, for the uncertainty of beta."""

    def means(self, table: Table, problem: Problem, first: State, state: State, T: Array) -> Array:
        """E[z_n] of all rows (n x K): q(z) given all else, in stage 1 or with T z_I held."""
        out = np.empty((problem.n, problem.k))
        for here, parts, Y, C in self.chunks(table):
            if isinstance(state.z, Factors):
                of_x, of_y = _maps(table, state.z)
                out[here] = table.mapped(parts, C, of_x) + Y @ of_y
                continue
            for at in slices(len(Y), table.bounds[-1].stop):
                some = {name: part[at] for name, part in parts.items()}
                X = table.standardised(some, None if C is None else C[at])
                out[here][at] = placing.fitted(first, state, problem.data.S_y, X, Y[at], T)
        return out

    def every(self, step: int, table: Table) -> Rows:
        """Every ``step``-th row, in memory."""
        made = []
        for here, parts, _, C in self.chunks(table):
            at = slice(-here.start % step, None, step)
            X = np.hstack([dense(part[at]) for part in parts.values()]).astype(np.float64, copy=False)
            made.append(X if C is None else X - table.nuisance.of_x(C[at]))
        return Rows(np.concatenate(made), self.Y[::step], self.C[::step])

    def combinations(self, table: Table, problem: Problem) -> Index:
        """The number of the combination of gaps of each row."""
        data: Gapped = problem.data
        if isinstance(data, Scaled):  # every row has its own
            return np.arange(problem.n)
        if isinstance(data, SparseGapped):  # its rows are samples
            return data.samples[0]
        number, first = np.unique(data.samples[0], return_index=True)
        flags = np.hstack([data.observed[:, : table.bounds[-1].stop], data.has_y])[first]
        known = {row.tobytes(): int(c) for row, c in zip(flags, number, strict=True)}
        at = np.empty(problem.n, dtype=np.intp)
        for here, parts, Y, _ in self.chunks(table):
            patterns = Patterns.of(~np.hstack([np.isnan(dense(part)) for part in (*parts.values(), Y)]))
            of_pattern = [known[row.tobytes()] for row in patterns.distinct > 0]
            at[here] = np.array(of_pattern, dtype=np.intp)[patterns.group]
        return at


@dataclass(frozen=True, eq=False)
class Rows(FittedRows):
    """Rows in memory: X in its units, views side by side, without what C explains."""

    X: Array
    Y: Array
    C: Array  # coded confounders, n x q

    @property
    def kept(self) -> bool:
        """They are in memory."""
        return True

    @property
    def tails(self) -> Tails:
        """From the rows."""
        return Tails.of(self.Y)

    def chunks(self, table: Table) -> Iterator[Chunk]:
        """All rows at once."""
        parts = {name: self.X[:, where] for name, where in zip(table.views, table.bounds, strict=True)}
        yield slice(0, len(self.Y)), parts, self.Y, None

    def means(self, table: Table, problem: Problem, first: State, state: State, T: Array) -> Array:
        """E[z_n] of all rows; the state has them if its rows are samples."""
        if isinstance(problem.data, Gapped) and len(problem.data.X) == problem.n:
            return np.asarray(state.z.mean)
        return super().means(table, problem, first, state, T)


class Streamed(FittedRows):
    """Rows that are not in memory: how to read X again, if possible, and the tables that are in memory."""

    def __init__(self, read: Any, Y: Array | None, C: Array | None, tails: Tails, joined: Joined | None = None) -> None:
        self._read, self.Y, self.C, self._tails, self._joined = read, Y, C, tails, joined

    def __getstate__(self) -> dict[str, Any]:
        """Without sources: open files and generators cannot be pickled."""
        return {"_read": None, "Y": None, "C": None, "_tails": self._tails, "_joined": None}

    @property
    def kept(self) -> bool:
        """Not after a stream has passed, nor in a saved model."""
        return not (self._read is None or self.Y is None or self.C is None)

    @property
    def tails(self) -> Tails:
        """As they were in the fit."""
        return self._tails

    def chunks(self, table: Table) -> Iterator[Chunk]:
        """All rows, read again."""
        if not self.kept:
            raise rows_not_kept()
        assert self.Y is not None
        assert self.C is not None
        at, n = 0, len(self.Y)
        for parts in self._read():
            here = slice(at, at + parts[0].shape[0])
            if here.stop > n:
                break
            yield here, dict(zip(table.views, parts, strict=True)), self.Y[here], self.C[here]
            at = here.stop
        if at != n:
            problem = "The rows of the fit need to be the same when they are read again"
            raise ValueError(message(problem, got=f"{at} rows instead of {n}", remedy="fit again"))

    def means(self, table: Table, problem: Problem, first: State, state: State, T: Array) -> Array:
        """E[z_n] of all rows; rows in dask are not moved."""
        if isinstance(problem.data, SparseGapped):
            return np.asarray(state.z.mean)
        if self._joined is None or not isinstance(state.z, Factors):
            return super().means(table, problem, first, state, T)
        assert self.Y is not None
        assert self.C is not None
        work = partial(_mapped_block, table=table, z=state.z)
        return np.asarray(self._joined.by_block(work, np.hstack([self.Y, self.C]), problem.k).compute())


def _mapped_block(parts: list[Any], t: Array, table: Table, z: Factors) -> Array:
    p, views = len(table.mean_y), dict(zip(table.views, parts, strict=True))
    of_x, of_y = _maps(table, z)
    return table.mapped(views, t[:, p:], of_x) + t[:, :p] @ of_y


def _maps(table: Table, z: Factors) -> tuple[Array, Array]:
    """E[Z] = X of_x + Y of_y, where Y may also be the last features of the fit."""
    d = table.bounds[-1].stop
    return (z.of_x, z.of_y) if len(z.of_x) == d else (z.of_x[:d], z.of_y + z.of_x[d:])
