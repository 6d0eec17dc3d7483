"""What users are told: shapes, numbers, parameters, regimes, simulations and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from covalign._core.validation.base import (
    meant,
    some,
)
from covalign.exceptions import DependentCovariatesError


def not_a_covariance(what: str, shape: tuple[int, ...], need: str) -> ValueError:
    return ValueError(f"{what} needs to be {need}, got shape {shape} or values that are not: check the matrix.")


def population_has_no_size() -> ValueError:
    return ValueError("only moments with a number of rows can be merged, got n = None: pass n= to from_covariances.")


def which_regime() -> ValueError:
    return ValueError(
        "at() needs one of lam=, regime= or max_coupling=, got none or several that exclude each other: "
        "for example at(lam=0.9), at(regime='exclusive') or at(max_coupling=0.5)."
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


def unfitted(name: str) -> str:
    return f"this {name} needs data first, got none so far: call fit(Z, Y) or partial_fit(Z, Y)."
