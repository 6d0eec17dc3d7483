"""Facts of a report about a factor model besides its regimes: bound, shares, features, gene sets, samples, gaps."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.closed_form.heldout import HeldOut
from covalign.closed_form.regimes import Polar
from covalign.closed_form.shrinkage import analytic_shrinkage
from covalign.exceptions import CannotHoldOutError
from covalign.factor import ownership, placement
from covalign.factor.fitted_rows import Rows
from covalign.factor.inference.kernel import kernel_of
from covalign.factor.label_free import completed
from covalign.factor.new_samples import Stage
from covalign.factor.table import Table
from covalign.show.report.facts import of_estimator, of_stage_1, plain
from covalign.tables.column_coding import Column

TOP = 10  # features of a factor in a view, and gene sets of a factor
NEGLIGIBLE = 0.01  # of the largest loading in a view: features below are not listed
BELOW = 0.05  # the q of gene sets that are called found
FAR_OFF = 0.25  # samples with a smaller weight: more than four times the usual noise variance
LISTED = 20  # samples that are far off
POINTS = 400  # of the bound's curve
SAMPLES, CELLS = 1000, 60_000  # of the scatter plot; fewer samples if there are more cells
LIVE = 60_000  # numbers from which the page computes shares as the slider moves
FREE = 6  # free factors in the scatter


def of_model(model: Any, gene_sets: Any = None) -> dict[str, Any]:
    """The facts of a fitted ``InformedFactorAnalysis``; with folds, it is fitted again without each of them."""
    model._check_fitted()
    found = None if gene_sets is None else sets(model, gene_sets)
    polar, judged = model._polar(), None
    why_not = None if model.folds else "the model has folds=0"
    try:
        judged = model._judged()
    except CannotHoldOutError as error:
        why_not = str(error)
    held, plain_held = (None, None) if judged is None else judged
    problem = model._problem
    return {
        **of_estimator(model, "fa", "X, y", held, why_not),
        "stage_1": _stage_1(model, plain_held),
        "dimensions": int(problem.k),
        "shrinkage": shrinkage(model),
        "supervision": float(model.supervision_),
        "regression_share": float(model.regression_share_),
        "regime_from": str(model.regime_from),
        "informed": informed(copy(model).set_params(folds=0) if judged is None else model),
        "between_covariates": plain(problem.data.yy / problem.n),
        "factors": {
            "names": list(model.factor_names_),
            "active": [bool(active) for active in model.active_factors_],
            "beta": [float(beta) for beta in model.beta_],
            "bound": bound(model),
            "views": views(model, polar),
            "sets": found,
            "samples": samples(model, polar),
            "weights": weights(model),
            "missing": missing(model),
            "ownership": ownership.sentences(model.ownership_),
        },
    }


def _stage_1(model: Any, held: HeldOut | None) -> dict[str, Any]:
    """The informed factors before any regime."""
    polar, rows = model._plain_polar(), model._fitted_sums()
    first = polar.T_0 @ np.eye(len(polar.T_0), rows.cov_z.shape[0])
    return of_stage_1(polar, rows.transform(first), held)


def shrinkage(model: Any) -> float | None:
    """That of the regimes; None in the paper's way."""
    return None if model.regime_from == "model" else float(analytic_shrinkage(completed(model._label_free.rows)))


def informed(model: Any) -> list[dict[str, Any]]:
    """``informed_``: for each covariate beta, its interval, the held-out alignment and the verdict."""
    frame = model.informed_.reset_index()
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def bound(model: Any) -> dict[str, Any]:
    """The bound of each sweep, thinned to the resolution of a figure; the last value is always kept."""
    curve = model.elbo_
    at = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), POINTS)).round().astype(int))
    return {
        "sweeps": int(model.n_iter_),
        "converged": bool(model.converged_),
        "posterior": str(model.posterior),
        "at": (at + 1).tolist(),
        "values": [float(value) for value in curve[at]],
    }


def views(model: Any, polar: Polar) -> list[dict[str, Any]]:
    """For each view: name, features, shares of all factors, sums for the shares of informed factors, top features."""
    shares, totals = model.variance_explained(), model.total_variance_explained()
    live, p = _live(model, polar), model._problem.p
    first = placement.shares(model._problem, model._stage_1, "marginal")
    free = shares.to_numpy()[:, p:]
    if model.regime_from == "features" and model.regime_ is None:
        free = model.at(0.0).variance_explained().to_numpy()[:, p:]
    made = []
    for at, name in enumerate(model._table.views):
        tops = [model.top_features(k, name, TOP) for k in range(model.n_factors_)]
        least = NEGLIGIBLE * max((float(t["loading"].abs().max()) for t in tops), default=0.0)
        top = [
            [[str(f), float(w), float(s)] for f, w, s in t.itertuples(index=False) if w and abs(w) >= least]
            for t in tops
        ]
        made.append(
            {
                "name": name,
                "features": len(model._table.views[name].names),
                "shares": [float(share) for share in shares.loc[name]],
                "total": float(totals[name]),
                "live": live[at],
                "stage_1": [float(share) for share in first[at]],
                "free": [float(share) for share in free[at]],
                "top": top,
            }
        )
    return made


def _live(model: Any, polar: Polar) -> list[dict[str, Any] | None]:
    """For each view, in T_0's coordinates, by features observed in the same samples: Q and C of ``facts.shares``.

    None if there are more such groups than a page should hold.
    """
    problem, first = model._problem, model._stage_1
    kernel, T_0 = kernel_of(problem), polar.T_0
    p, k = T_0.shape
    zz, group = kernel.centred_products_of_means(problem, first)
    if sum(len(np.unique(group[where])) for where in problem.features) * 2 * p * p > LIVE:
        return [None] * len(problem.features)
    made: list[dict[str, Any] | None] = []
    for where in problem.features:
        xx, xz, _ = kernel.observed_sums(problem, first, where)
        varying = xx > 0
        groups = []
        for g in np.unique(group[where]):
            these = varying & (group[where] == g)
            scaled = xz[these, :k] @ T_0.T / np.sqrt(xx[these])[:, None]
            groups.append({"Q": plain(scaled.T @ scaled), "C": plain(T_0 @ zz[g, :k, :k] @ T_0.T)})
        made.append({"varying": int(varying.sum()), "groups": groups})
    return made


def sets(model: Any, gene_sets: Any) -> dict[str, Any]:
    """``enrichment`` of gene sets: the best sets of every factor, and what was tested and what was not."""
    frame = model.enrichment(gene_sets)
    about: dict[Any, Any] = frame.attrs
    columns = ["set", "view", "size", "direction", "statistic", "p", "q"]
    best = {name: rows.nsmallest(TOP, "p")[columns] for name, rows in frame.groupby("factor", sort=False)}
    return {
        "given": int(about["sets"]),
        "tested": int(frame[["view", "set"]].drop_duplicates().shape[0]),
        "unmatched": {view: len(about["unmatched"][view]) for view in frame["view"].unique()},
        "note": about.get("note"),
        "below": BELOW,
        "found": [int(((frame["factor"] == name) & (frame["q"] < BELOW)).sum()) for name in model.factor_names_],
        "best": [best[name].to_dict("records") if name in best else [] for name in model.factor_names_],
    }


# -- samples ----------------------------------------------------------------------------------------------------------


def samples(model: Any, polar: Polar) -> dict[str, Any] | None:
    """Some samples, evenly spread over the table: T_0 z, the free factors, and covariates for their colours.

    Features alone place them, as they would place new samples: factors that know their covariates would show little
    but these. Only in the paper's way they know them. ``stage_1`` has the factors before any regime.
    """
    if not isinstance(model._rows, Rows):
        return None
    table, rows, p = model._table, model._rows, model._problem.p
    strength = model.variance_explained().to_numpy().max(axis=0)
    free = [k for k in np.argsort(-strength, kind="stable").tolist() if k >= p and model.active_factors_[k]][:FREE]
    columns = 2 * (p + len(free)) + len(table.encoding.columns)
    n = min(len(rows.Y), SAMPLES, max(50, CELLS // columns))
    at = np.unique(np.linspace(0, len(rows.Y) - 1, n).round().astype(int))
    if model.regime_from == "features":
        first = _from_features(model, at)
        moved = first @ model._label_free.map(np.eye(p)).T
    else:
        first, moved = model._means(model._stage_1)[at], model.factors_[at]
    raw = rows.Y[at] * table.sd_y + table.mean_y + table.nuisance.of_y(rows.C[at])
    blocks = [*zip(table.encoding.columns, table.encoding.blocks, strict=True)]
    return {
        "of": len(rows.Y),
        "names": [str(i + 1) if table.samples is None else str(table.samples[i]) for i in at],
        "informed": plain(first[:, : polar.T_0.shape[1]] @ polar.T_0.T, 5),
        "free": [str(model.factor_names_[k]) for k in free],
        "free_values": plain(moved[:, free], 5),
        "stage_1": {"informed": plain(first[:, :p], 5), "free_values": plain(first[:, free], 5)},
        "colours": [{**_colour(column, raw[:, list(block)]), "columns": list(block)} for column, block in blocks],
    }


def _from_features(model: Any, at: NDArray[np.intp]) -> Array:
    """The factors of stage 1 of some fitted samples, from their features alone."""
    table, X, p = model._table, model._rows.X[at], model._problem.p
    parts = {name: X[:, where] for name, where in zip(table.views, table.bounds, strict=True)}
    nobody = np.full((len(at), p), np.nan)
    stage = Stage(model._stage_1, model._sy, np.eye(p), regression=model._regression)
    return stage.place(table.standardised(parts, None), nobody).mean


def weights(model: Any) -> dict[str, Any] | None:
    """Samples that are far off in a view, the farthest first; None if noise is Gaussian: all count 1."""
    if model.noise != "student":
        return None
    frame = model.sample_weights_
    table = frame.to_numpy()
    at, view = np.nonzero(table < FAR_OFF)
    order = np.argsort(table[at, view], kind="stable")
    names = [str(i + 1) if model._table.samples is None else str(model._table.samples[i]) for i in at]
    return {
        "below": FAR_OFF,
        "count": len(set(at.tolist())),
        "of": len(table),
        "samples": [
            {"name": names[i], "view": str(frame.columns[view[i]]), "weight": float(table[at[i], view[i]])}
            for i in order[:LISTED]
        ],
    }


def _colour(column: Column, values: Array) -> dict[str, Any]:
    """A covariate before its coding: numbers, or levels and the level of each sample (None: missing)."""
    gone = np.asarray(np.isnan(values).any(axis=1))
    if column.kind == "number":
        shown: list[Any] = [None if lost else float(f"{v:.5g}") for v, lost in zip(values[:, 0], gone, strict=True)]
        return {"name": column.source, "levels": None, "values": shown}
    if column.kind == "dummies":
        first = len(column.levels) - values.shape[1]  # 1 where the first level has no dummy
        known = np.nan_to_num(values)
        which = np.where(known.max(axis=1) > 0.5, known.argmax(axis=1) + first, 0)
    else:
        which = np.nan_to_num(values[:, 0]).round().astype(int)
    shown = [None if lost else int(level) for level, lost in zip(which, gone, strict=True)]
    return {"name": column.source, "levels": [str(level) for level in column.levels], "values": shown}


# -- gaps -------------------------------------------------------------------------------------------------------------


def missing(model: Any) -> dict[str, Any]:
    """Observed data: for each view its cells, and its samples with and without gaps; which views occur together."""
    table: Table = model._table
    frame, width = model.missing_frame(), len(table.views) + len(table.encoding.columns)
    sizes = frame["samples"].to_numpy()[::width]
    shares, known = np.split(frame["observed"].to_numpy().reshape(-1, width), [len(table.views)], axis=1)
    blocks = zip(table.encoding.blocks, known.T, strict=True)
    return {
        "views": [_of_view(name, share, sizes) for name, share in zip(table.views, shares.T, strict=True)],
        "together": _together(shares > 0, sizes),
        "covariates": [int(sizes[has == 0].sum()) for block, has in blocks for _ in block],
    }


def _of_view(name: str, share: Array, sizes: NDArray[np.int_]) -> dict[str, Any]:
    return {
        "name": name,
        "observed": float(sizes @ share / sizes.sum()),
        "whole": int(sizes[share == 1].sum()),
        "partly": int(sizes[(share > 0) & (share < 1)].sum()),
        "absent": int(sizes[share == 0].sum()),
    }


def _together(has: NDArray[np.bool_], sizes: NDArray[np.int_]) -> list[dict[str, Any]]:
    """Samples by the views they have, the most frequent first."""
    kinds, which = np.unique(has, axis=0, return_inverse=True)
    counts = np.bincount(which.reshape(-1), sizes, len(kinds))
    order = np.argsort(-counts, kind="stable")
    return [{"has": kinds[i].tolist(), "samples": int(counts[i])} for i in order]
