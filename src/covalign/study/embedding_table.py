"""Pretrained representations in numbers: every route on held-out rows, and ours compared with each, split by split."""

from __future__ import annotations

import pandas as pd

from covalign._core.text_tables import markdown
from covalign.study.intervals import Interval, over_splits
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Store, rows

OURS = "ridge, then "


def embedding_table(store: Store, profile: Profile, inputs: Inputs) -> str:
    """Mean and 90 % interval over splits of alignment and coupling; then the best of ours against every baseline."""
    frame, parts = rows(store, "embedding", profile), []
    for name, one in frame.groupby("embedding", sort=False):
        if inputs.embeddings and name not in inputs.embeddings:
            continue
        wide = one.pivot_table(index="rep", columns=["metric", "method"], values="value", sort=False)
        parts.append(f"**{name}** ({len(wide)} random halves)\n\n{every_route(wide)}\n{against(wide)}")
    return "\n".join(parts)


def every_route(wide: pd.DataFrame) -> str:
    """One line for each route: in sample, and held out with intervals."""
    lines = []
    for route in wide["alignment, held out"].columns:
        held = [over_splits(wide[f"{metric}, held out"][route]) for metric in ("alignment", "coupling")]
        seen = [wide[f"{metric}, in sample"][route].mean() for metric in ("alignment", "coupling")]
        lines.append([route, f"{held[0]:.3f}", f"{held[1]:.2f}", f"{seen[0]:.3f}", f"{seen[1]:.2f}"])
    header = ["route", "alignment, held out", "coupling, held out", "alignment, in sample", "coupling, in sample"]
    return markdown(header, lines)


def against(wide: pd.DataFrame) -> str:
    """For every baseline, the most aligned of our routes with no larger coupling (on average): differences."""
    a, c = wide["alignment, held out"], wide["coupling, held out"]
    ours = [route for route in a.columns if route.startswith(OURS)]
    lines = []
    for route in [route for route in a.columns if route not in ours]:
        within = [r for r in ours if over_splits(c[r] - c[route]).mean <= 0]
        # If all of ours have a larger coupling on average, the least coupled one is shown, with the difference.
        chosen = max(within, key=lambda r: a[r].mean()) if within else min(ours, key=lambda r: c[r].mean())
        gain, more = over_splits(a[chosen] - a[route]), over_splits(c[chosen] - c[route])
        words = f"alignment {compared(gain)}, coupling {compared(more)}"
        lines.append([route, chosen, f"{gain:+.3f}", f"{more:+.2f}", words])
    return markdown(["baseline", "ours", "alignment gained", "coupling added", ""], lines)


def compared(difference: Interval) -> str:
    """An interval of differences in words."""
    if not difference.excludes_zero:
        return "not told apart"
    return "higher" if difference.mean > 0 else "lower"
