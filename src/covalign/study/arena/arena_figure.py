"""The figure of the arena: how often every method wins, and how far it is behind the best on every data set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from covalign.study.arena.entrants import FEATURES, THEN_T
from covalign.study.arena.standings import TIE
from covalign.study.study_style import COLOURS, INK, finish, plt

FARTHEST = 0.2  # areas this far behind the best have the darkest colour
OURS = ("iFA", FEATURES)
KINDS = {"ours": COLOURS[0], "another method, then T": COLOURS[2], "another method, alone": "#777777"}


def arena_figure(areas: pd.DataFrame, ranks: pd.DataFrame) -> Any:
    """Two Axes with the same methods: expected wins with their intervals, and distances to the best; best are marked.

    ``areas`` has data sets as rows and methods as columns; ``ranks`` is what ``standings`` returns.
    """
    order = ranks["method"].tolist()
    size = (3.6 + 0.5 * len(areas) + 2.4, 1.6 + 0.27 * len(order))
    figure, axes = plt.subplots(
        1, 2, figsize=size, sharey=True, width_ratios=[2.6, 0.5 * len(areas)], layout="constrained"
    )
    shares(ranks, axes[0])
    image = distances(areas[order], axes[1])
    axes[0].set_ylim(len(order) - 0.4, -0.6)
    enough = int((~ranks["few"]).sum())
    if 0 < enough < len(order):
        for ax in axes:
            ax.axhline(enough - 0.5, color=INK, lw=1.0)
        below = {"fontsize": 7, "ha": "left", "va": "top", "xycoords": axes[0].get_yaxis_transform()}
        axes[0].annotate("not ranked: few data sets", (0.02, enough - 0.45), **below)
    keys = [plt.Line2D([], [], color=colour, marker="o", label=label) for label, colour in KINDS.items()]
    figure.legend(handles=keys, loc="outside lower left", ncols=3, frameon=False, fontsize=8)
    bar = figure.colorbar(image, ax=axes[1], shrink=0.6, pad=0.02, extend="max")
    bar.set_label("area behind the best", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    return axes


def kind(name: str) -> str:
    """Ours, another method with T, or another method alone."""
    ours, with_t, alone = KINDS
    return ours if name.startswith(OURS) else with_t if name.endswith(THEN_T) else alone


def shares(ranks: pd.DataFrame, ax: Any) -> None:
    """A dot and an interval for every method."""
    at = np.arange(len(ranks))
    colours = [KINDS[kind(name)] for name in ranks["method"]]
    ax.hlines(at, ranks["low"], ranks["high"], color=colours, lw=1.6)
    ax.scatter(ranks["wins"], at, color=colours, s=26, zorder=3)
    names = [f"{name}  ({count})" for name, count in zip(ranks["method"], ranks["data"], strict=True)]
    ax.set_yticks(at, names, fontsize=8)
    for text, colour in zip(ax.get_yticklabels(), colours, strict=True):
        text.set_color(colour)
    ax.axvline(0.5, color="#CCCCCC", lw=0.8, zorder=0)
    ax.set_xlim(0, 1)
    ax.set_xlabel("expected share of wins", fontsize=8)
    finish(ax, "Method (data sets)")


def distances(areas: pd.DataFrame, ax: Any) -> Any:
    """A cell for every data set and method: grey where a method has no number, a dot where it is among the best."""
    behind = areas.rsub(areas.max(axis=1), axis=0).T.to_numpy()
    scale = plt.get_cmap("YlOrBr").with_extremes(bad="#E3E3E3")
    image = ax.imshow(np.ma.masked_invalid(behind), cmap=scale, vmin=0, vmax=FARTHEST, aspect="auto")
    y, x = np.nonzero(behind <= TIE)
    ax.scatter(x, y, s=12, color=INK)
    ax.set_xticks(np.arange(len(areas)), areas.index, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
    ax.tick_params(length=0)
    finish(ax, "Distance to the best (dot: best or within .005; grey: no number)")
    ax.spines[:].set_visible(False)
    return image
