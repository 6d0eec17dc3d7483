"""Views that need not fit into memory: sources read in step, a chunk of rows at a time, or coded batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.data_errors import view_rows_differ
from covalign._core.linalg import dense
from covalign._core.messages import message
from covalign.factor import preparation as data
from covalign.stream import Batch, Source, in_step, is_source, open_rows
from covalign.stream.source import stacked
from covalign.tables import confounders, covariates


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
        return cls({name: _source(name, view, chunk_rows) for name, view in data.as_views(X).items()})

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

    def sparse(self) -> Any:
        """All views side by side as one csr matrix of float64; None if a view is dense or has gaps."""
        if not all(sparse.issparse(part) for part in next(iter(self.chunks(1)))):
            return None
        parts = zip(*self.chunks(), strict=True)
        S = sparse.hstack([stacked(part) for part in parts], format="csr", dtype=np.float64)
        S.sum_duplicates()
        return None if np.isnan(S.data.sum()) else S

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
