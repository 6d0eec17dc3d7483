"""How one column of a table becomes one or several numeric columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from covalign._core.data_errors import too_few_observed
from covalign._core.messages import AS_CATEGORY, AS_LEVELS, AS_NUMBERS, DECLARE_ALL, listed, message
from covalign._core.number_range import check_large
from covalign._core.user_arrays import exact_numbers
from covalign.tables.table_columns import gap_mark, odd_cell


class Column(NamedTuple):
    """How one column of a table becomes one or several numeric columns.

    >>> import pandas as pd, covalign as ca
    >>> ca.covariates.Encoding.learn(pd.DataFrame({"sex": ["f", "m", "f"]})).columns[0]
    Column(source='sex', kind='binary', levels=('f', 'm'), names=('sex_m',))
    """

    source: str
    kind: str  # "number", "binary" (1 is the second level), "ordered" (0, 1, ...), "dummies" (one column a level)
    levels: tuple[Any, ...]
    names: tuple[str, ...]


def learn_column(name: str, values: pd.Series, drop_first: bool, declared: bool) -> Column:
    if len(values) and not declared and values.isna().all():
        raise too_few_observed([name], [0])
    if not types.is_numeric_dtype(values.dtype):
        values = (values.dropna() if values.hasnans else values).infer_objects()  # flags were objects beside gaps
    dtype = values.dtype
    if types.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype):
        return Column(name, "binary", (False, True), (name,))
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return Column(name, "number", (), (name,))
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories if declared else values.cat.remove_unused_categories().cat.categories
        if dtype.ordered:
            # A stage that does not occur still separates its neighbours, so ranks count all declared levels.
            return Column(name, "ordered", tuple(dtype.categories), (name,))
        levels = tuple(categories)
    elif types.is_object_dtype(dtype) or types.is_string_dtype(dtype):
        levels = _levels_of_text(name, values)
    else:
        raise _unusable(f"{dtype} in column {name!r}")
    if len(levels) == 2:
        return Column(name, "binary", levels, (f"{name}_{levels[1]}",))
    shown = levels[1:] if drop_first and len(levels) > 1 else levels
    return Column(name, "dummies", levels, tuple(f"{name}_{level}" for level in shown))


def _reference(column: Column) -> str | None:
    """The level without a dummy."""
    without = column.kind == "dummies" and len(column.names) < len(column.levels)
    return str(column.levels[0]) if without else None


def described(column: Column, called: str) -> dict[str, Any]:
    reference, levels = _reference(column), [str(level) for level in column.levels]
    about = f"{column.source}: {len(column.names)} {called}, one for every level"
    if reference is not None:
        about += f" except the reference level {reference!r}. Use drop_first=False for all levels."
    else:
        about += f". {len(levels)} levels have only {len(levels) - 1} independent directions, so lambda 0 adds one "
        about += "that no level determines. Use drop_first=True to leave out the first level."
    return {"reference": reference, "levels": levels, "about": about}


def _levels_of_text(name: str, values: pd.Series) -> tuple[Any, ...]:
    """Sorted levels of a text column that reads like a category: values recur."""
    if len(values) == 0:
        raise too_few_observed([name], [0])
    if types.infer_dtype(values, skipna=False) != "string" and not all(isinstance(value, str) for value in values):
        kinds = sorted({type(value).__name__ for value in values})
        found = f"a mixture of {', '.join(kinds)}" if len(kinds) > 1 else kinds[0]
        raise _unusable(f"{found} in column {name!r}")
    distinct, n = list(values.unique()), len(values)
    if pd.to_numeric(pd.Series(distinct, dtype=object), errors="coerce").notna().all():
        got = f"numbers stored as text in column {name!r} (such as {distinct[0]!r})"
        raise _unusable(got, AS_NUMBERS)
    cell = odd_cell(values)
    if cell is not None:
        got = f"{cell[1]!r} among the numbers of column {name!r} (row {cell[0]!r})"
        raise _unusable(got, f"{gap_mark(cell[1])}; {AS_CATEGORY}")
    if (n > 2 and len(distinct) == n) or len(distinct) > max(10, n / 2):
        got = f"text with {len(distinct)} distinct values in {n} rows in column {name!r}"
        raise _unusable(got, AS_LEVELS)
    return tuple(sorted(distinct))


def _unusable(got: str, remedy: str = "") -> ValueError:
    remedy = remedy or "convert it to a number (for example days since the first visit) or to a category"
    return ValueError(message("a covariate needs numbers, booleans or categories", got=got, remedy=remedy))


def levels_of_names(column: Column) -> NDArray[np.intp]:
    """The levels that the numeric columns stand for; -1 where the numeric column is the column itself."""
    if column.kind != "dummies":
        return np.array([-1])
    return np.arange(len(column.levels) - len(column.names), len(column.levels))


def apply_column(column: Column, values: pd.Series) -> NDArray[np.float64]:
    short = apply_short(column, values)
    if column.kind != "dummies":
        return short
    return np.where(np.isnan(short), np.nan, short == levels_of_names(column))


def apply_short(column: Column, values: pd.Series) -> NDArray[np.float64]:
    """One numeric column (n x 1): the number, or the place of the level."""
    if column.kind == "number" and isinstance(values.dtype, np.dtype) and values.dtype != object:
        return _numbers(column, values)  # a gap is NaN already
    if values.hasnans:
        there = values.notna().to_numpy()
        filled = np.full((len(values), 1), np.nan)
        filled[there] = apply_short(column, values[there].infer_objects())
        return filled
    if column.kind == "number":
        return _numbers(column, values)
    codes = pd.Index(column.levels).get_indexer(pd.Index(np.asarray(values, dtype=object)))
    if (codes < 0).any():
        new = listed(pd.unique(np.asarray(values, dtype=object)[codes < 0]))
        raise ValueError(
            message(
                f"column {column.source!r} can only have the levels of the first rows",
                got=f"{new} as well",
                remedy=DECLARE_ALL,
            )
        )
    return np.asarray(codes[:, None], dtype=np.float64)


def _numbers(column: Column, values: pd.Series) -> NDArray[np.float64]:
    try:
        exact = types.is_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype)
        if not exact and not (types.is_object_dtype(values.dtype) or types.is_string_dtype(values.dtype)):
            raise TypeError  # dates would become nanoseconds
        made = values if exact else exact_numbers(values)
        if types.is_complex_dtype(made.dtype) or not (exact or isinstance(made.dtype, np.dtype)):
            raise TypeError
        numbers = made.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        problem = f"column {column.source!r} needs numbers as in the rows of the fit"
        got = str(values.dtype) if values.dtype != object else "other objects"
        raise ValueError(message(problem, got=got, remedy="convert it")) from None
    if not np.isfinite(numbers).all():
        infinite = int(np.isinf(numbers).sum())
        if infinite:
            raise ValueError(
                message(
                    "covariates need finite numbers",
                    got=f"{infinite} infinity (inf) value(s) in column {column.source!r}",
                    remedy="replace them, or mark them as missing (NaN) and pass missing='pairs' or 'drop'",
                )
            )
        check_large("Y", [column.source], numbers[:, None])
        numbers = np.where(np.isnan(numbers), np.nan, numbers)  # one bit pattern for NaN: folds follow a row's bits
    else:
        check_large("Y", [column.source], numbers[:, None])
    return numbers[:, None]
