"""Views as their files have them, turned into rows of samples: transposed, with names that match, logged, filtered."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.data_errors import repeated_columns
from covalign._core.linalg import dense
from covalign._core.messages import listed, message
from covalign.exceptions import TransposedWarning
from covalign.stream import Kept, is_source, open_rows
from covalign.stream.derived import Columns, Logged, log1p
from covalign.tables.join import no_name_in_common
from covalign.tables.name_rules import EXACT, NameRule, check_rule, kept, resemblance, stripped, unified
from covalign.tables.named_rows import Named, Representation, loaded

ALL = "all"  # stands for every view


class Layout(NamedTuple):
    """What to do with views before they are joined. Views are named, or ``"all"``."""

    transpose: Sequence[str] = ()
    names: NameRule = EXACT
    log: Sequence[str] = ()
    top_variable: Mapping[str, int] = {}
    by_name: bool = True


AS_IT_IS = Layout()


class Arranged(NamedTuple):
    """Views with a row for every sample, the table of covariates, and how names were matched."""

    views: dict[str, Representation]
    table: pd.DataFrame
    notes: list[str]


def arranged(
    views: Mapping[str, Representation], table: pd.DataFrame, where: str, layout: Layout = AS_IT_IS
) -> Arranged:
    """Views and their table of covariates (in the file ``where``) with names that can be compared."""
    check_layout(layout, [*views])
    found = {name: transposed(view) if asked(layout.transpose, name) else view for name, view in views.items()}
    if not layout.by_name or isinstance(table.index, pd.RangeIndex):
        return Arranged(numbers(found, layout), table, [])
    rule, index = layout.names, stripped(table.index, layout.names, where)
    for name, view in found.items():
        if name not in layout.transpose and ALL not in layout.transpose:
            found[name] = upright(view, index, rule, where)
    renamed, tables, notes = named_alike(found, {where: table}, rule)
    return Arranged(numbers(renamed, layout), tables[where], notes)


def check_layout(layout: Layout, views: Sequence[str]) -> None:
    """Refuse names of views that are not there, and rules that are none."""
    check_rule(layout.names)
    for option, names in (("transpose", layout.transpose), ("log", layout.log), ("top_variable", layout.top_variable)):
        wrong = [name for name in names if name not in (*views, ALL)]
        if wrong:
            problem = f"{option} needs {ALL!r} or one of the views {listed(views)}"
            raise ValueError(message(problem, got=listed(wrong), remedy="correct the name", wrong=wrong, known=views))


def asked(names: Sequence[str] | Mapping[str, Any], name: str) -> bool:
    """Whether a view is among those named."""
    return name in names or ALL in names


# -- orientation ------------------------------------------------------------------------------------------------------


def transposed(view: Representation) -> Representation:
    """Columns as rows; rows on disk are loaded."""
    names = pd.RangeIndex(view.n) if view.names is None else view.names
    if not names.is_unique:
        raise repeated_columns(f"{view.where}, transposed,", names[names.duplicated()].unique())
    frame = loaded(view, names).T
    return Representation(frame.set_axis(names.astype(str), axis=1), view.where)


def upright(view: Representation, samples: pd.Index, rule: NameRule, where: str) -> Representation:
    """The view, transposed if names of samples are found among its columns and not among its rows.

    A view without a name in common whose names begin with those of samples is refused: another rule is needed.
    """
    rows = None if view.names is None else stripped(view.names, rule, view.where)
    if rows is not None and _in_common(rows, samples, rule):
        return view
    columns = None if view.features is None or is_count(view.features) else view.features
    if columns is not None:
        columns = stripped(columns, rule, view.where)
        common = _in_common(columns, samples, rule)
        if 2 * common >= min(len(columns), len(samples)):
            text = f"{view.where} has samples as columns ({common} of {len(columns)} have names of rows of {where})"
            warnings.warn(f"{text}: it is read transposed", TransposedWarning, stacklevel=2)
            return transposed(view)
    for names in (rows, columns):
        remedy = "" if names is None else resemblance(names, samples)
        if remedy and names is not None:
            raise no_name_in_common(samples, names, (where, view.where), remedy)
    return view


def _in_common(names: pd.Index, samples: pd.Index, rule: NameRule) -> int:
    ours, theirs = unified(names, samples, rule)
    return int(ours.isin(theirs).sum())


def is_count(names: Sequence[Any] | pd.Index) -> bool:
    """Whether the names are just numbers of columns."""
    return list(names) == [str(i) for i in range(len(names))]


# -- names ------------------------------------------------------------------------------------------------------------


def named_alike(
    views: Mapping[str, Representation], tables: Mapping[str, pd.DataFrame], rule: NameRule
) -> tuple[dict[str, Representation], dict[str, pd.DataFrame], list[str]]:
    """Views and tables (by their files) with row names by the rule, and what was matched by it.

    Names of tables come first: names of views are shortened to them, then to names of views before.
    """
    if rule == EXACT:
        return dict(views), dict(tables), []
    parts: list[tuple[str, Any, pd.Index]] = [(where, table, table.index) for where, table in tables.items()]
    parts = [part for part in parts if not isinstance(part[2], pd.RangeIndex)]
    parts += [(name, view, view.names) for name, view in views.items() if view.names is not None]
    called = [one if isinstance(part, pd.DataFrame) else part.where for one, part, _ in parts]
    short = [stripped(names, rule, where) for (*_, names), where in zip(parts, called, strict=True)]
    pool: pd.Index = pd.Index([], dtype=object)
    for names in short:
        ours, pool = unified(names, pool, rule)
        pool = pool.append(ours).unique()
    renamed, frames, notes = dict(views), dict(tables), []
    for (one, part, written), where, names in zip(parts, called, short, strict=True):
        new, _ = unified(names, pool, rule)
        keep = kept(new, written, rule, where)
        if isinstance(part, pd.DataFrame):
            frames[one] = part.set_axis(new, axis=0).loc[keep]
        else:
            renamed[one] = _with_names(part, new, keep)
            notes += _matched(new, written, where)
        notes += _left_out(keep, where)
    return renamed, frames, notes


def _matched(new: pd.Index, written: pd.Index, where: str) -> list[str]:
    changed = np.flatnonzero(new != written)
    if not len(changed):
        return []
    example = f"{str(written[changed[0]])!r} is {str(new[changed[0]])!r}"
    return [f"{len(changed)} of {len(new)} rows of {where} were renamed to match: {example}"]


def _left_out(keep: Any, where: str) -> list[str]:
    lost = int((~keep).sum())
    why = "because an earlier row has the same name"
    return [f"{lost} of {len(keep)} rows of {where} are left out, {why}"] if lost else []


def _with_names(view: Representation, names: pd.Index, keep: Any) -> Representation:
    """The rows to keep, with other names."""
    if isinstance(view.data, pd.DataFrame):
        return replace(view, data=view.data.set_axis(names, axis=0).loc[keep])
    source = Named(view.data, names)
    return replace(view, data=source if keep.all() else Kept(source, keep))


# -- numbers ----------------------------------------------------------------------------------------------------------


def numbers(views: Mapping[str, Representation], layout: Layout) -> dict[str, Representation]:
    """Views with logarithms, then only with the features that vary most."""
    found = {name: logged(view) if asked(layout.log, name) else view for name, view in views.items()}
    most = layout.top_variable
    limits = {name: most.get(name, most.get(ALL)) for name in found}
    return {name: view if (n := limits[name]) is None else most_variable(view, n) for name, view in found.items()}


def logged(view: Representation) -> Representation:
    """log(1 + x) of a view."""
    if isinstance(view.data, pd.DataFrame):
        values = log1p(view.data.to_numpy(), list(view.data.columns), view.where)
        return replace(view, data=pd.DataFrame(values, view.data.index, view.data.columns))
    return replace(view, data=Logged(view.data if is_source(view.data) else open_rows(view.data, name=view.where)))


def most_variable(view: Representation, n: int) -> Representation:
    """The n features of the highest variance, in their order; ties are broken by position."""
    if view.data.shape[1] <= n:
        return view
    at = np.sort(np.argsort(-variances(view), kind="stable")[:n])
    if isinstance(view.data, pd.DataFrame):
        return replace(view, data=view.data.iloc[:, at])
    return replace(view, data=Columns(view.data if is_source(view.data) else open_rows(view.data), at))


def columns_at(view: Representation, at: Sequence[int]) -> Representation:
    """The features at these positions, if the rows have no names for their features, and more features than these."""
    source = view.data if is_source(view.data) else open_rows(view.data, name=view.where)
    if view.features is not None or source.shape[1] <= max(at, default=0) or source.shape[1] == len(at):
        return view
    return replace(view, data=Columns(source, np.asarray(at, dtype=np.intp)))


def nameless_columns(view: Representation) -> list[int] | None:
    """Positions of the features that ``most_variable`` chose, where features have no names."""
    return view.data.added.tolist() if isinstance(view.data, Columns) and view.features is None else None


def variances(view: Representation) -> Any:
    """The variance of every feature over the samples that have it, in one pass."""
    data = view.data
    source = data if is_source(data) else open_rows(data, name=view.where)
    n, mean, squares = (np.zeros(data.shape[1]) for _ in range(3))
    for chunk in source.chunks():
        X = np.asarray(dense(chunk), dtype=np.float64)
        there = np.isfinite(X)
        m = there.sum(axis=0)
        centre = np.where(there, X, 0).sum(axis=0) / np.maximum(m, 1)
        apart = centre - mean
        squares += np.square(np.where(there, X - centre, 0)).sum(axis=0) + apart**2 * n * m / np.maximum(n + m, 1)
        mean += apart * m / np.maximum(n + m, 1)
        n += m
    return squares / np.maximum(n - 1, 1)
