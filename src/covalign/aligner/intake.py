"""What the aligner is given: rows in memory, rows elsewhere (a Source), or batches that come once.

Everything that asks where data are is here; the rest of the library sees arrays and Sources.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core import validation as errors
from covalign._core.linalg import dense
from covalign.moments import confounders as nuisance
from covalign.moments.confounders import Coding, Tables
from covalign.stream import Source, is_elsewhere, is_source, open_rows
from covalign.stream.h5ad import obs_of
from covalign.stream.parquet import columns_of, parquet_files
from covalign.tables import covariates


class Given(NamedTuple):
    """Rows with their covariates and confounders, as the user keeps them, in the order of the rows."""

    rows: Any  # as they came if they are in memory, else a Source
    labels: Any  # the rows, or an empty frame with their index: what tables are matched with
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


def given(Z: Any, Y: Any, confounders: Any, coding: Coding | None = None, chunk_rows: int | None = None) -> Given:
    """Rows and tables side by side, matched by index where both have one; ``coding`` if there were rows before."""
    labels = Z
    if is_elsewhere(Z):
        loaded = isinstance(Y, str | os.PathLike)
        Z, Y = opened(Z, Y, chunk_rows)
        # A file without row names is taken by position.
        unnamed = loaded and isinstance(getattr(Y, "index", None), pd.RangeIndex)
        labels = Z if unnamed else labels_of(Z, Y, confounders)
    separate = nuisance.separated if coding is None else coding.recall
    rest, confounders = separate(Y, confounders)
    tables = nuisance.tables(labels, covariates.match_rows(labels, rest), confounders)
    return Given(Z, labels, tables, rest is not Y)


def labels_of(source: Source, *tables: Any) -> Any:
    """An empty frame with the row names of a source, read only where a table has such names, too; else the source."""
    if not any(isinstance(table, pd.DataFrame | pd.Series) for table in tables):
        return source
    index = source.index
    return source if index is None else pd.DataFrame(index=index)


def opened(Z: Any, Y: Any, chunk_rows: int | None = None) -> tuple[Source, Any]:
    """The rows as a Source, and Y in memory; Y may be names of columns that lie beside the rows."""
    beside = _columns_beside(Z) if _may_be_names(Y) else None
    if beside is None:
        return source_of(Z, chunk_rows), in_memory(Y)
    names = [Y] if isinstance(Y, str) else [str(name) for name in Y]
    absent = [name for name in names if name not in beside]
    if absent and len(names) > len(beside):
        source = source_of(Z, chunk_rows)
        if len(names) == source.shape[0]:
            return source, Y  # a label for every row, not names
    if absent:
        raise errors.columns_missing(absent, beside)
    if _is_parquet(Z):
        rest = [name for name in beside if name not in names]
        return open_rows(Z, rest, chunk_rows=chunk_rows), _read_parquet(Path(Z), names)
    return source_of(Z, chunk_rows), obs_of(Z)[names]


def _may_be_names(Y: Any) -> bool:
    """Text, or a list of texts, that is no path to a table."""
    if isinstance(Y, str):
        return not os.path.exists(Y)
    return isinstance(Y, list | tuple) and len(Y) > 0 and all(isinstance(name, str) for name in Y)


def _columns_beside(Z: Any) -> list[str] | None:
    """Names of the columns that are stored with the rows of Z, if any."""
    if _is_parquet(Z):
        return columns_of(Path(Z))
    if hasattr(Z, "obs_names") or (isinstance(Z, str | os.PathLike) and Path(Z).suffix.lower() == ".h5ad"):
        return [str(name) for name in obs_of(Z).columns]
    return None


def source_of(Z: Any, chunk_rows: int | None = None, names: Sequence[str] | None = None) -> Source:
    """The rows of Z; of parquet files only the columns with these ``names``, if they have them all."""
    if is_source(Z):
        source: Source = Z
        return source
    if names is not None and _is_parquet(Z) and {*names} <= {*columns_of(Path(Z))}:
        return open_rows(Z, list(names), chunk_rows=chunk_rows)
    return open_rows(Z, chunk_rows=chunk_rows)


def _is_parquet(path: Any) -> bool:
    if not isinstance(path, str | os.PathLike):
        return False
    path = Path(path)
    return path.suffix.lower() in (".parquet", ".pq") or (path.is_dir() and any(path.glob("*.parquet")))


def _read_parquet(path: Path, names: Sequence[str] | None = None) -> pd.DataFrame:
    columns = None if names is None else list(names)
    return pd.concat([pd.read_parquet(file, columns=columns) for file in parquet_files(path)])


def in_memory(Y: Any) -> Any:
    """Covariates, loaded where they are in a file: a table with names where it has any."""
    if not is_elsewhere(Y):
        return Y
    if isinstance(Y, str | os.PathLike) and os.path.exists(Y):
        if Path(Y).suffix.lower() in (".csv", ".tsv"):
            return pd.read_csv(Y, sep="," if Path(Y).suffix.lower() == ".csv" else "\t")
        if _is_parquet(Y):
            return _read_parquet(Path(Y))
    source = Y if is_source(Y) else open_rows(Y, name="Y", single=True)
    values = np.concatenate([dense(chunk) for chunk in source.chunks()])
    return values if source.names is None else pd.DataFrame(values, source.index, list(source.names))
