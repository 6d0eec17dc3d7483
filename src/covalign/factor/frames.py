"""A fitted model as tables, for figures and for other tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.checks import check_count, check_selection
from covalign._core.data_errors import unknown_views
from covalign._core.linalg import Array
from covalign._core.messages import listed, message
from covalign.factor.inference.patterns import Gapped

Flags = NDArray[np.bool_]


def factors(model: Any) -> pd.DataFrame:
    """Samples x factors."""
    samples = model._table.samples
    index = None if samples is None else pd.Index(samples)
    return pd.DataFrame(model.factors_, index=index, columns=model.factor_names_, copy=True)


def bound(elbo: Array, converged: bool) -> pd.DataFrame:
    """One row per sweep: sweep, elbo, below_end (nats below the last), converged (by then)."""
    sweeps = np.arange(1, len(elbo) + 1)
    by_then = (sweeps == len(elbo)) & converged
    return pd.DataFrame({"sweep": sweeps, "elbo": elbo, "below_end": elbo[-1] - elbo, "converged": by_then})


# -- loadings ---------------------------------------------------------------------------------------------------------


def loadings(model: Any, factors: Any, views: Any, n: int | None) -> pd.DataFrame:
    """One row per view, feature and factor: view, feature, factor, loading, std."""
    at, chosen = positions(factors, model.factor_names_), views_of(model, views)
    if n is not None:
        check_count("n", n)
    names = [model.factor_names_[k] for k in at]
    parts = []
    for view in chosen:
        W, std = model.loadings_[view][:, at], model.loadings_std_[view][:, at]
        kept = np.arange(len(W)) if n is None else top_rows(W, n)
        features = np.array(model._table.views[view].names, dtype=object)[kept]
        part = {"view": view, "feature": np.repeat(features, len(at)), "factor": np.tile(names, len(kept))}
        parts.append(pd.DataFrame({**part, "loading": W[kept].ravel(), "std": std[kept].ravel()}))
    return pd.concat(parts, ignore_index=True)


def top_features(model: Any, factors: Any, views: Any, n: int) -> pd.DataFrame:
    """The n features with the largest |loading| of each view and factor: view, factor, rank, feature, loading, std."""
    check_count("n", n)
    parts = []
    for view in views_of(model, views):
        names = np.array(model._table.views[view].names, dtype=object)
        for k in positions(factors, model.factor_names_):
            loading, std = model.loadings_[view][:, k], model.loadings_std_[view][:, k]
            order = np.argsort(-np.abs(loading), kind="stable")[:n]
            part = {"view": view, "factor": model.factor_names_[k], "rank": np.arange(1, len(order) + 1)}
            found = {"feature": names[order], "loading": loading[order], "std": std[order]}
            parts.append(pd.DataFrame({**part, **found}))
    return pd.concat(parts, ignore_index=True)


def views_of(model: Any, views: Any) -> list[str]:
    """Names of views, given as one or several; None for all."""
    known = list(model._table.views)
    chosen = known if views is None else [str(view) for view in check_selection("views", views)]
    if set(chosen) - set(known):
        raise unknown_views([view for view in chosen if view not in known], known)
    return chosen


def positions(factors: Any, names: Sequence[str]) -> list[int]:
    """Of factors given by name or position, one or several; None for all."""
    if factors is None:
        return list(range(len(names)))
    asked = check_selection("factors", factors)
    wrong = [f for f in asked if f not in names and not (_is_position(f) and -len(names) <= f < len(names))]
    if wrong:
        known = [str(name) for name in names]
        text = f"this model has no factor {listed(wrong)}"
        remedy = f"Its factors are {listed(known, 10)}, or give positions"
        raise ValueError(message(text, remedy=remedy, wrong=wrong, known=known))
    return [range(len(names))[f] if _is_position(f) else list(names).index(f) for f in asked]


def _is_position(factor: Any) -> bool:
    return isinstance(factor, int | np.integer) and not isinstance(factor, bool)


def top_rows(W: Array, n: int) -> NDArray[np.intp]:
    """Rows among the n largest |w| of any column: by the column where they are largest, there the largest first."""
    size = np.abs(W)
    kept = np.unique(np.argsort(-size, axis=0, kind="stable")[:n])
    at = size[kept].argmax(axis=1)
    return kept[np.lexsort((kept, -size[kept, at], at))]


# -- gaps -------------------------------------------------------------------------------------------------------------


def missing(model: Any) -> pd.DataFrame:
    """One row per pattern of gaps and table: pattern, samples, kind, name, observed."""
    table, problem = model._table, model._problem
    if isinstance(problem.data, Gapped):
        data: Gapped = problem.data
        first = np.unique(data.samples[0], return_index=True)[1]
        cells, has_y, sizes = data.cells_of(first), data.has_y[first], data.sizes
    else:
        cells, has_y = np.ones((1, table.bounds[-1].stop), dtype=bool), np.ones((1, problem.p), dtype=bool)
        sizes = np.array([float(problem.n)])
    views = np.column_stack([cells[:, where].mean(axis=1) for where in table.bounds])
    known = np.column_stack([has_y[:, block[0]] for block in table.encoding.blocks])
    names = [*table.views, *(column.source for column in table.encoding.columns)]
    kinds = ["view"] * views.shape[1] + ["covariate"] * known.shape[1]
    return patterns(np.hstack([views, known.astype(float)]), sizes, names, kinds)


def patterns(shares: Array, sizes: Array, names: Sequence[str], kinds: Sequence[str]) -> pd.DataFrame:
    """Shares observed (rows x tables), rows of the same gaps (nothing, something, all) put together; frequent first."""
    state = np.where(shares == 1, 2, np.where(shares > 0, 1, 0))
    distinct, of = np.unique(state, axis=0, return_inverse=True)
    of = of.reshape(-1)
    counts = np.bincount(of, sizes, len(distinct))
    means = np.stack([np.bincount(of, sizes * share, len(distinct)) for share in shares.T], axis=1) / counts[:, None]
    order = np.lexsort((*(-distinct.T[::-1]), -counts))  # among equally frequent ones the more complete first
    width = len(names)
    return pd.DataFrame(
        {
            "pattern": np.repeat(np.arange(len(order)), width),
            "samples": np.repeat(counts[order].round().astype(int), width),
            "kind": np.tile(np.array(kinds, dtype=object), len(order)),
            "name": np.tile(np.array(names, dtype=object), len(order)),
            "observed": np.where(distinct[order] == 2, 1.0, means[order]).ravel(),
        }
    )
