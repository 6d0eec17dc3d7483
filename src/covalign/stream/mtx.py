"""Matrix Market files and folders of Cell Ranger: a sparse matrix, with names of cells and features in files beside it.

Cell Ranger has features as rows (``matrix.mtx.gz``, ``barcodes.tsv.gz``, ``features.tsv.gz``); other programs write
cells as rows. The lengths of the name files say which; a matrix without them stays as it is written.
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import io, sparse

from covalign._core.files import check_claim, reading
from covalign._core.messages import listed, message
from covalign._core.paths import suffix_of
from covalign.stream.memory import SparseRows
from covalign.stream.source import no_key, which_array

NEED = "a matrix in the Matrix Market format (.mtx, .mtx.gz)"
CELLS, FEATURES = ("barcodes", "cells"), ("features", "genes")


class Named(NamedTuple):
    """The names in a file, and the type of each, where the file has types (Gene Expression, Antibody Capture)."""

    file: Path
    names: list[str]
    kinds: list[str]


def is_mtx(path: Path) -> bool:
    """A Matrix Market file, or a folder with such files."""
    return bool(matrices_in(path)) if path.is_dir() else suffix_of(path) == ".mtx"


def matrices_in(folder: Path) -> list[Path]:
    """The Matrix Market files in a folder."""
    return sorted(path for path in folder.iterdir() if suffix_of(path) == ".mtx" and path.is_file())


def from_mtx(path: Path, key: str | None, **options: Any) -> SparseRows:
    """Cells as rows and features as columns, in memory and sparse; ``key`` chooses the features of one type."""
    file = _only_matrix(path) if path.is_dir() else path
    cells, features = _beside(file, CELLS), _beside(file, FEATURES)
    matrix = _upright(_read(file), cells, features, file)
    chosen = of_type([] if features is None else features.kinds, key, path)
    if chosen is not None:
        matrix = matrix[:, chosen]
    names = None if features is None else np.array(features.names, dtype=object)
    if names is not None:
        options["names"] = names if chosen is None else names[chosen]
    if cells is not None:
        options["index"] = pd.Index(cells.names, dtype=object)
    return SparseRows(matrix, str(path), **options)


def _only_matrix(folder: Path) -> Path:
    found = matrices_in(folder)
    if len(found) != 1:
        problem, got = f"{str(folder)!r} needs one matrix (.mtx or .mtx.gz)", listed(file.name for file in found)
        raise ValueError(message(problem, got=got, remedy="give the path of one of these files"))
    return found[0]


def _read(file: Path) -> sparse.csr_matrix:
    """The matrix as it is written; a header that claims far more than the file can hold is refused first."""
    with reading(file, NEED):
        rows, columns, entries, *_ = io.mminfo(str(file))
        check_claim(file, 8 * (rows + columns) + 16 * entries, file.stat().st_size)
        return sparse.csr_matrix(io.mmread(str(file)))


def _beside(matrix: Path, stems: Sequence[str]) -> Named | None:
    """The names in the file beside the matrix: ``P_matrix.mtx`` has ``P_barcodes.tsv``, or there is one for all."""
    stem = matrix.name.lower().partition(".mtx")[0]
    before = matrix.name[: len(stem.removesuffix("matrix"))]
    starts = dict.fromkeys((before, f"{before}_", f"{before}.", ""))
    every = (
        matrix.with_name(f"{start}{one}{end}{packed}")
        for start in starts
        for one in stems
        for end in (".tsv", ".txt", ".csv")
        for packed in (".gz", "")
    )
    file = next((file for file in every if file.is_file()), None)
    return None if file is None else _names_in(file)


def _names_in(file: Path) -> Named:
    """Names of cells are in the first column; of features, the second has symbols, and the third types.

    A symbol of several features is no name: these features are called by their identifiers, in the first column.
    """
    opened: Any = gzip.open if suffix_of(file) != file.suffix.lower() else open
    with reading(file, "a text file with a name in every line"), opened(file, "rt", encoding="utf-8-sig") as lines:
        rows = [row for row in csv.reader(lines, delimiter="," if suffix_of(file) == ".csv" else "\t") if row]
    names = feature_names([row[0] for row in rows], [row[1] if len(row) > 1 else "" for row in rows])
    return Named(file, names, [row[2] if len(row) > 2 else "" for row in rows])


def feature_names(ids: Sequence[str], symbols: Sequence[str]) -> list[str]:
    """The symbol of every feature; its identifier where it has no symbol, or one that another feature has, too."""
    times = Counter(symbols)
    return [symbol if symbol and times[symbol] == 1 else one for one, symbol in zip(ids, symbols, strict=True)]


def _upright(matrix: Any, cells: Named | None, features: Named | None, file: Path) -> Any:
    """Cells as rows. A square matrix is turned, as Cell Ranger writes it."""
    beside = [named for named in (cells, features) if named is not None]
    lengths = [None if named is None else len(named.names) for named in (features, cells)]
    if not beside:
        return matrix
    for turned in (True, False):
        shape = matrix.shape if turned else matrix.shape[::-1]
        if all(length in (None, n) for length, n in zip(lengths, shape, strict=True)):
            return matrix.T.tocsr() if turned else matrix
    got = ", ".join(f"{len(named.names)} names in {named.file.name!r}" for named in beside)
    problem = f"{str(file)!r} has {matrix.shape[0]} x {matrix.shape[1]} numbers and needs as many names"
    raise ValueError(message(problem, got=got, remedy="put the files of one experiment into one folder"))


def of_type(kinds: Sequence[str], key: str | None, path: Path) -> NDArray[np.intp] | None:
    """Positions of the features of type ``key``; None for all, where there is only one type and no key."""
    known = [kind for kind in dict.fromkeys(kinds) if kind]
    if key is None and len(known) < 2:
        return None
    if not known:
        raise no_key(str(path), key)
    if key not in known:
        raise which_array(path, key, known)
    return np.flatnonzero([kind == key for kind in kinds])
