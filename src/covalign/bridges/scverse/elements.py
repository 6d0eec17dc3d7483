"""Parts of an AnnData or MuData: arrays by key, columns of obs by name, features by mask."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from covalign._core.checks import check_text
from covalign._core.extras import optional
from covalign._core.linalg import Array, dense
from covalign._core.messages import kind_of, listed, message, shown, text_of
from covalign.exceptions import RawCountsWarning
from covalign.stream.formats import from_object
from covalign.stream.source import Table
from covalign.tables import groups as grouping

SEEN_FOR_COUNTS = 500  # rows; they show whether a table has counts
LARGE_COUNT = 10  # genotypes, flags and scores are whole numbers, too, but smaller


class Element(NamedTuple):
    """An array of an AnnData or MuData, and the names of its columns where it has any."""

    value: Any
    names: pd.Index | None
    where: str
    of_var: bool  # its columns are those of var

    def rows(self, index: pd.Index, columns: Sequence[str] | None = None) -> Table:
        """Its rows, to be read in chunks."""
        if self.names is not None:
            refuse_repeated(self.names, self.where, "features", "var_names_make_unique(), or rename the columns")
        named: dict[str, Any] = {} if self.names is None else {"names": self.names}
        return from_object(self.value, self.where, index=index, columns=columns, **named)

    def loaded(self, keep: NDArray[np.bool_]) -> Array:
        """The columns to keep, dense, in memory."""
        value = self.value
        if hasattr(value, "to_memory") and hasattr(value, "format"):  # sparse in a file
            value = value.to_memory()
        if sparse.issparse(value):
            return np.asarray(dense(value[:, np.flatnonzero(keep)]))
        if isinstance(value, np.ndarray):
            return np.asarray(value) if keep.all() else np.asarray(value)[:, keep]
        return np.concatenate([dense(chunk)[:, keep] for chunk in from_object(value, self.where).chunks()])


def representation(use_rep: str | None, layer: str | None, otherwise: str) -> str:
    """The array that ``use_rep`` or ``layer`` names, for ``element``."""
    for what, name in (("use_rep", use_rep), ("layer", layer)):
        if name is not None:
            check_text(what, name, "it is the name of an array of the object")
    if use_rep is not None and layer is not None:
        got = f"use_rep={shown(use_rep)} and layer={shown(layer)}"
        raise ValueError(message("use_rep and layer exclude each other", got=got, remedy="give one of them"))
    if layer is not None:
        return f"layers/{layer}"
    return otherwise if use_rep is None else use_rep


def warn_of_counts(values: Any, where: str, stacklevel: int = 3) -> None:
    """Warn if the first rows of a table are whole numbers that look like raw counts."""
    first = values[:SEEN_FOR_COUNTS]
    numbers = first.data if sparse.issparse(first) else np.asarray(first)
    known = numbers[np.isfinite(numbers)]
    if known.size and known.min() >= 0 and known.max() >= LARGE_COUNT and (known == np.floor(known)).all():
        text = (
            f"{where} looks like raw counts: whole numbers up to {known.max():g}. Large counts and the depth of cells "
            "dominate a linear model. Log-normalise first: sc.pp.normalize_total(adata), then sc.pp.log1p(adata)."
        )
        warnings.warn(text, RawCountsWarning, stacklevel=stacklevel)


def is_mudata(data: Any) -> bool:
    """Whether this is a MuData; anything but a MuData or an AnnData is refused."""
    if isinstance(data, optional("anndata", "scverse").AnnData):
        return False
    if not isinstance(data, optional("mudata", "scverse").MuData):
        remedy = (
            "put the rows into anndata.AnnData(X, obs=...), or use LatentAligner or InformedFactorAnalysis, which take "
            "arrays and tables"
        )
        raise ValueError(message("data needs to be an AnnData or a MuData", got=kind_of(data), remedy=remedy))
    if data.axis != 0:
        need = "the modalities of a MuData need to share cells (axis=0)"
        raise ValueError(
            message(need, got=f"axis={data.axis}", remedy="build MuData(..., axis=0), or give one modality")
        )
    return True


def refuse_repeated(names: pd.Index, where: str, what: str, remedy: str) -> None:
    """Cells and features are matched by name, so a name may occur once."""
    if not names.is_unique:
        twice = listed(names[names.duplicated()].unique(), 3)
        need = f"{what} are matched by name, so their names need to be distinct"
        raise ValueError(message(need, got=f"{twice} more than once in {where}", remedy=f"call {remedy}"))


def refuse_repeated_cells(names: pd.Index, where: str) -> None:
    """The names of cells."""
    refuse_repeated(names, where, "cells", "obs_names_make_unique() on it")


def there_are(have: Iterable[Any]) -> str:
    """The names to choose from, as the end of a message."""
    return f"There are {listed(have, 20) or 'none'}"


def element(data: Any, rep: str, where: str) -> Element:
    """``"X"``, ``"X_pca"`` (of obsm), ``"obsm/X_pca"`` or ``"layers/counts"``; of a MuData only obsm."""
    layers = {} if hasattr(data, "mod") else data.layers
    if rep == "X" and not hasattr(data, "mod") and data.X is not None:
        return Element(data.X, data.var_names, f"{where}.X", True)
    name = str(rep).removeprefix("layers/")
    if name != rep and name in layers:
        return Element(layers[name], data.var_names, f"{where}.layers[{name!r}]", True)
    name = rep if rep in data.obsm else str(rep).removeprefix("obsm/")
    if name not in data.obsm:
        raise _unknown_representation(data, rep, where)
    value = data.obsm[name]
    names = value.columns.astype(str) if isinstance(value, pd.DataFrame) else None
    return Element(value, names, f"{where}.obsm[{name!r}]", False)


def _unknown_representation(data: Any, rep: Any, where: str) -> ValueError:
    parts = data.mod if hasattr(data, "mod") else {}  # under their names obsm only says which cells they have
    have = [f"obsm/{key}" if key == "X" else key for key in data.obsm if key not in parts]
    if not hasattr(data, "mod"):
        have += [*([] if data.X is None else ["X"]), *(f"layers/{key}" for key in data.layers)]
    holders = [m for m, part in parts.items() if rep == "X" or rep in part.obsm]
    remedy = there_are(have)
    if holders:
        remedy += f". Give the modality that has it, mdata[{holders[0]!r}]"
    return ValueError(
        message(f"{where} has no array {listed([rep])} for use_rep", remedy=remedy, wrong=[rep], known=have)
    )


class Asked(NamedTuple):
    """Columns of obs by name."""

    covariates: list[str]
    confounders: list[str]
    groups: str | None

    @classmethod
    def of(cls, covariates: Any, confounders: Any, groups: Any = None) -> Asked:
        """Lists, also where one name was given alone; refused where a name occurs twice or no covariate is named."""
        if not (groups is None or isinstance(groups, str)):
            need, remedy = "groups needs the name of a column of obs", "put the labels into obs, groups='donor'"
            raise ValueError(message(need, got=kind_of(groups), remedy=remedy))
        asked = cls(names_of(covariates), names_of(confounders), groups)
        both = [*asked.covariates, *asked.confounders, *names_of(groups)]
        twice = [name for name in dict.fromkeys(both) if both.count(name) > 1]
        if not asked.covariates:
            remedy = "Name at least one column of obs, covariates=['age']"
            raise ValueError(message("covariates is empty", remedy=remedy))
        if twice:
            need = "a column needs to be named once, as a covariate, as a confounder or as groups"
            raise ValueError(message(need, got=f"{listed(twice)} more than once"))
        return asked

    def tables(self, data: Any) -> tuple[pd.DataFrame, pd.DataFrame | None, pd.Series | None]:
        """Covariates, confounders and groups (None if there are none) of all cells in the order of obs."""
        frame = obs_columns(data, [*self.covariates, *self.confounders, *names_of(self.groups)])
        confounders = frame[self.confounders] if self.confounders else None
        return frame[self.covariates], confounders, None if self.groups is None else frame[self.groups]

    def advise(self, data: Any, Y: pd.DataFrame, C: pd.DataFrame | None) -> None:
        """Warn if no groups are given and another column of obs may name them; of Y and C the estimators warn."""
        if self.groups is None and grouping.likely_column(Y, C) is None:
            grouping.warn(None, grouping.likely_column(Y, loaded(data.obs)), stacklevel=4)


def names_of(names: Any) -> list[str]:
    """One name, or several, as a list of text."""
    several = isinstance(names, Iterable) and not isinstance(names, str | bytes | Mapping)
    several = several and getattr(names, "ndim", 1) == 1
    return [] if names is None else [text_of(name) for name in (names if several else [names])]


def obs_columns(data: Any, names: Sequence[str]) -> pd.DataFrame:
    """Columns of obs by name; of a MuData also ``"rna:age"``, or a column that only one modality has."""
    own, modalities = loaded(data.obs), data.mod if hasattr(data, "mod") else {}
    parts = {str(m): loaded(part.obs) for m, part in modalities.items()}
    unknown, found = [], {}
    for name in names:
        column = _column(own, name)
        candidates = {name: column} if column is not None else _candidates(own, parts, name)
        if len(candidates) > 1:
            text = f"{name!r} is a column of several modalities"
            choice = " or ".join(map(repr, candidates))
            raise ValueError(message(text, remedy=f"Write {choice}, or put one column into mdata.obs"))
        if candidates:
            (found[name],) = candidates.values()
        else:
            unknown.append(name)
    if unknown:
        of_parts = [f"{m}:{column}" for m, obs in parts.items() for column in obs.columns]
        have = list(dict.fromkeys([*map(str, own.columns), *of_parts]))
        text = f"obs has no column {listed(unknown)}"
        raise ValueError(message(text, remedy=there_are(have), wrong=unknown, known=have))
    return pd.DataFrame({name: _spread(column, own.index) for name, column in found.items()}, index=own.index)


def loaded(table: Any) -> pd.DataFrame:
    """obs or var; of an object that was opened lazily, in memory."""
    frame: pd.DataFrame = table if isinstance(table, pd.DataFrame) else table.to_memory()
    return frame


def _column(obs: pd.DataFrame, name: str) -> pd.Series | None:
    """The column of this name, which may be a number in obs; None if there is none."""
    (at,) = np.nonzero([str(known) == name for known in obs.columns])
    if len(at) > 1:
        raise ValueError(message(f"obs has several columns {name!r}", remedy="Rename or drop all but one"))
    return obs.iloc[:, at[0]] if len(at) else None


def _candidates(own: pd.DataFrame, parts: Mapping[str, pd.DataFrame], name: str) -> dict[str, pd.Series]:
    """Columns of modalities that go by this name, as ``modality:column``."""
    for m, obs in parts.items():
        if name.startswith(f"{m}:") and (in_full := _column(obs, name.removeprefix(f"{m}:"))) is not None:
            return {name: in_full}
    prefixed = {f"{m}:{name}": _column(own, f"{m}:{name}") for m in parts}
    plain = {f"{m}:{name}": _column(obs, name) for m, obs in parts.items()}
    both = [*prefixed.items(), *plain.items()]  # a modality's own goes before a copy of it
    return {at: column for at, column in both if column is not None}


def _spread(column: pd.Series, index: pd.Index) -> pd.Series:
    """The values by the names of cells, missing where the modality lacks the cell."""
    if column.index.equals(index):
        return column
    for where, names in (("a modality", column.index), ("mdata", index)):
        refuse_repeated_cells(names, where)
    flags = column.dtype == bool  # which have no value for missing
    return (column.astype("boolean") if flags else column).reindex(index)


def chosen_names(data: Any, found: Element, mask: Any) -> list[str] | None:
    """The features of X or of a layer that a mask leaves, by name; None for all of them."""
    if found.of_var:
        keep = chosen_features(data, mask, "data", lenient=False)
        return None if keep.all() else [str(name) for name in data.var_names[keep]]
    if mask is None or (isinstance(mask, str) and mask == "auto"):
        return None
    remedy = "leave mask_var out, or give use_rep='X' or layer="
    raise ValueError(message("mask_var chooses features of X or of a layer", got=found.where, remedy=remedy))


def chosen_features(data: Any, mask: Any, where: str, lenient: bool) -> NDArray[np.bool_]:
    """Which features to use: all, a boolean column of var (where there is one, if ``lenient``), or as an array says."""
    n = data.n_vars
    if isinstance(mask, str):
        name = "highly_variable" if mask == "auto" else mask
        if name not in data.var.columns:
            if mask == "auto" or lenient:
                return np.ones(n, dtype=bool)
            raise unknown_mask(name, data.var.columns, where)
        mask = loaded(data.var)[name]
    if mask is None:
        return np.ones(n, dtype=bool)
    if isinstance(mask, pd.Series) and not mask.index.equals(data.var_names):
        if not (mask.index.is_unique and data.var_names.isin(mask.index).all()):
            raise _not_a_mask(where, n, "a Series whose index does not name each of them once")
        mask = mask.reindex(data.var_names)
    try:
        if np.ndim(mask) != 1:
            raise _not_a_mask(where, n, kind_of(mask))
        keep = pd.array(np.asarray(mask, dtype=object), dtype="boolean").fillna(False).to_numpy(dtype=bool)
    except Exception:  # objects of a user's class may raise anything
        raise _not_a_mask(
            where, n, f"values of type {mask.dtype}" if hasattr(mask, "dtype") else kind_of(mask)
        ) from None
    if keep.shape != (n,):
        raise _not_a_mask(where, n, f"shape {keep.shape}")
    if not keep.any():
        raise ValueError(message(f"mask_var leaves no feature of {where}", remedy="Choose others, or mask_var=None"))
    return keep


def unknown_mask(name: str, have: Iterable[Any], where: str) -> ValueError:
    """A column of var that is not there."""
    have = list(have)
    remedy = f"{there_are(have)}; mask_var=None takes all features"
    return ValueError(
        message(f"var of {where} has no column {listed([name])}", remedy=remedy, wrong=[name], known=have)
    )


def _not_a_mask(where: str, need: int, got: str) -> ValueError:
    text = f"mask_var needs True or False for each of the {need} features of {where}"
    return ValueError(message(text, got=got, remedy="pass such an array, or the name of a boolean column of var"))
