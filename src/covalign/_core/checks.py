"""Checks of arguments that several rooms share: ``check_x`` returns the value or raises, the others return an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from covalign._core.messages import OTHER_COLUMNS, listed, message, shown
from covalign.exceptions import DependentCovariatesError, NotFiniteError

MOST_FOLDS = 10_000  # each has sums of its own
MOST_PERMUTATIONS = 10**7
REGIMES = ("independent", "tunable", "strongest", "exclusive")
LARGEST, SMALLEST = 1e100, 1e-100  # of values and of standard deviations: squares and their sums stay exact


# -- parameters -------------------------------------------------------------------------------------------------------


def check_lam(lam: Any) -> float:
    """A mixing weight in [0, 1]."""
    return check_number(lam, "lam needs a number between 0 (independent) and 1 (strongest)", "choose one in [0, 1]", 1)


def listed_lams(lams: Any) -> list[Any]:
    """One lambda, or several, as a list; ``check_lam`` refuses what is no number."""
    if isinstance(lams, np.ndarray):
        return list(np.atleast_1d(lams).tolist())
    return list(lams) if isinstance(lams, Iterable) and not isinstance(lams, str | bytes | Mapping) else [lams]


def check_regime(regime: Any) -> str:
    """The name of a regime."""
    return check_choice("regime", regime, REGIMES)


def check_shrinkage(shrinkage: Any) -> float | None:
    """A weight in [0, 1], or None for ``"auto"``."""
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return None
    return check_number(shrinkage, 'shrinkage needs "auto" or a number in [0, 1]', 'use "auto" if in doubt', 1)


def check_ridge(shrinkage: Any) -> float:
    """A weight in [0, 1]."""
    return check_number(shrinkage, "shrinkage needs a number in [0, 1]", "0 is the exact solution on these rows", 1)


def check_folds(folds: Any) -> int:
    """A number of folds."""
    return check_count("folds", folds, least=2, most=MOST_FOLDS, remedy="5 is a good choice")


def too_many_folds(folds: int, most: str) -> ValueError:
    """More folds than rows, or than there can be."""
    return ValueError(message(f"folds needs {most}", got=folds, remedy="5 is a good choice"))


def check_max_coupling(budget: Any) -> float:
    """An upper limit for the coupling."""
    return check_number(budget, "max_coupling needs a number >= 0", "0 asks for independent dimensions", np.inf)


def check_permutations(count: Any) -> int:
    """A number of permutations."""
    return check_count("n_permutations", count, remedy="999 is a good choice", most=MOST_PERMUTATIONS)


def check_count(what: str, value: Any, least: int = 1, remedy: str = "choose one", most: int | None = None) -> int:
    """A whole number of at least ``least``, as a Python int, which no product of counts can overflow."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and int(value) >= least and (most is None or int(value) <= most):
        return int(value)
    limit = f"from {least} to {most}" if whole and most is not None and int(value) > most else f"of at least {least}"
    raise ValueError(message(f"{what} needs a whole number {limit}", got=shown(value), remedy=remedy))


def check_flag(what: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, bool | np.bool_) or (isinstance(value, Integral) and int(value) in (0, 1)):
        return bool(value)
    raise ValueError(message(f"{what} needs True or False", got=shown(value), remedy="choose one of them"))


def check_choice(what: str, value: Any, known: Sequence[str]) -> str:
    """One of some names."""
    if isinstance(value, str) and value in known:
        return value
    raise not_one_of(what, value, known)


def check_random_state(state: Any) -> np.random.Generator:
    """A generator of random numbers. An old RandomState seeds a new generator, and moves on by doing so."""
    if isinstance(state, np.random.RandomState):
        return np.random.default_rng(state.randint(2**32, size=4, dtype=np.uint32))
    try:
        return np.random.default_rng(state)
    except (TypeError, ValueError):
        problem = "random_state needs a whole number of at least 0, a numpy Generator or None"
        raise ValueError(message(problem, got=shown(state), remedy="any whole number will do")) from None


def check_selection(what: str, value: Any) -> list[Any]:
    """One name or position, or several, as a list that is not empty."""
    single = isinstance(value, str | Integral) and not isinstance(value, bool | np.bool_)
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    items = [value] if single else list(value) if several and getattr(value, "ndim", 1) == 1 else []
    if items and all(isinstance(item, str | Real) for item in items):
        return items
    raise ValueError(message(f"{what} needs a name, or a list of names", got=shown(value), remedy="None means all"))


def not_one_of(what: str, got: Any, known: Sequence[str]) -> ValueError:
    """``got`` is none of the known names."""
    problem = f"{what} needs one of {', '.join(known)}"
    wrong = [got] if isinstance(got, str) else []
    return ValueError(message(problem, got=shown(got), remedy="use one of these names", wrong=wrong, known=known))


def not_positive(what: str, value: Any) -> ValueError:
    """The number is zero, negative, or no number."""
    return ValueError(message(f"{what} needs a positive number", got=shown(value), remedy="choose a larger one"))


def check_number(value: Any, problem: str, remedy: str, most: float, least: float = 0) -> float:
    """A number from ``least`` to ``most``; ``problem`` is the sentence for anything else."""
    if isinstance(value, Real) and not isinstance(value, bool) and least <= as_float(value) <= most:
        return as_float(value)
    raise ValueError(message(problem, got=shown(value), remedy=remedy))


def as_float(value: Any) -> float:
    """Whole numbers may be beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def check_covariates(names: Iterable[Any], known: Iterable[str]) -> None:
    """Refuse names that are no covariates of a model."""
    have = list(dict.fromkeys(known))
    wrong = [name for name in names if not (isinstance(name, str) and name in have)]
    if wrong:
        remedy = f"Its covariates are {listed(have, 10)}"
        raise ValueError(
            message(f"this model has no covariate {listed(wrong)}", remedy=remedy, wrong=wrong, known=have)
        )


# -- shapes -----------------------------------------------------------------------------------------------------------


def lengths_differ(n_z: int, n_y: int) -> ValueError:
    """Z and Y have different numbers of rows."""
    problem = f"Z and Y need the same number of rows (samples), got {n_z} and {n_y}: pass one row of covariates per row"
    return ValueError(message(f"{problem} of Z"))


def not_two_dimensional(name: str, shape: tuple[int, ...]) -> ValueError:
    """An array is no matrix."""
    problem = f"{name} needs two dimensions (rows are samples), got shape {shape}"
    remedy = "Reshape your data: array.reshape(-1, 1) is a single column, array.reshape(1, -1) a single row"
    return ValueError(message(problem, remedy=remedy))


def columns_differ(what: str, need: int, got: int) -> ValueError:
    """Another number of columns than before."""
    return ValueError(message(f"{what} needs {need} columns as before", got=got, remedy="pass the same columns"))


def too_few_rows(n: int, least: int = 2) -> ValueError:
    """Too few rows for a covariance."""
    problem = f"a covariance needs at least {least} rows (samples)"
    return ValueError(message(problem, got=f"{n} sample(s), n_samples = {n}", remedy="pass more rows, or more batches"))


def too_few_rows_for_folds(n: int, least: int) -> ValueError:
    """Too few rows to cross-validate a metric."""
    problem = f"a cross-validated metric needs at least {least} rows (samples)"
    remedy = "pass more rows, or a Moments for the closed form without cross-validation"
    return ValueError(message(problem, got=n, remedy=remedy))


def no_rows() -> ValueError:
    """No row at all."""
    return ValueError(message("moments need at least one row", got="an empty input", remedy="pass at least one row"))


def no_columns(where: str, n: int) -> ValueError:
    """No column at all; scikit-learn's checks look for the words in the middle."""
    problem = f"{where} has 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required"
    return ValueError(message(problem, remedy="Pass at least one column"))


def too_many_covariates(p: int, k: int) -> ValueError:
    """More covariates than latent dimensions."""
    problem = f"{p} covariates need at least {p} latent dimensions"
    return ValueError(message(problem, got=k, remedy="drop covariates or use a larger embedding"))


def too_many_factors_asked(p: int, k: int) -> ValueError:
    """More covariates than factors."""
    problem = f"{p} covariates need at least {p} factors"
    return ValueError(message(problem, got=f"n_factors = {k}", remedy="raise it or drop covariates"))


def no_views() -> ValueError:
    """A dict of views is empty."""
    return ValueError(message("X needs at least one view", got="an empty dict", remedy="pass a table or name -> table"))


def repeated_views(names: Iterable[str]) -> ValueError:
    """Names of views that are the same text."""
    problem, got = (
        "views need distinct names",
        f"{listed(names)} more than once (numbers and text are compared as text)",
    )
    return ValueError(message(problem, got=got, remedy="rename one of them"))


def view_rows_differ(rows: dict[str, int]) -> ValueError:
    """Views that are joined by position have different numbers of rows."""
    problem = "views need the same number of rows (samples)"
    got = ", ".join(f"{n} in {name!r}" for name, n in rows.items())
    return ValueError(message(problem, got=got, remedy="pass one row per sample in each"))


# -- values -----------------------------------------------------------------------------------------------------------


def not_finite(what: str, column: str) -> NotFiniteError:
    """A number is NaN or infinite."""
    problem = f"{what} needs finite numbers"
    got = f"NaN or infinity (inf) in column {column}"
    return NotFiniteError(message(problem, got=got, remedy="drop or impute those rows first"))


def not_numeric(what: str, dtype: Any) -> ValueError:
    """Values are no numbers."""
    remedy = "convert them, or encode text and categories with covalign.covariates.encode"
    if str(dtype).startswith("complex"):  # the words that scikit-learn's checks look for
        remedy = "Complex data not supported. Pass real and imaginary parts as columns"
    return ValueError(message(f"{what} needs real numbers", got=f"values of type {dtype}", remedy=remedy))


def column_not_numeric(where: str, column: Any, kind: Any) -> ValueError:
    """A column is not numeric, for example text."""
    problem, got = f"{where} needs numbers in every column", f"{kind} in column {str(column)!r}"
    return ValueError(message(problem, got=got, remedy=OTHER_COLUMNS))


def not_a_table(where: str, got: str) -> ValueError:
    """Data that are no table."""
    problem = f"{where} needs a table with a row for every sample (an array, a DataFrame, a list of rows)"
    return ValueError(message(problem, got=got, remedy="convert it, for example with pandas.DataFrame"))


def damaged_sparse(where: str, layout: str) -> ValueError:
    """The indices of a sparse matrix are out of range, or not in order."""
    problem = f"{where} needs a sparse matrix whose indices are within its shape"
    return ValueError(message(problem, got=f"others ({layout})", remedy="build the matrix again, for example from coo"))


def rows_of_unequal_length(where: str) -> ValueError:
    """A list of rows is ragged."""
    problem = f"{where} needs rows of equal length"
    return ValueError(message(problem, got="a list of rows of different lengths", remedy="complete the shorter rows"))


def unwritable_names(where: str, names: Iterable[str]) -> ValueError:
    """Names that cannot be written to any file."""
    got = ", ".join(ascii(name) for name in names)
    problem = f"{where} needs column names that can be written as UTF-8"
    return ValueError(message(problem, got=f"half a character (a lone surrogate) in {got}", remedy="rename them"))


class OutOfRange(ValueError):
    """Values whose squares a float64 cannot hold, in the column at a position."""

    position: int = 0


def out_of_range(where: str, column: Any, large: bool, position: int = 0) -> OutOfRange:
    """The error for values that are too large or too small; ``column`` is its name."""
    problem = f"{where} needs values between {SMALLEST:g} and {LARGEST:g} in size, or 0"
    got = f"{'larger' if large else 'only smaller'} ones in column {str(column)!r}"
    error = OutOfRange(
        message(problem, got=got, remedy=f"{'divide' if large else 'multiply'} the column by a constant")
    )
    error.position = position
    return error


def check_small(where: str, names: Sequence[Any], mean: Any, variance: Any) -> None:
    """Refuse columns that vary, but so little that their variance has few digits or none."""
    near = (variance < SMALLEST**2) & (np.abs(mean) < SMALLEST)
    if near.any():
        near &= (variance > 0) | (mean != 0)
        if near.any():
            raise out_of_range(where, names[int(np.argmax(near))], large=False)


def check_large(where: str, names: Sequence[Any], values: Any) -> None:
    """Refuse columns of finite numbers, or gaps, whose squares overflow."""
    size = max(np.fmax.reduce(values, axis=None, initial=0.0), -np.fmin.reduce(values, axis=None, initial=0.0))
    if size > LARGEST:
        large = (np.abs(values) > LARGEST).any(axis=0)
        raise out_of_range(where, names[int(np.argmax(large))], large=True)


def columns_not_numeric(table: str, columns: Iterable[Any]) -> ValueError:
    """Columns of a table hold text."""
    problem = f"{table} needs sample names in the first column and numbers in all others"
    return ValueError(message(problem, got=f"text in column {listed(columns)}", remedy="convert or drop it"))


def table_without_column(table: str, column: str, known: Iterable[Any]) -> ValueError:
    """A table lacks a column."""
    known = list(known)
    problem = f"{table} needs a column {column!r}"
    got = listed(known) or "none"
    return ValueError(message(problem, got=got, remedy="rename or add it", wrong=[column], known=known))


def no_covariates(where: str = "Y") -> ValueError:
    """Y has no columns."""
    what, remedy = "covariate" if where == "Y" else "column", f"pass at least one column as {where}"
    return ValueError(message(f"at least one {what} is needed", got="none", remedy=remedy))


def constant_covariates(names: Iterable[str]) -> ValueError:
    """Covariates do not vary."""
    problem = f"a covariate needs to vary, got a constant in column {listed(names)}"
    return ValueError(message(problem, remedy="Drop it, or fit on rows where it differs"))


def no_exclusive(names: Iterable[str]) -> DependentCovariatesError:
    """The exclusive regime does not exist."""
    problem = "the exclusive regime needs covariates that Z can tell apart, got linearly dependent ones: "
    remedy = "Drop one of them (drop_first=True for the dummies of a category) or use another regime"
    return DependentCovariatesError(message(f"{problem}{listed(names, 12)}", remedy=remedy))


# -- tables and rows --------------------------------------------------------------------------------------------------


def check_chunk_rows(rows: Any) -> int:
    """A number of rows in a chunk."""
    return check_count("chunk_rows", rows, remedy="leave it out to have it chosen")


def source_without_rows(where: str, shape: Sequence[Any]) -> ValueError:
    """The error for data without a row or without a column."""
    problem = f"{where} needs at least one row and one column"
    return ValueError(message(problem, got=f"shape {tuple(shape)}", remedy="check that the data were written"))


def repeated_columns(where: str, names: Iterable[Any]) -> ValueError:
    """The error for column names that occur more than once."""
    problem = f"{where} needs distinct column names"
    return ValueError(message(problem, got=f"{listed(names)} more than once", remedy="rename or drop them"))


def too_few_observed(names: Iterable[Any], counts: Iterable[Any]) -> ValueError:
    """The error for covariates that fewer than two rows have."""
    got = ", ".join(f"{int(count)} in column {str(name)!r}" for name, count in zip(names, counts, strict=True))
    problem, remedy = "a covariate needs at least 2 observed rows", "drop the column, or fill in its values"
    return ValueError(message(problem, got=f"{got} (the others are missing)", remedy=remedy))


def y_required() -> ValueError:
    """The error for a missing Y; scikit-learn's checks look for its first words."""
    problem = "This estimator requires y to be passed, but the target y is None"
    return ValueError(message(problem, remedy="Pass the covariates as Y"))


# -- factor models ----------------------------------------------------------------------------------------------------


def unknown_views(names: Iterable[Any], known: Sequence[str]) -> ValueError:
    """The error for views that the model does not have."""
    wrong = list(names)
    problem = f"the model has the views {listed(known)}"
    return ValueError(message(problem, got=listed(wrong), remedy="correct the name", wrong=wrong, known=known))


def features_missing(view: str, names: Sequence[str]) -> ValueError:
    """The error for a table that lacks features of the fit."""
    problem = f"view {view!r} needs the features of the fit"
    return ValueError(message(problem, got=f"a table without {listed(names)}", remedy="add these columns"))


def no_varying_feature(confounded: bool) -> ValueError:
    """The error for views of constants, or of what confounders explain."""
    got = "only constant ones" + (" after what confounders explain was subtracted" if confounded else "")
    remedy = "use fewer confounders, or other features" if confounded else "pass features that differ between samples"
    return ValueError(message("X needs a feature that varies", got=got, remedy=remedy))


def features_all_missing(view: str, names: Sequence[Any]) -> ValueError:
    """The error for features without an observed cell."""
    problem = f"view {view!r} needs an observed cell in every feature"
    return ValueError(message(problem, got=f"none in {listed(names)}", remedy="drop these features"))


def rows_not_kept() -> ValueError:
    """The error for what needs the rows of a fit that did not keep them."""
    problem = "This needs the rows of the fit, and the model did not keep them (they were a stream, or read in chunks)"
    return ValueError(message(problem, remedy="transform(X, y) gives the factors of any rows"))


def check_missing(missing: Any) -> str:
    """What to do with rows whose covariates are incomplete: "pairs", "drop" or "raise"."""
    if isinstance(missing, str) and missing in ("pairs", "raise", "drop"):
        return missing
    raise ValueError(message("missing needs 'pairs', 'raise' or 'drop'", got=shown(missing), remedy="use one of these"))


def missing_values(column: str, count: int, rows: Sequence[Any]) -> ValueError:
    """The error for gaps in a covariate where complete rows are needed."""
    where = f", first at row {listed(rows, 3)}" if len(rows) else ""
    return ValueError(
        message(
            "covariates need complete rows",
            got=f"{count} missing value(s) (NaN) in column {column!r}{where}",
            remedy="fill them in, or leave incomplete rows out (missing='drop')",
        )
    )
