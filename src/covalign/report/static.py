"""What is seen where no script runs: the frontier and a table, at the setting of the fit."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from covalign.report.facts import measured

WIDTH, HEIGHT, EDGE = 460, 300, 48


def static(facts: dict[str, Any]) -> str:
    """A figure and a table, as HTML."""
    now = measured(facts, facts["regime"], facts["lam"])
    held = now["held_out"]
    rows = []
    for p, name in enumerate(facts["covariates"]):
        outside = "–" if held is None else f"{held['alignment'][p]:.3f}"
        limits = "–" if held is None else f"{held['low'][p]:.2f} to {held['high'][p]:.2f}"
        cells = "".join(f"<td>{cell}</td>" for cell in (f"{now['alignment'][p]:.3f}", outside, limits))
        rows.append(f'<tr><th scope="row">{html.escape(name)}</th>{cells}</tr>')
    named = f"λ = {facts['lam']:.2f}" if facts["regime"] == "tunable" else html.escape(facts["regime"])
    head = "".join(f'<th scope="col">{name}</th>' for name in ("covariate", "fitted", "held out", "90 %"))
    return (
        f"<h2>{named}: coupling {now['coupling']:.3f}</h2>{_figure(facts)}"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _figure(facts: dict[str, Any]) -> str:
    """Mean alignment against coupling along lambda, on the fitted rows and held out."""
    curves: dict[str, list[tuple[float, float]]] = {"fitted": [], "held": []}
    for lam in np.linspace(0, 1, 21):
        found = measured(facts, "tunable", float(lam))
        curves["fitted"].append((found["coupling"], float(np.nanmean(found["alignment"]))))
        if found["held_out"] is not None:
            curves["held"].append((found["held_out"]["coupling"], float(np.nanmean(found["held_out"]["alignment"]))))
    points = np.array(curves["fitted"] + curves["held"])
    right, low, high = max(points[:, 0].max(), 1e-3), points[:, 1].min(), points[:, 1].max()
    spread = max(high - low, 1e-3)

    def at(x: float, y: float) -> str:
        across, up = x / right * (WIDTH - 2 * EDGE), (y - low) / spread * (HEIGHT - 2 * EDGE)
        return f"{EDGE + across:.1f} {HEIGHT - EDGE - up:.1f}"

    lines = "".join(
        f'<path class="line {kind}" d="M{" L".join(at(*point) for point in curve)}"/>'
        for kind, curve in curves.items()
        if curve
    )
    labels = (
        f'<text class="label" x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">coupling, 0 to {right:.3g}</text>'
        f'<text class="label" x="{EDGE}" y="{EDGE / 2}">mean alignment, {low:.3f} to {high:.3f}</text>'
    )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Frontier">{lines}{labels}</svg>'
