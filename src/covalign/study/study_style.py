"""How the study's figures look. Frames in, Axes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from covalign.show import plot  # its import says which extra to install
from covalign.study.scores import LABELS

plt: Any = vars(plot)["plt"]

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
INK = plot.INK
FRAMED = "#666666"  # the line of what is drawn as an empty circle


def family(name: str) -> tuple[str, float] | None:
    """("iFA", lambda) or ("SOFA", scaling factor), or None."""
    for start, kind in (("iFA (lam=", "iFA"), ("SOFA (sf=", "SOFA")):
        if name.startswith(start):
            return kind, float(name.removeprefix(start).rstrip(")"))
    return None


def members(names: Sequence[str], kind: str) -> list[tuple[float, str]]:
    """Of a family, by their parameter."""
    found = ((family(name), name) for name in names)
    return sorted((of[1], name) for of, name in found if of is not None and of[0] == kind)


def summary(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean, standard deviation and number of repetitions of every metric (columns: by, metric, mean, sd, reps)."""
    groups = frame.groupby([*by, "metric"], sort=False)["value"]
    return groups.agg(mean="mean", sd="std", reps="count").reset_index()


def trade_off(frame: pd.DataFrame, ax: Any, *, x: str = "coupling", y: str = "alignment", title: str = "") -> Any:
    """Methods in the plane of two metrics: means outlined, repetitions faint behind; families joined by a line."""
    wide = frame[frame["metric"].isin([x, y])].pivot_table(
        index=["method", "rep", *(["fold"] if "fold" in frame else [])], columns="metric", values="value"
    )
    means, names = wide.groupby("method").mean(), list(dict.fromkeys(frame["method"]))
    drawn = {"iFA": plt.get_cmap("viridis"), "SOFA": plt.get_cmap("autumn")}
    for kind, scale in drawn.items():
        inside = [(value, name) for value, name in members(names, kind) if name in means.index]
        if not inside:
            continue
        path = means.loc[[name for _, name in inside]]
        ax.plot(path[x], path[y], color=INK, lw=1.0, ls="-" if kind == "iFA" else ":", zorder=3)
        for i, (_, name) in enumerate(inside):
            colour = scale(0.08 + 0.84 * i / max(len(inside) - 1, 1))
            _point(ax, wide.loc[name], means.loc[name], x, y, colour, "o" if kind == "iFA" else "p", None, 60)
        label = r"iFA$_\lambda$" if kind == "iFA" else "SOFA"
        colour = scale(0.5)
        ends = " to ".join(f"{value:g}" for value in dict.fromkeys([inside[0][0], inside[-1][0]]))
        letter = r"\lambda" if kind == "iFA" else r"\mathrm{sf}"
        ax.scatter(
            [],
            [],
            s=60,
            color=[colour],
            edgecolor=INK,
            marker="o" if kind == "iFA" else "p",
            label=f"{label}, ${letter}$ = {ends}{_repetitions(wide, inside[0][1], wide)}",
        )
    for name, (colour, marker) in STYLES.items():
        if name in means.index:
            label = name + _repetitions(wide, name, wide)
            _point(ax, wide.loc[name], means.loc[name], x, y, colour, marker, label, 110 if marker == "*" else 55)
    ax.set_xlabel(LABELS.get(x, x))
    ax.set_ylabel(LABELS.get(y, y))
    return _finish(ax, title)


def _repetitions(wide: pd.DataFrame, name: str, whole: pd.DataFrame) -> str:
    """How many runs a mean is of, where it is fewer than the others'."""
    counts = whole.groupby("method").size()
    return f"  ({runs(counts[name])})" if counts[name] < counts.max() else ""


def runs(count: int) -> str:
    """1 run, 2 runs."""
    return f"{count} run" if count == 1 else f"{count} runs"


def _point(ax: Any, each: Any, mean: Any, x: str, y: str, colour: Any, marker: str, label: Any, s: float) -> None:
    ax.scatter(each[x], each[y], s=s / 4, color=[colour], marker=marker, alpha=0.45, linewidth=0, zorder=2)
    ax.scatter(
        mean[x], mean[y], s=s, color=[colour], marker=marker, edgecolor=INK, linewidth=0.9, zorder=4, label=label
    )


def sweep(frame: pd.DataFrame, along: str, metric: str, ax: Any) -> Any:
    """One metric of every method against alpha or b: mean and one standard deviation."""
    table = summary(frame[frame["metric"] == metric], ["method", along])
    names = list(dict.fromkeys(frame["method"]))
    scale, lams = plt.get_cmap("viridis"), [name for _, name in members(names, "iFA")]
    shown = {name: (scale(0.08 + 0.84 * i / max(len(lams) - 1, 1)), "o") for i, name in enumerate(lams)}
    sofa = members(names, "SOFA")
    shown |= {name: (plt.get_cmap("autumn")(0.84 * i / max(len(sofa) - 1, 1)), "p") for i, (_, name) in enumerate(sofa)}
    shown |= {name: style for name, style in STYLES.items() if name in names}
    for name, (colour, marker) in shown.items():
        one = table[table["method"] == name].sort_values(along)
        ours = name.startswith("iFA")
        ax.plot(
            one[along],
            one["mean"],
            color=FRAMED if colour == "#FFFFFF" else colour,
            mfc=colour,
            marker=marker,
            ms=4,
            lw=1.8 if ours else 0.9,
            mec=INK,
            mew=0.4,
            zorder=4 if ours else 2,
            label=pretty(name),
        )
        if ours:
            low, high = one["mean"] - one["sd"].fillna(0), one["mean"] + one["sd"].fillna(0)
            ax.fill_between(one[along], low, high, color=FRAMED if colour == "#FFFFFF" else colour, alpha=0.12, lw=0)
    ax.set_title(LABELS[metric], fontsize=8, loc="left")
    return _finish(ax)


def pretty(name: str) -> str:
    """A method's name for a legend."""
    of = family(name)
    if of is None:
        return name
    return rf"iFA, $\lambda$ = {of[1]:g}" if of[0] == "iFA" else f"SOFA, sf = {of[1]:g}"


def heatmap(ax: Any, values: Any, title: str = "", rows: Sequence[str] = (), columns: Sequence[str] = ()) -> Any:
    """A matrix of correlations, white at zero."""
    values = np.asarray(values)
    image = ax.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    ax.set_xticks(range(len(columns)), columns, rotation=90, fontsize=6)
    ax.set_yticks(range(len(rows)), rows, fontsize=6)
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


def _finish(ax: Any, title: str = "") -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    if title:
        ax.set_title(title, loc="left", fontsize=10)
    return ax
