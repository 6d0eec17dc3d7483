"""Figures of tables: variance explained, loadings, association with covariates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from covalign._core.messages import kind_of, listed, message
from covalign.show.plot.style import (
    BETWEEN,
    INK,
    LETTER,
    PAGE,
    REGIME_COLOURS,
    SHARE,
    SIGNED,
    axes_of,
    beside,
    colour_bar,
    colour_map,
    decimals,
    finish,
    fitting,
    name_rows,
    numbers_of,
    one_of,
    required,
    short,
    shorts,
    write_cells,
)

WRITTEN = 12  # with at most so many columns, numbers are written into the cells


class Block(NamedTuple):
    """A part of a heatmap: a heading (None: none), the numbers, their colours, and how they are written (None: not)."""

    heading: str | None
    grid: pd.DataFrame
    colours: str
    limits: tuple[float, float]
    write: Callable[[float], str] | None


def variance_explained(
    frame: pd.DataFrame, ax: Axes | None = None, *, totals: pd.Series | None = None, title: str | None = None
) -> Axes:
    """The share of each view's variance that each factor explains, and beside it the share of all factors together.

    ``frame`` is ``InformedFactorAnalysis.variance_explained()`` (views x factors), ``totals``
    ``total_variance_explained()``.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6, n_features={"rna": 20, "protein": 10})
    >>> fa = ca.InformedFactorAnalysis(6).fit(s.X, s.Y)
    >>> ax = ca.plot.variance_explained(fa.variance_explained(), totals=fa.total_variance_explained())
    """
    frame = required("variance_explained", frame, [], "variance_explained()", title)
    most = float(np.nanmax(frame.to_numpy(dtype=float), initial=0.0)) or 1.0
    blocks = [Block(None, frame, SHARE, (0.0, most), _percent)]
    ax = _sized(ax, blocks, beside=1.7 if totals is not None else 0.75, cell=0.36)
    (image,) = _stack(ax, blocks)
    if totals is not None:
        if not isinstance(totals, pd.Series):
            problem, remedy = "totals needs a Series of numbers", "pass what total_variance_explained() returns"
            raise ValueError(message(problem, got=kind_of(totals), remedy=remedy))
        totals = numbers_of("variance_explained", totals)
        absent = frame.index.difference(totals.index)
        if len(absent):
            problem = f"plot.variance_explained needs a total for every view, got none for {listed(absent)}"
            raise ValueError(message(problem, remedy="Pass what total_variance_explained() returns"))
        _bars(ax, totals.loc[frame.index])
    pad = 0.12 if totals is None else 1.05
    bar = colour_bar(ax, image, "variance explained", pad=pad)
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if most > 0.05 else 1))
    return _finish(ax, title, blocks, pad=8 if totals is None else 18)


def _bars(ax: Axes, totals: pd.Series) -> None:
    """Bars in line with the rows, their numbers behind them."""
    side, at = beside(ax, 0.85, 0.08), np.arange(len(totals))
    values = totals.to_numpy(dtype=float)
    most = max(float(np.nanmax(values, initial=0.0)), 0.01)
    side.barh(at, values, height=0.62, color=REGIME_COLOURS["independent"])
    for y, value in enumerate(values.tolist()):
        if np.isfinite(value):
            side.text(max(value, 0) + 0.04 * most, y, f"{_percent(value)} %", va="center", fontsize=7, color=INK)
    side.set_ylim(ax.get_ylim())
    side.set_xlim(0, 1.45 * most)
    side.axis("off")
    side.set_title("all factors", fontsize=7, pad=3, loc="left", color=INK)


def loadings(frame: pd.DataFrame, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Loadings of features (rows, by view) on factors.

    ``frame`` is ``InformedFactorAnalysis.loadings_frame(factors, n=5)``.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6, n_features={"rna": 20, "protein": 10})
    >>> fa = ca.InformedFactorAnalysis(6).fit(s.X, s.Y)
    >>> ax = ca.plot.loadings(fa.loadings_frame(n=3))
    """
    frame = required("loadings", frame, ["view", "feature", "factor", "loading"], "loadings_frame(n=5)", title)
    most = float(np.nanmax(np.abs(frame["loading"].to_numpy(dtype=float)), initial=0.0)) or 1.0
    blocks = [
        Block(short(view, 40), _wide(one, "feature", "factor", "loading"), SIGNED, (-most, most), None)
        for view, one in frame.groupby("view", sort=False)
    ]
    ax = _sized(ax, blocks, beside=0.8, cell=0.21)
    colour_bar(ax, _stack(ax, blocks)[0], "loading", bottom=max(0.0, 1 - 14 / _rows(blocks)))
    return _finish(ax, title, blocks)


def association(frame: pd.DataFrame, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Association of factors and covariates: correlations of numbers, eta squared of categories, each with its colours.

    ``frame`` is what ``metrics.association(Z, Y)`` returns; pairs without a value stay grey.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6)
    >>> fa = ca.InformedFactorAnalysis(6).fit(s.X, s.Y)
    >>> ax = ca.plot.association(ca.metrics.association(fa.factors_frame(), s.Y))
    """
    frame = required(
        "association", frame, ["factor", "covariate", "measure", "value"], "metrics.association(Z, Y)", title
    )
    looks = {
        "correlation": ("numbers: correlation", SIGNED, (-1.0, 1.0), "correlation"),
        "eta_squared": ("categories: η²", BETWEEN, (0.0, 1.0), "η², share between levels"),
    }
    one_of("association", frame["measure"], looks)
    blocks, labels = [], []
    for measure, (heading, colours, limits, label) in looks.items():
        one = frame[frame["measure"] == measure]
        if len(one):
            blocks.append(Block(heading, _wide(one, "covariate", "factor", "value"), colours, limits, decimals))
            labels.append(label)
    ax = _sized(ax, blocks, beside=0.85 * len(blocks), cell=0.3)
    for i, (image, label) in enumerate(zip(_stack(ax, blocks), labels, strict=True)):
        colour_bar(ax, image, label, pad=0.12 + 0.8 * i)
    return _finish(ax, title, blocks)


# -- cells ------------------------------------------------------------------------------------------------------------


def _sized(ax: Axes | None, blocks: list[Block], *, beside: float, cell: float) -> Axes:
    """Axes whose cells (so high, in inches) and names can be read, up to the size of a page."""
    columns = blocks[0].grid.shape[1]
    width = max(1.2, min(12.0, (0.36 if columns <= WRITTEN else 0.2) * columns))
    names = [short(name) for block in blocks for name in block.grid.index]
    left = max(LETTER * max(map(len, names)), 1.2 * LETTER * max(len(block.heading or "") for block in blocks))
    below = LETTER * max(len(short(name)) for name in blocks[0].grid.columns)
    return axes_of(ax, (left + width + beside + 0.2, min(PAGE, max(1.1, cell * _rows(blocks)) + below + 0.3)))


def _rows(blocks: list[Block]) -> float:
    return sum(len(block.grid) + (0.0 if block.heading is None else 1.2) for block in blocks)


def _wide(frame: pd.DataFrame, rows: str, columns: str, values: str) -> pd.DataFrame:
    """As a matrix, in order of appearance; rows that share a name stay apart."""
    again = frame.groupby([rows, columns], sort=False, dropna=False).cumcount()
    wide = frame.assign(again=again).pivot(index=[rows, "again"], columns=columns, values=values)
    order = pd.MultiIndex.from_arrays([frame[rows], again]).unique()
    return wide.reindex(order)[list(dict.fromkeys(frame[columns]))].droplevel(1)


def _stack(ax: Axes, blocks: list[Block]) -> list[Any]:
    """Blocks one below the other, a row for the heading above each; one unit is a cell."""
    rows: list[tuple[float, str, bool]] = []
    images, at = [], 0.0
    width = max(block.grid.shape[1] for block in blocks)
    for block in blocks:
        if block.heading is not None:
            rows.append((at + 0.1, block.heading, True))
            at += 1.0
        values = block.grid.to_numpy(dtype=float)
        edges = (-0.5, values.shape[1] - 0.5, at + len(values) - 0.5, at - 0.5)
        low, high = block.limits
        look = {"cmap": colour_map(block.colours), "vmin": low, "vmax": high, "interpolation": "nearest"}
        images.append(ax.imshow(np.ma.masked_invalid(values), extent=edges, aspect="auto", **look))
        if block.write is not None and values.shape[1] <= WRITTEN:
            write_cells(ax, values, block.write, max(abs(low), abs(high)), at)
        rows += [(at + i, name, False) for i, name in enumerate(shorts(block.grid.index))]
        at += len(values) + 0.2
    ax.set(xlim=(-0.5, width - 0.5), ylim=(at - 0.7, -0.5))
    name_rows(ax, rows)
    ax.set_xticks(range(width), shorts(blocks[0].grid.columns), rotation=90)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return images


def _finish(ax: Axes, title: str | None, blocks: list[Block], pad: float = 8) -> Axes:
    finish(ax, title, pad)
    ax.tick_params(axis="y", labelsize=fitting(_rows(blocks)))
    return ax


def _percent(value: float) -> str:
    share = 100 * value
    return f"{share:.0f}" if abs(share) >= 9.95 or abs(share) < 0.05 else f"{share:.1f}"
