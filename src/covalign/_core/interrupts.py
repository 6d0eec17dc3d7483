"""Control-C as an exception that no other code catches."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

PATIENCE = 5.0  # seconds that an interrupt waits for an import
IMPORTING = "<frozen importlib._bootstrap>"


class Interrupted(BaseException):
    """Control-C. A fit takes KeyboardInterrupt as "enough sweeps" and returns a model; this ends it."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Control-C raise ``Interrupted``, between imports.

    A module that is interrupted while it is imported may drop the exception or print a traceback, so an import is
    finished first. Where Control-C is handled elsewhere, or ignored, nothing changes.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    with handled(signal.SIGINT, _Stop()):
        yield


@contextmanager
def handled(number: int, handler: Any) -> Iterator[None]:
    """Handle a signal within the block; the handler before it comes back afterwards."""
    try:
        before = signal.signal(number, handler)
    except ValueError:  # only the main thread can handle signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(number, before)


class _Stop:
    """A handler of the signal: during an import it sends the signal again, a little later."""

    def __init__(self) -> None:
        self.first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        now = time.monotonic()
        self.first = now if self.first is None else self.first
        if now - self.first > PATIENCE or not _importing(frame):
            self.first = None
            raise Interrupted
        later = threading.Timer(0.02, signal.raise_signal, [number])
        later.daemon = True
        later.start()


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == IMPORTING:
            return True
        frame = frame.f_back
    return False
