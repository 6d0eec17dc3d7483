"""Groups of rows that belong together: the cells of a donor, the samples of a patient, a time course.

Rows of one group are alike for reasons that no covariate tells, so a group is either fitted or left out, as a whole.
Labels become numbers, which decide the bucket of a row as its content does otherwise (``stream.folds``).
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.linalg import Array, dense
from covalign._core.messages import listed, message, shown
from covalign._core.user_arrays import in_pandas, plain
from covalign.exceptions import NotHeldOutWarning, UngroupedRowsWarning
from covalign.stream.folds import fold_of_groups
from covalign.tables.join import in_order

COLUMN = "group number"  # of encoded covariates, the last one
FEW = 5  # groups: fewer say little
OWNERS = re.compile(r"(?<![a-z])(?:donor|patient|subject|individual|participant|animal|mouse)(?![a-z])")
LIKELY = re.compile(r"(^|[^a-z])(donor|patient|subject|individual|participant|animal|mouse|sample|batch)s?([^a-z]|$)")


def separated(Y: Any, groups: Any, confounders: Any = None) -> tuple[Any, Any]:
    """Y and the labels of the groups. These may be the name of a column of Y, which then is no covariate.

    The column may be a confounder as well, in Y or in a table of its own.
    """
    if not isinstance(groups, str):
        return Y, groups
    if isinstance(confounders, pd.DataFrame) and groups in map(str, confounders.columns):
        return Y, confounders.set_axis(list(map(str, confounders.columns)), axis=1)[groups]
    Y = Y.to_pandas() if hasattr(Y, "to_pandas") else Y
    columns = [str(column) for column in getattr(Y, "columns", [])]
    named = [confounders] if isinstance(confounders, str) else confounders
    if isinstance(named, list | tuple) and groups in columns and groups in named:
        return Y, Y[Y.columns[columns.index(groups)]]
    if groups not in columns:
        need = f"groups given by name need the column {listed([groups])}"
        remedy = "add it to Y, or pass one label for every row"
        got = f"{listed(columns)} in Y" if columns else "a Y without column names"
        raise ValueError(message(need, got=got, remedy=remedy, wrong=[groups], known=columns))
    if len(columns) == 1:
        need = "at least one covariate is needed besides the groups"
        raise ValueError(message(need, got=f"only {groups!r}", remedy="leave a column of interest in Y"))
    place = columns.index(groups)
    labels = Y[Y.columns[place]]
    return Y.drop(columns=[Y.columns[place]]), labels


def numbers(groups: Any, n: int | None, index: pd.Index | None = None, *, several: bool = True) -> Array:
    """A number for each of n rows, equal within groups; labels with names are matched by ``index``.

    Labels are compared as text, and 1.0 is written as 1: the labels 1, 1.0 and "1" are one group, also in different
    batches. ``several`` refuses a single group, of which nothing can be left out.
    """
    labels = _labels(groups, n, index)
    try:
        codes, levels = pd.factorize(labels)
    except TypeError:
        need, got = "groups need labels that are text or numbers", f"a {type(labels.iloc[0]).__name__}"
        raise ValueError(message(need, got=got, remedy="pass the name of the group of every row")) from None
    texts = [_text(level) for level in levels]
    if several and len(set(texts)) == 1:
        need, got = "leaving groups out needs at least two groups", f"only {texts[0]!r}"
        raise ValueError(message(need, got=got, remedy="pass groups=None if rows are independent"))
    hashed = pd.util.hash_array(np.array(texts, dtype=object), categorize=False)
    # 52 bits, which a float64 holds exactly.
    return np.asarray((hashed >> np.uint64(12)).astype(np.float64)[codes])


def label_texts(groups: Any, n: int, index: pd.Index | None = None) -> list[str]:
    """The label of each of n rows as text, matched and written as in ``numbers``."""
    return [_text(label) for label in _labels(groups, n, index)]


def _labels(groups: Any, n: int | None, index: pd.Index | None) -> pd.Series:
    """A label for each of n rows; labels with names are matched by ``index``."""
    labels = _as_series(groups)
    named = isinstance(groups, pd.Series | pd.DataFrame)
    if index is not None and named and not labels.index.equals(index) and labels.index.isin(index).any():
        frame = labels.to_frame("groups")
        labels = in_order(frame, index, extra="leave out", repeated=True, called=("groups", "the data"))["groups"]
    if n is not None and len(labels) != n:
        need = f"groups need one label for each of the {n} rows"
        raise ValueError(message(need, got=len(labels), remedy="pass the labels of these rows"))
    if labels.isna().any():
        need, got = "every row needs a group", f"{int(labels.isna().sum())} rows without a label"
        remedy = "leave these rows out, or give each of them a label of its own"
        raise ValueError(message(need, got=got, remedy=remedy))
    return labels


def _text(label: Any) -> str:
    whole = isinstance(label, float | np.floating) and float(label).is_integer()
    return str(int(label)) if whole else str(label)


def _as_series(groups: Any) -> pd.Series:
    if isinstance(groups, pd.DataFrame):
        groups = groups.iloc[:, 0] if groups.shape[1] == 1 else groups
    if isinstance(groups, pd.Series):
        return plain(groups, "groups")  # type: ignore[no-any-return]
    if np.isscalar(groups):
        remedy = "pass one column, or the name of a column of Y"
        raise ValueError(message("groups need one label for every row", got=shown(groups), remedy=remedy))
    if isinstance(groups, list | tuple | range):  # as objects, or numpy would write a gap among text as "nan"
        values = np.asarray(groups, dtype=object)
    else:
        groups = groups if isinstance(groups, pd.Index) else in_pandas(plain(groups, "groups"), "groups")
        values = groups.to_numpy() if hasattr(groups, "to_numpy") else np.asarray(dense(groups))
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1:
        need, got = "groups need one label for every row", f"a table of shape {values.shape}"
        raise ValueError(message(need, got=got, remedy="pass one column"))
    return pd.Series(values)


def likely_column(Y: pd.DataFrame, *others: Any) -> tuple[str, str] | None:
    """(column, covariate) if a column looks like the name of groups, and a covariate in Y is constant within them.

    The column is in Y or in another table of the same rows. It is called donor, patient, subject, sample, batch or the
    like, and its values repeat.
    """
    for table in (Y, *(other for other in others if isinstance(other, pd.DataFrame))):
        for name in table.columns:
            labels = table[name]
            likely = LIKELY.search(str(name).lower()) and isinstance(labels, pd.Series) and len(labels) == len(Y)
            if not likely or labels.isna().any():
                continue
            codes, levels = pd.factorize(labels)
            if not 1 < len(levels) <= len(labels) / 2:
                continue
            for covariate in Y.columns:
                values = pd.factorize(Y[covariate])[0] if str(covariate) != str(name) else np.zeros(len(Y), dtype=int)
                pairs = len(np.unique(codes * (values.max() + 2) + values))
                if pairs == len(levels) and len(np.unique(values)) > 1:
                    return str(name), str(covariate)
    return None


def owners_in(Y: pd.DataFrame) -> str | None:
    """The first column called donor, patient or the like that names several rows each time; None if there is none."""
    for name in Y.columns:
        labels = Y[name]
        if OWNERS.search(str(name).lower()) and labels.notna().all() and 2 < labels.nunique() <= len(labels) / 2:
            return str(name)
    return None


def buckets(numbers: Array, most: int) -> NDArray[np.int64]:
    """The bucket of every row, for rows in memory: its group, or one of ``most`` parts if there are more groups."""
    levels, place = np.unique(numbers, return_inverse=True)
    return np.asarray(place, dtype=np.int64) if len(levels) <= most else fold_of_groups(numbers, most)


def count(groups: Any) -> int:
    """How many groups there are; labels are compared as text."""
    return len(np.unique(numbers(groups, None, several=False)))


def warn(n_groups: int | None, likely: tuple[str, str] | None, stacklevel: int = 3) -> None:
    """Warn where there are few groups, or none although a column is ``likely`` to name them."""
    if n_groups is None and likely is not None:
        warnings.warn(advice(*likely), UngroupedRowsWarning, stacklevel=stacklevel)
    if n_groups is not None and n_groups < FEW:
        text = (
            f"Held-out numbers are based on {n_groups} groups, so their intervals are very wide, and held-out coupling "
            "is uncertain. More groups are needed to know more."
        )
        warnings.warn(text, NotHeldOutWarning, stacklevel=stacklevel)


def advice(column: str, covariate: str) -> str:
    """The warning about rows that seem to belong together."""
    return (
        f"{covariate!r} is constant within every value of {column!r}, so rows of one {column} lie on both sides of "
        f"every split, and held-out numbers look better than they are. Pass groups={column!r} to leave groups out."
    )
