"""More covariates than dimensions of Z (1,000 classes in 768 dimensions): what exists, and what does not.

With A = W S_zy (k x P, k < P; W any whitening of Z) no P dimensions are uncorrelated, so neither T_0 nor T_ex exists,
and lambda has no end at 0. T_1 exists for every P: its rows are the ridge regressions C = W S_z B, scaled to unit
variance, with

    T_1 = unit_rows(C') W,    corr(z~) = unit_rows(C') unit_rows(C')',    corr(z~_p, y_p) = c_p'a_p / |c_p|.

Without shrinkage C = A, and every alignment is the multiple correlation of its covariate: no linear map has more. With
P >= k covariates the span of the regressions is the whole space, so a restriction to this span, which is the shrinkage
of ``regimes`` elsewhere, would change nothing. Here the shrunk regressions are the map itself.

P unit vectors in k dimensions have |corr(z~) - I|_F^2 >= P (P - k) / k (Welch 1974), whatever the map.
"""

from __future__ import annotations

import numpy as np

from covalign._core.linalg import Array, rank_cutoff
from covalign._core.messages import message


def unit_columns(C: Array) -> Array:
    """C with columns of norm 1; a column p of zeros, of which Z says nothing, becomes direction p modulo k.

    >>> import numpy as np
    >>> unit_columns(np.array([[3.0, 0, 0], [4.0, 0, 2]])).tolist()
    [[0.6, 0.0, 0.0], [0.8, 1.0, 1.0]]
    """
    k = len(C)
    norms = np.linalg.norm(C, axis=0)
    zero = norms <= rank_cutoff(k, 1.0)
    found = C / np.where(zero, 1.0, norms)
    at = np.flatnonzero(zero)
    found[:, at] = 0.0
    found[at % k, at] = 1.0
    return found


def least_coupling(p: int, k: int) -> float:
    """P (P - k) / k: p dimensions of variance 1 in a space of k have no smaller coupling.

    >>> least_coupling(3, 2)  # three directions of a plane, 120 degrees apart: six squares of 1/2
    1.5
    """
    return p * (p - k) / k


def no_steering(p: int, k: int) -> ValueError:
    """One of p dimensions in a space of k cannot move while all others stay."""
    problem = f"steering moves one dimension and keeps {p - 1} others, which needs at least {p} latent dimensions"
    return ValueError(message(problem, got=k, remedy="drop covariates or use a larger embedding"))


def only_strongest(p: int, k: int) -> ValueError:
    """Another regime than the strongest is asked for."""
    problem = f"{p} covariates need at least {p} latent dimensions"
    least = f"the only one with fewer dimensions than covariates; its coupling is at least {least_coupling(p, k):,.3g}"
    remedy = f'use the regime "strongest" ({least}), drop covariates or use a larger embedding'
    return ValueError(message(problem, got=k, remedy=remedy))
