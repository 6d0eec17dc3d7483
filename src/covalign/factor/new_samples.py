"""Factors of new samples, which are standardised as in the fit, all at once or a chunk at a time."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.checks import columns_differ, features_missing, lengths_differ, unknown_views
from covalign._core.linalg import Array, affine, dense
from covalign.factor import chunked_fit as outofcore
from covalign.factor import dask_views as lazy
from covalign.factor import placement as placing
from covalign.factor import preparation as data
from covalign.factor.inference.state import State
from covalign.factor.inference.uncertainty import Finish
from covalign.factor.view_sums import is_finite
from covalign.factor.views import Views, is_in_memory
from covalign.moments import cluster
from covalign.stream import map_rows
from covalign.stream.finite import first_not_finite, not_finite_at
from covalign.tables import covariates


class Stage(NamedTuple):
    """What decides the factors of a sample: a state, the covariance of the covariates, and T of the regime."""

    state: State
    S_y: Array
    T: Array


def whole(table: data.Table, X: Any, y: Any, confounders: Any) -> tuple[Array, Array]:
    """All features of new samples and their covariates, standardised as in the fit, NaN where missing."""
    views, p = data.as_views(X), len(table.mean_y)
    refuse_unknown(table, views)
    named = isinstance(y, pd.DataFrame | pd.Series)
    y, confounders = table.nuisance.coding.recall(y, confounders)
    if y is None:
        views, frame = data.joined_views(views), None
    else:
        views, frame = data.joined_rows(views, covariates.as_frame(y), named)
    n = len(next(iter(views.values())))
    C = table.nuisance.coding.table(next(iter(views.values())), confounders, n)
    explained, parts = table.nuisance.of_x(C), []
    for (name, scale), where in zip(table.views.items(), table.bounds, strict=True):
        values = np.full((n, len(scale.names)), np.nan)
        if name in views:
            values = data.columns_like(name, views[name], scale.names)
        if len(values) != n:
            raise lengths_differ(n, len(values))
        parts.append((values - explained[:, where] - scale.mean) / scale.sd)
    X_new = np.hstack(parts)
    if frame is None:
        return X_new, np.full((len(X_new), p), np.nan)
    Y = table.encoding.numbers(frame)
    if len(Y) != len(X_new):
        raise lengths_differ(len(X_new), len(Y))
    return X_new, (Y - table.nuisance.of_y(C) - table.mean_y) / table.sd_y


def refuse_unknown(table: data.Table, views: Any) -> None:
    """Raise an error for a view that the fit did not have."""
    unknown = [name for name in views if name not in table.views]
    if unknown:
        raise unknown_views(unknown, list(table.views))


class Arrived:
    """New samples: names of their views, standardised covariates, confounders, and the number of the first row."""

    def __init__(self, table: data.Table, present: Sequence[str], Y: Array | None, C: Array, first: int = 0) -> None:
        self.table, self.present, self.Y, self.C, self.first = table, list(present), Y, C, first

    def rows(self, here: slice, parts: dict[str, Any]) -> tuple[Array, Array]:
        """X and Y, standardised, views side by side, NaN where a cell is missing."""
        n, explained, out = here.stop - here.start, self.table.nuisance.of_x(self.C[here]), []
        for (name, scale), where in zip(self.table.views.items(), self.table.bounds, strict=True):
            values = dense(parts[name]) if name in parts else np.full((n, len(scale.names)), np.nan)
            out.append((values - explained[:, where] - scale.mean) / scale.sd)
        return np.hstack(out), np.full((n, len(self.table.mean_y)), np.nan) if self.Y is None else self.Y[here]

    def refuse_infinite(self, name: str, part: Any, start: int) -> None:
        """Raise an error that names row and column of an infinite number; NaN is a gap."""
        part = dense(part)
        at = first_not_finite(np.where(np.isnan(part), 0, part))
        if at is not None:
            row, column, value = at
            row += self.first + start
            where, label = self._cell(name, row)
            raise not_finite_at(where, value, row, column, self.table.views[name].names[column], label)

    def _cell(self, name: str, row: int) -> tuple[str, Any]:
        """The names of a view and of a row in messages."""
        return f"view {name!r}", None


class Incoming(Arrived):
    """New samples that are read a chunk at a time."""

    def __init__(self, table: data.Table, X: Any, y: Any, confounders: Any, chunk_rows: int | None) -> None:
        self.views = Views.open(X, chunk_rows)
        refuse_unknown(table, self.views.sources)
        coding = table.nuisance.coding
        y, confounders = coding.recall(cluster.here(y) if lazy.is_lazy(X) else y, confounders)
        n, index = self.views.n, self.views.index if confounders is not None else None
        C = coding.table(index, confounders, n)
        Y: Array | None = None
        if y is not None:
            coded = table.encoding.numbers(outofcore.matched(self.views, y))
            Y = (coded - table.nuisance.of_y(C) - table.mean_y) / table.sd_y
        super().__init__(table, list(self.views.sources), Y, C)
        self.take = {name: self._positions(name) for name in self.views.sources}

    def _positions(self, name: str) -> list[int] | None:
        """Positions of the features of the fit, by name if the source has names; None if they are already in order."""
        source, need = self.views.sources[name], self.table.views[name].names
        if source.names is not None and list(source.names) != need:
            at = {feature: i for i, feature in enumerate(source.names)}
            absent = [feature for feature in need if feature not in at]
            if absent:
                raise features_missing(name, absent)
            return [at[feature] for feature in need]
        if source.shape[1] != len(need):
            raise columns_differ(f"view {name!r}", len(need), source.shape[1])
        return None

    def by_name(self, parts: Sequence[Any]) -> dict[str, Any]:
        """The features of the fit by view, from a chunk of every source."""
        named = zip(self.take.items(), parts, strict=True)
        return {name: part if take is None else part[:, take] for (name, take), part in named}

    def _cell(self, name: str, row: int) -> tuple[str, Any]:
        index = self.views.index
        return self.views.sources[name].where, None if index is None else index[row]


class Placer:
    """Computes the factors of chunks of new samples. The first stage is stage 1, the last is the model as it is."""

    def __init__(self, incoming: Arrived, stages: list[Stage], std: Finish | None) -> None:
        self.incoming, self.stages, self._std = incoming, stages, std
        present = [name in incoming.present for name in incoming.table.views]
        # If nothing is missing, the means are one linear map of the rows, computed once.
        self._maps = [placing.linear(s.state, s.S_y, s.T, present, incoming.Y is not None) for s in stages]

    def of(self, arrived: Arrived) -> Placer:
        """A copy for other samples."""
        other = copy.copy(self)
        other.incoming = arrived
        return other

    @property
    def key(self) -> list[Any]:
        """Everything that decides the factors besides the views: model, scales, covariates and confounders."""
        table, new = self.incoming.table, self.incoming
        of_stages = [
            (stage.state.beta, stage.S_y, stage.T, [(view.w.mean, view.noise.mean) for view in stage.state.views])
            for stage in self.stages
        ]
        scales = [(name, view.names, view.mean, view.sd) for name, view in table.views.items()]
        std = None if self._std is None else (self._std.rows, self._std.T, self._std.n)
        nuisance = table.nuisance
        return [self._maps, of_stages, scales, std, new.present, new.Y, new.C, *nuisance[1:]]

    @property
    def with_std(self) -> bool:
        """Whether standard deviations are computed."""
        return self._std is not None

    def __call__(self, here: slice, parts: dict[str, Any]) -> Array:
        """E[z_n], followed by the standard deviations if they are computed."""
        finite = {name: is_finite(part.data if hasattr(part, "indptr") else part) for name, part in parts.items()}
        for name, part in parts.items():
            if not finite[name]:
                self.incoming.refuse_infinite(name, part, here.start)
        Y = self.incoming.Y
        if all(finite.values()) and (Y is None or np.isfinite(Y[here].sum())):
            means = [self._mapped(of, here, parts) for of in self._maps]
            own = np.broadcast_to(np.diag(self._maps[-1].cov), means[-1].shape)
        else:
            means, own = self._placed(here, parts)
        return means[-1] if self._std is None else np.hstack([means[-1], self._std(own, means[0])])

    def _mapped(self, of: placing.Linear, here: slice, parts: dict[str, Any]) -> Array:
        table, C = self.incoming.table, self.incoming.C[here]
        total = np.tile(of.shift, (here.stop - here.start, 1))
        if self.incoming.Y is not None:
            total += self.incoming.Y[here] @ of.of_y
        for (name, scale), where in zip(table.views.items(), table.bounds, strict=True):
            if name in parts:
                A = of.of_x[where] / scale.sd[:, None]
                total += affine(parts[name], scale.mean, A, 0.0, dtype=np.float64)
                if C.shape[1]:
                    total -= (C - table.nuisance.centre) @ (table.nuisance.B_x[:, where] @ A)
        return np.asarray(total)

    def _placed(self, here: slice, parts: dict[str, Any]) -> tuple[list[Array], Array]:
        """Means and variances if cells are missing, some rows at a time."""
        width = self.incoming.table.bounds[-1].stop
        means: list[list[Array]] = []
        own: list[Array] = []
        for rows in outofcore.spans(here, width):
            inside = slice(rows.start - here.start, rows.stop - here.start)
            X, Y = self.incoming.rows(rows, {name: part[inside] for name, part in parts.items()})
            placed = [placing.place(s.state, s.S_y, X, Y, s.T) for s in self.stages]
            means.append([p.mean for p in placed])
            own.append(np.einsum("ckk->ck", placed[-1].cov)[placed[-1].group])
        return [np.vstack(stage) for stage in zip(*means, strict=True)], np.vstack(own)


def placed(X: Array, Y: Array, stages: list[Stage], std: Finish | None) -> Any:
    """E[z_n] of standardised rows, with ``std`` also their standard deviations."""
    of = [placing.place(stage.state, stage.S_y, X, Y, stage.T) for stage in stages]
    if std is None:
        return of[-1].mean
    return of[-1].mean, std(np.einsum("ckk->ck", of[-1].cov)[of[-1].group], of[0].mean)


def lazily(place: Placer, incoming: Incoming, X: Any) -> Any:
    """The factors of rows in dask as a lazy dask array; with standard deviations, two arrays."""
    given = data.as_views(X)
    views = [_columns(given[name], incoming.take[name]) for name in incoming.present]
    here = place.of(Arrived(incoming.table, incoming.present, None, np.empty((0, 0))))
    numbers = np.arange(float(incoming.views.n))[:, None]  # messages name the row
    table = np.hstack([numbers, *([] if incoming.Y is None else [incoming.Y]), incoming.C])
    work = partial(_place_block, place=here, p=None if incoming.Y is None else incoming.Y.shape[1])
    k = len(place.stages[0].state.views[0].w.mean.T)
    both = lazy.Joined.of(views).by_block(work, table, 2 * k if place.with_std else k)
    return (both[:, :k], both[:, k:]) if place.with_std else both


def _columns(view: Any, take: list[int] | None) -> Any:
    if take is None:
        return view
    return view[[view.columns[i] for i in take]] if hasattr(view, "columns") else view[:, take]


def _place_block(parts: list[Any], t: Array, place: Placer, p: int | None) -> Array:
    of, first, t = place.incoming, int(t[0, 0]) if len(t) else 0, t[:, 1:]
    arrived = Arrived(of.table, of.present, None if p is None else t[:, :p], t[:, p or 0 :], first)
    return place.of(arrived)(slice(0, len(t)), dict(zip(of.present, parts, strict=True)))


def by_chunks(place: Placer, incoming: Incoming, factors: list[str], out: Any, overwrite: bool) -> Any:
    """The factors of all samples, computed a chunk at a time; with ``out``, written to this path, which is returned."""
    names = [*factors, *(f"{name}_std" for name in factors if place.with_std)]
    sources = list(incoming.views.sources.values())
    key = [place.key, incoming.take]

    def placed(start: int, *parts: Any) -> Array:
        return place(slice(start, start + parts[0].shape[0]), incoming.by_name(parts))

    found = map_rows(placed, sources, len(names), np.float64, out=out, names=names, key=key, overwrite=overwrite)
    if out is not None:
        return Path(out)
    return tuple(np.hsplit(found, 2)) if place.with_std else found


def needs_chunks(X: Any, out: Any) -> bool:
    """Whether the rows are to be read a chunk at a time."""
    return out is not None or not is_in_memory(X)
