"""Rows that say how far they have been read: a bar on the terminal, once it takes long; nothing in files and pipes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from covalign.stream import Source
from covalign.stream.derived import Derived

PATIENCE = 2.0  # seconds before anything is shown


class Watched(Derived):
    """The same rows; every pass over them is a bar of its own. Passes may be read in several parts at once."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._lock, self._done, self._began = threading.Lock(), 0, 0.0

    def chunks(self, rows: int | None = None, start: int = 0) -> Iterator[Any]:
        """Those of the source."""
        for chunk in self.source.chunks(rows, start):
            yield chunk
            with self._lock:
                self._advance(int(chunk.shape[0]))

    def _advance(self, rows: int) -> None:
        if self._done == 0:
            self._began = time.monotonic()
        self._done += rows
        if self._done >= self.shape[0]:  # the next row is that of another pass
            self._done = 0
            BAR.close()
        elif time.monotonic() - self._began > PATIENCE:
            BAR.show(str(self.where), self._done, self.shape[0])


class Bar:
    """The one bar there is at a time."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def show(self, what: str, done: int, total: int) -> None:
        """So many rows of all."""
        if not sys.stderr.isatty():
            return
        if self._bar is None:
            from rich import progress
            from rich.console import Console

            columns = (progress.TextColumn("reading {task.description}", markup=False), progress.BarColumn())
            times = (progress.TaskProgressColumn(), progress.TimeRemainingColumn())
            self._bar = progress.Progress(*columns, *times, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(what, total=total)
            self._bar.start()
        self._bar.update(self._task, description=what, completed=done, total=total)

    def close(self) -> None:
        """Nothing is left of it on the terminal."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


BAR = Bar()
