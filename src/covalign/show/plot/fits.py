"""Figures of a fit: its bound, what was missing, the features of a factor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

from covalign._core.checks import check_flag
from covalign._core.messages import counted, listed, message
from covalign.show.plot.style import (
    CATEGORY_COLOURS,
    FAINT,
    INK,
    PAGE,
    PALE,
    REGIME_COLOURS,
    axes_of,
    colour_bar,
    finish,
    fitting,
    name_rows,
    required,
    short,
    shorts,
)

PRESENT = LinearSegmentedColormap.from_list("present", ["#EBEBEB", REGIME_COLOURS["independent"]])
APART = 60  # up to so many patterns are separated by lines


def bound(frame: pd.DataFrame, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """The distance of the bound from its last value after every sweep, on a logarithmic scale, and convergence.

    ``frame`` is ``InformedFactorAnalysis.bound_frame()``. The last sweep, at 0, is where the scale cannot reach.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6)
    >>> ax = ca.plot.bound(ca.InformedFactorAnalysis(6).fit(s.X, s.Y).bound_frame())
    """
    frame = required("bound", frame, ["sweep", "below_end", "converged"], "bound_frame()", title, ["sweep"])
    converged, sweeps = check_flag("converged", frame["converged"].iloc[-1]), int(frame["sweep"].iloc[-1])
    ax = axes_of(ax, (4.6, 3.0))
    colour = REGIME_COLOURS["independent" if converged else "strongest"]
    above = frame[frame["below_end"] > 0]
    dots: dict[str, Any] = {"marker": "o", "ms": 3.5} if len(above) <= 60 else {}
    ax.plot(above["sweep"], above["below_end"], color=colour, lw=1.6, **dots)
    if len(above):
        ax.set_yscale("log")
    else:
        ax.set_yticks([])
    said = f"{'converged' if converged else 'not converged'}, {counted(sweeps, 'sweep')}"
    ax.text(0.98, 0.96, said, transform=ax.transAxes, ha="right", va="top", fontsize=8, color=colour)
    ax.set_xlim(min(0.5, sweeps / 100), sweeps + max(0.5, sweeps / 50))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8, min_n_ticks=1))
    ax.set(xlabel="sweep", ylabel="nats below the last value")
    return finish(ax, title)


def missing(frame: pd.DataFrame, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Which samples have which views and covariates: samples with the same gaps are grouped, with counts.

    ``frame`` is ``InformedFactorAnalysis.missing_frame()``; colours are shares of cells that were observed.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6, n_covariates=2)
    >>> s.Y[:30, 0] = float("nan")
    >>> ax = ca.plot.missing(ca.InformedFactorAnalysis(6).fit(s.X, s.Y).missing_frame())
    """
    frame = required(
        "missing", frame, ["pattern", "samples", "kind", "name", "observed"], "missing_frame()", title, ["samples"]
    )
    if frame.duplicated(["pattern", "kind", "name"]).any() or frame["samples"].min() < 0:
        problem, got = (
            "plot.missing needs one row for every pattern and name",
            "several, or negative numbers of samples",
        )
        raise ValueError(message(problem, got=got, remedy="pass what missing_frame() returns"))
    sizes = frame.drop_duplicates("pattern").set_index("pattern")["samples"].round().astype(int)
    edges = np.concatenate([[0], np.cumsum(sizes.to_numpy())])
    kinds = [kind for kind in ("view", "covariate") if (frame["kind"] == kind).any()]
    count = len(frame[["kind", "name"]].drop_duplicates())
    ax = axes_of(ax, (6.4, 1.2 + 0.26 * (count + len(kinds))))
    named: list[tuple[float, str, bool]] = []
    at, image = 0.0, None
    for kind in kinds:
        named.append((at, f"{kind}s", True))
        one = frame[frame["kind"] == kind]
        rows = list(dict.fromkeys(one["name"]))
        grid = one.pivot(index="name", columns="pattern", values="observed").loc[rows, sizes.index]
        for name, shares in zip(shorts(rows), grid.to_numpy(dtype=float), strict=True):
            at += 1.0
            image = _band(ax, edges, at, shares)
            _beyond(ax, at, f"{int(sizes.to_numpy()[shares > 0].sum()):,}", INK)
            named.append((at, name, False))
        at += 1.2
    _beyond(ax, 0, "have it", FAINT)
    _count_patterns(ax, edges, sizes)
    ax.set(xlim=(0, edges[-1]), ylim=(at - 0.5, -0.6))
    name_rows(ax, named)
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.set_xlabel("samples, grouped by what is observed")
    bar = colour_bar(ax, image, "cells observed", pad=0.6)
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return finish(ax, title, pad=10)


def _band(ax: Axes, edges: Any, at: float, shares: Any) -> Any:
    """One table: a bar as long as the samples, in parts."""
    lines: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.6} if len(shares) <= APART else {"rasterized": True}
    look: dict[str, Any] = {"cmap": PRESENT, "vmin": 0.0, "vmax": 1.0}
    return ax.pcolormesh(edges, [at - 0.4, at + 0.4], shares[None, :], **look, **lines)


def _beyond(ax: Axes, at: float, text: str, colour: str) -> None:
    """Something said at the right of a row."""
    place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "va": "center"}
    ax.annotate(text, (1, at), xytext=(4, 0), fontsize=7, color=colour, **place)


def _count_patterns(ax: Axes, edges: Any, sizes: pd.Series) -> None:
    """How many samples a pattern has, where there is room for the number."""
    for left, size in zip(edges, sizes.tolist(), strict=False):
        if size >= 0.012 * edges[-1] * (len(f"{size:,}") + 1):
            ax.text(left + size / 2, 0, f"{size:,}", ha="center", va="center", fontsize=7, color=FAINT)


def top_features(frame: pd.DataFrame, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """The features of one factor in their given order, by view: loadings with two standard deviations.

    ``frame`` is ``InformedFactorAnalysis.loadings_frame(factor, n=10)``, or that of ``top_features(factor)``.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6, n_features={"rna": 20, "protein": 10})
    >>> fa = ca.InformedFactorAnalysis(6).fit(s.X, s.Y)
    >>> ax = ca.plot.top_features(fa.loadings_frame("y0", n=5))
    """
    frame = required("top_features", frame, ["feature", "loading", "std"], "loadings_frame('age', n=10)", title)
    if "factor" in frame and frame["factor"].nunique() > 1:
        problem = f"plot.top_features needs the loadings of one factor, got those of {listed(frame['factor'].unique())}"
        remedy = "Choose one, as in loadings_frame('age', n=10), or draw plot.loadings"
        raise ValueError(message(problem, remedy=remedy))
    blocks = list(frame.groupby("view", sort=False)) if "view" in frame else [(None, frame)]
    headings = len(blocks) if "view" in frame else 0
    ax = axes_of(ax, (4.2, min(PAGE, 0.9 + 0.19 * (len(frame) + 1.2 * headings))))
    ax.axvline(0, color=FAINT, lw=0.8, zorder=1)
    named: list[tuple[float, str, bool]] = []
    at = 0.0
    for i, (view, one) in enumerate(blocks):
        if view is not None:
            named.append((at, short(view, 40), True))
            at += 1
        y = at + np.arange(len(one))
        _whiskers(ax, one, y, CATEGORY_COLOURS[i % len(CATEGORY_COLOURS)])
        named += [(place, name, False) for place, name in zip(y, shorts(one["feature"]), strict=True)]
        at += len(one) + 0.4
    name_rows(ax, named)
    ax.set_ylim(at - 0.7, -0.7)
    factor = f" on {short(frame['factor'].iloc[0], 40)}" if "factor" in frame else ""
    ax.set_xlabel(f"loading{factor}, ± 2 s.d.")
    finish(ax, title)
    ax.tick_params(axis="y", length=0, labelsize=fitting(at))
    return ax


def _whiskers(ax: Axes, one: pd.DataFrame, y: Any, colour: str) -> None:
    loading, reach = one["loading"].to_numpy(dtype=float), 2 * one["std"].to_numpy(dtype=float)
    ax.hlines(y, 0, loading, color=PALE, lw=4, zorder=0)
    ax.hlines(y, loading - reach, loading + reach, color=colour, lw=1.4, zorder=3)
    ax.scatter(loading, y, s=26, color=colour, zorder=4)
