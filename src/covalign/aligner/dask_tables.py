"""Tables in dask, coded for the aligner; ``moments.cluster`` computes sums and products."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from covalign._core.data_errors import missing_values
from covalign._core.linalg import Array
from covalign._core.messages import message, shown
from covalign.moments import cluster
from covalign.moments.adjustment import Adjustment
from covalign.moments.block_sizes import bucket_count
from covalign.moments.incomplete import Rows, merged
from covalign.stream import is_dask
from covalign.tables import confounders as nuisance
from covalign.tables import covariates
from covalign.tables import groups as grouping
from covalign.tables.confounders import Coding
from covalign.tables.join import match_rows


class Lazy(NamedTuple):
    """Rows in dask, with their confounders as the last columns, and covariates in numbers."""

    rows: Any
    Y: Any  # a DataFrame, or in dask
    coding: Coding
    missing: str
    groups: Array | None = None  # distinct numbers of groups; the last column of Y has those of the rows


def dtype_of(Z: Any) -> np.dtype[Any]:
    """float32 if all columns are float32, else float64."""
    kinds = {Z.dtype} if hasattr(Z, "dtype") else set(Z.dtypes)
    return np.dtype(np.float32 if kinds == {np.dtype(np.float32)} else np.float64)


def given(
    Z: Any,
    Y: Any,
    confounders: Any,
    coding: Coding | None,
    missing: str,
    groups: Any = None,
    *,
    drop_first: bool = True,
    partial: bool,
) -> Lazy:
    """Rows and covariates to be summed; ``coding`` is that of earlier rows."""
    if is_dask(Y):
        if confounders is not None:
            problem, remedy = "Confounders need Y in memory", "compute Y first (it is small beside Z)"
            raise ValueError(message(problem, got="Y in dask", remedy=remedy))
        if groups is not None and not (isinstance(groups, str) and groups in getattr(Y, "columns", [])):
            problem, remedy = "If Y is in dask, groups need to be one of its columns", "add it to Y, or compute Y first"
            got = shown(groups) if isinstance(groups, str) else "labels"
            raise ValueError(message(problem, got=got, remedy=remedy))
        if groups is None:
            coding = Coding(cluster.learn(Y, drop_first=drop_first)) if coding is None else coding
            return Lazy(Z, cluster.encoded(Y, coding.covariates), coding, missing)
        coding = Coding(cluster.learn(Y.drop(columns=[groups]), drop_first=drop_first)) if coding is None else coding
        found = grouping.numbers(cluster.here(Y[groups].drop_duplicates()), None, several=not partial)
        return Lazy(Z, cluster.encoded(Y, coding.covariates, groups), coding, missing, np.unique(found))
    Y, groups = grouping.separated(Y, groups, confounders)
    separate = nuisance.separated if coding is None else coding.recall
    rest, confounders = separate(Y, confounders)
    tables = nuisance.tables(None, match_rows(Z, rest), confounders)
    whole = tables.Y.loc[covariates.complete_rows(tables.Y, missing, partial=partial)]
    if coding is None:
        learnt = tables._replace(Y=whole)
        coding = Coding.learn(learnt, drop_first=drop_first, declared=partial, named=rest is not Y)
    if not partial:
        covariates.refuse_constant(coding.covariates.apply(whole))
    C = nuisance.coded(coding.confounders, tables.C)
    encoded = coding.covariates.apply(tables.Y)
    if groups is None:
        return Lazy(cluster.beside(Z, C), encoded, coding, missing)
    numbers = grouping.numbers(groups, len(encoded), encoded.index, several=not partial)
    encoded = encoded.assign(**{grouping.COLUMN: numbers})
    return Lazy(cluster.beside(Z, C), encoded, coding, missing, np.unique(numbers))


def fold_moments(lazy: Lazy, folds: int, buckets: int | None = None) -> list[Rows | None]:
    """``gap_accumulator.fold_moments``, computed where the rows are stored; ``buckets`` are those of earlier rows."""
    coding, drop = lazy.coding, lazy.missing == "drop"
    grouped = lazy.groups is not None
    several = buckets or bucket_count(
        folds, lazy.rows.shape[1] + len(coding.covariates.names), None if lazy.groups is None else len(lazy.groups)
    )
    found: list[Rows | None] = cluster.fold_moments(
        lazy.rows, lazy.Y, several, coding.covariates.blocks, coding.q, drop=drop, grouped=grouped
    )
    if lazy.missing == "raise":
        whole = merged(found)
        lacking = np.zeros(0) if whole is None else (whole.n or 0) - whole.n_pairs
        for column in np.flatnonzero(lacking):
            raise missing_values(coding.covariates.names[column], int(lacking[column]), [])
    return found


def transform(Z: Any, coding: Coding, confounders: Any, mean: Array, T: Array, adjustment: Adjustment) -> Any:
    """[Z - mean, C - centre] [T, -T B_z']' of rows in dask, as a dask array."""
    if coding.q == 0:
        coding.table(None, confounders, 0)  # refuses confounders that were not fitted
        return cluster.lazy_transform(Z, mean, T)
    C = coding.table(None, match_rows(Z, confounders), sum(cluster.row_counts(Z)))
    both = np.hstack([T, -T @ adjustment.B_z.T])
    return cluster.lazy_transform(cluster.beside(Z, C), np.concatenate([mean, adjustment.centre]), both)
