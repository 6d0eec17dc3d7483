"""The style of the study's figures. Frames in, Axes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.linalg import Array
from covalign.show.plot import style as plot_style  # without matplotlib, the error names the extra to install
from covalign.study.contenders import members, parameter
from covalign.study.scores import LABELS

plt: Any = vars(plot_style)["plt"]
INK, COLOURS = plot_style.INK, plot_style.CATEGORY_COLOURS

# Okabe and Ito's colours; the iFA family has its own scale along lambda.
STYLES: dict[str, tuple[str, str]] = {
    "PCA": ("#999999", "s"),
    "MOFA": ("#000000", "D"),
    "PLS": ("#56B4E9", "^"),
    "SPCA (Bair)": ("#E69F00", "v"),
    "SPCA (Barshan)": ("#F0E442", "<"),
    "iVAE": ("#CC79A7", ">"),
    "Y as factors": ("#D55E00", "*"),
    "MOFA-FLEX": ("#009E73", "P"),
    "MuVI": ("#8C6D31", "X"),
    "iFA (no T)": ("#FFFFFF", "o"),
    "iFA (ex)": ("#B5A7D6", "h"),
}
FRAMED = "#666666"  # the line of a method whose points are white
# Of the two families: colour scale, where it starts in a sweep, line, marker, name, parameter.
FAMILIES = {
    "iFA": ("viridis", 0.08, "-", "o", r"iFA$_\lambda$", r"\lambda"),
    "SOFA": ("autumn", 0.0, ":", "p", "SOFA", r"\mathrm{sf}"),
}


def summary(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean, standard deviation and number of repetitions of every metric (columns: by, metric, mean, sd, reps)."""
    groups = frame.groupby([*by, "metric"], sort=False)["value"]
    return groups.agg(mean="mean", sd="std", reps="count").reset_index()


def trade_off(frame: pd.DataFrame, ax: Any, *, x: str = "coupling", y: str = "alignment", title: str = "") -> Any:
    """Methods in the plane of two metrics: means outlined, repetitions faint behind; families joined by a line."""
    wide = frame[frame["metric"].isin([x, y])].pivot_table(
        index=["method", "rep", *(["fold"] if "fold" in frame else [])], columns="metric", values="value"
    )
    means, counts = wide.groupby("method").mean(), wide.groupby("method").size()

    def point(name: str, colour: Any, marker: str, label: str | None, s: float) -> None:
        each, mean = wide.loc[name], means.loc[name]
        ax.scatter(each[x], each[y], s=s / 4, color=[colour], marker=marker, alpha=0.45, linewidth=0, zorder=2)
        outlined = {"edgecolor": INK, "linewidth": 0.9, "zorder": 4, "label": label}
        ax.scatter(mean[x], mean[y], s=s, color=[colour], marker=marker, **outlined)

    for kind, (scale, _, line, marker, title_of, letter) in FAMILIES.items():
        inside = members(means.index, kind)
        if not inside:
            continue
        path = means.loc[[name for _, name in inside]]
        ax.plot(path[x], path[y], color=INK, lw=1.0, ls=line, zorder=3)
        for i, name in enumerate(path.index):
            point(name, _shade(scale, 0.08, i, len(inside)), marker, None, 60)
        ends = " to ".join(f"{value:g}" for value in dict.fromkeys([inside[0][0], inside[-1][0]]))
        label = f"{title_of}, ${letter}$ = {ends}{fewer_runs(counts, path.index[0])}"
        ax.scatter([], [], s=60, color=[plt.get_cmap(scale)(0.5)], edgecolor=INK, marker=marker, label=label)
    for name, (colour, marker) in STYLES.items():
        if name in means.index:
            point(name, colour, marker, name + fewer_runs(counts, name), 110 if marker == "*" else 55)
    ax.set(xlabel=LABELS.get(x, x), ylabel=LABELS.get(y, y))
    return finish(ax, title)


def _shade(scale: str, first: float, i: int, count: int) -> Any:
    """The colour of the i-th of ``count`` members of a family."""
    return plt.get_cmap(scale)(first + 0.84 * i / max(count - 1, 1))


def fewer_runs(counts: pd.Series, name: str) -> str:
    """(1 run) or (2 runs), if other methods have more."""
    return f"  ({counts[name]} {'run' if counts[name] == 1 else 'runs'})" if counts[name] < counts.max() else ""


def sweep(frame: pd.DataFrame, along: str, metric: str, ax: Any) -> Any:
    """One metric of every method against alpha or b: mean and one standard deviation."""
    table = summary(frame[frame["metric"] == metric], ["method", along])
    shown: dict[str, tuple[Any, str]] = {}
    for kind, (scale, first, _, marker, *_) in FAMILIES.items():
        inside = members(frame["method"], kind)
        shown |= {name: (_shade(scale, first, i, len(inside)), marker) for i, (_, name) in enumerate(inside)}
    shown |= {name: style for name, style in STYLES.items() if name in set(frame["method"])}
    for name, (colour, marker) in shown.items():
        one = table[table["method"] == name].sort_values(along)
        ours, line = name.startswith("iFA"), FRAMED if colour == "#FFFFFF" else colour
        look = {"mfc": colour, "marker": marker, "ms": 4, "mec": INK, "mew": 0.4, "label": pretty(name)}
        look |= {"lw": 1.8, "zorder": 4} if ours else {"lw": 0.9, "zorder": 2}
        band(ax, one[along], one["mean"], one["sd"].fillna(0) if ours else None, line, 0.12, **look)
    ax.set_title(LABELS[metric], fontsize=8, loc="left")
    return finish(ax)


def band(ax: Any, x: Any, mean: Any, reach: Any, colour: Any, alpha: float, **line: Any) -> None:
    """A line and, around it, the band mean -+ reach (if there is one)."""
    ax.plot(x, mean, color=colour, **line)
    if reach is not None:
        ax.fill_between(x, mean - reach, mean + reach, color=colour, alpha=alpha, lw=0)


def pretty(name: str) -> str:
    """A method's name for a legend."""
    of = parameter(name)
    if of is None:
        return name
    return rf"iFA, $\lambda$ = {of[1]:g}" if of[0] == "iFA" else f"SOFA, sf = {of[1]:g}"


def heatmap(ax: Any, values: Array, title: str = "") -> Any:
    """A matrix of correlations, white at zero."""
    image = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if values.size <= 36:
        for (i, j), value in np.ndenumerate(values):
            text = f"{value:.2f}".replace("-0.00", "0.00")
            ax.text(j, i, text, ha="center", va="center", fontsize=5.5, color="white" if abs(value) > 0.6 else INK)
    if title:
        ax.set_title(title, fontsize=8)
    return image


def coupling_axis(ax: Any, share: float = 1.0) -> Any:
    """Linear up to 1, logarithmic beyond, with plain numbers: most of the difference is near zero.

    ``share`` is the width of the linear part in decades of the other.
    """
    ax.set_xscale("symlog", linthresh=1.0, linscale=share)
    top = ax.get_xlim()[1]
    ticks = [tick for tick in (0, 0.5, 1, 2, 5, 10, 20) if tick <= top]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_locator(plt.NullLocator())
    ax.set_xlim(left=-0.1)
    return ax


def finish(ax: Any, title: str = "") -> Any:
    """The style of all figures, with the title as near as matplotlib puts it."""
    return plot_style.finish(ax, title, pad=6)


def colour_bar(figure: Any, image: Any, axes: Any, shrink: float) -> None:
    """One colour bar to the right of several Axes."""
    bar = figure.colorbar(image, ax=axes, shrink=shrink, pad=0.01)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
