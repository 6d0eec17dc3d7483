"""Docstrings here are plain text with ``code``, equations and doctests; Sphinx would read them as reStructuredText.

There ``T_`` is a link, ``|corr|`` a substitution and ``*`` the begin of emphasis. So these are escaped, outside of code
and examples; indented lines (equations, mostly) are shown as they stand; and sections with names and their meaning
become lists that keep the names as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx

OF_NAMES = {"Parameters", "Attributes"}
CODE = re.compile(r"(``.+?``|\*\*[A-Z][^*]*\*\*)")  # and **Headings.** of paragraphs
SPECIAL = re.compile(r"([\\*|_`])")


def plain(lines: list[str]) -> list[str]:
    """The docstring as reStructuredText, shown as it is written."""
    out: list[str] = []
    section = ""
    for paragraph in _paragraphs(lines):
        if len(paragraph) > 1 and re.fullmatch(r"-{3,}", paragraph[1].strip()):
            section, paragraph = paragraph[0].strip(), paragraph[2:]
            out += [f".. rubric:: {section}", ""]
        if paragraph[0].lstrip().startswith(">>>"):
            out += paragraph
        elif section in OF_NAMES:
            for line in paragraph:
                out += [escaped(line)] if line.startswith(" ") else ["", _term(line)]
        elif paragraph[0].startswith(" "):
            out += ["::", "", *paragraph]
        else:
            out += [escaped(line) for line in paragraph]
        out.append("")
    return out


def _term(line: str) -> str:
    """``name : description``, or only names."""
    names, colon, kind = line.partition(" : ")
    return f"``{names}``{colon}{escaped(kind)}"


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    found: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            found.append(line)
        elif found:
            yield found
            found = []


def escaped(line: str) -> str:
    """Escape everything that is not ``code``."""
    return "".join(part if CODE.fullmatch(part) else SPECIAL.sub(r"\\\1", part) for part in CODE.split(line))


def _process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = plain(lines)


def _signature(
    app: Any, what: str, name: str, thing: Any, options: Any, arguments: str | None, returns: str | None
) -> Any:
    """Sphinx shows an alias within a union by its own wrapper."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (arguments, returns))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-process-signature", _signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
