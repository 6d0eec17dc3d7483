"""What users are told: informed factor analysis, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.validation.base import meant, some
from covalign.exceptions import CannotBeSavedError, CannotHoldOutError, FileFormatError


def no_views() -> ValueError:
    return ValueError("at least one view is needed, got an empty dict: pass X as a table or as name -> table.")


def too_many_factors_asked(p: int, k: int) -> ValueError:
    return ValueError(f"{p} covariates need at least {p} factors, got n_factors = {k}: raise it or drop covariates.")


def number_of_factors(got: Any) -> ValueError:
    return ValueError(f'n_factors needs a whole number above 0, or "auto", got {got!r}: choose one of these.')


def unknown_posterior(posterior: Any) -> ValueError:
    return ValueError(f"posterior needs 'full' or 'mean_field', got {posterior!r}: 'full' is the tighter one.")


def unknown_engine(engine: Any) -> ValueError:
    return ValueError(f"engine needs 'auto', 'gram' or 'dense', got {engine!r}: 'auto' takes the cheaper one.")


def unknown_variance_kind(kind: Any) -> ValueError:
    return ValueError(f"kind needs 'marginal' or 'loadings', got {kind!r}: use one of these.")


def unknown_views(names: Iterable[str], known: Sequence[str]) -> ValueError:
    return ValueError(f"views need to be among those fitted ({some(known)}), got {some(names)}: check the names.")


def unknown_factors(wrong: Iterable[Any], known: Sequence[str]) -> ValueError:
    names = [str(name) for name in known]
    hint = meant(wrong, names) or "check the names, or give positions."
    return ValueError(f"factors need to be among {some(names, 10)}, got {some(wrong)}: {hint}")


def features_missing(view: str, names: Sequence[str]) -> ValueError:
    return ValueError(f"view {view!r} needs the features of the fit, got a table without {some(names)}: add them.")


def which_realignment() -> ValueError:
    return ValueError("realign needs lam= or regime=, got neither or both: for example realign(lam=0.5).")


def cannot_resume() -> ValueError:
    return ValueError(
        "warm_start needs a model of the same views, features, covariates and factors that was not realigned, got "
        "another: fit without warm_start."
    )


def not_converged(sweeps: int) -> str:
    return f"the bound was still rising after {sweeps} sweeps: raise max_iter, or tol if this is close enough."


def view_rows_differ(rows: dict[str, int]) -> ValueError:
    got = ", ".join(f"{n} in {name!r}" for name, n in rows.items())
    return ValueError(f"views need the same number of rows (samples), got {got}: pass one row per sample in each.")


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


def no_rows_to_leave_out() -> CannotHoldOutError:
    return CannotHoldOutError(
        "leaving samples out needs rows in memory, got a model of data that were read by chunks: fit it to an array, "
        "or judge it with transform(X) of samples it has not seen."
    )


def too_few_to_leave_out(n: int, least: int) -> CannotHoldOutError:
    return CannotHoldOutError(
        f"leaving samples out needs at least {least} on either side, with every covariate varying, got {n} in all: "
        "use fewer folds or more samples."
    )


def rows_in_memory_needed(what: str) -> ValueError:
    return ValueError(
        f"{what} needs rows in memory, got a model of data that were read by chunks: fit it to an array, or use "
        "transform(X) and loadings_ for some rows at a time."
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
