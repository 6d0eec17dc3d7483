"""Progress bars: on a terminal only, after a while, several at once, and gone when they are closed."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from covalign._core import progress
from covalign._core.progress import DISPLAY, Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)


def terminal(monkeypatch):
    """Called in the test itself: between a fixture and a test pytest replaces standard error."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def test_a_pipe_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress(10, "reading") as bar:
        bar.update(5)
    assert sys.stderr.getvalue() == ""


def test_a_terminal_shows_the_text_as_it_is(monkeypatch):
    screen = terminal(monkeypatch)
    with Progress(10, "reading Z[0].npy") as bar:
        bar.advance(5)
        assert DISPLAY.bars.tasks[0].percentage == 50
    assert "reading Z[0].npy" in screen.getvalue()
    assert DISPLAY.bars is None


def test_short_work_shows_nothing(monkeypatch):
    screen = terminal(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    with Progress(10, "reading") as bar:
        bar.update(5)
    assert screen.getvalue() == ""


def test_without_rich_nothing_is_shown(monkeypatch):
    screen = terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "rich", None)
    with Progress(10, "reading") as bar:
        bar.update(5)
    assert screen.getvalue() == ""


def test_bars_within_bars(monkeypatch):
    terminal(monkeypatch)
    with Progress(2, "outer") as outer:
        outer.update(1)
        with Progress(None, "inner") as inner:
            inner.update(7)
            assert [task.description for task in DISPLAY.bars.tasks] == ["outer", "inner"]
        assert [task.description for task in DISPLAY.bars.tasks] == ["outer"]
    assert DISPLAY.bars is None


def test_threads_share_one_bar(monkeypatch):
    terminal(monkeypatch)
    with Progress(400, "reading") as bar:
        threads = [threading.Thread(target=lambda: [bar.advance(1) for _ in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert DISPLAY.bars.tasks[0].completed == 400
