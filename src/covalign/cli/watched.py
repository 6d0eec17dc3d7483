"""Rows that show on a terminal how many of them have been read. Short reads, files and pipes show nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from covalign._core.progress import Progress
from covalign.stream import Source
from covalign.stream.derived import Derived


class Watched(Derived):
    """The same rows, with a progress bar for every pass over them. A pass may be read in several parts at once."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._lock, self._done = threading.Lock(), 0
        self._bar: Progress | None = None

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """The chunks of the source."""
        for chunk in self.source.chunks(rows, start):
            yield chunk
            with self._lock:
                self._advance(int(chunk.shape[0]))

    def _advance(self, rows: int) -> None:
        self._done += rows
        if self._done >= self.shape[0]:  # the next row belongs to another pass
            self.close()
            return
        if self._bar is None:
            self._bar = Progress(self.shape[0], f"reading {self.where}")
        self._bar.update(self._done)

    def close(self) -> None:
        """Remove the bar from the terminal."""
        self._done = 0
        if self._bar is not None:
            self._bar.close()
            self._bar = None
