"""From sparse views to an engine, without a dense table: gaps by view, confounders and means are low-rank corrections.

A sparse table is worth keeping as it is where every sweep needs the rows (more features than samples), or where D x D
sums would be larger than the table (``stays_sparse``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.data_errors import features_all_missing, too_few_rows
from covalign._core.linalg import Array, is_explained
from covalign.factor import preparation as data
from covalign.factor.fitted_rows import Streamed
from covalign.factor.inference.engines import Sparse
from covalign.factor.inference.sparse_gaps import SparseGapped
from covalign.factor.inference.sparse_rows import SparseX, squares_left
from covalign.factor.inference.uncertainty import Tails
from covalign.factor.nuisance import Nuisance
from covalign.factor.table import Table
from covalign.factor.views import Views, stored_sparse
from covalign.moments.adjustment import coefficients
from covalign.stream.finite import first_not_finite, not_finite_at
from covalign.tables import confounders
from covalign.tables.covariates import Encoding

LARGE = 10_000  # features whose D x D sums take more memory than most sparse tables
SMALL_BYTES = 2**27  # of a table that is made dense if it has gaps or confounders: then samples can be left out


def stays_sparse(views: Views, use_gram: bool, engine: str) -> bool:
    """Whether views are read as sparse matrices, if they are."""
    if not use_gram:
        return True
    stored = [stored_sparse(getattr(source, "of", source)) for source in views.sources.values()]
    large = views.width > LARGE and all(S is not None for S in stored)
    return engine == "auto" and large and sum(S.nnz for S in stored) < views.width**2


class Covariates(NamedTuple):
    """Coded covariates (n x P, NaN in gaps), and confounders as a table, None, or names of columns of new y."""

    encoding: Encoding
    Y: Array
    confounders: Any
    named: bool


def prepare(
    views: Views, given: Covariates, single: bool, asked: data.Asked, use_gram: bool
) -> tuple[Table, Any, Streamed] | None:
    """Table, engine and rows; None if the views are not sparse, have gaps within a view, or are small."""
    found = views.sparse()
    if found is None:
        return None
    parts, present = found
    plain = given.confounders is None and not np.isnan(given.Y).any() and bool(present.all())
    if not plain and not use_gram and 8 * views.n * views.width <= SMALL_BYTES:
        return None
    if len(given.Y) < 2:
        raise too_few_rows(len(given.Y))
    _refuse_bad(views, parts, present)
    coding, C = confounders.Coding.add(given.encoding, given.confounders, given.named, len(given.Y))
    nuisance = _nuisance(coding, C, parts, given.Y, present)
    Y = given.Y - nuisance.of_y(C) if C.shape[1] else given.Y
    of_parts = measured(parts, present, C, nuisance)
    table, engine, Y = data.assembled(of_parts, Y, views.names, single, None, nuisance, asked.scale)
    return table, engine, Streamed(views.chunks, Y, C, Tails.of(Y))


def measured(
    parts: Sequence[Any],
    present: NDArray[np.bool_] | None = None,
    C: Array | None = None,
    nuisance: Nuisance | None = None,
) -> data.Measured:
    """``preparation.complete``, or ``gapped``, from csr matrices, one for each view (zeros in rows that lack it)."""
    n, ends = parts[0].shape[0], np.cumsum([0, *(part.shape[1] for part in parts)]).tolist()
    bounds, d = [slice(a, b) for a, b in pairwise(ends)], ends[-1]
    present = np.ones((n, len(parts)), dtype=bool) if present is None else present
    c = np.empty((n, 0)) if C is None or nuisance is None else C - nuisance.centre
    B = np.empty((0, d)) if nuisance is None else nuisance.B_x
    mean, variance = np.empty(d), np.empty(d)
    for part, where, there in zip(parts, bounds, present.T, strict=True):
        mean[where], variance[where] = _moments(part, there, c, B[:, where])

    def engine(s: data.Scale) -> Sparse | SparseGapped:
        X = SparseX.of(parts, mean, np.where(s.constant, 0.0, 1 / s.sd), *corrections(present, bounds, mean, c, B))
        has_y = ~np.isnan(s.Y)
        if present.all() and has_y.all():
            return Sparse(X, s.Y)
        view_of = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        return SparseGapped.of_views(X, present, view_of, np.nan_to_num(s.Y), has_y, s.S_y)

    return data.Measured(mean, variance, engine)


def _moments(S: Any, there: NDArray[np.bool_], c: Array, B: Array) -> tuple[Array, Array]:
    """Means and variances of S - c B over the rows that have the view; others are empty.

    What is explained fully is constant instead of rounding noise.
    """
    n, one = int(there.sum()), there[:, None].astype(np.float64)
    average = np.asarray(S.sum(axis=0)).ravel() / n
    before = squares_left(S, one, average[None], n) / n
    if c.shape[1] == 0:
        return average, before
    mean = average - c[there].mean(axis=0) @ B
    left = squares_left(S, np.hstack([one, one * c]), np.vstack([mean, B]), n) / n
    return mean, np.where(is_explained(left, before), 0.0, left)


def corrections(
    present: NDArray[np.bool_], bounds: Sequence[slice], mean: Array, c: Array, B: Array
) -> tuple[Array, Array]:
    """L and R of ``SparseX``: c B in rows that have a view, and -mean in rows that lack it."""
    if present.all():
        return c, B
    left, right = [], []
    for where, there in zip(bounds, present.T.astype(np.float64), strict=True):
        rows = np.zeros((1 + len(B), len(mean)))
        rows[0, where], rows[1:, where] = mean[where], B[:, where]
        left.append(np.column_stack([there - 1, there[:, None] * c]))
        right.append(rows)
    return np.hstack(left), np.vstack(right)


def _nuisance(
    coding: confounders.Coding, C: Array, parts: Sequence[Any], Y: Array, present: NDArray[np.bool_]
) -> Nuisance:
    """``Nuisance.of`` for sparse views: every feature by the rows that have its view."""
    if C.shape[1] == 0:
        return Nuisance.none(coding.covariates, sum(part.shape[1] for part in parts))
    spread = C.std(axis=0)
    unit = np.where(spread > 0, spread, 1.0)
    A = np.column_stack([np.ones(len(C)), (C - C.mean(axis=0)) / unit])
    slopes = [
        (part.T @ np.linalg.pinv(A * there[:, None], rcond=1e-10).T).T[1:] / unit[:, None]
        for part, there in zip(parts, present.T, strict=True)
    ]
    made = Nuisance(coding, C.mean(axis=0), np.hstack(slopes), coefficients(C, Y)[1])
    made.refuse_explained(C, Y)
    return made


def _refuse_bad(views: Views, parts: Sequence[Any], present: NDArray[np.bool_]) -> None:
    """Raise an error for an infinite number, or for a view that no row has."""
    for i, (view, part) in enumerate(zip(views.names, parts, strict=True)):
        at = first_not_finite(part)
        if at is not None:
            where, name, label = views.cells(i, at[1], at[0])
            raise not_finite_at(where, at[2], at[0], at[1], name, label)
        if not present[:, i].any():
            raise features_all_missing(view, views.names[view])
