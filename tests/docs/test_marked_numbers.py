"""Measured numbers of the README and the pages stand beside the command that gives them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(
    r"(?<![\w`/.])\d[\d,]*(?:\.\d+)?\s(?:s|ms|seconds|MB|GB|times|nats)\b"  # with a unit
    r"|(?<![\w`/.])\d+(?:\.\d+)?\s?%"
    r"|(?<![\w`/.])\.\d{2,}\b"  # a correlation, as in .93
)
DEFINED = re.compile(r"90\s?%")  # the level of all intervals
COMMAND = re.compile(r"`?(?:make|covalign|python) [a-z]+|(?:benchmarks|examples|tests)/[\w/]+\.py")
WRITTEN = {"arena.md", "claims.md", "gallery.md"}  # by a command; other tests compare them with their results
OUTPUT = re.compile(r"```.*?```", re.DOTALL)  # code and its output, which tests run
# Sections whose numbers were measured once, by no command that is here. Nothing may be added.
UNMARKED = {
    ("choosing.md", "Which lambda"),  # arithmetic: sqrt(.5 / 20), sqrt(.5 / 380)
    ("held_out.md", "How a number is computed"),
    ("held_out.md", "Few labels"),
    ("mathematics.md", "The exact trade-off"),
    ("mathematics.md", "Units"),
    ("mathematics.md", "Supervision"),  # limits, not measurements
    ("mathematics.md", "What K factors lack"),  # shares that are compared, not measurements
    ("reliability.md", "Interrupted and killed runs"),  # limits
    ("reliability.md", "Memory"),
}


def unmarked(text: str, mark: str) -> list[str]:
    """Titles of the parts that have numbers and name no command; headings of the level ``mark`` begin a part."""
    parts = re.split(rf"(?m)^{mark} ", OUTPUT.sub("", text))
    measured = [part for part in parts if any(not DEFINED.fullmatch(one) for one in NUMBER.findall(part))]
    return [part.partition("\n")[0] for part in measured if not COMMAND.search(part)]


def test_sections_of_the_pages_name_the_command_of_their_numbers():
    pages = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in {*WRITTEN, "notes.md"}]
    found = {(page.name, title) for page in pages for title in unmarked(page.read_text(), "##")}
    assert found == UNMARKED


def test_paragraphs_of_the_readme_name_the_command_of_their_numbers():
    paragraphs = OUTPUT.sub("", (ROOT / "README.md").read_text()).split("\n\n")
    measured = [text for text in paragraphs if any(not DEFINED.fullmatch(one) for one in NUMBER.findall(text))]
    assert len(measured) >= 4
    assert [text for text in measured if not COMMAND.search(text) and not text.startswith("|")] == []


@pytest.mark.parametrize(
    ("text", "expected"), [("## A\n\nIt takes 3 s.", ["A"]), ("## A\n\n`make bench`: 3 s.", []), ("## A\n\nK = 3.", [])]
)
def test_a_number_without_a_command_is_found(text, expected):
    assert unmarked(text, "##") == expected
