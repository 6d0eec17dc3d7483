"""Coupling: the squared correlations between the dimensions of a representation."""

from __future__ import annotations

from typing import Any

import numpy as np

from covalign._core.checks import too_few_rows
from covalign.closed_form.metrics.alignment import inverse_sd
from covalign.moments.moments import Moments


def coupling(Z: Any) -> float:
    """|corr(Z) - I|_F^2 over the pairs of distinct columns; a constant column counts as uncorrelated.

    >>> from covalign import metrics
    >>> metrics.coupling([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    0.0
    """
    m = Z if isinstance(Z, Moments) else Moments.from_arrays(Z, np.zeros((*np.shape(Z)[:1], 1)))
    if m.n is not None and m.n < 2:
        raise too_few_rows(m.n)
    scale = inverse_sd(m.mean_z, np.diag(m.cov_z))
    C = m.cov_z * scale * scale[:, None]
    np.fill_diagonal(C, 0.0)
    return float(np.sum(np.minimum(C**2, 1)))
