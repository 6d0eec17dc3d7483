"""Confounders (batch, age where it is not of interest): taken from a table, matched to rows, and coded as numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign import stream as rows
from covalign._core.linalg import Array
from covalign._core.messages import listed, message
from covalign.stream import Beside, is_source
from covalign.tables import covariates
from covalign.tables.covariates import Encoding
from covalign.tables.join import in_order


def separated(Y: Any, confounders: Any) -> tuple[Any, Any]:
    """Y and the table of confounders. These may be given as names of columns of Y, and are then taken out of Y."""
    names = [confounders] if isinstance(confounders, str) else confounders
    if not (isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names)):
        return Y, confounders
    Y = Y.to_pandas() if hasattr(Y, "to_pandas") else Y
    columns = [str(column) for column in getattr(Y, "columns", [])]
    absent = [name for name in names if name not in columns]
    if absent and not isinstance(confounders, str) and len(names) == len(Y):
        return Y, np.array(names, dtype=object)  # a label for every row, not names
    if absent:
        need = f"confounders given by name need the columns {listed(absent)}"
        remedy = "add them to Y, or pass a table of confounders"
        raise ValueError(message(need, got=f"{listed(columns)} in Y", remedy=remedy, wrong=absent, known=columns))
    frame = Y.set_axis(columns, axis=1)
    rest = frame.drop(columns=list(names))
    if rest.shape[1] == 0:
        need = "at least one covariate is needed besides the confounders"
        raise ValueError(message(need, got=f"only {listed(names)}", remedy="leave a column of interest in Y"))
    return rest, frame[list(names)]


def learn(confounders: Any, *, declared: bool = False) -> Encoding:
    """How the confounders are coded; gaps are refused. ``declared`` is that of ``Encoding.learn``."""
    frame = as_frame(confounders)
    _refuse_gaps(frame)
    return Encoding.learn(frame, drop_first=False, declared=declared)


def as_frame(confounders: Any) -> pd.DataFrame:
    """A table with column names; c0, c1, ... where it has none."""
    frame = covariates.as_frame(confounders, "confounders")
    nameless = not hasattr(confounders, "columns") and getattr(confounders, "name", None) is None
    return frame.set_axis([f"c{i}" for i in range(frame.shape[1])], axis=1) if nameless else frame


def matched(confounders: Any, index: pd.Index | None, n: int | None = None) -> pd.DataFrame:
    """The confounders of n rows: by the names in ``index`` where both have names, else as they are."""
    frame = as_frame(confounders)
    if index is not None and isinstance(confounders, pd.DataFrame | pd.Series):
        frame = in_order(frame, index, extra="leave out", repeated=True, called=("confounders", "the data"))
    if n is not None:
        check_rows(len(frame), n)
    return frame


def check_rows(got: int, need: int) -> None:
    """Confounders need one row a sample."""
    if got != need:
        problem = f"confounders need one row for each of the {need} samples"
        raise ValueError(message(problem, got=got, remedy="pass the confounders of these samples"))


def coded(encoding: Encoding, frame: pd.DataFrame) -> Array:
    """The numeric columns of these rows (n x q); gaps are refused."""
    numbers = encoding.apply(frame, called="confounders")
    _refuse_gaps(numbers)
    return numbers.to_numpy()


def _refuse_gaps(frame: pd.DataFrame) -> None:
    for name in frame.columns[frame.isna().any(axis=0)]:
        raise ValueError(
            message(
                "confounders need a value for every sample",
                got=f"{int(frame[name].isna().sum())} missing in {name!r}",
                remedy="fill them in, leave these samples out, or give missing ones a category of their own",
            )
        )


class Tables(NamedTuple):
    """Covariates and confounders of the same rows, before they are coded."""

    Y: pd.DataFrame
    C: pd.DataFrame  # without columns where there are no confounders


def tables(Z: Any, Y: Any, confounders: Any) -> Tables:
    """Both tables in the order of the rows of Z; Y already is."""
    frame = covariates.as_frame(Y)
    if confounders is None:
        return Tables(frame, pd.DataFrame(index=frame.index))
    return Tables(frame, matched(confounders, _row_names(Z, Y, confounders)))


def _row_names(Z: Any, Y: Any, confounders: Any) -> pd.Index | None:
    """The index of Z; where Z has none, that of Y, if the confounders are the same rows in another order."""
    if isinstance(Z, pd.DataFrame | pd.Series):
        return Z.index
    if isinstance(Y, pd.DataFrame | pd.Series) and isinstance(confounders, pd.DataFrame | pd.Series):
        same = len(Y) == len(confounders) and Y.index.is_unique and Y.index.isin(confounders.index).all()
        return Y.index if same else None
    return None


def complete(Z: Any, tables: Tables, missing: str, *, partial: bool = False) -> tuple[Any, Tables]:
    """``covariates.complete_pairs``, with the confounders of the same rows."""
    rows, Y = covariates.complete_pairs(Z, tables.Y, missing, partial=partial)
    check_rows(len(tables.C), len(tables.Y))
    if len(Y) == len(tables.Y):
        return rows, tables
    return rows, Tables(Y, tables.C.loc[covariates.complete_rows(tables.Y, missing, partial=partial)])


class Coding(NamedTuple):
    """How the tables of the first rows became numbers; those of further rows are coded alike."""

    covariates: Encoding
    confounders: Encoding = Encoding(())
    named: bool = False  # the confounders were columns of Y

    @classmethod
    def learn(cls, tables: Tables, *, drop_first: bool = True, declared: bool = False, named: bool = False) -> Coding:
        """Both encodings; ``named`` if the confounders were columns of Y."""
        of_covariates = Encoding.learn(tables.Y, drop_first=drop_first, declared=declared)
        if tables.C.shape[1] == 0:
            return cls(of_covariates)
        return cls(of_covariates, learn(tables.C, declared=declared), named)

    @classmethod
    def add(cls, of_covariates: Encoding, C: pd.DataFrame | None, named: bool, n: int) -> tuple[Coding, Array]:
        """The coding of covariates and of confounders C (None where there are none), and C in numbers (n x q)."""
        if C is None:
            return cls(of_covariates), np.empty((n, 0))
        coding = cls(of_covariates, learn(C), named)
        return coding, coded(coding.confounders, C)

    @property
    def q(self) -> int:
        """How many columns the coded confounders have."""
        return len(self.confounders.names)

    @property
    def sources(self) -> list[str]:
        """Names of the confounders in the table of the user."""
        return [column.source for column in self.confounders.columns]

    def apply(self, Z: Any, tables: Tables, *, short: bool = False) -> tuple[Any, pd.DataFrame]:
        """[Z C] and Y in numbers; with ``short``, a category of Y is one column (``Encoding.short``)."""
        code = self.covariates.short if short else self.covariates.apply
        return beside(Z, coded(self.confounders, tables.C)), code(tables.Y)

    def recall(self, Y: Any, confounders: Any) -> tuple[Any, Any]:
        """``separated`` for further rows: their confounders are columns of Y if those of the first rows were."""
        if not self.sources and confounders is not None:
            raise none_fitted()
        if self.named and confounders is None and {*self.sources} <= {*map(str, getattr(Y, "columns", []))}:
            confounders = self.sources
        if self.sources and confounders is None:
            raise needed(self.sources)
        return (None, confounders) if Y is None else separated(Y, confounders)

    def table(self, Z: Any, confounders: Any, n: int) -> Array:
        """The coded confounders (n x q) of n further rows, which come without Y; Z is a table, or an index."""
        _, confounders = self.recall(None, confounders)
        if confounders is None:
            return np.empty((n, 0))
        if isinstance(confounders, str):
            raise needed(self.sources)
        index = Z if isinstance(Z, pd.Index) else Z.index if isinstance(Z, pd.DataFrame | pd.Series) else None
        return coded(self.confounders, matched(confounders, index, n))


def needed(names: Iterable[str]) -> ValueError:
    """The error for new samples without the confounders that a model was fitted with."""
    problem = f"this model was fitted with confounders ({listed(names)}), so new samples need theirs"
    return ValueError(message(problem, got="none", remedy="pass confounders="))


def none_fitted() -> ValueError:
    """The error for confounders that a model does not know."""
    problem = "confounders were given, but this model was fitted without any"
    return ValueError(f"{problem}: leave them out, or fit with confounders=.")


def beside(Z: Any, C: Array) -> Any:
    """[Z C]; a copy of what is in memory, unless there is no C."""
    if C.shape[1] == 0:
        return Z
    return Beside(Z, C) if is_source(Z) else rows.beside(Z, C)
