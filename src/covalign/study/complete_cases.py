"""The same complete numbers for every method: most cannot take gaps, so what is done about them is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.checks import not_one_of
from covalign._core.data_errors import (
    columns_not_numeric,
    features_all_missing,
    no_views,
    not_two_dimensional,
    view_rows_differ,
)
from covalign._core.messages import message
from covalign.tables.covariates import as_frame
from covalign.tables.join import union

KINDS = ("drop", "mean")


class Complete(NamedTuple):
    """Views and covariates of the same samples in the same order, without gaps, and what was done to have them so."""

    views: dict[str, pd.DataFrame]
    Y: pd.DataFrame
    said: str | None


def complete(X: Any, Y: Any, missing: str | None = None) -> Complete:
    """Tables joined by sample name where all have names, else by position.

    A gap is an empty cell, or a sample that a table does not have. With ``missing=None`` gaps raise an error;
    ``"drop"`` leaves out every sample with a gap; ``"mean"`` fills in the means of features, and leaves out samples
    with missing covariates: filling in covariates would invent what is to be explained.
    """
    if missing is not None and missing not in KINDS:
        raise not_one_of("missing", missing, KINDS)
    views, covariates = joined(X, Y)
    found, whole = gaps_of({**views, "covariates": covariates}), whole_samples([*views.values(), covariates])
    n = len(covariates)
    if whole.all():
        return Complete(views, covariates, None)
    if missing is None:
        remedy = f"use missing='drop' to leave out {int((~whole).sum())} of {n} samples, or missing='mean' to fill in "
        remedy += "the means of features"
        raise ValueError(message("All methods need complete data", got=found, remedy=remedy))
    kept = whole if missing == "drop" else whole_samples([covariates])
    if not kept.any():
        remedy = "use missing='mean', or leave out the view or the columns with missing values"
        raise ValueError(message("A comparison needs complete samples", got=f"none ({found})", remedy=remedy))
    views = {name: view[kept] for name, view in views.items()}
    said = f"missing values ({found}): {int((~kept).sum())} of {n} samples were left out"
    if missing == "mean":
        views = {name: filled(name, view) for name, view in views.items()}
        said += ", the means of features were filled in for the others"
    return Complete(views, covariates[kept].infer_objects(), said)


def joined(X: Any, Y: Any) -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """All tables with the same rows: every sample that any of them has, empty where a table does not have it."""
    given = dict(X) if isinstance(X, Mapping) else {"X": X}
    if not given:
        raise no_views()
    views = {str(name): numbers(str(name), view) for name, view in given.items()}
    tables = {**views, "covariates": as_frame(Y)}
    if len(views) == len(tables):
        remedy = "Choose another name for the view"
        raise ValueError(message("A view is called 'covariates', as the table of covariates is", remedy=remedy))
    unnamed = [isinstance(table.index, pd.RangeIndex) for table in tables.values()]
    if any(unnamed):
        rows = {name: len(table) for name, table in tables.items()}
        if len(set(rows.values())) > 1:
            raise view_rows_differ(rows)
        named = [table.index for table, without in zip(tables.values(), unnamed, strict=True) if not without]
        samples = named[0] if named else next(iter(tables.values())).index
        tables = {name: table.set_axis(samples, axis=0) for name, table in tables.items()}
    samples = union({name: table.index for name, table in tables.items()})
    tables = {name: table.reindex(samples) for name, table in tables.items()}
    covariates = tables.pop("covariates")
    return tables, covariates


def numbers(name: str, view: Any) -> pd.DataFrame:
    """A view as a table of floating-point numbers."""
    if not isinstance(view, pd.DataFrame):
        values = np.asarray(view.toarray() if hasattr(view, "toarray") else view)
        if values.ndim != 2:
            raise not_two_dimensional(name, values.shape)
        view = pd.DataFrame(values)
    wrong = [column for column, dtype in view.dtypes.items() if not pd.api.types.is_numeric_dtype(dtype)]
    if wrong:
        raise columns_not_numeric(name, wrong)
    table: pd.DataFrame = view.astype(np.float64)
    return table


def whole_samples(tables: list[pd.DataFrame]) -> Any:
    """True for the rows without a gap in any of the tables."""
    return np.logical_and.reduce([table.notna().all(axis=1).to_numpy() for table in tables])


def gaps_of(tables: dict[str, pd.DataFrame]) -> str:
    """How many samples each table lacks, and how many cells of the others are empty."""
    found = []
    for name, table in tables.items():
        empty = table.isna()
        lacking = empty.all(axis=1)
        cells = int(empty[~lacking].to_numpy().sum())
        if lacking.any():
            found.append(f"{int(lacking.sum())} sample(s) without {name}")
        if cells:
            found.append(f"{cells} empty cell(s) in {name}")
    return ", ".join(found)


def filled(name: str, view: pd.DataFrame) -> pd.DataFrame:
    """Every empty cell becomes the mean of its column."""
    empty = view.columns[view.isna().all(axis=0)]
    if len(empty):
        raise features_all_missing(name, [str(column) for column in empty])
    return view.fillna(view.mean())
