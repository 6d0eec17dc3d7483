"""What users are told: shapes, numbers, parameters, regimes, simulations and metrics."""

from __future__ import annotations


def too_little_rank(p: int, rank: int, k: int) -> ValueError:
    return ValueError(
        f"{p} covariates need {p} linearly independent latent dimensions; the {k} columns of Z span only {rank} "
        "(constant or duplicated columns, or fewer rows than columns): drop covariates, or add rows."
    )
