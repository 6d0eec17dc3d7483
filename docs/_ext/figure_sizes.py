"""Show every figure at the size it was drawn at, so that text has the same size in all of them.

A PNG file says how many pixels make an inch, if the program that wrote it does. An inch is 96 pixels of CSS. Wider
figures shrink to the width of the page (covalign.css), and pictures without such a number stay as they are.
"""

from __future__ import annotations

import struct
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

CSS_INCH, METRE = 96, 0.0254


def width_of(file: Path) -> int | None:
    """The width in pixels of CSS; None where the file does not say it."""
    content = file.read_bytes()
    at = content.find(b"pHYs", 0, 4096)
    if not content.startswith(b"\x89PNG") or at < 0:
        return None
    pixels, (per_metre, _, unit) = (
        struct.unpack(">I", content[16:20])[0],
        struct.unpack(">IIB", content[at + 4 : at + 13]),
    )
    return round(pixels / (per_metre * METRE) * CSS_INCH) if unit == 1 and per_metre else None


def _resize(app: Sphinx, doctree: nodes.document) -> None:
    for image in doctree.findall(nodes.image):
        file = Path(app.srcdir) / image["uri"]
        width = width_of(file) if file.suffix == ".png" and file.exists() and "width" not in image else None
        if width is not None:
            image["width"] = f"{width}px"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", _resize)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
