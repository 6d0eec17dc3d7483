"""How far T_lambda is from the exact trade-off, as facts of a report of an aligner.

``above`` is, for some lambdas, the largest mean alignment of any linear map with the coupling of T_lambda on the fitted
rows, less that of T_lambda. Between these lambdas the page draws straight lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covalign.closed_form import regimes
from covalign.closed_form.regime_choice import MOST_EXACT

LAMS = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST = 20  # covariates; the solutions take a third of the time of the whole report if there are more
LEAST_SHOWN = 0.0005  # smaller differences are not visible


def of_aligner(aligner: Any) -> dict[str, Any]:
    """The facts: what is drawn (None: nothing), and a sentence about it (None: nothing to say)."""
    p = len(aligner.covariate_names_)
    if p == 1 or aligner._polar().crowded:
        return {"exact": None, "about_exact": None}
    if p > MOST:
        where = f"; frontier() has it for up to {MOST_EXACT}" if p <= MOST_EXACT else ""
        return {"exact": None, "about_exact": f"The exact trade-off is drawn for up to {MOST} covariates{where}."}
    frame = regimes.frontier_of(aligner._polar(), aligner._fitted_sums(), LAMS, aligner.covariate_names_)
    frame = frame[frame["lam"].notna()]
    above = aligner._exact_alignment(frame) - frame["alignment"].to_numpy()
    if np.isnan(above).any():
        return {"exact": None, "about_exact": None}
    most = float(above.max())
    drawn = {"lam": frame["lam"].tolist(), "above": [float(f"{value:.6g}") for value in above]}
    return {"exact": drawn if most >= LEAST_SHOWN else None, "about_exact": about(most)}


def about(most: float) -> str:
    """The sentence about the largest distance."""
    line = "the largest mean alignment of any linear map with the same coupling on the fitted rows"
    if most < LEAST_SHOWN:
        return f"No line is drawn for the exact trade-off ({line}): λ is less than {LEAST_SHOWN:g} below it everywhere."
    return f"The thin line is the exact trade-off: {line}. The curve of λ is at most {most:.4f} below it."
