"""Gene sets whose loadings on a factor are larger or smaller than those of other genes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.checks import check_choice, check_count
from covalign._core.linalg import Array
from covalign._core.messages import listed, message, shown
from covalign.closed_form.set_tests import TESTS, false_discovery_rates, mean_correlations
from covalign.exceptions import UnmatchedNamesWarning
from covalign.factor import frames
from covalign.factor.inference.patterns import slices
from covalign.factor.inference.row_evidence import intercept
from covalign.tables.gene_sets import Matched, gene_sets, matched, nothing_matches

STATISTICS = ("loading", "ratio")
FIXED = 0.01  # the correlation that the authors of CAMERA take where they do not estimate it
NOT_KEPT = f"the model did not keep its rows, so the correlation of genes is {FIXED}, not that of residuals"
COLUMNS = ["view", "factor", "set", "size", "correlation", "direction", "statistic", "p", "q"]


class Asked(NamedTuple):
    """How sets are tested."""

    method: str
    statistic: str
    correlation: float | None  # None: from residuals
    min_size: int
    max_size: int

    def check(self) -> None:
        """Refuse what is unknown or out of range."""
        check_choice("method", self.method, list(TESTS))
        check_choice("statistic", self.statistic, STATISTICS)
        rho = self.correlation
        if rho is not None and not (isinstance(rho, int | float) and 0 <= rho < 1):
            remedy = f"leave it out to estimate it, or use {FIXED}"
            raise ValueError(message("correlation needs a number from 0 to 1", got=shown(rho), remedy=remedy))
        check_count("min_size", self.min_size)
        check_count("max_size", self.max_size, least=self.min_size, remedy="choose one that is not below min_size")


USUAL = Asked("camera", "loading", None, 5, 500)


class Sets(NamedTuple):
    """The sets that a view can test, and why it cannot test the others."""

    tested: dict[str, Matched]
    left_out: dict[str, str]

    @classmethod
    def of(cls, found: Mapping[str, Matched], n_features: int, asked: Asked) -> Sets:
        """By the number of features that a set has in the view."""
        why: dict[str, str] = {}
        for name, one in found.items():
            size = len(one.members)
            if size < asked.min_size:
                why[name] = f"{size} of {one.given} names are features, fewer than min_size={asked.min_size}"
            elif size > asked.max_size:
                why[name] = f"{size} features, more than max_size={asked.max_size}"
            elif size > n_features - 2:
                why[name] = f"{size} of {n_features} features, so there are no others to compare with"
        return cls({name: one for name, one in found.items() if name not in why}, why)


def enrichment(model: Any, sets: Any, view: str | None, factor: Any, asked: Asked) -> pd.DataFrame:
    """One row for every view, factor and set; ``attrs`` say how they were tested and what was left out."""
    asked.check()
    given, table = gene_sets(sets), model._table
    views = frames.views_of(model, view)
    at = _factors(model, factor)
    found, kept = usable_sets(given, {one: table.views[one].names for one in views}, asked)
    usable = {one: of_view.tested for one, of_view in kept.items() if of_view.tested}
    parts = [_of_view(model, one, at, tested, asked) for one, tested in usable.items()]
    frame = pd.concat(parts, ignore_index=True)
    frame["q"] = frame.groupby("factor", sort=False)["p"].transform(lambda p: false_discovery_rates(p.to_numpy()))
    frame["order"] = frame["factor"].map({model.factor_names_[k]: i for i, k in enumerate(at)})
    frame["of_view"] = frame["view"].map({one: i for i, one in enumerate(views)})
    frame = frame.sort_values(["of_view", "order", "p"], kind="stable", ignore_index=True)[COLUMNS]
    frame.attrs = _about(model, given, found, kept, asked)
    _warn_of_lost_names(usable)
    return frame


def usable_sets(
    given: Mapping[str, list[str]], features: Mapping[str, Sequence[str]], asked: Asked = USUAL
) -> tuple[dict[str, dict[str, Matched]], dict[str, Sets]]:
    """The features of every set in every view, and the sets that can be tested; an error if there are none."""
    found = {view: matched(given, names) for view, names in features.items()}
    if not any(len(one.members) for of_view in found.values() for one in of_view.values()):
        raise nothing_matches(given, features)
    kept = {view: Sets.of(of_view, len(features[view]), asked) for view, of_view in found.items()}
    if not any(of_view.tested for of_view in kept.values()):
        raise _no_set_fits(kept)
    return found, kept


def _factors(model: Any, factor: Any) -> list[int]:
    """Positions of the factors to test; by default of the active ones."""
    active = np.flatnonzero(model.active_factors_).tolist()
    return active if factor is None and active else frames.positions(factor, model.factor_names_)


def _of_view(model: Any, view: str, at: list[int], tested: Mapping[str, Matched], asked: Asked) -> pd.DataFrame:
    members = [one.members for one in tested.values()]
    values = model.loadings_[view][:, at]
    if asked.statistic == "ratio":
        values = values / model.loadings_std_[view][:, at]
    rho, df = np.full(len(members), _fixed(model, asked)), len(values) - 2.0
    if np.isnan(rho).any():
        rho, rows = mean_correlations(partial(residuals, model, view), members)
        df = max(min(df, rows - model._problem.k), 1.0)
    elif asked.method == "rank":
        df = math.inf
    t, p = TESTS[asked.method](values, members, rho, df)
    names, sizes = list(tested), [len(one) for one in members]
    return pd.DataFrame(
        {
            "view": view,
            "factor": np.tile([model.factor_names_[k] for k in at], len(names)),
            "set": np.repeat(np.array(names, dtype=object), len(at)),
            "size": np.repeat(sizes, len(at)),
            "correlation": np.repeat(rho, len(at)),
            "direction": np.select([t > 0, t < 0], ["up", "down"], "none").ravel(),
            "statistic": t.ravel(),
            "p": p.ravel(),
        }
    )


def _fixed(model: Any, asked: Asked) -> float:
    """The correlation that was asked for, or that stands in for residuals; NaN if residuals give it."""
    if asked.correlation is not None:
        return float(asked.correlation)
    return math.nan if model._rows.kept else FIXED


def residuals(model: Any, view: str) -> Iterator[Array]:
    """x - W z of the fitted rows in a view, standardised, in chunks (rows x features), NaN where missing.

    Rows count as they did in the fit, if noise has heavy tails.
    """
    table, at = model._table, list(model._table.views).index(view)
    w, where, z = model._state.views[at].w, table.bounds[at], model.factors_
    weight = np.sqrt(model.sample_weights_[view].to_numpy())[:, None]
    for here, parts, Y, C in model._rows.chunks(table):
        for some in slices(len(Y), table.bounds[-1].stop):
            X = table.standardised({view: parts[view][some]}, None if C is None else C[some])[:, where]
            yield (X - z[here][some] @ w.mean.T - intercept(w)) * weight[here][some]


def _about(model: Any, given: Any, found: Any, kept: Mapping[str, Sets], asked: Asked) -> dict[Any, Any]:
    fixed = _fixed(model, asked)
    unmatched = {
        view: sorted({name for one in of_view.values() for name in one.unmatched}) for view, of_view in found.items()
    }
    about: dict[Any, Any] = {
        "method": asked.method,
        "gene_statistic": asked.statistic,
        "correlation": "residuals" if math.isnan(fixed) else fixed,
        "sets": len(given),
        "unmatched": unmatched,
        "left_out": {view: of_view.left_out for view, of_view in kept.items()},
    }
    return about if asked.correlation is not None or math.isnan(fixed) else {**about, "note": NOT_KEPT}


def _warn_of_lost_names(usable: Mapping[str, Mapping[str, Matched]]) -> None:
    for view, tested in usable.items():
        sets = {name: one for name, one in tested.items() if 2 * len(one.unmatched) > one.given}
        lost = [f"{name} ({one.given - len(one.unmatched)} of {one.given})" for name, one in sets.items()]
        if lost:
            text = f"view {view!r} has less than half of the names of {len(lost)} gene sets: {listed(lost, 3)}"
            why = "the others were not measured, or have other names here"
            warnings.warn(f"{text}; {why}.", UnmatchedNamesWarning, stacklevel=4)


def _no_set_fits(kept: Mapping[str, Sets]) -> ValueError:
    view, why = next((view, of_view.left_out) for view, of_view in kept.items())
    name, first = next(iter(why.items()))
    need, got = (
        "enrichment needs a gene set with min_size to max_size features",
        f"{first} in set {name!r}, view {view!r}, and no other",
    )
    return ValueError(message(need, got=got, remedy="lower min_size or raise max_size"))
