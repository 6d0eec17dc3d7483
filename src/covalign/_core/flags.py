"""Patterns of gaps: the distinct rows of a table of flags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def distinct_rows(flags: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """The distinct rows in order of first appearance, and which of them each row is.

    >>> distinct, group = distinct_rows(np.array([[True, False], [True, True], [True, False]]))
    >>> distinct.tolist(), group.tolist()
    ([[True, False], [True, True]], [0, 1, 0])
    """
    if len(flags) and (flags == flags[0]).all():
        return flags[:1], np.zeros(len(flags), dtype=np.intp)
    packed = np.ascontiguousarray(np.packbits(flags, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()  # rows are compared by their bytes
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return flags[np.sort(first)], rank[group.reshape(-1)]


def rows_by_pattern(flags: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
    """Each distinct row in order of first appearance, and the positions where it occurs."""
    if not len(flags):
        return []
    distinct, group = distinct_rows(flags)
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(distinct)))
    return list(zip(distinct, np.split(order, ends[:-1]), strict=True))
