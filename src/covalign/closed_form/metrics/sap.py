"""Separated attribute predictability (Kumar et al. 2018): does one dimension alone predict each covariate best?"""

from __future__ import annotations

from typing import Any

import numpy as np

from covalign._core.linalg import Array
from covalign.closed_form.measures import quotient
from covalign.closed_form.metrics.alignment import cross_correlation, moments_of


def sap(Z: Any, Y: Any = None) -> float:
    """(1/P) sum_p (S_p^(1) - S_p^(2)): the lead, in R^2, of the best single dimension over the second best.

    >>> from covalign import metrics
    >>> Y = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> metrics.sap(Y, Y), metrics.sap([[a, a] for a, _ in Y], Y)
    (1.0, 0.0)
    """
    best, second = best_two(cross_correlation(moments_of(Z, Y)) ** 2)
    return float(np.mean(best - second))


def nsap(Z: Any, Y: Any = None) -> float:
    """(1/P) sum_p (S_p^(1) - S_p^(2)) / S_p^(1): the lead as a share of the best score (0 where nothing predicts y_p).

    >>> from covalign import metrics
    >>> Y = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
    >>> round(metrics.nsap([[a, b, a + b] for a, b in Y], Y), 12)
    0.5
    """
    best, second = best_two(cross_correlation(moments_of(Z, Y)) ** 2)
    return float(np.mean(quotient(best - second, best)))


def best_two(S: Array) -> tuple[Array, Array]:
    """The highest and second highest score (>= 0) of every column; the second is 0 if there is a single row."""
    second, best = np.sort(np.vstack([np.zeros_like(S[:1]), S]), axis=0)[-2:]
    return best, second
