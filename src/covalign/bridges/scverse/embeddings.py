"""An embedding in obsm, mapped so that its dimensions stand for columns of obs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.checks import check_flags
from covalign._core.messages import listed, message
from covalign.aligner.latent import LatentAligner
from covalign.bridges.scverse import elements, slots
from covalign.stream.source import Table

KIND = "align"


def align(
    data: Any,
    use_rep: str | None = None,
    covariates: str | Sequence[str] = (),
    *,
    layer: str | None = None,
    mask_var: Any = "auto",
    confounders: str | Sequence[str] | None = None,
    groups: str | None = None,
    regime: str = "tunable",
    lam: float = 0.5,
    shrinkage: float | str = "auto",
    keep_rest: bool = False,
    folds: int = 5,
    drop_first: bool = True,
    missing: str = "pairs",
    key_added: str = "X_aligned",
    store_model: bool = True,
    as_frame: bool = False,
    copy: bool = False,
    return_model: bool = False,
) -> Any:
    """Align an embedding of cells with columns of ``obs``, as ``LatentAligner`` does.

    Parameters
    ----------
    data : AnnData or MuData
        In memory, a view, or backed by a file (then in place only).
    use_rep, layer : str or None
        What to align: a key of ``obsm`` (``"X_pca"`` if both are None), ``use_rep="X"``, or a layer. Numbers of X or of
        a layer that look like raw counts give a ``RawCountsWarning``.
    mask_var : "auto", None, str or boolean array
        Features of X or of the layer to use: ``highly_variable`` of ``var`` where there is such a column (``"auto"``),
        all (None), or another column.
    covariates, confounders : names of columns of ``obs``
        Numbers, flags, text and categories, with gaps or without; confounders are regressed out and may have none. Of
        a MuData also ``"rna:age"``, or a column that only one modality has.
    groups : name of a column of ``obs``, or None
        Which cells belong together, such as ``"donor"``: these are fitted or held out as a whole, and intervals count
        groups. None takes cells as independent.
    regime, lam, shrinkage, keep_rest, folds, drop_first, missing
        Those of ``LatentAligner``.
    key_added : str
        ``obsm[key_added]`` gets an array with a column per covariate (then ``rest0``, ... with ``keep_rest``), and
        ``uns`` under the same name without ``X_``: ``params``; ``alignment`` (in sample, held out, low, high and rows
        per covariate) and ``mean_alignment``; ``n_groups`` if there are groups; ``shrinkage`` as chosen; ``coupling``;
        ``transform`` (T) and ``mean``, which make it ``(Z - mean) @ transform.T`` where there are no confounders;
        ``columns`` and ``names``; ``model``.
    store_model : bool
        Keep in ``uns`` what ``aligner`` and ``transform`` need: sums over cells, no cell; ``folds + 1`` times the size
        of the covariance of the embedding at most.
    as_frame : bool
        True puts a table with names into ``obsm``, which ``sc.pl.embedding`` cannot draw. ``table`` makes one.
    copy : bool
        Return a changed copy instead of None.
    return_model : bool
        Return the fitted ``LatentAligner`` (after the copy, if there is one).

    Examples
    --------
    >>> import anndata, pandas as pd, covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> obs = pd.DataFrame({"age": s.Y[:, 0], "dose": s.Y[:, 1]}, index=[f"cell{i}" for i in range(200)])
    >>> adata = anndata.AnnData(obs=obs, obsm={"X_pca": s.Z})
    >>> ca.scverse.align(adata, "X_pca", ["age", "dose"], lam=0.5)
    >>> adata.obsm["X_aligned"].shape, ca.scverse.table(adata).columns.tolist()
    ((200, 2), ['age', 'dose'])
    >>> adata.uns["aligned"]["alignment"].columns.tolist()
    ['in_sample', 'held_out', 'se', 'low', 'high', 'rows']
    """
    elements.is_mudata(data)
    check_flags(store_model=store_model, as_frame=as_frame, return_model=return_model)
    asked = elements.Asked.of(covariates, confounders, groups)
    key = slots.check_place(data, key_added, copy)
    rep = elements.representation(use_rep, layer, "X_pca")
    found = elements.element(data, rep, "data")
    rows = found.rows(data.obs_names, elements.chosen_names(data, found, mask_var))
    if found.of_var:
        elements.warn_of_counts(next(rows.chunks(elements.SEEN_FOR_COUNTS)), found.where)
    Y, C, labels = asked.tables(data)
    model = LatentAligner(
        regime, lam, shrinkage, keep_rest=keep_rest, folds=folds, drop_first=drop_first, missing=missing
    )
    model.fit(rows, Y, confounders=C, groups=labels)
    asked.advise(data, Y, C)
    params = slots.parameters(use_rep=rep, key_added=key, **asked._asdict(), **model.get_params())
    table = _table(model, rows, C)
    uns = slots.head(KIND, table.columns, params) | _found(model)
    if store_model:  # as ``save`` writes it, with names within one text, as keys in a file may not be any text
        meta, arrays = model._packed()
        uns["model"] = {"meta": json.dumps(meta), "arrays": dict(arrays)}
    given_back = model if return_model else None
    return slots.commit(data, key, slots.Results(table, uns), copy=copy, as_frame=as_frame, model=given_back)


def _table(model: LatentAligner, rows: Table, C: pd.DataFrame | None) -> pd.DataFrame:
    columns = slots.columns_for(model.get_feature_names_out(), rows.index)
    return pd.DataFrame(model.transform(rows, confounders=C), index=rows.index, columns=columns)


def _found(model: LatentAligner) -> dict[str, Any]:
    """What ``uns`` says about the fitted cells."""
    return {
        "fitted_here": True,
        "alignment": pd.DataFrame(model.summary()),  # files take no subclass
        "mean_alignment": {name: float(value) for name, value in model.mean_alignment_.items()},
        "shrinkage": float(model.shrinkage_),
        "scale": model.scale_,
        "coupling": float(model.coupling_),
        **({} if model.n_groups_ is None else {"n_groups": model.n_groups_}),
        "transform": np.asarray(model.transform_),
        "mean": np.asarray(model.moments_.mean_z),
    }


def aligner(data: Any, key: str = "X_aligned") -> LatentAligner:
    """The ``LatentAligner`` behind ``obsm[key]``, from what ``align`` stored: no refitting, also after a file.

    >>> import anndata, pandas as pd, covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> obs = pd.DataFrame({"age": s.Y[:, 0], "dose": s.Y[:, 1]}, index=[f"cell{i}" for i in range(200)])
    >>> adata = anndata.AnnData(obs=obs, obsm={"X_pca": s.Z})
    >>> ca.scverse.align(adata, "X_pca", ["age", "dose"])
    >>> stronger = ca.scverse.aligner(adata).at(lam=0.9)
    >>> bool(stronger.alignment_.mean() > adata.uns["aligned"]["alignment"]["in_sample"].mean())
    True
    """
    stored = slots.entry(data, key).get("model")
    if stored is None:
        remedy = "Run align(..., store_model=True), or keep the aligner that align(..., return_model=True) returns"
        raise ValueError(message(f"no aligner is stored under {key!r}", remedy=remedy))
    try:
        arrays = {str(name): np.asarray(value) for name, value in stored["arrays"].items()}
        return LatentAligner._restored(json.loads(str(stored["meta"])), arrays)
    except Exception as error:  # whatever was written in its place
        text = f"the aligner stored under {key!r} is damaged"
        raise ValueError(message(text, remedy="Run align again")) from error


def transform(data: Any, like: Any, key: str = "X_aligned", *, as_frame: bool = False, copy: bool = False) -> Any:
    """Map other cells as those of ``like`` were mapped, and fill ``obsm[key]`` and ``uns`` of ``data``.

    The same array is taken (``use_rep``), its features by name where it is X or a layer, and the same confounders from
    ``obs``; covariates are not needed. ``uns`` describes the fit to the cells of ``like`` (``fitted_here`` is False).

    >>> import anndata, pandas as pd, covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> obs = pd.DataFrame({"age": s.Y[:, 0], "dose": s.Y[:, 1]}, index=[f"cell{i}" for i in range(200)])
    >>> adata = anndata.AnnData(obs=obs, obsm={"X_pca": s.Z})
    >>> old, new = adata[:150].copy(), adata[150:].copy()
    >>> ca.scverse.align(old, "X_pca", ["age", "dose"])
    >>> ca.scverse.transform(new, like=old)
    >>> new.obsm["X_aligned"].shape
    (50, 2)
    """
    elements.is_mudata(data)
    check_flags(as_frame=as_frame)
    known, model = slots.entry(like, key), aligner(like, key)
    slots.check_place(data, key, copy)
    params: Mapping[str, Any] = known["params"]
    found = elements.element(data, str(params["use_rep"]), "data")
    confounders = [str(name) for name in params["confounders"]]
    C = elements.obs_columns(data, confounders) if confounders else None
    table = _table(model, found.rows(data.obs_names, _features(model, found)), C)
    uns = {**known, "columns": slots.texts(table.columns), "fitted_here": False}
    return slots.commit(data, key, slots.Results(table, uns), copy=copy, as_frame=as_frame)


def _features(model: LatentAligner, found: elements.Element) -> list[str] | None:
    """The features of the fit, where both have names; None for all as they are."""
    need = [str(name) for name in getattr(model, "feature_names_in_", [])]
    if not need or found.names is None:
        return None
    absent = [name for name in need if name not in set(map(str, found.names))]
    if absent:
        text = f"the data lack {len(absent)} features of the fit ({listed(absent)})"
        raise ValueError(message(text, remedy="Add them, or align again with the features that both have"))
    return need
