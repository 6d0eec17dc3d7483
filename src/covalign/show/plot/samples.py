"""Figures of samples: two factors with a covariate in colour, a factor by category."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from pandas.api import types

from covalign._core.messages import listed, message, shown
from covalign._core.user_arrays import plain
from covalign.show.plot.style import (
    CATEGORY_COLOURS,
    FAINT,
    INK,
    LETTER,
    MANY,
    MARKERS,
    ORDER,
    axes_of,
    colour_bar,
    finish,
    legend_of,
    legend_width,
    required,
    short,
    shorts,
)

FRAME = "factors_frame()"
GOLDEN = 0.6180339887498949  # multiples of it fill an interval evenly, without random numbers
LEAST = 5  # least number of samples of a group with an outline


def factors(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    x: str,
    y: str,
    colour: Any = None,
    title: str | None = None,
) -> Axes:
    """Samples in the plane of two factors, coloured by a covariate: a colour bar for numbers, a legend for categories.

    ``frame`` is ``InformedFactorAnalysis.factors_frame()``; ``colour`` a Series with the samples as index, or as many
    values as samples. Samples without a value are hollow and grey; levels that have an order keep it in their colours.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6)
    >>> fa = ca.InformedFactorAnalysis(6).fit(s.X, s.Y)
    >>> ax = ca.plot.factors(fa.factors_frame(), x="y0", y="y1", colour=s.Y[:, 0])
    """
    frame = required("factors", frame, [], FRAME, title)
    for argument, name in (("x", x), ("y", y)):
        if not isinstance(name, Hashable) or name not in frame.columns:
            raise _no_such_factor("factors", argument, name, frame.columns)
    shade = None if colour is None else _matched("factors", "colour", frame, colour)
    ax = axes_of(ax, (4.2 + _room(shade), 3.6))
    points = frame[x].to_numpy(dtype=float), frame[y].to_numpy(dtype=float)
    look = _look(len(frame))
    if shade is None:
        ax.scatter(*points, color=CATEGORY_COLOURS[0], **look)
    else:
        missing = _missing(shade)
        if missing.any():
            hollow = {**look, "linewidth": 0.7, "alpha": 1.0, "zorder": 2}
            ax.scatter(*(v[missing] for v in points), facecolor="none", edgecolor=FAINT, **hollow)
        draw = _numbers if _is_number(shade) else _levels
        draw(ax, points, shade, ~missing, look)
    ax.set(xlabel=short(x, 40), ylabel=short(y, 40))
    return finish(ax, title)


def _room(shade: pd.Series | None) -> float:
    """Inches at the side for what the colours mean."""
    if shade is None:
        return 0.0
    return 0.8 if _is_number(shade) else max(0.8, legend_width(_level_names(shade), short(shade.name, 40)) - 0.3)


def _look(n: int) -> dict[str, Any]:
    size = 24 if n <= 500 else 11 if n <= 5000 else 3
    return {"s": size, "linewidth": 0, "alpha": 0.85 if n <= 5000 else 0.6, "rasterized": n > MANY, "zorder": 3}


def _numbers(ax: Axes, points: Any, shade: pd.Series, has: NDArray[np.bool_], look: dict[str, Any]) -> None:
    values = shade[has].to_numpy(dtype=float)
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    limits = (low, high) if high > low else (low - 0.5, high + 0.5)
    drawn = ax.scatter(points[0][has], points[1][has], c=values, cmap=ORDER, vmin=limits[0], vmax=limits[1], **look)
    bar = colour_bar(ax, drawn, short(shade.name, 40))
    bar.solids.set(alpha=1)
    if not has.all():
        _note_missing(bar.ax, len(has) - int(has.sum()))


def _note_missing(bar: Axes, count: int) -> None:
    """A hollow circle above the bar's end, and how many there are."""
    bar.plot([0.5], [1.06], marker="o", ms=4.5, mfc="none", mec=FAINT, mew=0.7, transform=bar.transAxes, clip_on=False)
    bar.text(1.5, 1.06, f"missing ({count})", transform=bar.transAxes, va="center", fontsize=7, color=INK)


def _levels(ax: Axes, points: Any, shade: pd.Series, has: NDArray[np.bool_], look: dict[str, Any]) -> None:
    """All levels of a marker at once, in the order of the samples: none lies on top because it comes last."""
    levels, codes = _coded(shade)
    colours, markers = _colours(shade, len(levels))
    for marker in dict.fromkeys(markers):
        here = has & np.isin(codes, [i for i, m in enumerate(markers) if m == marker])
        ax.scatter(*(v[here] for v in points), color=[colours[i] for i in codes[here]], marker=marker, **look)
    style: dict[str, Any] = {"ls": "", "ms": 5}
    handles = [Line2D([], [], marker=m, color=c, mew=0, **style) for m, c in zip(markers, colours, strict=True)]
    if not has.all():
        handles.append(Line2D([], [], marker="o", mfc="none", mec=FAINT, mew=0.7, **style))
    legend_of(ax, handles, _level_names(shade), short(shade.name, 40) or None)


def _level_names(shade: pd.Series) -> list[str]:
    """Levels with their counts, and at last how many are missing, if any are."""
    levels, codes = _coded(shade)
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    missing = int((codes < 0).sum())
    names = [f"{name} ({count})" for name, count in zip(shorts(levels), counts, strict=True)]
    return [*names, *([f"missing ({missing})"] if missing else [])]


def factor_by_category(
    frame: pd.DataFrame, ax: Axes | None = None, *, factor: str, category: Any, title: str | None = None
) -> Axes:
    """A factor by the levels of a category: a dot for each sample, the outline of their density, and the median.

    ``frame`` is ``InformedFactorAnalysis.factors_frame()``; ``category`` a Series with the samples as index, or as many
    values as samples. Samples without one stand apart, hollow and grey. The outline is matplotlib's.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6)
    >>> fa = ca.InformedFactorAnalysis(6).fit(s.X, s.Y)
    >>> ax = ca.plot.factor_by_category(fa.factors_frame(), factor="y0", category=["a", "b"] * 50)
    """
    frame = required("factor_by_category", frame, [], FRAME, title)
    if not isinstance(factor, Hashable) or factor not in frame.columns:
        raise _no_such_factor("factor_by_category", "factor", factor, frame.columns)
    group = _matched("factor_by_category", "category", frame, category)
    if _is_number(group) and group.notna().any():
        problem = f"plot.factor_by_category needs a category, got numbers in {str(group.name)!r}"
        remedy = "Use .astype('category') if these are levels, or plot.factors with colour= for a number"
        raise ValueError(message(problem, remedy=remedy))
    levels, codes = _coded(group)
    colours, _ = _colours(group, len(levels))
    values = frame[factor].to_numpy(dtype=float)
    parts = [(name, values[codes == i], colours[i]) for i, name in enumerate(shorts(levels))]
    if (codes < 0).any():
        parts.append(("missing", values[codes < 0], None))
    names = [f"{name}\n{int(np.isfinite(some).sum())}" for name, some, _ in parts]
    turned = max(len(name) for name in names) > 12
    below = LETTER * max(len(name) for name, _, _ in parts) if turned else 0.0
    ax = axes_of(ax, (max(2.6, min(12.0, 1.2 + 0.75 * len(parts))), 3.4 + below))
    for at, (_, some, tint) in enumerate(parts):
        _strip(ax, at, some[np.isfinite(some)], tint, len(values))
    ax.set_xticks(range(len(parts)), names, rotation=90 if turned else 0)
    ax.set_xlim(-0.6, len(parts) - 0.4)
    ax.set(xlabel=short(group.name, 40), ylabel=short(factor, 40))
    return finish(ax, title)


def _strip(ax: Axes, at: int, values: Any, tint: str | None, n: int) -> None:
    """One group: dots spread over a fixed width, a density where there are enough that differ, a line at the median."""
    spread = 0.36 * ((np.arange(len(values)) * GOLDEN) % 1 - 0.5)
    look = {**_look(n), "s": 9 if n <= 1000 else 3, "alpha": 0.7 if n <= 5000 else 0.3}
    if tint is None:
        ax.scatter(at + spread, values, facecolor="none", edgecolor=FAINT, **{**look, "linewidth": 0.6, "alpha": 1.0})
    else:
        ax.scatter(at + spread, values, color=tint, **look)
    if len(values) >= LEAST and values.max() > values.min():
        made: dict[str, Any] = ax.violinplot(values, [at], widths=0.85, showextrema=False, showmedians=True)
        made["bodies"][0].set(facecolor=tint or FAINT, edgecolor="none", alpha=0.25, zorder=1)
        made["cmedians"].set(color=INK, linewidth=1.6, zorder=5)


# -- covariates -------------------------------------------------------------------------------------------------------


def _matched(figure: str, argument: str, frame: pd.DataFrame, values: Any) -> pd.Series:
    """Values of the frame's samples, in their order: by index where there is one, else by position."""
    if isinstance(values, pd.DataFrame) and values.shape[1] == 1:
        values = values.iloc[:, 0]
    if not isinstance(values, pd.Series):
        values = values if np.isscalar(values) else plain(values, argument)
        if np.shape(values) != (len(frame),):
            shape = " x ".join(map(str, np.shape(values))) or "1"
            problem = f"plot.{figure} needs {argument} for its {len(frame)} samples"
            remedy = "pass a Series with the samples as index, or as many values as samples"
            raise ValueError(message(problem, got=f"{shape} values without their names", remedy=remedy))
        return pd.Series(values, index=frame.index, name="")
    if not all(isinstance(value, Hashable) for value in values):
        problem = f"plot.{figure} needs {argument} to be numbers or text"
        raise ValueError(message(problem, got="other objects", remedy="pass a number or a level for every sample"))
    named: pd.Series = values.rename("" if values.name is None else str(values.name))
    if values.index.equals(frame.index):
        return named
    if not (values.index.is_unique and frame.index.is_unique and values.index.isin(frame.index).any()):
        problem = f"plot.{figure} needs {argument} with an index that names its samples ({listed(frame.index, 3)})"
        got, remedy = listed(values.index, 3), "give both the same index, every sample once"
        raise ValueError(message(problem, got=got, remedy=remedy))
    matched: pd.Series = named.reindex(frame.index)
    return matched


def _is_number(values: pd.Series) -> bool:
    return types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype)


def _missing(values: pd.Series) -> NDArray[np.bool_]:
    if _is_number(values):
        return np.asarray(~np.isfinite(values.to_numpy(dtype=float, na_value=np.nan)))
    return values.isna().to_numpy(dtype=bool)


def _coded(values: pd.Series) -> tuple[list[Any], NDArray[np.intp]]:
    """Levels that occur, in their own order if they have one, else sorted; and which each sample has (-1: none)."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        used = values.cat.remove_unused_categories().cat
        return list(used.categories), np.asarray(used.codes, dtype=np.intp)
    levels = sorted(values.dropna().unique(), key=str)
    codes = pd.Index(levels, dtype=object).get_indexer(pd.Index(np.asarray(values, dtype=object)))
    return levels, np.where(_missing(values), -1, codes).astype(np.intp)


def _colours(values: pd.Series, count: int) -> tuple[list[Any], list[str]]:
    """A colour and a marker for every level; those of ordered levels run along one map."""
    if isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered and count > 2:
        return [mpl.colormaps[ORDER](0.9 * i / (count - 1)) for i in range(count)], ["o"] * count
    turns = [divmod(i, len(CATEGORY_COLOURS)) for i in range(count)]
    return [CATEGORY_COLOURS[c] for _, c in turns], [MARKERS[t % len(MARKERS)] for t, _ in turns]


def _no_such_factor(figure: str, argument: str, name: Any, known: Any) -> ValueError:
    problem = f"plot.{figure} needs {argument} to be a column of its frame ({listed(known, 8)})"
    return ValueError(message(problem, got=shown(name), remedy="choose one", wrong=[name], known=known))
