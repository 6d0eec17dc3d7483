"""Tables read from text files: separators, row names as they are written, and lines of the wrong length."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from covalign._core.data_errors import repeated_columns
from covalign._core.files import reading
from covalign._core.messages import listed, message
from covalign._core.paths import suffix_of
from covalign.tables.table_index import are_names, named, row_names

PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])

TEXT = (".csv", ".tsv", ".txt")


NEED_TEXT = "a table as text (.csv, .tsv), encoded in UTF-8,"


def is_text(path: Path) -> bool:
    """A table as text, perhaps in a zip archive."""
    return suffix_of(path) in (*TEXT, ".zip")


def read_text(path: Path, index: str | None = None, na: Sequence[str] = ()) -> pd.DataFrame:
    """A table as text, also compressed; ``index`` is used if the table has such a column."""
    if suffix_of(path) == ".zip":
        check_archive(path)
    with reading(path, NEED_TEXT):
        _refuse_nul(path)
        frame, names, wrong = _parsed(path, index, na)
    if wrong is not None:
        raise wrong
    if names is None:
        return named(frame, index, path)
    frame = frame if names.at is None else frame.drop(columns=frame.columns[names.at])
    return frame.set_axis(row_names(names.labels, path), axis=0)


def check_archive(path: Path) -> None:
    """A zip archive needs to hold one table as text, and nothing else."""
    with reading(path, "a zip archive with one table as text"), zipfile.ZipFile(path) as archive:
        inside = archive.namelist()
    if len(inside) != 1 or suffix_of(Path(inside[0])) not in TEXT:
        problem = f"{str(path)!r} needs exactly one table (.csv, .tsv or .txt) inside"
        raise ValueError(message(problem, got=listed(inside) or "nothing", remedy="unpack it and name the table"))


class _Names(NamedTuple):
    """Row names in a text file, and their column; None if they stand before the first column, as R writes them."""

    at: int | None
    labels: pd.Series


def _parsed(path: Path, index: str | None, na: Sequence[str]) -> tuple[pd.DataFrame, _Names | None, ValueError | None]:
    """The table, the names of its rows if it has any, and what is wrong with it."""
    separator, header = layout(path)
    repeated = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if repeated and not are_numbers(header):  # pandas would call the second one x.1
        return pd.DataFrame(), None, repeated_columns(str(path), repeated)
    options: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig"}
    if PANDAS < (3, 1):  # later ones read every number exactly, and warn of the option
        options["float_precision"] = "round_trip"
    try:
        frame = _read_csv(path, {**options, "na_values": list(na)})
    except pd.errors.ParserError:
        wrong = _wrong_lengths(path, separator, len(header))
        if wrong is None:
            raise
        return pd.DataFrame(), None, wrong
    # Values before the first named column are the index, which pandas 3.1 may write as a range, like one that it made.
    moved = not isinstance(frame.index, pd.RangeIndex) or _first_length(path, separator) > len(header)
    if moved or (frame.shape[1] and frame.iloc[:, -1].isna().any()):
        wrong = _wrong_lengths(path, separator, len(header))
        if wrong is not None:
            return frame, None, wrong
    names = _moved_names(path, separator) if moved else _names_in_text(path, frame, header, index, options)
    return frame, names, None if moved else _wrong_header(path, header, names, frame)


def _first_length(path: Path, separator: str) -> int:
    """The number of values in the first row below the header."""
    rows = _rows(path, separator)
    next(rows, None)
    return len(next(rows, []))


def _moved_names(path: Path, separator: str) -> _Names:
    """The row names that stand before the first named column."""
    return _Names(None, pd.Series(_cells(path, separator), name=""))


def _names_in_text(
    path: Path, frame: pd.DataFrame, header: list[str], index: str | None, options: dict[str, Any]
) -> _Names | None:
    """The row names as text, exactly as they are written: 007 is a name, and so is NA."""
    if index in header:
        at = header.index(str(index))
    elif header and header[0] in ("", "Unnamed: 0"):
        at = 0
    else:
        column = frame.iloc[:, 0] if frame.shape[1] > 1 and len(frame) > 1 else pd.Series(dtype=np.float64)
        whole = types.is_integer_dtype(column.dtype) and column.is_unique
        if not (whole or types.is_object_dtype(column.dtype) or types.is_string_dtype(column.dtype)):
            return None
        text = _as_written(path, 0, options)
        found = text.str.fullmatch(r"0\d+").any() if whole else are_names(text.where(text.str.strip() != ""))
        return _Names(0, text) if found else None
    return _Names(at, _as_written(path, at, options))


def _as_written(path: Path, at: int, options: dict[str, Any]) -> pd.Series:
    """A column as text, without gaps."""
    text = pd.read_csv(path, usecols=[at], dtype=str, keep_default_na=False, skip_blank_lines=True, **options)
    column: pd.Series = text.iloc[:, 0].astype(object)
    return column


def _cells(path: Path, separator: str) -> list[str]:
    """The first cell of every row below the header."""
    return [row[0] for row in _rows(path, separator)][1:]


def _rows(path: Path, separator: str) -> Iterator[list[str]]:
    """The rows of a text file that are not empty."""
    with _open_text(path, newline="") as file:
        yield from filter(None, csv.reader(file, delimiter=separator))


@contextmanager
def _open_text(path: Path, newline: str | None = None) -> Iterator[Any]:
    """A text file, also compressed by gzip, or alone in a zip archive."""
    with _open_bytes(path) as file:
        yield io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline)


@contextmanager
def _open_bytes(path: Path) -> Iterator[Any]:
    if suffix_of(path) != ".zip":
        opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
        with opened(path, "rb") as file:
            yield file
        return
    with zipfile.ZipFile(path) as archive:
        (member,) = archive.namelist()
        with archive.open(member) as file:
            yield file


def _refuse_nul(path: Path) -> None:
    """Refuse zero bytes: pandas ends a cell there, so 2, zero byte, 3 would be 2, and UTF-16 would be noise."""
    with _open_bytes(path) as file:
        while block := file.read(2**20):
            if b"\0" in block:
                raise ValueError("it contains zero bytes, as text in UTF-16 does")


def _wrong_lengths(path: Path, separator: str, width: int) -> ValueError | None:
    """The error for rows that have not as many values as the header; pandas would shift columns, or fill them up.

    All rows may have a name before their values, as R writes it: text, or a number in quotes.
    """
    lengths = [len(row) for row in _rows(path, separator)][1:]
    before = len(set(lengths)) == 1 and lengths[0] == width + 1
    if before and not _begins_with_number(path, separator):
        return None
    wrong = next((i for i, length in enumerate(lengths) if length != width), None)
    if wrong is None:
        return None
    need = f"rows need a value for each of the {width} names in the first line, and at most a row name before"
    got = f"{'more' if lengths[wrong] > width else 'fewer'} ({lengths[wrong]}) in row {wrong + 1} of {str(path)!r}"
    remedy = "complete the first line, or the row, or remove separators at the ends of rows"
    return ValueError(message(need, got=got, remedy=remedy))


def _begins_with_number(path: Path, separator: str) -> bool:
    """Whether a row begins with a number that is not in quotes, or ends with a separator."""
    with _open_text(path) as file:
        lines = [line.rstrip("\r\n") for line in file if line.strip()][1:]
    if all(line.endswith(separator) for line in lines):
        return True
    return any(is_number(line.split(separator)[0]) for line in lines)


def _wrong_header(path: Path, header: list[str], names: _Names | None, frame: pd.DataFrame) -> ValueError | None:
    """The error for a first line that is a sample: its numbers would become names of columns.

    Names that are numbers in rising order (years, wavelengths) are fine beside a column of row names, and 0, 1, 2, ...
    always are, which pandas writes where columns have no names.
    """
    beside = names is not None and names.at == 0
    cells = header[1:] if beside else header
    if _is_sample(header, names if beside else None, frame):
        need, got = f"{str(path)!r} needs column names in its first line", f"values ({listed(header, 3)})"
        return ValueError(message(need, got=got, remedy="add a line of names, or remove the second line of names"))
    if not cells or not are_numbers(cells) or cells == [str(i) for i in range(len(cells))]:
        return None
    values = [float(cell.replace(",", ".")) for cell in cells]
    if names is not None and beside and all(a < b for a, b in pairwise(values)) and not _is_like(header[0], names):
        return None
    need, got = f"{str(path)!r} needs column names in its first line", f"the numbers {listed(cells, 3)}"
    remedy = "add a line of names, or put a letter before names that are numbers"
    return ValueError(message(need, got=got, remedy=remedy))


def _is_sample(header: list[str], names: _Names | None, frame: pd.DataFrame) -> bool:
    """Whether the first line reads like the lines below, or is repeated there.

    Some of its cells are numbers above numbers, and others are the name of one more sample, or a level of the column
    below; or several are levels.
    """
    numeric = [types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    columns = list(enumerate(zip(header, numeric, strict=False)))
    numbers = any(is_number(cell) for _, (cell, number) in columns if number)
    levels = sum(cell in set(frame.iloc[:, i]) for i, (cell, number) in columns if cell and not number)
    named = names is not None and _is_like(header[0], names)
    mixed = not are_numbers(header[1:] if names is not None else header)  # only numbers: years, wavelengths
    return levels > 1 or (numbers and mixed and (levels > 0 or named))


def _is_like(first: str, names: _Names) -> bool:
    """Whether a text is one more of these names but for its digits: s1 is like s2, s3."""
    forms = {re.sub(r"\d+", "0", str(name)) for name in names.labels.head(100)}
    return any(map(str.isdigit, first)) and re.sub(r"\d+", "0", first) in forms


def is_number(text: str) -> bool:
    """Whether text reads as a number, with a point or a comma."""
    try:
        float(text.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def are_numbers(cells: Sequence[str]) -> bool:
    """Whether all cells read as numbers."""
    return all(is_number(cell) for cell in cells)


def _read_csv(path: Path, options: dict[str, Any]) -> pd.DataFrame:
    """The table; where semicolons separate columns, commas are decimal marks if that gives more columns of numbers."""
    frame: pd.DataFrame = pd.read_csv(path, **options)
    if options["sep"] != ";":
        return frame
    other: pd.DataFrame = pd.read_csv(path, decimal=",", **options)
    return max(frame, other, key=lambda f: f.select_dtypes("number").shape[1])


def layout(path: Path) -> tuple[str, list[str]]:
    """The separator that gives most columns in the first line that is not empty, and the names of these columns."""
    kind = suffix_of(path)
    candidates = "\t" if kind == ".tsv" else ",\t; " if kind == ".txt" else ",\t;"
    headers = {separator: next(_rows(path, separator), []) for separator in candidates}
    best = max(candidates, key=lambda separator: len(headers[separator]))
    return best, headers[best]
