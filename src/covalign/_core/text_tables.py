"""Tables as text: plain, for a terminal, and Markdown.

>>> print(*plain(["view", "variance"], [("rna", 0.25), ("protein", None)]), sep="\\n")
view     variance
rna         0.250
protein         -
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def plain(header: Sequence[Any], rows: Iterable[Sequence[Any]], *, left: int = 1, text: bool = False) -> list[str]:
    """Lines with aligned columns: the first ``left`` columns to the left, the others to the right.

    An empty header gives a table without one. ``text`` says that the last column is text, which stands to the left.
    """
    cells = [[_cell(value) for value in row] for row in ([header] if header else []) + list(rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < left or (text and i == len(row) - 1) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def markdown(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; pipes inside cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    """Three decimals; a dash where there is no value."""
    if value is None or value != value:
        return "-"
    return f"{value + 0.0:.3f}" if isinstance(value, float) else str(value)  # + 0.0: no -0.000
