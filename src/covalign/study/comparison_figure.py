"""The figure of a comparison: alignment against coupling, with the name and time of every method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from covalign.study import label_places as labels
from covalign.study.study_style import INK, coupling_axis, plt, pretty

# Colours of Okabe and Ito: ours are the two cool ones with round and square points, others are warm or grey.
STYLES = {
    "iFA": ("#0072B2", "o", "iFA"),
    "aligner": ("#009E73", "s", "alignment of PCs or of the representation"),
    "classical": ("#6F6F6F", "^", "classical and neural"),
    "package": ("#D55E00", "D", "published packages"),
}
SIZE = 58
GAP = 5.0  # points between a name and its neighbours


def comparison(frame: pd.DataFrame) -> Any:
    """Two Axes: the plane of coupling and alignment, and seconds per fit.

    ``frame`` is what ``covalign.study.comparison.compare`` returns. In sample is hollow, held out is filled.
    """
    frame = frame[frame["alignment"].notna()]
    height = max(5.2, 1.4 + 0.24 * len(frame))
    figure, axes = plt.subplots(1, 2, figsize=(12.5, height), width_ratios=[2.1, 1], layout="constrained")
    plane(frame, axes[0])
    seconds(frame, axes[1])
    figure.legend(handles=keys(frame), loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    name_points(frame, axes[0])
    return axes


def plane(frame: pd.DataFrame, ax: Any) -> None:
    """Hollow and filled points, joined."""
    for _, row in frame.iterrows():
        colour, marker, _ = STYLES[row["family"]]
        style = {"s": SIZE, "marker": marker, "edgecolor": colour, "linewidth": 1.4}
        ax.scatter(row["coupling"], row["alignment"], facecolor="white", zorder=3, **style)
        if pd.notna(row["held_out_alignment"]):
            x, y = (row["coupling"], row["held_out_coupling"]), (row["alignment"], row["held_out_alignment"])
            ax.plot(x, y, color=colour, lw=0.8, alpha=0.6, zorder=2)
            ax.scatter(x[1], y[1], facecolor=colour, zorder=4, **{**style, "edgecolor": "white", "linewidth": 0.7})
    ax.margins(0.08, 0.08)
    coupling_axis(ax, share=2.0)
    ax.set_xlabel(r"coupling  $\|\mathrm{corr}(\tilde z) - I\|_F^2$   (0: independent)", fontsize=11)
    ax.set_ylabel(r"mean alignment  corr$(\tilde z_p, y_p)$", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)


def seconds(frame: pd.DataFrame, ax: Any) -> None:
    """A dot for every method, in the order of the table."""
    at, looks = np.arange(len(frame))[::-1], [STYLES[family] for family in frame["family"]]
    spent = frame["seconds"].clip(lower=1e-3)
    ax.hlines(at, spent.min() / 2, spent, color="#DDDDDD", lw=1.2, zorder=1)
    for y, x, (colour, marker, _) in zip(at, spent, looks, strict=True):
        ax.scatter(x, y, s=SIZE * 0.7, color=colour, marker=marker, zorder=3)
    ax.set_xscale("log")
    ax.set_xlim(left=spent.min() / 2)
    ax.set_yticks(at, [latex(name) for name in frame["method"]], fontsize=9)
    for text, (colour, _, _) in zip(ax.get_yticklabels(), looks, strict=True):
        text.set_color(colour)
    ax.set_ylim(-0.7, len(frame) - 0.3)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("seconds a fit, one thread", fontsize=11)
    ax.spines[["top", "right", "left"]].set_visible(False)


def keys(frame: pd.DataFrame) -> list[Any]:
    """The legend: families, hollow and filled."""
    there = [style for family, style in STYLES.items() if (frame["family"] == family).any()]
    made = [plt.Line2D([], [], ls="", color=colour, marker=marker, label=label) for colour, marker, label in there]
    hollow = plt.Line2D([], [], ls="", marker="o", mfc="white", mec=INK, label="in sample")
    groups = int(frame["groups"].max()) if "groups" in frame else 0
    label = f"held out by group ({groups})" if groups else "held out"
    filled = plt.Line2D([], [], ls="", marker="o", mfc=INK, mec=INK, label=label)
    return [*made, hollow, *([filled] if frame["held_out_alignment"].notna().any() else [])]


def name_points(frame: pd.DataFrame, ax: Any) -> None:
    """Names beside the held-out points (or the in-sample ones, if there are no others), without overlaps."""
    from matplotlib.patheffects import withStroke

    figure = ax.figure
    figure.canvas.draw()  # the layout is final now
    figure.set_layout_engine("none")
    held = frame["held_out_alignment"].notna()
    x = frame["held_out_coupling"].where(held, frame["coupling"])
    y = frame["held_out_alignment"].where(held, frame["alignment"])
    hollow = frame[["coupling", "alignment"]].to_numpy()
    anchors = ax.transData.transform(np.stack([x, y], axis=1))
    unit = figure.dpi / 72
    texts = [
        ax.text(0, 0, latex(name), fontsize=10, color=STYLES[family][0], transform=None, zorder=6)
        for name, family in zip(frame["method"], frame["family"], strict=True)
    ]
    sizes = np.array([text.get_window_extent().size for text in texts])
    box = ax.get_window_extent()
    ends = ax.transData.transform(hollow)
    points = np.vstack([anchors, ends])
    lines = (anchors + np.linspace(0.1, 0.9, 30)[:, None, None] * (ends - anchors)).reshape(-1, 2)
    inside = (box.x0 + 4 * unit, box.y0 + 4 * unit, box.x1, box.y1)
    found = labels.corners(anchors, sizes, points, lines, inside, GAP * unit)
    to_data = ax.transData.inverted()
    for text, corner, size, anchor in zip(texts, found, sizes, anchors, strict=True):
        text.set_transform(ax.transData)  # so that a figure saved at another resolution keeps its names in place
        text.set_position(to_data.transform(corner))
        text.set_verticalalignment("bottom")
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])
        end = labels.nearest(corner[None], size, anchor)[0]
        if np.linalg.norm(end - anchor) > 2.4 * GAP * unit:
            ax.plot(*to_data.transform([anchor, end]).T, color=INK, lw=0.6, ls=(0, (1, 1.5)), zorder=5)


def latex(name: str) -> str:
    """A method's name with lambda and T set as mathematics."""
    if ", then T_" in name:
        start, _, number = name.partition(", then T_")
        return rf"{start}, then $T_{{{number}}}$"
    return pretty(name).replace("iFA (ex)", r"iFA, $T_{\mathrm{ex}}$").replace("iFA (no T)", "iFA, no $T$")
