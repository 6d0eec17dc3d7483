"""Views and covariates as users keep them become an engine; what is needed to treat new rows alike is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign import _validation as errors
from covalign import covariates
from covalign._linalg import Array, affine, is_constant
from covalign.factor.statistics import Dense, Gram
from covalign.moments import Moments

SINGLE = "X"  # the name of the view where X is one table


class ViewScale(NamedTuple):
    """One view's features: their names, and the centre and spread that were taken out."""

    names: list[str]
    mean: Array
    sd: Array


class Table(NamedTuple):
    """What a fit remembers of its data besides sums."""

    views: dict[str, ViewScale]
    single: bool
    samples: list[Any] | None
    encoding: covariates.Encoding
    mean_y: Array
    sd_y: Array

    @property
    def bounds(self) -> tuple[slice, ...]:
        """Where each view's features are among all."""
        ends = np.cumsum([len(view.names) for view in self.views.values()])
        return tuple(slice(int(end) - len(v.names), int(end)) for end, v in zip(ends, self.views.values(), strict=True))


def as_views(X: Any) -> dict[str, Any]:
    """X as name -> table."""
    views = {str(name): view for name, view in X.items()} if isinstance(X, Mapping) else {SINGLE: X}
    if not views:
        raise errors.no_views()
    return views


def numeric(name: str, view: Any) -> Array:
    """A view as a float64 matrix of finite numbers."""
    values = np.asarray(view)
    if values.ndim != 2:
        raise errors.not_two_dimensional(f"view {name!r}", values.shape)
    if values.dtype.kind not in "fiub":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise errors.not_numeric(f"view {name!r}", values.dtype) from None
    if not np.isfinite(values.sum()) and not np.isfinite(values).all():
        column = int(np.flatnonzero(~np.isfinite(values).all(axis=0))[0])
        raise errors.not_finite(f"view {name!r}", feature_names(view)[column])
    return np.asarray(values, dtype=np.float64)


def feature_names(view: Any) -> list[str]:
    """Column names, or 0, 1, ..."""
    return [str(c) for c in view.columns] if hasattr(view, "columns") else [str(i) for i in range(np.shape(view)[1])]


def match_views(views: dict[str, Any]) -> dict[str, Any]:
    """All views in the row order of the first, by index where they have one."""
    first = next(iter(views.values()))
    return {name: covariates.match_rows(first, view) for name, view in views.items()}


class Rows(NamedTuple):
    """The rows themselves: X as it came, views side by side, and Y standardised."""

    X: Array
    Y: Array


def project(table: Table, rows: Rows, of_x: Array, of_y: Array) -> Array:
    """X of_x + Y of_y for X in its own units."""
    mean, sd = (np.concatenate([getattr(view, what) for view in table.views.values()]) for what in ("mean", "sd"))
    return np.asarray(affine(rows.X, mean, of_x / sd[:, None], 0.0, dtype=np.float64) + rows.Y @ of_y)


def prepare(X: Any, y: Any, scale: Any, engine: str, drop_first: bool) -> tuple[Table, Any, Rows]:
    """What to remember, the engine, and the rows."""
    views = match_views(as_views(X))
    first = next(iter(views.values()))
    frame = covariates.as_frame(covariates.match_rows(first, y))
    covariates.complete_rows(frame, "raise")
    encoding = covariates.Encoding.learn(frame, drop_first=drop_first)
    encoded = encoding.apply(frame)
    tables = {name: numeric(name, view) for name, view in views.items()}
    for values in tables.values():
        if len(values) != len(encoded):
            raise errors.lengths_differ(len(values), len(encoded))
    if len(encoded) < 2:
        raise errors.too_few_rows(len(encoded))
    covariates.refuse_constant(encoded)
    joined = np.hstack(list(tables.values())) if len(tables) > 1 else next(iter(tables.values()))
    Y = encoded.to_numpy()
    use_gram = choose_engine(engine, *joined.shape)
    m = Moments.from_arrays(joined, Y) if use_gram else None
    mean, variance = (m.mean_z, np.diag(m.cov_z)) if m is not None else (joined.mean(axis=0), joined.var(axis=0))
    constant = is_constant(mean, variance)
    sd = np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance)))
    mean_y, sd_y = Y.mean(axis=0), Y.std(axis=0)
    scales, at = {}, 0
    for name, values in tables.items():
        here, at = slice(at, at + values.shape[1]), at + values.shape[1]
        if not (scale if isinstance(scale, bool) else scale.get(name, True)):
            sd[here] = 1.0
        scales[name] = ViewScale(feature_names(views[name]), mean[here], sd[here])
    index = list(first.index) if hasattr(first, "index") and isinstance(first, pd.DataFrame) else None
    table = Table(scales, not isinstance(X, Mapping), index, encoding, mean_y, sd_y)
    rows = Rows(joined, (Y - mean_y) / sd_y)
    if m is not None:
        gram = m.cov_z / sd / sd[:, None] * len(Y)
        gram[constant], gram[:, constant] = 0.0, 0.0
        xy = m.cov_zy / sd[:, None] / sd_y * len(Y)
        xy[constant] = 0.0
        return table, Gram(len(Y), gram, xy, m.cov_y / sd_y / sd_y[:, None] * len(Y)), rows
    centred = (joined - mean) / sd
    centred[:, constant] = 0.0
    return table, Dense(centred, rows.Y), rows


def choose_engine(engine: str, n: int, d: int) -> bool:
    """Whether to work on H'H: cheaper per sweep once D <= N."""
    if engine not in ("auto", "gram", "dense"):
        raise errors.unknown_engine(engine)
    return engine == "gram" or (engine == "auto" and d <= n)


def columns_like(name: str, view: Any, names: list[str]) -> Array:
    """New rows of a view with the features of the fit: by column name where the table has them, else by position."""
    if hasattr(view, "columns"):
        view = view.set_axis([str(column) for column in view.columns], axis=1)
        absent = [column for column in names if column not in view.columns]
        if absent:
            raise errors.features_missing(name, absent)
        view = view[names]
    values = numeric(name, view)
    if values.shape[1] != len(names):
        raise errors.columns_differ(f"view {name!r}", len(names), values.shape[1])
    return values
