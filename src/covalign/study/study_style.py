"""The style of the study's figures. Frames in, Axes out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.linalg import Array
from covalign.show.plot import style as plot_style  # without matplotlib, the error names the extra to install
from covalign.study.contenders import members, parameter
from covalign.study.label_places import spaced
from covalign.study.scores import LABELS

plt: Any = vars(plot_style)["plt"]
mpl: Any = vars(plot_style)["mpl"]
INK, COLOURS, STYLE = plot_style.INK, plot_style.CATEGORY_COLOURS, plot_style.STYLE

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


class Family(NamedTuple):
    """How the members of a family look: a part of a colour scale, the line that joins them, marker and names."""

    scale: str
    first: float
    last: float
    line: str
    marker: str
    title: str
    parameter: str

    def shade(self, i: int, count: int) -> Any:
        """The colour of the i-th of ``count`` members."""
        return plt.get_cmap(self.scale)(self.first + (self.last - self.first) * i / max(count - 1, 1))


# iFA stays away from the yellow end of its scale, which is near other methods; SOFA has reds, which no one else has.
FAMILIES = {
    "iFA": Family("viridis", 0.05, 0.8, "-", "o", r"iFA$_\lambda$", r"\lambda"),
    "SOFA": Family("Reds", 0.45, 0.98, ":", "p", "SOFA", r"\mathrm{sf}"),
}
LOG_FROM = 1.0  # coupling axes are linear up to here


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

    for kind, family in FAMILIES.items():
        inside = members(means.index, kind)
        if not inside:
            continue
        path = means.loc[[name for _, name in inside]]
        ax.plot(path[x], path[y], color=INK, lw=1.0, ls=family.line, zorder=3)
        for i, name in enumerate(path.index):
            point(name, family.shade(i, len(inside)), family.marker, None, 60)
        ends = dict.fromkeys([inside[0], inside[-1]])
        for value, name in [*ends] if len(ends) > 1 else []:
            text, where = f"${family.parameter}$ = {value:g}", means.loc[name]
            ax.annotate(text, (where[x], where[y]), xytext=(6, -10), textcoords="offset points", fontsize=7, zorder=5)
        between = " to ".join(f"{value:g}" for value, _ in ends)
        label = f"{family.title}, ${family.parameter}$ = {between}{fewer_runs(counts, path.index[0])}"
        ax.scatter(
            [],
            [],
            s=60,
            color=[family.shade(len(inside) // 2, len(inside))],
            edgecolor=INK,
            marker=family.marker,
            label=label,
        )
    for name, (colour, marker) in STYLES.items():
        if name in means.index:
            point(name, colour, marker, name + fewer_runs(counts, name), 110 if marker == "*" else 55)
    ax.set(xlabel=LABELS.get(x, x), ylabel=LABELS.get(y, y))
    return finish(ax, title)


def fewer_runs(counts: pd.Series, name: str, short: bool = False) -> str:
    """(1 run) or (2 runs), if other methods have more; (1) or (2) if it is to be short."""
    if counts[name] >= counts.max():
        return ""
    return f" ({counts[name]})" if short else f"  ({counts[name]} {'run' if counts[name] == 1 else 'runs'})"


def looks(names: Iterable[str]) -> dict[str, tuple[Any, str]]:
    """The colour and the marker of every method, families first."""
    names = set(names)
    shown: dict[str, tuple[Any, str]] = {}
    for kind, family in FAMILIES.items():
        inside = members(names, kind)
        shown |= {name: (family.shade(i, len(inside)), family.marker) for i, (_, name) in enumerate(inside)}
    return shown | {name: style for name, style in STYLES.items() if name in names}


def sweep(frame: pd.DataFrame, along: str, metric: str, axes: Sequence[Any]) -> None:
    """One metric against alpha or b: iFA on the first Axes, other methods on the second, with the range of iFA in grey.

    Lines are means, bands one standard deviation. Names stand at the ends of lines, with the number of runs if others
    have more.
    """
    table = summary(frame[frame["metric"] == metric], ["method", along])
    counts = table.groupby("method")["reps"].max()
    shown = {name: look for name, look in looks(frame["method"]).items() if name in counts}
    family = table[table["method"].isin([name for _, name in members(shown, "iFA")])].groupby(along)["mean"]
    axes[1].fill_between(family.min().index, family.min(), family.max(), color=plot_style.PALE, lw=0, zorder=0)
    for ax, ours in zip(axes, (True, False), strict=True):
        for name, (colour, marker) in shown.items():
            if name.startswith("iFA") == ours:
                one, line = table[table["method"] == name].sort_values(along), FRAMED if colour == "#FFFFFF" else colour
                look = {"mfc": colour, "marker": marker, "ms": 4, "mec": INK, "mew": 0.4, "lw": 1.3}
                band(ax, one[along], one["mean"], one["sd"].fillna(0), line, 0.12, label=name, **look)
        finish(ax)


def name_ends(ax: Any, counts: pd.Series, gap: float = 0.075) -> None:
    """The names of lines at their right ends, one above the other; call it when the scales of the axis are final."""
    ax.axis(ax.axis())  # limits are computed when they are asked for; now they stay
    lines = [line for line in ax.get_lines() if line.get_label() in counts.index]
    if not lines:
        return
    ends = np.array([(line.get_xdata()[-1], line.get_ydata()[-1]) for line in lines], dtype=np.float64)
    at = ax.transAxes.inverted().transform(ax.transData.transform(ends))
    for line, (x, y), place in zip(lines, at, spaced(at[:, 1], gap, 0.0, 1.0), strict=True):
        text = pretty(line.get_label(), short=True) + fewer_runs(counts, line.get_label(), short=True)
        look = {"fontsize": 6, "va": "center", "xycoords": "axes fraction", "annotation_clip": False}
        ax.annotate(text, (1.07, place), color=dark(line.get_color()), **look)
        ax.plot([x, 1.05], [y, place], transform=ax.transAxes, color=line.get_color(), lw=0.4, clip_on=False, zorder=1)


def dark(colour: Any) -> Any:
    """The colour, darkened if it is too pale for text on white."""
    rgb = np.array(mpl.colors.to_rgb(colour))
    return rgb * min(1.0, 0.6 / max(float(rgb @ [0.299, 0.587, 0.114]), 1e-9))


def band(ax: Any, x: Any, mean: Any, reach: Any, colour: Any, alpha: float, **line: Any) -> None:
    """A line and, around it, the band mean -+ reach (if there is one)."""
    ax.plot(x, mean, color=colour, **line)
    if reach is not None:
        ax.fill_between(x, mean - reach, mean + reach, color=colour, alpha=alpha, lw=0)


def pretty(name: str, short: bool = False) -> str:
    """A method's name for a legend; a short one has no name of its family, except for SOFA."""
    of = parameter(name)
    if of is None:
        return {"iFA (no T)": "no $T$", "iFA (ex)": r"$T_{\mathrm{ex}}$"}.get(name, name) if short else name
    if of[0] == "iFA":
        return rf"$\lambda$ = {of[1]:g}" if short else rf"iFA, $\lambda$ = {of[1]:g}"
    return f"SOFA {of[1]:g}" if short else f"SOFA, sf = {of[1]:g}"


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
    ax.set_xscale("symlog", linthresh=LOG_FROM, linscale=share)
    top = ax.get_xlim()[1]
    ticks = [tick for tick in (0, 0.5, 1, 2, 5, 10, 20) if tick <= top]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_locator(plt.NullLocator())
    ax.set_xlim(left=-0.1)
    if top > LOG_FROM:
        mark_break(ax)
    return ax


def mark_break(ax: Any) -> None:
    """A line where the scale becomes logarithmic, and what it is on both sides."""
    ax.axvline(LOG_FROM, color=plot_style.FAINT, lw=0.7, ls=(0, (2, 2)), zorder=1)
    look = {"fontsize": 7, "color": plot_style.FAINT, "textcoords": "offset points", "va": "bottom"}
    for text, away, side in (("linear scale", -4, "right"), ("logarithmic", 4, "left")):
        ax.annotate(text, (LOG_FROM, 0.0), xytext=(away, 3), xycoords=ax.get_xaxis_transform(), ha=side, **look)


def finish(ax: Any, title: str = "") -> Any:
    """The style of all figures, with the title as near as matplotlib puts it."""
    return plot_style.finish(ax, title, pad=6)


def colour_bar(figure: Any, image: Any, axes: Any, shrink: float) -> None:
    """One colour bar to the right of several Axes."""
    bar = figure.colorbar(image, ax=axes, shrink=shrink, pad=0.01)
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
