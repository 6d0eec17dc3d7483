"""From the tables of the user to an engine, and to what the model needs to treat new rows in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.checks import not_one_of
from covalign._core.data_errors import (
    columns_differ,
    features_all_missing,
    features_missing,
    lengths_differ,
    no_columns,
    no_varying_feature,
    no_views,
    not_finite,
    not_numeric,
    not_two_dimensional,
    too_few_rows,
)
from covalign._core.linalg import Array, is_constant
from covalign._core.messages import message
from covalign._core.number_range import check_large, check_small
from covalign._core.user_arrays import in_pandas, numbers, plain
from covalign.factor.fitted_rows import Rows
from covalign.factor.inference.engines import Dense, Gram
from covalign.factor.inference.patterns import Gapped, Labels, compressed
from covalign.factor.nuisance import Nuisance, learn_nuisance, without
from covalign.factor.table import Table, ViewScale
from covalign.moments.moments import Moments
from covalign.stream import is_dask, is_elsewhere
from covalign.stream.memory import frame_dtype, frame_values
from covalign.tables import confounders, covariates
from covalign.tables.join import in_order, match_rows, refuse_disjoint, refuse_duplicates, union
from covalign.tables.representations import SINGLE as SINGLE
from covalign.tables.representations import named_views
from covalign.tables.table_files import is_path

UNSCALED = 1e15  # features of a view share a prior: beyond this value, one of variance 1 would be lost in rounding


def as_views(X: Any) -> dict[str, Any]:
    """X as name -> table."""
    views = named_views(X)
    if not views:
        raise no_views()
    return {name: view if _is_read_later(view) else plain(view, f"view {name!r}") for name, view in views.items()}


def _is_read_later(view: Any) -> bool:
    return is_path(view) or is_elsewhere(view) or is_dask(view)


def numeric(name: str, view: Any, gaps: bool = False) -> Array:
    """A view as a matrix of finite numbers; with ``gaps``, NaN is a missing cell.

    float64, unless the view is float32, which is converted later, some rows at a time.
    """
    where = f"view {name!r}"
    made = numbers(plain(view, where), where)
    frame = isinstance(made, pd.DataFrame)
    values = frame_values(made, frame_dtype(made.dtypes, where)) if frame else np.asarray(made)
    if values.ndim != 2:
        raise not_two_dimensional(where, values.shape)
    if values.dtype.kind not in "fiub":
        raise not_numeric(where, values.dtype)
    if values.shape[1] == 0:
        raise no_columns("X" if name == SINGLE else where, len(values))
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf
        total = values.sum()
    if not np.isfinite(total):
        bad = ~np.isfinite(values) if not gaps else np.isinf(values)
        if bad.any():
            raise not_finite(f"view {name!r}", feature_names(view)[int(np.flatnonzero(bad.any(axis=0))[0])])
    if values.dtype != np.float32:
        values = np.asarray(values, dtype=np.float64)
        check_large(where, feature_names(view), values)
    return values


def feature_names(view: Any) -> list[str]:
    """Column names, or 0, 1, ..."""
    view = in_pandas(view)
    return [str(c) for c in view.columns] if hasattr(view, "columns") else [str(i) for i in range(np.shape(view)[1])]


def match_views(views: dict[str, Any]) -> dict[str, Any]:
    """All views in the row order of the first, by index if they have one."""
    (first, table), *_ = views.items()
    return {name: match_rows(table, view, (f"view {name!r}", f"view {first!r}")) for name, view in views.items()}


def joined_views(views: dict[str, Any]) -> dict[str, Any]:
    """Views over the union of their samples, in order of appearance, if all are DataFrames; else by position."""
    if not all(isinstance(view, pd.DataFrame) for view in views.values()):
        return match_views(views)
    samples = union({f"view {name!r}": view.index for name, view in views.items()})
    return {name: view if view.index.equals(samples) else view.reindex(samples) for name, view in views.items()}


def joined_rows(views: dict[str, Any], frame: pd.DataFrame, named: bool) -> tuple[dict[str, Any], pd.DataFrame]:
    """Views and covariates over all samples of the views, in order of appearance, empty where a table lacks a sample.

    Tables are joined by index if all are DataFrames, else by position. Samples that only the covariates have are left
    out: they have no features.
    """
    if not named:
        return match_views(views), frame
    if not all(isinstance(view, pd.DataFrame) for view in views.values()):  # arrays have positions only
        views = match_views(views)
        return views, match_rows(next(iter(views.values())), frame, ("y", "X"))
    refuse_duplicates(frame.index, "y")
    joined = joined_views(views)
    for name, view in views.items():
        refuse_disjoint(view.index, frame.index, (f"view {name!r}", "y"))
    samples = next(iter(joined.values())).index
    return joined, in_order(frame, samples, absent="leave empty", extra="leave out", called=("y", "X"))


class Asked(NamedTuple):
    """The settings of the user for the data."""

    scale: Any
    engine: str
    drop_first: bool
    chunk_rows: int | None = None  # of rows that are not in memory


def prepare(X: Any, y: Any, nuisance: Any, asked: Asked) -> tuple[Table, Any, Rows]:
    """The table to keep, the engine, and the rows."""
    named = isinstance(y, pd.DataFrame | pd.Series)
    y, nuisance_table = confounders.separated(y, nuisance)
    views, frame = joined_rows(as_views(X), covariates.as_frame(y), named)
    encoding = covariates.Encoding.learn(frame, drop_first=asked.drop_first)
    Y = encoding.numbers(frame)
    tables = {name: numeric(name, view, gaps=True) for name, view in views.items()}
    for values in tables.values():
        if len(values) != len(Y):
            raise lengths_differ(len(values), len(Y))
    if len(Y) < 2:
        raise too_few_rows(len(Y))
    refuse_empty(views, tables, encoding.names, Y)
    for name, values in tables.items():
        if not is_scaled(asked.scale, name):
            refuse_unscaled(f"view {name!r}", feature_names(views[name]), values)
    X_all = np.hstack(list(tables.values())) if len(tables) > 1 else next(iter(tables.values()))
    index = index_of(views)
    out, C = learn_nuisance(nuisance_table, nuisance is not nuisance_table, encoding, index, X_all, Y)
    if C.shape[1]:
        X_all, Y = without(X_all, out.of_x(C)), Y - out.of_y(C)
    use_gram = choose_engine(asked.engine, *X_all.shape)
    measure = complete if np.isfinite(X_all.sum()) and np.isfinite(Y.sum()) else gapped
    if measure is gapped or not use_gram:
        X_all = np.asarray(X_all, dtype=np.float64)
    names = {name: feature_names(view) for name, view in views.items()}
    samples = None if index is None else list(index)
    found = measure(X_all, Y, use_gram)
    table, engine, Y = assembled(found, Y, names, not isinstance(X, Mapping), samples, out, asked.scale)
    return table, engine, Rows(X_all, Y, C)


class Scale(NamedTuple):
    """What standardises the features (1 where they are constant), and the standardised covariates."""

    mean: Array
    sd: Array
    constant: NDArray[np.bool_]
    Y: Array  # NaN in gaps
    S_y: Array  # their covariance, unit diagonal
    mean_y: Array
    sd_y: Array


class Measured(NamedTuple):
    """Means and variances of the features, and the engine for the scales of the user."""

    mean: Array
    variance: Array
    engine: Callable[[Scale], Any]


def assembled(
    found: Measured,
    Y: Array,
    names: dict[str, list[str]],
    single: bool,
    samples: list[Any] | None,
    nuisance: Nuisance,
    scale: Any,
) -> tuple[Table, Any, Array]:
    """The table to keep, the engine and the standardised covariates; views are scaled if the user wants them to be."""
    every = [f"{view}:{name}" if len(names) > 1 else name for view, features in names.items() for name in features]
    check_small("X", every, found.mean, found.variance)
    constant = is_constant(found.mean, found.variance)
    if len(constant) and constant.all():
        raise no_varying_feature(confounded=len(nuisance.centre) > 0)
    sd = np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, found.variance)))
    views, at = {}, 0
    for view, features in names.items():
        here, at = slice(at, at + len(features)), at + len(features)
        if not is_scaled(scale, view):
            sd[here] = 1.0
        views[view] = ViewScale(features, found.mean[here], sd[here])
    mean_y, S = gaussian_fit(Y)
    check_small("Y", nuisance.coding.covariates.names, mean_y, np.diag(S))
    sd_y = np.sqrt(np.diag(S))
    Y = (Y - mean_y) / sd_y
    engine = found.engine(Scale(found.mean, sd, constant, Y, S / sd_y / sd_y[:, None], mean_y, sd_y))
    return Table(views, single, samples, mean_y, sd_y, nuisance), engine, Y


def is_scaled(scale: Any, view: str) -> bool:
    """Whether the user wants the features of a view to be scaled."""
    return bool(scale.get(view, True) if isinstance(scale, Mapping) else scale)


def refuse_unscaled(what: str, names: list[str], values: Array) -> None:
    """Raise an error for a column that is too large beside others which it shares a prior with."""
    with np.errstate(invalid="ignore"):
        largest = np.fmax(np.fmax.reduce(values, axis=0), -np.fmin.reduce(values, axis=0))
    if (largest > UNSCALED).any():
        at = int(np.argmax(largest > UNSCALED))
        need = f"{what} needs values up to {UNSCALED:g} where its features are not scaled"
        got = f"{float(largest[at]):.2g} in column {names[at]!r}"
        raise ValueError(message(need, got=got, remedy="use scale=True, or divide the column by a constant"))


def index_of(views: dict[str, Any]) -> pd.Index | None:
    """The names of the rows, if the (joined) views have names."""
    first = next(iter(views.values()))
    return first.index if isinstance(first, pd.DataFrame) else None


def complete(X: Array, Y: Array, use_gram: bool) -> Measured:
    """Rows without gaps."""
    if use_gram:
        return of_moments(Moments.from_arrays(X, Y))

    def engine(s: Scale) -> Dense:
        centred = (X - s.mean) / s.sd
        centred[:, s.constant] = 0.0
        return Dense(centred, s.Y)

    return Measured(X.mean(axis=0), X.var(axis=0), engine)


def of_moments(m: Moments) -> Measured:
    """``complete`` from moments of X and Y."""

    def engine(s: Scale) -> Gram:
        n, weight = len(s.Y), np.where(s.constant, 0.0, 1 / s.sd)
        gram, xy = m.cov_z * weight * weight[:, None] * n, m.cov_zy * weight[:, None] / s.sd_y * n
        return Gram(n, gram, xy, n * s.S_y)

    return Measured(m.mean_z, np.diag(m.cov_z), engine)


def gapped(X: Array, Y: Array, use_gram: bool) -> Measured:
    """``complete`` for missing cells: X by its observed cells, Y by a Gaussian fitted to its observed cells."""

    def engine(s: Scale) -> Gapped:
        scaled = X - s.mean
        scaled /= s.sd
        scaled[:, s.constant] *= 0.0  # gaps stay gaps
        made = Gapped.of_rows(scaled, s.Y, s.S_y, copy=False)
        return compressed(made) if use_gram else made

    return Measured(np.nanmean(X, axis=0), np.nanvar(X, axis=0), engine)


def refuse_empty(views: dict[str, Any], tables: dict[str, Array], names: list[str], Y: Array) -> None:
    """Raise an error for a feature without an observed cell, or for a covariate that is constant."""
    for name, values in tables.items():
        nothing = np.isnan(values[0]) if len(values) else np.zeros(0, dtype=bool)
        if nothing.any():  # only these features can be empty
            nothing[nothing] = np.isnan(values[:, nothing]).all(axis=0)
        if nothing.any():
            raise features_all_missing(name, [feature_names(views[name])[d] for d in np.flatnonzero(nothing)])
    covariates.refuse_constant(pd.DataFrame(Y, columns=names, copy=False))


def gaussian_fit(Y: Array, tol: float = 1e-9, most: int = 1000) -> tuple[Array, Array]:
    """Maximum-likelihood mean and covariance (ddof = 0) of the observed cells, by EM if cells are missing."""
    has = ~np.isnan(Y)
    mean, S = np.nanmean(Y, axis=0), np.diag(np.nanvar(Y, axis=0))
    if has.all():
        return mean, np.cov(Y.T, ddof=0).reshape(S.shape)
    filled, scale = np.where(has, Y, 0.0), np.diag(S).copy()
    for _ in range(most):
        labels = Labels.of(np.where(has, filled - mean, 0.0), has, S)
        counts = np.bincount(labels.group, minlength=len(labels.cov)).astype(np.float64)
        first = labels.mean.sum(axis=0)
        second = labels.mean.T @ labels.mean + np.tensordot(counts, labels.cov, 1)
        step = first / len(Y)
        new = second / len(Y) - np.outer(step, step)
        change = max(np.abs(new - S).max() / scale.max(), np.abs(step).max() / np.sqrt(scale.max()))
        mean, S = mean + step, (new + new.T) / 2
        if change < tol:
            break
    return mean, S


def choose_engine(engine: str, n: int, d: int) -> bool:
    """Whether to work on H'H, which makes sweeps cheaper if D <= N."""
    if engine not in ("auto", "gram", "dense"):
        raise not_one_of("engine", engine, ("auto", "gram", "dense"))
    return engine == "gram" or (engine == "auto" and d <= n)


def columns_like(name: str, view: Any, names: list[str]) -> Array:
    """New rows of a view with the features of the fit: by column name if the table has names, else by position."""
    view = in_pandas(view, f"view {name!r}")
    if hasattr(view, "columns"):
        view = view.set_axis([str(column) for column in view.columns], axis=1)
        absent = [column for column in names if column not in view.columns]
        if absent:
            raise features_missing(name, absent)
        view = view[names]
    values = numeric(name, view, gaps=True)
    if values.shape[1] != len(names):
        raise columns_differ(f"view {name!r}", len(names), values.shape[1])
    return values
