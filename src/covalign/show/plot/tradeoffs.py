"""Regimes: the frontier, their matrices, alignment by covariate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from covalign._core.messages import kind_of, message
from covalign.show.plot.style import (
    FAINT,
    INK,
    REGIME_COLOURS,
    REGIME_LABELS,
    SIGNED,
    axes_of,
    decimals,
    drawable,
    finish,
    one_of,
    required,
    short,
    shorts,
    styled_bar,
    write_cells,
)

UNCOUPLED = 1e-6  # a coupling below this is rounding


def frontier(frame: pd.DataFrame, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Alignment against coupling along lambda, with the regimes named on the curve.

    ``frame`` is what ``frontier()`` of a model, ``regimes.frontier`` or ``cross_validated_frontier`` return; where it
    has both, the held-out curve is drawn solid with its standard error and the in-sample one dashed.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.plot.frontier(ca.regimes.frontier(m)).get_xlabel()[:8]
    'coupling'
    """
    frame = required("frontier", frame, ["regime", "lam", "alignment", "coupling"], "model.frontier()", title)
    one_of("frontier", frame["regime"], REGIME_COLOURS)
    ax = axes_of(ax, (4.6, 3.4))
    columns = _frontier_columns(frame)
    for kind, (alignment, coupling, se) in columns.items():
        _curve(ax, frame, alignment, coupling, se, kind, named=kind == next(iter(columns)))
    if len(columns) > 1:
        ax.legend(frameon=False, fontsize=8, loc="best")
    ax.set_xlabel(r"coupling  $\|\mathrm{corr}(\tilde z) - I\|_F^2$   (0: independent)")
    ax.set_ylabel(r"mean alignment  corr$(\tilde z_p, y_p)$")
    ax.margins(0.12)
    if ax.dataLim.width < UNCOUPLED:  # no regime has coupling: do not magnify rounding errors
        ax.set_xlim(-0.12, 1.12)
    return finish(ax, title)


def _frontier_columns(frame: pd.DataFrame) -> dict[str, tuple[str, str, str | None]]:
    """What to draw, first the one to name the regimes on: {label: (alignment, coupling, standard error)}."""
    if "held_out_alignment" in frame and frame["held_out_alignment"].notna().any():
        return {
            "held out": ("held_out_alignment", "held_out_coupling", "held_out_alignment_se"),
            "in sample": ("alignment", "coupling", None),
        }
    if "alignment_in_sample" in frame:
        return {
            "held out": ("alignment", "coupling", "alignment_se"),
            "in sample": ("alignment_in_sample", "coupling_in_sample", None),
        }
    return {"": ("alignment", "coupling", None)}


def _curve(
    ax: Axes, frame: pd.DataFrame, alignment: str, coupling: str, se: str | None, label: str, named: bool
) -> None:
    along = frame[frame["regime"] != "exclusive"].sort_values("lam")
    style: dict[str, Any] = {"color": INK, "lw": 1.6} if named else {"color": FAINT, "lw": 1.2, "ls": (0, (4, 2))}
    ax.plot(along[coupling], along[alignment], zorder=2, label=label or None, **style)
    if se is not None:
        low, high = along[alignment] - along[se], along[alignment] + along[se]
        ax.fill_between(along[coupling], low, high, color=style["color"], alpha=0.15, lw=0, zorder=1)
    for regime, colour in REGIME_COLOURS.items():
        points = frame[frame["regime"] == regime]
        x, y = points[coupling], points[alignment]
        if not named:
            if regime != "tunable":
                ax.scatter(x, y, s=22, facecolor="white", edgecolor=colour, linewidth=1.0, zorder=3)
        elif regime == "tunable":
            ax.scatter(x, y, s=10, color=colour, zorder=3)
        else:
            ax.scatter(x, y, s=46, color=colour, edgecolor="white", linewidth=0.8, zorder=4)
            for at in zip(x, y, strict=True):
                steep = not label and "exclusive" not in set(frame["regime"])  # the curve fills the height of the axes
                _name(ax, REGIME_LABELS[regime], *at, colour, regime, above=steep)


def _name(ax: Axes, text: str, x: float, y: float, colour: str, regime: str, above: bool) -> None:
    """A regime's name beside its point, on the side where the curve is not."""
    places = {"independent": ((8, -11), "left"), "strongest": ((2, -19), "right"), "exclusive": ((9, -8), "left")}
    if above:
        places["strongest"] = ((2, 7), "right")
    if x < UNCOUPLED:  # at the point of the independent regime: place one name below the other
        places |= {"strongest": ((8, -24), "left"), "exclusive": ((8, 2), "left")}
    offset, ha = places[regime]
    ax.annotate(text, (x, y), xytext=offset, textcoords="offset points", ha=ha, color=colour, fontsize=9)


def matrices(frame: pd.DataFrame, axes: Any = None, *, title: str | None = None) -> Any:
    """corr(z~, y) above corr(z~), one column per regime; ``frame`` as ``regimes.matrices`` returns it.

    ``axes`` is an array of Axes, kinds of matrices x regimes; so is what is returned.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.plot.matrices(ca.regimes.matrices(m)).shape  # two matrices, four regimes
    (2, 4)
    """
    frame = required(
        "matrices", frame, ["regime", "lam", "matrix", "row", "column", "value"], "regimes.matrices(moments)", title
    )
    one_of("matrices", frame["regime"], REGIME_COLOURS)
    settings = frame[["regime", "lam"]].drop_duplicates().to_records(index=False)
    kinds = list(dict.fromkeys(frame["matrix"]))
    names = list(dict.fromkeys(frame["row"]))
    grids = {
        (i, j): _square(_rows_of(frame, kind, regime, lam), names)
        for i, kind in enumerate(kinds)
        for j, (regime, lam) in enumerate(settings)
    }
    if axes is None:
        size = max(1.7, min(3.2, 0.16 * len(names)))
        for_names = 0.065 * max(len(short(name)) for name in names)
        figsize = (size * len(settings) + 1.0 + for_names, size * len(kinds) + 0.7 + for_names)
        _, axes = plt.subplots(len(kinds), len(settings), figsize=figsize, squeeze=False, layout="constrained")
    axes = _grid_of(axes, (len(kinds), len(settings)))
    image = None
    for i, kind in enumerate(kinds):
        for j, (regime, lam) in enumerate(settings):
            image = _heatmap(axes[i, j], grids[i, j], names if j == 0 else [], names if i == len(kinds) - 1 else [])
            if i == 0:
                label = rf"$T_\lambda$, $\lambda = {lam:g}$" if regime == "tunable" else REGIME_LABELS[regime]
                axes[i, j].set_title(label, fontsize=9, color=REGIME_COLOURS[regime])
        axes[i, 0].set_ylabel(kind.replace("z~", r"$\tilde z$").replace("y)", "$y$)"), fontsize=9)
    styled_bar(axes[0, 0].figure.colorbar(image, ax=axes, shrink=0.6, aspect=30, pad=0.01), "correlation")
    if title:
        axes[0, 0].figure.suptitle(drawable(title), x=0.01, ha="left", fontsize=10)
    return axes


def _rows_of(frame: pd.DataFrame, kind: Any, regime: str, lam: float) -> pd.DataFrame:
    one = frame[(frame["matrix"] == kind) & (frame["regime"] == regime)]
    found: pd.DataFrame = one[one["lam"].isna() if np.isnan(lam) else one["lam"] == lam]
    return found


def _square(one: pd.DataFrame, names: list[Any]) -> pd.DataFrame:
    """A value for every pair of names."""
    pairs = pd.MultiIndex.from_product([names, names])
    values = one.set_index(["row", "column"])["value"]
    if not values.index.is_unique or len(values.index.symmetric_difference(pairs)):
        problem = "plot.matrices needs one value for every row and column of a matrix"
        raise ValueError(message(problem, got="other pairs", remedy="pass what regimes.matrices(moments) returns"))
    square: pd.DataFrame = values.loc[pairs].unstack().loc[names, names]
    return square


def _grid_of(axes: Any, shape: tuple[int, int]) -> Any:
    """As many Axes as matrices, in rows and columns."""
    given = np.asarray(axes, dtype=object).ravel()
    if len(given) != shape[0] * shape[1] or not all(isinstance(ax, Axes) for ax in given):
        got = f"{axes.shape[0]} x {axes.shape[1]}" if getattr(axes, "ndim", 0) == 2 else kind_of(axes)
        problem = f"plot.matrices needs {shape[0]} x {shape[1]} matplotlib Axes"
        remedy = f"pass those of plt.subplots({shape[0]}, {shape[1]}), or leave axes out for a new figure"
        raise ValueError(message(problem, got=got, remedy=remedy))
    return given.reshape(shape)


def _heatmap(ax: Axes, grid: pd.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> Any:
    """A matrix with the names of its rows and columns, which may be left out."""
    image = ax.imshow(grid.to_numpy(), cmap=SIGNED, vmin=-1, vmax=1, interpolation="nearest")
    ax.set_xticks(range(len(columns)), shorts(columns), rotation=90, fontsize=7)
    ax.set_yticks(range(len(rows)), shorts(rows), fontsize=7)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if len(grid) <= 6:
        write_cells(ax, grid.to_numpy(), decimals, 1.0)
    return image


def alignment(frame: pd.DataFrame, ax: Axes | None = None, *, title: str | None = None) -> Axes:
    """Alignment per covariate, in sample (a tick) and held out (a dot, with its interval or two standard errors).

    ``frame`` is ``summary()`` of a model: one row per covariate, columns in_sample, held_out, se, and where there is
    an interval low, high.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> al = ca.LatentAligner().fit(s.Z, s.Y)
    >>> ca.plot.alignment(al.summary()).get_xlabel()[:9]
    'alignment'
    """
    frame = required("alignment", frame, ["in_sample", "held_out", "se"], "summary()", title)
    ax = axes_of(ax, (4.6, 0.8 + 0.26 * len(frame)))
    at = np.arange(len(frame))[::-1]
    ax.hlines(at, 0, 1, color="#EEEEEE", lw=0.8, zorder=0)
    ax.scatter(frame["in_sample"], at, s=90, marker="|", color=INK, linewidth=1.4, zorder=5, label="in sample")
    if frame["held_out"].notna().any():
        colour = REGIME_COLOURS["independent"]
        two_se = 2 * frame["se"].fillna(0)
        reach, low, high = "± 2 s.e.", frame["held_out"] - two_se, frame["held_out"] + two_se
        if {"low", "high"} <= set(frame.columns):
            reach, low, high = "90 % interval", frame["low"], frame["high"]
        ax.hlines(at, low, high, color=colour, lw=1.4, zorder=3)
        ax.scatter(frame["held_out"], at, s=34, color=colour, zorder=4, label=f"held out, {reach}")
    ax.set_yticks(at, shorts(frame.index), fontsize=8)
    ax.set_ylim(-0.7, len(frame) - 0.3)
    shown = frame[[name for name in ("in_sample", "held_out", "low") if name in frame]].to_numpy(dtype=float)
    ax.set_xlim(min(0.0, float(np.nanmin(shown, initial=1.0)) - 0.05), 1.0)
    ax.set_xlabel(r"alignment  corr$(\tilde z_p, y_p)$")
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    return finish(ax, title, pad=22)
