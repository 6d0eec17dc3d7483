"""Tables that print their main columns, or a card in a notebook. pandas leaves out the columns in the middle."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any, cast

import pandas as pd

from covalign._core.messages import listed


class PrintedFrame(pd.DataFrame):
    """A DataFrame that prints its first ``n_main`` columns, and names the others below. Parts and copies are plain.

    >>> frame = PrintedFrame(pd.DataFrame({"lam": [0.5], "coupling": [0.1], "age": [0.8]}))
    >>> frame.n_main = 2
    >>> frame
       lam  coupling
    0  0.5       0.1
    <BLANKLINE>
    [1 rows x 3 columns, also 'age']
    """

    n_main: int | None = None
    card: Callable[[], str] | None = None  # HTML that a notebook shows above the table

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def _main(self) -> pd.DataFrame:
        return cast(pd.DataFrame, self.iloc[:, : self.n_main])

    def _others(self) -> str:
        others = self.columns[self._main().shape[1] :]
        also = f", also {listed(others, 8)}" if len(others) else ""
        return f"[{self.shape[0]} rows x {self.shape[1]} columns{also}]"

    def __repr__(self) -> str:
        """All main columns, on several lines if one is too short; without a choice of columns, as in pandas."""
        if self.n_main is None:
            return repr(self._main())
        wrapped = ("display.expand_frame_repr", True)
        with pd.option_context("display.max_columns", None, "display.show_dimensions", False, *wrapped):
            return f"{self._main()!r}\n\n{self._others()}"

    def _repr_html_(self) -> str:
        above = "" if self.card is None else self.card()
        if self.n_main is None:
            return f"{above}{self._main()._repr_html_()}"  # type: ignore[operator]
        with pd.option_context("display.max_columns", None, "display.show_dimensions", False):
            return f"{above}{self._main()._repr_html_()}<p>{escape(self._others())}</p>"  # type: ignore[operator]


def printed(frame: pd.DataFrame, n_main: int | None = None, card: Callable[[], str] | None = None) -> pd.DataFrame:
    """The same table, which prints its first ``n_main`` columns, and a notebook shows ``card()`` above it."""
    shown = PrintedFrame(frame)
    shown.attrs.update(frame.attrs)
    shown.n_main, shown.card = n_main, card
    return shown
