"""Coupling: the squared correlations between the dimensions of a representation."""

from __future__ import annotations

from typing import Any

import numpy as np

from covalign._core.data_errors import too_few_rows
from covalign._core.user_arrays import shape_of
from covalign.closed_form.measures import off_diagonal_squares
from covalign.closed_form.metrics.alignment import latent_correlation
from covalign.moments.moments import Moments


def coupling(Z: Any) -> float:
    """|corr(Z) - I|_F^2 over the pairs of distinct columns; a constant column counts as uncorrelated.

    >>> from covalign import metrics
    >>> metrics.coupling([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    0.0
    """
    m = Z if isinstance(Z, Moments) else Moments.from_arrays(Z, np.zeros((*shape_of(Z, "Z")[:1], 1)))
    if m.n is not None and m.n < 2:
        raise too_few_rows(m.n)
    return float(off_diagonal_squares(latent_correlation(m)))
