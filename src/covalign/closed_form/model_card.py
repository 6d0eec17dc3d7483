"""A fitted model as a notebook shows it: what was fitted, a row for each covariate, a small frontier, cautions.

The card is plain HTML without scripts. It takes the colours of the notebook, and all names are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd

MOST_COVARIATES = 25  # rows of a card
WIDTH, HEIGHT, LEFT, BELOW = 260, 150, 40, 34  # of the drawing, and of its margins
STYLE = (
    "<style>.covalign-card{font-size:90%;line-height:1.4}.covalign-card table{border-collapse:collapse;margin:.5em 0}"
    ".covalign-card td,.covalign-card th{padding:.1em .7em;text-align:right}.covalign-card th:first-child,"
    ".covalign-card td:last-child,.covalign-card th:last-child{text-align:left;overflow-wrap:anywhere;max-width:24em}"
    ".covalign-card .parts{display:flex;flex-wrap:wrap;gap:1.5em;align-items:center}</style>"
)


class Card(NamedTuple):
    """What is shown."""

    title: str
    facts: Sequence[str]
    covariates: pd.DataFrame  # in_sample, held_out, low, high, verdict; one row for each covariate
    frontier: pd.DataFrame  # coupling, alignment along lambda
    here: tuple[float, float]  # coupling and alignment of the model
    cautions: Sequence[str]


def html(card: Card) -> str:
    """The card as HTML."""
    facts = escape("; ".join(card.facts))
    cautions = "".join(f"<li>{escape(text)}</li>" for text in card.cautions)
    return (
        f'{STYLE}<div class="covalign-card"><b>{escape(card.title)}</b> {facts}'
        f'<div class="parts">{_table(card.covariates)}{_drawing(card.frontier, card.here)}</div>'
        f"{f'<ul>{cautions}</ul>' if cautions else ''}</div>"
    )


def _table(covariates: pd.DataFrame) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("covariate", "in sample", "held out", "90 %", "verdict"))
    first = covariates.iloc[:MOST_COVARIATES]
    numbers = first[["in_sample", "held_out", "low", "high"]].to_numpy(dtype=np.float64)
    rows = "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td>{_number(in_sample)}</td><td>{_number(held_out)}</td>'
        f"<td>{_interval(low, high)}</td><td>{escape(said)}</td></tr>"
        for name, (in_sample, held_out, low, high), said in zip(first.index, numbers, first["verdict"], strict=True)
    )
    more = len(covariates) - MOST_COVARIATES
    note = f"<caption>{more} more covariates in summary()</caption>" if more > 0 else ""
    return f"<table>{note}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _interval(low: float, high: float) -> str:
    return "–" if np.isnan(low) or np.isnan(high) else f"{low:.2f} to {high:.2f}"


def _drawing(frontier: pd.DataFrame, here: tuple[float, float]) -> str:
    """Alignment against coupling along lambda, and a dot for the model."""
    x, y = (np.append(frontier[name], at) for name, at in zip(("coupling", "alignment"), here, strict=True))
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return ""
    (x_0, x_1), (y_0, y_1) = _range(x), _range(y)
    across = LEFT + (x - x_0) / (x_1 - x_0) * (WIDTH - LEFT - 8)
    down = HEIGHT - BELOW - (y - y_0) / (y_1 - y_0) * (HEIGHT - BELOW - 8)
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across[:-1], down[:-1], strict=True))
    said = f"Alignment {here[1]:.2f} at a coupling of {here[0]:.2g}. Along lambda it goes from {y_0:.2f} to {y_1:.2f}."
    floor, foot = HEIGHT - BELOW, HEIGHT - BELOW + 14
    texts = [
        (LEFT - 4, 12, "end", f"{y_1:.2f}"),
        (LEFT - 4, floor, "end", f"{y_0:.2f}"),
        (LEFT, foot, "start", f"{x_0:.2g}"),
        (WIDTH - 8, foot, "end", f"{x_1:.2g}"),
        ((LEFT + WIDTH) / 2, HEIGHT - 4, "middle", "coupling (alignment upward)"),
    ]
    labels = "".join(f'<text x="{a:g}" y="{b:g}" text-anchor="{end}">{text}</text>' for a, b, end, text in texts)
    return (
        f'<svg role="img" aria-label="{said}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-size="11" fill="currentColor"><title>{said}</title>'
        f'<path d="M{LEFT} 4V{floor}H{WIDTH - 8}" fill="none" stroke="currentColor" opacity=".4"/>'
        f'<polyline points="{line}" fill="none" stroke="#2a78b8" stroke-width="2"/>'
        f'<circle cx="{across[-1]:.1f}" cy="{down[-1]:.1f}" r="4.5" fill="#d1495b"/>{labels}</svg>'
    )


def _range(values: np.typing.NDArray[np.float64]) -> tuple[float, float]:
    """The least and the largest value, apart even where all are equal; rounding below 0 is 0."""
    low, high = float(values.min()), float(values.max())
    low = 0.0 if abs(low) < 1e-9 else low
    return low, max(high, low + 0.01)
