"""A fitted model as plain arrays and JSON, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from covalign._core.linalg import Array
from covalign.factor import saved_folds
from covalign.factor.feature_regression import Regression
from covalign.factor.fitted_rows import Rows, Streamed
from covalign.factor.inference import grouped
from covalign.factor.inference.engines import Dense, Gram, Sparse
from covalign.factor.inference.heavy_tails import Scaled, Scales
from covalign.factor.inference.patterns import Gapped
from covalign.factor.inference.sparse_gaps import SparseGapped
from covalign.factor.inference.sparse_rows import SparseX
from covalign.factor.inference.state import Factors, Gamma, Loadings, Problem, State, View
from covalign.factor.inference.uncertainty import Tails
from covalign.factor.nuisance import Nuisance
from covalign.factor.table import Table, ViewScale
from covalign.persist.values import label, pack_coding, plain, unpack_coding, unpacked

KIND = "InformedFactorAnalysis"
ENGINE_ARRAYS: dict[type, tuple[str, ...]] = {
    Gram: ("gram", "xy", "yy"),
    Dense: ("X", "Y"),
    Sparse: ("Y",),
    SparseGapped: ("observed", "Y", "has_y", "S_y", "one", "sizes", "view_of"),
    Gapped: ("X", "observed", "Y", "has_y", "S_y", "one", "sizes"),
}


def pack(model: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Everything needed to transform, realign and go on fitting."""
    problem, table, realigned = model._problem, model._table, model._realigned
    arrays = {"elbo": model.elbo_} | _pack_rows(model._rows)
    if model._groups is not None:
        arrays["groups"] = model._groups
    arrays |= {f"nuisance.{name}": getattr(table.nuisance, name) for name in ("centre", "B_x", "B_y")}
    arrays |= {"tried.k": model.n_factors_path_.index.to_numpy(), "tried.elbo": model.n_factors_path_.to_numpy()}
    arrays |= {"table.mean_y": table.mean_y, "table.sd_y": table.sd_y}
    for i, view in enumerate(table.views.values()):
        arrays |= {f"table.{i}.mean": view.mean, f"table.{i}.sd": view.sd}
    engine = problem.data.plain if isinstance(problem.data, Scaled) else problem.data
    arrays |= {f"data.{name}": getattr(engine, name) for name in ENGINE_ARRAYS[type(engine)]}
    if isinstance(engine, Sparse | SparseGapped):
        X, S = engine.X, engine.X.S
        arrays |= {"data.values": S.data, "data.indices": S.indices, "data.indptr": S.indptr}
        arrays |= {f"data.{name}": getattr(X, name) for name in ("mean", "weight", "left", "right")}
    if engine is not problem.data:
        arrays["data.sizes"] = problem.data.sizes
    arrays |= _pack_state("now", model._state) | _pack_state("stage1", model._stage_1)
    if table.reach is not None:
        arrays["table.reach"] = table.reach
    if model._regression is not None:
        arrays["regression.of_x"] = model._regression.of_x
    if realigned is not None:
        arrays["realigned.T"] = realigned.T
        if realigned.R is not None:
            arrays["realigned.R"] = realigned.R
    held, of_held = saved_folds.pack(model._held.get(int(model.folds)), int(model.folds))
    arrays |= of_held
    meta = {
        "kind": KIND,
        "parameters": {name: plain(value) for name, value in model.get_params().items()},
        "engine": type(engine).__name__,
        "n": problem.n,
        "k": problem.k,
        "full": problem.full,
        "coordinates": problem.coordinates,
        "of_y": problem.of_y,
        "beta_prior": problem.beta_prior,
        "views": {name: view.names for name, view in table.views.items()},
        "single": table.single,
        "samples": None if table.samples is None else [label(name) for name in table.samples],
        **pack_coding(table.nuisance.coding),
        "converged": bool(model.converged_),
        "realigned": None if realigned is None else [realigned.regime, realigned.lam],
        "exact": None if model._budget is None else [model._budget.packed(), realigned.gap],
        "informed": _informed(model),
        "regression_share": model.regression_share_,
        "held": held,
        "reading": model._reading,
    }
    return meta, arrays


def _informed(model: Any) -> list[dict[str, Any]] | None:
    """``informed_`` for readers of the file, if its fits without a fold were made; None if they were not."""
    if model.folds not in model._held:
        return None
    rows = model.informed_.reset_index().to_dict("records")
    return [{name: None if value != value else plain(value) for name, value in row.items()} for row in rows]


def unpack(meta: dict[str, Any], arrays: dict[str, Array], model: Any) -> Any:
    """Set what was saved on an unfitted model with the saved parameters."""
    coding = unpack_coding(meta)
    nuisance = Nuisance(coding, *(arrays[f"nuisance.{name}"] for name in ("centre", "B_x", "B_y")))
    views = {
        name: ViewScale(list(names), arrays[f"table.{i}.mean"], arrays[f"table.{i}.sd"])
        for i, (name, names) in enumerate(meta["views"].items())
    }
    samples = None if meta["samples"] is None else list(map(unpacked, meta["samples"]))
    of_y, reach = (arrays["table.mean_y"], arrays["table.sd_y"]), arrays.get("table.reach")
    table = Table(views, meta["single"], samples, *of_y, nuisance, reach)
    (kind,) = [kind for kind in ENGINE_ARRAYS if kind.__name__ == meta["engine"]]
    saved: list[Any] = [arrays[f"data.{name}"] for name in ENGINE_ARRAYS[kind]]
    engine: Any = Gram(meta["n"], *saved) if kind is Gram else None
    if kind in (Sparse, SparseGapped):
        engine = kind(_sparse_x(arrays), *saved)
    engine = kind(*saved) if engine is None else engine
    p = len(table.mean_y)
    model._table, model._rows, model._groups = table, _unpack_rows(arrays), arrays.get("groups")
    model._held = saved_folds.unpack(meta.get("held"), arrays, table.encoding)
    d, of_y = table.bounds[-1].stop, meta.get("of_y", 0.0)
    bounds = (*table.bounds, slice(d, d + p)) if of_y else table.bounds
    kind_of_fit = (meta["full"], meta.get("beta_prior", 0.0), of_y, meta.get("coordinates", False))
    model._problem = Problem(engine, meta["n"], p, meta["k"], bounds, *kind_of_fit)
    if "stage1.scales.shape" in arrays:
        plain = Gapped.of(*saved[:5])
        data = Scaled.of_plain(plain, bounds, len(table.bounds))
        u = arrays["stage1.scales.shape"] / arrays["stage1.scales.rate"]
        model._problem = model._problem._replace(data=data.at(u))
    tried = pd.Index(arrays["tried.k"], name="n_factors")
    model.n_factors_path_ = pd.Series(arrays["tried.elbo"], index=tried, name="elbo")
    weights = [model._problem.weight(where) for where in bounds]
    model._stage_1 = _unpack_state("stage1", arrays, weights)
    model._of_features, model.regression_share_ = arrays.get("regression.of_x"), meta.get("regression_share", 0.0)
    if model._of_features is not None:
        model._regression = Regression.of(model.regression_share_, model._of_features, model._stage_1)
    return _unpack_state("now", arrays, weights)


def _sparse_x(arrays: dict[str, Array]) -> SparseX:
    """The matrix of a sparse engine; files of earlier versions have no corrections besides means."""
    S = sparse.csr_matrix(
        tuple(arrays[f"data.{name}"] for name in ("values", "indices", "indptr")),
        shape=(len(arrays["data.indptr"]) - 1, len(arrays["data.mean"])),
    )
    given = (arrays.get(f"data.{name}") for name in ("mean", "weight", "left", "right"))
    return SparseX.of([S], *given)  # type: ignore[arg-type]  # mean and weight are there


def _pack_rows(rows: Any) -> dict[str, Array]:
    """The rows of a fit in memory; of a fit by chunks, only what is known of its covariates."""
    if isinstance(rows, Streamed):
        return {f"tails.{name}": value for name, value in rows.tails._asdict().items()}
    return {f"rows.{name}": value for name, value in vars(rows).items()}


def _unpack_rows(arrays: dict[str, Array]) -> Any:
    if "tails.counts" in arrays:
        return Streamed(None, None, None, Tails(*(arrays[f"tails.{name}"] for name in Tails._fields)))
    return Rows(*(arrays[f"rows.{name}"] for name in ("X", "Y", "C")))


def _pack_state(prefix: str, state: State) -> dict[str, Array]:
    arrays = {f"{prefix}.z.{name}": value for name, value in state.z._asdict().items()} | {f"{prefix}.beta": state.beta}
    for i, view in enumerate(state.views):
        arrays |= {f"{prefix}.{i}.w.{name}": value for name, value in view.w._asdict().items()}
        for name in ("ard", "noise"):
            gamma = getattr(view, name)
            arrays |= {f"{prefix}.{i}.{name}.shape": np.asarray(gamma.shape), f"{prefix}.{i}.{name}.rate": gamma.rate}
    if state.scales is not None:
        arrays |= {f"{prefix}.scales.{name}": value for name, value in state.scales._asdict().items()}
    return arrays


def _unpack_state(prefix: str, arrays: dict[str, Array], weights: list[float]) -> State:
    def gamma(i: int, name: str) -> Gamma:
        shape = arrays[f"{prefix}.{i}.{name}.shape"]
        return Gamma(float(shape) if shape.ndim == 0 else shape, arrays[f"{prefix}.{i}.{name}.rate"])

    with_gaps = f"{prefix}.z.group" in arrays
    of_loadings: Any = grouped.GroupedLoadings if with_gaps else Loadings
    of_factors: Any = grouped.Factors if with_gaps else Factors

    views = tuple(
        View(
            of_loadings(*(arrays[f"{prefix}.{i}.w.{name}"] for name in of_loadings._fields)),
            gamma(i, "ard"),
            gamma(i, "noise"),
            weight,
        )
        for i, weight in enumerate(weights)
    )
    z = of_factors(*(arrays[f"{prefix}.z.{name}"] for name in of_factors._fields))
    scaled = f"{prefix}.scales.shape" in arrays
    scales = Scales(*(arrays[f"{prefix}.scales.{name}"] for name in Scales._fields)) if scaled else None
    return State(z, views, arrays[f"{prefix}.beta"], scales)
