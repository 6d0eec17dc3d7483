"""The result and its file: arrays of numbers and text without pickles, which ``covalign.datasets.embedding`` reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from covalign._core.files import data_not_found, path_to_read, replacing, unreadable_data
from covalign._core.messages import message
from covalign._core.paths import is_file
from covalign.tables.covariates import encode
from covalign.tables.table_files import npz_arrays

COLUMN = "column_"
NEED = "an .npz written by covalign embed"


@dataclass(frozen=True, eq=False)
class Embedded:
    """Rows ``Z`` (float32), their ``labels`` (indexed by file, or by row for texts), and the items that failed.

    >>> import numpy as np, pandas as pd
    >>> from covalign.bridges.embed import Embedded
    >>> Embedded(np.zeros((2, 512), np.float32), pd.DataFrame({"name": ["cat", "dog"]})).failed
    {}
    """

    Z: NDArray[np.float32]
    labels: pd.DataFrame
    failed: dict[str, str] = field(default_factory=dict)
    model: str = ""
    revision: str = ""
    pooling: str = ""
    computed: int = 0  # rows that this call computed; an earlier call had computed the others


def covariate_arrays(labels: pd.DataFrame) -> dict[str, NDArray[Any]]:
    """The arrays of covariates for ``datasets.embedding``: ``labels`` (and ``labelled``), or ``Y`` and ``names``.

    The class is the column ``name``, or the only column if that is text; otherwise all columns are encoded.
    """
    columns = [column for column in labels.columns if column not in ("wnid", "labelled")]
    if not columns:
        return {}
    texts = [column for column in columns if not types.is_numeric_dtype(labels[column])]
    if columns == ["name"] or (len(columns) == 1 and texts):
        names = labels[columns[0]].fillna("").astype(str).to_numpy(dtype=str)
        shown = (labels["labelled"].to_numpy() if "labelled" in labels else np.ones(len(names))) * (names != "")
        return {"labels": names} if shown.all() else {"labels": names, "labelled": shown.astype(np.int8)}
    for column in texts:
        if len(labels) > 2 and labels[column].nunique() == len(labels):
            problem = f"the column {column!r} has a different text in every row, so it cannot be a label"
            raise ValueError(message(problem, remedy="Name the columns to use with label_columns"))
    # Rows are matched by position, since names of files need not be distinct.
    Y = encode(labels[columns].reset_index(drop=True), drop_first=False, missing="pairs")
    return {"Y": Y.to_numpy(np.float64), "names": np.array(Y.columns, dtype=str)}


def write(path: Path, result: Embedded, covariates: dict[str, NDArray[Any]], key: str) -> None:
    """Write the result as ``.npy`` (the numbers only) or ``.npz``."""
    with replacing(path) as file:
        if path.suffix == ".npy":
            np.save(file, result.Z, allow_pickle=False)
        else:
            np.savez(file, **_arrays(result, covariates, key))


def _arrays(result: Embedded, covariates: dict[str, NDArray[Any]], key: str) -> dict[str, Any]:
    labels = result.labels
    arrays = {"Z": result.Z, **covariates, "files": _plain(labels.index.to_series())}
    about = {"model": result.model, "revision": result.revision, "pooling": result.pooling, "key": key}
    about["index"] = str(labels.index.name)
    failed = {"failed": np.array(list(result.failed), str), "reasons": np.array(list(result.failed.values()), str)}
    columns = {f"{COLUMN}{name}": _plain(labels[name]) for name in labels}
    return {**arrays, **{name: np.array(text) for name, text in about.items()}, **failed, **columns}


def _plain(column: pd.Series[Any]) -> NDArray[Any]:
    """Numbers unchanged, anything else as text."""
    if types.is_numeric_dtype(column) and isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    return column.astype(object).where(column.notna(), "").astype(str).to_numpy(dtype=str)


def read(path: Any) -> Embedded:
    """What ``images`` or ``texts`` wrote to an ``.npz``.

    >>> import covalign as ca
    >>> ca.embed.read("z.npz").model  # doctest: +SKIP
    """
    return _read(path_to_read(path, "embeddings"))[0]


def finished(path: Path, key: str) -> Embedded | None:
    """The result at ``path`` if it is complete and has the same inputs, model and labels."""
    try:
        result, its_key = _read(path)
    except ValueError:
        return None
    return result if its_key == key else None


def _read(path: Path) -> tuple[Embedded, str]:
    if not is_file(path):
        raise data_not_found(path, NEED)
    arrays = npz_arrays(path, NEED)
    try:
        about = {name: str(arrays[name]) for name in ("model", "revision", "pooling", "key", "index")}
        index = pd.Index(arrays["files"].astype(object), name=about["index"])
        columns = {name.removeprefix(COLUMN): array for name, array in arrays.items() if name.startswith(COLUMN)}
        failed = dict(zip(arrays["failed"].tolist(), arrays["reasons"].tolist(), strict=True))
        labels = pd.DataFrame(columns, index=index)
        result = Embedded(arrays["Z"], labels, failed, about["model"], about["revision"], about["pooling"])
    except (KeyError, ValueError) as error:
        raise unreadable_data(path, NEED, error) from error
    return result, about["key"]
