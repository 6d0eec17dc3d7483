"""What the aligner is given: rows in memory, rows elsewhere (a Source), or batches that come once.

Everything that asks where data are is here; the rest of the library sees arrays and Sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from covalign._core.data_errors import no_columns, not_two_dimensional, too_few_rows
from covalign._core.linalg import Array
from covalign._core.user_arrays import numbers, plain
from covalign.stream import Source, is_dask, is_source, open_rows
from covalign.stream.memory import frame_dtype
from covalign.stream.source import working_dtype
from covalign.tables import confounders as nuisance
from covalign.tables import groups as grouping
from covalign.tables.confounders import Coding, Tables
from covalign.tables.estimator_input import as_source, open_pair, rows_of
from covalign.tables.join import match_rows
from covalign.tables.table_files import is_path


class Data(NamedTuple):
    """Rows with their covariates and confounders, not yet coded, in the order of the rows."""

    rows: Any  # a table in memory as it is, anything else as a Source
    tables: Tables
    named: bool  # the confounders were columns of Y
    groups: Array | None = None  # numbers of the groups of the rows


class Labels(NamedTuple):
    """Names of rows and columns for messages; ``rows`` are the numbers of the rows, where some were left out."""

    names: Any = None
    index: Any = None
    rows: Any = None
    where: str = "Z"


def labels_for_messages(Z: Any, keep: Any = None, start: int = 0) -> Labels:
    """The labels of a table in memory, of which the rows ``keep`` are used; its first row has the number ``start``."""
    frame = isinstance(Z, pd.DataFrame)
    index = None if not frame else Z.index if keep is None else Z.index[keep]
    return Labels(Z.columns if frame else None, index, None if keep is None else keep + start)


def given(
    Z: Any,
    Y: Any,
    confounders: Any,
    coding: Coding | None = None,
    chunk_rows: int | None = None,
    groups: Any = None,
    *,
    several: bool = True,
) -> Data:
    """Rows and tables side by side, matched by name where both have names; ``coding`` is that of earlier rows.

    ``several`` refuses a single group.
    """
    Z, Y = open_pair(Z, Y, chunk_rows)
    Y, groups = grouping.separated(Y, groups, confounders)
    labels = labels_of(Z, Y, confounders, groups)
    separate = nuisance.separated if coding is None else coding.recall
    rest, confounders = separate(Y, confounders)
    tables = nuisance.tables(labels, match_rows(labels, rest), confounders)
    numbers = None if groups is None else grouping.numbers(groups, len(tables.Y), tables.Y.index, several=several)
    return Data(Z, tables, rest is not Y, numbers)


def labels_of(rows: Any, *tables: Any) -> Any:
    """The row names of a Source as an empty frame, read only where a table has names, too; else the rows."""
    if not is_source(rows) or not any(isinstance(table, pd.DataFrame | pd.Series) for table in tables):
        return rows
    index = rows.index
    return rows if index is None else pd.DataFrame(index=index)


def source_of(Z: Any, chunk_rows: int | None = None, names: Sequence[str] | None = None) -> Source:
    """The rows of Z; of a file with columns only those with these ``names``, if it has them all."""
    if is_path(Z):
        return as_source(rows_of(Z, chunk_rows, names), chunk_rows)  # type: ignore[no-any-return]
    return Z if is_source(Z) else open_rows(Z, chunk_rows=chunk_rows)


def validated(estimator: Any, Z: Any, reset: bool = False, **checks: Any) -> Any:
    """Z as scikit-learn wants it: float32 or float64, dense or CSR, with the columns that the estimator saw first.

    A Source, and what dask holds, are returned as they are if they have these columns.
    """
    if is_dask(Z):
        if Z.ndim != 2:
            raise not_two_dimensional("Z", Z.shape)
        frame_dtype(Z.dtypes, "Z") if hasattr(Z, "columns") else working_dtype("Z", Z.dtype)  # refuse other types
    if is_source(Z) or is_dask(Z):
        names = getattr(Z, "columns", None) if is_dask(Z) else Z.names
        head = np.empty((0, Z.shape[1])) if names is None else pd.DataFrame(columns=list(names))
        validate_data(estimator, head, reset=reset, skip_check_array=True)
        if not is_dask(Z) and Z.shape[0] < checks.get("ensure_min_samples", 1):
            raise too_few_rows(Z.shape[0])
        return Z
    checks["reset"] = reset
    Z = numbers(plain(Z, "Z"), "Z")
    shape = np.shape(Z) if not hasattr(Z, "shape") else Z.shape
    if len(shape) != 2:
        raise not_two_dimensional("Z", shape)
    if shape[1] == 0:
        raise no_columns("Z", shape[0])
    if shape[0] < checks.get("ensure_min_samples", 1):
        raise too_few_rows(shape[0], checks.get("ensure_min_samples", 1))
    if isinstance(Z, pd.DataFrame) and len({isinstance(name, str) for name in Z.columns}) > 1:
        Z = Z.set_axis([str(name) for name in Z.columns], axis=1)  # scikit-learn wants text or no text
    return validate_data(estimator, Z, accept_sparse="csr", dtype=[np.float64, np.float32], **checks)
