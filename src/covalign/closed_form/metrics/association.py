"""The association of every factor with every covariate, of any type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.data_errors import lengths_differ, not_finite, not_numeric, not_two_dimensional
from covalign._core.linalg import Array, dense, is_constant
from covalign._core.user_arrays import in_pandas, plain
from covalign.closed_form.measures import correlation, explained_share
from covalign.tables.column_coding import Column
from covalign.tables.covariates import Encoding, as_frame, match_rows

Found = tuple[str, str, Array, NDArray[np.intp]]  # covariate, measure, value and rows by factor


def association(Z: Any, Y: Any) -> pd.DataFrame:
    """One row for every pair of a factor and a covariate: factor, covariate, measure, value, rows.

    Numbers, flags, two-level categories (named like ``sex_male``: 1 is that level) and ordered ones (their rank) have a
    ``"correlation"``, -1 to 1; other categories an ``"eta_squared"``, the share of the factor's variance that lies
    between their levels, 0 to 1. Each uses the ``rows`` that have both; NaN if these are fewer than two, or if the
    factor or the covariate is constant on them.

    >>> import pandas as pd
    >>> from covalign import metrics
    >>> Y = pd.DataFrame({"dose": [1, 2, None, 4], "site": ["a", "b", "c", "c"]})
    >>> metrics.association([[1.0], [2.0], [5.0], [4.0]], Y).round(3)
      factor covariate      measure  value  rows
    0     z0      dose  correlation   1.00     3
    1     z0      site  eta_squared   0.95     4
    """
    values, names = _factors(Z)
    frame = match_rows(Z, as_frame(Y))
    if len(frame) != len(values):
        raise lengths_differ(len(values), len(frame))
    found = [_with(values, frame[name]) for name in frame.columns]
    return pd.DataFrame(
        {
            "factor": np.tile(np.array(names, dtype=object), len(found)),
            "covariate": np.repeat(np.array([covariate for covariate, *_ in found], dtype=object), len(names)),
            "measure": np.repeat([measure for _, measure, *_ in found], len(names)),
            "value": np.concatenate([value for *_, value, _ in found]),
            "rows": np.concatenate([rows for *_, rows in found]),
        }
    )


def correlations(Z: Array, y: Array) -> Array:
    """corr(z_k, y) over the rows that have both (K)."""
    has = ~np.isnan(Z) & ~np.isnan(y)[:, None]
    z, y_of = _centred(Z, has), _centred(np.broadcast_to(y[:, None], Z.shape), has)
    r = correlation(np.sum(z * y_of, axis=0), np.sum(z**2, axis=0), np.sum(y_of**2, axis=0), constant=np.nan)
    return np.clip(r, -1, 1)


def eta_squared(Z: Array, level: NDArray[np.intp]) -> Array:
    """sum_l n_l (mean_l z_k)^2 / |z_k|^2, z_k centred, over the rows that have z_k and a level (-1: none) (K)."""
    has = ~np.isnan(Z) & (level >= 0)[:, None]
    of = (level[:, None] == np.arange(level.max(initial=0) + 1)).astype(np.float64)
    z, counts = _centred(Z, has), of.T @ has
    between = np.sum((of.T @ z) ** 2 / np.maximum(counts, 1), axis=0)
    share = explained_share(between, np.sum(z**2, axis=0), constant=np.nan)
    return np.where((counts > 0).sum(axis=0) > 1, share, np.nan)


def _centred(Z: Array, has: NDArray[np.bool_]) -> Array:
    """Columns minus their means over ``has``; zero elsewhere, and for constant columns."""
    counts = np.maximum(has.sum(axis=0), 1)
    mean = np.where(has, Z, 0.0).sum(axis=0) / counts
    centred = np.where(has, Z - mean, 0.0)
    constant = is_constant(mean, np.sum(centred**2, axis=0) / counts)
    return np.where(constant, 0.0, centred)


def _with(Z: Array, y: pd.Series) -> Found:
    """The association of one covariate with every factor."""
    present = y.notna().to_numpy(dtype=bool)
    rows = np.sum(~np.isnan(Z) & present[:, None], axis=0)
    if not present.any():
        return str(y.name), "correlation", np.full(Z.shape[1], np.nan), rows
    seen = y[present].infer_objects().to_frame()
    (column,) = Encoding.learn(seen).columns
    if column.kind == "dummies":
        return column.source, "eta_squared", eta_squared(Z, _levels(column, y)), rows
    coded = np.full(len(y), np.nan)
    coded[present] = Encoding((column,)).apply(seen).to_numpy()[:, 0]
    return column.names[0], "correlation", correlations(Z, coded), rows


def _levels(column: Column, y: pd.Series) -> NDArray[np.intp]:
    return np.asarray(pd.Index(column.levels).get_indexer(pd.Index(np.asarray(y, dtype=object))), dtype=np.intp)


def _factors(Z: Any) -> tuple[Array, list[str]]:
    """Z as numbers, and its column names (z0, z1, ... by default)."""
    Z = in_pandas(plain(Z, "Z"), "Z")
    values = np.asarray(dense(Z))
    if values.ndim != 2:
        raise not_two_dimensional("Z", values.shape)
    names = [str(name) for name in Z.columns] if hasattr(Z, "columns") else [f"z{k}" for k in range(values.shape[1])]
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise not_numeric("Z", values.dtype) from None
    infinite = np.isinf(values).any(axis=0)
    if infinite.any():
        raise not_finite("Z", names[int(np.argmax(infinite))])
    return values, names
