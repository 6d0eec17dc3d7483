"""The sum of the moments of several sets of rows, and its root."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from covalign._core.linalg import (
    Array,
    range_root,
)
from covalign.moments.block_sizes import is_wide
from covalign.stream.reduction import BLOCK_BYTES

if TYPE_CHECKING:
    from covalign.moments.moments import Moments


def merge(parts: Iterable[Moments | None]) -> Moments | None:
    """The sum of all parts that are not None; None if there is none."""
    there = [part for part in parts if part is not None]
    if len(there) < 2:
        return there[0] if there else None
    if len(there) < 3 or (len(there) < 6 and len(there[0].mean_z) < 256):  # one product pays for many or large matrices
        whole = sum(there[1:], there[0])
    else:
        (whole,) = merge_groups(there, [dict.fromkeys(range(len(there)), range(len(there[0].mean_y)))])
    known = is_wide(whole.n or 0, len(whole.mean_z)) and all(
        part.n == 1 or part.known_root is not None for part in there
    )
    return whole.with_root(joined_root(there)) if known else whole


def joined_root(parts: Sequence[Moments]) -> Array:
    """The root of a sum: sqrt(w_i) times the roots of its parts, and the distances of their means.

    The distances, sqrt(w_i) d_i, have one dimension less than there are parts: they are orthogonal to sqrt(w).
    """
    n = np.array([part.n or 0 for part in parts], dtype=np.float64)
    w = np.sqrt(n / n.sum())[:, None]
    between = w * np.array([part.mean_z - parts[0].mean_z for part in parts])
    turn = np.linalg.qr(w, mode="complete")[0][:, 1:]
    roots = [
        np.empty((len(part.mean_z), 0)) if part.n == 1 else _root(part) * share
        for part, share in zip(parts, w, strict=True)
    ]
    return np.hstack([*roots, between.T @ turn])


def _root(part: Moments) -> Array:
    return range_root(part.cov_z) if part.root is None else part.root


def merge_groups(parts: Sequence[Moments], groups: Sequence[Mapping[int, Sequence[int]]]) -> list[Moments]:
    """For each group, {i: covariates of part i, ...}, the sum of its parts:  cov = sum_i w_i (cov_i + d_i d_i').

    w_i = n_i / n, and d_i is the distance of the i-th mean from that of all. The K x K sums of all groups are one
    product with the table of weights, some rows of the matrices at a time.
    """
    made, k = [], len(parts[0].mean_z)
    W = np.zeros((len(groups), len(parts)))
    for g, group in enumerate(groups):
        few = [parts[i].select(columns) for i, columns in group.items()]
        W[g, list(group)] = [m.n or 0 for m in few]
        made.append(_merged_but_for_cov_z(few))
    W /= W.sum(axis=1, keepdims=True)
    step = max(1, BLOCK_BYTES // (8 * max(k, 1) * len(parts)))
    for i in range(0, k, step):
        rows = np.stack([part.cov_z[i : i + step] for part in parts]).reshape(len(parts), -1)
        for m, within in zip(made, W @ rows, strict=True):
            m.cov_z[i : i + step] += within.reshape(-1, k)
    return made


def _merged_but_for_cov_z(parts: Sequence[Moments]) -> Moments:
    """The sum of the parts, where cov_z is only what lies between them."""
    first, n = parts[0], sum(part.n or 0 for part in parts)
    w = np.array([part.n or 0 for part in parts]) / n
    from_z, from_y = (np.array([getattr(m, of) - getattr(first, of) for m in parts]) for of in ("mean_z", "mean_y"))
    to_z, to_y, root = w @ from_z, w @ from_y, np.sqrt(w)[:, None]
    d_z, d_y = root * (from_z - to_z), root * (from_y - to_y)
    return replace(
        first,
        n=n,
        mean_z=first.mean_z + to_z,
        mean_y=first.mean_y + to_y,
        cov_z=d_z.T @ d_z,
        cov_zy=_weighted_sum(w, [m.cov_zy for m in parts], d_z.T @ d_y),
        cov_y=_weighted_sum(w, [m.cov_y for m in parts], d_y.T @ d_y),
    )


def _weighted_sum(w: Array, matrices: Sequence[Array], into: Array) -> Array:
    """into + sum_i w_i matrices_i, in place."""
    for share, matrix in zip(w.tolist(), matrices, strict=True):
        into += share * matrix
    return into
