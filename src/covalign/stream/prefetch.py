"""Chunks of sources, read ahead: one thread reads the next chunk while the caller works on this one."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, TypeVar

from covalign.stream.finite import checked
from covalign.stream.source import Source

T = TypeVar("T")

PATIENCE = 2.0  # seconds that close() waits for the chunk being read; it does not wait longer for a slow network


class ahead(Iterator[T], Generic[T]):  # a class that is used like a function: for chunk in ahead(chunks)
    """The same items, read by a thread at most ``depth`` items ahead of the caller.

    An error of the reader is raised here, as it is. Leaving the loop early, by ``break`` or an exception, ends the
    thread after the item it is reading; so does ``close()``, or the end of ``with ahead(items) as chunks``.

    >>> from covalign.stream import ahead
    >>> list(ahead(range(3)))
    [0, 1, 2]
    """

    def __init__(self, items: Iterable[T], depth: int = 1) -> None:
        self._shared = _Shared(max(1, int(depth)))
        # The thread refers to the shared state, not to this object, so that this object is collected after use.
        self._thread = threading.Thread(target=_read, args=(items, self._shared), name="covalign-ahead", daemon=True)
        self._thread.start()

    def __iter__(self) -> ahead[T]:
        return self

    def __next__(self) -> T:
        shared = self._shared
        if shared.over:
            raise StopIteration
        try:
            item, error = shared.items.get()
        except BaseException:  # Ctrl-C while waiting: the traceback would keep this object and the thread alive
            self.close()
            raise
        if error is None:
            shared.room.release()  # the caller has this item: the next one may be read
            return item  # type: ignore[no-any-return]
        shared.over = True
        self._thread.join(PATIENCE)
        raise error

    def close(self) -> None:
        """End the thread and drop what it has read."""
        shared = self._shared
        shared.over = True
        shared.room.release()  # wakes a reader that waits for room
        if self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)
        while not shared.items.empty():
            shared.items.get_nowait()

    def __enter__(self) -> ahead[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_thread"):
            self.close()


def read(source: Source, rows: int | None = None, start: int = 0, *, finite: bool = False) -> Iterator[Any]:
    """The chunks of a source from row ``start`` on, read ahead if they are not in memory; ``finite`` checks them."""
    chunks = source.chunks(rows, start)
    return _ahead_of(checked(source, chunks, start) if finite else chunks, [source])


def in_step(sources: Sequence[Source], rows: int | None = None, start: int = 0) -> Iterator[tuple[Any, ...]]:
    """The chunks of several sources from row ``start`` on, side by side, read ahead if they are not in memory.

    A chunk has the rows that the smallest chunk of a source has, unless ``rows`` says otherwise.
    """
    rows = min(source.chunk_rows for source in sources) if rows is None else rows
    return _ahead_of(zip(*(source.chunks(rows, start) for source in sources), strict=True), sources)


def _ahead_of(chunks: Iterator[Any], sources: Sequence[Source]) -> Iterator[Any]:
    return chunks if all(source.in_memory for source in sources) else ahead(chunks)


class _Shared:
    """What the two threads share."""

    def __init__(self, depth: int) -> None:
        self.items: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.room = threading.Semaphore(depth)  # acquired before reading, so that the thread holds no further item
        self.over = False  # the end was reached, or the caller wants no more


def _read(items: Iterable[Any], shared: _Shared) -> None:
    reader: Iterator[Any] | None = None
    try:
        reader = iter(items)
        while True:
            shared.room.acquire()
            if shared.over:
                return
            shared.items.put((next(reader), None))
    except BaseException as error:  # of the reader, or StopIteration at the end
        shared.items.put((None, error))
    finally:
        # The thread that runs a generator has to close it; this closes its files.
        close = getattr(reader, "close", None)
        if close is not None:
            close()
