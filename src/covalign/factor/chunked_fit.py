"""Fit to data of any size: one pass for the sums that sweeps need, another pass only for the factors of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.checks import lengths_differ, rows_not_kept, too_few_rows, y_required
from covalign._core.linalg import Array, affine, dense
from covalign._core.messages import message
from covalign.factor import combinations as combining
from covalign.factor import placement as placing
from covalign.factor import preparation as data
from covalign.factor.dask_views import Joined, is_lazy
from covalign.factor.inference.patterns import Index
from covalign.factor.inference.state import Factors, Problem, State
from covalign.factor.inference.uncertainty import Tails
from covalign.factor.nuisance import Nuisance
from covalign.factor.view_sums import Gathered, Sizes, gather, gather_batches
from covalign.factor.views import Cells, Coder, Views, coded_batches
from covalign.moments import cluster
from covalign.moments.adjustment import adjusted
from covalign.moments.moments import no_rows
from covalign.stream import Batch, Batches, is_batches
from covalign.stream.finite import first_not_finite, not_finite_at
from covalign.tables import confounders, covariates
from covalign.tables.join import in_order

AT_ONCE = 2**24  # bytes of float64 in a chunk of all views that is standardised


class Streamed:
    """Rows of a fit that are not in memory: how to read X again, if possible, and the tables that are in memory.

    Takes the place of ``data.Rows``. ``Y`` is standardised, without what the confounders ``C`` explain.
    """

    def __init__(self, read: Any, Y: Array | None, C: Array | None, tails: Tails, joined: Joined | None = None) -> None:
        self._read, self.Y, self.C, self.tails, self._joined = read, Y, C, tails, joined

    def __getstate__(self) -> dict[str, Any]:
        """Without sources: open files and generators cannot be pickled."""
        return {"_read": None, "Y": None, "C": None, "tails": self.tails, "_joined": None}

    def chunks(self) -> Iterator[tuple[slice, tuple[Any, ...]]]:
        """(positions of the rows, chunk of every view) for all rows."""
        if self._read is None or self.Y is None:
            raise rows_not_kept()
        at, n = 0, len(self.Y)
        for parts in self._read():
            stop = at + parts[0].shape[0]
            if stop > n:
                break
            yield slice(at, stop), parts
            at = stop
        if at != n:
            problem = "The rows of the fit need to be the same when they are read again"
            raise ValueError(message(problem, got=f"{at} rows instead of {n}", remedy="fit again"))

    def means(self, table: data.Table, problem: Problem, first: State, state: State, T: Array) -> Array:
        """E[z_n] of all rows (n x K), a chunk at a time; rows in dask are not moved."""
        if self._joined is not None and isinstance(state.z, Factors):
            assert self.Y is not None
            assert self.C is not None
            work = partial(_mapped_block, table=table, z=state.z)
            return np.asarray(self._joined.by_block(work, np.hstack([self.Y, self.C]), problem.k).compute())
        out = np.empty((problem.n, problem.k))
        for here, parts in self.chunks():
            assert self.Y is not None
            assert self.C is not None
            if isinstance(state.z, Factors):
                out[here] = mapped(table, parts, self.Y[here], self.C[here], state.z)
            else:
                for rows in spans(here, table.bounds[-1].stop):
                    at = slice(rows.start - here.start, rows.stop - here.start)
                    X = standardised(table, [part[at] for part in parts], self.C[rows])
                    out[rows] = placing.fitted(first, state, problem.data.S_y, X, self.Y[rows], T)
        return out

    def combinations(self, problem: Problem) -> Index:
        """The number of the combination of gaps of each row."""
        known, at = combining.numbers(problem.data), np.empty(problem.n, dtype=np.intp)
        for here, parts in self.chunks():
            assert self.Y is not None
            gone = [np.isnan(dense(part)) for part in parts]
            at[here] = combining.looked_up(known, ~np.hstack([*gone, np.isnan(self.Y[here])]))
        return at


def spans(here: slice, width: int) -> list[slice]:
    """Parts of a chunk that take AT_ONCE bytes in float64."""
    step = max(1, AT_ONCE // (8 * width))
    return [slice(i, min(i + step, here.stop)) for i in range(here.start, here.stop, step)]


def mapped(table: data.Table, parts: Iterable[Any], Y: Array, C: Array, z: Factors) -> Array:
    """(X - (C - c) B_x - mean) / sd of_x + Y of_y, for X as it is stored, one view after the other."""
    total, nuisance = Y @ z.of_y, table.nuisance
    for part, view, where in zip(parts, table.views.values(), table.bounds, strict=True):
        A = z.of_x[where] / view.sd[:, None]
        total += affine(part, view.mean, A, 0.0, dtype=np.float64)
        if C.shape[1]:
            total -= (C - nuisance.centre) @ (nuisance.B_x[:, where] @ A)
    return np.asarray(total)


def _mapped_block(parts: list[Any], t: Array, table: data.Table, z: Factors) -> Array:
    p = len(table.mean_y)
    return mapped(table, parts, t[:, :p], t[:, p:], z)


def standardised(table: data.Table, parts: Iterable[Any], C: Array) -> Array:
    """A chunk of all views side by side, standardised as in the fit, NaN where a cell is missing."""
    explained, out = table.nuisance.of_x(C), []
    for part, view, where in zip(parts, table.views.values(), table.bounds, strict=True):
        out.append((dense(part) - explained[:, where] - view.mean) / view.sd)
    return np.hstack(out)


def prepare(X: Any, y: Any, nuisance: Any, asked: data.Asked) -> tuple[data.Table, Any, Any]:
    """The table to remember, the engine, and the rows (or how to read them). Without y, X is an iterable of batches."""
    if y is None:
        if not is_batches(X):
            raise y_required()
        return from_batches(Batches(X, f"view {data.SINGLE!r}"), nuisance, asked)
    views = Views.open(X, asked.chunk_rows)
    lazy = is_lazy(X)
    y, separate = confounders.separated(cluster.here(y) if lazy else y, nuisance)
    frame = matched(views, y)
    table: Any = None if separate is None else matched_confounders(views, separate)
    single, named = not isinstance(X, Mapping), separate is not nuisance
    if not data.choose_engine(asked.engine, views.n, views.width):
        S = None if table is not None or frame.isna().any(axis=None) else views.sparse()
        if S is not None:
            return from_sparse(views, S, frame, single, asked)
        tables: Any = views.whole()
        if named and table is not None:  # the y of new samples also has these columns
            frame, table = frame.join(table), list(table.columns)
        return data.prepare(tables[data.SINGLE] if single else tables, frame, table, asked)
    encoding, Y = encoded(frame, asked.drop_first)
    coding, C = confounders.Coding.add(encoding, table, named, len(Y))
    sizes = Sizes(views.width, C.shape[1], Y.shape[1])
    joined = Joined.of(list(data.as_views(X).values())) if lazy else None
    if joined is None:
        found = gather([*views.sources.values(), Y, C], sizes, views.cell)
    else:
        found = joined.gather(Y, C, sizes, Cells.of(views))
    return finished(views.names, single, coding, found, Y, C, asked, views.chunks, joined)


def from_sparse(views: Views, S: Any, frame: pd.DataFrame, single: bool, asked: data.Asked) -> tuple[Any, Any, Any]:
    """``prepare`` for a sparse matrix with more features than rows: every sweep reads it, and it stays sparse."""
    if len(frame) < 2:
        raise too_few_rows(len(frame))
    at = first_not_finite(S)
    if at is not None:
        view = int(np.searchsorted(np.cumsum([len(names) for names in views.names.values()]), at[1], side="right"))
        column = at[1] - sum(len(names) for names in list(views.names.values())[:view])
        where, name, label = views.cell(view, column, at[0])
        raise not_finite_at(where, at[2], at[0], column, name, label)
    encoding, Y = encoded(frame, asked.drop_first)
    mean, sd, mean_y, sd_y, of_data = data.of_sparse(S, Y)
    scales = data.scaled(views.names, mean, sd, asked.scale)
    table = data.Table(scales, single, None, encoding, mean_y, sd_y, no_nuisance(encoding, S.shape[1]))
    rows = data.Rows(np.empty((0, 0)), (Y - mean_y) / sd_y, np.empty((len(Y), 0)))
    return table, of_data(sd, rows), Streamed(views.chunks, rows.Y, rows.C, Tails.of(rows.Y))


def no_nuisance(encoding: covariates.Encoding, d: int) -> Nuisance:
    """The ``Nuisance`` of a fit without confounders."""
    return Nuisance(confounders.Coding(encoding), np.empty(0), np.empty((0, d)), np.empty((0, len(encoding.names))))


def from_batches(batches: Batches, nuisance: Any, asked: data.Asked) -> tuple[data.Table, Any, Any]:
    """``prepare`` for batches.

    As many rows as there are features are kept first: if no more rows come, every sweep needs all rows.
    """
    stream, held, n = iter(batches), list[Batch](), 0
    for batch in stream:
        held.append(batch)
        n += batch.Y.shape[0]
        if asked.engine != "dense" and n > sum(map(len, batches.names.values())):
            break
    if not held:
        raise no_rows()
    if not data.choose_engine(asked.engine, n, sum(map(len, batches.names.values()))):
        return data.prepare(*in_memory(held, batches), nuisance, asked)
    coder = Coder.learn(covariates.as_frame(held[0].Y), nuisance, asked.drop_first)
    kept: list[tuple[Array, Array]] = []

    def coded_once() -> Iterator[tuple[Any, ...]]:
        for parts in coded_batches(chain(drained(held), stream), coder):
            kept.append((parts[-2], parts[-1]))
            yield parts

    sizes = Sizes(sum(map(len, batches.names.values())), coder.coding.q, len(coder.coding.covariates.names))

    def cell(view: int, column: int, row: int) -> tuple[Any, ...]:
        name, features = list(batches.names.items())[view]
        return f"view {name!r}", features[column], None

    found = gather_batches(coded_once(), sizes, cell)
    Y, C = (np.concatenate(part) for part in zip(*kept, strict=True))
    covariates.refuse_constant(pd.DataFrame(Y, columns=coder.coding.covariates.names, copy=False))
    again = (lambda: (parts[:-2] for parts in coded_batches(batches, coder))) if batches.again else None
    return finished(batches.names, batches.single, coder.coding, found, Y, C, asked, again)


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
    return frame.set_axis(pd.RangeIndex(views.n) if views.index is None else views.index, axis=0)


def matched_confounders(views: Views, table: Any) -> pd.DataFrame:
    """Confounders in the order of the rows."""
    frame = confounders.matched(table, views.index, views.n)
    return frame.set_axis(pd.RangeIndex(views.n) if views.index is None else views.index, axis=0)


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
) -> tuple[data.Table, Any, Streamed]:
    """Table, engine and rows of a fit, from the sums over all rows."""
    if len(Y) < 2:
        raise too_few_rows(len(Y))
    if found.partial:
        if C.shape[1]:
            problem = "Confounders of data that are read by chunks need complete rows"
            remedy = "fill them in, leave these samples out, or load X into memory"
            raise ValueError(message(problem, got="missing cells", remedy=remedy))
        nuisance = no_nuisance(coding.covariates, sum(map(len, names.values())))
        made = combining.gapped(found, Y, names)
    else:
        assert found.complete is not None
        m, adjustment = adjusted(found.complete.with_names(coding.covariates.names), C.shape[1])
        nuisance = Nuisance(coding, *adjustment)
        Y = Y - nuisance.of_y(C) if C.shape[1] else Y
        made = data.of_moments(m, Y)
    mean, sd, mean_y, sd_y, of_data = made
    scales = data.scaled(names, mean, sd, asked.scale)
    table = data.Table(scales, single, None, coding.covariates, mean_y, sd_y, nuisance)
    rows = data.Rows(np.empty((0, 0)), (Y - mean_y) / sd_y, C)
    return table, of_data(sd, rows), Streamed(read, rows.Y, C, Tails.of(rows.Y), joined)
