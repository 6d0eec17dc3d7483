"""Experiments on real data: breast cancer multi-omics, and pretrained representations."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.aligner import LatentAligner
from covalign.bridges import datasets
from covalign.closed_form import regimes
from covalign.closed_form.metrics import alignment
from covalign.closed_form.metrics.matching import match
from covalign.closed_form.regimes import Polar
from covalign.factor import InformedFactorAnalysis
from covalign.moments.moments import Moments
from covalign.study import contenders
from covalign.study.baselines import method as face
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Row, Unit, setting
from covalign.study.scores import divisions, explained, explained_by_loadings, plane
from covalign.study.simulations import informed_family
from covalign.study.theory import SHOWN, regimes_of
from covalign.tables.covariates import encode

Rows = NDArray[np.intp]

# -- breast cancer ----------------------------------------------------------------------------------------------------


def tcga_units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """Five folds, each repetition with its own division; nothing without the data."""
    if inputs.tcga is None:
        return []
    units = []
    for rep in range(profile.reps):
        names = [name for name in ("iFA", *contenders.FAST) if rep < contenders.repetitions(name, profile.reps)]
        names += contenders.slow(profile.scaling_factors) if rep < profile.slow_reps else []
        for fold in range(profile.folds):
            at = setting(fold=fold, k=profile.real_k, budget=profile.real_budget)
            units += [Unit("tcga", name, at, rep) for name in names]
    return units


def tcga(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """Alignment, coupling and variance on the rows fitted; for iFA also on the fold left out, without its labels."""
    data = datasets.breast_tcga(inputs.tcga)
    Y = encode(data.covariates, drop_first=False)  # the design of the paper
    fitted, unseen = divisions(Y.to_numpy(), profile.folds, unit.rep)[int(unit.at["fold"])]
    X, new = ({name: view.iloc[rows] for name, view in data.views.items()} for rows in (fitted, unseen))
    views, Y_fitted = face.standardised_views(X, Y.iloc[fitted])
    if unit.method != "iFA":
        (method,) = contenders.chosen([unit.method])
        result = face.run(method, views, Y_fitted, profile.real_k, unit.rep, profile.real_budget)
        yield from plane(unit.method, result.informed, Y_fitted)
        yield from explained(unit.method, views, result.informed, result.factors)
        yield Row(unit.method, "seconds", result.seconds)
        return
    fa = InformedFactorAnalysis(profile.real_k, max_iter=profile.real_budget, random_state=unit.rep)
    p = Y.shape[1]
    for name, model, _ in informed_family(fa, X, Y.iloc[fitted], profile.real_lams):
        informed = model.factors_[:, :p]
        yield from plane(name, informed, Y_fitted)
        yield from explained(name, views, informed, model.factors_)
        yield from explained_by_loadings(name, views, model.factors_, model.loadings_, p)
        placed = np.asarray(model.transform(new))[:, :p]
        yield Row(name, "held-out alignment", alignment(placed, Y.iloc[unseen].to_numpy()))


# -- pretrained representations ---------------------------------------------------------------------------------------


def embedding_units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """Every representation, with new halves in each repetition."""
    reps = min(profile.reps, contenders.FEWER)
    return [Unit("embedding", name, setting(embedding=name), rep) for name in inputs.embeddings for rep in range(reps)]


def embedding(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """Alignment and coupling of every route: fitted to all rows (in sample), and to half of them (the other half)."""
    Z, Y = numbers(datasets.embedding(inputs.embeddings[unit.method]))
    fitted, unseen = halves(len(Z), unit.rep)
    every = np.concatenate([fitted, unseen])
    for label, rows, judged in (("in sample", every, every), ("held out", fitted, unseen)):
        test = Moments.from_arrays(Z[judged], Y[judged])
        for name, T in routes(Z[rows], Y[rows]).items():
            for row in plane(name, test.transform(T)):
                yield row._replace(metric=f"{row.metric}, {label}")


def numbers(data: Any) -> tuple[Array, Array]:
    """The representation and the covariates as arrays."""
    return np.asarray(data.Z, dtype=np.float64), data.covariates.to_numpy(dtype=np.float64)


def halves(n: int, seed: int) -> tuple[Rows, Rows]:
    """Two random halves of n rows."""
    order = np.random.default_rng(seed).permutation(n)
    return order[: n // 2], order[n // 2 :]


def with_shrinkage(Z: Array, Y: Array) -> tuple[Moments, float]:
    """Moments, and the shrinkage that ``LatentAligner`` would choose."""
    al = LatentAligner().fit(Z, Y)
    return al.moments_, al.shrinkage_


def polar_form(m: Moments, shrinkage: float = 0.0) -> Polar:
    """The polar form, without the warning about dependent covariates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return regimes.whitened_polar(m, shrinkage)


def routes(Z: Array, Y: Array) -> dict[str, Array]:
    """T (P x K) of the paper's baselines, of the paper's route (after Procrustes) and of ours (ridge, then exact)."""
    m = Moments.from_arrays(Z, Y)
    k, p = m.cov_zy.shape
    best = match(m)
    chosen = np.zeros((p, k))
    chosen[np.arange(p), best.columns] = best.signs
    rotation = procrustes(m)
    made = {"max-correlation dimensions": chosen, "Procrustes": rotation}
    after, ours = (regimes_of(polar_form(*of)) for of in ((m.transform(rotation),), with_shrinkage(Z, Y)))
    turned = {"Procrustes": {name: T @ rotation for name, T in after.items()}, "ridge": ours}
    for name in SHOWN:
        made |= {f"{route}, then {name}": of[name] for route, of in turned.items() if name in of}
    return made


def procrustes(m: Moments) -> Array:
    """V U' (P x K) with S_zy = U D V', Y standardised: the rotation of Z closest to Y."""
    U, _, Vt = np.linalg.svd(m.cov_zy / np.sqrt(np.diag(m.cov_y)), full_matrices=False)
    return np.asarray((U @ Vt).T)
