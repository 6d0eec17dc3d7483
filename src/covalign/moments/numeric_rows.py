"""Z and Y of a call as numeric rows of the same length, and the names of the covariates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from covalign._core.data_errors import lengths_differ, not_numeric, not_two_dimensional
from covalign._core.messages import message, shown, text_of
from covalign._core.user_arrays import check_names, in_pandas, plain, shape_of
from covalign.stream import is_source


def as_rows(Z: Any, Y: Any) -> tuple[Any, Any]:
    """Z and Y as two-dimensional numeric arrays (Z possibly sparse, by rows, or a Source) of the same length."""
    Z, Y = Z if is_source(Z) else _numeric("Z", Z), _numeric("Y", Y)
    if sparse.issparse(Y):
        Y = Y.toarray()
    if Y.ndim == 1:
        Y = Y[:, None]
    for name, M in (("Z", Z), ("Y", Y)):
        if len(M.shape) != 2:
            raise not_two_dimensional(name, M.shape)
    if Z.shape[0] != Y.shape[0]:
        raise lengths_differ(Z.shape[0], Y.shape[0])
    return Z, Y


def covariate_names(Y: Any) -> tuple[str, ...]:
    """Column names where Y has them, else y0, y1, ..."""
    if hasattr(Y, "columns"):
        return tuple(map(str, Y.columns))
    if hasattr(Y, "to_frame") and getattr(Y, "name", None) is not None:
        return (str(Y.name),)
    shape = shape_of(Y, "Y")
    return default_names(shape[1] if len(shape) == 2 else 1)


def _numeric(name: str, M: Any) -> Any:
    M = plain(M, name)
    if sparse.issparse(M):
        return M.tocsr()
    M = np.asarray(in_pandas(M, name))
    if M.dtype.kind in "fiub":
        return M
    if M.dtype.kind != "O":
        raise not_numeric(name, M.dtype)
    try:
        return M.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise not_numeric(name, M.dtype) from None


def default_names(p: int) -> tuple[str, ...]:
    return tuple(f"y{i}" for i in range(p))


def distinct_names(names: Any, p: int) -> tuple[str, ...]:
    """Names of p covariates as text, each only once."""
    several = isinstance(names, Iterable) and not isinstance(names, str | bytes | Mapping)
    made = tuple(map(text_of, names)) if several and getattr(names, "ndim", 1) == 1 else ()
    if not several or len(made) != p:
        got = len(made) if several else shown(names)
        raise ValueError(
            message(f"{p} covariates need a list of {p} names", got=got, remedy="give each of them a name")
        )
    check_names("covariate_names", made)
    return made
