"""What users are told: shapes, numbers, parameters, regimes, simulations and metrics."""

from __future__ import annotations


def too_little_rank(p: int, rank: int, k: int) -> ValueError:
    return ValueError(
        f"{p} covariates need {p} linearly independent latent dimensions; the {k} columns of Z span only {rank} "
        "(constant or duplicated columns, or fewer rows than columns): drop covariates, or add rows."
    )


def not_a_covariance(what: str, shape: tuple[int, ...], need: str) -> ValueError:
    return ValueError(f"{what} needs to be {need}, got shape {shape} or values that are not: check the matrix.")


def population_has_no_size() -> ValueError:
    return ValueError("only moments with a number of rows can be merged, got n = None: pass n= to from_covariances.")
