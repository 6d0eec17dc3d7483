"""Arrays and tables as users pass them: lists, masked arrays, tables of objects. Here they become numbers with gaps.

Every table of rows, covariates or confounders goes through here before anything else looks at its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from numbers import Real
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types
from scipy import sparse

from covalign._core.checks import is_real
from covalign._core.data_errors import (
    column_not_numeric,
    damaged_sparse,
    not_a_table,
    not_numeric,
    repeated_columns,
    rows_of_unequal_length,
    unwritable_names,
)
from covalign._core.extras import optional
from covalign._core.messages import kind_of, message
from covalign._core.number_range import LARGEST, out_of_range


def plain(data: Any, where: str) -> Any:
    """``data`` as an array, DataFrame, Series or sparse matrix.

    Arrays that are read in chunks, and tables of other libraries, which have no names of rows, stay as they are.
    A masked cell is a gap: NaN, None among flags and text. Structured arrays, dicts and numbers are no tables.
    """
    if isinstance(data, np.ndarray):
        if data.dtype.kind == "V":
            raise not_a_table(where, "a structured array")
        if isinstance(data, np.ma.MaskedArray):
            return unmasked(data)
        return data if isinstance(data, np.memmap) else native(np.asarray(data))  # a subclass may compute otherwise
    if isinstance(data, pd.Series):
        foreign = isinstance(data.dtype, np.dtype) and not data.dtype.isnative
        return pd.Series(native(data.to_numpy()), data.index, name=data.name) if foreign else data
    if isinstance(data, pd.DataFrame):
        return _native_columns(data)
    if sparse.issparse(data):
        return checked_sparse(data, where)
    if isinstance(data, list | tuple | range):
        return as_array(data, where)
    kind = type(data)
    if isinstance(data, type | ModuleType) or kind.__module__.startswith("dask.delayed"):
        raise not_a_table(where, kind_of(data))
    if hasattr(kind, "detach") and hasattr(kind, "layout"):
        return tensor_values(data, where)
    if hasattr(kind, "to_pandas") or hasattr(data, "chunks"):
        return data
    if hasattr(data, "__array__") or hasattr(data, "shape"):
        return plain(_converted(data, where, np.asarray), where)
    raise not_a_table(where, "nothing" if data is None else kind_of(data))


def native(array: NDArray[Any]) -> NDArray[Any]:
    """The array with the bytes of this machine; pandas and BLAS know no others."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _native_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The same for a table of pandas. Its blocks are asked, as ``frame.dtypes`` takes a percent of a small fit."""
    blocks = getattr(getattr(frame, "_mgr", None), "blocks", ())
    if all(getattr(block.dtype, "isnative", True) for block in blocks):
        return frame
    frame = frame.copy(deep=False)
    for i, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, np.dtype) and not dtype.isnative:
            frame.isetitem(i, native(frame.iloc[:, i].to_numpy()))
    return frame


def in_pandas(data: Any, where: str = "Y") -> Any:
    """A table of polars, pyarrow or xarray, or a Series, as a DataFrame; anything else unchanged."""
    if hasattr(type(data), "to_pandas"):
        data = _converted(data, where, lambda table: table.to_pandas())
    return data.to_frame("y0" if data.name is None else data.name) if isinstance(data, pd.Series) else data


def _converted(data: Any, where: str, convert: Callable[[Any], Any]) -> Any:
    """``convert(data)``; what the class of the user raises becomes our error."""
    try:
        return convert(data)
    except MemoryError:
        raise
    except Exception as error:
        raise not_a_table(where, f"{kind_of(data)} that cannot be read ({type(error).__name__})") from error


def checked_sparse(matrix: Any, where: str) -> Any:
    """A sparse matrix whose indices are in its range, or compiled code would read memory that is not its own."""
    if matrix.dtype.kind not in "fiub":
        raise not_numeric(where, matrix.dtype)
    try:
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        elif matrix.format == "coo" and matrix.nnz:
            for at, size in zip(matrix.coords, matrix.shape, strict=True):
                if not 0 <= at.min() <= at.max() < size:
                    raise ValueError
    except ValueError:
        raise damaged_sparse(where, matrix.format) from None
    return matrix


def check_tensor(tensor: Any, where: str) -> None:
    """Refuse a torch tensor without values in rows: a sparse one, or one of the device ``meta``."""
    if tensor.layout != optional("torch", "torch").strided or tensor.device.type == "meta":
        kind = "tensor without values" if tensor.device.type == "meta" else "sparse tensor"
        raise not_a_table(where, f"a {kind} of torch")


def tensor_values(tensor: Any, where: str = "Z") -> Any:
    """The numbers of a torch tensor; half precision becomes float32, because BLAS has no half precision."""
    torch = optional("torch", "torch")
    check_tensor(tensor, where)
    half = tensor.dtype in (torch.bfloat16, torch.float16)
    kind = torch.float32 if half else tensor.dtype
    return _converted(tensor, where, lambda data: data.detach().to(kind).cpu().numpy())


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
    if hasattr(type(data), "to_pandas"):
        data = in_pandas(data, where)
    if isinstance(data, pd.DataFrame):
        return _numeric_frame(data, where)
    if isinstance(data, np.ndarray):
        if data.dtype.kind in "fiub":
            return native(data)
        if data.dtype.kind not in "OUS":
            raise not_numeric(where, data.dtype)
        if data.ndim != 2:
            return _floats(data, where)
        # Without a type pandas looks for dates, and fails at numbers beyond all floats.
        kept = object if data.dtype == object else None
        columns = [_numeric_column(pd.Series(column, dtype=kept), where, i) for i, column in enumerate(data.T)]
        return np.column_stack(columns).astype(np.float64, copy=False) if columns else data.astype(np.float64)
    return data


def as_matrix(data: Any, what: str, columns: int | None = None) -> NDArray[np.float64]:
    """A matrix of numbers, with this many columns; a number is a matrix of one."""
    if not (isinstance(data, np.ndarray) and data.ndim == 2 and data.dtype == np.float64):
        data = numbers(plain([[data]] if is_real(data) else data, what), what)
        data = np.asarray(data.toarray() if sparse.issparse(data) else data, dtype=np.float64)
        data = data[None] if data.ndim == 1 else data
    if data.ndim != 2 or (columns is not None and data.shape[1] != columns):
        problem = f"{what} needs {f'a matrix with {columns}' if columns is not None else 'rows and'} columns"
        remedy = "pass a matrix of numbers" if columns is None else "there is one for each dimension of Z"
        raise ValueError(message(problem, got=f"shape {data.shape}", remedy=remedy))
    return data  # type: ignore[no-any-return]


def as_vector(data: Any, what: str, length: int) -> NDArray[np.float64]:
    """As many finite numbers as there are columns."""
    values = np.asarray(numbers(plain([data] if is_real(data) else data, what), what), dtype=np.float64)
    if values.shape != (length,) or not np.isfinite(values).all():
        got = f"shape {values.shape}" if values.shape != (length,) else "NaN or infinity (inf)"
        raise ValueError(message(f"{what} needs {length} finite numbers", got=got, remedy="one for each column"))
    return values


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
            try:
                frame.isetitem(i, column.where(column.notna(), np.nan).to_numpy(dtype=np.float64))
            except OverflowError:
                raise out_of_range("Y", column.name, large=True) from None
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


def shape_of(data: Any, where: str) -> tuple[int, ...]:
    """The shape of a table of any kind."""
    for table in (data, plain(data, where)):
        shape = getattr(table, "shape", None)
        if isinstance(shape, tuple):
            return shape
    raise not_a_table(where, kind_of(data))


def inferred(frame: pd.DataFrame, where: str) -> pd.DataFrame:
    """The frame with numbers in place of objects that are numbers; whole numbers may be too large for any."""
    try:
        return frame.infer_objects()
    except OverflowError:
        large = [name for name, column in frame.items() if any(map(_is_beyond, column))]
        raise out_of_range(where, large[0] if large else frame.columns[0], large=True) from None


def _is_beyond(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > LARGEST


def exact_numbers(column: pd.Series) -> pd.Series:
    """``pandas.to_numeric``, which is wrong in the last digit of every third number, without this error."""
    near = pd.to_numeric(column)
    if not types.is_float_dtype(near.dtype) and not types.is_object_dtype(near.dtype):
        return near
    values = column.to_numpy(dtype=object)
    known = ~column.isna().to_numpy() & np.array([value != "" for value in values], dtype=bool)
    made = np.full(len(column), np.nan)
    made[known] = values[known].astype(np.float64)
    return pd.Series(made, column.index, name=column.name)


def _is_real(dtype: Any) -> bool:
    if isinstance(dtype, np.dtype):
        return dtype.kind in "fiub"
    if isinstance(dtype, pd.SparseDtype) and dtype.fill_value != 0:
        return False  # scikit-learn takes every such value for 0
    return types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype)


def _numeric_column(column: pd.Series, where: str, position: int | None = None) -> pd.Series:
    """Text and objects as numbers, where they are numbers; columns of arrays have a ``position`` for a name."""
    made = inferred(column.to_frame(), where).iloc[:, 0]
    if isinstance(made.dtype, pd.SparseDtype):
        made = pd.Series(made.to_numpy(), made.index, name=made.name)
    if types.is_object_dtype(made.dtype) or types.is_string_dtype(made.dtype):
        try:
            made = made.astype(np.float64) if _is_exact(made) else exact_numbers(made)
        except OverflowError:
            raise out_of_range(where, column.name if position is None else position, large=True) from None
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
    except Exception:  # objects of a user's class may raise anything
        raise not_numeric(where, array.dtype) from None
