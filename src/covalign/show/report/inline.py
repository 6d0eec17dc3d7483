"""The report inside a notebook."""

from __future__ import annotations

import html
from typing import Any

from covalign._core.checks import check_count, check_text
from covalign.show.report.document import page, summary


class Inline:
    """A page in a frame of its own, so that its styles and scripts leave the notebook alone."""

    def __init__(self, text: str, title: str, height: int) -> None:
        self.text, self.title, self.height = text, title, height

    def _repr_html_(self) -> str:
        title, text = html.escape(self.title), html.escape(self.text)
        allowed = 'sandbox="allow-scripts allow-downloads"'
        style = f'style="width:100%;height:{self.height}px;border:0"'
        return f'<iframe title="{title}" {allowed} {style} srcdoc="{text}"></iframe>'

    def __repr__(self) -> str:
        """Text for where HTML cannot be shown."""
        return f"{self.title} (a notebook shows it; report.write writes it to a file)"


def show(model: Any, *, title: str = "covalign report", height: int = 800, gene_sets: Any = None) -> Inline:
    """The report of a fitted model, live inside a notebook, as the last expression of a cell.

    ``height`` is that of the frame in pixels. ``report.write`` writes the same page to a file, and says what
    ``gene_sets`` are.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> ca.report.show(ca.LatentAligner().fit(s.Z, s.Y), title="Mice")
    Mice (a notebook shows it; report.write writes it to a file)
    """
    height = check_count("height", height, remedy="it is that of the frame in pixels, for example 800")
    title = check_text("title", title, "it is the heading of the report")
    return Inline(page(summary(model, gene_sets), title), title, height)
