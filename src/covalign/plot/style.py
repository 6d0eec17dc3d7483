"""What all figures share: colours, sizes, names that fit."""

from __future__ import annotations

from covalign import _validation as errors

try:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
except ImportError:
    raise errors.missing_extra("matplotlib", "plot") from None

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
INK, FAINT = "#222222", "#8A8A8A"


def axes_of(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The user's Axes, or those of a new figure of this size."""
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def finish(ax: Axes, title: str | None, pad: float = 8) -> Axes:
    """The look of every figure."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    if title:
        ax.set_title(title, loc="left", fontsize=10, pad=pad)
    return ax


def short(name: str, most: int = 22) -> str:
    """A name that fits, with matplotlib's mathematics switched off."""
    name = name if len(name) <= most else name[: most - 1] + "…"
    return name.replace("$", r"\$")
