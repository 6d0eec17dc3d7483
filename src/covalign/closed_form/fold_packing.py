"""Folds made of buckets: equal in rows, in rows with each covariate, and in rows of each level.

A row's bucket follows from its content or its group (``stream.folds``), so buckets differ in size. They are packed into
folds, the largest and the rarest first. Only counts decide, so neither row order nor chunking matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.moments.incomplete import Rows

FEW_FOLDS, LEAST_LEFT_OUT = 5, 10


def packed(buckets: Sequence[Rows | None], folds: int) -> list[list[int]]:
    """The buckets of every fold, none of which is empty.

    There are fewer folds if fewer buckets have rows, or if more than FEW_FOLDS have fewer than LEAST_LEFT_OUT rows on
    average: more fits would not say more.
    """
    there = [b for b, rows in enumerate(buckets) if rows is not None]
    found = _packed(_counts([rows for rows in buckets if rows is not None]), folds)
    return [[there[i] for i in fold] for fold in found]


def fold_of_rows(bucket: NDArray[np.int64], Y: Array, folds: int) -> NDArray[np.int64]:
    """The fold of every row, from its bucket; Y (n x P, NaN where missing) decides how levels are spread."""
    _, place = np.unique(bucket, return_inverse=True)
    seen = ~np.isnan(Y)
    y = np.where(seen, Y, 0.0)
    sums = np.zeros((place.max() + 1, 1 + 3 * Y.shape[1]))
    np.add.at(sums, place, np.column_stack([np.ones(len(Y)), seen, y, y**2]))
    fold_of = np.empty(len(sums), dtype=np.int64)
    for fold, pack in enumerate(_packed(Counts(sums[:, 0], *np.split(sums[:, 1:], 3, axis=1)), folds)):
        fold_of[pack] = fold
    return np.asarray(fold_of[place])


class Counts(NamedTuple):
    """What is known of every bucket (first axis): rows, and for each covariate rows that have it, sums, squares."""

    n: Array
    labels: Array
    y: Array
    yy: Array


def _counts(buckets: Sequence[Rows]) -> Counts:
    n = np.array([rows.n or 0 for rows in buckets], dtype=np.float64)
    count, y, yy = np.zeros((3, len(buckets), len(buckets[0].n_pairs) if buckets else 0))
    for i, rows in enumerate(buckets):
        for columns, seen in rows.pairs:
            count[i, columns] = seen.n
            y[i, columns] = (seen.n or 0) * seen.mean_y
            yy[i, columns] = (seen.n or 0) * (np.diag(seen.cov_y) + seen.mean_y**2)
    return Counts(n, count, y, yy)


def _packed(counts: Counts, folds: int) -> list[list[int]]:
    shares, n = _shares(counts), len(counts.n)
    folds = min(folds, max(FEW_FOLDS, int(counts.n.sum()) // LEAST_LEFT_OUT), n)
    made: list[list[int]] = [[] for _ in range(folds)]
    load = np.zeros((folds, shares.shape[1]))
    # The bucket that holds the largest part of anything comes first; of equals, the one with more rows.
    order = sorted(range(n), key=lambda i: (-shares[i].max().round(12), -shares[i, 0].round(12), i))
    for done, i in enumerate(order):
        # Adding s to a fold with load l raises the sum of squared loads by 2 l's + s's.
        cost = zip((load @ shares[i]).round(12).tolist(), load[:, 0].round(12).tolist(), range(folds), strict=True)
        best = min(cost)[-1]
        empty = [fold for fold, pack in enumerate(made) if not pack]
        if len(empty) >= n - done:  # every bucket that is left is needed for an empty fold
            best = empty[0]
        made[best].append(i)
        load[best] += shares[i]
    return [sorted(fold) for fold in made]


def _shares(counts: Counts) -> Array:
    """Buckets x what is to be spread, as shares of the whole: rows; rows with each covariate; rows of each level.

    Levels are those of covariates that are 0 or 1, whose squares are their values.
    """
    n, count, y, yy = counts
    flags = np.all(np.abs(yy - y) <= 1e-9 * np.maximum(count, 1), axis=0)
    gaps = count.sum(axis=0) < n.sum()
    columns = np.column_stack([n, count[:, gaps], y[:, flags], (count - y)[:, flags]])
    total = columns.sum(axis=0)
    return np.asarray(columns[:, total > 0] / total[total > 0])
