"""From the tables of the user to an engine, and to what the model needs to treat new rows in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.checks import (
    columns_differ,
    features_all_missing,
    features_missing,
    lengths_differ,
    no_views,
    not_finite,
    not_numeric,
    not_one_of,
    not_two_dimensional,
    too_few_rows,
)
from covalign._core.linalg import Array, affine, is_constant
from covalign.factor.inference.engines import Dense, Gram, Sparse, squares
from covalign.factor.inference.patterns import Gapped, Labels, compressed
from covalign.factor.inference.uncertainty import Tails
from covalign.factor.nuisance import Nuisance, learn_nuisance, without
from covalign.moments.moments import Moments
from covalign.tables import confounders, covariates
from covalign.tables.join import in_order, match_rows, refuse_disjoint, refuse_duplicates, union
from covalign.tables.representations import SINGLE as SINGLE


class ViewScale(NamedTuple):
    """The names of the features of a view, and the means and standard deviations that standardise them."""

    names: list[str]
    mean: Array
    sd: Array


class Table(NamedTuple):
    """What a fit keeps of its data besides sums."""

    views: dict[str, ViewScale]
    single: bool
    samples: list[Any] | None
    encoding: covariates.Encoding
    mean_y: Array
    sd_y: Array
    nuisance: Nuisance

    @property
    def bounds(self) -> tuple[slice, ...]:
        """The positions of the features of each view among all features."""
        ends = np.cumsum([len(view.names) for view in self.views.values()])
        return tuple(slice(int(end) - len(v.names), int(end)) for end, v in zip(ends, self.views.values(), strict=True))


def as_views(X: Any) -> dict[str, Any]:
    """X as name -> table."""
    views = {str(name): view for name, view in X.items()} if isinstance(X, Mapping) else {SINGLE: X}
    if not views:
        raise no_views()
    return views


def numeric(name: str, view: Any, gaps: bool = False) -> Array:
    """A view as a matrix of finite numbers; with ``gaps``, NaN is a missing cell.

    float64, unless the view is float32, which is converted later, some rows at a time.
    """
    values = np.asarray(view)
    if values.ndim != 2:
        raise not_two_dimensional(f"view {name!r}", values.shape)
    if values.dtype.kind not in "fiub":
        try:
            values = pd.DataFrame(view).apply(pd.to_numeric).to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            raise not_numeric(f"view {name!r}", values.dtype) from None
    with np.errstate(invalid="ignore"):  # inf - inf
        total = values.sum()
    if not np.isfinite(total):
        bad = ~np.isfinite(values) if not gaps else np.isinf(values)
        if bad.any():
            raise not_finite(f"view {name!r}", feature_names(view)[int(np.flatnonzero(bad.any(axis=0))[0])])
    return values if values.dtype == np.float32 else np.asarray(values, dtype=np.float64)


def feature_names(view: Any) -> list[str]:
    """Column names, or 0, 1, ..."""
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


class Rows(NamedTuple):
    """The rows of a fit: X in its units, views side by side, and Y standardised, both without what C explains."""

    X: Array
    Y: Array
    C: Array  # coded confounders, n x q

    @property
    def tails(self) -> Tails:
        """Kurtosis and number of values of every covariate, for the uncertainty of beta."""
        return Tails.of(self.Y)


def project(table: Table, rows: Rows, of_x: Array, of_y: Array) -> Array:
    """X of_x + Y of_y for X in its own units."""
    mean, sd = (np.concatenate([getattr(view, what) for view in table.views.values()]) for what in ("mean", "sd"))
    return np.asarray(affine(rows.X, mean, of_x / sd[:, None], 0.0, dtype=np.float64) + rows.Y @ of_y)


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
    X_all = np.hstack(list(tables.values())) if len(tables) > 1 else next(iter(tables.values()))
    index = index_of(views)
    out, C = learn_nuisance(nuisance_table, nuisance is not nuisance_table, encoding, index, X_all, Y)
    if C.shape[1]:
        X_all, Y = without(X_all, out.of_x(C)), Y - out.of_y(C)
    use_gram = choose_engine(asked.engine, *X_all.shape)
    make = complete if np.isfinite(X_all.sum()) and np.isfinite(Y.sum()) else gapped
    if make is gapped or not use_gram:
        X_all = np.asarray(X_all, dtype=np.float64)
    mean, sd, mean_y, sd_y, of_data = make(X_all, Y, use_gram)
    scales = scaled({name: feature_names(view) for name, view in views.items()}, mean, sd, asked.scale)
    samples = None if index is None else list(index)
    table = Table(scales, not isinstance(X, Mapping), samples, encoding, mean_y, sd_y, out)
    rows = Rows(X_all, (Y - mean_y) / sd_y, C)
    return table, of_data(sd, rows), rows


def scaled(names: dict[str, list[str]], mean: Array, sd: Array, scale: Any) -> dict[str, ViewScale]:
    """The scale of every view; ``sd`` becomes 1 for views that the user does not want to be scaled."""
    scales, at = {}, 0
    for view, features in names.items():
        here, at = slice(at, at + len(features)), at + len(features)
        if not (scale if isinstance(scale, bool) else scale.get(view, True)):
            sd[here] = 1.0
        scales[view] = ViewScale(features, mean[here], sd[here])
    return scales


def index_of(views: dict[str, Any]) -> pd.Index | None:
    """The names of the rows, if the (joined) views have names."""
    first = next(iter(views.values()))
    return first.index if isinstance(first, pd.DataFrame) else None


Maker = Callable[[Array, Rows], Any]


def complete(X: Array, Y: Array, use_gram: bool) -> tuple[Array, Array, Array, Array, Maker]:
    """Means and standard deviations of X and Y, and a function that makes the engine for the scales of the user."""
    if use_gram:
        return of_moments(Moments.from_arrays(X, Y), Y)
    mean, variance = X.mean(axis=0), X.var(axis=0)
    constant = is_constant(mean, variance)

    def make(sd: Array, rows: Rows) -> Dense:
        centred = (X - mean) / sd
        centred[:, constant] = 0.0
        return Dense(centred, rows.Y)

    return mean, spread_of(constant, variance), Y.mean(axis=0), Y.std(axis=0), make


def of_moments(m: Moments, Y: Array) -> tuple[Array, Array, Array, Array, Maker]:
    """``complete`` from moments of X and Y."""
    mean, variance = m.mean_z, np.diag(m.cov_z)
    constant = is_constant(mean, variance)
    mean_y, sd_y = Y.mean(axis=0), Y.std(axis=0)

    def make(sd: Array, rows: Rows) -> Gram:
        gram = m.cov_z / sd / sd[:, None] * len(Y)
        gram[constant], gram[:, constant] = 0.0, 0.0
        xy = m.cov_zy / sd[:, None] / sd_y * len(Y)
        xy[constant] = 0.0
        return Gram(len(Y), gram, xy, m.cov_y / sd_y / sd_y[:, None] * len(Y))

    return mean, spread_of(constant, variance), mean_y, sd_y, make


def of_sparse(S: Any, Y: Array) -> tuple[Array, Array, Array, Array, Maker]:
    """``complete`` from a csr matrix, which stays sparse."""
    mean = np.asarray(S.sum(axis=0)).ravel() / len(Y)
    variance = squares(S, mean) / len(Y)
    constant = is_constant(mean, variance)

    def make(sd: Array, rows: Rows) -> Sparse:
        return Sparse(S.data, S.indices, S.indptr, mean, np.where(constant, 0.0, 1 / sd), rows.Y)

    return mean, spread_of(constant, variance), Y.mean(axis=0), Y.std(axis=0), make


def spread_of(constant: NDArray[np.bool_], variance: Array) -> Array:
    """Standard deviations; 1 for constant features."""
    return np.where(constant, 1.0, np.sqrt(np.where(constant, 1.0, variance)))


def gapped(X: Array, Y: Array, use_gram: bool) -> tuple[Array, Array, Array, Array, Maker]:
    """``complete`` for missing cells: X by its observed cells, Y by a Gaussian fitted to its observed cells."""
    observed = ~np.isnan(X)
    counts = np.maximum(observed.sum(axis=0), 1)
    centred = zero_in_gaps(X.copy(), observed)
    mean = centred.sum(axis=0) / counts
    centred -= mean
    variance = np.einsum("nd,nd->d", zero_in_gaps(centred, observed), centred) / counts
    constant = is_constant(mean, variance)
    mean_y, S = gaussian_fit(Y)
    sd_y = np.sqrt(np.diag(S))

    def make(sd: Array, rows: Rows) -> Gapped:
        scaled = np.divide(centred, sd, out=centred)
        scaled[:, constant] = 0.0
        has_y = ~np.isnan(rows.Y)
        S_y = S / sd_y / sd_y[:, None]
        made = Gapped.of(scaled, observed, np.where(has_y, rows.Y, 0.0), has_y, S_y)
        return compressed(made) if use_gram else made

    return mean, spread_of(constant, variance), mean_y, sd_y, make


def gapped_rows(rows: Rows, mean: Array, sd: Array, S_y: Array) -> Gapped:
    """Standardised rows in the form of the kernel with gaps."""
    observed, has_y = ~np.isnan(rows.X), ~np.isnan(rows.Y)
    X = rows.X - mean
    X /= sd
    return Gapped.of(zero_in_gaps(X, observed), observed, np.where(has_y, rows.Y, 0.0), has_y, S_y)


def zero_in_gaps(X: Array, observed: NDArray[np.bool_]) -> Array:
    """Set missing cells of X to 0, in place."""
    if not observed.all():
        np.copyto(X, 0.0, where=~observed)
    return X


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
