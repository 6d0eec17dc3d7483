"""Fit to data of any size: one pass for the sums that sweeps need, another pass only for the factors of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.data_errors import lengths_differ, no_rows, too_few_rows, y_required
from covalign._core.linalg import Array, dense
from covalign._core.messages import message
from covalign.factor import combinations as combining
from covalign.factor import preparation as data
from covalign.factor import sparse_fit
from covalign.factor.dask_views import Joined, is_lazy
from covalign.factor.fitted_rows import Streamed
from covalign.factor.inference.uncertainty import Tails
from covalign.factor.nuisance import Nuisance
from covalign.factor.table import Table
from covalign.factor.view_sums import Gathered, Sizes, gather, gather_batches
from covalign.factor.views import Cells, Views, coded_batches, learn_coding
from covalign.moments import cluster
from covalign.moments.adjustment import adjusted
from covalign.stream import Batch, Batches, is_batches
from covalign.tables import confounders, covariates
from covalign.tables.join import in_order


def prepare(X: Any, y: Any, nuisance: Any, asked: data.Asked) -> tuple[Table, Any, Any]:
    """The table to remember, the engine, and the rows (or how to read them). Without y, X is an iterable of batches."""
    if y is None:
        if not is_batches(X):
            raise y_required()
        return from_batches(Batches(X, f"view {data.SINGLE!r}"), nuisance, asked)
    views = Views.open(X, asked.chunk_rows)
    lazy = is_lazy(X)
    y, separate = confounders.separated(cluster.here(y) if lazy else y, nuisance)
    frame = matched(views, y)
    table: Any = None
    if separate is not None:
        table = confounders.matched(separate, views.index, views.n).set_axis(views.labels, axis=0)
    single, named = not isinstance(X, Mapping), separate is not nuisance
    use_gram = data.choose_engine(asked.engine, views.n, views.width)
    encoding, Y = encoded(frame, asked.drop_first)
    if not lazy and sparse_fit.stays_sparse(views, use_gram, asked.engine):
        given = sparse_fit.Covariates(encoding, Y, table, named)
        found_sparse = sparse_fit.prepare(views, given, single, asked, use_gram)
        if found_sparse is not None:
            return found_sparse
    if not use_gram:
        tables: Any = views.whole()
        if named and table is not None:  # the y of new samples also has these columns
            frame, table = frame.join(table), list(table.columns)
        return data.prepare(tables[data.SINGLE] if single else tables, frame, table, asked)
    coding, C = confounders.Coding.add(encoding, table, named, len(Y))
    sizes = Sizes(views.width, C.shape[1], Y.shape[1])
    joined = Joined.of(list(data.as_views(X).values())) if lazy else None
    if joined is None:
        found = gather([*views.sources.values(), Y, C], sizes, views.cells)
    else:
        found = joined.gather(Y, C, sizes, replace(views.cells, views=None))
    return finished(views.names, single, coding, found, Y, C, asked, views.chunks, joined)


def from_batches(batches: Batches, nuisance: Any, asked: data.Asked) -> tuple[Table, Any, Any]:
    """``prepare`` for batches.

    As many rows as there are features are kept first: if no more rows come, every sweep needs all rows.
    """
    stream, held, n, d = iter(batches), list[Batch](), 0, 0
    for batch in stream:
        held.append(batch)
        n, d = n + batch.Y.shape[0], sum(map(len, batches.names.values()))
        if asked.engine != "dense" and n > d:
            break
    if not held:
        raise no_rows()
    if not data.choose_engine(asked.engine, n, d):
        return data.prepare(*in_memory(held, batches), nuisance, asked)
    coding = learn_coding(covariates.as_frame(held[0].Y), nuisance, asked.drop_first)
    kept: list[tuple[Array, Array]] = []

    def coded_once() -> Iterator[tuple[Any, ...]]:
        for parts in coded_batches(chain(drained(held), stream), coding):
            kept.append((parts[-2], parts[-1]))
            yield parts

    cells = Cells([f"view {name!r}" for name in batches.names], list(batches.names.values()))
    found = gather_batches(coded_once(), Sizes(d, coding.q, len(coding.covariates.names)), cells)
    Y, C = (np.concatenate(part) for part in zip(*kept, strict=True))
    covariates.refuse_constant(pd.DataFrame(Y, columns=coding.covariates.names, copy=False))
    covariates.refuse_unused_reference(coding.covariates, np.sum(~np.isnan(Y), axis=0), np.nansum(Y, axis=0))
    again = (lambda: (parts[:-2] for parts in coded_batches(batches, coding))) if batches.again else None
    return finished(batches.names, batches.single, coding, found, Y, C, asked, again)


def drained(held: list[Batch]) -> Iterator[Batch]:
    """The batches; each is removed from the list when it is taken, to free its memory."""
    while held:
        yield held.pop(0)


def in_memory(held: list[Batch], batches: Batches) -> tuple[Any, pd.DataFrame]:
    """X and y of batches that fit into memory."""
    n = sum(batch.Y.shape[0] for batch in held)
    views = {
        name: pd.DataFrame(np.concatenate([np.asarray(dense(batch.tables[name])) for batch in held]), columns=names)
        for name, names in batches.names.items()
    }
    frame = pd.concat([covariates.as_frame(batch.Y) for batch in held]).set_axis(pd.RangeIndex(n), axis=0)
    return (views[data.SINGLE] if batches.single else views), frame


def encoded(frame: pd.DataFrame, drop_first: bool) -> tuple[covariates.Encoding, Array]:
    """The coding of the covariates and their numbers (n x P); an error if a covariate is constant."""
    encoding = covariates.Encoding.learn(frame, drop_first=drop_first)
    Y = encoding.numbers(frame)
    covariates.refuse_constant(pd.DataFrame(Y, columns=encoding.names, copy=False))
    return encoding, Y


def matched(views: Views, y: Any) -> pd.DataFrame:
    """Covariates in the order of the rows, by index if the views and y have one; rows that y lacks are empty."""
    frame = covariates.as_frame(y)
    if isinstance(y, pd.DataFrame | pd.Series) and views.index is not None:
        frame = in_order(frame, views.index, absent="leave empty", extra="leave out", called=("y", "X"))
    if len(frame) != views.n:
        raise lengths_differ(views.n, len(frame))
    return frame.set_axis(views.labels, axis=0)


def finished(
    names: dict[str, list[str]],
    single: bool,
    coding: confounders.Coding,
    found: Gathered,
    Y: Array,
    C: Array,
    asked: data.Asked,
    read: Any,
    joined: Joined | None = None,
) -> tuple[Table, Any, Streamed]:
    """Table, engine and rows of a fit, from the sums over all rows."""
    if len(Y) < 2:
        raise too_few_rows(len(Y))
    if found.partial:
        if C.shape[1]:
            problem = "Confounders of data that are read by chunks need complete rows"
            remedy = "fill them in, leave these samples out, or load X into memory"
            raise ValueError(message(problem, got="missing cells", remedy=remedy))
        nuisance = Nuisance.none(coding.covariates, sum(map(len, names.values())))
        measured = combining.gapped(found, names)
    else:
        assert found.complete is not None
        m, adjustment = adjusted(found.complete.with_names(coding.covariates.names), C.shape[1])
        nuisance = Nuisance(coding, *adjustment)
        Y = Y - nuisance.of_y(C) if C.shape[1] else Y
        measured = data.of_moments(m)
    table, engine, Y = data.assembled(measured, Y, names, single, None, nuisance, asked.scale)
    return table, engine, Streamed(read, Y, C, Tails.of(Y), joined)
