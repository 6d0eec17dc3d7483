"""The facts of a report, as plain numbers and text. The page computes only with these facts, and so do the tests.

Everything that a regime does follows from P x P matrices. In T_0's coordinates the fitted rows have a covariance C and
covariances c_p with y_p, whose standard deviation is s_p. A regime is F = unit_rows(f(M)), and then

    corr(z~) = corr(F C F'),    corr(z~_p, y_q) = F_p c_q / (s_q |F_p|_C),    |F_p|_C^2 = F_p C F_p'.

Each fold has an M of its own, fitted without it. Its left-out rows come in parts (``pooled_correlation``): second
moments C, for coupling, and means of z~_p, z~_p^2 and z~_p y_p, for alignment, which are polynomials in lambda.

If covariates have gaps, the rows that have y_p are a group of their own. In a factor model, z are its factors. Its
informed factors before any regime are no function of T_0 z, so they have a T_0 and moments of their own (``stage_1``),
and F is the inverse of this T_0 (``as_fitted``).

With more covariates than dimensions F is the same for every lambda (``directions``, P x k), and a page has no slider.
"""

from __future__ import annotations

import ast
import math
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from covalign._core.linalg import Array, rank_cutoff, to_correlation, unit_rows
from covalign.closed_form import optimum, regimes
from covalign.closed_form.budget import Budget
from covalign.closed_form.heldout import (
    CoupledFold,
    HeldOut,
    LeftOut,
    all_rows,
    coupling_of,
    coupling_on_new_rows,
)
from covalign.closed_form.measures import correlation, quotient
from covalign.closed_form.pooled_correlation import LEVEL, SMALL, VERDICTS, Gain, Pairs, estimate, usual_gain
from covalign.closed_form.regimes import Polar
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments
from covalign.show.report import exact_tradeoff
from covalign.tables.groups import FEW

FORMAT = 3
MANY_COVARIATES = 250  # from which a page has no slider: it would carry more than a million numbers
LEAST_AXES = {"coupling": 0.1, "alignment": 0.1}  # shorter axes would magnify differences that do not matter
AS_FITTED = "as fitted"  # a factor model before it is realigned
EXACT = "exact"  # at(exact=True)
# Regimes that do not depend on lambda, and their matrices.
FIXED = {AS_FITTED: "as_fitted", "exclusive": "M_inverse", EXACT: "F_exact"}


def of_aligner(aligner: Any) -> dict[str, Any]:
    """The facts of a fitted ``LatentAligner``."""
    return {
        **of_estimator(aligner, "aligner", "Z, Y", aligner._held_out(), leave=("regime", "lam")),
        "dimensions": aligner.n_features_in_,
        "shrinkage": aligner.shrinkage_,
        "scale": aligner.scale_,
        "between_covariates": plain(to_correlation(aligner.moments_.cov_y)),
        **exact_tradeoff.of_aligner(aligner),
    }


def of_estimator(
    model: Any, name: str, data: str, held: HeldOut | None, why_not: str | None = None, leave: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The facts that both estimators have; ``name`` and ``data`` are those of the code that fits it."""
    polar, lam = model._polar(), model.lam_
    budget = model._budget if model.regime_ == EXACT else None
    return {
        "format": FORMAT,
        "kind": type(model).__name__,
        "covariates": list(model.covariate_names_),
        "confounders": list(model.confounder_names_),
        "rows": model.n_rows_,
        "groups": model.n_groups_,
        "few_groups": model.n_groups_ is not None and model.n_groups_ < FEW,
        "about_groups": about_groups(model.n_groups_, "samples" if name == "fa" else "rows") if held else None,
        "about_categories": [category["about"] for category in model._categories(model.category_alignment_).values()],
        "pairs": model.n_pairs_.tolist(),
        "least_axes": LEAST_AXES,
        "verdicts": {"names": list(VERDICTS), "small": SMALL},
        "regime": AS_FITTED if model.regime_ is None else model.regime_,
        "lam": 0.5 if lam is None or np.isnan(lam) else float(lam),  # where the slider starts
        "limits": None if budget is None else limits(budget, model.covariate_names_),
        "code": code(model, name, data, leave),
        "parameters": {key: _literal(value, key) for key, value in model.get_params().items()},
        **of_rows(polar, model._fitted_sums().transform(polar.T_0), held, why_not, budget),
    }


def limits(budget: Budget, names: Sequence[str]) -> dict[str, str]:
    """What ``at(exact=True)`` was asked for: as words, as arguments in Python, and as options of ``covalign align``."""
    pairs = [(names[a], names[b]) for a, b in budget.uncoupled]
    words, code, flags = [], [], ["--exact"]
    if math.isfinite(budget.max_coupling):
        words.append(f"a coupling of at most {budget.max_coupling:g}")
        code.append(f"max_coupling={budget.max_coupling!r}")
        flags += ["--max-coupling", f"{budget.max_coupling!r}"]
    if pairs:
        words.append(f"no correlation between {' and between '.join(f'{a} and {b}' for a, b in pairs)}")
        code.append(f"uncoupled={pairs!r}")
        flags += [text for a, b in pairs for text in ("--uncoupled", f"{a},{b}")]
    if budget.weights is not None:
        weighted = {name: float(f"{weight:.4g}") for name, weight in zip(names, budget.weights, strict=True)}
        words.append(f"the weights {', '.join(f'{weight:g} of {name}' for name, weight in weighted.items())}")
        code.append(f"weights={weighted!r}")
        flags += [text for name, weight in weighted.items() for text in ("--weight", f"{name}={weight:g}")]
    return {"words": ", ".join(words), "code": ", ".join([*code, "exact=True"]), "flags": shlex.join(flags)}


def of_rows(
    polar: Polar,
    rows: Rows,
    held: HeldOut | None,
    why_not_held_out: str | None = None,
    budget: Budget | None = None,
) -> dict[str, Any]:
    """The facts behind every regime: for the fitted rows (moments of T_0 Z and Y), and for each left-out fold.

    ``budget`` is that of the exact regime, which is solved for the fitted rows and for each fold.
    """
    folds = [] if held is None else held.folds
    parts = sum(len(of.parts) for of in folds)
    return {
        "why_no_exclusive": regimes.frontier_settings(polar, [1.0])[1],
        "fitted": {**regime(polar, budget), **_judged(rows)},
        "folds": [] if held is None else [_left_out(of, held.origin, regime(of.polar, budget)) for of in folds],
        # By degrees of freedom.
        "quantiles": [None, *student.ppf((1 + LEVEL) / 2, np.arange(1, max(2, parts))).tolist()],
        # Held-out numbers of the exclusive regime need it to exist in every fold.
        "held_out_exclusive": held is not None and held.all_exclusive,
        "why_not_held_out": why_not_held_out,
        "gain": list(usual_gain(len(folds)) if held is None or held.gain is None else held.gain),
        "columns": 0 if held is None else held.columns,
    }


def of_stage_1(polar: Polar, rows: Rows, held: HeldOut | None) -> dict[str, Any]:
    """What ``measured`` needs of a factor model before any regime; T_0 is P x P, that of the informed factors alone."""
    folds = [] if held is None else [_left_out(of, held.origin, as_fitted(of.polar)) for of in held.folds]
    return {"fitted": {**as_fitted(polar), **_judged(rows)}, "folds": folds}


def about_groups(n: int | None, rows: str) -> str | None:
    """The sentence about left-out groups; None if rows were taken as independent."""
    if n is None:
        return None
    found = f"only {n} groups, so little is known about new groups" if n < FEW else f"{n:,} groups"
    return f"{rows.capitalize()} were left out by group; there are {found}."


def regime(polar: Polar, budget: Budget | None = None) -> dict[str, Any]:
    """The matrices that determine F."""
    if polar.crowded:
        return {"M": plain(polar.M), "M_inverse": None, "directions": plain(polar.basis.T)}
    exact = None if budget is None else plain(optimum.largest_alignment(polar.M, budget).mixing)
    inverse = None if polar.M_inverse is None else plain(polar.M_inverse)
    return {"M": plain(polar.M), "M_inverse": inverse, **({} if exact is None else {"F_exact": exact})}


def as_fitted(polar: Polar) -> dict[str, Any]:
    """The matrices that determine F before any regime."""
    return {"M": plain(polar.M), "as_fitted": plain(np.linalg.inv(polar.T_0))}


def _judged(rows: Rows) -> dict[str, Any]:
    return {
        "n": int(rows.n or 0),
        "C": plain(rows.cov_z),
        "groups": [_group(at, seen, rows) for at, seen in rows.pairs],
    }


def _left_out(of: LeftOut, origin: Array, fit: dict[str, Any]) -> dict[str, Any]:
    """A fit without a fold, and what the parts of its left-out rows add to alignment and coupling."""
    if "directions" in fit:
        forms = {"tunable": [np.array(fit["directions"])]}
    else:
        forms = {} if "as_fitted" in fit else {"tunable": [np.eye(len(of.polar.M)), no_zero_rows(of.polar.M)]}
    forms |= {name: [mixing(fit, name, 0.0)] for name, matrix in FIXED.items() if fit.get(matrix) is not None}
    return {
        **fit,
        "known": of.known.tolist(),
        "n_train": of.n_train,
        "parts": [_part(rows, origin, forms) for rows in of.parts],
    }


def _part(rows: Rows, origin: Array, forms: dict[str, list[Array]]) -> dict[str, Any]:
    """Second moments of u = T_0 (z - its mean), and what alignment needs of the rows that have a covariate."""
    u = all_rows(rows)
    groups = []
    for columns, seen in rows.pairs:
        at, y = np.arange(len(origin))[columns], seen.mean_y - origin[columns]
        C, c = seen.cov_z + np.outer(seen.mean_z, seen.mean_z), seen.cov_zy + np.outer(seen.mean_z, y)
        of_y = dict(zip(("y", "yy"), plain([y, np.diag(seen.cov_y) + y**2], 10), strict=True))
        means = {name: _means([F[at] for F in some], seen.mean_z, C, c) for name, some in forms.items()}
        groups.append({"columns": at.tolist(), "n": int(seen.n or 0), **of_y, **means})
    whole = plain(u.cov_z + np.outer(u.mean_z, u.mean_z), 10)
    return {"n": int(u.n or 0), "C": [row[p:] for p, row in enumerate(whole)], "groups": groups}  # from the diagonal on


def _means(forms: list[Array], u: Array, C: Array, c: Array) -> dict[str, Any]:
    """Means of z_p, z_p^2 and z_p y_p, z = sum_i w_i F_i u: the coefficients of w_i, of w_i w_j (i <= j), and of w_i.

    A page that had C and c for the rows of every covariate would be P times as large.
    """
    zz = [(1 + (j > 0)) * np.sum((F @ C) * G, axis=1) for i, F in enumerate(forms) for j, G in enumerate(forms[i:])]
    means = {"z": [F @ u for F in forms], "zz": zz, "zy": [np.sum(F * c.T, axis=1) for F in forms]}
    return {name: plain(values, 10) for name, values in means.items()}


def _group(columns: Any, seen: Moments, rows: Rows) -> dict[str, Any]:
    at = np.arange(len(rows.n_pairs))[columns].tolist()
    shared = seen.cov_z is rows.cov_z
    return {
        "columns": at,
        "C": None if shared else plain(seen.cov_z),  # None: the C of all rows
        "c": plain(seen.cov_zy),
        "s": np.sqrt(np.diag(seen.cov_y)).tolist(),
    }


def has_slider(facts: dict[str, Any]) -> bool:
    """Whether the page computes its numbers, from matrices that it carries."""
    return len(facts["covariates"]) < MANY_COVARIATES and not is_crowded(facts)


def is_crowded(facts: dict[str, Any]) -> bool:
    """Whether covariates are more than the dimensions of Z, so that only the strongest regime exists."""
    return "directions" in facts["fitted"]


def plain(matrix: Any, digits: int = 12) -> Any:
    """A matrix as lists of numbers with so many digits; as it is if no page will carry it."""
    if np.shape(matrix)[-1] >= MANY_COVARIATES:
        return np.asarray(matrix)
    return [[float(f"{value:.{digits}g}") for value in row] for row in np.asarray(matrix, dtype=np.float64).tolist()]


def code(estimator: Any, name: str, data: str, leave: tuple[str, ...] = ()) -> str:
    """Python code that fits the estimator: its class, its parameters that differ from the defaults, its data."""
    kind = type(estimator)
    asked, usual = estimator.get_params(), kind().get_params()
    chosen = {key: value for key, value in asked.items() if key not in leave and value != usual[key]}
    options = [f"{key}={_literal(value, key)}" for key, value in chosen.items()]
    given = f"{data}, confounders=C" if estimator.confounder_names_ else data
    given += "" if estimator.n_groups_ is None else ", groups=groups"
    return f"{name} = ca.{kind.__name__}({', '.join(options)}).fit({given})"


def _literal(value: Any, name: str) -> str:
    """A value as a Python literal; a value without one (a generator) is shown as the name of its parameter."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return name
    return text


def lam_shown(lam: float) -> str:
    """Two digits on the slider's grid, elsewhere enough digits to distinguish lambda from 0 and 1."""
    digits = 2 if abs(100 * lam - round(100 * lam)) < 1e-9 else 3
    while 2 < digits < 12 and round(lam, digits) in (0, 1):
        digits += 1
    return f"λ = {lam:.{digits}f}"


# -- the arithmetic of the page ---------------------------------------------------------------------------------------


def mixing(of: dict[str, Any], regime: str, lam: float) -> Array:
    """F of a regime, for the fitted rows or for a fold."""
    if "directions" in of:
        return np.array(of["directions"])
    if regime in FIXED:
        return unit_rows(np.array(of[FIXED[regime]]))
    return regimes.mixed(np.array(of["M"]), regimes.ENDS.get(regime, lam))


def no_zero_rows(M: Any) -> Array:
    """M, in which a row of zeros p becomes e_p, the limit of (1 - lam) e_p + lam 0."""
    M = np.array(M)
    zero = np.linalg.norm(M, axis=1, keepdims=True) <= rank_cutoff(len(M), 1.0)
    return np.where(zero, np.eye(len(M)), M)


def correlations(of: dict[str, Any], F: Array) -> tuple[Array, Array]:
    """corr(z~, y) (P x P; NaN where y_q does not vary) and corr(z~)."""
    with_y = np.full((len(F), len(F)), np.nan)
    for group in of["groups"]:
        C, c, s = np.array(of["C"] if group["C"] is None else group["C"]), np.array(group["c"]), np.array(group["s"])
        variance = np.sum((F @ C) * F, axis=1)
        with_y[:, group["columns"]] = correlation(F @ c, variance[:, None], s**2, constant=np.nan)
    return with_y, to_correlation(F @ np.array(of["C"]) @ F.T)


def measured(facts: dict[str, Any], regime: str, lam: float) -> dict[str, Any]:
    """All numbers of one setting, as the page shows them."""
    facts = {**facts, **facts["stage_1"]} if regime == AS_FITTED else facts
    with_y, among = correlations(facts["fitted"], mixing(facts["fitted"], regime, lam))
    found = {
        "with_y": with_y,
        "among": among,
        "alignment": np.diag(with_y),
        "coupling": regimes.squared_distance_from_identity(among),
        "held_out": None,
    }
    if facts["folds"] and (regime != "exclusive" or facts["held_out_exclusive"]):
        found["held_out"] = _held_out(facts, regime, lam)
    return found


def _held_out(facts: dict[str, Any], regime: str, lam: float) -> dict[str, Any]:
    folds = facts["folds"]
    mixings = [mixing(of, regime, lam) for of in folds]
    sums = [part for of in folds for part in _pair_sums(of, regime, lam)]
    pairs = Pairs(*np.stack(sums, axis=1))
    fitted = np.mean([np.diag(F @ np.array(of["M"])) for F, of in zip(mixings, folds, strict=True)], axis=0)
    found = estimate(pairs, fitted, len(folds), facts["groups"] is not None, Gain(*facts["gain"]))
    left_out = []
    for F, of in zip(mixings, folds, strict=True):
        n = np.array([float(part["n"]) for part in of["parts"]])
        C = np.array([_symmetric(part["C"]) for part in of["parts"]])
        left_out.append(CoupledFold(n, F @ C @ F.T, F @ F.T, of["n_train"]))
    whole = mixing(facts["fitted"], regime, lam)
    among = coupling_of(whole @ whole.T)
    coupling = coupling_on_new_rows(among, left_out, facts["groups"] is not None, facts["columns"])
    return {**dict(zip(("alignment", "se", "low", "high"), found, strict=True)), "coupling": coupling}


def _symmetric(rows: list[list[float]]) -> Array:
    """A matrix whose rows are given from the diagonal on."""
    upper = np.zeros((len(rows), len(rows)))
    upper[np.triu_indices(len(rows))] = np.concatenate(rows)
    return upper + np.triu(upper, 1).T


def _pair_sums(of: dict[str, Any], regime: str, lam: float) -> list[Array]:
    """The sums of ``Pairs`` of every part of a fold (fields x P)."""
    p, lam = len(of["known"]), regimes.ENDS.get(regime, lam)
    name = regime if regime in FIXED else "tunable"
    w = np.ones(1) if regime in FIXED or "directions" in of else np.array([1 - lam, lam])
    norm = np.ones(p) if len(w) == 1 else np.linalg.norm(w[0] * np.eye(p) + w[1] * no_zero_rows(of["M"]), axis=1)
    pairs_of_w = np.outer(w, w)[np.triu_indices(len(w))]
    made = []
    for part in of["parts"]:
        sums = np.zeros((len(Pairs._fields), p))
        for group in part["groups"]:
            at, n = group["columns"], group["n"]
            of_w, scale = group[name], norm[at]
            z, zy = w @ np.array(of_w["z"]) / scale, w @ np.array(of_w["zy"]) / scale
            zz = pairs_of_w @ np.array(of_w["zz"]) / scale**2
            sums[:, at] = n * np.array([np.ones(len(at)), z, group["y"], zz, group["yy"], zy])
        made.append(np.where(of["known"], sums, 0.0))
    return made


def all_shares(of_view: dict[str, Any], fitted: dict[str, Any], regime: str, lam: float) -> Array:
    """Share of a view's variance by each factor; those of free factors are the same in every regime.

    In the paper's way (``regime_from="model"``) free factors are fitted again, and these are the ones of the model.
    """
    if of_view["live"] is None:
        return np.array(of_view["shares"])
    if regime == AS_FITTED:
        return np.array(of_view["stage_1"])
    return np.array([*shares(of_view["live"], mixing(fitted, regime, lam)), *of_view["free"]])


def shares(of_view: dict[str, Any], F: Array) -> Array:
    """Share of a view's variance by each informed factor: the mean over features of corr(x_d, z~_p)^2.

    Features observed on the same samples share C = M'M there, and Q = sum_d m_d m_d' / x_d'x_d, m_d = M'x_d.
    """
    total = np.zeros(len(F))
    for group in of_view["groups"]:
        with_x, own = (np.sum((F @ np.array(group[name])) * F, axis=1) for name in ("Q", "C"))
        total += quotient(with_x, own)
    return np.asarray(total / max(of_view["varying"], 1))
