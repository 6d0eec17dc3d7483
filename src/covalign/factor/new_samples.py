"""Factors of new samples, which are standardised as in the fit, all at once or a chunk at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.column_names import with_deviations
from covalign._core.data_errors import columns_differ, features_missing, lengths_differ, unknown_views
from covalign._core.linalg import Array, dense
from covalign.factor import chunked_fit as outofcore
from covalign.factor import dask_views as lazy
from covalign.factor import placement as placing
from covalign.factor import preparation as data
from covalign.factor.feature_regression import Regression
from covalign.factor.inference.patterns import slices
from covalign.factor.inference.state import State
from covalign.factor.inference.uncertainty import Finish
from covalign.factor.table import Table
from covalign.factor.view_sums import is_finite, refuse_infinite
from covalign.factor.views import Cells, Views, is_in_memory
from covalign.moments import cluster
from covalign.stream import map_rows
from covalign.tables import covariates


class Stage(NamedTuple):
    """What decides the factors of a sample: a state, the covariance of the covariates, and the regime.

    A regime of factors that features alone give is R (K x K), which moves all factors of stage 1. In the paper's way
    the state itself is that of the regime, and T (P x P) moves the prior of the informed factors.
    """

    state: State
    S_y: Array
    T: Array
    R: Array | None = None
    regression: Regression | None = None  # a share of it is in the factors of samples without covariates

    def linear(self, present: list[bool], has_y: bool) -> placing.Linear:
        """The map from rows to factors."""
        made = placing.linear(self.state, self.S_y, self.T, present, has_y)
        if self.regression is not None and not has_y:
            sizes = [len(view.w.mean) for view in self.state.views[: len(present)]]
            made = self.regression.linear(made, np.repeat(present, sizes))
        return made if self.R is None else made.moved(self.R)

    def place(self, X: Array, Y: Array) -> placing.Placed:
        """The factors of rows with gaps."""
        made = placing.place(self.state, self.S_y, X, Y, self.T)
        alone = np.isnan(Y).all(axis=1)
        if self.regression is not None and alone.any():
            mean, observed = made.mean.copy(), ~np.isnan(X[alone])
            mean[alone] = self.regression.mixed(mean[alone], np.nan_to_num(X[alone]), observed)
            made = made._replace(mean=mean)
        return made if self.R is None else made.moved(self.R)


class Arrived(NamedTuple):
    """New samples: names of their views and cells, standardised covariates, confounders, number of the first row."""

    table: Table
    present: list[str]
    cells: Cells
    Y: Array | None
    C: Array
    first: int = 0

    @classmethod
    def of(cls, table: Table, present: list[str], cells: Cells, frame: pd.DataFrame | None, C: Array) -> Arrived:
        """With the covariates of a frame, standardised as in the fit, NaN where missing."""
        if frame is None:
            return cls(table, present, cells, None, C)
        if len(frame) != len(C):
            raise lengths_differ(len(C), len(frame))
        Y = (table.encoding.numbers(frame) - table.nuisance.of_y(C) - table.mean_y) / table.sd_y
        return cls(table, present, cells, Y, C)


def loaded(table: Table, X: Any, y: Any, confounders: Any) -> tuple[Arrived, dict[str, Array]]:
    """New samples in memory, and their views."""
    views = data.as_views(X)
    refuse_unknown(table, views)
    named = isinstance(y, pd.DataFrame | pd.Series)
    y, confounders = table.nuisance.coding.recall(y, confounders)
    if y is None:
        views, frame = data.joined_views(views), None
    else:
        views, frame = data.joined_rows(views, covariates.as_frame(y), named)
    first = next(iter(views.values()))
    C = table.nuisance.coding.table(first, confounders, np.shape(first)[0] if np.ndim(first) else 0)
    parts = {name: data.columns_like(name, view, table.views[name].names) for name, view in views.items()}
    for values in parts.values():
        if len(values) != len(C):
            raise lengths_differ(len(C), len(values))
    return Arrived.of(table, list(parts), _cells(table, list(parts)), frame, C), parts


def refuse_unknown(table: Table, views: Any) -> None:
    """Raise an error for a view that the fit did not have."""
    unknown = [name for name in views if name not in table.views]
    if unknown:
        raise unknown_views(unknown, list(table.views))


def _cells(table: Table, present: list[str]) -> Cells:
    return Cells([f"view {name!r}" for name in present], [table.views[name].names for name in present])


class Incoming:
    """New samples that are read a chunk at a time."""

    def __init__(self, table: Table, X: Any, y: Any, confounders: Any, chunk_rows: int | None) -> None:
        self.views = Views.open(X, chunk_rows)
        refuse_unknown(table, self.views.sources)
        coding, present = table.nuisance.coding, list(self.views.sources)
        y, confounders = coding.recall(cluster.here(y) if lazy.is_lazy(X) else y, confounders)
        C = coding.table(self.views.index if confounders is not None else None, confounders, self.views.n)
        cells = replace(self.views.cells, names=_cells(table, present).names)
        frame = None if y is None else outofcore.matched(self.views, y)
        self.samples = Arrived.of(table, present, cells, frame, C)
        self.take = {name: self._positions(name) for name in present}

    def _positions(self, name: str) -> list[int] | None:
        """Positions of the features of the fit, by name if the source has names; None if they are already in order."""
        source, need = self.views.sources[name], self.samples.table.views[name].names
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


@dataclass(frozen=True, eq=False)
class Placer:
    """Computes the factors of chunks of new samples. The first stage is stage 1, the last is the model as it is."""

    new: Arrived
    stages: list[Stage]
    std: Finish | None
    maps: list[placing.Linear]

    @classmethod
    def of(cls, new: Arrived, stages: list[Stage], std: Finish | None) -> Placer:
        """If nothing is missing, the means are one linear map of the rows, which is computed once."""
        present = [name in new.present for name in new.table.views]
        maps = [stage.linear(present, new.Y is not None) for stage in stages]
        return cls(new, stages, std, maps)

    @property
    def key(self) -> list[Any]:
        """Everything that decides the factors besides the views: model, scales, covariates and confounders."""
        table, new = self.new.table, self.new
        of_stages = [
            (stage.state.beta, *stage[1:], [(view.w.mean, view.precision) for view in stage.state.views])
            for stage in self.stages
        ]
        dof = [None if stage.state.scales is None else stage.state.scales.dof for stage in self.stages]
        scales = [(name, view.names, view.mean, view.sd) for name, view in table.views.items()]
        std = None if self.std is None else (self.std.rows, self.std.T, self.std.n, self.std.bend)
        return [self.maps, table.reach, of_stages, dof, scales, std, new.present, new.Y, new.C, *table.nuisance[1:]]

    def __call__(self, here: slice, parts: dict[str, Any]) -> Array:
        """E[z_n], followed by the standard deviations if they are computed."""
        finite = [is_finite(part.data if hasattr(part, "indptr") else part) for part in parts.values()]
        for view, part in enumerate(parts.values()):
            if not finite[view]:
                refuse_infinite(dense(part), self.new.first + here.start, view, self.new.cells)
        Y, C = None if self.new.Y is None else self.new.Y[here], self.new.C[here]
        linear = all(stage.state.scales is None for stage in self.stages)
        if linear and all(finite) and (Y is None or np.isfinite(Y.sum())):
            table = self.new.table
            if table.within_reach(parts, C):
                mapped = [of.shift + table.mapped(parts, C, of.of_x) for of in self.maps]
            else:
                mapped = self._limited(parts, C)
            means = mapped if Y is None else [z + Y @ of.of_y for z, of in zip(mapped, self.maps, strict=True)]
            own = np.broadcast_to(np.diag(self.maps[-1].cov), means[-1].shape)
        else:
            means, own = self._placed(parts, Y, C)
        return means[-1] if self.std is None else np.hstack([means[-1], self.std(own, means[0])])

    def _limited(self, parts: dict[str, Any], C: Array) -> list[Array]:
        """Linear maps of rows with cells that may be out of reach, some rows at a time."""
        table, made = self.new.table, list[list[Array]]()
        for at in slices(len(C), table.bounds[-1].stop):
            X = np.nan_to_num(table.standardised({name: part[at] for name, part in parts.items()}, C[at]))
            made.append([of.shift + X @ of.of_x for of in self.maps])
        return [np.vstack(stage) for stage in zip(*made, strict=True)]

    def _placed(self, parts: dict[str, Any], Y: Array | None, C: Array) -> tuple[list[Array], Array]:
        """Means and variances if cells are missing, some rows at a time."""
        table, means, own = self.new.table, list[list[Array]](), list[Array]()
        Y = np.full((len(C), len(table.mean_y)), np.nan) if Y is None else Y
        for at in slices(len(C), table.bounds[-1].stop):
            X = table.standardised({name: part[at] for name, part in parts.items()}, C[at])
            placed = [stage.place(X, Y[at]) for stage in self.stages]
            means.append([p.mean for p in placed])
            own.append(placed[-1].variances)
        return [np.vstack(stage) for stage in zip(*means, strict=True)], np.vstack(own)

    def split(self, found: Any) -> Any:
        """Means, or means and standard deviations."""
        k = found.shape[1] // 2
        return found if self.std is None else (found[:, :k], found[:, k:])


def factors(
    model: Any,
    X: Any,
    y: Any,
    confounders: Any,
    stages: list[Stage],
    std: Finish | None,
    *,
    blind: bool = False,
    out: Any = None,
    overwrite: bool = False,
) -> tuple[Any, Array | None]:
    """E[z_n] of new samples (with ``std`` also their standard deviations), and their standardised covariates.

    ``blind`` factors do not depend on the covariates. With ``out`` they are written to this path, which is returned.
    Those of rows in dask are lazy.
    """
    if out is None and is_in_memory(X):
        new, parts = loaded(model._table, X, y, confounders)
    else:
        incoming = Incoming(model._table, X, y, confounders, model.chunk_rows)
        new = incoming.samples
    place = Placer.of(new._replace(Y=None) if blind else new, stages, std)
    if out is None and is_in_memory(X):
        return place.split(place(slice(0, len(new.C)), parts)), new.Y
    if out is None and lazy.is_lazy(X) and not blind:
        return place.split(lazily(place, incoming, X)), new.Y
    found = by_chunks(place, incoming, model.factor_names_, out, overwrite)
    return Path(out) if out is not None else place.split(found), new.Y


def lazily(place: Placer, incoming: Incoming, X: Any) -> Any:
    """The factors (and standard deviations) of rows in dask as a lazy dask array."""
    given, new = data.as_views(X), place.new
    views = [_columns(given[name], incoming.take[name]) for name in new.present]
    here = replace(place, new=Arrived(new.table, new.present, _cells(new.table, new.present), None, np.empty((0, 0))))
    numbers = np.arange(float(incoming.views.n))[:, None]  # messages name the row
    table = np.hstack([numbers, *([] if new.Y is None else [new.Y]), new.C])
    work = partial(_place_block, place=here, p=None if new.Y is None else new.Y.shape[1])
    k = len(place.maps[0].shift)
    return lazy.Joined.of(views).by_block(work, table, k if place.std is None else 2 * k)


def _columns(view: Any, take: list[int] | None) -> Any:
    if take is None:
        return view
    return view[[view.columns[i] for i in take]] if hasattr(view, "columns") else view[:, take]


def _place_block(parts: list[Any], t: Array, place: Placer, p: int | None) -> Array:
    first, t = int(t[0, 0]) if len(t) else 0, t[:, 1:]
    new = place.new._replace(Y=None if p is None else t[:, :p], C=t[:, p or 0 :], first=first)
    return replace(place, new=new)(slice(0, len(t)), dict(zip(new.present, parts, strict=True)))


def by_chunks(place: Placer, incoming: Incoming, factors: list[str], out: Any, overwrite: bool) -> Any:
    """The factors (and standard deviations) of all samples, a chunk at a time; with ``out``, written to this path."""
    names = factors if place.std is None else with_deviations(factors)
    sources = list(incoming.views.sources.values())
    key = [place.key, incoming.take]

    def placed(start: int, *parts: Any) -> Array:
        return place(slice(start, start + parts[0].shape[0]), incoming.by_name(parts))

    return map_rows(placed, sources, len(names), np.float64, out=out, names=names, key=key, overwrite=overwrite)
