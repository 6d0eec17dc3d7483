"""Sparse rows some of which lack whole views, or covariates: ``Gapped`` with flags for every view, not every cell."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.factor.inference.patterns import Gapped, Index, Patterns
from covalign.factor.inference.sparse_rows import SparseX


@dataclass(frozen=True, eq=False)
class SparseGapped(Gapped):
    """X is sparse, and ``observed`` has a column for every view (n x V), ``view_of`` the view of every feature."""

    X: SparseX  # type: ignore[assignment]  # it has the products of an array
    view_of: Index = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @classmethod
    def of_views(
        cls, X: SparseX, present: NDArray[np.bool_], view_of: Index, Y: Array, has_y: NDArray[np.bool_], S_y: Array
    ) -> SparseGapped:
        """Every row a sample."""
        made = cls(X, present, Y, has_y, S_y, np.ones(len(X)), np.zeros(0), view_of)
        return replace(made, sizes=np.bincount(made.samples[0]).astype(np.float64))

    def cells_of(self, rows: Any) -> NDArray[np.bool_]:
        """Whether these rows have each feature."""
        return np.asarray(self.observed[rows][:, self.view_of])

    @cached_property
    def rows(self) -> Patterns:
        """Rows that lack the same views."""
        found = Patterns.of(self.observed)
        return Patterns(found.distinct[:, self.view_of], found.group)

    @cached_property
    def columns(self) -> Index:
        """Features of views that the same rows lack share a pattern."""
        return Patterns.of(self.observed.T).group[self.view_of]

    @cached_property
    def x(self) -> Array:
        """sum of each feature over its observed cells."""
        return np.asarray(self.X.back(self.one[:, None])[:, 0])

    @property
    def xx(self) -> Array:
        """x_d'x_d over observed cells."""
        return self.X.xx

    def with_covariates(self) -> SparseGapped:
        """The same rows, the covariates also as the last features, with their gaps."""
        observed = np.hstack([self.observed, self.has_y])
        of_y = np.arange(self.observed.shape[1], observed.shape[1])
        view_of = np.concatenate([self.view_of, of_y])
        return SparseGapped.of_views(self.X.beside(self.Y), observed, view_of, self.Y, self.has_y, self.S_y)
