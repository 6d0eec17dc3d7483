"""``open_rows``: the right adapter for the data of the user."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.files import check_readable
from covalign._core.messages import kind_of
from covalign._core.paths import is_zarr
from covalign._core.user_arrays import in_pandas
from covalign.stream.cell_ranger import from_cell_ranger, is_cell_ranger
from covalign.stream.chunked import HdfRows, from_backed_sparse, from_zarr, open_node
from covalign.stream.dask_rows import DaskArrayRows, DaskFrameRows
from covalign.stream.h5ad import element, from_h5ad
from covalign.stream.memory import ArrayRows, FrameRows, MappedRows, SparseRows, TorchRows
from covalign.stream.mtx import from_mtx, is_mtx
from covalign.stream.npy import from_npy, from_npz
from covalign.stream.parquet import ParquetRows
from covalign.stream.source import CHUNK_BYTES, Source, Table, is_source, no_key, packages_of, unknown_source


def open_rows(
    data: Any,
    columns: Sequence[Any] | None = None,
    *,
    key: str | None = None,
    name: str = "Z",
    chunk_rows: int | None = None,
    single: bool = False,
) -> Source:
    """The rows of ``data`` as a Source, read a chunk at a time and as often as needed.

    ``data`` is an array, DataFrame, sparse matrix, memmap, torch tensor, zarr array, dask array or DataFrame, AnnData,
    HDF5 dataset, or a path to ``.npy``, ``.npz``, ``.zarr``, ``.parquet`` (file or folder), ``.h5ad``, ``.mtx`` (file
    or folder of Cell Ranger, cells become rows) or ``.h5`` of Cell Ranger. ``columns`` chooses columns by name (by
    position where they have no names); ``key`` names the array within an ``.npz``, ``.zarr`` group, ``.h5ad`` or
    AnnData (``"obsm/X_pca"``), or the type of features in data of Cell Ranger (``"Gene Expression"``). ``chunk_rows``
    overrides the number of rows in a chunk. ``single`` lets data of one dimension be one column. ``name`` is what
    messages call the data.

    >>> import numpy as np
    >>> from covalign import open_rows
    >>> source = open_rows(np.arange(10.0).reshape(5, 2), chunk_rows=2)
    >>> source.shape, [len(chunk) for chunk in source.chunks()]
    ((5, 2), [2, 2, 1])
    """
    options: dict[str, Any] = {"columns": columns, "chunk_rows": chunk_rows, "single": single}
    if isinstance(data, str | os.PathLike):
        table = _from_path(Path(data), key, name, options)
        table.origin, table.key = Path(data), key
        return table
    if hasattr(data, "obs_names") and "anndata" in packages_of(data):
        data, name, known = element(data, key, name)
        options, key = options | known, None
    return from_object(data, name, key, **options)


def is_elsewhere(data: Any) -> bool:
    """Whether rows are read a chunk at a time, because they are not an array, frame or sparse matrix in memory.

    A small memmap counts as an array (parallel workers of scikit-learn receive such maps).
    """
    if isinstance(data, str | os.PathLike) or is_source(data):
        return True
    if isinstance(data, np.ndarray):
        return isinstance(data, np.memmap) and data.ndim == 2 and data.nbytes > CHUNK_BYTES
    packages = packages_of(data)
    return not {"anndata", "zarr", "h5py"}.isdisjoint(packages) or ("torch" in packages and hasattr(data, "detach"))


def is_dask(data: Any) -> bool:
    """A dask array, DataFrame or Series; bags and delayed values are no tables."""
    return "dask" in packages_of(data) and (hasattr(type(data), "chunks") or hasattr(type(data), "dtypes"))


def _from_path(path: Path, key: str | None, name: str, options: dict[str, Any]) -> Table:
    suffix = path.suffix.lower()
    check_readable(path, f"a file or folder for {name}")
    if suffix == ".zarr" or is_zarr(path):
        return from_zarr(path, key, **options)
    if suffix == ".npz":
        return from_npz(path, key, **options)
    if is_cell_ranger(path):
        return from_cell_ranger(path, key, **options)
    if suffix in (".h5ad", ".h5", ".hdf5"):
        return from_h5ad(path, key, **options)
    if is_mtx(path):
        return from_mtx(path, key, **options)
    if key is not None:
        raise no_key(str(path), key)
    if suffix == ".npy":
        return from_npy(path, **options)
    if suffix in (".parquet", ".pq") or path.is_dir():
        return ParquetRows(path, **options)
    raise unknown_source(name, f"the path {str(path)!r}")


def from_object(data: Any, name: str, key: str | None = None, **options: Any) -> Table:
    """The rows of anything but a path or an AnnData; ``key`` names an array of a zarr group."""
    packages = packages_of(data)
    if "zarr" in packages:
        return open_node(data, key, name, **options)
    if key is not None:
        raise no_key(name, key)
    if isinstance(data, np.memmap):
        return MappedRows(data, name, **options)
    if isinstance(data, np.ndarray):
        return ArrayRows(data, name, **options)
    if sparse.issparse(data):
        return SparseRows(data, name, **options)
    if "torch" in packages:
        return TorchRows(data, name, **options)
    if "dask" in packages:
        data = data.to_frame() if hasattr(data, "to_frame") and not hasattr(data, "columns") else data  # a Series
        if hasattr(data, "columns"):
            return DaskFrameRows(data, name, **options)
        if hasattr(data, "chunks"):
            return DaskArrayRows(data, name, **options)
    if "h5py" in packages and hasattr(data, "chunks"):
        return HdfRows(data, name, **options)
    if "anndata" in packages and hasattr(data, "to_memory"):  # a sparse matrix in a file
        return from_backed_sparse(data, name, **options)
    data = in_pandas(data, name)  # polars, pyarrow, xarray: in memory already
    if isinstance(data, pd.DataFrame):
        return FrameRows(data, name, **options)
    if isinstance(data, list | tuple) or hasattr(data, "__array__"):
        return ArrayRows(_as_array(data, name), name, **options)
    raise unknown_source(name, kind_of(data))


def _as_array(data: Any, name: str) -> Any:
    try:
        return np.asarray(data)
    except MemoryError:
        raise
    except Exception:  # ragged lists, and what a class of the user raises
        raise unknown_source(name, kind_of(data)) from None
