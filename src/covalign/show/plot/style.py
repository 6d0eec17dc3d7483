"""What all figures share: colours, sizes, shortened names, Axes beside others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.checks import as_float, check_text, is_real
from covalign._core.extras import missing_extra
from covalign._core.messages import kind_of, listed, message, shown, text_of
from covalign._core.number_range import LARGEST

try:
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
    from matplotlib.mathtext import MathTextParser
    from matplotlib.transforms import Bbox
except ImportError:
    raise missing_extra("matplotlib", "plot") from None

REGIME_COLOURS = {
    "exclusive": "#CC79A7",
    "independent": "#0072B2",
    "tunable": "#009E73",
    "strongest": "#D55E00",
}
REGIME_LABELS = {
    "exclusive": r"exclusive $T_{\mathrm{ex}}$",
    "independent": r"independent $T_0$",
    "tunable": r"tunable $T_\lambda$",
    "strongest": r"strongest $T_1$",
}
# Columns of tidy frames that are drawn as numbers.
NUMBERS = {
    *(
        "in_sample",
        "held_out",
        "se",
        "low",
        "high",
        "value",
        "sweep",
        "below_end",
        "samples",
        "observed",
        "loading",
        "std",
    ),
    *("statistic", "p", "q", "lam", "alignment", "coupling", "held_out_alignment", "held_out_alignment_se"),
    *("held_out_coupling", "exact_alignment", "alignment_se", "alignment_in_sample", "coupling_in_sample"),
}
CATEGORY_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5F4B3B", "#E5D42A")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")  # the next shape if there are more levels than colours
INK, FAINT, PALE = "#222222", "#8A8A8A", "#EEEEEE"
SIGNED, SHARE, BETWEEN, ORDER = "RdBu_r", "Blues", "Greens", "viridis"  # with a sign; from 0; from 0 to 1; numbers
# One style sheet for all figures. Functions that draw on the Axes of a user do not change the settings of matplotlib.
STYLE: dict[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": f"cycler(color={list(CATEGORY_COLOURS)!r})",
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "white",
    "svg.fonttype": "path",  # looks the same on every machine
    "svg.hashsalt": "covalign",  # the same figure gives the same file
}
LETTER = 0.075  # inches per letter of a name
IN_COLUMN = 16  # names in one column of a legend
PAGE = 14.0  # inches, the largest height of a figure
MANY = 2000  # more points than this are drawn as pixels, which makes smaller files


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The user's Axes, or those of a new figure of this size."""
    if ax is not None and not isinstance(ax, Axes):
        remedy = "pass Axes from plt.subplots(), or leave ax out for a new figure"
        raise ValueError(message("ax needs matplotlib Axes", got=kind_of(ax), remedy=remedy))
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def finish(ax: Axes, title: str | None, pad: float = 8) -> Axes:
    """Apply the common style to the Axes."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    if title:
        ax.set_title(drawable(title), loc="left", fontsize=10, pad=pad)
    return ax


def drawable(text: str) -> str:
    """A title, in which $ is a dollar where matplotlib cannot read the text as mathematics."""
    try:
        MathTextParser("path").parse(text) if mpl.cbook.is_math_text(text) else None
    except ValueError:
        return text.replace("$", r"\$")
    return text


def short(name: Any, most: int = 22) -> str:
    """A name shortened to one line, without matplotlib's mathematical notation."""
    line = " ".join(str(name).split())
    line = line if len(line) <= most else line[: most - 1] + "…"
    return line.replace("$", r"\$")


def shorts(names: Iterable[Any], most: int = 22) -> list[str]:
    """Shortened names; names that would become equal keep their ends."""
    whole = [" ".join(str(name).split()) for name in names]
    cut = [short(name, most) for name in whole]
    alike = {one for one, n in Counter(dict(zip(whole, cut, strict=True)).values()).items() if n > 1}
    half = (most - 1) // 2
    return [
        short(f"{name[: most - 1 - half]}…{name[-half:]}", most) if one in alike and len(name) > most else one
        for name, one in zip(whole, cut, strict=True)
    ]


def fitting(rows: float) -> float:
    """The font size, in points, at which so many rows of names fit on a page."""
    return min(8.0, 60 * PAGE / rows)


def decimals(value: float) -> str:
    """Two decimals, as in cells: .50, −.03, 1.00."""
    text = f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
    return text.replace("0.", ".", 1) if text.lstrip("−").startswith("0.") else text


def required(
    figure: str, frame: Any, columns: Sequence[str], source: str, title: Any, counts: Sequence[str] = ()
) -> pd.DataFrame:
    """A frame with these columns and at least one row, what it draws as numbers; an error if it is something else.

    Without ``columns`` every column is a number. ``counts`` have no gaps.
    """
    if title is not None:
        check_text("title", title, "None draws no title")
    if not isinstance(frame, pd.DataFrame) or not set(columns) <= set(frame.columns):
        got = f"one with {listed(frame.columns, 8)}" if hasattr(frame, "columns") else kind_of(frame)
        need = f" with the columns {listed(columns, 8)}" if columns else ""
        problem = f"plot.{figure} needs a DataFrame{need}"
        raise ValueError(message(problem, got=got, remedy=f"pass what {source} returns"))
    if frame.empty:
        problem = f"plot.{figure} needs at least one row and column"
        raise ValueError(message(problem, got="none", remedy=f"pass what {source} returns"))
    if not frame.columns.is_unique or frame.columns.nlevels > 1:
        got = listed(frame.columns[frame.columns.duplicated()]) + " more than once"
        problem = f"plot.{figure} needs columns that each have one name"
        raise ValueError(message(problem, got=got if frame.columns.nlevels == 1 else "several", remedy="rename them"))
    made = frame.copy(deep=False)
    for name in NUMBERS & set(frame.columns) if columns else frame.columns:
        made[name] = numbers_of(figure, frame[name], gaps=name not in counts)
    for name in set(columns) - NUMBERS:
        if not all(isinstance(value, Hashable) for value in frame[name]) or frame[name].isna().any():
            problem = f"plot.{figure} needs text or numbers without gaps in column {name!r}"
            raise ValueError(message(problem, got="gaps or other objects", remedy=f"pass what {source} returns"))
    return made


def one_of(figure: str, values: pd.Series, known: Iterable[str]) -> None:
    """Refuse names that the figure does not know."""
    wrong = [value for value in values.unique() if value not in known]
    if wrong:
        problem = f"plot.{figure} needs {listed(known)} in column {values.name!r}"
        raise ValueError(
            message(problem, got=listed(wrong), remedy="leave out the other rows", wrong=wrong, known=known)
        )


def numbers_of(figure: str, column: pd.Series, gaps: bool = True) -> pd.Series:
    """A column as floats, NaN where it has a gap."""
    try:
        values = column.astype(object).where(column.notna(), np.nan).to_numpy(dtype=np.float64)
        real = not any(isinstance(value, str | bytes | complex) for value in column)
    except Exception:  # objects of a user's class may raise anything
        real = False
    if not real or (np.abs(values) > LARGEST).any() or not (gaps or np.isfinite(values).all()):
        need = "finite numbers or gaps" if gaps else "numbers without gaps"
        problem = f"plot.{figure} needs {need} in column {text_of(column.name)!r}"
        wrong = [value for value in column if not is_real(value) or not abs(as_float(value)) <= LARGEST]
        raise ValueError(
            message(problem, got=shown(wrong[0]) if wrong else "others", remedy="convert or drop the column")
        )
    return pd.Series(values, column.index, name=column.name)


def colour_map(name: str) -> Any:
    """A colour map that shows missing values in grey."""
    return mpl.colormaps[name].with_extremes(bad="#DDDDDD")


def beside(ax: Axes, width: float, pad: float, top: float = 1.0, bottom: float = 0.0) -> Axes:
    """Axes to the right of others, at distance ``pad``, ``width`` wide (inches), between two heights (0 to 1).

    They move with the others in any layout, and take no space from them.
    """
    inset = ax.inset_axes((1.0, bottom, 0.1, top - bottom))

    def locate(_: Any, __: Any) -> Bbox:
        box, inches = ax.get_position(), ax.figure.bbox.width / ax.figure.dpi
        return Bbox.from_bounds(
            box.x1 + pad / inches, box.y0 + bottom * box.height, width / inches, (top - bottom) * box.height
        )

    inset.set_axes_locator(locate)
    return inset


def colour_bar(ax: Axes, image: Any, label: str, *, pad: float = 0.12, top: float = 1.0, bottom: float = 0.0) -> Any:
    """A colour bar to the right."""
    return styled_bar(ax.figure.colorbar(image, cax=beside(ax, 0.11, pad, top, bottom)), label, length=2)


def styled_bar(bar: Any, label: str, **ticks: Any) -> Any:
    """Apply the common style to a colour bar."""
    bar.set_label(label, fontsize=8)
    bar.ax.tick_params(labelsize=7, **ticks)
    bar.outline.set_visible(False)
    return bar


def name_rows(ax: Axes, rows: Sequence[tuple[float, str, bool]]) -> None:
    """Names along the vertical axis: the place and the text of each, and whether it is a heading, in bold."""
    ax.set_yticks([at for at, _, _ in rows], [name for _, name, _ in rows])
    for label, (_, _, heading) in zip(ax.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if heading else "normal")


def write_cells(ax: Axes, values: Any, write: Callable[[float], str], most: float, at: float = 0.0) -> None:
    """Numbers in the cells of a heatmap that begins at row ``at``, white where those are dark: near ``most``."""
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if abs(value) > 0.6 * most else INK
            ax.text(j, at + i, write(value), ha="center", va="center", fontsize=6, color=colour)


def legend_width(labels: list[str], title: str) -> float:
    """The width of the legend of ``legend_of``, in inches."""
    columns = 1 + (len(labels) - 1) // IN_COLUMN
    return max(columns * (0.3 + LETTER * max(map(len, labels), default=0)), LETTER * len(title)) + 0.1


def legend_of(ax: Axes, handles: list[Any], labels: list[str], title: str | None) -> None:
    """A legend to the right. Texts are set last, since matplotlib leaves out labels that begin with an underscore."""
    legend = ax.legend(
        handles,
        [str(i) for i in range(len(labels))],
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.02),
        ncols=1 + (len(labels) - 1) // IN_COLUMN,
        frameon=False,
        fontsize=8,
        title_fontsize=8,
        alignment="left",
        handletextpad=0.3,
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_text(label)
