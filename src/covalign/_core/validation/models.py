"""What users are told: informed factor analysis, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.validation.base import some
from covalign.exceptions import CannotBeSavedError, FileFormatError


def no_views() -> ValueError:
    return ValueError("at least one view is needed, got an empty dict: pass X as a table or as name -> table.")


def too_many_factors_asked(p: int, k: int) -> ValueError:
    return ValueError(f"{p} covariates need at least {p} factors, got n_factors = {k}: raise it or drop covariates.")


def unknown_engine(engine: Any) -> ValueError:
    return ValueError(f"engine needs 'auto', 'gram' or 'dense', got {engine!r}: 'auto' takes the cheaper one.")


def unknown_views(names: Iterable[str], known: Sequence[str]) -> ValueError:
    return ValueError(f"views need to be among those fitted ({some(known)}), got {some(names)}: check the names.")


def features_missing(view: str, names: Sequence[str]) -> ValueError:
    return ValueError(f"view {view!r} needs the features of the fit, got a table without {some(names)}: add them.")


def cannot_resume() -> ValueError:
    return ValueError(
        "warm_start needs a model of the same views, features, covariates and factors that was not realigned, got "
        "another: fit without warm_start."
    )


def view_rows_differ(rows: dict[str, int]) -> ValueError:
    got = ", ".join(f"{n} in {name!r}" for name, n in rows.items())
    return ValueError(f"views need the same number of rows (samples), got {got}: pass one row per sample in each.")


def views_not_in_step(where: str) -> ValueError:
    return ValueError(
        f"views that are read in step need the same row names in the same order, got others in {where}: bring them "
        "into one order, or pass DataFrames, which are joined by index."
    )


def batch_views_differ(batch: int, need: Sequence[str], got: Sequence[str]) -> ValueError:
    return ValueError(
        f"every batch needs the views of the first, {some(need)}, got {some(got)} in batch {batch}: yield the same "
        "views every time, in the same order."
    )


def confounders_of_batches() -> ValueError:
    return ValueError(
        "confounders of batches need to be names of columns of Y, got a table: add its columns to the Y of every batch "
        "and pass their names."
    )


def confounders_and_gaps() -> ValueError:
    return ValueError(
        "confounders of data that are read by chunks need complete rows, got missing cells: fill them in, leave these "
        "samples out, or load X into memory."
    )


def too_many_combinations(count: int, limit: int) -> ValueError:
    return ValueError(
        f"gaps of data that are read by chunks need to recur, got {count} combinations of missing cells so far, more "
        f"than fit into {limit / 1e9:.1f} GB: leave out sparsely measured features or fill in single cells, or load X "
        "into memory if there is room."
    )


def rows_not_kept() -> ValueError:
    return ValueError(
        "this needs the rows of the fit, which came as a stream, or were read from a source when the model was fitted "
        "and not saved with it: transform(X, y) gives the factors of any rows."
    )


def nothing_to_report(model: Any) -> ValueError:
    return ValueError(
        f"a report needs a fitted LatentAligner or InformedFactorAnalysis, got {type(model).__name__}: "
        "pass one of these."
    )


def rows_changed(need: int, got: int) -> ValueError:
    return ValueError(
        f"the rows of the fit need to be the same when they are read again, got {got} where there were {need}: fit "
        "again."
    )


def foreign_file(path: Any) -> FileFormatError:
    return FileFormatError(
        f"a model file written by covalign is needed, got {str(path)!r}, which is not one or is damaged (truncated?): "
        "save the model again."
    )


def newer_file(path: Any, version: Any, known: int) -> FileFormatError:
    return FileFormatError(
        f"a model file of format {known} or older is needed, got format {version} in {str(path)!r}: update covalign."
    )


def unknown_model(path: Any, kind: Any) -> FileFormatError:
    return FileFormatError(f"a known kind of model is needed, got {kind!r} in {str(path)!r}: update covalign.")


def cannot_be_saved(value: Any) -> CannotBeSavedError:
    return CannotBeSavedError(
        f"a model file holds text, numbers, flags, dates and intervals, got a {type(value).__name__}"
    )


def levels_cannot_be_saved(column: str, why: Exception) -> CannotBeSavedError:
    return CannotBeSavedError(f"{why} among the levels of {column!r}: fit with .astype(str) of this column, then save.")
