"""Reading overlaps computing: one thread reads the next chunk while the caller works on this one."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")

PATIENCE = 2.0  # seconds that close() waits for the chunk being read; a reader stuck in a network is left behind


class ahead(Iterator[T], Generic[T]):  # a class that is used like a function: for chunk in ahead(chunks)
    """The same items, read by a thread at most ``depth`` items ahead of the caller.

    An error of the reader is raised here, as it is. Leaving the loop early, by ``break`` or an exception, ends the
    thread after the item it is reading; so does ``close()``, or the end of ``with ahead(items) as chunks``.

    >>> from covalign.stream import ahead
    >>> list(ahead(range(3)))
    [0, 1, 2]
    """

    def __init__(self, items: Iterable[T], depth: int = 1) -> None:
        self._lane = _Lane(max(1, int(depth)))
        # The thread knows the lane, never this object: once the caller lets go of it, it is collected and closes.
        self._thread = threading.Thread(target=_read, args=(items, self._lane), name="covalign-ahead", daemon=True)
        self._thread.start()

    def __iter__(self) -> ahead[T]:
        return self

    def __next__(self) -> T:
        lane = self._lane
        if lane.over:
            raise StopIteration
        try:
            kind, item = lane.items.get()
        except BaseException:  # Ctrl-C while waiting: its traceback would keep this object, and so the thread, alive
            self.close()
            raise
        if kind == "item":
            lane.room.release()  # this one is the caller's now: the next may be read
            return item  # type: ignore[no-any-return]
        lane.over = True
        self._thread.join(PATIENCE)
        if kind == "error":
            raise item
        raise StopIteration

    def close(self) -> None:
        """End the thread, and forget what it has read."""
        lane = self._lane
        lane.over = True
        lane.stop.set()
        lane.room.release()  # wakes a reader that waits for room
        if self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)
        while not lane.items.empty():
            lane.items.get_nowait()

    def __enter__(self) -> ahead[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_thread"):
            self.close()


class _Lane:
    """What the two threads share."""

    def __init__(self, depth: int) -> None:
        self.items: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self.room = threading.Semaphore(depth)  # taken before reading, so no item waits in the reader's hands as well
        self.stop = threading.Event()
        self.over = False


def _read(items: Iterable[Any], lane: _Lane) -> None:
    reader: Iterator[Any] | None = None
    try:
        reader = iter(items)
        while True:
            lane.room.acquire()
            if lane.stop.is_set():
                return
            try:
                lane.items.put(("item", next(reader)))
            except StopIteration:
                lane.items.put(("end", None))
                return
    except BaseException as error:
        lane.items.put(("error", error))
    finally:
        # A generator has to be closed by the thread that runs it: that closes its files.
        close = getattr(reader, "close", None)
        if close is not None:
            close()
