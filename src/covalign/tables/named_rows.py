"""Rows of numbers, in memory or streamed, with the names they have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.linalg import dense
from covalign.stream import is_source, open_rows
from covalign.stream.derived import Derived
from covalign.tables import join, table_index


@dataclass(frozen=True, eq=False)
class Representation:
    """Rows of numbers in memory or streamed, and what messages call them."""

    data: Any  # a DataFrame, an array, or a Source
    where: str

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.data.shape[0])

    @cached_property
    def labels(self) -> pd.Index | None:
        """Row names as they are stored; None where rows have no names."""
        index = join.names_of(self.data)
        return None if isinstance(index, pd.RangeIndex) else index

    @property
    def features(self) -> pd.Index | None:
        """Names of the columns as text; None where they have none."""
        if isinstance(self.data, pd.DataFrame):
            return self.data.columns.astype(str)
        names = self.data.names if is_source(self.data) else None
        return None if names is None else pd.Index([str(name) for name in names], dtype=object)

    @property
    def names(self) -> pd.Index | None:
        """Row names as text, as in tables."""
        return None if self.labels is None else table_index.as_text(self.labels, self.where)


class Named(Derived):
    """The rows of a source with other names, or without any."""

    def __init__(self, source: Any, index: pd.Index | None) -> None:
        super().__init__(source if is_source(source) else open_rows(source))
        self._index = index

    @property
    def index(self) -> Any:
        """Names of the rows, or None."""
        return self._index


def loaded(view: Representation, index: Any) -> pd.DataFrame:
    """The rows as a DataFrame with this index."""
    if isinstance(view.data, pd.DataFrame):
        return view.data.set_axis(index, axis=0)
    source = view.data if is_source(view.data) else open_rows(view.data, name=view.where)
    values = np.concatenate([dense(chunk) for chunk in source.chunks()])
    values = values if values.dtype.kind == "f" else values.astype(np.float64)
    return pd.DataFrame(values, index, None if source.names is None else list(source.names))
