"""Tables read from files: text, parquet, what AnnData and MuData know of their rows, numpy arrays.

The names of the rows are the column ``index``, if it is given. Else they are the first column, if its header is empty
(as pandas and R write it) or if it is text that never repeats (and not numbers with marks for gaps); else the index
that pandas wrote into a parquet file, or ``obs_names``. A table without row names has a RangeIndex, and its rows are
matched by position. Nothing is ever unpickled.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from covalign._core.checks import not_two_dimensional, repeated_columns
from covalign._core.extras import optional
from covalign._core.files import data_not_found, path_to_read, reading
from covalign._core.linalg import dense
from covalign._core.messages import GIVE_COVARIATES, listed, message, shown
from covalign._core.paths import exists, file_of, is_folder, is_zarr, suffix_of
from covalign.stream import open_rows
from covalign.stream.h5ad import obs_of
from covalign.stream.parquet import parquet_files, schema_of
from covalign.tables.foreign_tables import is_foreign, read_foreign

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
MISSING = ["", "NA", "NaN", "nan"]
FRACTION = r"\s*[+-]?\d*[.,]\d+([eE][+-]?\d+)?\s*"
NEED_TEXT = "a table as text (.csv, .tsv), encoded in UTF-8,"
INDEX = "name the column of row names with read_table(path, index=...)"


def is_path(data: Any) -> bool:
    """A path, as text or as an object."""
    return isinstance(data, str | os.PathLike)


def is_table_path(data: Any) -> bool:
    """A path that exists, or that ends like that of a table; other text may be the name of a column."""
    if not is_path(data):
        return False
    path = Path(data)
    known = (*TEXT, *PARQUET, ".h5ad", ".h5mu", ".npy", ".npz", ".zarr", ".zip", ".mtx")
    return exists(path) or suffix_of(path) in known or is_foreign(path)


def is_text(path: Path) -> bool:
    """A table as text, perhaps in a zip archive."""
    return suffix_of(path) in (*TEXT, ".zip")


def is_parquet(path: Path) -> bool:
    """A parquet file, or a folder of such files."""
    return path.suffix.lower() in PARQUET or (is_folder(path) and any(path.glob("*.parquet")))


def read_table(path: Any, index: str | None = None, na: str | Sequence[str] = ()) -> pd.DataFrame:
    """The table in a file, with row names as its index where it has any, else a RangeIndex.

    Files are .csv, .tsv or .txt (also compressed, .gz or .zip), .xlsx or .ods (the first sheet, or
    ``book.xlsx::Sheet``), .parquet (a file or a folder), .rds or .rda of R, .npy, .npz, .zarr, and .h5ad or .h5mu, of
    which ``obs`` is read. ``index`` is the column with the row names; without it they are the first column,
    if its header is empty or if it is text that never repeats. ``na`` is a text that marks a gap, such as ``"-"``, or
    several; an empty cell, NA, NaN and what else pandas knows always do.

    >>> import pathlib, tempfile, covalign as ca
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "clinic.csv"
    >>> _ = file.write_text("patient,age\\np1,40\\np2,52\\n")
    >>> ca.read_table(file)["age"].to_dict()
    {'p1': 40, 'p2': 52}
    """
    path, na = path_to_read(path, "a table"), marks(na)
    if not exists(file_of(path)):
        raise data_not_found(path, "a table of covariates")
    if is_text(path):
        return read_text(path, index, na)
    if is_foreign(path):
        frame = read_foreign(path)
    elif is_parquet(path):
        frame = read_parquet(path)
    elif suffix_of(path) in (".h5ad", ".h5mu"):
        frame = obs_of(path)
    elif suffix_of(path) == ".npy":
        with reading(path, "an array of numbers or text saved with numpy.save"):
            values = np.load(path, allow_pickle=False)
        frame = _columns(values, None, path)
    elif suffix_of(path) == ".npz":
        frame = _read_archive(path)
    elif is_zarr(path):
        frame = _columns(np.concatenate([dense(chunk) for chunk in open_rows(path, single=True).chunks()]), None, path)
    else:
        raise unknown_format(path)
    return with_gaps(named(frame.set_axis([str(name) for name in frame.columns], axis=1), index, path), na)


def first_rows(path: Path, n: int) -> pd.DataFrame:
    """The first rows of a text file, as they are written; other tables whole."""
    if not is_text(path):
        return read_table(path)
    if suffix_of(path) == ".zip":
        _check_archive(path)
    with reading(path, NEED_TEXT):
        frame: pd.DataFrame = pd.read_csv(path, sep=_layout(path)[0], nrows=n, encoding="utf-8-sig")
        return frame


def marks(na: Any) -> tuple[str, ...]:
    """Texts that mark a gap."""
    texts = (na,) if isinstance(na, str) else tuple(na) if isinstance(na, list | tuple | set) else (na,)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(message("na needs a text or several", got=shown(na), remedy="write for example na='-'"))
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


def unknown_format(path: Path) -> ValueError:
    """The error for a file of a kind that is not read."""
    need = (
        "a table needs to be .csv, .tsv or .txt (also .gz or .zip), .xlsx, .ods, .parquet, .h5ad, .h5mu, .rds, .rda, "
    )
    return ValueError(message(f"{need}.npy, .npz or .zarr", got=repr(str(path)), remedy="save it as .csv"))


def read_text(path: Path, index: str | None = None, na: Sequence[str] = ()) -> pd.DataFrame:
    """A table as text, also compressed; ``index`` is used if the table has such a column."""
    if suffix_of(path) == ".zip":
        _check_archive(path)
    with reading(path, NEED_TEXT):
        _refuse_nul(path)
        frame, names, wrong = _parsed(path, index, na)
    if wrong is not None:
        raise wrong
    if names is None:
        return named(frame, index, path)
    frame = frame if names.at is None else frame.drop(columns=frame.columns[names.at])
    return frame.set_axis(row_names(names.labels, path), axis=0)


def _check_archive(path: Path) -> None:
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
    separator, header = _layout(path)
    repeated = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if repeated and not are_numbers(header):  # pandas would call the second one x.1
        return pd.DataFrame(), None, repeated_columns(str(path), repeated)
    options: dict[str, Any] = {"sep": separator, "float_precision": "round_trip", "encoding": "utf-8-sig"}
    try:
        frame = _read_csv(path, {**options, "na_values": list(na)})
    except pd.errors.ParserError:
        wrong = _wrong_lengths(path, separator, len(header))
        if wrong is None:
            raise
        return pd.DataFrame(), None, wrong
    moved = not isinstance(frame.index, pd.RangeIndex)
    if moved or (frame.shape[1] and frame.iloc[:, -1].isna().any()):
        wrong = _wrong_lengths(path, separator, len(header))
        if wrong is not None:
            return frame, None, wrong
    names = _names_in_text(path, frame, header, index, options)
    return frame, names, None if moved else _wrong_header(path, header, names, frame)


def _names_in_text(
    path: Path, frame: pd.DataFrame, header: list[str], index: str | None, options: dict[str, Any]
) -> _Names | None:
    """The row names as text, exactly as they are written: 007 is a name, and so is NA."""
    if not isinstance(frame.index, pd.RangeIndex):
        return _Names(None, pd.Series(_cells(path, options["sep"]), name=""))
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


def _layout(path: Path) -> tuple[str, list[str]]:
    """The separator that gives most columns in the first line that is not empty, and the names of these columns."""
    kind = suffix_of(path)
    candidates = "\t" if kind == ".tsv" else ",\t; " if kind == ".txt" else ",\t;"
    headers = {separator: next(_rows(path, separator), []) for separator in candidates}
    best = max(candidates, key=lambda separator: len(headers[separator]))
    return best, headers[best]


def named(frame: pd.DataFrame, index: str | None, where: Any) -> pd.DataFrame:
    """The frame with its row names as index, all of them text; or with a RangeIndex."""
    if index is not None and index in frame.columns:
        return _indexed(frame, index, where)
    if not isinstance(frame.index, pd.RangeIndex):
        return frame.set_axis(as_text(frame.index, where), axis=0)
    if frame.shape[1] > 1 and are_names(frame.iloc[:, 0]):
        return _indexed(frame, str(frame.columns[0]), where)
    return frame


def as_text(index: pd.Index, where: Any) -> pd.Index:
    """Row names as text: every file has them in its own type."""
    if index.nlevels > 1:
        got = f"an index of {index.nlevels} levels in {str(where)!r}"
        remedy = "join the levels into one, or write the table without its index"
        raise ValueError(message("every row needs one name", got=got, remedy=remedy))
    return index.astype(str)


def are_names(column: pd.Series) -> bool:
    """Whether a column has text that never repeats; numbers and a few marks for gaps are a covariate, not names.

    Marks have no digit: 101, 102, 103b are names, and 40, 52, unknown are not.
    """
    text = types.is_object_dtype(column.dtype) or types.is_string_dtype(column.dtype)
    if not text or isinstance(column.dtype, pd.CategoricalDtype) or len(column) < 2:
        return False
    if not (column.map(lambda value: isinstance(value, str)).all() and column.is_unique):
        return False
    whole = column.str.fullmatch(r"\s*[+-]?\d+\s*")
    if whole.mean() > 0.5 and not whole.all() and not column[~whole].str.contains(r"\d").any():
        return False
    return bool(column.str.fullmatch(FRACTION).mean() <= 0.5)


def row_names(labels: pd.Series, where: Any) -> pd.Index:
    """A column as row names; none may be empty."""
    if labels.isna().any() or (labels.astype(str).str.strip() == "").any():
        got, remedy = f"an empty one in {str(where)!r}", f"fill it in, or {INDEX}"
        raise ValueError(message(f"every row needs a name in the column {str(labels.name)!r}", got=got, remedy=remedy))
    names: pd.Index = pd.Index(labels.astype(str).to_numpy(dtype=object))
    return names


def _indexed(frame: pd.DataFrame, column: str, where: Any) -> pd.DataFrame:
    return frame.drop(columns=column).set_axis(row_names(frame[column], where), axis=0)


def refuse_text(frame: pd.DataFrame, where: str) -> None:
    """Refuse a cell that is no number in a column of numbers, by row, column and text."""
    for name, column in frame.items():
        if types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
            continue
        cell = odd_cell(column)
        if cell is not None:
            row, text = cell
            problem, got = f"{where} needs numbers in every column", f"{text!r} in row {row!r} of column {str(name)!r}"
            raise ValueError(message(problem, got=got, remedy=f"leave cells without a number empty; {gap_mark(text)}"))


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


def columns_in(path: Path) -> list[str]:
    """The names of the columns in a file, as they are written; none where the file has no named columns."""
    if is_text(path) and exists(path):
        with reading(path, NEED_TEXT):
            return _layout(path)[1]
    if is_foreign(path) and exists(file_of(path)):
        return [str(name) for name in read_foreign(path).columns]
    if is_parquet(path) and exists(path):
        return list(schema_of(path).names)
    if suffix_of(path) in (".h5ad", ".h5mu") and exists(path):
        return [str(name) for name in obs_of(path).columns]
    if suffix_of(path) == ".npz" and exists(path):
        return list(_read_archive(path, needed=False).columns)
    return []


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
        need, kind = "the column of groups is no covariate and no confounder", "covariate"
        kind = "confounder" if groups in confounders else kind
        raise ValueError(message(need, got=f"{groups!r} as groups and as a {kind}", remedy="name it once"))
    if not covariates:
        remedy = "leave a column of interest besides the confounders and the groups"
        raise ValueError(message("at least one covariate is needed", got=f"none in {str(where)!r}", remedy=remedy))
    return frame[[*covariates, *others]]


def numbers_as_names(frame: pd.DataFrame, where: Any) -> list[str]:
    """A note if the first column may hold row names: whole numbers that never repeat, in ten rows or more."""
    column = frame.iloc[:, 0] if frame.shape[1] else pd.Series(dtype=object)
    if not (types.is_integer_dtype(column.dtype) and len(column) >= 10 and column.is_unique):
        return []
    what = f"column {str(column.name)!r} of {where} has another whole number in each row and is used as a covariate"
    return [f"{what}: if these are row names, {INDEX.replace('...', repr(str(column.name)))}"]


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Some columns of a parquet file, or of a folder of them, and the index that pandas wrote."""
    optional("pyarrow", "parquet")
    names = None if columns is None else list(columns)
    with reading(path, "a parquet file"):
        frames = [pd.read_parquet(file, columns=names) for file in parquet_files(path)]
        return pd.concat(frames, ignore_index=all(isinstance(frame.index, pd.RangeIndex) for frame in frames))


def _columns(values: Any, names: Any, path: Path, single: str | None = None) -> pd.DataFrame:
    """An array with column names; y0, y1, ... where it has none, a single column ``single`` or the name of the file."""
    if values.ndim not in (1, 2):
        raise not_two_dimensional(str(path), values.shape)
    values = values[:, None] if values.ndim == 1 else values
    if names is None:
        names = [single or path.stem] if values.shape[1] == 1 else [f"y{i}" for i in range(values.shape[1])]
    if len(names) != values.shape[1]:
        need, remedy = f"names needs {values.shape[1]} names, one per column of Y", "save as many as Y has columns"
        raise ValueError(message(need, got=f"shape {np.shape(names)}", remedy=remedy))
    frame = pd.DataFrame(values, columns=[str(name) for name in names])
    return frame.astype(object).where(frame != "") if values.dtype.kind == "U" else frame


def _read_archive(path: Path, *, needed: bool = True) -> pd.DataFrame:
    """Of an archive of ``covalign embed`` its columns; else Y (with names); else labels; else arrays of one dimension.

    An array that is alone in the archive is the table. ``needed`` refuses an archive without a table.
    """
    arrays = npz_arrays(path, without="Z")
    labels = {name.removeprefix("column_"): a for name, a in arrays.items() if name.startswith("column_")}
    if not labels and "Y" in arrays:
        return _columns(arrays["Y"], arrays.get("names"), path, "Y")
    flat = {name: array for name, array in arrays.items() if array.ndim == 1}
    flat = {"labels": flat["labels"]} if "labels" in flat else flat
    labels = labels or flat or (arrays if len(arrays) == 1 else {})
    if not labels:
        if needed:
            raise covariates_needed(path)
        return pd.DataFrame()
    lengths = {name: len(array) for name, array in labels.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name} {length}" for name, length in lengths.items())
        need, remedy = "columns of one table need the same length", "save the covariates in a file of their own"
        raise ValueError(message(need, got=f"{got} in {str(path)!r}", remedy=remedy))
    return pd.concat([_columns(array, None, path, name) for name, array in labels.items()], axis=1)


def covariates_needed(path: Any) -> ValueError:
    """The error for rows without covariates."""
    need = "covariates are needed"
    return ValueError(message(need, got=f"none, and {str(path)!r} does not contain any", remedy=GIVE_COVARIATES))


def csv_table(file: Path, text: Iterable[str] | None = None) -> pd.DataFrame:
    """A table whose columns ``text`` (by default the first) stay text: 001 is not 1, and NA is a name."""
    with reading(file, "a table of comma-separated values"):
        columns = pd.read_csv(file, nrows=0).columns
        kept = set(columns[:1] if text is None else text)
        gaps = {column: MISSING for column in columns if column not in kept}
        return pd.read_csv(file, dtype=dict.fromkeys(kept, str), na_values=gaps, keep_default_na=False)


def npz_arrays(
    file: Path, need: str = "an .npz with arrays of numbers and text", without: str | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file; the one called ``without`` is not read."""
    # np.load opens other formats, too
    with reading(file, need), zipfile.ZipFile(file), np.load(file, allow_pickle=False) as archive:
        return {name: np.asarray(archive[name]) for name in archive.files if name != without}
