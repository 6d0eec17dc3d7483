"""Tables in the order of rows: by name where both have names, and what does not match is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from covalign._core import validation as errors
from covalign._core.linalg import dense
from covalign.cli.application import note
from covalign.cli.representations import Named, Rows

LOADED_BYTES = 2**28  # of all views as float64, up to which they are held in memory and joined by name


def matched(rows: Rows, table: pd.DataFrame, where: str, *, by_position: bool, needed: bool = False) -> pd.DataFrame:
    """The table with a row for each of ``rows``, and with the index of these where they have one.

    By name where both have names: rows that only the table has are left out; those it lacks are empty in all columns,
    or an error where they are ``needed``. By position otherwise.
    """
    names = rows.names
    if by_position or names is None or isinstance(table.index, pd.RangeIndex):
        if len(table) != rows.n:
            raise errors.lengths_differ(rows.n, len(table))
        if names is None and not by_position and _says_something(table.index):
            note(f"{rows.where} has no row names: rows of {where} are taken by position")
        index = getattr(rows.data, "index", None) if rows.labels is None else rows.labels
        return table if index is None else table.set_axis(index, axis=0)
    for what, index in ((rows.where, names), (where, table.index)):
        if not index.is_unique:
            raise errors.repeated_names(what, index[index.duplicated()].unique())
    here = table.index.isin(names)
    if not here.any():
        raise errors.no_names_in_common(rows.where, list(names), where, list(table.index))
    absent = names[~names.isin(table.index)]
    if len(absent) and needed:
        raise errors.rows_without_confounders(list(absent))
    if not here.all():
        note(f"{np.sum(~here)} of {len(table)} rows of {where} are not in {rows.where}: left out")
    if len(absent):
        note(f"{len(absent)} of {rows.n} rows of {rows.where} are not in {where}: all their covariates are missing")
    return table.reindex(names).set_axis(cast(pd.Index, rows.labels), axis=0)


def _says_something(index: pd.Index) -> bool:
    """Names that are not just the numbers of the rows."""
    return not isinstance(index, pd.RangeIndex) and list(index) != [str(i) for i in range(len(index))]


def names_for(rows: Rows, table: pd.DataFrame | None) -> pd.Index | None:
    """What to call the rows of a result: as the rows are called, or the table that goes with them by position."""
    if rows.labels is not None:
        return rows.labels
    return None if table is None or isinstance(table.index, pd.RangeIndex) else table.index


class Joined(NamedTuple):
    """Views of the same samples: DataFrames, or Sources in step where they are large."""

    views: dict[str, Any]
    rows: Rows  # the first view, or an empty frame over all samples: what tables are matched with


def joined(views: Mapping[str, Rows], *, by_position: bool) -> Joined:
    """Views over the union of their samples, in order of appearance, where they are named; else by position."""
    all_named = all(view.labels is not None for view in views.values())
    if not by_position and not all_named and any(view.labels is not None for view in views.values()):
        named = [name for name, view in views.items() if view.labels is not None]
        raise errors.names_in_some(named, [name for name in views if name not in named])
    where = " and ".join(view.where for view in views.values())
    first = next(iter(views.values()))
    if not _fit_into_memory(views):
        nameless = by_position or not all_named
        sources = {name: Named(view.data, None) if nameless else view.data for name, view in views.items()}
        return Joined(sources, Rows(first.data, None if nameless else first.labels, where))
    if by_position or not all_named:
        counts = {name: view.n for name, view in views.items()}
        if len(set(counts.values())) > 1:
            raise errors.view_rows_differ(counts)
        index = first.names if first.names is None or first.names.is_unique else None
        frames = {name: loaded(view, index) for name, view in views.items()}
        return Joined(frames, Rows(pd.DataFrame(index=range(first.n)), index, where))
    union = _union(views)
    frames = {name: loaded(view, view.names).reindex(union) for name, view in views.items()}
    return Joined(frames, Rows(pd.DataFrame(index=union), union, where))


def _fit_into_memory(views: Mapping[str, Rows]) -> bool:
    """They are there already, or are small."""
    there = all(isinstance(view.data, pd.DataFrame) for view in views.values())
    return there or sum(8 * view.n * view.data.shape[1] for view in views.values()) <= LOADED_BYTES


def _union(views: Mapping[str, Rows]) -> pd.Index:
    union: pd.Index = pd.Index([], dtype=object)
    for view in views.values():
        names = view.names
        assert names is not None
        if not names.is_unique:
            raise errors.repeated_names(view.where, names[names.duplicated()].unique())
        union = names if not len(union) else union.append(names.difference(union, sort=False))
    for name, view in views.items():
        if view.n < len(union):
            note(f"{len(union) - view.n} of {len(union)} samples are not in {view.where}: {name} is missing for them")
    return union


def loaded(view: Rows, index: pd.Index | None) -> pd.DataFrame:
    """The rows as a DataFrame."""
    if isinstance(view.data, pd.DataFrame):
        return view.data.set_axis(pd.RangeIndex(view.n) if index is None else index, axis=0)
    values = np.concatenate([dense(chunk) for chunk in view.data.chunks()])
    values = values if values.dtype.kind == "f" else values.astype(np.float64)
    return pd.DataFrame(values, index, None if view.data.names is None else list(view.data.names))
