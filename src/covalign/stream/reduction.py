"""Sums over rows in one pass, on all cores; ``dask_reduction`` does the same on a cluster.

Rows that can be read again are cut into contiguous spans, one for each thread. Rows that come once, in batches, are
given to the threads in turn. Every thread has sums of its own, which are merged at the end. Timing has no influence on
the result, nor has the way in which rows are cut into chunks or batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from covalign._core.threads import blas_threads, limited, one_thread
from covalign.exceptions import NotFiniteError
from covalign.stream.prefetch import in_step
from covalign.stream.source import is_source

FEW = 1e9  # rows times columns squared, a few hundredths of a second of work: threads would make it slower
BLOCK_BYTES = 2**23  # a block of rows should stay in the last-level cache between centring and multiplying
SUMS_BYTES = 2**28  # for the sums of all threads


class Sums(Protocol):
    """Sums of rows. The result of ``finish`` can be sent to another process and merged with that of other rows."""

    def add(self, start: int, *parts: Any) -> None:
        """Add consecutive rows of all tables, the first of which has the number ``start``."""

    def finish(self) -> Any:
        """The result for all rows added."""


class Size(NamedTuple):
    """The sizes that decide the number of threads: columns of all tables, sums in each thread, rows summed at once."""

    columns: int
    folds: int
    block: int

    @property
    def threads(self) -> tuple[int, int]:
        """The maximum number of threads, each with its own sums, and the number of BLAS threads that they share."""
        threads = blas_threads()
        affordable = SUMS_BYTES // (self.folds * 8 * (self.columns**2 + self.block * self.columns))
        return int(max(1, min(threads, affordable))), threads


def of_rows(
    tables: Sequence[Any],
    new: Callable[[], Sums],
    merge: Callable[[Sequence[Any]], Any],
    size: Size,
    locate: Callable[..., None] | None = None,
) -> Any:
    """The result of the sums ``new()`` over tables (arrays, sparse matrices, Sources) of equally many rows.

    Sums notice that a number is not finite without a search. Only then are the rows read again: ``locate(start,
    *parts)`` raises an error that names row and column.
    """
    failed = threading.Event()

    def one_span(start: int, stop: int) -> Any:
        sums, at = new(), start
        rows = size.folds * size.block if size.folds > 1 else stop - start
        try:
            for parts in portions(tables, start, stop, rows):
                if failed.is_set():  # another thread found something wrong
                    break
                sums.add(at, *parts)
                at += parts[0].shape[0]
            return sums.finish()
        except BaseException as error:
            failed.set()
            if isinstance(error, NotFiniteError) and locate is not None:
                at = start
                for parts in portions(tables, start, stop, 4096):
                    locate(at, *parts)
                    at += parts[0].shape[0]
            raise

    return merge(_in_spans(one_span, tables[0].shape[0], size))


def portions(tables: Sequence[Any], start: int, stop: int, rows: int) -> Iterator[tuple[Any, ...]]:
    """Rows [start, stop) of all tables: chunks of the sources among them, or slices of ``rows`` rows."""
    sources = [table for table in tables if is_source(table)]
    if not sources:
        for i in range(start, stop, rows):
            yield tuple(table[i : min(i + rows, stop)] for table in tables)
        return
    chunks = in_step(sources, None, start)
    try:
        for read in chunks:
            n = min(read[0].shape[0], stop - start)
            parts = iter(read)
            both = [next(parts) if is_source(table) else table[start : start + n] for table in tables]
            yield tuple(part if part.shape[0] == n else part[:n] for part in both)
            start += n
            if start >= stop:
                return
    finally:
        if hasattr(chunks, "close"):  # of a thread that reads ahead
            chunks.close()


def _in_spans(work: Callable[[int, int], Any], n: int, size: Size) -> list[Any]:
    """``work(start, stop)`` over contiguous spans of rows, one for each thread, which share the BLAS threads.

    Centring is limited by memory and runs on one thread; other threads keep the other cores busy meanwhile.
    """
    if n * size.columns**2 < FEW:
        with one_thread(size.columns):
            return [work(0, n)]
    most, threads = size.threads
    spans = int(max(1, min(most, n // (size.folds * size.block))))
    bounds = np.linspace(0, n, spans + 1).astype(int).tolist()
    with limited(max(1, threads // spans)), ThreadPoolExecutor(spans) as pool:
        done = [pool.submit(work, a, b) for a, b in pairwise(bounds)]
        wrong = [future.exception() for future in done]
        for error in wrong:
            if error is not None:
                raise error
        return [future.result() for future in done]


def of_batches(
    batches: Iterable[tuple[Any, ...]], new: Callable[[], Sums], merge: Callable[[Sequence[Any]], Any], size: Size
) -> Any:
    """``of_rows`` over batches that can be read once: each is a tuple of the same rows of all tables.

    Row i belongs to thread (i // block) mod threads (to the first while rows are few), whatever batch it comes in. Rows
    are copied, because the caller may fill the same array again; at most two blocks wait for a thread.
    """
    most, threads = size.threads
    sums, few, n = [new() for _ in range(most)], FEW / size.columns**2, 0
    waiting: list[list[tuple[int, Future[None]]]] = [[] for _ in range(most)]
    with ExitStack() as stack:
        stack.enter_context(limited(max(1, threads // most)))
        pools = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(most)]  # keep the order of the rows
        for batch in batches:
            at, rows = 0, batch[0].shape[0]
            while at < rows:
                stop = min(rows, at + size.block - n % size.block)
                which = 0 if n < few else n // size.block % most
                parts = [part[at:stop] if sparse.issparse(part) else np.array(part[at:stop]) for part in batch]
                while sum(held for held, _ in waiting[which]) > 2 * size.block:
                    waiting[which].pop(0)[1].result()
                waiting[which].append((stop - at, pools[which].submit(sums[which].add, n, *parts)))
                n, at = n + stop - at, stop
        for _, done in (pair for pairs in waiting for pair in pairs):
            done.result()
    return merge([one.finish() for one in sums])
