"""Tables of other programs: sheets of Excel and LibreOffice, objects of R. They are read whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.extras import optional
from covalign._core.files import reading
from covalign._core.messages import listed, message
from covalign._core.paths import file_of, sheet_of, suffix_of

SHEETS: dict[str, Any] = {".xlsx": "openpyxl", ".xlsm": "openpyxl", ".ods": "odf"}
OBJECTS = (".rds", ".rda", ".rdata")


def is_foreign(path: Path) -> bool:
    """A table of Excel, LibreOffice or R."""
    return suffix_of(path) in (*SHEETS, *OBJECTS)


def sheets_in(path: Path) -> list[str]:
    """The names of the sheets of a workbook; none of any other file, or if the path names a sheet."""
    if suffix_of(path) not in SHEETS or sheet_of(path) is not None:
        return []
    with _workbook(path) as book:
        return [str(name) for name in book.sheet_names]


def other_sheets(path: Path) -> str:
    """A hint for the error of a first sheet: the other sheets, and how to name one; "" if there is no other."""
    names = sheets_in(path)
    return "" if len(names) < 2 else f". This is its first sheet, {names[0]!r}. Name another: {path}::{names[1]}"


def read_foreign(path: Path) -> pd.DataFrame:
    """The table, with the row names that R gave it; a sheet has its row names in a column."""
    return _sheet(path) if suffix_of(path) in SHEETS else _object(path)


def _sheet(path: Path) -> pd.DataFrame:
    """The first sheet, or the one after ``::``. A first column without a header holds row names."""
    file, sheet = file_of(path), sheet_of(path)
    with _workbook(path) as book:
        names = [str(name) for name in book.sheet_names]
        frame = None if sheet is not None and sheet not in names else book.parse(0 if sheet is None else sheet)
    if frame is None:
        problem, remedy = f"{str(file)!r} has no sheet {sheet!r}", f"It has {listed(names)}"
        raise ValueError(message(problem, remedy=remedy, wrong=[sheet], known=names))
    first = str(frame.columns[0]) if frame.shape[1] else ""
    return frame.set_index(frame.columns[0]).rename_axis(None) if first == "Unnamed: 0" else frame


@contextmanager
def _workbook(path: Path) -> Iterator[pd.ExcelFile]:
    module = SHEETS[suffix_of(path)]
    optional(module, "excel", "odfpy" if module == "odf" else module)
    file = file_of(path)
    with reading(file, "a workbook of Excel or LibreOffice"), pd.ExcelFile(file, engine=module) as book:
        yield book


def _object(path: Path) -> pd.DataFrame:
    """The only table in a file of R: a data frame or a matrix."""
    rdata = optional("rdata", "rdata")
    with reading(path, "a file of R (.rds, .rda)"):
        read = rdata.read_rds if suffix_of(path) == ".rds" else rdata.read_rda
        content = read(path, default_encoding="utf-8")
    objects: dict[str, Any] = content if isinstance(content, dict) else {path.stem: content}
    tables = {name: value for name, value in objects.items() if np.ndim(value) == 2}
    if len(tables) != 1:
        got = f"{listed(tables)}" if tables else f"none ({listed(objects)})"
        problem = f"{str(path)!r} needs exactly one data frame or matrix"
        raise ValueError(message(problem, got=got, remedy="save one table with saveRDS"))
    (value,) = tables.values()
    frame = value if isinstance(value, pd.DataFrame) else _matrix(value)
    return frame.rename_axis(index=None, columns=None)


def _matrix(value: Any) -> pd.DataFrame:
    frame: pd.DataFrame = value.to_pandas() if hasattr(value, "to_pandas") else pd.DataFrame(np.asarray(value))
    return frame
