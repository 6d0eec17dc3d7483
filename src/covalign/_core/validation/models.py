"""What users are told: informed factor analysis, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.validation.base import meant, some
from covalign.exceptions import CannotHoldOutError


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


def rows_changed(need: int, got: int) -> ValueError:
    return ValueError(
        f"the rows of the fit need to be the same when they are read again, got {got} where there were {need}: fit "
        "again."
    )
