"""What users are told: shapes, numbers, parameters, regimes, simulations and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from covalign._core.validation.base import (
    REGIMES,
    meant,
    some,
)
from covalign.exceptions import DependentCovariatesError, NotFiniteError


def lengths_differ(n_z: int, n_y: int) -> ValueError:
    return ValueError(
        f"Z and Y need the same number of rows (samples), got {n_z} and {n_y}: pass one row of covariates per row of Z."
    )


def not_two_dimensional(name: str, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"{name} needs two dimensions (rows are samples), got shape {shape}: "
        "use array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single row."
    )


def too_few_rows(n: int, least: int = 2) -> ValueError:
    return ValueError(
        f"a covariance needs at least {least} rows (samples), got n_samples = {n}: pass more rows, or more batches."
    )


def too_many_covariates(p: int, k: int) -> ValueError:
    return ValueError(
        f"{p} covariates need at least {p} latent dimensions, got {k}: drop covariates or use a larger embedding."
    )


def too_little_rank(p: int, rank: int, k: int) -> ValueError:
    return ValueError(
        f"{p} covariates need {p} linearly independent latent dimensions; the {k} columns of Z span only {rank} "
        "(constant or duplicated columns, or fewer rows than columns): drop covariates, or add rows."
    )


def not_finite(what: str, column: str) -> NotFiniteError:
    return NotFiniteError(
        f"{what} needs finite numbers, got NaN or infinity (inf) in column {column}: drop or impute those rows first."
    )


def not_numeric(what: str, dtype: Any) -> ValueError:
    return ValueError(
        f"{what} needs real numbers, got values of type {dtype}: convert them, or encode text and categories with "
        "covalign.covariates.encode."
    )


def columns_differ(what: str, need: int, got: int) -> ValueError:
    return ValueError(f"{what} needs {need} columns as before, got {got}: pass the same columns every time.")


def check_lam(lam: Any) -> float:
    """A mixing weight in [0, 1]."""
    if isinstance(lam, Real) and not isinstance(lam, bool) and 0 <= float(lam) <= 1:
        return float(lam)
    raise ValueError(
        f"lam needs a number between 0 (independent) and 1 (strongest), got {lam!r}: choose one in [0, 1]."
    )


def check_regime(regime: Any) -> str:
    """One of the four names."""
    if regime in REGIMES:
        return str(regime)
    raise ValueError(f"regime needs one of {', '.join(REGIMES)}, got {regime!r}: use one of these names.")


def check_shrinkage(shrinkage: Any) -> float | None:
    """A weight in [0, 1], or None for ``"auto"``."""
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return None
    if isinstance(shrinkage, Real) and not isinstance(shrinkage, bool) and 0 <= float(shrinkage) <= 1:
        return float(shrinkage)
    raise ValueError(f'shrinkage needs "auto" or a number in [0, 1], got {shrinkage!r}: use "auto" if in doubt.')


def check_folds(folds: Any) -> int:
    """A number of folds."""
    if isinstance(folds, Integral) and not isinstance(folds, bool) and int(folds) >= 2:
        return int(folds)
    raise ValueError(f"folds needs a whole number of at least 2, got {folds!r}: 5 is a good choice.")


def check_max_coupling(budget: Any) -> float:
    """A coupling budget."""
    if isinstance(budget, Real) and not isinstance(budget, bool) and float(budget) >= 0:
        return float(budget)
    raise ValueError(f"max_coupling needs a number >= 0, got {budget!r}: 0 asks for independent dimensions.")


def check_random_state(state: Any) -> np.random.Generator:
    """A source of random numbers; of numpy's older kind a new one is seeded, which moves it on."""
    if isinstance(state, np.random.RandomState):
        return np.random.default_rng(state.randint(2**32, size=4, dtype=np.uint32))
    try:
        return np.random.default_rng(state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state needs a whole number of at least 0, a numpy Generator or None, got {state!r}: 0 is as good "
            "as any."
        ) from None


def check_permutations(count: Any) -> int:
    """A number of permutations."""
    if isinstance(count, Integral) and not isinstance(count, bool) and int(count) >= 1:
        return int(count)
    raise ValueError(f"n_permutations needs a whole number of at least 1, got {count!r}: 999 is a good choice.")


def which_regime() -> ValueError:
    return ValueError(
        "at() needs one of lam=, regime= or max_coupling=, got none or several that exclude each other: "
        "for example at(lam=0.9), at(regime='exclusive') or at(max_coupling=0.5)."
    )


def no_exclusive(names: Iterable[str]) -> DependentCovariatesError:
    return DependentCovariatesError(
        f"the exclusive regime needs covariates that Z can tell apart, got linearly dependent ones: {some(names, 12)}. "
        "Drop one of them (drop_first=True for the dummies of a category) or use another regime."
    )


def no_steering(names: Iterable[str]) -> DependentCovariatesError:
    return DependentCovariatesError(
        f"steering needs an invertible map, got linearly dependent covariates: {some(names, 12)}. "
        "Use at(lam=...) with lam < 1, or drop one of them."
    )


def singular_transform(names: Iterable[str]) -> str:
    return (
        f"the covariates {some(names, 12)} are linearly dependent as seen from Z, so T_1 is singular: alignment is "
        "unaffected, but it has no exact inverse. Use lam < 1 or drop one of them if you need one."
    )


def least_squares_inverse(why: str) -> str:
    return f"inverse_transform is not exact because {why}: returning the best linear reconstruction of Z."


def unknown_covariates(names: Iterable[str], known: Sequence[str]) -> ValueError:
    wrong = list(names)
    known = list(dict.fromkeys(known))
    hint = meant(wrong, known) or f"choose from {some(known, 10)}."
    return ValueError(f"names need to be covariates of this model, got {some(wrong)}: {hint}")


def feature_names_differ(got: int, need: int) -> ValueError:
    return ValueError(f"input_features should have length equal to number of features ({need}), got {got}.")


def feature_names_not_equal() -> ValueError:
    return ValueError("input_features is not equal to feature_names_in_: pass None or the names seen in fit.")


def not_fitted_yet(n: int) -> ValueError:
    return ValueError(f"an aligner needs at least 2 rows, got {n} so far: call partial_fit with more.")


def unknown_scenario(name: Any, known: Sequence[str]) -> ValueError:
    return ValueError(f"scenario needs one of {', '.join(known)}, got {name!r}: use one of these names.")


def outside_unit_interval(what: str, value: Any) -> ValueError:
    return ValueError(f"{what} needs a number in [0, 1], got {value!r}: 1 is the paper's setting.")


def not_positive(what: str, value: Any) -> ValueError:
    return ValueError(f"{what} needs a positive number, got {value!r}: choose a larger one.")


def not_bounded(what: str, value: Any) -> ValueError:
    return ValueError(f"{what} needs a finite number, got {value!r}: choose a smaller one.")


def arrays_or_moments(first: str, second: str, got: str) -> ValueError:
    return ValueError(
        f"a metric needs {first} and {second}, or one Moments of both, got {got}: pass the two, or the Moments alone."
    )


def constant_dimensions(names: Iterable[str]) -> ValueError:
    return ValueError(
        f"a latent dimension paired with a covariate needs to vary, got a constant in column {some(names)} of Z: "
        "drop it, or use metrics.match to pair covariates with other columns."
    )


def rows_of_features_differ(n_x: int, n_z: int) -> ValueError:
    return ValueError(
        f"X and Z need the same number of rows (samples), got {n_x} and {n_z}: pass one row of factors per row of X."
    )


def too_few_rows_for_folds(n: int, least: int) -> ValueError:
    return ValueError(
        f"a cross-validated metric needs at least {least} rows (samples), got {n}: pass more rows, or a Moments for "
        "the closed form without cross-validation."
    )


def check_variance_kind(kind: Any, with_loadings: bool) -> str:
    """``"marginal"``, or ``"loadings"`` together with W."""
    if kind not in ("marginal", "loadings"):
        raise ValueError(f"kind needs 'marginal' or 'loadings', got {kind!r}: use one of these.")
    if kind == "loadings" and not with_loadings:
        raise ValueError("kind='loadings' needs W (features x factors), got none: pass W=, or use kind='marginal'.")
    if kind == "marginal" and with_loadings:
        raise ValueError("kind='marginal' needs no loadings, got W: leave it out, or use kind='loadings'.")
    return str(kind)


def loadings_shape(need: tuple[int, ...], got: tuple[int, ...]) -> ValueError:
    return ValueError(f"W needs shape {need} (features x factors), got {got}: transpose it, or check X and Z.")


def matched_columns_missing(need: int, got: int) -> ValueError:
    return ValueError(
        f"this matching needs a representation with at least {need} columns, got {got}: pass the Z it was found on."
    )


def unfitted(name: str) -> str:
    return f"this {name} needs data first, got none so far: call fit(Z, Y) or partial_fit(Z, Y)."
