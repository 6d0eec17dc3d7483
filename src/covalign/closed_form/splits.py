"""Training sets and the rows left out of them.

Rows are summed in buckets, and buckets are packed into folds (``fold_packing``). The moments of a training set are
those of all folds but one, merged, so cross-validation needs one pass over the data and then only K x K matrices. If
covariates have gaps, a training set is completed (``incomplete``), and left-out rows are scored by the pairs that they
have. If the last q columns of Z are confounders, the part that they explain is estimated in the training set and
subtracted from the left-out rows, too (``adjustment``). A covariate that a training set does not know (too few labels,
or constant there) is not scored on the rows left out of it; the others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.closed_form.fold_packing import packed
from covalign.closed_form.measures import quotient
from covalign.moments.adjustment import Adjustment, adjusted, explained
from covalign.moments.incomplete import Rows, merged, merged_with_terms
from covalign.moments.moments import Moments


class Split(NamedTuple):
    """A training set, and the rows left out of it."""

    fold: int
    train: Moments
    test: Rows
    parts: list[Rows]  # the buckets of the left-out rows
    known: NDArray[np.bool_]  # covariates that vary in the training set

    def select(self, columns: list[int]) -> Split:
        """The same with these covariates only."""
        parts = [part.select(columns) for part in self.parts]
        return Split(self.fold, self.train.select(columns), self.test.select(columns), parts, self.known[columns])


def splits(buckets: Sequence[Rows | None], folds: int | None = None, q: int = 0) -> list[Split]:
    """Leave each fold out once. By default every bucket is a fold.

    A covariate that is constant on all rows on which it could be scored is not scored (a level with one row: unknown
    where that row is left out, and absent elsewhere).
    """
    made, raw = [], []
    packs = [[b] for b in range(len(buckets))] if folds is None else packed(buckets, folds)
    whole = [merged(buckets[b] for b in pack) for pack in packs]
    for fold, pack in enumerate(packs):
        parts, test = [part for part in (buckets[b] for b in pack) if part is not None], whole[fold]
        train = training(merged_with_terms(rows for other, rows in enumerate(whole) if other != fold), q)
        if train is not None and test is not None:
            left = train.adjustment.apply
            made.append(Split(fold, train.moments, left(test), [left(part) for part in parts], train.known))
            raw.append((test, train.known))
    scored = varies(raw)
    return [split._replace(known=split.known & scored) for split in made]


def varies(parts: Sequence[tuple[Rows, NDArray[np.bool_]]]) -> NDArray[np.bool_]:
    """Covariates with more than one value in parts, each with the covariates that count in it."""
    if not parts:
        return np.zeros(0, dtype=bool)
    origin = mean_of_y(part for part, _ in parts)
    n, y, yy = np.zeros((3, len(origin)))
    for part, known in parts:
        for columns, seen in part.pairs:
            d, rows = seen.mean_y - origin[columns], (seen.n or 0) * known[columns]
            n[columns] += rows
            y[columns] += rows * d
            yy[columns] += rows * (np.diag(seen.cov_y) + d**2)
    return np.asarray(yy - y**2 * quotient(1.0, n) > 1e-12 * yy)


class Training(NamedTuple):
    """What a training set knows: completed moments without what confounders explain."""

    moments: Moments
    adjustment: Adjustment
    known: NDArray[np.bool_]


def training(rows: Rows | None, q: int = 0) -> Training | None:
    """None if the rows determine nothing.

    A covariate with fewer than two labels, one that is constant, and one that follows from the confounders are unknown:
    they get variance 1 and no covariance, so that they do not influence the others.
    """
    if rows is None or (rows.n or 0) < 2 or not np.any(np.diag(rows.cov_z) > 0):
        return None
    known = (rows.n_pairs >= 2) & ~explained(rows, q)
    if known.all():
        return Training(*adjusted(rows, q), known)
    if not known.any():
        return None
    at = np.flatnonzero(known)
    some, adjustment = adjusted(rows.select(at.tolist()), q)
    p = len(known)
    mean_y, cov_zy, cov_y, b_y = np.zeros(p), np.zeros((len(some.mean_z), p)), np.eye(p), np.zeros((q, p))
    mean_y[at], cov_zy[:, at], cov_y[np.ix_(at, at)], b_y[:, at] = some.mean_y, some.cov_zy, some.cov_y, adjustment.b_y
    whole = replace(some, mean_y=mean_y, cov_zy=cov_zy, cov_y=cov_y, covariate_names=rows.covariate_names)
    return Training(whole, adjustment._replace(b_y=b_y), known)


def mean_of_y(parts: Iterable[Rows]) -> Array:
    """The mean of every covariate over the rows that have it: an origin for sums of y."""
    total, count = 0.0, 0.0
    for part in parts:
        sums = np.zeros((2, len(part.n_pairs)))
        for columns, seen in part.pairs:
            sums[0, columns], sums[1, columns] = (seen.n or 0) * seen.mean_y, seen.n or 0
        total, count = total + sums[0], count + sums[1]
    return quotient(total, count)


def all_rows(part: Rows) -> Moments:
    """Moments of all rows, with or without covariates."""
    return part if isinstance(part, Moments) else part.rows
