"""Draw the figure of docs/choosing.md: a decision tree from the purpose of a dimension to the regime.

python examples/choosing_picture.py --out docs/img
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from covalign.show.plot import FAINT, INK, REGIME_COLOURS, STYLE


class Way(NamedTuple):
    """A use of a dimension, its regime, and the code."""

    use: str
    regime: str
    code: str


WAYS = [
    Way("search, rank or predict", "strongest", 'regime="strongest"'),
    Way("change one covariate, without\nchanging predictions of others", "strongest", "lam=0.9 to 1, and steer(...)"),
    Way("compare dimensions, which\nmust be uncorrelated", "independent", 'regime="independent"'),
    Way("strong alignment with a\nlimited coupling", "tunable", "at(max_coupling=...)"),
    Way("I do not know yet", "tunable", "lam=0.5, look at frontier()"),
    Way("measure one covariate,\nuncorrelated with all others", "exclusive", 'regime="exclusive"'),
    Way(
        "see typical rows with more of it\n(other covariates change, too)",
        "exclusive",
        'regime="exclusive" and steer(...)',
    ),
]


def box(ax: Axes, x: float, y: float, width: float, height: float, colour: str, *, filled: bool = False) -> None:
    shape = FancyBboxPatch(
        (x, y - height / 2),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.12",
        edgecolor=colour,
        facecolor=colour if filled else "white",
        linewidth=1.2,
        zorder=2,
    )
    ax.add_patch(shape)


def line(ax: Axes, start: tuple[float, float], stop: tuple[float, float], colour: str) -> None:
    middle = start[0] + 0.25
    ax.plot([start[0], middle, middle, stop[0]], [start[1], start[1], stop[1], stop[1]], color=colour, lw=1.2, zorder=1)


def draw(ax: Axes) -> None:
    top = len(WAYS) - 1
    box(ax, 0, top / 2, 1.7, 1.3, INK, filled=True)
    ax.text(0.85, top / 2, "What will you\nuse a dimension\nfor?", ha="center", va="center", color="white", fontsize=11)
    for i, way in enumerate(WAYS):
        y, colour = top - i, REGIME_COLOURS[way.regime]
        line(ax, (1.7, top / 2), (2.2, y), FAINT)
        box(ax, 2.2, y, 3.1, 0.74, FAINT)
        ax.text(3.75, y, way.use, ha="center", va="center", color=INK, fontsize=10)
        ax.annotate("", (6.0, y), (5.3, y), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.4})
        box(ax, 6.0, y, 1.5, 0.6, colour, filled=True)
        ax.text(6.75, y, way.regime, ha="center", va="center", color="white", fontsize=11, weight="bold")
        ax.text(7.7, y, way.code, ha="left", va="center", color=INK, fontsize=9.5, family="monospace")
    ax.text(
        0,
        -0.95,
        "Exclusive does not exist if covariates are linearly dependent (for example all dummies of a category).\n"
        "Check the held-out alignment: if its interval contains 0, the dimension does not represent the covariate.",
        ha="left",
        va="center",
        color=INK,
        fontsize=9.5,
    )
    ax.set(xlim=(-0.1, 10.7), ylim=(-1.25, top + 0.55))
    ax.axis("off")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/img"))
    figure, ax = plt.subplots(figsize=(9.6, 5.6), layout="constrained")
    draw(ax)
    figure.savefig(parser.parse_args().out / "choosing.png", dpi=120)


if __name__ == "__main__":
    plt.style.use(STYLE)
    main()
