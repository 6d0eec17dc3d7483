"""A bar on the terminal; nothing in files, pipes, and where rich is not installed."""

from __future__ import annotations

import sys
from typing import Any


class Progress:
    """Called after every batch with how many items it had, and how many were broken so far."""

    def __init__(self, total: int, done: int = 0) -> None:
        self._bar: Any = None
        if not sys.stderr.isatty():
            return
        try:
            from rich import progress as bars
            from rich.console import Console
        except ImportError:
            return
        columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn())
        times = (bars.TimeElapsedColumn(), bars.TimeRemainingColumn())
        self._bar = bars.Progress(*columns, *times, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("embedding", total=total, completed=done)

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __call__(self, items: int, broken: int) -> None:
        if self._bar is not None:
            text = f"embedding, {broken} broken" if broken else "embedding"
            self._bar.update(self._task, advance=items, description=text)

    def __exit__(self, *of_error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
