"""The names of the rows of a table: the column that has them, and what counts as a name."""

from __future__ import annotations

from typing import Any

import pandas as pd
from pandas.api import types

from covalign._core.messages import message

FRACTION = r"\s*[+-]?\d*[.,]\d+([eE][+-]?\d+)?\s*"


INDEX = "name the column of row names with read_table(path, index=...)"


def named(frame: pd.DataFrame, index: str | None, where: Any) -> pd.DataFrame:
    """The frame with its row names as index, all of them text; or with a RangeIndex."""
    if index is not None and index in frame.columns:
        return _indexed(frame, index, where)
    if not isinstance(frame.index, pd.RangeIndex):
        return frame.set_axis(as_text(frame.index, where), axis=0)
    if frame.shape[1] > 1 and are_names(frame.iloc[:, 0]):
        return _indexed(frame, str(frame.columns[0]), where)
    return frame


def as_text(index: pd.Index, where: Any) -> pd.Index:
    """Row names as text: every file has them in its own type."""
    if index.nlevels > 1:
        got = f"an index of {index.nlevels} levels in {str(where)!r}"
        remedy = "join the levels into one, or write the table without its index"
        raise ValueError(message("every row needs one name", got=got, remedy=remedy))
    return index.astype(str)


def are_names(column: pd.Series) -> bool:
    """Whether a column has text that never repeats; numbers and a few marks for gaps are a covariate, not names.

    Marks have no digit: 101, 102, 103b are names, and 40, 52, unknown are not.
    """
    text = types.is_object_dtype(column.dtype) or types.is_string_dtype(column.dtype)
    if not text or isinstance(column.dtype, pd.CategoricalDtype) or len(column) < 2:
        return False
    if not (column.map(lambda value: isinstance(value, str)).all() and column.is_unique):
        return False
    whole = column.str.fullmatch(r"\s*[+-]?\d+\s*")
    if whole.mean() > 0.5 and not whole.all() and not column[~whole].str.contains(r"\d").any():
        return False
    return bool(column.str.fullmatch(FRACTION).mean() <= 0.5)


def row_names(labels: pd.Series, where: Any) -> pd.Index:
    """A column as row names; none may be empty."""
    if labels.isna().any() or (labels.astype(str).str.strip() == "").any():
        got, remedy = f"an empty one in {str(where)!r}", f"fill it in, or {INDEX}"
        raise ValueError(message(f"every row needs a name in the column {str(labels.name)!r}", got=got, remedy=remedy))
    names: pd.Index = pd.Index(labels.astype(str).to_numpy(dtype=object))
    return names


def _indexed(frame: pd.DataFrame, column: str, where: Any) -> pd.DataFrame:
    return frame.drop(columns=column).set_axis(row_names(frame[column], where), axis=0)


def numbers_as_names(frame: pd.DataFrame, where: Any) -> list[str]:
    """A note if the first column may hold row names: whole numbers that never repeat, in ten rows or more."""
    column = frame.iloc[:, 0] if frame.shape[1] else pd.Series(dtype=object)
    if not (types.is_integer_dtype(column.dtype) and len(column) >= 10 and column.is_unique):
        return []
    what = f"column {str(column.name)!r} of {where} has a different whole number in each row and is used as a covariate"
    return [f"{what}: if these are row names, {INDEX.replace('...', repr(str(column.name)))}"]
