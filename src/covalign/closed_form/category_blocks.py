"""The canonical alignment of a category on left-out rows.

In sample it is the root mean square of the canonical correlations of the dimensions z of a category and its dummies y
(``regimes.canonical_alignment``). This is also the correlation of the regression of y on z with y, over all dummies
together, if y is whitened: with the canonical correlations d_j of q dummies, the regression is sum_j d_j a_j'z b_j, its
covariance with y is sum d_j^2, and

    sum d_j^2 / sqrt(sum d_j^2 q) = sqrt(sum d_j^2 / q).

On left-out rows it is the correlation of what the regressions of the fits predict there with y: canonical directions
of the left-out rows themselves would fit their noise. It does not depend on the order of directions, which can differ
between fits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covalign._core.linalg import Array, is_constant, whitener
from covalign.closed_form.heldout import HeldOut
from covalign.closed_form.measures import quotient
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments


def canonical_on_new_rows(held: HeldOut, mixings: Sequence[Array], block: Sequence[int]) -> float:
    """For the dimensions F T_0 z of every fold; NaN if the category does not vary on left-out rows."""
    at = list(block)
    folds = [[_of_block(part, at) for part in of.parts] for of in held.folds]
    there = [part for parts in folds for part in parts if part is not None]
    if not there:
        return float("nan")
    mean, cov = _moments_of_y(there)
    W = whitener(cov, is_constant(mean, np.diag(cov)))
    if len(W) == 0:
        return float("nan")
    n, z, zz, zy = 0.0, np.zeros(len(W)), 0.0, 0.0  # sums over rows, of the predictions z of W y and of W (y - mean)
    for i, (F, of) in enumerate(zip(mixings, held.folds, strict=True)):
        others = [part for j, parts in enumerate(folds) if j != i for part in parts if part is not None]
        own = [part for part in folds[i] if part is not None]
        if not others or not own:
            continue
        G = W @ _regressions(F[at], of.polar.M[:, at], others).T @ F[at]  # z = G T_0 (z - mean of the training set)
        for part in own:
            rows, mean_z, mean_y = float(part.n or 0), G @ part.mean_z, W @ (part.mean_y - mean)
            n, z = n + rows, z + rows * mean_z
            zz += rows * float(np.sum((G @ part.cov_z) * G) + mean_z @ mean_z)
            zy += rows * float(np.sum(G * (W @ part.cov_zy.T)) + mean_z @ mean_y)
    # W (y - mean) has the mean 0 and the covariance I.
    return float(zy * quotient(1.0, np.sqrt((zz - z @ z * quotient(1.0, n)) * n * len(W))))


def _of_block(part: Rows, block: Sequence[int]) -> Moments | None:
    """Moments of (u, y) of the rows that have the category; dummies of a category have the same gaps."""
    for columns, seen in part.pairs:
        at = np.arange(len(part.n_pairs))[columns].tolist()
        if block[0] in at and seen.n:
            return seen.select([at.index(column) for column in block])
    return None


def _moments_of_y(parts: Sequence[Moments]) -> tuple[Array, Array]:
    """Mean and covariance of y over all rows."""
    share = np.array([part.n or 0 for part in parts], dtype=np.float64)
    share /= share.sum()
    means = np.array([part.mean_y for part in parts])
    mean = share @ means
    within = np.tensordot(share, np.array([part.cov_y for part in parts]), 1)
    return mean, np.asarray(within + (means - mean).T @ ((means - mean) * share[:, None]))


def _regressions(F: Array, M: Array, training: Sequence[Moments]) -> Array:
    """B of the regressions B'z of y on z = F T_0 z with covariance F F'; M = T_0 S_zy, y standardised there."""
    sd = np.sqrt(np.diag(_moments_of_y(training)[1]))
    return np.asarray(np.linalg.pinv(F @ F.T, rcond=1e-10, hermitian=True) @ (F @ M) * sd)
