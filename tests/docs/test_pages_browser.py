"""The built pages in a browser: nothing is cut off at any width, what scrolls shows it, figures suit light and dark.

The pages are those in the folder COVALIGN_SITE, if that is set. Otherwise they are built: all of them in
``make test-all``, some that differ in ``make test``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import is_thorough

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (390, 768, 1400)
SOME = ("index", "architecture", "benchmarks", "cli", "gallery", "mathematics", "tutorial_embeddings")

# What is wider than its place: the page, a box that hides the rest, something outside of all boxes that scroll, or a
# box that scrolls without a shadow on either side.
CUT_OFF = """() => {
  const page = document.documentElement, found = [];
  const said = (what, el) => found.push(`${what}: ${el.tagName} ${el.textContent.trim().slice(0, 40)}`);
  const scrolls = el => ["auto", "scroll"].includes(getComputedStyle(el).overflowX);
  const wide = el => el.scrollWidth > el.clientWidth + 1;
  const content = document.querySelector(".content");  // which the theme lets scroll where a page is too wide
  for (const whole of [page, content]) if (whole.scrollWidth > whole.clientWidth) said("the page scrolls", whole);
  for (const el of document.querySelectorAll("article *")) {
    const style = getComputedStyle(el), box = el.getBoundingClientRect();
    if (!box.width || el.closest("math")) continue;
    if (["hidden", "clip"].includes(style.overflowX) && wide(el)) said("hidden", el);
    if (scrolls(el) && wide(el) && style.backgroundImage.split("linear-gradient").length < 5) said("no cue", el);
    let around = el.parentElement;
    while (around !== content && !scrolls(around)) around = around.parentElement;
    if (around === content && box.right > page.clientWidth + 1) said("outside", el);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def site(browser, pytestconfig, tmp_path_factory):
    """The folder of the pages, which are built after it is known that there is a browser."""
    if "COVALIGN_SITE" in os.environ:
        return Path(os.environ["COVALIGN_SITE"])
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    out = tmp_path_factory.mktemp("site")
    others = [page.name for page in (ROOT / "docs").glob("*.md") if page.stem not in SOME]
    excluded = ",".join(["_build", "_ext", "study/**", "api/**", *others])
    without = [] if is_thorough(pytestconfig) else ["-D", f"exclude_patterns={excluded}"]
    words = [sys.executable, "-m", "sphinx", "-q", "-b", "html", *without, str(ROOT / "docs"), str(out)]
    subprocess.run(words, check=True, capture_output=True)
    return out


@pytest.fixture
def tab(browser):
    return browser.tab()


def test_nothing_is_cut_off_on_any_page(site, tab, pytestconfig):
    pages = [file for file in sorted(site.rglob("*.html")) if file.stem not in ("search", "genindex")]
    assert {file.stem for file in pages} >= {*SOME}
    assert len(pages) > 20 or not is_thorough(pytestconfig)
    scrolled = 0
    for file in pages:
        tab.goto(file.as_uri())
        for width in WIDTHS:
            tab.set_viewport_size({"width": width, "height": 900})
            assert tab.evaluate(CUT_OFF) == [], f"{file.name} at {width} px"
        scrolled += tab.evaluate("() => [...document.querySelectorAll('.table-wrapper, pre')].length")
    assert scrolled > (100 if is_thorough(pytestconfig) else 30)  # there is something to be cut off


@pytest.mark.thorough  # the links lead to pages that make test does not build
def test_links_in_tables_stay_whole(site, tab):
    """The table of the first page says what to use: a name that is broken in two cannot be searched for."""
    tab.set_viewport_size({"width": 1400, "height": 900})
    tab.goto((site / "index.html").as_uri())
    names = tab.evaluate(
        "() => [...document.querySelectorAll('td a code')].filter(el => !el.textContent.includes(' '))"
        ".map(el => [el.textContent, getComputedStyle(el).overflowWrap, el.getClientRects().length])"
    )
    assert ["confounders=", "normal", 1] in names
    assert {(wrap, lines) for _, wrap, lines in names} == {("normal", 1)}


def test_what_is_cut_off_is_found(site, tab):
    tab.set_viewport_size({"width": 390, "height": 900})
    for style, says in (
        ("article pre { overflow-x: hidden !important; }", "hidden"),
        ("article pre { background: none !important; }", "no cue"),
        ("article p { width: 900px; }", "the page scrolls"),
    ):
        tab.goto((site / "architecture.html").as_uri())
        tab.evaluate(
            "text => document.head.append(Object.assign(document.createElement('style'), {textContent: text}))", style
        )
        assert any(line.startswith(says) for line in tab.evaluate(CUT_OFF)), says


def test_figures_are_dark_in_the_dark_and_as_drawn_in_the_light(site, tab):
    """On white they would glare. Photographs are not inverted."""
    for page, name, inverted in (("gallery", "frontier", True), ("tutorial_embeddings", "nearest_images", False)):
        tab.emulate_media(color_scheme="light")
        tab.goto((site / f"{page}.html").as_uri())
        filter_of = f"() => getComputedStyle(document.querySelector('article img[src*={name}]')).filter"
        assert tab.evaluate(filter_of) == "none"
        tab.emulate_media(color_scheme="dark")
        assert ("invert" in tab.evaluate(filter_of)) == inverted
        assert tab.evaluate(filter_of) != "none"


def test_text_has_one_size_in_all_figures_of_the_gallery(site, tab):
    """An inch of every figure has the same width on the page, so a letter has the same height."""
    tab.emulate_media(color_scheme="light")
    tab.set_viewport_size({"width": 1400, "height": 900})
    tab.goto((site / "gallery.html").as_uri())
    shown = tab.evaluate("() => [...document.querySelectorAll('article img')].map(e => [e.src, e.clientWidth])")
    assert len(shown) == len(re.findall(r"!\[", (ROOT / "docs" / "gallery.md").read_text())) > 10
    for source, width in shown:
        inches = inches_of(ROOT / "docs" / "img" / "gallery" / Path(source).name)
        assert width / inches == pytest.approx(96, rel=0.02), source


def inches_of(file: Path) -> float:
    """The width that the figure was drawn with."""
    images = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    with images.open(file) as image:
        return image.width / image.info["dpi"][0]
