"""What users have: tables with names and gaps, and representations of any size.

Names of rows are the column that ``--index`` names; else the first column, if its header is empty (as pandas and R
write it) or if it is text that never repeats (and not numbers with marks for gaps); else the index that pandas wrote
into a parquet file, or ``obs_names``.
A frame without names has a RangeIndex, and its rows go by position. Nothing is ever unpickled.
"""

from __future__ import annotations

import csv
import gzip
import shlex
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from covalign._core import validation as errors
from covalign._core.extras import optional
from covalign.cli.application import note
from covalign.stream.h5ad import obs_of
from covalign.stream.parquet import parquet_files

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
UNREADABLE = (ValueError, OSError, EOFError, zlib.error, zipfile.BadZipFile, csv.Error, KeyError)
FRACTION = r"\s*[+-]?\d*[.,]\d+([eE][+-]?\d+)?\s*"
NEED_TEXT = "a table as text (.csv, .tsv), encoded in UTF-8,"


def suffix_of(path: Path) -> str:
    """The suffix in lower case, of what is inside where that is compressed by gzip."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_text(path: Path) -> bool:
    """A table as text."""
    return suffix_of(path) in TEXT


def is_parquet(path: Path) -> bool:
    """A parquet file, or a folder of such files."""
    return path.suffix.lower() in PARQUET or (path.is_dir() and any(path.glob("*.parquet")))


def read_table(path: Path, index: str | None = None) -> pd.DataFrame:
    """A table of covariates, with names of rows where it has any."""
    if not path.exists():
        raise errors.data_not_found(path, "a table of covariates")
    if is_text(path):
        return read_text(path, index)
    if is_parquet(path):
        frame = read_parquet(path)
    elif suffix_of(path) in (".h5ad", ".h5mu"):
        frame = obs_of(path)
    elif suffix_of(path) == ".npy":
        frame = _read_array(path)
    elif suffix_of(path) == ".npz":
        frame = _read_archive(path)
    else:
        raise errors.not_a_table(path)
    return named(frame.set_axis([str(name) for name in frame.columns], axis=1), index, path)


def read_text(path: Path, index: str | None = None) -> pd.DataFrame:
    """A CSV or TSV, also compressed; ``index`` is used if there is such a column."""
    try:
        separator, header = _layout(path)
        first = header[0] if header else ""
        labels = index if index in header else "" if first in ("", "Unnamed: 0") else None
        options: dict[str, Any] = {"sep": separator, "float_precision": "round_trip", "encoding": "utf-8-sig"}
        frame = _read_csv(path, options)
        if labels is not None:  # as text, and as it stands there: 007 is a name, and so is NA
            at = header.index(labels) if labels else 0
            text = pd.read_csv(path, usecols=[at], dtype=str, keep_default_na=False, **options)
            frame.isetitem(at, text.iloc[:, 0].astype(object))
    except UNREADABLE as error:
        raise errors.unreadable_data(path, NEED_TEXT, str(error).splitlines()[0] if str(error) else "empty") from error
    repeated = [name for name in dict.fromkeys(header) if header.count(name) > 1]
    if repeated:  # pandas would call the second one x.1
        raise errors.repeated_columns(str(path), repeated)
    if not isinstance(frame.index, pd.RangeIndex) and (frame.index.nlevels > 1 or frame.iloc[:, -1].isna().all()):
        raise errors.rows_longer_than_header(path, len(header))  # pandas would move all columns to the right
    if labels == "":
        return _indexed(frame, str(frame.columns[0]), path)
    return named(frame, index, path)


def _read_csv(path: Path, options: dict[str, Any]) -> pd.DataFrame:
    """The table; where semicolons separate columns, a comma is the decimal mark if that finds more numbers."""
    frame: pd.DataFrame = pd.read_csv(path, **options)
    if options["sep"] != ";":
        return frame
    other: pd.DataFrame = pd.read_csv(path, decimal=",", **options)
    return max(frame, other, key=lambda f: f.select_dtypes("number").shape[1])


def _layout(path: Path) -> tuple[str, list[str]]:
    """What separates columns, and their names: the separator that finds most in the first line that is not empty."""
    kind = suffix_of(path)
    candidates = "\t" if kind == ".tsv" else ",\t; " if kind == ".txt" else ",\t;"
    opened: Any = gzip.open if path.name.lower().endswith(".gz") else open
    headers = {}
    for separator in candidates:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            headers[separator] = next(filter(None, csv.reader(file, delimiter=separator)), [])
    best = max(candidates, key=lambda separator: len(headers[separator]))
    return best, headers[best]


def named(frame: pd.DataFrame, index: str | None, where: Any) -> pd.DataFrame:
    """The frame with its names of rows as index, all of them text; or with a RangeIndex."""
    if index is not None and index in frame.columns:
        return _indexed(frame, index, where)
    if frame.index.nlevels > 1:
        raise errors.several_names(where, frame.index.nlevels)
    if not isinstance(frame.index, pd.RangeIndex):
        return frame.set_axis(frame.index.astype(str), axis=0)
    if frame.shape[1] > 1 and are_names(frame.iloc[:, 0]):
        return _indexed(frame, str(frame.columns[0]), where)
    return frame


def are_names(column: pd.Series) -> bool:
    """Text that never repeats; numbers among a few marks for gaps are a covariate, not names."""
    text = types.is_object_dtype(column.dtype) or types.is_string_dtype(column.dtype)
    if not text or isinstance(column.dtype, pd.CategoricalDtype) or len(column) < 2:
        return False
    if not (column.map(lambda value: isinstance(value, str)).all() and column.is_unique):
        return False
    return bool(column.str.fullmatch(FRACTION).mean() <= 0.5)


def row_names(labels: pd.Series, where: Any) -> pd.Index:
    """A column as names of rows, which every row needs."""
    if labels.isna().any() or (labels.astype(str).str.strip() == "").any():
        raise errors.nameless_rows(where, str(labels.name))
    names: pd.Index = pd.Index(labels.astype(str).to_numpy(dtype=object))
    return names


def _indexed(frame: pd.DataFrame, column: str, where: Any) -> pd.DataFrame:
    return frame.drop(columns=column).set_axis(row_names(frame[column], where), axis=0)


def check_index(index: str | None, headers: dict[Path, Sequence[str]]) -> None:
    """The column with names needs to be in one of the files."""
    if index is not None and not any(index in columns for columns in headers.values()):
        where = " and ".join(str(path) for path in headers)
        raise errors.unknown_columns(where, [index], list(dict.fromkeys(c for cs in headers.values() for c in cs)))


def columns_in(path: Path) -> list[str]:
    """Names of columns as they stand in a file, where it is one with named columns."""
    if is_text(path) and path.exists():
        try:
            return _layout(path)[1]
        except UNREADABLE as error:
            raise errors.unreadable_data(path, NEED_TEXT, error) from error
    if is_parquet(path) and path.exists():
        schema = optional("pyarrow.parquet", "parquet").read_schema
        try:
            return list(schema(parquet_files(path)[0]).names)
        except (ValueError, OSError) as error:
            raise errors.unreadable_data(path, "a parquet file", error) from error
    if suffix_of(path) in (".h5ad", ".h5mu") and path.exists():
        return [str(name) for name in obs_of(path).columns]
    return []


def chosen(
    frame: pd.DataFrame, covariates: Sequence[str] | None, confounders: Sequence[str] | None, where: Any
) -> pd.DataFrame:
    """The columns asked for, covariates first; without a choice all but the confounders are covariates."""
    confounders = list(dict.fromkeys(confounders or []))
    if not covariates and not frame.empty and _look_like_numbers_of_rows(frame.iloc[:, 0]):
        name = frame.columns[0]
        note(
            f"column {name!r} of {where} has another whole number in each row and counts as a covariate: if these are "
            f"names of rows, say --index {shlex.quote(str(name))}"
        )
    covariates = list(dict.fromkeys(covariates or [name for name in frame.columns if name not in confounders]))
    wrong = [name for name in [*covariates, *confounders] if name not in frame.columns]
    if wrong:
        raise errors.unknown_columns(where, wrong, list(frame.columns))
    if set(covariates) & set(confounders):
        raise errors.both_roles(sorted(set(covariates) & set(confounders)))
    if not covariates:
        raise errors.only_confounders_left(where)
    return frame[[*covariates, *confounders]]


def _look_like_numbers_of_rows(column: pd.Series) -> bool:
    """Whole numbers that never repeat, and rows enough for that to be no accident."""
    return bool(types.is_integer_dtype(column.dtype) and len(column) >= 10 and column.is_unique)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Some columns of a parquet file, or of a folder of them, and the index that pandas wrote."""
    optional("pyarrow", "parquet")
    names = None if columns is None else list(columns)
    try:
        frames = [pd.read_parquet(file, columns=names) for file in parquet_files(path)]
        return pd.concat(frames, ignore_index=all(isinstance(frame.index, pd.RangeIndex) for frame in frames))
    except (ValueError, OSError) as error:
        raise errors.unreadable_data(path, "a parquet file", error) from error


def _read_array(path: Path) -> pd.DataFrame:
    """Columns y0, y1, ...; a single one is called as the file is."""
    try:
        values = np.load(path, allow_pickle=False)
    except UNREADABLE as error:
        raise errors.unreadable_data(path, "an array of numbers or text saved with numpy.save", error) from error
    return _columns(values, None, path.stem, path)


def _columns(values: Any, names: Any, alone: str, path: Path) -> pd.DataFrame:
    if values.ndim not in (1, 2):
        raise errors.not_two_dimensional(str(path), values.shape)
    values = values[:, None] if values.ndim == 1 else values
    if names is None:
        names = [alone] if values.shape[1] == 1 else [f"y{i}" for i in range(values.shape[1])]
    if len(names) != values.shape[1]:
        raise errors.names_differ_from_columns(values.shape[1], np.shape(names))
    frame = pd.DataFrame(values, columns=[str(name) for name in names])
    return frame.astype(object).where(frame != "") if values.dtype.kind == "U" else frame


def _read_archive(path: Path) -> pd.DataFrame:
    """Of what ``covalign embed`` wrote, the columns; else Y (with names); else labels; else all of one dimension."""
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if name != "Z"}
    except UNREADABLE as error:
        raise errors.unreadable_data(path, "an .npz with arrays of numbers and text", error) from error
    labels = {name.removeprefix("column_"): a for name, a in arrays.items() if name.startswith("column_")}
    if not labels and "Y" in arrays:
        return _columns(arrays["Y"], arrays.get("names"), "Y", path)
    if not labels:
        flat = {name: array for name, array in arrays.items() if array.ndim == 1}
        labels = {"labels": flat["labels"]} if "labels" in flat else flat
    if not labels:
        raise errors.covariates_needed(path)
    lengths = {name: len(array) for name, array in labels.items()}
    if len(set(lengths.values())) > 1:
        raise errors.columns_of_lengths(path, lengths)
    return pd.concat([_columns(array, None, name, path) for name, array in labels.items()], axis=1)
