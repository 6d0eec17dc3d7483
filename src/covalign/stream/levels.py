"""Categories as one column of levels, in place of a column of 0 and 1 for every level.

A table of a category with a thousand levels has a thousand columns, of which one is 1 in every row. Rows travel with
the number of their level, and sums over the rows of every level are made from it (``moments.level_sums``).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array

MANY = 64  # columns, from which levels are kept as numbers
SPARSE = 16  # columns for each number of a row


class Levels:
    """How the columns of a short table become P columns: numbers stay, a level becomes 1 in its column, 0 in others."""

    def __init__(self, source: NDArray[np.intp], level: NDArray[np.intp]) -> None:
        self.source, self.level = source, level  # of every column; a number has level -1

    @property
    def p(self) -> int:
        """Columns that the table becomes."""
        return len(self.source)

    @cached_property
    def flags(self) -> NDArray[np.intp]:
        """The columns of 0 and 1 that stand for a level."""
        return np.flatnonzero(self.level >= 0)

    @cached_property
    def numbers(self) -> NDArray[np.intp]:
        """The other columns."""
        return np.flatnonzero(self.level < 0)

    @cached_property
    def categories(self) -> NDArray[np.intp]:
        """The columns of the short table that hold levels."""
        return np.unique(self.source[self.flags])

    @property
    def ends(self) -> list[int]:
        """The first and last 32 columns, by which ``folds.fold_of_rows`` distinguishes rows."""
        return [*range(self.p)[:32], *range(self.p)[32:][-32:]]

    def expanded(self, table: Array, at: Any = slice(None)) -> Array:
        """The P columns, or some of them; a row without a level has NaN in all columns of its category."""
        source, level = self.source[at], self.level[at]
        values = table[:, source].astype(np.float64)
        flags = level >= 0
        codes = values[:, flags]
        values[:, flags] = np.where(np.isnan(codes), np.nan, codes == level[flags])
        return values

    def places(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Of the levels of every category (rows x categories), their places among ``flags``; -1 for those without."""
        return np.stack([self._place_of[i][codes[:, i]] for i in range(codes.shape[1])], axis=1)

    @cached_property
    def _place_of(self) -> list[NDArray[np.intp]]:
        found = []
        for category in self.categories:
            own = np.flatnonzero(self.source[self.flags] == category)
            places = np.full(self.level[self.flags[own]].max() + 1, -1)
            places[self.level[self.flags[own]]] = own
            found.append(places)
        return found

    def varies(self, table: Array) -> NDArray[np.bool_]:
        """Which of the P columns have more than one value."""
        low, high = (extreme.reduce(table, axis=0, initial=np.nan) for extreme in (np.fmin, np.fmax))
        found = (low < high)[self.source]
        for category in self.categories:
            codes = table[:, category]
            codes = codes[~np.isnan(codes)].astype(np.intp)
            at = self.flags[self.source[self.flags] == category]
            rows = np.bincount(codes, minlength=self.level[at].max() + 1)[self.level[at]]
            found[at] = (rows > 0) & (rows < len(codes))
        return np.asarray(found)
