"""Single-cell tables: AnnData, in memory or backed by a file, and ``.h5ad`` files by path."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.extras import optional
from covalign._core.files import unreadable_data
from covalign._core.messages import message
from covalign.exceptions import ColumnLayoutWarning
from covalign.stream.chunked import HdfRows, ZarrRows
from covalign.stream.memory import ArrayRows, FrameRows, MappedRows, SparseRows
from covalign.stream.source import Table, packages_of, which_array

NEED = "an .h5ad file written by anndata"


def pulling(columns: bool = False) -> AbstractContextManager[Any]:
    """Whether a MuData copies columns from its modalities when it is updated; from mudata 0.4 on it never does."""
    mudata = optional("mudata", "scverse")
    if hasattr(mudata, "set_options"):
        options: AbstractContextManager[Any] = mudata.set_options(pull_on_update=columns)
        return options
    return nullcontext()


class BackedSparseRows(Table):
    """A sparse matrix in a file, by rows: a chunk of it is read at a time."""

    def __init__(self, matrix: Any, where: str, **options: Any) -> None:
        self._matrix = matrix
        self._file = getattr(matrix.group, "file", None)  # of a group of HDF5
        if self._file is not None:
            self.origin, self.layout = self._file.filename, matrix.group.name
        super().__init__(where, matrix.shape, matrix.dtype, **options)

    def flush(self) -> None:
        """Write changes to the file; HDF5 keeps them in memory until then."""
        if self._file is not None:
            self._file.flush()

    def _read(self, start: int, stop: int) -> Any:
        return self._matrix[start:stop]


class _IndexOnDemand:
    """Adds the row names of an ``.h5ad`` file to a table; they are read on demand, because they can be large."""

    _obs: Any = None

    @property
    def index(self) -> Any:
        """Names of the rows."""
        return None if self._obs is None else pd.Index(_labels(self._obs))


class H5adDense(_IndexOnDemand, HdfRows):
    """A dense array of an ``.h5ad`` file."""


class H5adSparse(_IndexOnDemand, BackedSparseRows):
    """A sparse array of an ``.h5ad`` file."""


def from_anndata(data: Any, key: str | None, where: str, **options: Any) -> Table:
    """Rows of ``X``, or of ``key``: ``"layers/counts"``, ``"obsm/X_pca"`` or just ``"X_pca"``."""
    part, name = _split(key)
    have = [
        *(["X"] if data.X is not None else []),
        *(f"layers/{k}" for k in data.layers),
        *(f"obsm/{k}" for k in data.obsm),
    ]
    options["index"] = data.obs_names
    if part == "X" and data.X is not None:
        return from_element(data.X, where, names=data.var_names, **options)
    if part in ("obsm", "layers") and name in getattr(data, part):
        table = getattr(data, part)[name]
        named = {"names": data.var_names} if part == "layers" else {}
        return from_element(table, f"{where}.{part}[{name!r}]", **named, **options)
    raise which_array(where, key, have)


def from_element(table: Any, where: str, **options: Any) -> Table:
    """Rows of an element of AnnData: an array, a sparse matrix or a frame, in memory or in a file."""
    if isinstance(table, pd.DataFrame):
        options.pop("names", None)
        return FrameRows(table, where, **options)
    if sparse.issparse(table):
        return SparseRows(table, where, **options)
    if isinstance(table, np.memmap):
        return MappedRows(table, where, **options)
    if hasattr(table, "to_memory") and hasattr(table, "format"):
        return from_backed_sparse(table, where, BackedSparseRows, **options)
    packages = packages_of(table)
    if "h5py" in packages:
        return HdfRows(table, where, **options)
    if "zarr" in packages:
        return ZarrRows(table, where, **options)
    if "dask" in packages:
        from covalign.stream.dask_rows import DaskArrayRows

        return DaskArrayRows(table, where, **options)
    return ArrayRows(table, where, **options)


def from_backed_sparse(matrix: Any, where: str, kind: type[BackedSparseRows], **options: Any) -> Table:
    """Rows of a sparse matrix in a file: chunk by chunk if it is stored by rows, else loaded once, with a warning."""
    if matrix.format == "csr":
        return kind(matrix, where, **options)
    problem = f"{where} is sparse and stored by columns, so its rows cannot be read a chunk at a time"
    remedy = "All nonzero values are loaded at once. Store the matrix by rows (csr) to keep memory small"
    warnings.warn(message(problem, remedy=remedy), ColumnLayoutWarning, stacklevel=2)
    return SparseRows(matrix.to_memory(), where, **options)


def from_h5ad(path: Path, key: str | None, **options: Any) -> Table:
    """Rows of an array of an ``.h5ad`` file; nothing else of the file is loaded."""
    h5py, anndata_io = optional("h5py", "scverse"), optional("anndata.io", "scverse")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise unreadable_data(path, NEED, error) from error
    part, name = _split(key)
    at = part if name is None else f"{part}/{name}"
    if at not in file or not isinstance(file[at], h5py.Dataset | h5py.Group):
        have = [
            at for at in ("X", *(f"{p}/{k}" for p in ("layers", "obsm") if p in file for k in file[p])) if at in file
        ]
        raise which_array(path, key, have)
    where = str(path) if at == "X" else f"{path}[{at}]"
    if part in ("X", "layers") and "var" in file:
        options.setdefault("names", _labels(file["var"]))
    encoding = file[at].attrs.get("encoding-type")
    if isinstance(file[at], h5py.Dataset):
        table: Table = H5adDense(file[at], where, **options)
    elif encoding in ("csr_matrix", "csc_matrix"):
        table = from_backed_sparse(anndata_io.sparse_dataset(file[at]), where, H5adSparse, **options)
    elif encoding == "dataframe":
        return from_element(anndata_io.read_elem(file[at]), where, **options)
    else:
        raise unreadable_data(path, NEED, f"{at} is {encoding or 'of an unknown kind'}")
    if isinstance(table, _IndexOnDemand) and "obs" in file:
        table._obs = file["obs"]
    return table


def obs_of(data: Any) -> pd.DataFrame:
    """The table ``obs`` of an AnnData or an ``.h5ad`` file."""
    if hasattr(data, "obs"):
        return data.obs  # type: ignore[no-any-return]
    h5py, anndata_io = optional("h5py", "scverse"), optional("anndata.io", "scverse")
    try:
        with h5py.File(data, "r") as file:
            return anndata_io.read_elem(file["obs"])  # type: ignore[no-any-return]
    except (OSError, KeyError) as error:
        raise unreadable_data(data, NEED, error) from error


def _split(key: str | None) -> tuple[str, str | None]:
    """(group, name): a bare name that is not X is looked for in obsm, where embeddings are."""
    if key is None or key == "X":
        return "X", None
    group, slash, name = key.partition("/")
    return (group, name) if slash else ("obsm", key)


def _labels(frame: Any) -> Any:
    """The index of a frame in an ``.h5ad``."""
    labels = frame[frame.attrs["_index"]]
    return labels.asstr()[:] if hasattr(labels, "asstr") else optional("anndata.io", "scverse").read_elem(labels)
