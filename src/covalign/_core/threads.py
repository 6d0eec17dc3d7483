"""How many threads linear algebra uses, and work in several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController  # comes with scikit-learn

T = TypeVar("T")
R = TypeVar("R")


def one_thread(k: int) -> AbstractContextManager[Any]:
    """One BLAS thread for matrices of medium order k; BLAS decides for large ones, and small ones use one anyway.

    numpy and scipy bring a BLAS each. The threads of one keep spinning for a while after its work, so numpy and scipy
    used in turns take the cores from each other: a Cholesky decomposition of order 256 takes 27 ms instead of 1.
    """
    return limited() if 64 <= k < 1024 else nullcontext()


def in_threads(work: Callable[[T], R], items: Sequence[T], k: int) -> list[R]:
    """``work`` of every item, where ``work`` decomposes matrices of order k: one thread and one BLAS thread each.

    Several decompositions at once use the cores better than one decomposition on all cores, unless there are many
    cores. For small matrices a thread costs more than it saves.
    """
    threads = blas_threads()
    if k < 64 or threads == 1 or threads > 2 * len(items):
        return [work(item) for item in items]
    with limited(), ThreadPoolExecutor(min(threads, len(items))) as pool:
        return list(pool.map(work, items))


class Limited:
    """``with limited():`` limits BLAS to one thread (or ``most``) in the whole process, until the block ends.

    Blocks of several threads may overlap, so the first sets the limit and the last removes it; if each block restored
    what it found, a limit could stay for ever. OpenBLAS 0.3.30 obeys only the main thread (measured).
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None

    @contextmanager
    def __call__(self, most: int = 1) -> Iterator[None]:
        """The limit as a context."""
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limit = blas().limit(limits=most)
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._limit.restore_original_limits()


limited = Limited()


def blas_threads() -> int:
    """Threads that BLAS would use now."""
    return max((int(library["num_threads"]) for library in blas().info()), default=1)


@cache
def blas() -> Any:
    """The BLAS libraries in use. Found once: the search takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")
