"""A line on the terminal while a long fit runs: quiet for short ones, in files and where rich is not installed."""

from __future__ import annotations

import sys
import time
from typing import Any

PATIENCE = 2.0  # seconds before anything is shown


class Progress:
    """Called after every sweep with the bounds so far."""

    def __init__(self, max_iter: int, tol: float) -> None:
        self.max_iter, self.tol = max_iter, tol
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._wanted = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __call__(self, elbo: list[float]) -> None:
        if not self._wanted or (self._bar is None and time.monotonic() - self._start < PATIENCE):
            return
        if self._bar is None:
            self._open()
        if self._bar is not None:
            gain = (elbo[-1] - elbo[-2]) / abs(elbo[-1]) if len(elbo) > 1 else float("inf")
            text = f"bound {elbo[-1]:.2f}, relative change {gain:.1e} (stops at {self.tol:.0e})"
            self._bar.update(self._task, completed=len(elbo), description=text)

    def _open(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar
        except ImportError:
            self._wanted = False
            return
        columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
        self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=self.max_iter)

    def __exit__(self, *of_error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
