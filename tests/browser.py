"""Reports in a real browser.

Screenshots go to the folder in COVALIGN_SCREENSHOTS, if that is set. With COVALIGN_NEEDS_BROWSER a missing browser is a
failure, not a reason to skip.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from covalign.show import report

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
NEEDED = bool(os.environ.get("COVALIGN_NEEDS_BROWSER"))
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 800}


@contextmanager
def chromium() -> Iterator[Tabs]:
    """Chromium, which is needed or skips the test."""
    if not NEEDED:
        pytest.importorskip("playwright", reason="playwright is not installed")
        if CHROMIUM is None:
            pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield Tabs(opened)
        opened.close()


class Tabs:
    """One tab for each choice of options. A report is loaded into an open tab: a new one costs more than the report."""

    def __init__(self, chromium) -> None:
        self.chromium = chromium
        self.open: dict = {}
        self.count = itertools.count()  # of reports: a file that is loaded again might keep what was typed

    def tab(self, viewport=WIDE, **options):
        """It looks as a new tab does."""
        key = tuple(sorted(options.items()))
        if key not in self.open:
            self.open[key] = self.chromium.new_context(**options).new_page()
        self.open[key].set_viewport_size(viewport)
        self.open[key].emulate_media(media="screen")
        self.open[key].mouse.move(0, 0)
        return self.open[key]


class Page:
    """A report that is open, and what the browser complained of or asked for meanwhile."""

    def __init__(self, browser, model, folder: Path, *, viewport=WIDE, title="r", gene_sets=None, **options) -> None:
        self.path = folder / f"report{next(browser.count)}.html"
        report.write(model, self.path, title=title, gene_sets=gene_sets)
        self.page = browser.tab(viewport, **options)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.heard = {
            "console": lambda message: self.complaints.append(message.text),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "dialog": lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()),
            "request": lambda request: self.requests.append(request.url),
        }
        for event, listener in self.heard.items():
            self.page.on(event, listener)
        self.page.goto(self.path.as_uri())

    def __enter__(self) -> Page:
        return self

    def __exit__(self, kind, *_: object) -> None:
        for event, listener in self.heard.items():
            self.page.remove_listener(event, listener)
        if kind is None:
            assert self.complaints == [], self.complaints
            assert self.requests == [self.path.as_uri()], self.requests

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.page.evaluate("() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=False).click()
        self.settle()

    @property
    def state(self) -> dict:
        return self.page.evaluate("window.covalign.state")

    @property
    def now(self) -> dict:
        return self.page.evaluate("window.covalign.now")

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector)

    @property
    def code(self) -> str:
        """What the folded box of code has."""
        return self.page.text_content("#code")

    def unfold(self, name: str) -> None:
        self.page.locator(f"#{name}").evaluate("one => { one.open = true; }")
        self.settle()

    def drag(self, share: float) -> float:
        """Take the slider's thumb with the mouse and let it go at a share of its way; the lambda it is at."""
        box = self.page.locator("#lam").bounding_box()
        here = float(self.page.input_value("#lam"))
        height, thumb = box["y"] + box["height"] / 2, 8
        place = lambda lam: box["x"] + thumb + lam * (box["width"] - 2 * thumb)  # noqa: E731
        self.page.mouse.move(place(here), height)
        self.page.mouse.down()
        self.page.mouse.move(place((here + share) / 2), height, steps=3)
        self.page.mouse.move(place(share), height, steps=3)
        self.page.mouse.up()
        self.settle()
        return self.state["lam"]

    def screenshot(self, name: str) -> None:
        """The whole page, if someone wants to look at it."""
        if "COVALIGN_SCREENSHOTS" in os.environ:
            self.page.screenshot(full_page=True, path=Path(os.environ["COVALIGN_SCREENSHOTS"]) / f"{name}.png")
