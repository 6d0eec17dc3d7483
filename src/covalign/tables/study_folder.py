"""A folder that nobody prepared: which files are views, which has the covariates, which has gene sets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from covalign._core.messages import listed, message
from covalign._core.paths import file_of, is_zarr, sheet_of, suffix_of
from covalign.stream.cell_ranger import is_cell_ranger
from covalign.stream.mtx import is_mtx
from covalign.tables import mofa_models, table_index, text_files
from covalign.tables import table_files as files
from covalign.tables.foreign_tables import is_foreign, sheets_in

CALLED = r"clini|pheno|meta|sample|patient|covari|annot|design|donor|pdata|\bobs\b"  # in names of tables of covariates
GENE_SETS = (".gmt",)
LEAST = 2  # rows and columns of a table, besides its names
EXAMINED = 50  # rows of a text file, which tell what it holds


class StudyFolder(NamedTuple):
    """The files of a folder by their role; ``unused`` says why a file has none."""

    views: dict[str, Path]
    covariates: Path
    sets: Path | None
    unused: dict[str, str]


def is_study_folder(path: Path | None) -> bool:
    """A folder of tables: no data set in the format of another program."""
    if path is None or not path.is_dir():
        return False
    return not (is_zarr(path) or is_mtx(path) or files.is_parquet(path) or mofa_models.is_model(path))


def study_in(folder: Path) -> StudyFolder:
    """Views are tables of numbers; covariates are in the table with most text, or with a name that says so."""
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "~$")))
    counts = [path for path in entries if is_cell_ranger(path) or (path.is_dir() and is_mtx(path))]
    unused = {
        path.name: "no table" for path in entries if path not in counts and not (_is_table(path) or _is_gmt(path))
    }
    texts: dict[Path, float] = {}
    for path in chain.from_iterable(_tables_in(path) for path in entries if path.is_file() and _is_table(path)):
        share = _share_of_text(files.first_rows(path, EXAMINED))
        if share is None:
            unused[path.name] = "it has no table of several rows and columns"
        else:
            texts[path] = share
    best = max(texts, key=lambda path: (_is_called(path), texts[path]), default=None)
    if best is None or not (_is_called(best) or texts[best] > 0) or not (len(texts) > 1 or counts):
        need = f"{str(folder)!r} needs tables of features and a table of covariates"
        remedy = "name the files: --view rna=PATH --covariates PATH"
        raise ValueError(message(need, got=listed(path.name for path in entries) or "an empty folder", remedy=remedy))
    views: dict[str, Path] = {}
    for path in (*texts, *counts):
        name = _name_of(path, [other for other in texts if file_of(other) == file_of(path)])
        if path == best:
            continue
        if texts.get(path, 0) > 0:
            unused[path.name] = "it has columns of text"
        elif name in views:
            unused[path.name] = f"view {name!r} is {views[name].name!r}"
        else:
            views[name] = path
    if not views:
        raise ValueError(message(f"{str(folder)!r} needs a table of features", got=listed(unused), remedy="add one"))
    return StudyFolder(views, best, next(filter(_is_gmt, entries), None), unused)


def _tables_in(path: Path) -> list[Path]:
    """The file, or every sheet of a workbook that has several."""
    sheets = sheets_in(path)
    return [path] if len(sheets) < 2 else [Path(f"{path}::{name}") for name in sheets]


def _name_of(path: Path, tables: Sequence[Path]) -> str:
    """The name of a view: that of the file, or of the sheet if the file has several tables."""
    sheet = sheet_of(path)
    if sheet is not None and len(tables) > 1:
        return sheet
    return re.split(r"\.(?=[A-Za-z])", file_of(path).name)[0]


def _is_table(path: Path) -> bool:
    return text_files.is_text(path) or files.is_parquet(path) or is_foreign(path)


def _is_gmt(path: Path) -> bool:
    return suffix_of(path) in GENE_SETS


def _is_called(path: Path) -> bool:
    return re.search(CALLED, path.name, flags=re.IGNORECASE) is not None


def _share_of_text(frame: pd.DataFrame) -> float | None:
    """The share of columns of text, besides one of names; None if there are too few cells for a table."""
    columns = [frame[name] for name in frame.columns]
    if columns and table_index.are_names(columns[0]):
        columns = columns[1:]
    if len(columns) < LEAST or len(frame) < LEAST:
        return None
    return sum(_is_text(column) for column in columns) / len(columns)


def _is_text(column: pd.Series) -> bool:
    """Whether most cells are no numbers; some marks of gaps among numbers are no text."""
    there = column.dropna()
    if pd.api.types.is_numeric_dtype(column.dtype) or there.empty:
        return False
    written = there.astype(str).str.replace(",", ".")  # decimal commas
    return bool(pd.to_numeric(written, errors="coerce").notna().mean() < 0.5)
