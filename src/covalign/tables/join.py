"""Rows of several tables, joined by their names.

Rows are matched by name where both tables have names, else by position. What happens to names that only one table has
is the caller's choice: they are refused, left out, or left empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from covalign._core.messages import BY_POSITION, TRANSPOSE, listed, message
from covalign.stream import is_dask, is_source
from covalign.stream.dask_rows import row_names
from covalign.tables.name_rules import EXACT, NameRule, check_rule, kept, resemblance, stripped, unified


def names_of(table: Any) -> pd.Index | None:
    """Names of the rows of a DataFrame, a Series, a Source or a dask DataFrame; None where the rows have none."""
    if isinstance(table, pd.DataFrame | pd.Series):
        return table.index
    if is_dask(table):
        return row_names(table) if hasattr(table, "map_partitions") and hasattr(table, "columns") else None
    return table.index if is_source(table) else None


def match_rows(
    Z: Any, Y: Any, called: tuple[str, str] = ("Y", "Z"), *, match: str = "exact", strip: str | None = None
) -> Any:
    """Y in the row order of Z: by index where both have one, else as it is. Both need the same names.

    ``called`` is what messages call Y and Z. With ``match="prefix"`` names match if one begins with the other (capitals
    and punctuation do not count, and ``s10`` does not begin with ``s1``), and the result has the names of Z. Several
    rows of Z may then have the same row of Y. ``match="first"`` also keeps the first of several rows of Y for one row
    of Z. ``strip`` is a regular expression that is removed from all names before.

    >>> import pandas as pd, covalign as ca
    >>> Z, Y = pd.DataFrame({"z": [1, 2]}, index=["a", "b"]), pd.Series([20, 10], index=["b", "a"])
    >>> ca.covariates.match_rows(Z, Y).tolist()
    [10, 20]
    >>> samples = pd.DataFrame({"z": [1, 2]}, index=["a-01", "b-01"])
    >>> ca.covariates.match_rows(samples, Y, match="prefix").to_dict()
    {'a-01': 10, 'b-01': 20}
    """
    rule = check_rule(NameRule(match, strip))
    if not isinstance(Y, pd.DataFrame | pd.Series):
        return Y
    names = names_of(Z) if is_dask(Z) or isinstance(Z, pd.DataFrame | pd.Series) else None
    if names is None:
        return Y
    if rule != EXACT:
        return _by_rule(Y, names, rule, called)
    if isinstance(Z, pd.DataFrame) and not Y.index.equals(names):
        refuse_transposed(Z.columns, names, Y.index, called)
    return in_order(Y, names, called=called)


def _by_rule(Y: Any, names: pd.Index, rule: NameRule, called: tuple[str, str]) -> Any:
    """The rows of Y for rows with these names, under these names."""
    written: pd.Index = Y.index.astype(str)
    ours = stripped(names.astype(str), rule, called[1])
    ours, theirs = unified(ours, stripped(written, rule, called[0]), rule)
    Y = Y.set_axis(theirs, axis=0).loc[kept(theirs, written, rule, called[0])]
    return in_order(Y, ours, repeated=True, called=called).set_axis(names, axis=0)


def in_order(
    table: Any,
    names: pd.Index,
    *,
    absent: str = "refuse",
    extra: str = "refuse",
    repeated: bool = False,
    called: tuple[str, str] = ("Y", "Z"),
) -> Any:
    """The rows of a DataFrame or Series in the order of ``names``.

    ``absent`` names, which the table does not have, are refused (``"refuse"``) or get empty rows (``"leave empty"``).
    ``extra`` names, which only the table has, are refused or left out (``"leave out"``). With ``repeated``, several of
    the ``names`` may be the same. ``called`` is what messages call the table and what has the ``names``.
    """
    if table.index.equals(names):
        return table
    refuse_duplicates(table.index, called[0])
    if not repeated:
        refuse_duplicates(names, called[1])
    lacking, others = without(names, table.index), without(table.index, names)
    if extra == "refuse" and (len(others) or (len(lacking) and absent == "refuse")):
        raise _names_differ(called[1], lacking, called[0], others)
    if len(lacking) and absent == "refuse":
        raise ValueError(
            message(
                f"every row of {called[1]} needs a row of {called[0]}",
                got=f"none for {listed(lacking, 3)}",
                remedy=f"add these rows to {called[0]}, or leave them out of {called[1]}",
            )
        )
    refuse_disjoint(table.index, names, called)
    return table.loc[names] if absent == "refuse" else table.reindex(names)


def without(names: pd.Index, others: pd.Index) -> pd.Index:
    """The names that are not among the others, in their own order."""
    return names[~names.isin(others)]


def notes(table: pd.Index, names: pd.Index, called: tuple[str, str]) -> list[str]:
    """What ``in_order`` leaves out and leaves empty, a sentence each."""
    others, lacking = without(table, names), without(names, table)
    said = []
    if len(others):
        said.append(f"{len(others)} of {len(table)} rows of {called[0]} are not in {called[1]}: left out")
    if len(lacking):
        where = f"{len(lacking)} of {len(names)} rows of {called[1]} are not in {called[0]}"
        said.append(f"{where}: all their covariates are missing")
    return said


def union(tables: Mapping[str, pd.Index]) -> pd.Index:
    """The names of all tables in order of appearance; within a table a name may not repeat."""
    every = list(tables.items())
    for where, names in every:
        refuse_duplicates(names, where)
    found = every[0][1]
    for _, names in every[1:]:
        found = found.append(without(names, found))
    return found


def refuse_duplicates(names: pd.Index, where: str) -> None:
    """Names that repeat cannot be matched."""
    if not names.is_unique:
        twice = listed(names[names.duplicated()].unique(), 3)
        need = "rows are matched by name and need distinct names"
        raise _refusal(need, f"{twice} more than once in {where}", "rename or drop these rows")


def refuse_disjoint(table: pd.Index, names: pd.Index, called: tuple[str, str]) -> None:
    """Tables without a name in common were named otherwise."""
    if len(table) and len(names) and not table.isin(names).any():
        raise no_name_in_common(table, names, called, resemblance(names, table))


def refuse_transposed(columns: pd.Index, names: pd.Index, table: pd.Index, called: tuple[str, str]) -> None:
    """Refuse samples as columns: none of the rows, and most columns, are called as rows of the table."""
    common = columns.isin(table).sum()
    if common and not names.isin(table).any() and 2 * common >= min(len(columns), len(table)):
        remedy = f"the columns of {called[1]} have the row names of {called[0]}, so {TRANSPOSE}"
        raise no_name_in_common(table, names, called, remedy)


def no_name_in_common(table: pd.Index, names: pd.Index, called: tuple[str, str], remedy: str = "") -> ValueError:
    """The error for tables without a name in common; without a remedy they need other names."""
    need, got = f"{called[1]} and {called[0]} need row names in common", f"{listed(names, 3)} and {listed(table, 3)}"
    if remedy:
        return ValueError(message(need, got=got, remedy=remedy))
    return _refusal(need, got, "give both the same row names")


def refuse_unnamed(named: Iterable[str], nameless: Iterable[str]) -> None:
    """Either all tables have row names, or none has."""
    with_names, others = list(named), list(nameless)
    if with_names and others:
        got = f"names in {listed(with_names)} and none in {listed(others)}"
        raise _refusal("all views need row names, or none", got, "give all the same row names")


def _names_differ(first: str, only_first: pd.Index, second: str, only_second: pd.Index) -> ValueError:
    pairs = ((first, second, only_first), (second, first, only_second))
    parts = [f"{len(only)} in {a} and not in {b} ({listed(only, 3)})" for a, b, only in pairs if len(only)]
    remedy = resemblance(only_first, only_second)
    if remedy:
        return ValueError(message(f"{first} and {second} need the same row names", got="; ".join(parts), remedy=remedy))
    return _refusal(f"{first} and {second} need the same row names", "; ".join(parts), "keep the rows that both have")


def _refusal(need: str, got: str, remedy: str) -> ValueError:
    return ValueError(message(need, got=got, remedy=f"{remedy}, or {BY_POSITION}"))
