"""Moments of rows that dask holds, computed where they lie; and tables in dask: matched, coded, transformed lazily."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.data_errors import columns_differ, lengths_differ, no_rows, not_two_dimensional
from covalign._core.extras import optional
from covalign._core.linalg import Array, affine
from covalign._core.messages import message
from covalign._core.threads import limited
from covalign.moments.fold_accumulator import FoldSums, merge_folds
from covalign.moments.gap_accumulator import AnyAccumulator
from covalign.moments.incomplete import Blocks, Rows, merged
from covalign.moments.numeric_rows import as_rows, covariate_names
from covalign.stream import is_dask
from covalign.stream.dask_reduction import checked_block, compute, of_dask
from covalign.stream.dask_rows import partitions_kept
from covalign.stream.finite import refuse_not_finite
from covalign.stream.memory import frame_dtype, frame_values
from covalign.tables import covariates, groups
from covalign.tables.confounders import beside as put_beside
from covalign.tables.confounders import check_rows
from covalign.tables.covariates import Encoding
from covalign.tables.join import match_rows


class ChunkFoldSums(FoldSums):
    """``FoldSums`` of chunks, which are checked here; ``drop`` leaves out rows in which Y has gaps."""

    def __init__(
        self,
        folds: int,
        blocks: Blocks | None,
        names: Sequence[str],
        n_confounders: int,
        drop: bool = False,
        grouped: bool = False,
    ) -> None:
        expected = min(folds, 64) if grouped else folds
        super().__init__(folds, partial(AnyAccumulator, blocks=blocks), names, n_confounders, grouped, expected)
        self._drop = drop

    def add_chunk(self, number: int, start: int | None, Z: Any, Y: Any) -> None:
        """Add a chunk."""
        Z, Y = as_rows(Z, Y)
        refuse_not_finite(Z, start or 0, what="Z" if start is not None else f"Z (partition {number})")
        if self._drop and Y.dtype.kind == "f":
            complete = ~np.isnan(Y).any(axis=1)
            Z, Y = (Z, Y) if complete.all() else (Z[complete], Y[complete])
        self.add(start or 0, Z, Y)


def fold_moments(
    Z: Any,
    Y: Any,
    folds: int,
    blocks: Blocks | None = None,
    n_confounders: int = 0,
    *,
    drop: bool = False,
    grouped: bool = False,
    client: Any = None,
) -> list[Rows | None]:
    """``gap_accumulator.fold_moments`` of a Z in dask (array or DataFrame): equal to it but for rounding.

    Y is in dask with the partitions of Z, or in memory (a DataFrame is matched by index if Z is one, too). ``drop``
    leaves out rows in which Y has gaps.
    """
    names = covariate_names(Y)[: -1 if grouped else None]
    new = partial(ChunkFoldSums, folds, blocks, names, n_confounders, drop, grouped)
    found: list[Rows | None] = of_dask(*_in_step(Z, Y), new, partial(merge_folds, merge=merged), client)
    if all(part is None for part in found):
        raise no_rows()
    return found


def side_by_side(tables: Sequence[Any], lengths: Sequence[int]) -> Any:
    """Arrays and DataFrames in dask as one array, in chunks of these numbers of rows, all columns in one."""
    da = optional("dask.array", "dask")
    arrays = []
    for table in tables:
        counted = row_counts(table)
        array = _with_lengths(_one_column_chunk(as_array(table)), counted)
        arrays.append(array if counted == tuple(lengths) else array.rechunk({0: tuple(lengths)}))
    return arrays[0] if len(arrays) == 1 else da.concatenate(arrays, axis=1).rechunk({1: -1})


def by_block(work: Callable[..., Any], Z: Any, table: Array, width: int) -> Any:
    """``work(z, t)`` of every chunk z of Z and its rows t of a table in memory: ``width`` numbers a row, lazily."""
    da = optional("dask.array", "dask")
    options = {"dtype": np.float64, "meta": np.empty((0, 0)), "chunks": (Z.chunks[0], (width,))}
    return da.map_blocks(partial(_by_block, work), Z, in_chunks(table, Z.chunks[0]), **options)


def lazy_transform(Z: Any, mean: Array, T: Array) -> Any:
    """(Z - mean) T' as a dask array, computed when asked for, in the chunks of rows of Z and its precision."""
    da = optional("dask.array", "dask")
    Z = _one_column_chunk(as_array(Z))
    if Z.shape[1] != len(mean):
        raise columns_differ("Z", len(mean), Z.shape[1])
    dtype = Z.dtype if Z.dtype == np.float32 else np.dtype(np.float64)
    options = {"dtype": dtype, "meta": np.empty((0, 0), dtype), "chunks": (Z.chunks[0], (len(T),))}
    return da.map_blocks(_turn, Z, np.asarray(mean), np.ascontiguousarray(T.T), out=dtype, **options)


def beside(Z: Any, C: Array) -> Any:
    """[Z C] as a dask array, C (n x q) in memory."""
    da = optional("dask.array", "dask")
    if C.shape[1] == 0:
        return Z
    lengths = row_counts(Z)
    Z = _one_column_chunk(as_array(Z))
    check_rows(len(C), sum(lengths))
    table, dtype = in_chunks(C, lengths), np.result_type(Z.dtype, C.dtype)
    options = {"dtype": dtype, "meta": np.empty((0, 0), dtype), "chunks": (lengths, (Z.shape[1] + C.shape[1],))}
    return da.map_blocks(_put_beside, _with_lengths(Z, lengths), table, **options)


def learn(Y: Any, *, drop_first: bool = True) -> Encoding:
    """How the covariates of a dask DataFrame or array are coded, from their types alone: no row is read."""
    Y = Y.to_frame() if _is_series(Y) else Y
    if not hasattr(Y, "columns"):
        return Encoding.learn(covariates.as_frame(np.empty((0, Y.shape[1] if Y.ndim == 2 else 1))))
    meta = covariates.as_frame(Y._meta)
    for name, dtype in meta.dtypes.items():
        text = pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
        known = not isinstance(dtype, pd.CategoricalDtype) or "__UNKNOWN_CATEGORIES__" not in dtype.categories
        if not known or (text and not isinstance(dtype, pd.CategoricalDtype)):
            got = f"text or unknown categories in column {str(name)!r}"
            remedy = "use Y.categorize() first, or pass Y from memory"
            raise ValueError(message("A covariate in dask needs a type with known levels", got=got, remedy=remedy))
    return Encoding.learn(meta, drop_first=drop_first, declared=True)


def encoded(Y: Any, encoding: Encoding, group: str | None = None) -> Any:
    """The numeric columns of a Y in dask, lazily, and the numbers of groups, if these are a column of Y."""
    Y = Y.to_frame() if _is_series(Y) else Y
    if not hasattr(Y, "columns"):
        return Y
    names = [*encoding.names, *([] if group is None else [groups.COLUMN])]
    meta = pd.DataFrame(np.empty((0, len(names))), columns=names)
    return Y.map_partitions(_encode, encoding, group, meta=meta)


def as_array(Z: Any) -> Any:
    """A dask DataFrame as an array of its numbers (a column that is none is named); an array as it is."""
    if not hasattr(Z, "columns"):
        return Z
    dtype = frame_dtype(Z.dtypes, "Z")
    with partitions_kept():
        return Z.map_partitions(frame_values, dtype, meta=np.empty((0, len(Z.columns)), dtype))


def row_counts(Z: Any) -> tuple[int, ...]:
    """Rows of every chunk; where dask does not know them they are counted, which is a pass of its own."""
    chunks = getattr(Z, "chunks", ((np.nan,),))[0]
    if np.isnan(chunks).any():
        parts = Z.to_delayed().ravel() if hasattr(Z, "chunks") else _index_parts(Z)
        chunks = compute(*[optional("dask", "dask").delayed(_length)(part) for part in parts])
    return tuple(map(int, chunks))


def here(table: Any) -> Any:
    """What dask holds, in memory; anything else as it is."""
    return compute(table)[0] if is_dask(table) else table


# -- chunks side by side ----------------------------------------------------------------------------------------------


def _index_parts(frame: Any) -> Any:
    """The index of every partition, to be computed; of a file no other column is read."""
    with partitions_kept():
        return frame.index.to_delayed()


def _in_step(Z: Any, Y: Any) -> tuple[Any, Any]:
    """Z and Y as dask arrays in the same chunks of rows, all columns in one."""
    if not is_dask(Y):
        Y = match_rows(Z, Y)
        lengths = row_counts(Z)
        if sum(lengths) != len(Y):
            raise lengths_differ(sum(lengths), len(Y))
        Z = _one_column_chunk(as_array(Z))
        return _with_lengths(Z, lengths), in_chunks(as_rows(np.empty((len(Y), 0)), Y)[1], lengths)
    Z, Y = _one_column_chunk(as_array(Z)), _one_column_chunk(as_array(Y.to_frame() if _is_series(Y) else Y))
    known = not (np.isnan(Z.shape[0]) or np.isnan(Y.shape[0]))
    if known and Z.shape[0] != Y.shape[0]:
        raise lengths_differ(Z.shape[0], Y.shape[0])
    if known and Z.chunks[0] != Y.chunks[0]:
        Y = Y.rechunk({0: Z.chunks[0]})
    if len(Z.chunks[0]) != len(Y.chunks[0]):
        got = f"{len(Z.chunks[0])} and {len(Y.chunks[0])}"
        remedy = "repartition one like the other (Y.repartition(divisions=Z.divisions)), or pass Y from memory"
        raise ValueError(message("Z and Y in dask need the same partitions", got=got, remedy=remedy))
    return Z, Y


def _one_column_chunk(M: Any) -> Any:
    if M.ndim == 1:
        return M
    if M.ndim != 2:
        raise not_two_dimensional("Z", M.shape)
    return M if len(M.chunks[1]) == 1 else M.rechunk({1: -1})


def _is_series(Y: Any) -> bool:
    return hasattr(Y, "to_frame") and Y.ndim == 1


def in_chunks(values: Any, lengths: Sequence[int]) -> Any:
    """A table in memory as a dask array, cut into chunks of these lengths."""
    da = optional("dask.array", "dask")
    return da.from_array(np.ascontiguousarray(values), chunks=(tuple(lengths), values.shape[1]), name=False)


def _with_lengths(Z: Any, lengths: Sequence[int]) -> Any:
    """Z, told how many rows its chunks have."""
    da = optional("dask.array", "dask")
    return da.Array(Z.dask, Z.name, (tuple(lengths), Z.chunks[1]), meta=Z._meta)


def _by_block(work: Callable[..., Any], z: Any, t: Array) -> Any:
    with limited():
        return work(z, t)


def _turn(block: Any, mean: Array, matrix: Array, out: Any) -> Any:
    with limited():
        return affine(checked_block(block, len(mean)), mean, matrix, 0.0, dtype=out)


def _put_beside(z: Any, c: Array) -> Any:
    return put_beside(z.tocsr() if sparse.issparse(z) else z, c)


def _encode(frame: pd.DataFrame, encoding: Encoding, group: str | None) -> pd.DataFrame:
    if group is None:
        return encoding.apply(covariates.as_frame(frame))
    numbers = groups.numbers(frame[group], len(frame), several=False)
    return encoding.apply(covariates.as_frame(frame.drop(columns=[group]))).assign(**{groups.COLUMN: numbers})


def _length(part: Any) -> int:
    return int(part.shape[0])
