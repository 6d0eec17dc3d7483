"""The columns of a table: which ones are asked for, and cells that are gaps or no numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from covalign._core.messages import listed, message, shown


class OddCellError(ValueError):
    """A cell of a view that is no number, although most of its column are; ``text`` is what it holds."""

    def __init__(self, said: str, text: str) -> None:
        super().__init__(said)
        self.text = text


def marks(na: Any) -> tuple[str, ...]:
    """Texts that mark a gap."""
    texts = (na,) if isinstance(na, str) else tuple(na) if isinstance(na, list | tuple | set) else (na,)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(message("na needs one text or several", got=shown(na), remedy="write for example na='-'"))
    return texts


def with_gaps(frame: pd.DataFrame, na: Sequence[str]) -> pd.DataFrame:
    """The table with gaps in place of the marks; a column whose other cells are numbers becomes numbers."""
    filled = frame.copy(deep=False)
    for name, column in frame.items():
        gaps = column.isin(na) if na and not types.is_numeric_dtype(column.dtype) else None
        if gaps is not None and gaps.any():
            rest = column.astype(object).mask(gaps)
            numbers = pd.to_numeric(rest, errors="coerce").notna().equals(rest.notna())
            filled[name] = rest.astype(np.float64) if numbers else rest
    return filled


def refuse_text(frame: pd.DataFrame, where: str) -> None:
    """Refuse a cell that is no number in a column of numbers, by row, column and text."""
    for name, column in frame.items():
        if types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
            continue
        cell = odd_cell(column)
        if cell is not None:
            row, text = cell
            problem, got = f"{where} needs numbers in every column", f"{text!r} in row {row!r} of column {str(name)!r}"
            remedy = f"leave cells without a number empty; {gap_mark(text)}"
            raise OddCellError(message(problem, got=got, remedy=remedy), text)


def gap_mark(text: str) -> str:
    """The remedy for a text that may stand for a missing number."""
    return f"if it marks a gap, read the table with read_table(path, na={text!r})"


def odd_cell(column: pd.Series) -> tuple[str, str] | None:
    """Row and text of the first cell that is no number, if most cells of a column of text are numbers."""
    there = column.dropna()
    codes, cells = pd.factorize(there.astype(str))
    numbers = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce").notna().to_numpy()[codes]
    if numbers.all() or 2 * numbers.sum() < len(there):
        return None
    at = int(np.argmin(numbers))
    return str(there.index[at]), str(there.iloc[at])


def check_index(index: str | None, headers: dict[Path, Sequence[str]]) -> None:
    """The column of row names needs to be in one of the files."""
    if index is not None and not any(index in columns for columns in headers.values()):
        where = " and ".join(str(path) for path in headers)
        raise unknown_columns(where, [index], list(dict.fromkeys(c for cs in headers.values() for c in cs)))


def unknown_columns(where: Any, wrong: Sequence[str], have: Sequence[str]) -> ValueError:
    """The error for columns that a file does not have."""
    problem = f"{str(where)!r} has no column {listed(wrong)}"
    return ValueError(message(problem, remedy=f"It has {listed(have, 20) or 'none'}", wrong=wrong, known=have))


def chosen(
    frame: pd.DataFrame,
    covariates: Sequence[str] | None,
    confounders: Sequence[str] | None,
    where: Any,
    groups: str | None = None,
) -> pd.DataFrame:
    """The columns asked for: covariates, confounders, groups. Without a choice all other columns are covariates."""
    confounders = list(dict.fromkeys(confounders or []))
    grouped = [] if groups is None else [groups]
    others = [*confounders, *grouped]
    covariates = list(dict.fromkeys(covariates or [name for name in frame.columns if name not in others]))
    wrong = [name for name in [*covariates, *others] if name not in frame.columns]
    if wrong:
        raise unknown_columns(where, wrong, list(frame.columns))
    both = sorted(set(covariates) & set(confounders))
    if both:
        need = "a column needs to be a covariate or a confounder"
        raise ValueError(message(need, got=f"{listed(both)} as both", remedy="name it once"))
    if groups in [*covariates, *confounders]:
        need, kind = "the column of groups cannot be a covariate or a confounder", "covariate"
        kind = "confounder" if groups in confounders else kind
        raise ValueError(message(need, got=f"{groups!r} as groups and as a {kind}", remedy="name it once"))
    if not covariates:
        remedy = "leave a column of interest besides the confounders and the groups"
        raise ValueError(message("at least one covariate is needed", got=f"none in {str(where)!r}", remedy=remedy))
    return frame[[*covariates, *others]]
