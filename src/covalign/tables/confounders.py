"""Confounders (batch, age where it is not of interest): taken from a table, matched to rows, and coded as numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign import stream as rows
from covalign._core import validation as errors
from covalign._core.linalg import Array
from covalign.stream import Beside, is_source
from covalign.tables import covariates
from covalign.tables.covariates import Encoding


def separated(Y: Any, confounders: Any) -> tuple[Any, Any]:
    """Y and the table of confounders, which may also be given as names of columns of Y, then taken out of it."""
    names = [confounders] if isinstance(confounders, str) else confounders
    if not (isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names)):
        return Y, confounders
    Y = Y.to_pandas() if hasattr(Y, "to_pandas") else Y
    columns = [str(column) for column in getattr(Y, "columns", [])]
    absent = [name for name in names if name not in columns]
    if absent and not isinstance(confounders, str) and len(names) == len(Y):
        return Y, np.array(names, dtype=object)  # a label for every row, not names
    if absent:
        raise errors.confounders_not_in_y(absent, columns)
    frame = Y.set_axis(columns, axis=1)
    rest = frame.drop(columns=list(names))
    if rest.shape[1] == 0:
        raise errors.only_confounders(names)
    return rest, frame[list(names)]


def learn(confounders: Any, *, declared: bool = False) -> Encoding:
    """How the confounders are coded; refused where they have gaps. ``declared`` is that of ``Encoding.learn``."""
    frame = as_frame(confounders)
    for name in frame.columns[frame.isna().any(axis=0)]:
        raise errors.missing_confounder(name, int(frame[name].isna().sum()))
    return Encoding.learn(frame, declared=declared)


def as_frame(confounders: Any) -> pd.DataFrame:
    """A table with names; c0, c1, ... where it has none."""
    frame = covariates.as_frame(confounders)
    nameless = not hasattr(confounders, "columns") and getattr(confounders, "name", None) is None
    return frame.set_axis([f"c{i}" for i in range(frame.shape[1])], axis=1) if nameless else frame


def table(encoding: Encoding, confounders: Any, index: pd.Index | None, n: int) -> Array:
    """The coded confounders (n x q) of rows: matched by index where both have one, else by position."""
    if confounders is None or isinstance(confounders, str):
        raise errors.confounders_needed([column.source for column in encoding.columns])
    frame = matched(confounders, index)
    if len(frame) != n:
        raise errors.confounder_rows_differ(n, len(frame))
    return coded(encoding, frame)


def matched(confounders: Any, index: pd.Index | None) -> pd.DataFrame:
    """The confounders of the rows with these names, where both have names; else as they are."""
    frame = as_frame(confounders)
    if index is None or not isinstance(confounders, pd.DataFrame | pd.Series) or frame.index.equals(index):
        return frame
    if not frame.index.is_unique:
        raise errors.duplicated_rows(list(frame.index[frame.index.duplicated()].unique()))
    absent = index.difference(frame.index, sort=False)
    if len(absent):
        raise errors.rows_without_confounders(list(absent))
    return frame.loc[index]


def coded(encoding: Encoding, frame: pd.DataFrame) -> Array:
    """The numeric columns of these rows (n x q); refused where one has a gap."""
    absent = [column.source for column in encoding.columns if column.source not in frame.columns]
    if absent:
        raise errors.confounder_columns_missing(absent, frame.columns)
    coded = encoding.apply(frame)
    for name in coded.columns[coded.isna().any(axis=0)]:
        raise errors.missing_confounder(name, int(coded[name].isna().sum()))
    return coded.to_numpy()


class Tables(NamedTuple):
    """Covariates and confounders of the same rows, as the user keeps them."""

    Y: pd.DataFrame
    C: pd.DataFrame  # without columns where there are no confounders


def tables(Z: Any, Y: Any, confounders: Any) -> Tables:
    """Both tables in the order of the rows of Z, which Y is in already."""
    frame = covariates.as_frame(Y)
    if confounders is None:
        return Tables(frame, pd.DataFrame(index=frame.index))
    return Tables(frame, matched(confounders, _row_names(Z, Y, confounders)))


def _row_names(Z: Any, Y: Any, confounders: Any) -> pd.Index | None:
    """The index of Z; where it has none, that of Y, if the confounders are the same rows in another order."""
    if isinstance(Z, pd.DataFrame | pd.Series):
        return Z.index
    if isinstance(Y, pd.DataFrame | pd.Series) and isinstance(confounders, pd.DataFrame | pd.Series):
        same = len(Y) == len(confounders) and Y.index.is_unique and Y.index.isin(confounders.index).all()
        return Y.index if same else None
    return None


def complete(Z: Any, tables: Tables, missing: str, *, partial: bool = False) -> tuple[Any, Tables]:
    """``covariates.complete_pairs``, with the confounders of the same rows."""
    rows, Y = covariates.complete_pairs(Z, tables.Y, missing, partial=partial)
    if len(tables.C) != len(tables.Y):
        raise errors.confounder_rows_differ(len(tables.Y), len(tables.C))
    if len(Y) == len(tables.Y):
        return rows, tables
    return rows, Tables(Y, tables.C.loc[covariates.complete_rows(tables.Y, missing, partial=partial)])


class Coding(NamedTuple):
    """How the tables of the first rows became numbers, to be applied to those of further rows."""

    covariates: Encoding
    confounders: Encoding = Encoding(())
    named: bool = False  # the confounders were columns of Y

    @classmethod
    def learn(cls, tables: Tables, *, drop_first: bool = False, declared: bool = False, named: bool = False) -> Coding:
        """Both encodings; ``named`` if the confounders were columns of Y."""
        of_covariates = Encoding.learn(tables.Y, drop_first=drop_first, declared=declared)
        if tables.C.shape[1] == 0:
            return cls(of_covariates)
        return cls(of_covariates, learn(tables.C, declared=declared), named)

    @property
    def q(self) -> int:
        """How many columns the coded confounders have."""
        return len(self.confounders.names)

    def apply(self, Z: Any, tables: Tables) -> tuple[Any, pd.DataFrame]:
        """[Z C] and Y in numbers."""
        return beside(Z, coded(self.confounders, tables.C)), self.covariates.apply(tables.Y)

    def recall(self, Y: Any, confounders: Any) -> tuple[Any, Any]:
        """``separated`` for further rows, whose confounders are columns of Y where those of the first rows were."""
        sources = [column.source for column in self.confounders.columns]
        if not sources and confounders is not None:
            raise errors.no_confounders_fitted()
        if self.named and confounders is None and {*sources} <= {*map(str, getattr(Y, "columns", []))}:
            confounders = sources
        if sources and confounders is None:
            raise errors.confounders_needed(sources)
        return (None, confounders) if Y is None else separated(Y, confounders)

    def table(self, Z: Any, confounders: Any, n: int) -> Array:
        """The coded confounders (n x q) of further rows Z that come without Y."""
        if self.q == 0:
            if confounders is not None:
                raise errors.no_confounders_fitted()
            return np.empty((n, 0))
        index = Z.index if isinstance(Z, pd.DataFrame | pd.Series) else None
        return table(self.confounders, confounders, index, n)


def beside(Z: Any, C: Array) -> Any:
    """[Z C]; a copy of what is in memory, unless there is no C."""
    if C.shape[1] == 0:
        return Z
    return Beside(Z, C) if is_source(Z) else rows.beside(Z, C)
