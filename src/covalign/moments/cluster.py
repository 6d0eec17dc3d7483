"""Moments of rows that dask holds: every chunk is summed where it lies, and only sums travel.

A task takes a run of neighbouring chunks, one at a time, into the sums of every fold; the results are merged four at a
time, in an order that depends on nothing but the chunks. Which threads, processes or machines do it, when, and whether
some of them are lost on the way (dask then runs their tasks again) leaves no trace. Folds follow from the content of a
row, so cross-validation and the choice of a shrinkage need nothing but these sums.

The scheduler is the one in use (``dask.config``, or the ``distributed.Client`` made last) unless a client is passed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from covalign._core import validation as errors
from covalign._core.extras import optional
from covalign._core.linalg import Array, affine, limited
from covalign.moments.incomplete import Blocks, IncompleteAccumulator, Rows, merged
from covalign.moments.moments import Accumulator, Moments, as_rows, covariate_names, merge_groups
from covalign.stream.dask_rows import partitions_kept
from covalign.stream.finite import refuse_not_finite
from covalign.stream.memory import frame_dtype, frame_values
from covalign.stream.passes import Dealer
from covalign.tables import covariates
from covalign.tables.confounders import beside as put_beside
from covalign.tables.confounders import check_rows
from covalign.tables.covariates import Encoding
from covalign.tables.join import match_rows

Chunks: TypeAlias = Iterator[tuple[int, int | None, Any, NDArray[Any]]]  # number, first row, Z, Y

FAN_IN = 4  # few, so that most sums travel while others are still made

# A task's sums cost as much as some hundred rows a fold whatever it was given, so it should have many; but small data
# should still be enough tasks to keep several workers busy.
LEAST_BYTES, MOST_BYTES, TASKS = 2**26, 2**28, 32


def is_dask(data: Any) -> bool:
    """Whether this is a dask array, DataFrame or Series (or built on one), asked without importing dask."""
    return any(kind.__module__.partition(".")[0] == "dask" for kind in type(data).__mro__)


def fold_moments(
    Z: Any, Y: Any, folds: int, blocks: Blocks | None = None, q: int = 0, *, drop: bool = False, client: Any = None
) -> list[Rows | None]:
    """``incomplete.fold_moments`` of a Z in dask (array or DataFrame): equal to it but for rounding.

    Y is in dask with the partitions of Z, or in memory (a DataFrame is matched by index where Z is one, too). The last
    q columns of Z are confounders. ``drop`` leaves out rows in which Y has gaps.
    """
    names = covariate_names(Y)
    Z, Y = _in_step(Z, Y)
    found = reduce(Z, Y, partial(_sums, folds=folds, blocks=blocks, q=q, names=names, drop=drop), _merge, client)
    if all(part is None for part in found):
        raise errors.no_rows()
    return list(found)


def reduce(Z: Any, Y: Any, sums: Callable[[Chunks], Any], merge: Callable[[Sequence[Any]], Any], client: Any) -> Any:
    """``sums`` of every run of neighbouring chunks, where these lie; then ``merge`` of four of them at a time.

    Z and Y are dask arrays in the same chunks of rows, all columns in one.
    """
    dask = optional("dask", "dask")
    tasks = [dask.delayed(_task)(run, sums) for run in _runs(Z, Y)]
    while len(tasks) > 1:
        tasks = [dask.delayed(_merge_task)(tasks[i : i + FAN_IN], merge) for i in range(0, len(tasks), FAN_IN)]
    (found,) = compute(tasks[0], client=client)
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
        raise errors.columns_differ("Z", len(mean), Z.shape[1])
    dtype = Z.dtype if Z.dtype == np.float32 else np.dtype(np.float64)
    options = {"dtype": dtype, "meta": np.empty((0, 0), dtype), "chunks": (Z.chunks[0], (len(T),))}
    return da.map_blocks(_turn, Z, np.asarray(mean), np.ascontiguousarray(T.T), out=dtype, **options)


def beside(Z: Any, C: Array) -> Any:
    """[Z C] as a dask array, C (n x q) in memory; its last q columns can ride along in ``fold_moments``."""
    da = optional("dask.array", "dask")
    if C.shape[1] == 0:
        return Z
    lengths = row_counts(Z)
    Z = _one_column_chunk(as_array(Z))
    check_rows(len(C), sum(lengths))
    table, dtype = in_chunks(C, lengths), np.result_type(Z.dtype, C.dtype)
    options = {"dtype": dtype, "meta": np.empty((0, 0), dtype), "chunks": (lengths, (Z.shape[1] + C.shape[1],))}
    return da.map_blocks(_put_beside, _with_lengths(Z, lengths), table, **options)


def learn(Y: Any, *, drop_first: bool = False) -> Encoding:
    """How the covariates of a dask DataFrame or array are coded, from their types alone: no row is read."""
    Y = Y.to_frame() if _is_series(Y) else Y
    if not hasattr(Y, "columns"):
        return Encoding.learn(covariates.as_frame(np.empty((0, Y.shape[1] if Y.ndim == 2 else 1))))
    meta = covariates.as_frame(Y._meta)
    for name, dtype in meta.dtypes.items():
        text = pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
        known = not isinstance(dtype, pd.CategoricalDtype) or "__UNKNOWN_CATEGORIES__" not in dtype.categories
        if not known or (text and not isinstance(dtype, pd.CategoricalDtype)):
            raise errors.levels_unknown(str(name))
    return Encoding.learn(meta, drop_first=drop_first, declared=True)


def encoded(Y: Any, encoding: Encoding) -> Any:
    """The numeric columns of a Y in dask, lazily."""
    Y = Y.to_frame() if _is_series(Y) else Y
    if not hasattr(Y, "columns"):
        return Y
    meta = pd.DataFrame(np.empty((0, len(encoding.names))), columns=encoding.names)
    return Y.map_partitions(_encode, encoding, meta=meta)


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


def compute(*lazy: Any, client: Any = None) -> Any:
    """Their values, from the client given or else the scheduler in use."""
    dask = optional("dask", "dask")
    with warnings.catch_warnings():
        # Covariates in memory are sent with the tasks: what was scattered instead would be lost with its worker.
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        return dask.compute(*lazy, **({} if client is None else {"scheduler": client}))


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
            raise errors.lengths_differ(sum(lengths), len(Y))
        Z = _one_column_chunk(as_array(Z))
        return _with_lengths(Z, lengths), in_chunks(as_rows(np.empty((len(Y), 0)), Y)[1], lengths)
    Z, Y = _one_column_chunk(as_array(Z)), _one_column_chunk(as_array(Y.to_frame() if _is_series(Y) else Y))
    known = not (np.isnan(Z.shape[0]) or np.isnan(Y.shape[0]))
    if known and Z.shape[0] != Y.shape[0]:
        raise errors.lengths_differ(Z.shape[0], Y.shape[0])
    if known and Z.chunks[0] != Y.chunks[0]:
        Y = Y.rechunk({0: Z.chunks[0]})
    if len(Z.chunks[0]) != len(Y.chunks[0]):
        raise errors.partitions_differ(len(Z.chunks[0]), len(Y.chunks[0]))
    return Z, Y


def _one_column_chunk(M: Any) -> Any:
    if M.ndim == 1:
        return M
    if M.ndim != 2:
        raise errors.not_two_dimensional("Z", M.shape)
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


class _Run:
    """Neighbouring chunks (Z, Y), which are computed where they are summed: graphs of tasks of their own, and keys.

    dask does not look into it, so to the scheduler a run is one task, however many chunks it has.
    """

    def __init__(self, first: int, start: int | None, graphs: Sequence[Any], keys: Sequence[Any]) -> None:
        self.first, self.start, self.graphs, self.keys = first, start, list(graphs), list(keys)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        get = optional("dask.core", "dask").get  # a scheduler, even the synchronous one, would take 1 ms a chunk
        for graph, keys in zip(self.graphs, self.keys, strict=True):
            yield tuple(get(graph, list(keys)))


def _runs(Z: Any, Y: Any) -> list[Any]:
    """What the tasks are to sum: runs of chunks, each (number of the first chunk, its first row or None, chunks)."""
    dask = optional("dask", "dask")
    distributed = sys.modules.get("distributed")
    held = distributed is not None and bool(distributed.futures_of([Z, Y]))  # what a cluster has computed already
    if not held:  # which would lose sight of it
        Z, Y = dask.optimize(Z, Y)
    keys = [tuple(_flat(pair)) for pair in zip(Z.__dask_keys__(), Y.__dask_keys__(), strict=True)]
    ends = np.cumsum(Z.chunks[0])
    starts = [None if np.isnan(end) else int(end - size) for end, size in zip(ends, Z.chunks[0], strict=True)]
    bounds = _cut(Z)
    graphs = None if held else _separate_graphs(Z, Y, keys)
    if graphs is not None:
        return [_Run(i, starts[i], graphs[i:j], keys[i:j]) for i, j in bounds]
    chunks = list(zip(Z.to_delayed(False).ravel(), Y.to_delayed(False).ravel(), strict=True))
    return [(i, starts[i], chunks[i:j]) for i, j in bounds]


def _flat(keys: Any) -> Iterator[Any]:
    for key in keys:
        yield from _flat(key) if isinstance(key, list) else (key,)


def _cut(Z: Any) -> list[tuple[int, int]]:
    """Runs [i, j) of chunks, of about the same number of bytes where it is known, else of chunks."""
    sizes = np.array(Z.chunks[0], dtype=np.float64) * Z.shape[1] * Z.dtype.itemsize
    if np.isnan(sizes).any():
        sizes, most = np.ones(len(sizes)), min(max(1, len(sizes) // TASKS), TASKS)
    else:
        most = int(np.clip(sizes.sum() / TASKS, LEAST_BYTES, MOST_BYTES))
    runs, held = [0], 0.0
    for i, size in enumerate(sizes):
        if held and held + size / 2 > most:
            runs.append(i)
            held = 0.0
        held += size
    return list(zip(runs, [*runs[1:], len(sizes)], strict=True))


def _separate_graphs(Z: Any, Y: Any, keys: Sequence[tuple[Any, Any]]) -> list[Any] | None:
    """The graph of every chunk where no two share a task, which then would be computed for each of them; else None."""
    cull = optional("dask.optimization", "dask").cull
    whole = {**dict(Z.__dask_graph__()), **dict(Y.__dask_graph__())}
    graphs = [dict(cull(whole, list(pair))[0]) for pair in keys]
    return graphs if sum(map(len, graphs)) == len(set().union(*graphs)) else None


# -- what runs in a task ----------------------------------------------------------------------------------------------


def _task(run: Any, sums: Callable[[Chunks], Any]) -> Any:
    with limited():
        return sums(_numbered(run))


def _merge_task(parts: Sequence[Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
    with limited():
        return merge(parts)


def _numbered(run: Any) -> Chunks:
    """Every chunk of a run with its number and that of its first row, None where unknown."""
    first, row, chunks = (run.first, run.start, run) if isinstance(run, _Run) else run
    for i, pair in enumerate(chunks, start=first):
        z, y = _pair(pair[0], pair[1], i)
        yield i, row, z, y
        row = None if row is None else row + len(y)


def _sums(
    chunks: Chunks, folds: int, blocks: Blocks | None, q: int, names: Sequence[str], drop: bool
) -> list[Rows | None]:
    """Moments of every fold of a run of chunks."""
    sums = FoldSums(folds, blocks, q)
    for i, row, z, y in chunks:
        refuse_not_finite(z, row or 0, what="Z" if row is not None else f"Z (partition {i})")
        if drop and y.dtype.kind == "f":
            there = ~np.isnan(y).any(axis=1)
            z, y = (z, y) if there.all() else (z[there], y[there])
        sums.add(z, y)
    return sums.moments(names)


def _pair(z: Any, y: Any, i: int) -> tuple[Any, Any]:
    """A chunk of Z and Y as numbers with two dimensions and equally many rows."""
    if z.shape[0] != y.shape[0]:
        raise errors.partition_lengths_differ(i, z.shape[0], y.shape[0])
    return as_rows(z, y)


class FoldSums:
    """Sums of the rows of every fold, which may come in any portions, with or without gaps in Y.

    Portions without gaps are summed apart from those with, which need more care.
    """

    def __init__(self, folds: int, blocks: Blocks | None = None, q: int = 0) -> None:
        self.folds, self.blocks = folds, blocks
        self._dealer = Dealer(q)
        self._parts: dict[tuple[int, bool], Any] = {}

    def add(self, Z: Any, Y: NDArray[Any]) -> None:
        """Take in the rows of Z and Y."""
        gaps = Y.dtype.kind == "f" and bool(np.isnan(Y).any())
        if self.folds == 1:
            if len(Y):
                self._part(0, gaps, Z.shape[1], Y.shape[1]).add(Z, Y)
            return
        for f, z, y in self._dealer.sorted(Z, Y, self.folds):
            self._part(f, gaps, z.shape[1], y.shape[1]).add(z, y)

    def _part(self, fold: int, gaps: bool, k: int, p: int) -> Any:
        if (fold, gaps) not in self._parts:
            blocks = self.blocks or tuple((column,) for column in range(p))
            self._parts[fold, gaps] = IncompleteAccumulator(k, blocks) if gaps else Accumulator(k, p)
        return self._parts[fold, gaps]

    def moments(self, names: Sequence[str]) -> list[Rows | None]:
        """Moments of every fold, None where it has no row."""
        found: list[list[Rows]] = [[] for _ in range(self.folds)]
        for fold, gaps in sorted(self._parts):
            found[fold].append(self._parts[fold, gaps].moments(names))
        return [merged(parts) for parts in found]


def _merge(several: Sequence[Sequence[Rows | None]]) -> list[Rows | None]:
    """The sums, fold by fold, of the moments of several runs."""
    return [_sum_of([part for part in parts if part is not None]) for parts in zip(*several, strict=True)]


def _sum_of(parts: list[Rows]) -> Rows | None:
    whole = [part for part in parts if isinstance(part, Moments)]
    if len(whole) < 3 or len(whole) < len(parts):
        return merged(parts)
    return merge_groups(whole, [dict.fromkeys(range(len(whole)), range(len(whole[0].mean_y)))])[0]


def _by_block(work: Callable[..., Any], z: Any, t: Array) -> Any:
    with limited():
        return work(z, t)


def _turn(block: Any, mean: Array, matrix: Array, out: Any) -> Any:
    with limited():
        return affine(block, mean, matrix, 0.0, dtype=out)


def _put_beside(z: Any, c: Array) -> Any:
    return put_beside(z.tocsr() if sparse.issparse(z) else z, c)


def _encode(frame: pd.DataFrame, encoding: Encoding) -> pd.DataFrame:
    return encoding.apply(covariates.as_frame(frame))


def _length(part: Any) -> int:
    return int(part.shape[0])
