"""Views that need not fit into memory: sources read in step, a chunk of rows at a time, or coded batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from covalign._core.data_errors import view_rows_differ
from covalign._core.linalg import dense
from covalign._core.messages import message
from covalign.factor import preparation as data
from covalign.stream import Batch, Source, in_step, is_source, open_rows
from covalign.stream.source import CHUNK_BYTES, stacked
from covalign.tables import confounders, covariates
from covalign.tables.join import union


def is_in_memory(X: Any) -> bool:
    """Whether all views are arrays or DataFrames; anything else is read a chunk at a time."""
    views = X.values() if isinstance(X, Mapping) else [X]
    return all(_is_table(view) for view in views)


def _is_table(view: Any) -> bool:
    if isinstance(view, np.ndarray):
        return not isinstance(view, np.memmap)
    return isinstance(view, pd.DataFrame | list | tuple) or hasattr(view, "to_pandas")


class Views:
    """One source for each view, all with the same number of rows, read in step."""

    def __init__(self, sources: dict[str, Source]) -> None:
        self.sources = sources
        rows = {name: source.shape[0] for name, source in sources.items()}
        if len(set(rows.values())) > 1:
            raise view_rows_differ(rows)
        self.n = next(iter(rows.values()))

    @classmethod
    def open(cls, X: Any, chunk_rows: int | None = None) -> Views:
        """Open X, or every view of a dict: anything that ``open_rows`` takes, or a Source."""
        return cls(by_name({name: _source(name, view, chunk_rows) for name, view in data.as_views(X).items()}))

    @cached_property
    def index(self) -> pd.Index | None:
        """Names of the rows, if a view has them. Views with different names cannot be read in step."""
        found = None
        for source in self.sources.values():
            index = source.index
            if index is not None and found is not None and not index.equals(found):
                problem = "Views that are read in step need the same row names in the same order"
                remedy = "bring the views into one order, or pass DataFrames, which are joined by index"
                raise ValueError(message(problem, got=f"others in {source.where}", remedy=remedy))
            found = index if found is None else found
        return found

    @property
    def names(self) -> dict[str, list[str]]:
        """The features of every view; 0, 1, ... if they have no names."""
        return {view: names_of(source) for view, source in self.sources.items()}

    @property
    def labels(self) -> pd.Index:
        """``index``, or 0, 1, ..."""
        return pd.RangeIndex(self.n) if self.index is None else self.index

    @property
    def cells(self) -> Cells:
        """Names of numbers for messages."""
        sources = list(self.sources.values())
        return Cells([source.where for source in sources], [source.names for source in sources], self)

    @property
    def width(self) -> int:
        """Number of features of all views."""
        return sum(source.shape[1] for source in self.sources.values())

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[tuple[Any, ...]]:
        """A chunk of every view, from row ``start`` on, read ahead if they are not in memory."""
        return in_step(list(self.sources.values()), rows, start)

    def sparse(self) -> tuple[list[Any], NDArray[np.bool_]] | None:
        """Every view as a csr matrix of float64, and which rows have it (n x V); None if a view is dense, or has gaps.

        A row lacks a view if it is not among the names of its rows, or if all its numbers are stored as NaN. It has
        zeros there.
        """
        if not all(_is_sparse(source) for source in self.sources.values()):
            return None
        sources = self.sources.values()
        made = [source.spread() if isinstance(source, ByName) else complete_rows(_csr(source)) for source in sources]
        if any(one is None for one in made):
            return None
        parts, present = zip(*(one for one in made if one is not None), strict=True)
        return list(parts), np.column_stack(present)

    def whole(self) -> dict[str, pd.DataFrame]:
        """All rows in memory, for data with more features than rows: every sweep reads them."""
        return {
            view: pd.DataFrame(_all_rows(source), index=self.labels, columns=names_of(source), copy=False)
            for view, source in self.sources.items()
        }


@dataclass(frozen=True)
class Cells:
    """(table, feature, sample) of a number, for messages; without ``views`` (rows without names) it can be pickled."""

    where: list[str]
    names: Sequence[Sequence[str] | None]
    views: Views | None = None

    def __call__(self, view: int, column: int, row: int) -> tuple[Any, ...]:
        """The table, its feature, and the sample if it has a name."""
        names, index = self.names[view], None if self.views is None else self.views.index
        return self.where[view], column if names is None else names[column], None if index is None else index[row]


class ByName(Source):
    """A sparse table in memory over the rows of all tables, by name; rows that it lacks are NaN in chunks."""

    in_memory = True

    def __init__(self, of: Source, index: pd.Index) -> None:
        self.of, self._index, self._at = of, index, of.index.get_indexer(index)
        self.shape, self.dtype = (len(index), of.shape[1]), np.result_type(of.dtype, np.float32)
        self.names, self.where = of.names, of.where

    @property
    def index(self) -> pd.Index:
        """Names of the rows of all tables."""
        return self._index

    @property
    def chunk_rows(self) -> int:
        """As many as in a dense table."""
        return max(1, CHUNK_BYTES // (8 * self.shape[1]))

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """Dense rows from ``start`` on."""
        step, S = rows or self.chunk_rows, _csr(self.of)
        first = start - start % step
        for begin in range(first, self.shape[0], step):
            at = self._at[max(begin, start) : begin + step]
            chunk = np.full((len(at), self.shape[1]), np.nan)
            chunk[at >= 0] = S[at[at >= 0]].toarray()
            yield chunk

    def spread(self) -> tuple[Any, NDArray[np.bool_]] | None:
        """``complete_rows`` over the rows of all tables."""
        found = complete_rows(_csr(self.of))
        if found is None:
            return None
        S, own = found
        there = self._at >= 0
        present = there.copy()
        present[there] = own[self._at[there]]
        rows = self._at[there]
        some = S if np.array_equal(rows, np.arange(S.shape[0])) else S[rows]  # the former is no copy
        return placed(some, np.flatnonzero(there), self.shape[0]), present


def by_name(sources: dict[str, Source]) -> dict[str, Source]:
    """Sparse tables in memory whose rows have different names are joined by name; other sources are read in step."""
    found = {source.where: source.index for source in sources.values() if stored_sparse(source) is not None}
    indexes = {where: index for where, index in found.items() if index is not None}
    if len(indexes) < len(sources) or all(index.equals(next(iter(indexes.values()))) for index in indexes.values()):
        return sources
    samples = union(indexes)
    return {name: ByName(source, samples) for name, source in sources.items()}


def stored_sparse(source: Source) -> Any:
    """The sparse matrix in memory that a source reads as it is; None if there is none."""
    stored = getattr(source, "stored", None)
    return stored if sparse.issparse(stored) and getattr(source, "taken", None) is None else None


def _is_sparse(source: Source) -> bool:
    return isinstance(source, ByName) or sparse.issparse(next(iter(source.chunks(1))))


def _csr(source: Source) -> Any:
    """All rows as a csr matrix of float64; the stored one itself if it is that."""
    S = stored_sparse(source)
    S = stacked(list(source.chunks())) if S is None else S.tocsr()
    S = sparse.csr_matrix(S, dtype=np.float64)  # shares the arrays of float64
    if not S.has_canonical_format:
        S = S.copy()
        S.sum_duplicates()
    return S


def complete_rows(S: Any) -> tuple[Any, NDArray[np.bool_]] | None:
    """S with zeros in rows of NaN, and which rows are not of NaN; None if other cells are NaN."""
    n, d = S.shape
    if not np.isnan(S.data.sum()):
        return S, np.ones(n, dtype=bool)
    bad = np.isnan(S.data)
    row = np.repeat(np.arange(n), np.diff(S.indptr))
    count = np.bincount(row[bad], minlength=n)
    absent = count == d
    if count.sum() != d * absent.sum():
        return None
    return placed(S[~absent], np.flatnonzero(~absent), n), ~absent


def placed(S: Any, at: NDArray[np.intp], n: int) -> Any:
    """n rows, those at these rising positions from S, the others without an entry."""
    stored = np.zeros(n + 1, dtype=S.indptr.dtype)
    stored[at + 1] = np.diff(S.indptr)
    return sparse.csr_matrix((S.data, S.indices, np.cumsum(stored)), shape=(n, S.shape[1]))


def names_of(source: Source) -> list[str]:
    """Names of the features, or 0, 1, ..."""
    return [str(i) for i in range(source.shape[1])] if source.names is None else list(source.names)


def _source(name: str, view: Any, chunk_rows: int | None) -> Source:
    return view if is_source(view) else open_rows(view, name=f"view {name!r}", chunk_rows=chunk_rows)


def _all_rows(source: Source) -> Any:
    values, at = np.empty(source.shape, dtype=source.dtype), 0
    for chunk in source.chunks():
        values[at : at + chunk.shape[0]] = dense(chunk)
        at += chunk.shape[0]
    return values


def learn_coding(first: pd.DataFrame, names: Any, drop_first: bool) -> confounders.Coding:
    """How covariates and confounders of all batches are coded: as the first batch, with its declared categories."""
    Y, C = confounders.separated(first, names)
    if C is not None and C is names:
        problem = "Confounders of batches need to be columns of their Y, given by name"
        raise ValueError(message(problem, got="a table", remedy="put them into Y and pass their names"))
    tables = confounders.Tables(Y, pd.DataFrame(index=Y.index) if C is None else C)
    return confounders.Coding.learn(tables, drop_first=drop_first, declared=True, named=True)


def coded_batches(batches: Iterable[Batch], coding: confounders.Coding) -> Iterator[tuple[Any, ...]]:
    """(*views, Y, C) of every batch, in numbers."""
    for batch in batches:
        Y, C = coding.recall(covariates.as_frame(batch.Y), None)
        views = (_values(view) for view in batch.tables.values())
        yield (*views, coding.covariates.numbers(Y), coding.table(None, C, len(Y)))


def _values(view: Any) -> Any:
    return data.numeric("X", view, gaps=True) if isinstance(view, pd.DataFrame) else view
