"""HDF5 files of Cell Ranger (``filtered_feature_bc_matrix.h5``): a sparse matrix with names of cells and features.

Version 3 has the group ``matrix`` with ``features/id``, ``features/name`` and ``features/feature_type``. Version 2 has
a group for every genome, with ``genes`` and ``gene_names``. In both a column of the matrix is a cell.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.extras import optional
from covalign._core.files import check_claim, reading
from covalign.stream.memory import SparseRows
from covalign.stream.mtx import feature_names, of_type
from covalign.stream.source import which_array

NEED = "counts of Cell Ranger (.h5)"
SUFFIXES = (".h5", ".hdf5")
NUMBERS = ("data", "indices", "indptr", "shape")
LATER = "matrix"  # the group of version 3


def is_cell_ranger(path: Path) -> bool:
    """Whether an HDF5 file has the groups of Cell Ranger, as far as their names tell."""
    if path.suffix.lower() not in SUFFIXES or not path.is_file() or find_spec("h5py") is None:
        return False
    try:
        with optional("h5py", "scverse").File(path, "r") as file:
            return bool(_matrices(file))
    except Exception:  # damaged bytes can raise any error; whoever reads the file says what is wrong with it
        return False


def from_cell_ranger(path: Path, key: str | None, **options: Any) -> SparseRows:
    """Cells as rows and features as columns, in memory and sparse.

    ``key`` is a type of features (version 3), or a genome (version 2), where the file has several.
    """
    with reading(path, NEED), optional("h5py", "scverse").File(path, "r") as file:
        groups = _matrices(file)
        later = LATER in groups
        name = LATER if later else key if key is not None or len(groups) > 1 else groups[0]
        found = _read(path, file[name], later) if name in groups else None
    if found is None:
        raise which_array(path, key, groups)
    matrix, cells, names, kinds = found
    chosen = of_type(kinds, key, path) if later else None
    if chosen is not None:
        matrix, names = matrix[:, chosen], names[chosen]
    return SparseRows(matrix, str(path), **options, names=names, index=pd.Index(cells, dtype=object))


def _matrices(file: Any) -> list[str]:
    """The groups that hold a sparse matrix and names of cells."""
    return [name for name in file if all(part in file[name] for part in (*NUMBERS, "barcodes"))]


def _read(path: Path, group: Any, later: bool) -> tuple[sparse.csr_matrix, list[str], Any, list[str]]:
    """The matrix, names of cells and features, and types of features; none where the file has no types."""
    parts = {"ids": "features/id", "symbols": "features/name"} if later else {"ids": "genes", "symbols": "gene_names"}
    sets = [group[name] for name in (*NUMBERS, "barcodes", *parts.values())]
    check_claim(path, sum(int(one.size) * one.dtype.itemsize for one in sets), path.stat().st_size)
    data, indices, indptr, shape = (np.asarray(group[name]) for name in NUMBERS)
    n_features, n_cells = (int(n) for n in shape)
    matrix = sparse.csr_matrix((data, indices.astype(np.int64), indptr.astype(np.int64)), shape=(n_cells, n_features))
    matrix.check_format(full_check=True)
    cells, ids, symbols = (_texts(group[name]) for name in ("barcodes", *parts.values()))
    if len(cells) != n_cells or len(ids) != n_features or len(symbols) != n_features:
        raise ValueError(f"it has {n_cells} cells and {n_features} features, and another number of names")
    kinds = _texts(group["features/feature_type"]) if later and "feature_type" in group["features"] else []
    return matrix, cells, np.array(feature_names(ids, symbols), dtype=object), kinds


def _texts(dataset: Any) -> list[str]:
    return [text.decode() if isinstance(text, bytes) else str(text) for text in np.asarray(dataset).tolist()]
