"""What is written into an AnnData or MuData, in a form that files can hold: everything at once, after all is computed.

In ``uns`` names are values, never keys; only the columns of ``obsm`` and ``varm`` tables have to be called something
that HDF5 takes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pandas as pd

import covalign as package
from covalign._core.checks import check_flag, check_text
from covalign._core.extras import optional
from covalign._core.linalg import Array
from covalign._core.messages import listed, message, shown
from covalign.bridges.scverse.elements import is_mudata, there_are
from covalign.persist.values import plain
from covalign.stream.h5ad import pulling

RESERVED = (".", "..", "_index")  # "." is a group itself, ".." its parent; in "_index" anndata keeps names of rows
ALONE = "X"  # the view of an AnnData


class Results(NamedTuple):
    """What goes into an object; tables of ``varm`` by modality, ``ALONE`` for an AnnData's own."""

    obsm: pd.DataFrame
    uns: dict[str, Any]
    varm: Mapping[str, pd.DataFrame] = {}


def names(data: Any, key: str = "X_aligned") -> dict[str, str]:
    """Column of ``obsm[key]`` (and of the loadings in ``varm``) -> name of the covariate or factor.

    >>> import anndata, numpy as np, pandas as pd, covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100)
    >>> adata = anndata.AnnData(obs=pd.DataFrame({"mg/kg": s.Y[:, 0]}, index=[f"cell{i}" for i in range(100)]))
    >>> adata.obsm["X_pca"] = s.Z
    >>> ca.scverse.align(adata, covariates="mg/kg")
    >>> ca.scverse.names(adata)
    {'mg%2Fkg': 'mg/kg'}
    """
    found = entry(data, key)
    return dict(zip(map(str, found["columns"]), map(str, found["names"]), strict=True))


def table(data: Any, key: str = "X_aligned") -> pd.DataFrame:
    """``obsm[key]`` as a table: cells x covariates (of ``ifa``, factors), both with their names.

    >>> import anndata, pandas as pd, covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100)
    >>> adata = anndata.AnnData(obs=pd.DataFrame({"mg/kg": s.Y[:, 0]}, index=[f"cell{i}" for i in range(100)]))
    >>> adata.obsm["X_pca"] = s.Z
    >>> ca.scverse.align(adata, covariates="mg/kg")
    >>> ca.scverse.table(adata).columns.tolist()
    ['mg/kg']
    """
    labels = list(names(data, key).values())
    return pd.DataFrame(np.asarray(data.obsm[key]), index=data.obs_names, columns=labels)


def loadings(data: Any, key: str = "X_ifa", modality: str | None = None) -> pd.DataFrame:
    """Loadings of a modality that ``ifa`` wrote into ``varm``, as a table: features x factors, with their names.

    >>> import anndata, pandas as pd, covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30}, n_factors=4, n_covariates=2)
    >>> obs = pd.DataFrame(s.Y, columns=["age", "dose"], index=[f"cell{i}" for i in range(200)])
    >>> adata = anndata.AnnData(s.X["rna"], obs=obs)
    >>> ca.scverse.ifa(adata, ["age", "dose"], n_factors=3)
    >>> ca.scverse.loadings(adata).columns.tolist()
    ['age', 'dose', 'free0']
    """
    labels, have = list(names(data, key).values()), sorted(with_loadings(entry(data, key)))
    wanted = have[0] if modality is None and len(have) == 1 else modality
    if not isinstance(wanted, str) or wanted not in have:
        remedy = f"{there_are(have)}; name one, loadings(mdata, {key!r}, 'rna')"
        problem = f"no loadings of modality {listed([wanted])} are stored under {key!r}"
        raise ValueError(message(problem, remedy=remedy, wrong=[wanted], known=have))
    part = data.mod[wanted] if is_mudata(data) else data
    return pd.DataFrame(np.asarray(part.varm[uns_key(key)]), index=part.var_names, columns=labels)


def written_as(name: str, *taken: Any) -> str:
    """The name as a column that HDF5 takes: ``/`` as ``%2F``, like in an URL; so the first letter of a reserved name.

    ``urllib.parse.unquote`` gives the name back. ``taken`` are names of indexes, which a column may not have.
    """
    column = re.sub("%(?=[0-9A-Fa-f]{2})", "%25", name).replace("/", "%2F")
    if column not in (*RESERVED, *taken):
        return column
    first = "".join(f"%{byte:02X}" for byte in column[0].encode())
    return first + column[1:]


def columns_for(labels: Iterable[str], *indexes: pd.Index) -> list[str]:
    """The columns of tables with these indexes that have these labels."""
    labels = list(labels)
    wrong = [label for label in labels if label == "" or "\0" in label]
    if wrong:
        need = "names need characters that a file can hold"
        got = ", ".join(map(repr, wrong))
        raise ValueError(message(need, got=got, remedy="rename the column of obs, or its levels"))
    return [written_as(label, *(index.name for index in indexes)) for label in labels]


def uns_key(key: str) -> str:
    """``X_aligned`` -> ``aligned``, as scanpy has ``X_pca`` and ``pca``."""
    return key.removeprefix("X_")


def entry(data: Any, key: str) -> Mapping[str, Any]:
    """The description of ``obsm[key]`` in ``uns``."""
    is_mudata(data)
    check_text("key", key, "it is the key_added of align(...) or ifa(...)")
    found = data.uns.get(uns_key(key))
    if key in data.obsm and describes(found, key):
        width = data.obsm[key].shape[1:]
        if any(_shape(found.get(what)) != width for what in ("columns", "names")):
            text = f"what is stored under {listed([key])} is damaged: it has other columns than their names"
            raise ValueError(message(text, remedy="Run align or ifa again"))
        return found  # type: ignore[no-any-return]
    have = [k for k in data.obsm if describes(data.uns.get(uns_key(k)), k)]
    remedy = f"{there_are(have)}; align(...) and ifa(...) write results"
    raise ValueError(
        message(f"there is no result of covalign under {listed([key])}", remedy=remedy, wrong=[key], known=have)
    )


def _shape(names: Any) -> tuple[int, ...]:
    return names.shape if isinstance(names, np.ndarray) else (len(names),) if isinstance(names, list) else ()


def is_ours(found: Any) -> bool:
    """Whether covalign wrote this."""
    return isinstance(found, Mapping) and "covalign" in found and isinstance(found.get("params"), Mapping)


def describes(found: Any, key: str) -> bool:
    """Whether this was written along with ``obsm[key]``: ``X_aligned`` and ``aligned`` share a place in ``uns``."""
    return is_ours(found) and str(found["params"].get("key_added", key)) == key


def with_loadings(found: Any) -> set[str]:
    """The views whose ``varm`` holds loadings of the run that wrote this."""
    if not is_ours(found) or "modalities" not in found["params"]:
        return set()
    elsewhere = found.get("loadings", {})
    return {str(view) for view in found["params"]["modalities"] if written_as(str(view)) not in elsewhere}


def check_place(data: Any, key: Any, copy: bool, varm: Iterable[tuple[str, Any]] = ()) -> str:
    """A key that is free, in an object that can be written to; checked before anything is computed."""
    copy = check_flag("copy", copy)
    at_obsm = checked_key(key)
    name = uns_key(at_obsm)
    if data.isbacked and (copy or data.is_view):
        need = f"{'copy=True' if copy else 'writing into a part of an object'} needs the data in memory"
        remedy = "leave copy=False and give the whole object, or call .to_memory() first"
        raise ValueError(message(need, got="an object backed by a file", remedy=remedy))
    earlier = data.uns.get(name)
    places = [] if describes(earlier, at_obsm) else [("obsm", at_obsm, data.obsm), ("uns", name, data.uns)]
    others = {view: held for view, held in varm if view not in with_loadings(earlier)}
    places += [(f"{view}.varm" if is_mudata(data) else "varm", name, held) for view, held in others.items()]
    for where, at, held in places:
        if at in held:
            text = f"{where}[{at!r}] already holds something that no earlier run with key_added={at_obsm!r} wrote"
            raise ValueError(message(text, remedy="Choose another key_added, or delete it first"))
    return at_obsm


def checked_key(key: Any) -> str:
    """A name under which obsm can be written to a file."""
    if isinstance(key, str) and key not in ("", ".", "X_") and "/" not in key and "\0" not in key:
        return check_text("key_added", key, "for example 'X_aligned'")
    raise ValueError(message("key_added needs a name without '/'", got=shown(key), remedy="for example 'X_aligned'"))


def commit(data: Any, key: str, results: Results, *, copy: bool, as_frame: bool, model: Any = None) -> Any:
    """Write the results, into a copy if one is wanted, and remove loadings of an earlier run.

    Returns None, the copy, the model if one is given, or copy and model.
    """
    name = uns_key(key)
    # A view becomes an object of its own, as it does with scanpy; copies of a MuData pull no columns.
    with warnings.catch_warnings(), pulling(False) if is_mudata(data) else nullcontext():
        warnings.simplefilter("ignore", optional("anndata", "scverse").ImplicitModificationWarning)
        target = data.copy() if copy else data
        # This comes first, as it makes a view an object of its own.
        target.obsm[key] = results.obsm if as_frame else results.obsm.to_numpy()
        stale = with_loadings(target.uns.get(name))
        parts = dict(target.mod) if hasattr(target, "mod") else {ALONE: target}
        for view, part in parts.items():
            if view in results.varm:
                part.varm[name] = results.varm[view] if as_frame else results.varm[view].fillna(0.0).to_numpy()
            elif view in stale and name in part.varm:
                del part.varm[name]
        target.uns[name] = results.uns
    if copy and model is not None:
        return target, model
    return target if copy else model


def texts(labels: Iterable[Any]) -> Array:
    """Names as an array that files take."""
    return np.array([str(label) for label in labels], dtype=object)


def parameters(**given: Any) -> dict[str, Any]:
    """Parameters as values that files take; what is None is left out, as not every version can write it."""
    kept = {name: value for name, value in given.items() if value is not None}
    return {name: texts(value) if isinstance(value, list) else plain(value) for name, value in kept.items()}


def head(kind: str, columns: Iterable[str], params: dict[str, Any]) -> dict[str, Any]:
    """What all results begin with."""
    columns = list(columns)
    labels = [unquote(column) for column in columns]
    kept = {"columns": texts(columns), "names": texts(labels)}
    return {"covalign": package.__version__, "kind": kind, "params": params, **kept}
