"""Tables as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(header: Sequence[str], body: Iterable[Sequence[object]]) -> str:
    """A table; pipes inside cells are escaped."""
    lines = [header, ["---"] * len(header), *body]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
