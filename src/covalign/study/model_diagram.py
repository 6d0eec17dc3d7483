"""The graphical model of iFA with several views: plates for samples, covariates, factors, views and features."""

from __future__ import annotations

from typing import Any, NamedTuple

from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Store

RADIUS = 0.42
OBSERVED, LATENT, FUNCTION, PARAMETER = "observed", "latent", "function of others", "parameter"
SHADED, PLATE = "#D9D9D9", "#6F6F6F"


class Node(NamedTuple):
    """A variable: its place, its symbol and its kind."""

    x: float
    y: float
    symbol: str
    kind: str


class Plate(NamedTuple):
    """A box around what is repeated: left, bottom, right, top, its label, and where the label is."""

    left: float
    bottom: float
    right: float
    top: float
    label: str
    corner: str = "lower left"


NODES = {
    "y": Node(1.0, 4.6, r"$y_{np}$", OBSERVED),
    "beta": Node(-1.0, 3.1, r"$\beta_p$", PARAMETER),
    "informed": Node(1.0, 3.1, r"$z_{np}$", LATENT),
    "T": Node(1.0, -0.35, r"$T_\lambda$", PARAMETER),
    "moved": Node(1.0, 1.6, r"$\tilde z_{np}$", FUNCTION),
    "free": Node(2.95, 3.1, r"$z_{nk}$", LATENT),
    "x": Node(4.95, 1.6, r"$x^m_{nd}$", OBSERVED),
    "w": Node(6.95, 1.6, r"$w^m_{dk}$", LATENT),
    "tau": Node(6.95, 0.2, r"$\tau^m_d$", LATENT),
    "alpha": Node(8.85, 1.6, r"$\alpha^m_k$", LATENT),
}
ARROWS = (
    *(("y", "informed"), ("beta", "informed"), ("informed", "moved"), ("T", "moved")),
    *(("moved", "x"), ("free", "x"), ("w", "x"), ("tau", "x"), ("alpha", "w")),
)
PLATES = (
    Plate(-1.75, 0.95, 1.7, 5.2, "covariates  $p = 1 … P$", "upper left"),
    Plate(2.15, 2.45, 3.8, 3.95, "$k = P+1 … K$", "upper left"),
    Plate(0.2, 0.55, 5.75, 5.55, "samples  $n = 1 … N$", "upper right"),
    Plate(6.2, 0.85, 9.6, 2.45, "factors  $k = 1 … K$", "upper right"),
    Plate(4.25, -0.6, 7.75, 2.8, "features  $d = 1 … D_m$", "upper right"),
    Plate(4.1, -1.0, 9.9, 3.3, "views  $m = 1 … M$", "lower right"),
)


def model_diagram(store: Store, profile: Profile, inputs: Inputs) -> Any:
    """Circles are variables, shaded ones are observed; double circles are functions of others, squares parameters."""
    from covalign.study.study_style import plt

    figure, ax = plt.subplots(figsize=(8.6, 5.2), layout="constrained")
    for plate in PLATES:
        draw_plate(ax, plate)
    for start, end in ARROWS:
        draw_arrow(ax, NODES[start], NODES[end])
    for node in NODES.values():
        draw_node(ax, node)
    for i, kind in enumerate((OBSERVED, LATENT, FUNCTION, PARAMETER)):
        draw_node(ax, Node(6.5, 5.35 - 0.48 * i, "", kind), 0.17)
        ax.text(6.9, 5.35 - 0.48 * i, kind, va="center", fontsize=9)
    ax.set(xlim=(-2.0, 10.05), ylim=(-1.2, 5.75), aspect="equal")
    ax.axis("off")
    return figure


def draw_node(ax: Any, node: Node, radius: float = RADIUS) -> None:
    """A circle or a square with its symbol."""
    from matplotlib.patches import Circle, Rectangle

    from covalign.study.study_style import INK

    look: dict[str, Any] = {
        "facecolor": SHADED if node.kind == OBSERVED else "white",
        "edgecolor": INK,
        "lw": 1.2,
        "zorder": 3,
    }
    if node.kind == PARAMETER:
        ax.add_patch(Rectangle((node.x - radius, node.y - radius), 2 * radius, 2 * radius, **look))
    else:
        ax.add_patch(Circle((node.x, node.y), radius, **look))
    if node.kind == FUNCTION:
        ax.add_patch(Circle((node.x, node.y), 0.84 * radius, **{**look, "lw": 0.8}))
    ax.text(node.x, node.y, node.symbol, ha="center", va="center", fontsize=13, zorder=4)


def draw_arrow(ax: Any, start: Node, end: Node) -> None:
    """An arrow from the edge of a variable to the edge of another."""
    from covalign.study.study_style import INK

    length = ((end.x - start.x) ** 2 + (end.y - start.y) ** 2) ** 0.5
    step = [RADIUS * (end.x - start.x) / length, RADIUS * (end.y - start.y) / length]
    tail, head = (start.x + step[0], start.y + step[1]), (end.x - step[0], end.y - step[1])
    ax.annotate("", head, tail, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.1, "shrinkA": 0, "shrinkB": 1})


def draw_plate(ax: Any, plate: Plate) -> None:
    """A rounded box with its label in a corner."""
    from matplotlib.patches import FancyBboxPatch

    size = (plate.right - plate.left, plate.top - plate.bottom)
    style = "round,pad=0,rounding_size=0.12"
    ax.add_patch(
        FancyBboxPatch((plate.left, plate.bottom), *size, boxstyle=style, facecolor="none", edgecolor=PLATE, lw=1.0)
    )
    height, side = plate.corner.split()
    x = plate.left + 0.12 if side == "left" else plate.right - 0.12
    y = plate.bottom + 0.1 if height == "lower" else plate.top - 0.1
    anchor = {"ha": side, "va": "bottom" if height == "lower" else "top"}
    ax.text(x, y, plate.label, fontsize=8.5, color=PLATE, **anchor)
