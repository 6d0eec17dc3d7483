"""A search for the best shrinkage where every trial takes long: many rows in wide data, or many covariates.

It climbs from the middle of the grid in steps of four, for each scale of the columns, and from the best of all in steps
of two and one. Long steps may look at some covariates only. Then scales whose best alignments are nearly equal are
compared by all covariates, and the path has only what was tried with all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from covalign.closed_form.shrinkage import COARSE, SHRINKAGE_GRID, Ridge, best_ridge

STEPS = (4, 2, 1)  # in shrinkages of the grid
LAST = len(SHRINKAGE_GRID) - 1
NEAR = 0.002  # alignment: several times as much as a hundred covariates differ from all in a comparison of scales

Frame = Callable[[str, Sequence[int]], pd.DataFrame]


class Search:
    """``frame(scale, places)`` is the path at these places of the grid; it remembers what it has computed.

    ``scale_matters(best, alignment)`` says whether other scales of the columns can change something. ``of_some`` is the
    path of some covariates, which is enough for long steps.
    """

    def __init__(
        self, frame: Frame, scale_matters: Callable[[Ridge, float], bool], of_some: Frame | None = None
    ) -> None:
        self._frame, self._scale_matters, self._of_some = frame, scale_matters, of_some or frame
        self._tried: dict[tuple[Frame, str], set[int]] = {}

    def whole_path(self) -> pd.DataFrame:
        """``shrinkage_path`` with all shrinkages: raw columns first, other scales if they can change something."""
        raw = self._full("raw")
        best = best_ridge(raw)
        if best is None or not self._scale_matters(best, float(raw["alignment"].max())):
            return raw
        few = pd.concat([self._frame(scale, range(LAST + 1)[COARSE]) for scale in ("root", "standard")])
        better = best_ridge(few)
        if better is None or not few["alignment"].max() > raw["alignment"].max():
            return raw
        return pd.concat([raw, self._full(better.scale)], ignore_index=True)

    def path(self) -> pd.DataFrame:
        """The same with the shrinkages that the search tries."""
        first, alignment = self._climbed("raw", LAST // 2 + 1)
        if first is None:
            return self._seen(self._of_some, "raw")
        found: list[tuple[Ridge | None, float]] = [(first, alignment)]
        if self._scale_matters(first, alignment):
            found += [self._climbed(scale, place(first)) for scale in ("root", "standard")]
        top = max(value for _, value in found)
        near = [ridge for ridge, value in found if ridge is not None and value >= top - NEAR]
        best = max(near, key=lambda ridge: self._value(self._frame, ridge.scale, place(ridge)))
        fine = self._fine(best)
        raw = self._seen(self._frame, "raw") if best.scale != "raw" else fine[:0]
        return fine if raw.empty else pd.concat([raw, fine], ignore_index=True)

    def _full(self, scale: str) -> pd.DataFrame:
        return self._frame(scale, range(LAST + 1))

    def _climbed(self, scale: str, start: int) -> tuple[Ridge | None, float]:
        """The best shrinkage that a search in long steps finds, and its alignment."""
        highest(lambda i: self._value(self._of_some, scale, i), start, STEPS[:1])
        seen = self._seen(self._of_some, scale)
        return best_ridge(seen), float(seen["alignment"].max())

    def _fine(self, best: Ridge) -> pd.DataFrame:
        """What was tried, and what short steps from the best of it try."""
        start = highest(lambda i: self._value(self._of_some, best.scale, i), place(best), STEPS[1:])
        highest(lambda i: self._value(self._frame, best.scale, i), start, STEPS[-1:])
        return self._seen(self._frame, best.scale)

    def _value(self, frame: Frame, scale: str, at: int) -> float:
        self._tried.setdefault((frame, scale), set()).add(at)
        return float(np.nan_to_num(frame(scale, [at])["alignment"].iloc[0], nan=-np.inf))

    def _seen(self, frame: Frame, scale: str) -> pd.DataFrame:
        return frame(scale, sorted(self._tried.get((frame, scale), ())))


def highest(value: Callable[[int], float], start: int, steps: Sequence[int], last: int = LAST) -> int:
    """The place of the highest value that steps up from ``start``, ever smaller ones, find."""
    at = start
    for step in steps:
        while (best := max([at, max(0, at - step), min(last, at + step)], key=value)) != at:
            at = best
    return at


def place(ridge: Ridge) -> int:
    """Where its shrinkage is on the grid."""
    return int(np.argmin(np.abs(SHRINKAGE_GRID - ridge.shrinkage)))
