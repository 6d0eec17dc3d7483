"""Informed factors of the tables of an AnnData or MuData."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.checks import check_flags
from covalign._core.messages import listed, message
from covalign.bridges.scverse import elements, slots
from covalign.bridges.scverse.slots import ALONE
from covalign.factor import InformedFactorAnalysis

KIND = "ifa"


class View(NamedTuple):
    """A table to be explained, and where its loadings go."""

    part: Any  # the AnnData
    where: str  # what messages call it
    element: elements.Element
    keep: NDArray[np.bool_]

    @classmethod
    def of(cls, part: Any, where: str, rep: str, mask: Any, lenient: bool = False) -> View:
        """The array ``rep`` of a part. Only features of var can be masked."""
        found = elements.element(part, rep, where)
        if found.of_var:
            return cls(part, where, found, elements.chosen_features(part, mask, where, lenient))
        return cls(part, where, found, np.ones(found.value.shape[1], dtype=bool))

    def table(self) -> pd.DataFrame:
        """Cells x features, by name; by position where names repeat."""
        known = self.element.names
        names = np.arange(len(self.keep)) if known is None or not known.is_unique else known
        return pd.DataFrame(self.element.loaded(self.keep), self.part.obs_names, pd.Index(names)[self.keep])

    def loadings(self, values: Any, columns: list[str]) -> pd.DataFrame:
        """Features x factors, NaN where a feature was not used."""
        names = self.element.names
        index = pd.Index([str(i) for i in range(len(self.keep))]) if names is None else names
        used = pd.DataFrame(values, np.flatnonzero(self.keep), columns)
        return used.reindex(range(len(index))).set_axis(index, axis=0)


def ifa(
    data: Any,
    covariates: str | Sequence[str] = (),
    n_factors: int | str = 10,
    *,
    lam: float | None = None,
    regime: str | None = None,
    confounders: str | Sequence[str] | None = None,
    groups: str | None = None,
    use_rep: str | Mapping[str, str] | None = None,
    layer: str | Mapping[str, str] | None = None,
    mask_var: Any = "auto",
    modalities: str | Sequence[str] | None = None,
    folds: int = 5,
    supervision: Any = "auto",
    key_added: str = "X_ifa",
    as_frame: bool = False,
    copy: bool = False,
    return_model: bool = False,
    **settings: Any,
) -> Any:
    """Fit informed factors to the tables of cells, as ``InformedFactorAnalysis`` does.

    Parameters
    ----------
    data : AnnData or MuData
        Each modality is a view. Cells are matched by name, and a modality may lack some. Sparse tables become dense
        (their chosen features); those in a file are loaded.
    covariates, confounders : names of columns of ``obs``
        Factor p is informed by covariate p. Of a MuData also ``"rna:age"``, or a column that only one modality has.
    groups : name of a column of ``obs``, or None
        Which cells belong together, such as ``"donor"``: these are held out as a whole, and intervals count groups.
        None takes cells as independent.
    n_factors : int or "auto"
        Informed and free ones together.
    lam, regime : float, str or None
        Realign the informed factors (``InformedFactorAnalysis.at``); both None leaves them as fitted.
    use_rep, layer : str, dict modality -> str, or None
        The tables: a key of ``obsm`` (``use_rep``) or a layer; X if both are None. Numbers of X or of a layer that look
        like raw counts give a ``RawCountsWarning``.
    mask_var : "auto", None, str, boolean array, or dict modality -> one of these
        Features to use: ``highly_variable`` of ``var`` where there is such a column (``"auto"``), all (None), or
        another column, which modalities that lack it do without.
    modalities : names, or None for all
        Views to use.
    folds : int
        That of ``InformedFactorAnalysis``: the model is fitted again without each fold for the held-out alignment, 0
        for no such fits.
    supervision : "auto" or float
        That of ``InformedFactorAnalysis``: how often covariates count against features. 1 is the paper's model.
    key_added : str
        ``obsm[key_added]`` gets the factors of all cells (NaN for those no modality has), covariates first, then
        ``free0``, ...; ``varm`` of each modality, under the name without ``X_``, the loadings (0 for features not
        used, as in ``PCs`` of scanpy; NaN in a table); ``uns`` under that name ``params``, ``alignment``
        (``summary``), ``informed`` (``informed_``: beta with interval, held-out alignment and verdict of
        each covariate), ``supervision`` and ``regression_share`` (those in use), ``beta`` (with std),
        ``variance_explained`` (factors x modalities), ``views`` (cells, features and total variance explained of each),
        ``active``, ``elbo``, ``converged``, ``transform`` (T of the regime), ``columns`` and ``names``; and, where a
        modality's table was one of obsm, its ``loadings``.
    as_frame : bool
        True puts tables with names into ``obsm`` and ``varm``, which scanpy and muon cannot draw. ``table`` and
        ``loadings`` make them of arrays.
    copy, return_model : bool
        Return a changed copy instead of None; return the fitted model (after the copy, if there is one). The model is
        not stored, as it holds the cells: ``model.save(path)`` keeps it.
    **settings
        Those of ``InformedFactorAnalysis``.

    Examples
    --------
    >>> import anndata, pandas as pd, covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=200, n_features={"rna": 30}, n_factors=4, n_covariates=2)
    >>> obs = pd.DataFrame(s.Y, columns=["age", "dose"], index=[f"cell{i}" for i in range(200)])
    >>> adata = anndata.AnnData(s.X["rna"], obs=obs)
    >>> ca.scverse.ifa(adata, ["age", "dose"], n_factors=4)
    >>> adata.obsm["X_ifa"].shape, ca.scverse.table(adata, "X_ifa").columns.tolist()
    ((200, 4), ['age', 'dose', 'free0', 'free1'])
    >>> ca.scverse.loadings(adata)["age"].abs().nlargest(3).shape
    (3,)
    """
    check_flags(as_frame=as_frame, return_model=return_model)
    check_settings(settings)
    views = _views(data, modalities, use_rep, layer, mask_var)
    asked = elements.Asked.of(covariates, confounders, groups)
    places = [(name, view.part.varm) for name, view in views.items() if view.element.of_var]
    key = slots.check_place(data, key_added, copy, places)
    Y, C, labels = asked.tables(data)
    _check_cells(data, views)
    model = InformedFactorAnalysis(n_factors, folds=folds, supervision=supervision, **settings)
    tables = {name: view.table() for name, view in views.items()}
    for name, view in views.items():
        if view.element.of_var:
            elements.warn_of_counts(tables[name], view.element.where)
    model.fit(tables, Y, confounders=C, groups=labels)
    if folds:
        asked.advise(data, Y, C)
    if lam is not None or regime is not None:
        model = model.at(lam, regime=regime)
    reps = [_rep(use_rep, layer, name) for name in views]
    params = slots.parameters(use_rep=reps, **asked._asdict(), lam=lam, regime=regime)
    params |= slots.parameters(modalities=list(views), key_added=key, **model.get_params())
    results = _results(model, data, views, params)
    return slots.commit(data, key, results, copy=copy, as_frame=as_frame, model=model if return_model else None)


def _views(
    data: Any, modalities: str | Sequence[str] | None, use_rep: Any, layer: Any, mask_var: Any
) -> dict[str, View]:
    if not elements.is_mudata(data):
        if modalities is not None or any(isinstance(what, Mapping) for what in (use_rep, layer, mask_var)):
            need, remedy = "modalities are those of a MuData", "leave modalities out, and give no dict of them"
            raise ValueError(message(need, got="an AnnData, which is one modality", remedy=remedy))
        return {ALONE: View.of(data, "data", _rep(use_rep, layer, ALONE), _of(mask_var, ALONE, "auto"))}
    wanted = list(data.mod) if modalities is None else elements.names_of(modalities)
    named = [m for what in (use_rep, layer, mask_var) if isinstance(what, Mapping) for m in what]
    wrong = [name for name in dict.fromkeys([*wanted, *named]) if name not in data.mod]
    if wrong or not wanted:
        text = f"data has no modality {listed(wrong)}" if wrong else "modalities is empty"
        remedy = elements.there_are(data.mod)
        raise ValueError(message(text, remedy=remedy, wrong=wrong, known=data.mod))
    by_name = isinstance(mask_var, str) and mask_var != "auto"
    if by_name and not any(mask_var in data.mod[name].var.columns for name in wanted):
        have = dict.fromkeys(column for name in wanted for column in data.mod[name].var.columns)
        raise elements.unknown_mask(mask_var, have, "every modality")
    return {
        m: View.of(data.mod[m], f"modality {m!r}", _rep(use_rep, layer, m), _of(mask_var, m, "auto"), by_name)
        for m in wanted
    }


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse what is no parameter of the factor model."""
    known = list(InformedFactorAnalysis().get_params())
    wrong = [name for name in settings if name not in known]
    if wrong:
        text = f"InformedFactorAnalysis has no parameter {listed(wrong)}"
        raise ValueError(message(text, remedy="Correct the name", wrong=wrong, known=known))


def _of(given: Any, modality: str, otherwise: Any) -> Any:
    return given.get(modality, otherwise) if isinstance(given, Mapping) else given


def _rep(use_rep: Any, layer: Any, modality: str) -> str:
    return elements.representation(_of(use_rep, modality, None), _of(layer, modality, None), "X")


def _check_cells(data: Any, views: dict[str, View]) -> None:
    """Cells are matched by name, so names are distinct and in obs."""
    for where, part in {"data": data, **{view.where: view.part for view in views.values()}}.items():
        elements.refuse_repeated_cells(part.obs_names, where)
        absent = part.obs_names.difference(data.obs_names, sort=False)
        if len(absent):
            text = f"mdata.obs lacks {len(absent)} cells of {where} ({listed(absent, 3)})"
            raise ValueError(message(text, remedy="Call mdata.update() first"))


def _results(model: InformedFactorAnalysis, data: Any, views: dict[str, View], params: dict[str, Any]) -> slots.Results:
    indexes = [view.element.names for view in views.values() if view.element.names is not None]
    columns = slots.columns_for(model.factor_names_, data.obs_names, *indexes)
    factors = pd.DataFrame(model.factors_, index=model._table.samples, columns=columns).reindex(data.obs_names)
    loadings = {name: view.loadings(model.loadings_[name], columns) for name, view in views.items()}
    varm = {name: loadings[name] for name, view in views.items() if view.element.of_var}
    in_uns = {slots.written_as(name): loadings[name] for name, view in views.items() if not view.element.of_var}
    uns = slots.head(KIND, columns, params) | _found(model, views)
    return slots.Results(factors, {**uns, "loadings": in_uns} if in_uns else uns, varm)


def _found(model: InformedFactorAnalysis, views: dict[str, View]) -> dict[str, Any]:
    """What ``uns`` says about the fitted cells."""
    shares = model.variance_explained().T
    sizes = {"cells": [v.part.n_obs for v in views.values()], "features": [int(v.keep.sum()) for v in views.values()]}
    total = model.total_variance_explained().reindex(list(views)).to_numpy()
    return {
        "alignment": pd.DataFrame(model.summary()),  # files take no subclass
        "informed": model.informed_,
        "supervision": float(model.supervision_),
        "regression_share": float(model.regression_share_),
        "beta": pd.DataFrame({"beta": model.beta_, "std": model.beta_std_}, index=model.covariate_names_),
        "variance_explained": shares.set_axis([slots.written_as(str(name)) for name in shares.columns], axis=1),
        "views": pd.DataFrame({**sizes, "variance_explained": total}, index=list(views)),
        "active": np.asarray(model.active_factors_),
        "elbo": np.asarray(model.elbo_),
        "converged": bool(model.converged_),
        **({} if model.n_groups_ is None else {"n_groups": model.n_groups_}),
        "transform": np.asarray(model.T_),
    }
