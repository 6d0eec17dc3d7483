"""A folder that nobody prepared: which files are views, which has the covariates, which has gene sets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from covalign._core.messages import listed, message
from covalign._core.paths import is_zarr, suffix_of
from covalign.stream.cell_ranger import is_cell_ranger
from covalign.stream.mtx import is_mtx
from covalign.tables import mofa_models, table_index, text_files
from covalign.tables import table_files as files
from covalign.tables.foreign_tables import is_foreign

CALLED = r"clini|pheno|meta|sample|patient|covari|annot|design|donor|pdata|\bobs\b"  # in names of tables of covariates
GENE_SETS = (".gmt",)
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
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    counts = [path for path in entries if is_cell_ranger(path) or (path.is_dir() and is_mtx(path))]
    tables = [path for path in entries if path.is_file() and _is_table(path)]
    texts = {path: _share_of_text(files.first_rows(path, EXAMINED)) for path in tables}
    best = max(tables, key=lambda path: (_is_called(path), texts[path]), default=None)
    if best is None or not (_is_called(best) or texts[best] > 0) or not (len(tables) > 1 or counts):
        need = f"{str(folder)!r} needs tables of features and a table of covariates"
        remedy = "name the files: --view rna=PATH --covariates PATH"
        raise ValueError(message(need, got=listed(path.name for path in entries) or "an empty folder", remedy=remedy))
    views: dict[str, Path] = {}
    unused = {path.name: "no table" for path in entries if path not in (*counts, *tables) and not _is_gmt(path)}
    for path in (*tables, *counts):
        name = re.split(r"\.(?=[A-Za-z])", path.name)[0]
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


def _is_table(path: Path) -> bool:
    return text_files.is_text(path) or files.is_parquet(path) or is_foreign(path)


def _is_gmt(path: Path) -> bool:
    return suffix_of(path) in GENE_SETS


def _is_called(path: Path) -> bool:
    return re.search(CALLED, path.name, flags=re.IGNORECASE) is not None


def _share_of_text(frame: pd.DataFrame) -> float:
    """The share of columns of text, besides one of names."""
    columns = [frame[name] for name in frame.columns]
    if columns and table_index.are_names(columns[0]):
        columns = columns[1:]
    text = [not pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any() for column in columns]
    return sum(text) / max(len(text), 1)
