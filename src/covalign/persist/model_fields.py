"""The fields of model files, by kind of model: one list for the aligner, one for the factor model."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from covalign._core.checks import REGIMES
from covalign._core.linalg import Array
from covalign.closed_form.regimes import POWERS
from covalign.persist import values
from covalign.persist.schema import (
    RAW,
    ROUNDING,
    Arrays,
    Check,
    Fault,
    anything,
    check_fields,
    either,
    flag,
    items,
    mapping,
    number,
    one_of,
    optional,
    pattern,
    scalar,
    several,
    text,
    whole,
)
from covalign.tables.name_rules import MATCHES
from covalign.tables.representations import SINGLE

SOLVED = one_of(*REGIMES, "exact")
SCALE = one_of(*POWERS)
UNIT = number(0, 1)
MOST_BETA = 1 - 2**-53  # arctanh needs |beta| < 1
KINDS = one_of("number", "binary", "ordered", "dummies")


def level(value: Any) -> None:
    """A level or label: one value, or an object that names its type."""
    if isinstance(value, dict):
        one_of(*values.KINDS)(next(iter(value), None) if len(value) == 1 else None)
    else:
        scalar(value)


COLUMN = items(text, KINDS, several(level), several(text))
CODING: dict[str, Check] = {"encoding": several(COLUMN), "confounders": several(COLUMN), "confounders_in_y": flag}
NO_ROWS_OR_N = optional(whole(1))
READING: dict[str, Check] = {
    "transpose": several(text),
    "match": one_of(*MATCHES),
    "strip": pattern,
    "na": several(text),
    "log": several(text),
    "index": text,
    "key": text,
    "columns": mapping(several(whole(0), distinct=True)),
}
ALIGNER: dict[str, Check] = {
    **CODING,
    "dtype": one_of("float32", "float64"),
    "features": whole(1),
    "feature_names": optional(several(text, distinct=True)),
    "folds": several(either(NO_ROWS_OR_N, several(items(several(whole(0), distinct=True), flag, whole(1))))),
    "chosen": optional(items(SOLVED, number(0, 1, gap=True), UNIT, flag)),
    "scale": SCALE,
    "path_scales": optional(several(SCALE)),
    "budget": optional(items(optional(number(0)), optional(several(number(0))), several(items(whole(0), whole(0))))),
    "reading": optional(mapping(anything)),
}
OF_ALIGNER: dict[str, Check] = {
    "regime": SOLVED,
    "lam": UNIT,
    "shrinkage": either(one_of("auto"), UNIT),
    "keep_rest": flag,
    "folds": whole(0),
    "drop_first": flag,
    "missing": one_of("pairs", "drop", "raise"),
    "chunk_rows": optional(whole(1)),
    "precision": one_of("double", "single"),
}
ENGINES = ("Gram", "Dense", "Sparse", "Gapped", "SparseGapped")
FACTOR: dict[str, Check] = {
    **CODING,
    "engine": one_of(*ENGINES),
    "n": whole(1),
    "k": whole(1),
    "full": flag,
    "coordinates": flag,
    "of_y": number(0),
    "regression_share": number(0, 1),
    "beta_prior": number(0),
    "views": mapping(several(text)),
    "single": flag,
    "samples": optional(several(level)),
    "converged": flag,
    "realigned": optional(items(SOLVED, number(0, 1, gap=True))),
    "informed": optional(several(mapping(scalar))),
    "held": optional(mapping(anything)),
    "reading": optional(mapping(anything)),
}
HELD: dict[str, Check] = {"folds": whole(1), "why_not": optional(text)}
OF_FACTOR: dict[str, Check] = {
    "n_factors": either(one_of("auto"), whole(1)),
    "posterior": one_of("full", "mean_field", "coordinates"),
    "accelerate": flag,
    "max_iter": whole(1),
    "tol": number(0),
    "pretrain_iter": whole(0),
    "random_state": scalar,
    "n_init": whole(1),
    "scale": either(flag, mapping(flag)),
    "engine": one_of("auto", "gram", "dense"),
    "drop_first": flag,
    "folds": whole(0),
    "chunk_rows": optional(whole(1)),
    "supervision": either(one_of("auto"), number(1)),
    "beta_prior": number(0),
    "regime_from": one_of("features", "model"),
    "noise": one_of("gaussian", "student"),
    "regression_share": either(one_of("auto"), number(0, 1)),
}
HEAD: dict[str, Check] = {"kind": text, "covalign": text, "parameters": mapping(anything)}


def check_aligner(meta: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Check every field of the file of an aligner."""
    added = ("scale", "path_scales", "budget", "reading")  # by later versions
    _check_meta(meta, ALIGNER, OF_ALIGNER, added)
    p, q = _coded(meta)
    k = meta["features"] + q
    if meta["feature_names"] is not None and len(meta["feature_names"]) != meta["features"]:
        raise Fault("feature_names", f"needs {meta['features']} names")
    if all(saved is None for saved in meta["folds"]):
        raise Fault("folds", "needs rows")
    for i, saved in enumerate(meta["folds"]):
        parts = enumerate(saved) if isinstance(saved, list) else ()
        if saved is not None and not isinstance(saved, list):
            _check_moments(arrays, f"fold{i}", k, p)
        for j, (columns, _, _) in parts:
            if columns and max(columns) >= p:
                raise Fault("folds", f"needs columns below {p}")
            _check_moments(arrays, f"fold{i}.{j}", k, len(columns))
    found = Arrays(arrays, {})
    if "groups" in arrays:
        found.raw("groups", "groups")
    if "correction" in arrays:
        Arrays(arrays, {"p": p}).numbers("correction", "p p", low=-2, high=2)
    if "path.se" in arrays:
        found.numbers("path.shrinkage", "path", low=0, high=1)
        for name in ("path.alignment", "path.se"):
            found.numbers(name, "path", gaps=True)
        scales = meta.get("path_scales")
        if scales is not None and len(scales) != found.size("path"):
            raise Fault("path_scales", f"needs {found.size('path')} items")
    _check_budget(meta, p)
    _check_reading(meta, {SINGLE: meta["features"]})


def check_factor(meta: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Check every field of the file of a factor model."""
    added = ("coordinates", "of_y", "regression_share", "beta_prior", "informed", "held", "reading")
    _check_meta(meta, FACTOR, OF_FACTOR, added)
    p, q = _coded(meta)
    n, k, features = meta["n"], meta["k"], [len(names) for names in meta["views"].values()]
    if not features or min(features) < 1:
        raise Fault("views", "needs views with features")
    if meta["single"] and len(features) > 1:
        raise Fault("single", "needs one view")
    if k < p:
        raise Fault("k", f"needs at least {p} factors")
    if meta["samples"] is not None and len(meta["samples"]) != n:
        raise Fault("samples", f"needs {n} names")
    d = sum(features)
    of_views = [*features, p] if meta.get("of_y", 0.0) else features
    sizes = {"n": n, "k": k, "p": p, "q": q, "d": d, "D": sum(of_views), "n+1": n + 1, "scaled": len(features)}
    found = Arrays(arrays, sizes)
    _check_table(found, features, arrays)
    _check_data(found, meta["engine"])
    for prefix in ("now", "stage1"):
        _check_state(found, prefix, of_views, gaps=meta["engine"].endswith("Gapped"))
    if "table.reach" in arrays:
        found.numbers("table.reach", "d", low=0)
    if "regression.of_x" in arrays:
        found.numbers("regression.of_x", "d p")
    if ("regression.of_x" in arrays) != (meta.get("regression_share", 0.0) > 0):
        raise Fault("regression_share", "needs coefficients, or none")
    scaled = meta["parameters"].get("noise") == "student"
    if any((f"{prefix}.scales.dof" in arrays) != scaled for prefix in ("now", "stage1")):
        raise Fault("parameters.noise", "needs scales of samples, or none")
    if scaled and (meta["engine"] != "Gapped" or found.size("m") != n):
        raise Fault("engine", "needs rows")
    if meta["realigned"] is not None:
        found.numbers("realigned.T", "p k" if "realigned.R" in arrays else "p p")
        if "realigned.R" in arrays:
            found.numbers("realigned.R", "k k")
    _check_held(meta, arrays, {"p": p, "k": k})
    _check_reading(meta, dict(zip(meta["views"], features, strict=True)))


CHECKS = {"LatentAligner": check_aligner, "InformedFactorAnalysis": check_factor}


def _check_meta(
    meta: dict[str, Any], fields: dict[str, Check], parameters: dict[str, Check], added: tuple[str, ...]
) -> None:
    needed = [name for name in (*HEAD, *fields) if name not in (*added, "covalign")]
    check_fields(meta, HEAD | fields, needed=needed)
    unknown = [name for name in meta["parameters"] if name not in parameters]
    if unknown:
        raise Fault("parameters", f"has {unknown[0]!r}, which is unknown")
    check_fields(meta["parameters"], parameters, "parameters.")


def _coded(meta: dict[str, Any]) -> tuple[int, int]:
    """How many columns covariates and confounders have, after a check that their names are distinct and levels fit."""
    for what in ("encoding", "confounders"):
        names = list(chain.from_iterable(column[3] for column in meta[what]))
        if len(set(names)) != len(names):
            raise Fault(what, "needs distinct names")
        for source, kind, levels, own in meta[what]:
            least, most = {"number": (1, 1), "binary": (1, 1), "ordered": (1, 1)}.get(kind, (1, len(levels)))
            fits = least <= len(own) <= most and (kind != "binary" or len(levels) == 2)
            if not fits or (kind == "dummies" and len(own) < len(levels) - 1):
                raise Fault(what, f"has a column {source!r} whose names do not fit its levels")
    if not meta["encoding"]:
        raise Fault("encoding", "needs a covariate")
    if meta["confounders_in_y"] and not meta["confounders"]:
        raise Fault("confounders_in_y", "needs confounders")
    return tuple(sum(len(column[3]) for column in meta[what]) for what in ("encoding", "confounders"))  # type: ignore[return-value]  # two


def _check_moments(arrays: dict[str, Array], prefix: str, k: int, p: int) -> None:
    found = Arrays(arrays, {"k": k, "p": p})
    means = [found.raw(f"{prefix}.mean_z", "k"), found.raw(f"{prefix}.mean_y", "p")]
    z, y = (ROUNDING * np.max(np.abs(mean), initial=0.0) ** 2 for mean in means)
    S_z, S_y = found.covariance(f"{prefix}.cov_z", "k k", z), found.covariance(f"{prefix}.cov_y", "p p", y)
    S_zy = found.numbers(f"{prefix}.cov_zy", "k p", low=-(RAW**2), high=RAW**2)
    sd_z, sd_y = (np.sqrt(np.maximum(np.diag(S), 0.0)) for S in (S_z, S_y))
    found.within(f"{prefix}.cov_zy", S_zy, np.outer(sd_z, sd_y), np.sqrt(z * y))


def _check_budget(meta: dict[str, Any], p: int) -> None:
    chosen, budget = meta["chosen"], meta.get("budget")
    if budget is None:
        if chosen is not None and chosen[0] == "exact":
            raise Fault("budget", "is missing")
        return
    _, weights, pairs = budget
    if weights is not None and (len(weights) != p or min(weights) <= 0):
        raise Fault("budget", f"needs {p} weights above 0")
    if any(a >= b or b >= p for a, b in pairs):
        raise Fault("budget", f"needs pairs of two covariates below {p}")


def _check_held(meta: dict[str, Any], arrays: dict[str, Array], sizes: dict[str, int]) -> None:
    """The fits without each fold: regimes of all factors, and the informed factors as they were fitted (P x P)."""
    held = meta.get("held")
    if held is None:
        return
    check_fields(held, HELD, "held.", needed=[*HELD])
    if held["why_not"] is not None:
        return
    k = sizes["k"] if meta["parameters"].get("regime_from") == "features" else sizes["p"]
    for place, wide in (("in_regimes", k), ("plain", sizes["p"])):
        _check_left_out(Arrays(arrays, {**sizes, "k": wide}), f"held.{place}.")


def _check_left_out(found: Arrays, prefix: str) -> None:
    M = found.numbers(f"{prefix}M", "folds p p")
    if len(M) == 0:
        raise Fault(f"{prefix}M", "needs a fold")
    T_0 = found.numbers(f"{prefix}T_0", "folds p k")
    if T_0.shape[1] == T_0.shape[2] and not np.all(np.linalg.cond(T_0) < 1 / np.finfo(float).eps):
        raise Fault(f"{prefix}T_0", "needs matrices that are invertible")
    found.numbers(f"{prefix}M_inverse", "folds p p")
    found.flags(f"{prefix}invertible", "folds")
    found.whole(f"{prefix}n_train", "folds", 1)
    fold = found.whole(f"{prefix}fold", "parts", 0, len(M))
    part = found.whole(f"{prefix}part", "pieces", 0, len(fold))
    counts = found.flags(f"{prefix}counts", "pieces")
    for name, least, there in (("fold", len(M), fold), ("part", len(fold), part[counts])):
        if len(np.unique(there)) < least:
            raise Fault(f"{prefix}{name}", f"needs all of {least}")
    found.flags(f"{prefix}has", "pieces p")
    found.whole(f"{prefix}n", "pieces", 1)
    means = [found.raw(f"{prefix}mean_{of}", "pieces p") for of in "zy"]
    z, y = (ROUNDING * np.max(np.abs(mean), initial=0.0) ** 2 for mean in means)
    S_z, S_y = (
        found.covariance(f"{prefix}cov_{of}", "pieces p p", slack) for of, slack in zip("zy", (z, y), strict=True)
    )
    sd_z, sd_y = (np.sqrt(np.maximum(np.diagonal(S, axis1=1, axis2=2), 0.0)) for S in (S_z, S_y))
    S_zy = found.numbers(f"{prefix}cov_zy", "pieces p p", low=-(RAW**2), high=RAW**2)
    found.within(f"{prefix}cov_zy", S_zy, sd_z[:, :, None] * sd_y[:, None, :], np.sqrt(z * y))


def _check_reading(meta: dict[str, Any], views: dict[str, int]) -> None:
    """How tables were read; ``views`` has the number of features of each."""
    reading = meta.get("reading") or {}
    check_fields(reading, READING, "reading.")
    for name in (*reading.get("transpose", ()), *reading.get("log", ())):
        if name not in views:
            raise Fault("reading", f"has {name!r}, which is no view")
    for name, columns in reading.get("columns", {}).items():
        if len(columns) != views.get(name):
            raise Fault("reading.columns", "needs a column for every feature")


def _check_table(found: Arrays, features: list[int], arrays: dict[str, Array]) -> None:
    found.numbers("elbo", "sweeps")
    found.whole("tried.k", "tried", 1)
    found.numbers("tried.elbo", "tried", gaps=True)
    if "groups" in arrays:
        found.raw("groups", "n")
    for name, shape in (("centre", "q"), ("B_x", "q d"), ("B_y", "q p")):
        found.raw(f"nuisance.{name}", shape)
    found.raw("table.mean_y", "p")
    found.positive("table.sd_y", "p", RAW)
    for i, size in enumerate(features):
        found.sizes[f"d{i}"] = size
        found.raw(f"table.{i}.mean", f"d{i}")
        found.positive(f"table.{i}.sd", f"d{i}", RAW)
    if "tails.counts" in arrays:
        found.numbers("tails.kurtosis", "p", low=0)
        found.numbers("tails.counts", "p", low=0)
    else:
        found.raw("rows.X", "n d", gaps=True)
        found.raw("rows.Y", "n p", gaps=True)
        found.raw("rows.C", "n q")


def _check_data(found: Arrays, engine: str) -> None:
    if engine == "Gram":
        found.covariance("data.gram", "D D")
        found.numbers("data.xy", "D p")
        found.covariance("data.yy", "p p")
    elif engine == "Dense":
        found.numbers("data.X", "n D")
        found.numbers("data.Y", "n p")
    elif engine.startswith("Sparse"):
        found.raw("data.values", "stored")
        found.whole("data.indices", "stored", 0, found.size("D"))
        indptr = found.whole("data.indptr", "n+1", 0)
        if indptr[0] != 0 or indptr[-1] != found.size("stored") or np.any(np.diff(indptr.astype(np.int64)) < 0):
            raise Fault("data.indptr", "needs the rows of data.values")
        found.raw("data.mean", "D")
        found.numbers("data.weight", "D", low=0, high=RAW)
        if "data.left" in found.arrays:
            found.raw("data.left", "n corrections")
            found.raw("data.right", "corrections D")
    else:
        found.numbers("data.X", "m D")
    if engine == "Sparse":
        found.numbers("data.Y", "n p")
    if engine == "SparseGapped":
        found.sizes["m"] = found.size("n")
        found.flags("data.observed", "m V")
        found.whole("data.view_of", "D", 0, found.size("V"))
    if engine == "Gapped":
        found.flags("data.observed", "m D")
    if engine.endswith("Gapped"):
        found.numbers("data.Y", "m p")
        found.flags("data.has_y", "m p")
        found.covariance("data.S_y", "p p")
        found.numbers("data.one", "m")
        found.positive("data.sizes", "c")


def _check_state(found: Arrays, prefix: str, of_views: list[int], *, gaps: bool) -> None:
    found.numbers(f"{prefix}.beta", "p", low=-MOST_BETA, high=MOST_BETA)
    if gaps:
        for name, shape in (("mean", "m k"), ("sums", "H k"), ("zy_held", "k p"), ("excess", "p")):
            found.numbers(f"{prefix}.z.{name}", shape)
        for name, shape in (("cov", "c k k"), ("covs", "H k k"), ("total", "k k"), ("means", "H k k")):
            found.covariance(f"{prefix}.z.{name}", shape)
        found.whole(f"{prefix}.z.group", "m", 0, found.size("c"))
    else:
        found.numbers(f"{prefix}.z.of_x", "D k")
        found.numbers(f"{prefix}.z.of_y", "p k")
        found.covariance(f"{prefix}.z.cov", "k k")
    found.covariance(f"{prefix}.z.zz", "k k")
    found.numbers(f"{prefix}.z.xz", "D k")
    found.numbers(f"{prefix}.z.zy", "k p")
    if f"{prefix}.scales.dof" in found.arrays:
        found.positive(f"{prefix}.scales.shape", "n scaled")
        found.positive(f"{prefix}.scales.rate", "n scaled")
        found.positive(f"{prefix}.scales.dof", "scaled")
    for i, size in enumerate(of_views):
        found.sizes[f"d{i}"] = size
        _check_view(found, f"{prefix}.{i}", f"d{i}", gaps=gaps)


def _check_view(found: Arrays, prefix: str, d: str, *, gaps: bool) -> None:
    found.numbers(f"{prefix}.w.mean", f"{d} k")
    found.positive(f"{prefix}.w.scale", f"{d} k")
    if gaps:
        h = f"patterns of {prefix}".replace(" ", "_")
        found.numbers(f"{prefix}.w.V", f"{h} k k")
        found.whole(f"{prefix}.w.group", d, 0, found.size(h))
        found.whole(f"{prefix}.w.patterns", h, 0, found.size("H"))
        found.numbers(f"{prefix}.w.intercept", d)
    else:
        found.numbers(f"{prefix}.w.V", "k k")
    for name, size in (("ard", "k"), ("noise", d)):
        shape = f"{prefix}.{name}.shape"
        found.positive(shape, "" if found.arrays.get(shape, np.zeros(1)).ndim == 0 else size)
        found.positive(f"{prefix}.{name}.rate", size)
