"""Dot plots: gene sets by factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from covalign._core.checks import check_count
from covalign.show.plot.style import (
    FAINT,
    INK,
    LETTER,
    PAGE,
    PALE,
    SIGNED,
    axes_of,
    colour_bar,
    colour_map,
    finish,
    fitting,
    legend_of,
    name_rows,
    required,
    short,
    shorts,
)

FOUND = 0.05  # a dot with a smaller q has a dark edge
SMALLEST = 1e-6  # dots of smaller q do not grow
LEGEND = (0.5, FOUND, 1e-3, SMALLEST)
PALEST = 3.0  # the least statistic with the darkest colour: what chance gives stays pale
LONGEST = 40  # letters of the name of a set


def enrichment(frame: pd.DataFrame, ax: Axes | None = None, *, n: int = 5, title: str | None = None) -> Axes:
    """Gene sets (rows, by view) and factors: colours are statistics, areas show q, a dark edge that q is below .05.

    ``frame`` is ``InformedFactorAnalysis.enrichment(gene_sets)``. Sets are shown that are among the ``n`` smallest p of
    any factor in their view.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6, n_features=40)
    >>> fa = ca.InformedFactorAnalysis(6).fit(s.X, s.Y)
    >>> ax = ca.plot.enrichment(fa.enrichment({"first": range(10), "second": range(10, 20)}))
    """
    columns = ["view", "factor", "set", "statistic", "p", "q"]
    frame = required("enrichment", frame, columns, "enrichment(gene_sets)", title)
    check_count("n", n)
    factors = list(dict.fromkeys(frame["factor"]))
    blocks = {str(view): _best(one, n) for view, one in frame.groupby("view", sort=False)}
    count = sum(len(sets) + 1.2 for sets in blocks.values())
    names = [short(name, LONGEST) for sets in blocks.values() for name in sets]
    left, below = LETTER * max(map(len, names)), LETTER * max(len(short(name)) for name in factors)
    width, height = max(1.2, min(12.0, 0.34 * len(factors))), max(2.4, 0.22 * count)
    ax = axes_of(ax, (left + width + 1.4, min(PAGE, height + below + 0.3)))
    ax.set_axisbelow(True)
    ax.grid(color=PALE, lw=0.8)
    rows: list[tuple[float, str, bool]] = []
    at, image = 0.0, None
    most = float(np.nanmax(frame["statistic"].abs().to_numpy(dtype=float), initial=PALEST))
    for view, sets in blocks.items():
        rows.append((at, short(view, LONGEST), True))
        place = {name: at + 1 + i for i, name in enumerate(sets)}
        shown = frame[(frame["view"] == view) & frame["set"].isin(sets)].dropna(subset=["statistic", "q"])
        image = _dots(ax, shown["factor"].map(factors.index), shown["set"].map(place), shown, most)
        rows += [(y, name, False) for y, name in zip(place.values(), shorts(sets, LONGEST), strict=True)]
        at += len(sets) + 1.2
    ax.set(xlim=(-0.6, len(factors) - 0.4), ylim=(at - 0.5, -0.6))
    name_rows(ax, rows)
    ax.set_xticks(range(len(factors)), shorts(factors), rotation=90)
    handles = [ax.scatter([], [], s=_area(q), color=FAINT, edgecolor=_edge(q), lw=0.8) for q in LEGEND]
    legend_of(ax, handles, ["0.5", "0.05", "0.001", "≤ 1e-6"], "q")
    colour_bar(ax, image, "statistic", pad=0.18, top=0.45)
    finish(ax, title)
    ax.tick_params(length=0)
    ax.tick_params(axis="y", labelsize=fitting(at))
    ax.spines[:].set_visible(False)
    return ax


def _best(one: pd.DataFrame, n: int) -> list[Any]:
    """Sets among the n smallest p of any factor, by the factor where p is smallest, the smallest first."""
    kept = set(one.sort_values("p", kind="stable").groupby("factor", sort=False).head(n)["set"])
    first = one[one["set"].isin(kept)].sort_values("p", kind="stable").drop_duplicates("set")
    order = first["factor"].map({name: i for i, name in enumerate(dict.fromkeys(one["factor"]))})
    return list(first.assign(order=order).sort_values("order", kind="stable")["set"])


def _dots(ax: Axes, x: pd.Series, y: pd.Series, shown: pd.DataFrame, most: float) -> Any:
    q = shown["q"].to_numpy(dtype=float)
    look: dict[str, Any] = {"cmap": colour_map(SIGNED), "vmin": -most, "vmax": most, "linewidth": 0.8}
    edges = [_edge(value) for value in q.tolist()]
    values = shown["statistic"].to_numpy(dtype=float)
    return ax.scatter(x.to_numpy(), y.to_numpy(), s=_area(q), c=values, edgecolor=edges, **look)


def _area(q: Any) -> Any:
    """In points squared: larger for smaller q."""
    return 6 + 16 * -np.log10(np.clip(q, SMALLEST, 1.0))


def _edge(q: float) -> str:
    return INK if q < FOUND else FAINT
