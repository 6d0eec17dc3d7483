"""Tables read from files: text, parquet, what AnnData and MuData know of their rows, numpy arrays.

The names of the rows are the column ``index``, if it is given. Else they are the first column, if its header is empty
(as pandas and R write it) or if it is text that never repeats (and not numbers with marks for gaps); else the index
that pandas wrote into a parquet file, or ``obs_names``. A table without row names has a RangeIndex, and its rows are
matched by position. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.data_errors import not_two_dimensional
from covalign._core.extras import optional
from covalign._core.files import data_not_found, path_to_read, reading
from covalign._core.linalg import dense
from covalign._core.messages import GIVE_COVARIATES, message
from covalign._core.paths import exists, file_of, is_folder, is_zarr, suffix_of
from covalign.stream import open_rows
from covalign.stream.h5ad import obs_of
from covalign.stream.parquet import parquet_files, schema_of
from covalign.tables.foreign_tables import is_foreign, read_foreign
from covalign.tables.table_columns import marks, with_gaps
from covalign.tables.table_index import named
from covalign.tables.text_files import NEED_TEXT, TEXT, check_archive, is_text, layout, read_text

PARQUET = (".parquet", ".pq")
MISSING = ["", "NA", "NaN", "nan"]


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
        check_archive(path)
    with reading(path, NEED_TEXT):
        frame: pd.DataFrame = pd.read_csv(path, sep=layout(path)[0], nrows=n, encoding="utf-8-sig")
        return frame


def unknown_format(path: Path) -> ValueError:
    """The error for a file of a kind that is not read."""
    need = (
        "a table needs to be .csv, .tsv or .txt (also .gz or .zip), .xlsx, .ods, .parquet, .h5ad, .h5mu, .rds, .rda, "
    )
    return ValueError(message(f"{need}.npy, .npz or .zarr", got=repr(str(path)), remedy="save it as .csv"))


def columns_in(path: Path) -> list[str]:
    """The names of the columns in a file, as they are written; none where the file has no named columns."""
    if is_text(path) and exists(path):
        with reading(path, NEED_TEXT):
            return layout(path)[1]
    if is_foreign(path) and exists(file_of(path)):
        return [str(name) for name in read_foreign(path).columns]
    if is_parquet(path) and exists(path):
        return list(schema_of(path).names)
    if suffix_of(path) in (".h5ad", ".h5mu") and exists(path):
        return [str(name) for name in obs_of(path).columns]
    if suffix_of(path) == ".npz" and exists(path):
        return list(_read_archive(path, needed=False).columns)
    return []


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
