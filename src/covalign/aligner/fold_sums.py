"""Moments of every fold from the data of the user: rows in memory, in files, in dask, or in batches."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.checks import too_many_folds
from covalign._core.data_errors import constant_covariates, no_rows, y_required
from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign._core.number_range import OutOfRange, out_of_range
from covalign._core.room import check_memory
from covalign.aligner import dask_tables as dasks
from covalign.aligner import intake
from covalign.closed_form.crowded import only_strongest
from covalign.exceptions import NotFiniteError
from covalign.moments.block_sizes import MANY, bucket_count
from covalign.moments.gap_accumulator import batch_moments, fold_moments
from covalign.moments.incomplete import Rows
from covalign.stream import Batch, Batches, is_batches, is_dask, is_source, refuse_not_finite
from covalign.stream.levels import Levels
from covalign.tables import confounders as nuisance
from covalign.tables import covariates
from covalign.tables.confounders import Coding
from covalign.tables.groups import COLUMN

FEW_FOLDS = 100  # a number that costs little, however few the rows
FEWER_COLUMNS = "reduce the columns first: fit covalign.principal_components(Z, rank=500).transform(Z)"


class Found(NamedTuple):
    """What an aligner remembers of rows."""

    coding: Coding
    folds: list[Rows | None]
    dtype: np.dtype[Any]  # precision of the rows
    groups: Array | None = None  # distinct numbers of groups
    rows: Any = None  # [Z C], if they are in memory


class Prepared(NamedTuple):
    """Rows ready to be summed."""

    coding: Coding
    rows: Any  # [Z C]
    Y: pd.DataFrame
    labels: Callable[[], intake.Labels]
    groups: Array | None = None


class Fitting(NamedTuple):
    """Settings of a fit. The ``estimator`` remembers the columns of Z; ``partial`` says that more rows may follow."""

    estimator: Any
    folds: int
    buckets: int | None  # those of earlier rows
    missing: str
    drop_first: bool
    chunk_rows: int | None
    partial: bool
    single: bool = False  # products of the columns of Z in float32

    def moments(self, Z: Any, Y: Any, confounders: Any, coding: Coding | None, groups: Any = None) -> Found:
        """Moments of every fold; ``coding`` is that of earlier rows."""
        try:
            return self._moments(Z, Y, confounders, coding, groups)
        except OutOfRange as error:
            names = getattr(self.estimator, "feature_names_in_", None)
            if names is None or not error.position < len(names) or "Z needs" not in str(error):
                raise
            raise out_of_range("Z", names[error.position], large=True) from None

    def _moments(self, Z: Any, Y: Any, confounders: Any, coding: Coding | None, groups: Any = None) -> Found:
        if Y is None and is_batches(Z):
            return self._of_batches(Batches(Z), confounders, coding, groups)
        if Y is None:
            raise y_required()
        if is_dask(Z):
            return self._of_dask(Z, Y, confounders, coding, groups)
        first = coding is None
        coding, rows, encoded, labels, found = self._prepared(Z, Y, confounders, coding, groups=groups)
        levels = self._levels(coding)
        if not self.partial:
            _refuse_constant(coding, encoded, levels)
        elif not first and len(encoded) == 0:  # all rows were left out
            return Found(coding, [None] * self._buckets(rows, encoded, coding, found), _precision(rows.dtype), found)
        try:
            # The sums notice numbers that are not finite, so no other pass is needed.
            made = fold_moments(
                rows,
                encoded,
                self._buckets(rows, encoded, coding, found),
                coding.covariates.blocks,
                coding.q,
                grouped=found is not None,
                single=self.single,
                names=coding.covariates.names,
                levels=levels,
            )
        except NotFiniteError as error:
            if is_source(rows):  # a Source knows the names of its rows and columns
                raise
            refuse_not_finite(rows, 0, labels())
            if error.column is None:
                raise
            raise out_of_range("Z", error.column, large=True, position=error.column) from None  # sums overflowed
        return Found(coding, made, _precision(rows.dtype), found, None if is_source(rows) else rows)

    def _prepared(
        self, Z: Any, Y: Any, confounders: Any, coding: Coding | None, start: int = 0, groups: Any = None
    ) -> Prepared:
        """[Z C] and Y as numbers, with groups as its last column; the first row has the number ``start``."""
        given = intake.given(Z, Y, confounders, coding, self.chunk_rows, groups, several=not self.partial)
        least = 1 if self.partial else 2
        rows = intake.validated(
            self.estimator, given.rows, coding is None, ensure_all_finite=False, ensure_min_samples=least
        )
        rows, tables = nuisance.complete(rows, given.tables, self.missing, partial=self.partial)
        if coding is None:
            coding = Coding.learn(tables, drop_first=self.drop_first, declared=self.partial, named=given.named)
            self._refuse_many(coding, rows.shape[1])

        def labels() -> intake.Labels:
            keep = np.flatnonzero(covariates.complete_rows(given.tables.Y, self.missing, partial=self.partial))
            return intake.labels_for_messages(Z, keep, start)

        rows, encoded = coding.apply(rows, tables, short=self._levels(coding) is not None)
        if given.groups is None:
            return Prepared(coding, rows, encoded, labels)
        kept = covariates.complete_rows(given.tables.Y, self.missing, partial=self.partial)
        encoded = encoded.assign(**{COLUMN: given.groups[np.asarray(kept)]})
        return Prepared(coding, rows, encoded, labels, np.unique(given.groups[np.asarray(kept)]))

    def _of_batches(self, batches: Batches, confounders: Any, coding: Coding | None, groups: Any) -> Found:
        if not (groups is None or isinstance(groups, str)):
            problem = "Groups of batches need to be a column of their Y, given by name"
            raise ValueError(message(problem, got="labels", remedy="put them into Y and pass the name of the column"))
        if not (confounders is None or isinstance(confounders, str | list | tuple)):
            problem = "Confounders of batches need to be columns of their Y, given by name"
            raise ValueError(message(problem, got="a table", remedy="put them into Y and pass their names"))
        now, n, stream, seen = self._replace(partial=True), 0, iter(batches), set[float]()

        def prepared(batch: Batch) -> tuple[Any, pd.DataFrame]:
            nonlocal coding, n
            (Z,) = batch.tables.values()
            coding, rows, encoded, labels, found = now._prepared(Z, batch.Y, confounders, coding, n, groups)
            seen.update([] if found is None else found.tolist())
            # The batch cannot be read again, so it is searched now.
            refuse_not_finite(rows, 0, labels())
            n += Z.shape[0]
            return rows, encoded

        first = next(stream, None)
        if first is None:
            raise no_rows()
        start = prepared(first)
        assert coding is not None  # that of the first batch
        both = ((Z, Y.to_numpy()) for Z, Y in chain([start], map(prepared, stream)))
        names, k = coding.covariates.names, start[0].shape[1]
        grouped = groups is not None
        several = now._buckets(*start, coding, np.array(sorted(seen)) if grouped else None)
        made = batch_moments(
            both,
            names,
            k,
            several,
            coding.covariates.blocks,
            coding.q,
            grouped=grouped,
            single=self.single,
            levels=self._levels(coding),
        )
        return Found(coding, made, _precision(start[0].dtype), np.array(sorted(seen)) if grouped else None)

    def _of_dask(self, Z: Any, Y: Any, confounders: Any, coding: Coding | None, groups: Any) -> Found:
        intake.validated(self.estimator, Z, reset=coding is None)
        lazy = dasks.given(
            Z, Y, confounders, coding, self.missing, groups, drop_first=self.drop_first, partial=self.partial
        )
        if coding is None:
            self._refuse_many(lazy.coding, Z.shape[1])
        made = dasks.fold_moments(lazy, self.folds, self.buckets)
        return Found(lazy.coding, made, dasks.dtype_of(Z), lazy.groups)

    def _refuse_many(self, coding: Coding, k: int) -> None:
        """Before any row is read: more covariates than dimensions have the strongest regime only."""
        p, asked = len(coding.covariates.names), self.estimator
        if p > k and not (asked.regime == "strongest" or (asked.regime == "tunable" and asked.lam == 1)):
            raise only_strongest(p, k)

    def _levels(self, coding: Coding) -> Levels | None:
        """How covariates travel: as a short table if they are many dummies (not for sums in single precision)."""
        return None if self.single else coding.covariates.levels

    def _buckets(self, rows: Any, Y: Any, coding: Coding, groups: Array | None) -> int:
        """Of earlier rows, or by the numbers of columns and, if all rows are here, of groups."""
        columns = rows.shape[1] + len(coding.covariates.names)
        if not self.partial and self.folds > max(len(Y), FEW_FOLDS):
            raise too_many_folds(self.folds, f"at most the number of rows, {len(Y)}")
        several = None if groups is None else MANY if self.partial else len(groups)
        count = self.buckets or bucket_count(self.folds, columns, several)
        # Groups may be fewer than buckets; the covariance of all rows and that of a training set come on top.
        check_memory(
            f"a fit of {columns} columns", 8.0 * columns**2 * (min(count, several or count) + 2), FEWER_COLUMNS
        )
        return count


def _refuse_constant(coding: Coding, encoded: pd.DataFrame, levels: Levels | None) -> None:
    if levels is None:
        covariates.refuse_constant(encoded[coding.covariates.names])
        return
    varies = levels.varies(encoded.to_numpy())
    if not varies.all():
        raise constant_covariates(np.array(coding.covariates.names)[~varies])


def _precision(dtype: Any) -> np.dtype[Any]:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)
