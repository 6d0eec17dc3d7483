"""One pass over rows, wherever they are: every row goes to the sums of its fold, all cores busy.

Rows that can be read again are cut into contiguous spans, one a thread (a lane), each with its own sums; the sums are
merged in the order of the rows. Batches that come once are dealt out to the lanes by the number of the row. Neither
depends on timing, nor on how rows are cut into chunks or batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from covalign._core import validation as errors
from covalign._core.linalg import Array
from covalign._core.threads import blas_threads, limited, one_thread
from covalign.stream import is_source, read, refuse_not_finite

FEW = 1e9  # rows times columns squared: a few hundredths of a second, in which threads cost more than they bring
BLOCK_BYTES = 2**23  # a block of rows should stay in the last-level cache between centring and multiplying
LANES_BYTES = 2**28  # for the sums of all lanes


def sums_of_lanes(
    Z: Any, Y: Array, folds: int, accumulator: Callable[[], Any], block: int, riding: int = 0
) -> list[list[Any]]:
    """For every lane, in the order of its rows, the accumulators of all folds, which have taken in every row.

    ``Z`` is an array, a sparse matrix or a Source; ``block`` the number of rows an accumulator takes at once. The last
    ``riding`` columns of Z have no say in the folds.
    """
    n, k = Z.shape
    failed = threading.Event()

    def one_lane(start: int, stop: int) -> list[Any]:
        lane, deal = [accumulator() for _ in range(folds)], Dealer(riding)
        try:
            for z, y in portions(Z, Y, start, stop, folds * block if folds > 1 else stop - start):
                if failed.is_set():  # another lane found something wrong
                    break
                deal(lane, z, y)
            for rows in lane:
                rows.flush()
        except errors.NotFiniteError:
            failed.set()
            locate(Z, Y, start, stop)
            raise
        except BaseException:
            failed.set()
            raise
        return lane

    return in_spans(one_lane, n, k + Y.shape[1], folds, block)


def portions(Z: Any, Y: Array, start: int, stop: int, slab: int) -> Iterator[tuple[Any, Array]]:
    """Rows [start, stop) of both: the chunks of a source, read ahead where that helps; slices of what is in memory."""
    if not is_source(Z):
        for i in range(start, stop, slab):
            yield Z[i : min(i + slab, stop)], Y[i : min(i + slab, stop)]
        return
    chunks = read(Z, start=start)
    try:
        for chunk in chunks:
            z = chunk if chunk.shape[0] <= stop - start else chunk[: stop - start]
            yield z, Y[start : start + z.shape[0]]
            start += z.shape[0]
            if start >= stop:
                return
    finally:
        chunks.close()  # type: ignore[attr-defined]  # generators and readers have it


class Dealer:
    """Gives every row to the accumulator of its fold, which its covariates and columns of z but the riding decide.

    Rows are sorted by fold into memory that is used again and again: pages fresh from the system cost as much as the
    sums of some rows, above all where memory is given back at once (workers of dask).
    """

    def __init__(self, riding: int = 0) -> None:
        self._riding = riding
        self._rooms: dict[str, Array] = {}

    def __call__(self, lane: Sequence[Any], z: Any, y: Array) -> None:
        """Rows z, y to a lane: the accumulators of all folds."""
        if len(lane) == 1:
            lane[0].add(z, y)
            return
        for f, z_of_fold, y_of_fold in self.sorted(z, y, len(lane)):
            lane[f].add(z_of_fold, y_of_fold)

    def sorted(self, Z: Any, Y: Array, folds: int) -> Iterator[tuple[int, Any, Array]]:
        """Rows of one fold after the other, some at a time, to be used before the next are asked for."""
        k = Z.shape[1] - self._riding
        step = int(np.clip(BLOCK_BYTES // (8 * (Z.shape[1] + Y.shape[1])), 256, 8192))
        for i in range(0, len(Y), step):
            z, y = Z[i : i + step], Y[i : i + step]
            fold = fold_of_rows(z[:, :k], y, folds)
            order = np.argsort(fold, kind="stable")
            z, y = self._taken("z", z, order), self._taken("y", y, order)
            start = 0
            for f, n in enumerate(np.bincount(fold).tolist()):
                if n:
                    yield f, z[start : start + n], y[start : start + n]
                start += n

    def _taken(self, name: str, rows: Any, order: NDArray[np.intp]) -> Any:
        if sparse.issparse(rows):
            return rows[order]
        room = self._rooms.get(name)
        if room is None or len(room) < len(order) or (room.shape[1], room.dtype) != (rows.shape[1], rows.dtype):
            room = self._rooms[name] = np.empty(rows.shape, dtype=rows.dtype)
        return np.take(rows, order, axis=0, out=room[: len(order)], mode="clip")  # "raise" would make a copy first


def locate(Z: Any, Y: Array, start: int, stop: int) -> None:
    """Raise an error that names the first row and column among [start, stop) with a number that is not finite.

    Sums notice such a number without a search of its own, so only then the rows are read again.
    """
    at = start
    for z, y in portions(Z, Y, start, stop, 4096):
        refuse_not_finite(z, at, Z if is_source(Z) else None, "Z")
        refuse_not_finite(y, at, what="Y")
        at += z.shape[0]


def in_spans(work: Callable[[int, int], Any], n: int, q: int, folds: int, block: int) -> list[Any]:
    """``work(start, stop)`` over contiguous spans of rows, one thread a span, the BLAS threads shared out among them.

    Centring is bound by memory and runs on one thread; lanes keep the other cores busy meanwhile.
    """
    if n * q * q < FEW:
        with one_thread(q):
            return [work(0, n)]
    lanes, threads = number_of_lanes(q, folds)
    lanes = int(max(1, min(lanes, n // (folds * block))))
    bounds = np.linspace(0, n, lanes + 1).astype(int)
    with limited(max(1, threads // lanes)), ThreadPoolExecutor(lanes) as pool:
        done = [pool.submit(work, a, b) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        return results(done)


def results(done: Sequence[Future[Any]]) -> list[Any]:
    """What all of them return, or the error of the first that has one."""
    wrong = [future.exception() for future in done]
    for error in wrong:
        if error is not None:
            raise error
    return [future.result() for future in done]


def number_of_lanes(q: int, folds: int) -> tuple[int, int]:
    """How many lanes there may be, each with its own sums, and how many BLAS threads they share."""
    threads = blas_threads()
    affordable = LANES_BYTES // (folds * (8 * q * q + BLOCK_BYTES))
    return int(max(1, min(threads, affordable))), threads


class StreamSums:
    """Accumulators of all folds for batches that come once: ``with StreamSums(...) as sums: sums.add(Z, Y)``.

    Row i belongs to lane (i // span) mod lanes (to the first while rows are few), whatever batch it comes in. Rows are
    copied, because whoever makes batches may fill the same array again; a lane has at most two spans waiting.
    """

    def __init__(self, q: int, folds: int, accumulator: Callable[[], Any], block: int, riding: int = 0) -> None:
        self._few, self._span = FEW / (q * q), block
        lanes, self._threads = number_of_lanes(q, folds)
        self._lanes = [[accumulator() for _ in range(folds)] for _ in range(lanes)]
        self._dealers = [Dealer(riding) for _ in range(lanes)]
        self._waiting: list[list[tuple[int, Future[None]]]] = [[] for _ in range(lanes)]
        self._stack = ExitStack()
        self.n = 0

    def __enter__(self) -> StreamSums:
        self._stack.enter_context(limited(max(1, self._threads // len(self._lanes))))
        # One worker a lane, so that a lane's rows keep their order.
        self._pools = [self._stack.enter_context(ThreadPoolExecutor(1)) for _ in self._lanes]
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def add(self, Z: Any, Y: Array) -> None:
        """Take in the next rows."""
        at = 0
        while at < len(Y):
            stop = min(len(Y), at + self._span - self.n % self._span)
            lane = 0 if self.n < self._few else self.n // self._span % len(self._lanes)
            z = Z[at:stop]
            self._submit(lane, z if sparse.issparse(z) else np.array(z), np.array(Y[at:stop]))
            self.n, at = self.n + stop - at, stop

    def _submit(self, lane: int, z: Any, y: Array) -> None:
        waiting = self._waiting[lane]
        while sum(rows for rows, _ in waiting) > 2 * self._span:
            waiting.pop(0)[1].result()
        waiting.append((len(y), self._pools[lane].submit(self._dealers[lane], self._lanes[lane], z, y)))

    def lanes(self) -> list[list[Any]]:
        """For every lane the accumulators of all folds, after the last row."""
        for waiting in self._waiting:
            for _, done in waiting:
                done.result()
        return self._lanes


def fold_of_rows(Z: Any, Y: Array, folds: int) -> NDArray[np.int64]:
    """Which fold each row belongs to: a hash of its numbers, so neither row order nor chunking matters.

    Equal rows share a fold, so a duplicate never sits on both sides of a split. The first and last 32 columns of Z and
    of Y are read, which is enough to tell rows apart and leaves most of the memory alone.
    """
    h = np.zeros(Y.shape[0], dtype=np.uint64)
    ends: Any
    for ends in (Z[:, :32], Z[:, 32:][:, -32:], Y[:, :32], Y[:, 32:][:, -32:]):
        values = np.asarray(ends.toarray() if sparse.issparse(ends) else ends, dtype=np.float64)
        bits = (values + 0.0).view(np.uint64)  # + 0.0 makes -0.0 and 0.0 one value
        weights = _mix(np.arange(1, values.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
        h = _mix(h ^ (bits * weights).sum(axis=1, dtype=np.uint64))
    return (h % np.uint64(folds)).astype(np.int64)


def _mix(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One round of splitmix64: every bit of h reaches every bit of the result."""
    h = h + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))
