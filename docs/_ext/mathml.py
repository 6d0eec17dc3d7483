"""Translate equations to MathML when pages are built. Browsers show MathML without scripts, fonts or network.

An equation that cannot be translated is a warning, hence an error of ``make docs``.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)


class Untranslated(ValueError):
    """An equation cannot be translated correctly."""


def translated(latex: str, *, block: bool) -> str:
    """MathML of an equation. An unknown command is an error; the translator would show its name."""
    try:
        mathml = convert(latex, display="block" if block else "inline")
    except Exception as error:  # latex2mathml has a dozen classes of errors
        raise Untranslated(f"{type(error).__name__} in {latex}") from error
    unknown = re.findall(r"\\[A-Za-z]+", mathml)
    if unknown:
        raise Untranslated(f"{', '.join(sorted(set(unknown)))} is not known, in {latex}")
    if "<mi>&</mi>" in mathml or 'linebreak="newline"' in mathml:
        raise Untranslated(f"rows and columns need split, align*, array or matrix, in {latex}")
    rows = latex.count(r"\\") + latex.count(r"\begin")
    if mathml.count("<mtr>") != rows:
        raise Untranslated(f"{rows} rows became {mathml.count('<mtr>')}, in {latex}")
    return mathml


def _shown(node: nodes.Element, *, block: bool) -> str:
    try:
        return translated(node.astext(), block=block)
    except Untranslated as error:
        log.warning("equation cannot be set: %s", error, location=node)
        return f"<code>{nodes.unescape(node.astext())}</code>"


def visit_inline(translator: Any, node: nodes.Element) -> None:
    translator.body.append(_shown(node, block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.Element) -> None:
    translator.body.append(f'<div class="math-block">{_shown(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
