"""Parameters of both estimators: for each one what it may be, in one table. Anything else is refused before a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from covalign._core.checks import (
    as_float,
    check_choice,
    check_chunk_rows,
    check_count,
    check_flag,
    check_folds,
    check_lam,
    check_missing,
    check_number,
    check_random_state,
    check_regime,
    check_shrinkage,
    is_real,
    is_whole,
)
from covalign._core.messages import message, shown

POSTERIORS = ("full", "mean_field", "coordinates")
ENGINES = ("auto", "gram", "dense")
MOST_FACTORS = 100_000
MOST_SWEEPS = 10**9
MOST_SUPERVISION = 1e6


def check_parameters(estimator: Any) -> None:
    """Refuse a parameter of the wrong kind, or out of its range."""
    for name, value in vars(estimator).items():
        check = PARAMETERS.get(name)
        if check is not None:
            check(value)


def check_n_factors(value: Any) -> int | None:
    """A number of factors, or None for ``"auto"``."""
    if isinstance(value, str) and value == "auto":
        return None
    try:
        return check_count("n_factors", value, most=MOST_FACTORS)
    except ValueError:
        need = f'n_factors needs a whole number above 0 (at most {MOST_FACTORS:,}), or "auto"'
        raise ValueError(message(need, got=shown(value), remedy="10 is a good choice")) from None


def check_supervision(value: Any) -> float | None:
    """The weight of the covariates, or None for ``"auto"``."""
    if isinstance(value, str) and value == "auto":
        return None
    large = is_real(value) and as_float(value) > MOST_SUPERVISION
    need = f'supervision needs a number from 1{f" to {MOST_SUPERVISION:,.0f}" if large else ""}, or "auto"'
    return check_number(value, need, "1 is the paper's model", MOST_SUPERVISION, least=1)


def check_regression_share(value: Any) -> float | None:
    """The share of the regression on all features, or None for ``"auto"``."""
    if isinstance(value, str) and value == "auto":
        return None
    return check_number(value, 'regression_share needs a number from 0 to 1, or "auto"', "0 is the model alone", 1.0)


def check_scale(value: Any) -> bool | dict[str, bool]:
    """Whether features are scaled: a flag, or a flag for every view."""
    if isinstance(value, Mapping):
        return {str(view): check_flag(f"scale of view {str(view)!r}", flag) for view, flag in value.items()}
    if isinstance(value, bool | np.bool_):
        return bool(value)
    need, remedy = "scale needs True or False, or a dict of views and these", 'for example scale={"rna": False}'
    raise ValueError(message(need, got=shown(value), remedy=remedy))


def _posterior(value: Any) -> str:
    if isinstance(value, str) and value in POSTERIORS:
        return value
    need, remedy = "posterior needs 'full', 'mean_field' or 'coordinates'", "'full' is the tightest one"
    raise ValueError(message(need, got=shown(value), remedy=remedy))


def _folds(value: Any) -> int:
    """0: nothing is held out."""
    none = is_whole(value) and int(value) == 0
    return 0 if none else check_folds(value)


def _chunk_rows(value: Any) -> int | None:
    return None if value is None else check_chunk_rows(value)


def _random_state(value: Any) -> None:
    if not isinstance(value, np.random.RandomState):  # which would move on
        check_random_state(value)


def _flag(name: str) -> Callable[[Any], bool]:
    return lambda value: check_flag(name, value)


def _count(name: str, least: int, remedy: str) -> Callable[[Any], int]:
    return lambda value: check_count(name, value, least, remedy, MOST_SWEEPS)


def _number(problem: str, remedy: str) -> Callable[[Any], float]:
    return lambda value: check_number(value, problem, remedy, float(np.finfo(np.float64).max))


PARAMETERS: dict[str, Callable[[Any], Any]] = {
    "regime": check_regime,
    "lam": check_lam,
    "shrinkage": check_shrinkage,
    "keep_rest": _flag("keep_rest"),
    "folds": _folds,
    "drop_first": _flag("drop_first"),
    "missing": check_missing,
    "chunk_rows": _chunk_rows,
    "n_factors": check_n_factors,
    "posterior": _posterior,
    "accelerate": _flag("accelerate"),
    "max_iter": _count("max_iter", 1, "2000 is a good choice"),
    "tol": _number("tol needs a number of at least 0", "1e-8 is a good choice"),
    "pretrain_iter": _count("pretrain_iter", 0, "0 is a fit without warm-up"),
    "random_state": _random_state,
    "n_init": _count("n_init", 1, "1 is the start that uses no random numbers"),
    "scale": check_scale,
    "engine": lambda value: check_choice("engine", value, ENGINES),
    "supervision": check_supervision,
    "regression_share": check_regression_share,
    "beta_prior": _number("beta_prior needs a number of at least 0", "0 is flat"),
    "regime_from": lambda value: check_choice("regime_from", value, ("features", "model")),
    "noise": lambda value: check_choice("noise", value, ("gaussian", "student")),
    "precision": lambda value: check_choice("precision", value, ("double", "single")),
}
