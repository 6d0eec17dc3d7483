"""Coding of covariates: numbers, flags, categories and stages become named numeric columns.

>>> import covalign as ca
>>> ca.covariates.encode([[1.0, 0.0], [2.0, 1.0]]).columns.tolist()
['y0', 'y1']
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from covalign._core.checks import check_count, check_missing
from covalign._core.data_errors import (
    constant_covariates,
    lengths_differ,
    missing_values,
    no_covariates,
    not_two_dimensional,
    too_few_observed,
)
from covalign._core.linalg import dense
from covalign._core.messages import DECLARE_FIRST, kind_of, listed, message, shown
from covalign._core.number_range import LARGEST
from covalign._core.user_arrays import check_names, in_pandas, inferred, numbers, numbers_among_objects, plain
from covalign.stream import Kept, is_source
from covalign.stream.levels import MANY, SPARSE, Levels
from covalign.tables.column_coding import (
    Column,
    _reference,
    apply_column,
    apply_short,
    described,
    learn_column,
    levels_of_names,
)
from covalign.tables.join import match_rows

MOST_NAMES = 10**7

__all__ = [
    "Column",
    "Encoding",
    "as_frame",
    "complete_pairs",
    "complete_rows",
    "encode",
    "match_rows",
    "numbered",
    "ordered",
    "refuse_constant",
    "refuse_unused_reference",
]


class Encoding(NamedTuple):
    """The coding of a table of covariates, learned from some rows and applied to these or to others.

    >>> import pandas as pd, covalign as ca
    >>> Y = pd.DataFrame({"age": [40, 52, 61, 47], "type": ["a", "b", "c", "a"]})
    >>> coding = ca.covariates.Encoding.learn(Y)
    >>> coding.names, coding.blocks
    (['age', 'type_b', 'type_c'], ((0,), (1, 2)))
    >>> coding.apply(Y[2:3]).to_numpy().tolist()
    [[61.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """Names of the numeric columns."""
        return [name for column in self.columns for name in column.names]

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the numeric columns that come from the same column of the table: they are missing together."""
        ends = np.cumsum([len(column.names) for column in self.columns]).tolist()
        return tuple(tuple(range(end - len(c.names), end)) for c, end in zip(self.columns, ends, strict=True))

    def categories(self, called: str = "dimensions") -> dict[str, dict[str, Any]]:
        """Of every category with dummies: its levels, its reference level (None if it has none), and a sentence.

        ``called`` is the word for what a dummy gets.

        >>> import pandas as pd, covalign as ca
        >>> coding = ca.covariates.Encoding.learn(pd.DataFrame({"type": ["a", "b", "c", "a"]}))
        >>> coding.categories()["type"]["reference"], coding.categories()["type"]["levels"]
        ('a', ['a', 'b', 'c'])
        """
        return {column.source: described(column, called) for column in self.columns if column.kind == "dummies"}

    @classmethod
    def learn(cls, frame: pd.DataFrame, *, drop_first: bool = True, declared: bool = False) -> Encoding:
        """Learn the coding of every column from the rows that have a value.

        ``drop_first`` makes the first level of every category its reference level, which has no column. ``declared``
        keeps levels of a category that do not occur in these rows: further rows may have them.

        >>> import pandas as pd, covalign as ca
        >>> stage = pd.Categorical(["I", "III", "I"], categories=["I", "II", "III"], ordered=True)
        >>> ca.covariates.Encoding.learn(pd.DataFrame({"stage": stage})).columns[0].levels
        ('I', 'II', 'III')
        """
        columns = tuple(learn_column(str(name), frame[name], drop_first, declared) for name in frame.columns)
        encoding = cls(columns)
        _refuse_duplicates(encoding.names)
        return encoding

    def apply(self, frame: pd.DataFrame, called: str = "covariates") -> pd.DataFrame:
        """The numeric columns of these rows, NaN where a covariate is missing. ``called`` is for messages."""
        self._refuse_absent(frame, called)
        if self._is_identity(frame):
            return frame
        values, at = np.empty((len(frame), len(self.names))), 0
        for column in self.columns:
            values[:, at : at + len(column.names)] = apply_column(column, frame[column.source])
            at += len(column.names)
        return pd.DataFrame(values, index=frame.index, columns=self.names, copy=False)

    def short(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The table of ``levels``: one numeric column for every column, NaN where a covariate is missing."""
        self._refuse_absent(frame, "covariates")
        values = [apply_short(column, frame[column.source]) for column in self.columns]
        return pd.DataFrame(np.hstack(values), index=frame.index, columns=[column.source for column in self.columns])

    @property
    def levels(self) -> Levels | None:
        """How the short table becomes the numeric columns; None where they are not many dummies."""
        if len(self.names) < max(MANY, SPARSE * len(self.columns)):
            return None
        source = np.repeat(np.arange(len(self.columns)), [len(column.names) for column in self.columns])
        return Levels(source, np.concatenate([levels_of_names(column) for column in self.columns]))

    def numbers(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """``apply`` as an array (n x P)."""
        return np.ascontiguousarray(self.apply(frame).to_numpy(dtype=np.float64))

    def _refuse_absent(self, frame: pd.DataFrame, called: str) -> None:
        absent = [column.source for column in self.columns if column.source not in frame.columns]
        if absent:
            problem = f"{called} need the columns {listed(absent)} as in fit"
            raise ValueError(message(problem, got=listed(frame.columns), remedy="pass a table with these names"))

    def _is_identity(self, frame: pd.DataFrame) -> bool:
        """Whether these already are finite float64 numbers: millions of rows need no copy."""
        same = list(frame.columns) == self.names and all(column.kind == "number" for column in self.columns)
        if not same or not all(dtype == np.float64 for dtype in frame.dtypes):
            return False
        return all((np.abs(frame[name].to_numpy()) <= LARGEST).all() for name in frame.columns)


def encode(Y: Any, *, drop_first: bool = True, missing: str = "raise") -> pd.DataFrame:
    """Y (DataFrame, Series or array) as named numeric columns.

    Numbers stay as they are. Booleans and categories of two levels become one 0/1 column (1 is the second level).
    Other categories become one dummy a level, named like ``subtype_LumA``, except for the first level: the first of
    the declared categories, otherwise the first in sorted order. ``drop_first=False`` gives it a dummy, too. Ordered
    categories become their rank 0, 1, ... Incomplete rows raise an error; ``missing="drop"`` leaves them out,
    ``missing="pairs"`` keeps them with NaN for a missing value.

    >>> import pandas as pd, covalign as ca
    >>> Y = pd.DataFrame({"age": [40, 52, 61], "subtype": pd.Categorical(["LumA", "Basal", "Her2"])})
    >>> ca.covariates.encode(Y).columns.tolist()
    ['age', 'subtype_Her2', 'subtype_LumA']
    >>> ca.covariates.encode(Y, drop_first=False).columns.tolist()
    ['age', 'subtype_Basal', 'subtype_Her2', 'subtype_LumA']
    """
    frame = as_frame(Y)
    frame = frame.loc[complete_rows(frame, missing)]
    encoded = Encoding.learn(frame, drop_first=drop_first).apply(frame)
    refuse_constant(encoded)
    return encoded


def as_frame(Y: Any, called: str = "Y") -> pd.DataFrame:
    """Y as a DataFrame with string column names; y0, y1, ... where it has none. ``called`` is for messages.

    >>> import covalign as ca
    >>> ca.covariates.as_frame([[1, 2], [3, 4]]).columns.tolist()
    ['y0', 'y1']
    """
    Y = in_pandas(plain(Y, called), called)
    if not isinstance(Y, pd.DataFrame):
        values = np.asarray(dense(Y))
        if values.ndim not in (1, 2):
            raise not_two_dimensional(called, values.shape)
        values = values[:, None] if values.ndim == 1 else values
        Y = pd.DataFrame(values, columns=[f"y{i}" for i in range(values.shape[1])])
    if Y.shape[1] == 0:
        raise no_covariates(called)
    frame: pd.DataFrame = Y.copy(deep=False)  # nothing here writes to the numbers, which are the user's
    frame.columns = pd.Index([str(name) for name in Y.columns])
    _refuse_duplicates(frame.columns)
    mixed = any(dtype.kind == "O" for dtype in frame.dtypes)
    return numbers_among_objects(inferred(frame, called)) if mixed else frame


def complete_rows(frame: pd.DataFrame, missing: str = "raise", *, partial: bool = False) -> NDArray[np.bool_]:
    """Which rows to use: those with all covariates. With ``missing="raise"`` any other row is an error.

    With ``missing="pairs"`` all rows are used, and every covariate needs a value in two of them (unless ``partial``).

    >>> import pandas as pd, covalign as ca
    >>> ca.covariates.complete_rows(pd.DataFrame({"age": [40, None, 61]}), "drop").tolist()
    [True, False, True]
    """
    gaps = _frame(frame).isna()
    if check_missing(missing) == "pairs":
        observed = len(frame) - gaps.sum(axis=0).to_numpy()
        if (observed < 2).any() and not partial:
            raise too_few_observed(frame.columns[observed < 2], observed[observed < 2])
        return np.ones(len(frame), dtype=bool)
    if missing == "raise":
        for name in frame.columns[gaps.any(axis=0)]:
            raise missing_values(name, int(gaps[name].sum()), list(frame.index[gaps[name]]))
    return np.asarray(~gaps.any(axis=1), dtype=bool)


def complete_pairs(Z: Any, frame: pd.DataFrame, missing: str, *, partial: bool = False) -> tuple[Any, pd.DataFrame]:
    """The rows of Z and of the covariates to use; ``partial`` if further rows follow, which may have what these lack.

    >>> import numpy as np, pandas as pd, covalign as ca
    >>> Z, Y = ca.covariates.complete_pairs(np.eye(3), pd.DataFrame({"age": [40, None, 61]}), "drop")
    >>> Z.shape, Y["age"].tolist()
    ((2, 3), [40.0, 61.0])
    """
    if Z.shape[0] != len(frame):
        raise lengths_differ(Z.shape[0], len(frame))
    complete = complete_rows(frame, missing, partial=partial)
    if complete.all():
        return Z, frame
    kept = Kept(Z, complete) if is_source(Z) else Z.loc[complete] if isinstance(Z, pd.DataFrame) else Z[complete]
    return kept, frame.loc[complete]


def refuse_constant(encoded: pd.DataFrame) -> None:
    """Refuse covariates that do not vary in the rows that have them.

    >>> import pandas as pd, covalign as ca
    >>> ca.covariates.refuse_constant(pd.DataFrame({"age": [40.0, 52.0]}))  # varies: nothing happens
    """
    try:
        values = _frame(encoded).to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        values = numbers(_frame(encoded), "Y").to_numpy(dtype=np.float64)
    low, high = (extreme.reduce(values, axis=0, initial=np.nan) for extreme in (np.fmin, np.fmax))
    if not (low < high).all():
        raise constant_covariates(encoded.columns[~(low < high)])


def refuse_unused_reference(encoding: Encoding, rows: Any, sums: Any) -> None:
    """Refuse a reference level that no row has: the other levels would be linearly dependent.

    ``rows`` is how many rows have each column, ``sums`` is the sum of its values. Only levels that were declared before
    the rows were seen can be unused.

    >>> import pandas as pd, covalign as ca
    >>> coding = ca.covariates.Encoding.learn(pd.DataFrame({"type": ["a", "b", "c", "a"]}))
    >>> ca.covariates.refuse_unused_reference(coding, [4, 4], [1, 1])  # two rows have level a: nothing happens
    """
    for column, block in zip(encoding.columns, encoding.blocks, strict=True):
        reference, at = _reference(column), list(block)
        if reference is not None and np.sum(np.asarray(sums)[at]) > np.asarray(rows)[at[0]] - 0.5:
            problem = f"the reference level of {column.source!r} needs rows"
            remedy = DECLARE_FIRST
            raise ValueError(message(problem, got=f"none with {reference!r}", remedy=remedy))


def numbered(stem: str, n: int, taken: Collection[str]) -> list[str]:
    """n names free0, free1, ..., without those that are taken.

    >>> import covalign as ca
    >>> ca.covariates.numbered("free", 3, ["age", "free1"])
    ['free0', 'free2', 'free3']
    """
    n = check_count("n", n, least=0, most=MOST_NAMES)
    names = (f"{stem}{i}" for i in count())
    return list(islice((name for name in names if name not in taken), n))


def ordered(Y: pd.DataFrame, levels: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Y with ordered categories: column -> its levels, lowest first. They are coded 0, 1, 2, ...

    >>> import pandas as pd, covalign as ca
    >>> Y = ca.covariates.ordered(pd.DataFrame({"stage": ["ii", "i", "iii"]}), {"stage": ["i", "ii", "iii"]})
    >>> ca.covariates.encode(Y)["stage"].tolist()
    [1.0, 0.0, 2.0]
    """
    Y = _frame(Y)
    if not isinstance(levels, Mapping) or not all(isinstance(order, list | tuple) for order in levels.values()):
        problem, remedy = "ordered needs the levels of columns", "pass for example {'stage': ['i', 'ii', 'iii']}"
        raise ValueError(message(problem, got=shown(levels), remedy=remedy))
    for name in levels:
        if name not in Y.columns:
            have = [str(column) for column in Y.columns]
            problem = f"ordered needs columns of covariates, got {name!r}"
            raise ValueError(message(problem, remedy=f"The columns are {listed(have, 20)}", wrong=[name], known=have))
    return Y.assign(**{name: _in_order_of(name, Y[name], list(order)) for name, order in levels.items()})


def _in_order_of(name: str, values: pd.Series, order: list[Any]) -> pd.Series:
    """A column as an ordered category; levels of a column of numbers are numbers."""
    if types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype):
        order = [pd.to_numeric(pd.Series([level]), errors="coerce").iloc[0] for level in order]
    else:
        values = values.astype(object).where(values.isna(), values.astype(str).str.strip())
        order = [str(level) for level in order]
    known = values.isin(order) | values.isna()
    if not known.all():
        got = f"{listed(values[~known].unique())} as well"
        problem, remedy = (
            f"ordered needs every level of column {name!r}",
            "add it to the order, or leave its cells empty",
        )
        raise ValueError(message(problem, got=got, remedy=remedy))
    return pd.Series(pd.Categorical(values, categories=order, ordered=True), index=values.index)


def _frame(table: Any) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        return table
    problem, got = "covariates need to be a DataFrame here", kind_of(table)
    raise ValueError(message(problem, got=got, remedy="use covalign.covariates.as_frame"))


def _refuse_duplicates(names: Any) -> None:
    index = pd.Index(names)
    if index.has_duplicates:
        twice = listed(index[index.duplicated()].unique())
        need = "covariates need distinct column names"
        raise ValueError(message(need, got=f"{twice} more than once", remedy="rename or drop them"))
    check_names("Y", index)
