"""A fitted aligner as plain arrays and JSON, and back: the sums of its folds, its coding, and the chosen regime.

Everything else follows from these to the same bits, because nothing after the sums is random.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.linalg import Array
from covalign.aligner.fold_sums import Found
from covalign.closed_form.budget import Budget
from covalign.moments.incomplete import IncompleteMoments, Part, Rows
from covalign.moments.moments import Moments
from covalign.persist.values import pack_coding, plain, unpack_coding
from covalign.tables.confounders import Coding

KIND = "LatentAligner"
SUMS = ("mean_z", "mean_y", "cov_z", "cov_zy", "cov_y")
PATH = ("shrinkage", "alignment", "se")


class Chosen(NamedTuple):
    """The settings of the regime that was solved; parameters may have been changed since."""

    regime: str
    lam: float
    shrinkage: float
    keep_rest: bool
    path: pd.DataFrame | None  # of the shrinkages, where they were compared
    budget: Budget | None = None  # of the exact regime
    scale: str = "raw"  # of the columns, for the ridge
    correction: Array | None = None  # of T_0, by the fitted rows


def pack(model: Any, found: Found, chosen: Chosen | None) -> tuple[dict[str, Any], dict[str, Array]]:
    """Everything needed to transform, to choose another regime, and to go on fitting."""
    arrays: dict[str, Array] = {}
    folds = [_pack_rows(f"fold{i}", rows, arrays) for i, rows in enumerate(found.folds)]
    if found.groups is not None:
        arrays["groups"] = found.groups
    if chosen is not None and chosen.path is not None:
        arrays |= {f"path.{name}": chosen.path[name].to_numpy() for name in PATH}
    if chosen is not None and chosen.correction is not None:
        arrays["correction"] = chosen.correction
    meta = {
        "kind": KIND,
        "parameters": {name: plain(value) for name, value in model.get_params().items()},
        "dtype": found.dtype.name,
        "features": model.n_features_in_,
        "feature_names": list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None,
        "folds": folds,
        "chosen": None if chosen is None else [plain(value) for value in chosen[:4]],
        "scale": "raw" if chosen is None else chosen.scale,
        "path_scales": None if chosen is None or chosen.path is None else chosen.path["scale"].tolist(),
        "budget": None if chosen is None or chosen.budget is None else chosen.budget.packed(),
        **pack_coding(found.coding),
        "reading": model._reading,
    }
    return meta, arrays


def unpack(meta: dict[str, Any], arrays: dict[str, Array], model: Any) -> tuple[Found, Chosen | None]:
    """What ``pack`` packed; the names of features are set on the model."""
    coding = unpack_coding(meta)
    model.n_features_in_ = meta["features"]
    if meta["feature_names"] is not None:
        model.feature_names_in_ = np.array(meta["feature_names"], dtype=object)
    folds = [_unpack_rows(f"fold{i}", saved, arrays, coding) for i, saved in enumerate(meta["folds"])]
    path = pd.DataFrame({name: arrays[f"path.{name}"] for name in PATH}) if "path.se" in arrays else None
    if path is not None:
        path.insert(0, "scale", meta.get("path_scales") or "raw")
    rest = path, Budget.unpacked(meta.get("budget")), meta.get("scale", "raw"), arrays.get("correction")
    chosen = None if meta["chosen"] is None else Chosen._make([*meta["chosen"], *rest])
    return Found(coding, folds, np.dtype(meta["dtype"]), arrays.get("groups")), chosen


def _pack_rows(prefix: str, rows: Rows | None, arrays: dict[str, Array]) -> Any:
    """None for no rows, their number, or for rows with gaps a list of parts: columns, whether they count, number."""
    if rows is None:
        return None
    if isinstance(rows, Moments):
        arrays |= {f"{prefix}.{name}": getattr(rows, name) for name in SUMS}
        return rows.n
    parts = enumerate(rows.parts.items())
    return [[list(part.columns), part.counts, _pack_rows(f"{prefix}.{i}", m, arrays)] for i, (part, m) in parts]


def _unpack_rows(prefix: str, saved: Any, arrays: dict[str, Array], coding: Coding) -> Rows | None:
    if saved is None:
        return None
    names = coding.covariates.names
    if not isinstance(saved, list):
        return _moments(prefix, saved, arrays, names)
    parts = {
        Part(tuple(columns), counts): _moments(f"{prefix}.{i}", n, arrays, [names[c] for c in columns])
        for i, (columns, counts, n) in enumerate(saved)
    }
    return IncompleteMoments(parts, coding.covariates.blocks, tuple(names))


def _moments(prefix: str, n: int, arrays: dict[str, Array], names: list[str]) -> Moments:
    return Moments(n=n, **{name: arrays[f"{prefix}.{name}"] for name in SUMS}, covariate_names=tuple(names))
