"""Factors against columns of a table that the model did not use: associations with p-values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from covalign._core.checks import check_choice
from covalign._core.data_errors import lengths_differ
from covalign._core.extras import optional
from covalign._core.linalg import Array
from covalign._core.messages import kind_of, listed, message, shown
from covalign.closed_form.metrics.association import association
from covalign.closed_form.set_tests import false_discovery_rates
from covalign.tables.covariates import as_frame
from covalign.tables.join import in_order
from covalign.tables.survival import event_numbers
from covalign.tables.table_files import is_path, read_table

METHODS = ("pearson", "rank")
COLUMNS = ["factor", "informed", "column", "measure", "value", "rows", "p", "q"]


def associations(model: Any, metadata: Any, survival: Sequence[str] | None, method: str) -> pd.DataFrame:
    """One row for every factor and column: factor, informed, column, measure, value, rows, p, q."""
    check_choice("method", method, METHODS)
    Z = model.factors_frame()
    table = _matched(Z, metadata, named=model._table.samples is not None)
    coding = model._table.nuisance.coding
    used = {column.source: "covariate" for column in coding.covariates.columns}
    used |= {column.source: "confounder" for column in coding.confounders.columns}
    left_out = {name: f"the model has it as a {used[name]}" for name in table.columns if name in used}
    parts = []
    if survival is not None:
        time, event = _survival(table, survival)
        left_out |= {str(time.name): "time of survival", str(event.name): "event of survival"}
        parts.append(cox(Z, time, event))
    for name in (name for name in table.columns if name not in left_out):
        found = _of_column(Z, table[name], method)
        if isinstance(found, str):
            left_out[name] = found
        else:
            parts.append(found)
    if not parts:
        why = "; ".join(f"{name!r}: {reason}" for name, reason in left_out.items())
        remedy = "add columns that the model did not use"
        raise ValueError(message("metadata need a column to test", got=f"none ({why})", remedy=remedy))
    frame = pd.concat(parts, ignore_index=True)
    frame["informed"] = frame["factor"].isin(model.covariate_names_)
    frame["q"] = false_discovery_rates(frame["p"].to_numpy())
    frame = frame.sort_values("p", kind="stable", ignore_index=True)[COLUMNS]
    frame.attrs = {"method": method, "left_out": left_out, "rows_in_common": int(table.notna().any(axis=1).sum())}
    return frame


def _matched(Z: pd.DataFrame, metadata: Any, named: bool) -> pd.DataFrame:
    """The metadata in the order of the samples; samples that it lacks have empty rows."""
    table = as_frame(read_table(metadata) if is_path(metadata) else metadata)
    if named and not isinstance(table.index, pd.RangeIndex):
        called = ("metadata", "the fitted samples")
        table = in_order(table, Z.index, absent="leave empty", extra="leave out", called=called)
    if len(table) != len(Z):
        raise lengths_differ(len(Z), len(table))
    return table.set_axis(Z.index)


def _of_column(Z: pd.DataFrame, y: pd.Series, method: str) -> pd.DataFrame | str:
    """The association of every factor with a column, or why it has none."""
    there = y.notna().to_numpy()
    z, y = Z[there], y[there].infer_objects()
    if (odd := _kind_of_objects(y)) is not None:
        return odd
    distinct = y.nunique()
    if distinct < 2:
        return f"{distinct} distinct values in {len(y)} rows"
    if method == "rank":
        z, y = z.rank(), _ranked(y)
    try:
        found = association(z, y.to_frame())
    except ValueError as error:  # dates, texts that do not repeat
        return str(error)
    value, levels = found["value"].to_numpy(), distinct
    if found["measure"].iloc[0] == "correlation":
        p = correlation_p(value, len(y))
    elif method == "rank":
        p = kruskal_p(value, len(y), levels)
    else:
        p = anova_p(value, len(y), levels)
    ranked = {"correlation": "rank_correlation", "eta_squared": "rank_eta_squared"} if method == "rank" else {}
    measure = found["measure"].replace(ranked)
    return found.assign(p=p, measure=measure).rename(columns={"covariate": "column"})


def _kind_of_objects(y: pd.Series) -> str | None:
    """Why a column of lists, dicts or arrays is not tested; None for any other column."""
    odd = [value for value in y if not isinstance(value, Hashable)] if y.dtype == object else []
    return f"it has {kind_of(odd[0])}, which is neither a number nor text" if odd else None


def _ranked(y: pd.Series) -> pd.Series:
    """Numbers and ordered levels as ranks; of two levels and of unordered ones the coding does not matter."""
    if isinstance(y.dtype, pd.CategoricalDtype):
        return y.rank() if y.dtype.ordered else y
    return y.rank() if pd.api.types.is_numeric_dtype(y.dtype) and y.dtype != bool else y


def correlation_p(r: Array, n: int) -> Array:
    """Two-sided p of a correlation of n rows: t = r sqrt((n - 2) / (1 - r^2))."""
    if n < 3:
        return np.full(len(r), np.nan)
    with np.errstate(divide="ignore"):
        t = np.abs(r) * np.sqrt((n - 2) / np.maximum(1 - r**2, 0))
    return np.asarray(2 * stats.t.sf(t, n - 2))


def anova_p(eta_squared: Array, n: int, levels: int) -> Array:
    """p of the analysis of variance: F = (eta^2 / (L - 1)) / ((1 - eta^2) / (n - L))."""
    if n <= levels:
        return np.full(len(eta_squared), np.nan)
    with np.errstate(divide="ignore"):
        F = eta_squared / (levels - 1) / (np.maximum(1 - eta_squared, 0) / (n - levels))
    return np.asarray(stats.f.sf(F, levels - 1, n - levels))


def kruskal_p(eta_squared: Array, n: int, levels: int) -> Array:
    """p of Kruskal and Wallis, whose H is (n - 1) eta^2 of the ranks."""
    return np.asarray(stats.chi2.sf((n - 1) * eta_squared, levels - 1))


# -- survival ---------------------------------------------------------------------------------------------------------


def cox(Z: pd.DataFrame, time: pd.Series, event: pd.Series) -> pd.DataFrame:
    """Cox regression of survival on each factor alone: log hazard ratio of one standard deviation, and Wald's p."""
    fitter = optional("lifelines", "survival").CoxPHFitter
    there = (time.notna() & event.notna()).to_numpy()
    rows = []
    for name, z in Z[there].items():
        data = pd.DataFrame({"z": (z - z.mean()) / z.std(), "time": time[there], "event": event[there]})
        found = fitter().fit(data, "time", "event").summary.loc["z"]
        rows.append((name, "survival", "log_hazard_ratio", float(found["coef"]), len(data), float(found["p"])))
    return pd.DataFrame(rows, columns=["factor", "column", "measure", "value", "rows", "p"])


def _survival(table: pd.DataFrame, names: Sequence[str]) -> tuple[pd.Series, pd.Series]:
    """Times from 0 and events (1: it happened, 0: it did not by then), NaN where one is unknown."""
    if not isinstance(names, list | tuple) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        need = "survival needs the names of two columns, those of the time and of the event"
        raise ValueError(message(need, got=shown(names), remedy="write for example survival=('months', 'died')"))
    known = [str(name) for name in table.columns]
    absent = [name for name in names if name not in known]
    if absent:
        problem = f"metadata have no column {listed(absent)}"
        raise ValueError(message(problem, remedy=f"Their columns are {listed(known, 10)}", wrong=absent, known=known))
    time, event = _numbers(table[names[0]]), event_numbers(table[names[1]])
    if (time < 0).any():
        need, remedy = f"column {names[0]!r} needs times of at least 0", "drop these rows, or count from an earlier day"
        raise ValueError(message(need, got=time.min(), remedy=remedy))
    if not set(event.dropna().unique()) <= {0.0, 1.0} or event.sum() == 0:
        need = f"events need 1 (it happened) and 0 (it did not) in column {names[1]!r}"
        raise ValueError(message(need, got=listed(event.dropna().unique(), 4), remedy="recode this column"))
    both = time.notna() & event.notna()
    return time.where(both), event.where(both)


def _numbers(column: pd.Series) -> pd.Series:
    try:
        return pd.to_numeric(column).astype(np.float64)
    except (TypeError, ValueError):
        need, remedy = f"survival needs numbers in column {str(column.name)!r}", "recode this column"
        got = listed(column.dropna().unique(), 3)
        raise ValueError(message(need, got=got, remedy=remedy)) from None
