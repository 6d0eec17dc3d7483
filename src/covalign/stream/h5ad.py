"""Single-cell tables: AnnData, in memory or backed by a file, and ``.h5ad`` files by path."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pandas as pd

from covalign._core.extras import optional
from covalign._core.files import explaining, reading, unreadable_data
from covalign.stream.chunked import DAMAGED_STORE, HdfRows, from_backed_sparse
from covalign.stream.memory import FrameRows
from covalign.stream.source import Table, which_array

NEED = "an .h5ad file written by anndata"


def pulling(columns: bool = False) -> AbstractContextManager[Any]:
    """Whether a MuData copies columns from its modalities when it is updated; from mudata 0.4 on it never does."""
    mudata = optional("mudata", "scverse")
    if hasattr(mudata, "set_options"):
        options: AbstractContextManager[Any] = mudata.set_options(pull_on_update=columns)
        return options
    return nullcontext()


def element(data: Any, key: str | None, where: str) -> tuple[Any, str, dict[str, Any]]:
    """X of an AnnData, or its ``key``: ``"layers/counts"``, ``"obsm/X_pca"`` or just ``"X_pca"``.

    Returns the table, what messages call it, and the names of its rows and columns.
    """
    part, name = _split(key)
    index, names = {"index": data.obs_names}, {"names": data.var_names}
    if part == "X" and data.X is not None:
        return data.X, where, index | names
    if part in ("obsm", "layers") and name in getattr(data, part):
        known = index | names if part == "layers" else index
        return getattr(data, part)[name], f"{where}.{part}[{name!r}]", known
    have = ["X"] if data.X is not None else []
    raise which_array(where, key, [*have, *(f"layers/{k}" for k in data.layers), *(f"obsm/{k}" for k in data.obsm)])


def from_h5ad(path: Path, key: str | None, **options: Any) -> Table:
    """Rows of an array of an ``.h5ad`` file; nothing else of the file is loaded."""
    h5py, anndata_io = optional("h5py", "scverse"), optional("anndata.io", "scverse")
    part, name = _split(key)
    at = part if name is None else f"{part}/{name}"
    with reading(path, NEED):
        file = h5py.File(path, "r")
        node = file.get(at)
        encoding = None if node is None else node.attrs.get("encoding-type")
        have = [f"{p}/{k}" for p in ("layers", "obsm") if p in file for k in file[p]]
        have = ["X", *have] if "X" in file else have
    if not isinstance(node, h5py.Dataset | h5py.Group):
        raise which_array(path, key, have)
    where = str(path) if at == "X" else f"{path}[{at}]"
    with explaining(path, NEED, DAMAGED_STORE):
        if part in ("X", "layers") and "var" in file:
            options.setdefault("names", _labels(file["var"]))
        if encoding == "dataframe":
            return FrameRows(anndata_io.read_elem(node), where, **options)
        if "obs" in file:  # read on demand, because the names can be large
            options["index"] = lambda: pd.Index(_labels(file["obs"]))
        if isinstance(node, h5py.Dataset):
            return HdfRows(node, where, **options)
        if encoding in ("csr_matrix", "csc_matrix"):
            return from_backed_sparse(anndata_io.sparse_dataset(node), where, **options)
    raise unreadable_data(path, NEED, f"{at} is {encoding or 'of an unknown kind'}")


def obs_of(data: Any) -> pd.DataFrame:
    """The table ``obs`` of an AnnData or an ``.h5ad`` file."""
    if hasattr(data, "obs"):
        return data.obs  # type: ignore[no-any-return]
    h5py, anndata_io = optional("h5py", "scverse"), optional("anndata.io", "scverse")
    with reading(data, NEED), h5py.File(data, "r") as file:
        return anndata_io.read_elem(file["obs"])  # type: ignore[no-any-return]


def _split(key: str | None) -> tuple[str, str | None]:
    """(group, name): a bare name that is not X is looked for in obsm, where embeddings are."""
    if key is None or key == "X":
        return "X", None
    group, slash, name = key.partition("/")
    return (group, name) if slash else ("obsm", key)


def _labels(frame: Any) -> Any:
    """The index of a frame in an ``.h5ad``."""
    with reading(frame.file.filename, NEED):
        labels = frame[frame.attrs["_index"]]
        return labels.asstr()[:] if hasattr(labels, "asstr") else optional("anndata.io", "scverse").read_elem(labels)
