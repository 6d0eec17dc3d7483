"""What the aligner is given: rows in memory, rows elsewhere (a Source), or batches that come once.

Everything that asks where data are is here; the rest of the library sees arrays and Sources.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.linalg import Array, dense
from covalign.stream import Checked, Source, collected, is_elsewhere, is_source, open_rows, open_sink, write_rows
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


def is_stream(Z: Any) -> bool:
    """Whether this, given without Y, is an iterable of (Z, Y) batches rather than rows that lack their Y."""
    if is_elsewhere(Z) or sparse.issparse(Z) or hasattr(Z, "shape") or hasattr(Z, "__array__"):
        return False
    if isinstance(Z, list | tuple):  # of pairs of tables, not of rows
        return len(Z) > 0 and isinstance(Z[0], list | tuple) and len(Z[0]) == 2 and len(np.shape(Z[0][0])) == 2
    return isinstance(Z, Iterable) and not isinstance(Z, dict | bytes)


def identity(Z: Any, source: Source) -> str:
    """A text that is another one if the rows are others: file, size and time of writing; what is in memory is hashed.

    Where neither can be had, a text that never occurs again.
    """
    about: list[Any] = [source.where, source.shape, str(source.dtype), source.names]
    origin = Z.filename if getattr(Z, "isbacked", False) else getattr(source, "origin", None)
    if origin is not None:
        path = Path(origin).resolve()
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        return repr([*about, getattr(source, "key", None), getattr(source, "layout", None), stats])
    if not source.in_memory:
        return uuid.uuid4().hex
    digest = hashlib.blake2b(repr(about).encode(), digest_size=16)
    for chunk in source.chunks():
        parts = (chunk.indptr, chunk.indices, chunk.data) if sparse.issparse(chunk) else (chunk,)
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


class Turning(NamedTuple):
    """``turn(z, c, dtype)`` of the rows of a source and of C beside them, computed a chunk at a time."""

    source: Source
    C: Array
    turn: Callable[[Any, Any, Any], Any]
    columns: int

    @property
    def dtype(self) -> Any:
        """That of the result."""
        return np.float32 if self.source.dtype == np.float32 else np.float64

    def _of_chunk(self, chunk: Any) -> Any:
        k = self.source.shape[1]
        z = chunk[:, :k] if self.C.shape[1] else chunk
        return self.turn(z, dense(chunk[:, k:]), self.dtype)

    def collected(self) -> Any:
        """The result as an array."""
        return collected(nuisance.beside(Checked(self.source), self.C), self._of_chunk, self.columns, self.dtype)

    def written(self, path: Any, names: Any, key: str, overwrite: bool) -> Any:
        """The path, once the result is there."""
        shape = (self.source.shape[0], self.columns)
        with open_sink(path, shape, self.dtype, names, key=key, overwrite=overwrite) as sink:
            write_rows(nuisance.beside(Checked(self.source), self.C), self._of_chunk, sink)
        return path


def fingerprint(text: str, *arrays: Any) -> str:
    """A hash of a text and of numbers."""
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for array in arrays:
        digest.update(repr(np.shape(array)).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
