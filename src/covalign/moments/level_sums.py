"""Sums of rows whose categories are levels (``stream.levels``): sums over the rows of every level.

A column of 0 and 1 for every level would take part in products with all others. The products of Z with them are sums
of the rows of Z that have a level, and their products with each other are counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from covalign._core.linalg import Array
from covalign.moments.accumulator import Accumulator
from covalign.moments.moments import Moments
from covalign.stream.levels import Levels


class LevelAccumulator(Accumulator):
    """An ``Accumulator`` of [z y], where y is a short table. Numbers in y are treated as in it."""

    def __init__(self, k: int, levels: Levels, block_bytes: int | None = None) -> None:
        super().__init__(k, len(levels.numbers), block_bytes)
        self.width, self._levels = len(levels.categories) + len(levels.numbers), levels
        p = len(levels.flags)
        self._codes = np.empty((len(self._block), len(levels.categories)), dtype=np.intp)
        self._products = np.zeros((p, k + self.p))  # sum of d (w - mean)', d the flags and w = [z, numbers]
        self._together = np.zeros((p, p))  # rows that have both levels

    def _fill(self, z: Any, y: Array) -> None:
        self._codes[self._filled : self._filled + len(y)] = y[:, self._levels.categories]
        super()._fill(z, y[:, self._levels.source[self._levels.numbers]])

    def _add_products(self, c: int) -> None:
        super()._add_products(c)
        places, n, p = self._levels.places(self._codes[:c]), self.n, len(self._together)
        there = places >= 0
        at, ends = places[there], np.concatenate([[0], there.sum(axis=1).cumsum()])
        D = sparse.csr_array((np.ones(len(at)), at, ends), shape=(c, p))
        before = self._together.diagonal() / max(n, 1)
        d = np.bincount(at, minlength=p) / c - before
        # The last row of the block, the distance of its mean from that of earlier blocks, goes with that of the flags.
        data, columns = np.concatenate([D.data, np.sqrt(n * c / (n + c)) * d]), np.concatenate([at, np.arange(p)])
        with_last = sparse.csr_array((data, columns, [*ends, len(data)]), shape=(c + 1, p))
        self._products += with_last.T @ self._block[: c + 1]
        both = (D.T @ D).tocoo()
        self._together[both.row, both.col] += both.data

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """The moments of all rows so far, with a column for every level."""
        at, flags, k = self._levels.numbers, self._levels.flags, self.k
        m = super().moments(None if names is None else [names[i] for i in at])
        p, counts = self._levels.p, self._together.diagonal()
        mean_y, cov_zy, cov_y = np.empty(p), np.empty((k, p)), np.empty((p, p))
        mean_y[at], mean_y[flags] = m.mean_y, counts / self.n
        cov_zy[:, at], cov_zy[:, flags] = m.cov_zy, self._products[:, :k].T / self.n
        cov_y[np.ix_(at, at)], cov_y[np.ix_(flags, at)] = m.cov_y, self._products[:, k:] / self.n
        cov_y[np.ix_(at, flags)] = self._products[:, k:].T / self.n
        cov_y[np.ix_(flags, flags)] = (self._together - np.outer(counts, counts / self.n)) / self.n
        own = tuple(f"y{i}" for i in range(p)) if names is None else tuple(names)
        made = replace(m, mean_y=mean_y, cov_zy=cov_zy, cov_y=cov_y, covariate_names=own)
        return made.with_root(m.known_root)
