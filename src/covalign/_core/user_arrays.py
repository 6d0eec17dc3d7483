"""Arrays and tables as users pass them: lists, masked arrays, tables of objects. Here they become numbers with gaps.

Every table of rows, covariates or confounders goes through here before anything else looks at its values.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from covalign._core.checks import (
    column_not_numeric,
    not_a_table,
    not_numeric,
    repeated_columns,
    rows_of_unequal_length,
    unwritable_names,
)


def plain(data: Any, where: str) -> Any:
    """``data`` without a mask, and a list as an array; tables and anything that has a shape otherwise stay as they are.

    A masked cell is a gap: NaN, None among flags and text. Structured arrays, dicts and numbers are no tables.
    """
    if isinstance(data, np.ndarray):
        if data.dtype.names is not None:
            raise not_a_table(where, "a structured array")
        if isinstance(data, np.ma.MaskedArray):
            return unmasked(data)
        return np.asarray(data) if isinstance(data, np.matrix) else data
    if hasattr(data, "shape") or hasattr(data, "to_pandas") or hasattr(data, "chunks"):
        return data
    if isinstance(data, list | tuple | range) or hasattr(data, "__array__"):
        return as_array(data, where)
    raise not_a_table(where, "nothing" if data is None else f"a {type(data).__name__}")


def unmasked(array: Any) -> NDArray[Any]:
    """The values of a masked array, with NaN (None among flags and text) in place of masked cells."""
    values, mask = np.asarray(array.data), np.ma.getmaskarray(array)
    if not mask.any():
        return values
    if values.dtype.kind in "iu":
        values = values.astype(np.float64)
    if values.dtype.kind not in "fc":
        return np.where(mask, np.array(None, dtype=object), values.astype(object))
    return np.where(mask, np.array(np.nan, dtype=values.dtype), values)


def as_array(data: Any, where: str) -> NDArray[Any]:
    """A list of rows as an array."""
    if isinstance(data, list | tuple) and any(isinstance(row, np.ma.MaskedArray) for row in data):
        data = [unmasked(row) if isinstance(row, np.ma.MaskedArray) else row for row in data]
    try:
        values = np.asarray(data)
    except (TypeError, ValueError):
        raise rows_of_unequal_length(where) from None
    if values.dtype.names is not None:
        raise not_a_table(where, "a structured array")
    return values


def numbers(data: Any, where: str) -> Any:
    """An array, or a DataFrame, whose values all are real numbers; NaN where a cell is missing."""
    if isinstance(data, pd.DataFrame):
        return _numeric_frame(data, where)
    if isinstance(data, np.ndarray):
        if data.dtype.kind in "fiub":
            return data if data.dtype.isnative else data.astype(data.dtype.newbyteorder("="))
        if data.dtype.kind not in "OUS":
            raise not_numeric(where, data.dtype)
        if data.ndim != 2:
            return _floats(data, where)
        columns = [_numeric_column(pd.Series(column), where, i) for i, column in enumerate(data.T)]
        return np.column_stack(columns).astype(np.float64, copy=False) if columns else data.astype(np.float64)
    return data


def check_names(where: str, names: Iterable[Any]) -> None:
    """Refuse column names that repeat as text, or that no file can hold."""
    index = pd.Index([str(name) for name in names], dtype=object)
    if not index.is_unique:
        raise repeated_columns(where, index[index.duplicated()].unique())
    try:
        "".join(index).encode()
    except UnicodeEncodeError:
        raise unwritable_names(where, [name for name in index if not _is_writable(name)]) from None


def numbers_among_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with floats in place of columns of decimals or fractions; other columns stay as they are."""
    for i, dtype in enumerate(frame.dtypes):
        if types.is_object_dtype(dtype) and _is_exact(frame.iloc[:, i]):
            frame = frame.copy(deep=False)
            column = frame.iloc[:, i]
            frame.isetitem(i, column.where(column.notna(), np.nan).to_numpy(dtype=np.float64))
    return frame


def _is_exact(column: pd.Series) -> bool:
    there = column.dropna()
    exact = (isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_) for value in there)
    return bool(len(there)) and all(exact)


def _is_writable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _numeric_frame(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    check_names(where, frame.columns)
    odd = [i for i, dtype in enumerate(frame.dtypes) if not _is_real(dtype)]
    if odd:
        frame = frame.copy(deep=False)
    for i in odd:
        frame.isetitem(i, _numeric_column(frame.iloc[:, i], where).array)
    return frame


def _is_real(dtype: Any) -> bool:
    if isinstance(dtype, np.dtype):
        return dtype.kind in "fiub"
    return types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype)


def _numeric_column(column: pd.Series, where: str, position: int | None = None) -> pd.Series:
    """Text and objects as numbers, where they are numbers; columns of arrays have a ``position`` for a name."""
    made = column.infer_objects()
    if types.is_object_dtype(made.dtype) or types.is_string_dtype(made.dtype):
        try:
            made = pd.to_numeric(made)
        except (TypeError, ValueError):
            made = made.astype("object")
    if _is_real(made.dtype):
        return made
    if position is None:
        raise column_not_numeric(where, column.name, column.dtype)
    kinds = dict.fromkeys(type(value).__name__ for value in column if not isinstance(value, Real))
    raise not_numeric(where, f"{' and '.join(kinds)} in column {position}")


def _floats(array: NDArray[Any], where: str) -> NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise not_numeric(where, array.dtype) from None
