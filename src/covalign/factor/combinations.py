"""From sums for every combination of gaps to the compressed rows that the kernel with gaps needs."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.data_errors import features_all_missing
from covalign._core.linalg import Array
from covalign.factor.inference.patterns import Gapped, root_of
from covalign.factor.preparation import Measured, Scale
from covalign.factor.view_sums import Gathered


class Group(NamedTuple):
    """Samples with the same gaps: their number, and their observed cells or the mean and scatter of these."""

    flags: NDArray[np.bool_]  # which of [x y] they have
    n: int
    rows: Array | None
    mean: Array
    scatter: Array  # empty if there are rows


def groups(found: Gathered) -> list[Group]:
    """The complete rows, if there are any, and every combination of gaps."""
    made = []
    if found.complete is not None:
        m = found.complete
        n, cov = int(m.n or 0), np.block([[m.cov_z, m.cov_zy], [m.cov_zy.T, m.cov_y]])
        mean = np.concatenate([m.mean_z, m.mean_y])
        made.append(Group(np.ones(len(mean), dtype=bool), n, None, mean, n * cov))
    for combination in found.partial:
        sums = combination.moments()
        if sums is None:
            rows = np.vstack(combination.rows) if combination.width else np.empty((combination.n, 0))
            made.append(Group(combination.flags, combination.n, rows, rows.mean(axis=0), np.empty((0, 0))))
        else:
            made.append(Group(combination.flags, combination.n, None, sums.mean_z, combination.n * sums.cov_z))
    return made


def feature_moments(parts: list[Group], d: int) -> tuple[Array, Array, Array]:
    """Observed cells, mean and variance of every feature, over the groups that have it."""
    counts, total = np.zeros(d), np.zeros(d)
    for part in parts:
        x = part.flags[:d]
        counts[x] += part.n
        total[x] += part.n * part.mean[: x.sum()]
    mean, square = total / np.maximum(counts, 1), np.zeros(d)
    for part in parts:
        x = part.flags[:d]
        k = int(x.sum())
        if part.rows is None:
            square[x] += np.diag(part.scatter)[:k] + part.n * (part.mean[:k] - mean[x]) ** 2
        else:
            square[x] += np.sum((part.rows[:, :k] - mean[x]) ** 2, axis=0)
    return counts, mean, square / np.maximum(counts, 1)


def gapped(found: Gathered, names: dict[str, list[str]]) -> Measured:
    """Means, variances and engine; equal to those of ``preparation.gapped``, which needs rows."""
    parts, d = groups(found), sum(map(len, names.values()))
    counts, mean, variance = feature_moments(parts, d)
    refuse_unseen(names, counts)

    def engine(s: Scale) -> Gapped:
        centre, scale = np.concatenate([mean, s.mean_y]), np.concatenate([s.sd, s.sd_y])
        blocks = [compressed_rows(part, centre, scale) for part in parts]
        H, of = np.vstack(blocks), np.repeat(np.arange(len(parts)), [len(block) for block in blocks])
        flags = np.array([part.flags for part in parts])[of]
        H[:, :d][:, s.constant] = 0.0
        whole = Gapped(H[:, :d], flags[:, :d], H[:, d:-1], flags[:, d:], s.S_y, H[:, -1], np.zeros(0))
        group, of_row, _ = whole.samples
        sizes = np.zeros(len(of_row))
        sizes[group] = np.array([part.n for part in parts], dtype=np.float64)[of]
        return replace(whole, sizes=sizes)

    return Measured(mean, variance, engine)


def compressed_rows(part: Group, centre: Array, scale: Array) -> Array:
    """Rows [x y 1], standardised, 0 in gaps, whose products are those of the group's samples.

    H'H = [[S + n m m', n m], [n m', n]] for scatter S and mean m; its root has as many rows as H has columns.
    """
    seen = part.flags
    if part.rows is not None:
        H = np.zeros((part.n, len(seen) + 1))
        H[:, :-1][:, seen] = (part.rows - centre[seen]) / scale[seen]
        H[:, -1] = 1.0
        return H
    m = np.append((part.mean - centre[seen]) / scale[seen], 1.0)
    products = part.n * np.outer(m, m)
    products[:-1, :-1] += part.scatter / scale[seen] / scale[seen][:, None]
    H = np.zeros((len(m), len(seen) + 1))
    H[:, np.append(seen, True)] = root_of(products)
    return H


def refuse_unseen(names: dict[str, list[str]], counts: Array) -> None:
    """Raise an error for a feature without an observed cell."""
    at = 0
    for view, features in names.items():
        nothing = np.flatnonzero(counts[at : at + len(features)] == 0)
        if len(nothing):
            raise features_all_missing(view, [features[i] for i in nothing])
        at += len(features)
