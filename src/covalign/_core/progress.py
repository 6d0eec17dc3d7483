"""Progress bars on the terminal. Nothing is shown for short work, in files and pipes, or without rich."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any
from weakref import WeakSet

PATIENCE = 2.0  # seconds before a bar is shown


class Progress:
    """One line with a bar: ``with Progress(total, "reading") as bar: bar.update(done)``.

    Without a ``total`` the bar only shows that work goes on. Several bars may be open at once, in any thread: each is
    a line of the one display that a process has. A line disappears when its bar is closed.
    """

    def __init__(self, total: float | None, text: str = "", done: float = 0) -> None:
        self.total, self.text, self.done = total, text, done
        self._start = time.monotonic()
        self._line: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def advance(self, more: float, text: str | None = None) -> None:
        """So much more is done; ``text`` replaces what stands before the bar."""
        with DISPLAY.lock:
            self.update(self.done + more, text)

    def update(self, done: float, text: str | None = None) -> None:
        """So much is done; ``text`` replaces what stands before the bar."""
        with DISPLAY.lock:
            self.done, self.text = done, self.text if text is None else text
            if self._line is None and time.monotonic() - self._start >= PATIENCE:
                self._line = DISPLAY.opened(self.text, self.total, self.done)
                DISPLAY.open.add(self)
            elif self._line is not None:
                DISPLAY.bars.update(self._line, completed=self.done, description=self.text)

    def close(self) -> None:
        """Remove the line from the terminal."""
        with DISPLAY.lock:
            if self._line is not None:
                DISPLAY.closed(self._line)
                self._line = None


class Display:
    """The lines of all open bars. Terminals can redraw only one such block at a time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.bars: Any = None
        self.open: WeakSet[Progress] = WeakSet()

    def opened(self, text: str, total: float | None, done: float) -> Any:
        """A new line, or None where no one can see it."""
        if not sys.stderr.isatty():
            return None
        if self.bars is None:
            try:
                from rich import progress
                from rich.console import Console
            except ImportError:
                return None
            columns = (progress.TextColumn("{task.description}", markup=False), progress.BarColumn())
            times = (progress.TaskProgressColumn(), progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
            self.bars = progress.Progress(*columns, *times, console=Console(stderr=True), transient=True)
        line = self.bars.add_task(text, total=total, completed=done)
        self.bars.start()
        return line

    def closed(self, line: Any) -> None:
        """Remove a line, and the display with its last one."""
        self.bars.remove_task(line)
        if not self.bars.tasks:
            self.bars.stop()
            self.bars = None


DISPLAY = Display()


def close_bars() -> None:
    """Remove the bars of work that did not reach its end."""
    for bar in list(DISPLAY.open):
        bar.close()
