"""What users are told: covariates, confounders, matching of rows, gaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.validation.base import meant, some


def constant_covariates(names: Iterable[str]) -> ValueError:
    return ValueError(
        f"a covariate needs to vary, got a constant in column {some(names)}: drop it, or fit on rows where it differs."
    )


def missing_values(column: str, count: int, rows: Sequence[Any]) -> ValueError:
    return ValueError(
        f"covariates need complete rows, got {count} missing value(s) (NaN) in column {column!r}, first at row "
        f"{some(rows, 3)}: fill them in, or leave incomplete rows out (missing='drop')."
    )


def too_few_observed(names: Iterable[Any], counts: Iterable[Any]) -> ValueError:
    got = ", ".join(f"{int(count)} in column {str(name)!r}" for name, count in zip(names, counts, strict=True))
    return ValueError(
        f"a covariate needs at least 2 observed rows, got {got} (the rest is missing): drop it, or fill in its values."
    )


def infinite_values(column: str, count: int) -> ValueError:
    return ValueError(
        f"covariates need finite numbers, got {count} infinity (inf) value(s) in column {column!r}: "
        "replace them, or mark them as missing (NaN) and pass missing='pairs' or 'drop'."
    )


def text_without_levels(column: str, distinct: int, n: int) -> ValueError:
    return ValueError(
        f"a covariate needs numbers or categories, got text with {distinct} distinct values in {n} rows in column "
        f"{column!r}: drop it, or use .astype('category') if these really are levels."
    )


def numbers_as_text(column: str, example: Any) -> ValueError:
    return ValueError(
        f"a covariate needs numbers or categories, got numbers stored as text in column {column!r} (such as "
        f"{example!r}): use pandas.to_numeric, or .astype('category') if these are levels."
    )


def unusable_type(column: str, dtype: Any) -> ValueError:
    return ValueError(
        f"a covariate needs numbers, booleans or categories, got {dtype} in column {column!r}: "
        "convert it to a number (for example days since the first visit) or to a category."
    )


def duplicated_columns(names: Iterable[str]) -> ValueError:
    return ValueError(f"covariates need distinct column names, got {some(names)} more than once: rename or drop them.")


def columns_missing(names: Iterable[str], have: Iterable[str]) -> ValueError:
    return ValueError(f"covariates need the columns {some(names)}, got {some(have)}: pass the same columns as in fit.")


def unseen_level(column: str, levels: Iterable[Any]) -> ValueError:
    return ValueError(
        f"column {column!r} needs the levels seen first, got {some(levels)} as well: declare all levels at the start "
        "with pandas.Categorical(values, categories=[...])."
    )


def only_confounders(names: Iterable[str]) -> ValueError:
    return ValueError(
        f"at least one covariate is needed besides the confounders, got only {some(names)}: "
        "leave a column of interest in Y."
    )


def missing_confounder(column: str, count: int) -> ValueError:
    return ValueError(
        f"confounders need a value for every sample, got {count} missing in {column!r}: "
        "fill them in, leave these samples out, or give missing ones a category of their own."
    )


def confounders_needed(names: Iterable[str]) -> ValueError:
    return ValueError(
        f"this model was fitted with confounders ({some(names)}), so new samples need theirs, got none: "
        "pass confounders=."
    )


def no_confounders_fitted() -> ValueError:
    return ValueError(
        "confounders were given, but this model was fitted without any: leave them out, or fit with confounders=."
    )


def rows_without_confounders(names: Sequence[Any]) -> ValueError:
    return ValueError(
        f"every sample needs its confounders, got none for {some(names)}: "
        "add them to the table, or leave these samples out."
    )


def confounder_rows_differ(need: int, got: int) -> ValueError:
    return ValueError(
        f"confounders need one row for each of the {need} samples, got {got}: pass the confounders of these samples."
    )


def confounder_columns_missing(names: Iterable[str], have: Iterable[str]) -> ValueError:
    return ValueError(
        f"confounders need the columns {some(names)} as in fit, got {some(have)}: pass a table with these names."
    )


def confounders_not_in_y(names: Iterable[str], have: Sequence[str]) -> ValueError:
    wrong = list(names)
    hint = meant(wrong, have) or "add them to Y, or pass a table of confounders."
    return ValueError(f"confounders given by name need the columns {some(wrong)}, got {some(have)} in Y: {hint}")


def explained_by_confounders(names: Iterable[str]) -> ValueError:
    return ValueError(
        f"covariates need to vary apart from the confounders, got {some(names)} which follow from them: "
        "drop the covariate, or the confounder."
    )


def no_covariates() -> ValueError:
    return ValueError("at least one covariate is needed, got none: pass Y with one column per covariate.")


def y_required() -> ValueError:
    return ValueError("this estimator requires y to be passed, but the target y is None: pass the covariates as Y.")


def rows_do_not_match(only_z: Sequence[Any], only_y: Sequence[Any]) -> ValueError:
    parts = []
    if len(only_z):
        parts.append(f"{len(only_z)} row name(s) of Z are not in Y ({some(only_z, 3)})")
    if len(only_y):
        parts.append(f"{len(only_y)} row name(s) of Y are not in Z ({some(only_y, 3)})")
    return ValueError(
        f"Z and Y need the same row names (index), got a mismatch: {'; '.join(parts)}. Reindex one to the other, or "
        "pass .to_numpy() to match rows by position."
    )


def duplicated_rows(names: Sequence[Any]) -> ValueError:
    return ValueError(
        f"rows are matched by name and need distinct names, got {some(names, 3)} more than once: make the index "
        "unique, or pass .to_numpy() to match rows by position."
    )


def check_missing(missing: Any) -> str:
    """What to do with incomplete rows."""
    if missing in ("pairs", "raise", "drop"):
        return str(missing)
    raise ValueError(f"missing needs 'pairs', 'raise' or 'drop', got {missing!r}: use one of these.")


def no_common_rows(name: str, got: Sequence[Any], others: Sequence[Any]) -> ValueError:
    return ValueError(
        f"{name} needs samples in common with the other tables, got {some(got, 3)} where they have {some(others, 3)}: "
        "give all tables the same sample names as index."
    )


def features_all_missing(view: str, names: Sequence[str]) -> ValueError:
    return ValueError(f"view {view!r} needs an observed cell in every feature, got none in {some(names)}: drop these.")


def covariate_missing_everywhere(name: str) -> ValueError:
    return ValueError(f"covariate {name!r} needs observed values, got none: drop it, or check the join of the tables.")
