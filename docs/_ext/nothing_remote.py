"""Check that pages load no script, style, font or image from other sites. Links to other sites are allowed.

What is found is an error of the build, so that a new version of a theme cannot bring it in unseen.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

LOADED = [
    re.compile(r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"),
    re.compile(
        r"<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preload|icon|preconnect))[^>]*\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"
    ),
    re.compile(r"@import\s+(?:url\()?[\"']?((?:https?:)?//[^\"')\s]+)"),
    re.compile(r"url\([\"']?((?:https?:)?//[^\"')\s]+)"),
]


def remote(text: str) -> list[str]:
    """Addresses from which a browser would load something for this page or style."""
    return [address for pattern in LOADED for address in pattern.findall(text)]


def _check(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    files = [file for kind in ("*.html", "*.css") for file in sorted(Path(app.outdir).rglob(kind))]
    found = {str(file.relative_to(app.outdir)): remote(file.read_text(encoding="utf-8")) for file in files}
    loaded = [f"{name} loads {address}" for name, addresses in found.items() for address in addresses]
    if loaded:
        raise ExtensionError("pages should load nothing from elsewhere: " + "; ".join(loaded))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
