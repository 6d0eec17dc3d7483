"""The report for browsers without scripts: the frontier and tables, for the regime of the fit."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from covalign.closed_form.regimes import mean_or_nan
from covalign.show.report import conclusion
from covalign.show.report.facts import LEAST_AXES, has_slider, is_crowded, lam_shown, measured

WIDTH, HEIGHT, EDGE, RIM = 460, 300, 48, 12  # EDGE: the space for numbers
LEADING = 3  # features of a factor in a view


def concluded(facts: dict[str, Any]) -> str:
    """The conclusion as HTML, which pages show with and without scripts."""
    said = conclusion.of(facts)
    lines = "".join(f"<p>{html.escape(text)}</p>" for text in said["said"])
    warned = "".join(f"<li>{html.escape(text)}</li>" for text in said["warnings"])
    warnings = f'<div class="warnings" role="note"><h3>Look at these first</h3><ul>{warned}</ul></div>'
    return (
        f'<h2>{html.escape(said["headline"])}</h2>{lines}<p class="key">{html.escape(said["meaning"])}</p>'
        f"{warnings if warned else ''}"
    )


def static(facts: dict[str, Any]) -> str:
    """A figure and tables, as HTML."""
    now = measured(facts, facts["regime"], facts["lam"])
    named = lam_shown(facts["lam"]) if facts["regime"] == "tunable" else html.escape(facts["regime"])
    more = ""
    if "factors" in facts:
        more = _informed(facts) + _shares(facts["factors"]) + _leading(facts["factors"]) + _sets(facts["factors"])
    groups = f"<p>{html.escape(facts['about_groups'])}</p>" if facts["about_groups"] and now["held_out"] else ""
    categories = "".join(f"<p>{html.escape(text)}</p>" for text in facts["about_categories"])
    return (
        f"<h2>{named}: coupling {now['coupling']:.3f}</h2>{_figure(facts, now)}"
        f'<p class="key"><b class="fitted">fitted rows</b> and <b class="held">held out</b>{_along(facts)}. '
        f"{html.escape(facts.get('about_exact') or '')} {_about_slider(facts)}</p>"
        f"{_alignments(facts, now)}{groups}{categories}{more}"
    )


def _along(facts: dict[str, Any]) -> str:
    return "" if is_crowded(facts) else ", from independent to strongest"


def _about_slider(facts: dict[str, Any]) -> str:
    if has_slider(facts):
        return "If scripts are allowed, this page has a slider for λ."
    if is_crowded(facts):
        return "More covariates than dimensions have only the strongest regime."
    return f"A page of {len(facts['covariates'])} covariates has no slider for λ: it would be too large."


def _alignments(facts: dict[str, Any], now: dict[str, Any]) -> str:
    rows, p = [], len(facts["covariates"])
    held = now["held_out"] or dict.fromkeys(("alignment", "low", "high"), [np.nan] * p)
    verdicts = conclusion.verdicts(facts, now) if now["held_out"] else ["–"] * p
    for at, name in enumerate(facts["covariates"]):
        low, high = _shown(held["low"][at]), _shown(held["high"][at])
        limits = "–" if low == "–" else f"{low} to {high}"
        rows.append((name, [_shown(now["alignment"][at]), _shown(held["alignment"][at]), limits, verdicts[at]]))
    return _table(["covariate", "fitted", "held out", "90 %", "verdict"], rows)


def _shown(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"


def _informed(facts: dict[str, Any]) -> str:
    """Beta of every covariate, and the supervision."""
    rows = []
    for of in facts["informed"]:
        limits = "–" if np.isnan(of["low"]) else f"{_shown(of['low'])} to {_shown(of['high'])}"
        rows.append((of["covariate"], [_shown(of["beta"]), limits]))
    return (
        f"<h2>Informed factors</h2>{_table(['covariate', 'beta', '90 %'], rows)}"
        f'<p class="key">From left-out samples. Supervision {facts["supervision"]:g}, '
        f"share of the regression on all features {facts['regression_share']:g}.</p>"
    )


def _shares(factors: dict[str, Any]) -> str:
    """Variance explained: a row for each factor, a column for each view."""
    views = factors["views"]
    rows = [(name, [f"{view['shares'][k]:.3f}" for view in views]) for k, name in enumerate(factors["names"])]
    rows.append(("all factors", [f"{view['total']:.3f}" for view in views]))
    bound = factors["bound"]
    ended = "Converged" if bound["converged"] else "Not converged"
    return (
        f"<h2>Variance explained</h2>{_table(['factor', *(view['name'] for view in views)], rows)}"
        f'<p class="key">{ended} after {bound["sweeps"]} sweeps at {bound["values"][-1]:.2f} nats.</p>'
    )


def _leading(factors: dict[str, Any]) -> str:
    """The first features of every factor, a column for each view."""
    views = factors["views"]
    rows = [
        (
            name,
            [html.escape(", ".join(f"{f} ({loading:.2g})" for f, loading, _ in v["top"][k][:LEADING])) for v in views],
        )
        for k, name in enumerate(factors["names"])
    ]
    return f"<h2>Leading features (loadings)</h2>{_table(['factor', *(view['name'] for view in views)], rows)}"


def _sets(factors: dict[str, Any]) -> str:
    """The gene sets that were found, a row for each."""
    if factors["sets"] is None:
        return ""
    below = factors["sets"]["below"]
    rows = [
        (name, [html.escape(one["set"]), html.escape(one["view"]), one["direction"], f"{one['q']:.1e}"])
        for name, best in zip(factors["names"], factors["sets"]["best"], strict=True)
        for one in best
        if one["q"] < below
    ]
    none = f"<p>No gene set has q &lt; {below:g}.</p>"
    return f"<h2>Gene sets</h2>{_table(['factor', 'set', 'view', 'direction', 'q'], rows) if rows else none}"


def _table(head: Iterable[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    above = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for name, cells in rows
    )
    return f'<div class="scroll"><table><thead><tr>{above}</tr></thead><tbody>{body}</tbody></table></div>'


def _figure(facts: dict[str, Any], now: dict[str, Any]) -> str:
    """Mean alignment against coupling along lambda, fitted and held out, and the point of the model."""
    lams = np.ones(1) if is_crowded(facts) else np.linspace(0, 1, 21 if has_slider(facts) else 5)
    along = [measured(facts, "tunable", float(lam)) for lam in lams]
    curves = {
        "fitted": _known(_point(found) for found in along),
        "held": _known(_point(found["held_out"]) for found in along if found["held_out"]),
        "exact": [],
    }
    if facts.get("exact"):
        above = np.interp(lams, facts["exact"]["lam"], facts["exact"]["above"])
        points = [(x, y + more) for (x, y), more in zip(map(_point, along), above.tolist(), strict=True)]
        curves["exact"] = _known(points)
    here = {"fitted": now, **({} if now["held_out"] is None else {"held": now["held_out"]})}
    dots = {kind: point for kind, found in here.items() for point in _known([_point(found)])}
    right, low, high = _extent([*curves["fitted"], *curves["held"], *curves["exact"], *dots.values()])

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = x / right * (WIDTH - EDGE - RIM), (y - low) / (high - low) * (HEIGHT - EDGE - RIM)
        return round(EDGE + across, 1), round(HEIGHT - EDGE - up, 1)

    def path(curve: list[tuple[float, float]]) -> str:
        return " L".join("{} {}".format(*at(*point)) for point in curve)

    lines = _axes(at, right, low, high)
    lines += "".join(f'<path class="line {kind}" d="M{path(curve)}"/>' for kind, curve in curves.items() if curve)
    for kind, point in dots.items():
        x, y = at(*point)
        lines += f'<circle class="now {kind}" cx="{x}" cy="{y}" r="7"/>'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Frontier">{lines}</svg>'


def _extent(points: list[tuple[float, float]]) -> tuple[float, float, float]:
    """The right end of the axis of coupling, and both ends of the axis of alignment."""
    right = max([*(1.05 * x for x, _ in points), LEAST_AXES["coupling"]])
    ys = [y for _, y in points] or [0.0, 1.0]
    spread = max(ys) - min(ys)
    margin = 0.08 * spread + max(0.0, LEAST_AXES["alignment"] - spread) / 2
    return right, min(ys) - margin, max(ys) + margin


def _axes(at: Callable[[float, float], tuple[float, float]], right: float, low: float, high: float) -> str:
    """Lines and numbers: coupling horizontal, mean alignment vertical."""
    drawn, bottom, end = "", HEIGHT - EDGE, WIDTH - RIM
    for tick, text in ticks(0, right):
        x, _ = at(tick, low)
        drawn += f'<line class="grid" x1="{x}" x2="{x}" y1="{RIM}" y2="{bottom}"/>'
        drawn += f'<text class="tick" x="{x}" y="{bottom + 17}" text-anchor="middle">{text}</text>'
    for tick, text in ticks(low, high):
        _, y = at(0, tick)
        drawn += f'<line class="grid" x1="{EDGE}" x2="{end}" y1="{y}" y2="{y}"/>'
        drawn += f'<text class="tick" x="{EDGE - 7}" y="{y + 4}" text-anchor="end">{text}</text>'
    middle = (bottom + RIM) / 2
    return (
        f'{drawn}<text class="label" x="{(EDGE + end) / 2}" y="{HEIGHT - 8}" text-anchor="middle">coupling</text>'
        f'<text class="label" x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">'
        "mean alignment</text>"
    )


def ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Round numbers from low to high, three to six of them, and how they are written."""
    raw = (high - low) / 5
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    counts = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9) + 1)
    at = [round(float(count * step), digits) + 0.0 for count in counts]
    return [(tick, f"{tick:.{digits}f}") for tick in at]


def _point(found: dict[str, Any]) -> tuple[float, float]:
    return found["coupling"], mean_or_nan(found["alignment"])


def _known(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that have a place: where nothing can be judged there is no alignment."""
    return [point for point in points if not np.isnan(point).any()]
