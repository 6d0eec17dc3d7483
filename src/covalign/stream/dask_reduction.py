"""Sums over rows in dask: every chunk is summed on its worker, and only sums are sent.

A task adds a run of neighbouring chunks, one at a time, to sums of its own; the results are merged four at a time, in
an order that depends on nothing but the chunks. Which threads, processes or machines do it, when, and whether some of
them are lost on the way (dask then runs their tasks again) does not change the result.

The scheduler is the one in use (``dask.config``, or the ``distributed.Client`` made last) unless a client is passed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from covalign._core.extras import optional
from covalign._core.messages import message
from covalign._core.threads import limited
from covalign._core.user_arrays import plain

FAN_IN = 4  # few, so that most sums are sent while others are still computed

# The sums of a task cost as much as some hundred rows of every fold, so a task should have many rows; but small data
# should still be enough tasks to keep several workers busy.
LEAST_BYTES, MOST_BYTES, TASKS = 2**26, 2**28, 32


class ChunkSums(Protocol):
    """``reduction.Sums`` of chunks."""

    def add_chunk(self, number: int, start: int | None, x: Any, y: Any) -> None:
        """Add a chunk of both tables, with its number and the number of its first row (None if unknown)."""

    def finish(self) -> Any:
        """The result for all rows added."""


def of_dask(
    X: Any, Y: Any, new: Callable[[], ChunkSums], merge: Callable[[Sequence[Any]], Any], client: Any = None
) -> Any:
    """The result of the sums ``new()`` over two dask arrays in the same chunks of rows, all columns in one.

    ``merge`` may not change what it is given: if a worker is lost, dask asks for it again.
    """
    dask = optional("dask", "dask")
    tasks = [dask.delayed(_task)(*run, X.shape[1], new) for run in _runs(X, Y)]
    while len(tasks) > 1:
        tasks = [dask.delayed(_merge_task)(tasks[i : i + FAN_IN], merge) for i in range(0, len(tasks), FAN_IN)]
    (found,) = compute(tasks[0], client=client)
    return found


def compute(*lazy: Any, client: Any = None) -> Any:
    """The values of dask objects, computed by the given client or by the current scheduler."""
    dask = optional("dask", "dask")
    with warnings.catch_warnings():
        # Covariates in memory are sent with the tasks: scattered data would be lost with their worker.
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        return dask.compute(*lazy, **({} if client is None else {"scheduler": client}))


class _Chunks:
    """Neighbouring chunks (Z, Y), which are computed where they are summed: graphs of tasks of their own, and keys.

    dask does not look into it, so to the scheduler they are one task, however many chunks there are.
    """

    def __init__(self, graphs: Sequence[Any], keys: Sequence[Any]) -> None:
        self.graphs, self.keys = list(graphs), list(keys)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        get = optional("dask.core", "dask").get  # a scheduler, even the synchronous one, would take 1 ms a chunk
        for graph, keys in zip(self.graphs, self.keys, strict=True):
            yield tuple(get(graph, list(keys)))


def _runs(Z: Any, Y: Any) -> list[tuple[int, int | None, Any]]:
    """The chunks of each task: (number of the first chunk, its first row or None, chunks)."""
    dask = optional("dask", "dask")
    distributed = sys.modules.get("distributed")
    held = distributed is not None and bool(distributed.futures_of([Z, Y]))  # a cluster has already computed them
    if not held:  # which would lose sight of it
        Z, Y = dask.optimize(Z, Y)
    keys = [tuple(_flat(pair)) for pair in zip(Z.__dask_keys__(), Y.__dask_keys__(), strict=True)]
    ends = np.cumsum(Z.chunks[0])
    starts = [None if np.isnan(end) else int(end - size) for end, size in zip(ends, Z.chunks[0], strict=True)]
    graphs = None if held else _separate_graphs(Z, Y, keys)
    if graphs is not None:
        return [(i, starts[i], _Chunks(graphs[i:j], keys[i:j])) for i, j in _cut(Z)]
    chunks = list(zip(Z.to_delayed(False).ravel(), Y.to_delayed(False).ravel(), strict=True))
    return [(i, starts[i], chunks[i:j]) for i, j in _cut(Z)]


def _flat(keys: Any) -> Iterator[Any]:
    for key in keys:
        yield from _flat(key) if isinstance(key, list) else (key,)


def _cut(Z: Any) -> list[tuple[int, int]]:
    """Runs [i, j) of chunks with about the same number of bytes, or of chunks if bytes are unknown."""
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
    """The graph of every chunk; None if two chunks share a task, which would then be computed twice."""
    cull = optional("dask.optimization", "dask").cull
    whole = {**dict(Z.__dask_graph__()), **dict(Y.__dask_graph__())}
    graphs = [dict(cull(whole, list(pair))[0]) for pair in keys]
    return graphs if sum(map(len, graphs)) == len(set().union(*graphs)) else None


def checked_block(block: Any, width: float) -> Any:
    """What a task computed, without a mask, if it has as many columns as the array said; NaN: it did not say."""
    block = plain(block, "Z")
    if block.ndim == 2 and not np.isnan(width) and block.shape[1] != width:
        problem, got = f"Z needs {width} columns in every chunk, as its shape says", f"{block.shape[1]} in one of them"
        raise ValueError(message(problem, got=got, remedy="correct the function or the chunks given to map_blocks"))
    return block


def _task(first: int, row: int | None, chunks: Any, width: float, new: Callable[[], ChunkSums]) -> Any:
    with limited():
        sums = new()
        for i, (computed, y) in enumerate(chunks, start=first):
            x = checked_block(computed, width)
            if x.shape[0] != y.shape[0]:
                problem = "Z and Y need the same number of rows in every partition"
                remedy = "cut both in the same way, or pass Y from memory"
                got = f"{x.shape[0]} and {y.shape[0]} in partition {i}"
                raise ValueError(message(problem, got=got, remedy=remedy))
            sums.add_chunk(i, row, x, y)
            row = None if row is None else row + x.shape[0]
        return sums.finish()


def _merge_task(parts: Sequence[Any], merge: Callable[[Sequence[Any]], Any]) -> Any:
    with limited():
        return merge(parts)
