"""What the aligner is given: rows in memory, rows elsewhere (a Source), or batches that come once.

Everything that asks where data are is here; the rest of the library sees arrays and Sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from covalign.stream import Source, is_source, open_rows
from covalign.tables import confounders as nuisance
from covalign.tables.confounders import Coding, Tables
from covalign.tables.join import match_rows
from covalign.tables.representations import as_source, open_pair, rows_of
from covalign.tables.table_files import is_path


class Data(NamedTuple):
    """Rows with their covariates and confounders, not yet coded, in the order of the rows."""

    rows: Any  # a table in memory as it is, anything else as a Source
    tables: Tables
    named: bool  # the confounders were columns of Y


class Whereabouts(NamedTuple):
    """How to call rows and columns of an array in a message; ``rows`` are their numbers, where some were left out."""

    names: Any = None
    index: Any = None
    rows: Any = None
    where: str = "Z"


def whereabouts(Z: Any, keep: Any = None, start: int = 0) -> Whereabouts:
    """Those of a table in memory, of which the rows ``keep`` are used; its first row is the ``start``-th of all."""
    frame = isinstance(Z, pd.DataFrame)
    index = None if not frame else Z.index if keep is None else Z.index[keep]
    return Whereabouts(Z.columns if frame else None, index, None if keep is None else keep + start)


def given(Z: Any, Y: Any, confounders: Any, coding: Coding | None = None, chunk_rows: int | None = None) -> Data:
    """Rows and tables side by side, matched by name where both have names; ``coding`` is that of earlier rows."""
    Z, Y = open_pair(Z, Y, chunk_rows)
    labels = labels_of(Z, Y, confounders)
    separate = nuisance.separated if coding is None else coding.recall
    rest, confounders = separate(Y, confounders)
    tables = nuisance.tables(labels, match_rows(labels, rest), confounders)
    return Data(Z, tables, rest is not Y)


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
