"""What users are told: covariates, confounders, matching of rows, gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.validation.base import some


def too_few_observed(names: Iterable[Any], counts: Iterable[Any]) -> ValueError:
    got = ", ".join(f"{int(count)} in column {str(name)!r}" for name, count in zip(names, counts, strict=True))
    return ValueError(
        f"a covariate needs at least 2 observed rows, got {got} (the rest is missing): drop it, or fill in its values."
    )


def y_required() -> ValueError:
    return ValueError("this estimator requires y to be passed, but the target y is None: pass the covariates as Y.")


def features_all_missing(view: str, names: Sequence[str]) -> ValueError:
    return ValueError(f"view {view!r} needs an observed cell in every feature, got none in {some(names)}: drop these.")
