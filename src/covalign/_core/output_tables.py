"""The result of ``transform`` as an array or as a table of pandas or polars: ``set_output``, and named rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import pandas as pd
from sklearn import get_config
from sklearn.base import TransformerMixin

from covalign._core.messages import message, shown
from covalign.exceptions import MissingExtraError

CONTAINERS = ("default", "pandas", "polars")


class OutputTables(TransformerMixin):
    """A transformer that makes the tables itself.

    scikit-learn would wrap whatever ``transform`` returns, and no table can be made of a path or of a dask array. So
    its wrapping is off, and ``transform`` calls ``_as_table`` where it returns an array.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None, **options)

    if TYPE_CHECKING:

        def get_feature_names_out(self, input_features: Any = None) -> Any: ...

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what ``transform`` and ``fit_transform`` return: "default", "pandas" or "polars".

        By default a DataFrame gives a DataFrame, and anything else gives an array. A table has the names of
        ``get_feature_names_out``, and in pandas the row names of the input. A dask array, and the path of a file that
        was written, are returned as they are. None changes nothing.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=200)
        >>> al = ca.LatentAligner().set_output(transform="pandas").fit(s.Z, s.Y)
        >>> al.transform(s.Z).columns.tolist()
        ['y0', 'y1', 'y2', 'y3', 'y4']
        """
        if transform is not None:
            _check_container(transform)
            # scikit-learn's ``clone`` looks for this name. A new dict, as copies of this estimator share the old one.
            self._sklearn_output_config = {"transform": transform}
        return self

    def _as_table(self, values: Any, X: Any) -> Any:
        """The result for the rows X, as the table that X is or that ``set_output`` or scikit-learn's config ask for."""
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        _check_container(chosen)
        rows = None if chosen == "polars" else self._row_names(X)
        if chosen == "default" and rows is None:
            return values
        names = [str(name) for name in self.get_feature_names_out()]
        if chosen != "polars":
            return pd.DataFrame(values, index=rows, columns=names)
        try:
            return import_module("polars").DataFrame(values, schema=names, orient="row")
        except ImportError:
            text = message("tables of polars need polars, which is not installed", remedy="Use pip install polars")
            raise MissingExtraError(text) from None

    def _row_names(self, X: Any) -> pd.Index | None:
        """Names of rows in DataFrames, None of others."""
        return X.index if isinstance(X, pd.DataFrame) else None


def _check_container(chosen: Any) -> None:
    if not (chosen is None or isinstance(chosen, str)) or chosen not in CONTAINERS:
        raise ValueError(message(f"transform output needs one of {', '.join(CONTAINERS)}", got=shown(chosen)))
