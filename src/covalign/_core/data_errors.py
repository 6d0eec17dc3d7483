"""Errors about data that several rooms raise: lengths, columns, cells, views. The functions return the error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.messages import OTHER_COLUMNS, listed, message
from covalign.exceptions import DependentCovariatesError, NotFiniteError


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
    """The error for an empty input."""
    problem, remedy = "Moments need at least one row", "pass at least one batch with rows"
    return ValueError(message(problem, got="an empty input", remedy=remedy))


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
