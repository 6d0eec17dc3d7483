"""Does X carry a covariate? ``informed_`` answers from samples that were not fitted.

On the fitted samples a factor knows its covariate from the prior, and with as many features as samples even
E[z | x] has seen it. So beta is judged on left-out samples: r = corr(E[z_p | x], y_p) there is beta times how well z_p
is known, with the direction of z_p estimated from n_t samples. The error of a direction among K factors takes
(1 - beta^2) (K - 1) / n_t from beta^2, so with q = (K - 1) / n_t

    beta^2 = (r^2 + q) / (1 + q),

which is the upper end of what r says; r itself is the lower end, all there is where X says nothing. The estimate counts
q by the share of r^2 that is not chance, 1 - (se / r)^2. Divided by the standard deviation of E[z_p | x] (z_p has 1) it
is the slope of y_p, which is beta if the model's noise is right, and too large if it overstates the noise; the estimate
lies midway, the interval contains both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from covalign._core.linalg import Array
from covalign.closed_form.measures import quotient
from covalign.closed_form.pooled_correlation import VERDICTS, Estimate, verdict

__all__ = ["VERDICTS", "informed"]


def informed(
    names: Sequence[str], plain: Estimate, held_out: Estimate, reliability: Array, n_factors: int, n_train: float
) -> pd.DataFrame:
    """beta with its interval, held-out alignment and verdict, one row for each covariate."""
    q, known = (n_factors - 1) / n_train, np.clip(reliability, 0.05, 1.0)
    r, low, high = (np.maximum(values, 0.0) for values in (plain.value, plain.low, plain.high))
    signal = np.clip(1 - quotient(plain.se, plain.value, np.inf) ** 2, 0.0, 1.0)
    middle, most = _beta(r, signal * q), _beta(high, q)
    frame = pd.DataFrame(
        {
            "beta": np.minimum((middle + np.minimum(middle / known, 1.0)) / 2, 1.0),
            "low": low,
            "high": np.minimum(most / known, 1.0),
            "held_out": held_out.value,
            "verdict": [
                verdict(*ends) for ends in zip(plain.low, np.where(np.isnan(plain.high), np.nan, most), strict=True)
            ],
        },
        index=pd.Index(names, name="covariate"),
    )
    return frame


def _beta(r: Array, q: Array | float) -> Array:
    return np.asarray(np.sqrt((r**2 + q * (r > 0)) / (1 + q)))
