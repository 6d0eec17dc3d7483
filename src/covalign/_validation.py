"""What users are told when something is wrong: what was needed, what was got, what to do.

Every error a user can cause is worded here and raised where it is noticed. All are ``ValueError``s.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

REGIMES = ("independent", "tunable", "strongest", "exclusive")


class DependentCovariatesError(ValueError):
    """The exclusive regime was asked for where it does not exist."""


class SingularTransformWarning(UserWarning):
    """The transformation merges dimensions, so it cannot be undone exactly."""


class LeastSquaresWarning(UserWarning):
    """An inverse was asked for where only the best linear reconstruction exists."""


class MissingExtraError(ImportError):
    """An optional dependency is needed and not installed."""


class NotFiniteError(ValueError):
    """A number is NaN or infinite; ``row`` and ``column`` (positions) say where, if that is known."""

    row: int | None = None
    column: int | None = None
    value: float | None = None


def some(items: Iterable[Any], most: int = 5) -> str:
    """The first few items, for a message: ``'a', 'b' and 3 more``."""
    listed = list(items)
    shown = ", ".join(repr(str(item)) for item in listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"


# -- shapes and numbers -----------------------------------------------------------------------------------------------


def lengths_differ(n_z: int, n_y: int) -> ValueError:
    return ValueError(
        f"Z and Y need the same number of rows (samples), got {n_z} and {n_y}: pass one row of covariates per row of Z."
    )


def not_two_dimensional(name: str, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"{name} needs two dimensions (rows are samples), got shape {shape}: "
        "use array.reshape(-1, 1) for a single column or array.reshape(1, -1) for a single row."
    )


def too_few_rows(n: int, least: int = 2) -> ValueError:
    return ValueError(
        f"a covariance needs at least {least} rows (samples), got n_samples = {n}: pass more rows, or more batches."
    )


def too_many_covariates(p: int, k: int) -> ValueError:
    return ValueError(
        f"{p} covariates need at least {p} latent dimensions, got {k}: drop covariates or use a larger embedding."
    )


def too_little_rank(p: int, rank: int, k: int) -> ValueError:
    return ValueError(
        f"{p} covariates need {p} linearly independent latent dimensions; the {k} columns of Z span only {rank} "
        "(constant or duplicated columns, or fewer rows than columns): drop covariates, or add rows."
    )


def not_finite(what: str, column: str) -> NotFiniteError:
    return NotFiniteError(
        f"{what} needs finite numbers, got NaN or infinity (inf) in column {column}: drop or impute those rows first."
    )


def not_numeric(what: str, dtype: Any) -> ValueError:
    return ValueError(
        f"{what} needs real numbers, got values of type {dtype}: convert them, or encode text and categories with "
        "covalign.covariates.encode."
    )


def columns_differ(what: str, need: int, got: int) -> ValueError:
    return ValueError(f"{what} needs {need} columns as before, got {got}: pass the same columns every time.")


def no_rows() -> ValueError:
    return ValueError("moments need at least one row, got an empty input: pass at least one batch with rows.")


def not_a_covariance(what: str, shape: tuple[int, ...], need: str) -> ValueError:
    return ValueError(f"{what} needs to be {need}, got shape {shape} or values that are not: check the matrix.")


def population_has_no_size() -> ValueError:
    return ValueError("only moments with a number of rows can be merged, got n = None: pass n= to from_covariances.")


def check_lam(lam: Any) -> float:
    """A mixing weight in [0, 1]."""
    if isinstance(lam, Real) and not isinstance(lam, bool) and 0 <= float(lam) <= 1:
        return float(lam)
    raise ValueError(
        f"lam needs a number between 0 (independent) and 1 (strongest), got {lam!r}: choose one in [0, 1]."
    )


def check_regime(regime: Any) -> str:
    """One of the four names."""
    if regime in REGIMES:
        return str(regime)
    raise ValueError(f"regime needs one of {', '.join(REGIMES)}, got {regime!r}: use one of these names.")


def check_shrinkage(shrinkage: Any) -> float | None:
    """A weight in [0, 1], or None for ``"auto"``."""
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return None
    if isinstance(shrinkage, Real) and not isinstance(shrinkage, bool) and 0 <= float(shrinkage) <= 1:
        return float(shrinkage)
    raise ValueError(f'shrinkage needs "auto" or a number in [0, 1], got {shrinkage!r}: use "auto" if in doubt.')


def check_folds(folds: Any) -> int:
    """A number of folds."""
    if isinstance(folds, Integral) and not isinstance(folds, bool) and int(folds) >= 2:
        return int(folds)
    raise ValueError(f"folds needs a whole number of at least 2, got {folds!r}: 5 is a good choice.")


def check_max_coupling(budget: Any) -> float:
    """A coupling budget."""
    if isinstance(budget, Real) and not isinstance(budget, bool) and float(budget) >= 0:
        return float(budget)
    raise ValueError(f"max_coupling needs a number >= 0, got {budget!r}: 0 asks for independent dimensions.")


def check_permutations(count: Any) -> int:
    """A number of permutations."""
    if isinstance(count, Integral) and not isinstance(count, bool) and int(count) >= 1:
        return int(count)
    raise ValueError(f"n_permutations needs a whole number of at least 1, got {count!r}: 999 is a good choice.")


def which_regime() -> ValueError:
    return ValueError(
        "at() needs one of lam=, regime= or max_coupling=, got none or several that exclude each other: "
        "for example at(lam=0.9), at(regime='exclusive') or at(max_coupling=0.5)."
    )


# -- covariates -------------------------------------------------------------------------------------------------------


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


def confounders_of_stream() -> ValueError:
    return ValueError(
        "confounders of batches need to be columns of their Y, named here, got a table: put them into Y and pass their "
        "names."
    )


def confounders_in_dask() -> ValueError:
    return ValueError("confounders need covariates in memory, got Y in dask: compute Y first (it is small beside Z).")


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
    near = [match for name in wrong for match in difflib.get_close_matches(name, have, n=2, cutoff=0.4)]
    hint = f"did you mean {some(dict.fromkeys(near))}?" if near else "add them to Y, or pass a table of confounders."
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


# -- what does not exist ----------------------------------------------------------------------------------------------


def no_exclusive(names: Iterable[str]) -> DependentCovariatesError:
    return DependentCovariatesError(
        f"the exclusive regime needs covariates that Z can tell apart, got linearly dependent ones: {some(names, 12)}. "
        "Drop one of them (drop_first=True for the dummies of a category) or use another regime."
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
    near = [match for name in wrong for match in difflib.get_close_matches(str(name), known, n=2, cutoff=0.4)]
    hint = f"did you mean {some(dict.fromkeys(near))}?" if near else f"choose from {some(known, 10)}."
    return ValueError(f"names need to be covariates of this model, got {some(wrong)}: {hint}")


def feature_names_differ(got: int, need: int) -> ValueError:
    return ValueError(f"input_features should have length equal to number of features ({need}), got {got}.")


def feature_names_not_equal() -> ValueError:
    return ValueError("input_features is not equal to feature_names_in_: pass None or the names seen in fit.")


def not_fitted_yet(n: int) -> ValueError:
    return ValueError(f"an aligner needs at least 2 rows, got {n} so far: call partial_fit with more.")


def missing_extra(package: str, extra: str) -> MissingExtraError:
    return MissingExtraError(
        f"this needs {package}, which is not installed: install it with  pip install 'covalign[{extra}]'"
    )


# -- simulation -------------------------------------------------------------------------------------------------------


def unknown_scenario(name: Any, known: Sequence[str]) -> ValueError:
    return ValueError(f"scenario needs one of {', '.join(known)}, got {name!r}: use one of these names.")


def outside_unit_interval(what: str, value: Any) -> ValueError:
    return ValueError(f"{what} needs a number in [0, 1], got {value!r}: 1 is the paper's setting.")


def not_positive(what: str, value: Any) -> ValueError:
    return ValueError(f"{what} needs a positive number, got {value!r}: choose a larger one.")


# -- metrics ----------------------------------------------------------------------------------------------------------


def arrays_or_moments(first: str, second: str, got: str) -> ValueError:
    return ValueError(
        f"a metric needs {first} and {second}, or one Moments of both, got {got}: pass the two, or the Moments alone."
    )


def constant_dimensions(names: Iterable[str]) -> ValueError:
    return ValueError(
        f"a latent dimension paired with a covariate needs to vary, got a constant in column {some(names)} of Z: "
        "drop it, or use metrics.match to pair covariates with other columns."
    )


def rows_of_features_differ(n_x: int, n_z: int) -> ValueError:
    return ValueError(
        f"X and Z need the same number of rows (samples), got {n_x} and {n_z}: pass one row of factors per row of X."
    )


def too_few_rows_for_folds(n: int, least: int) -> ValueError:
    return ValueError(
        f"a cross-validated metric needs at least {least} rows (samples), got {n}: pass more rows, or a Moments for "
        "the closed form without cross-validation."
    )


def check_variance_kind(kind: Any, with_loadings: bool) -> str:
    """``"marginal"``, or ``"loadings"`` together with W."""
    if kind not in ("marginal", "loadings"):
        raise ValueError(f"kind needs 'marginal' or 'loadings', got {kind!r}: use one of these.")
    if kind == "loadings" and not with_loadings:
        raise ValueError("kind='loadings' needs W (features x factors), got none: pass W=, or use kind='marginal'.")
    if kind == "marginal" and with_loadings:
        raise ValueError("kind='marginal' needs no loadings, got W: leave it out, or use kind='loadings'.")
    return str(kind)


def loadings_shape(need: tuple[int, ...], got: tuple[int, ...]) -> ValueError:
    return ValueError(f"W needs shape {need} (features x factors), got {got}: transpose it, or check X and Z.")


def matched_columns_missing(need: int, got: int) -> ValueError:
    return ValueError(
        f"this matching needs a representation with at least {need} columns, got {got}: pass the Z it was found on."
    )


def unfitted(name: str) -> str:
    return f"this {name} needs data first, got none so far: call fit(Z, Y) or partial_fit(Z, Y)."


# -- informed factor analysis -----------------------------------------------------------------------------------------


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


# -- files ------------------------------------------------------------------------------------------------------------


class FileFormatError(ValueError):
    """A file is not a complete model of a version this covalign can read."""


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


# -- methods to compare with ------------------------------------------------------------------------------------------


def absent_method(name: str, why: str) -> ValueError:
    return ValueError(f"{name} cannot run here: {why}")


# -- data sets --------------------------------------------------------------------------------------------------------


class DataNotFoundError(FileNotFoundError, ValueError):
    """A data set, or a file of it, is not where it was said to be."""


def data_not_found(path: Any, need: str) -> DataNotFoundError:
    return DataNotFoundError(f"{need} is needed, got no {str(path)!r}: correct the path, or put the file there.")


def unreadable_data(path: Any, need: str, why: Any) -> ValueError:
    return ValueError(
        f"{need} is needed, got {str(path)!r}, which cannot be read as one ({why}): download or export it again."
    )


def foreign_rda(path: Any, need: str, got: Iterable[Any]) -> ValueError:
    return ValueError(
        f"mixOmics' breast.TCGA needs {need}, got {some(got) or 'nothing of the kind'} in {str(path)!r}: save it in R "
        "with  data(breast.TCGA, package = 'mixOmics'); save(breast.TCGA, file = 'breast.TCGA.rda')"
    )


def check_part(part: Any) -> str:
    """The training or the test part."""
    if part in ("train", "test"):
        return str(part)
    raise ValueError(f"part needs 'train' or 'test', got {part!r}: use one of these.")


def only_training_part(path: Any) -> ValueError:
    return ValueError(
        f"part='test' needs mixOmics' breast.TCGA.rda, got the folder {str(path)!r}, which has the training part only: "
        "pass the path of the .rda file, or part='train'."
    )


def table_without_column(table: str, column: str, have: Iterable[Any]) -> ValueError:
    return ValueError(f"{table} needs a column {column!r}, got {some(have) or 'none'}: rename or add it.")


def columns_not_numeric(table: str, columns: Iterable[Any]) -> ValueError:
    return ValueError(
        f"{table} needs sample names in the first column and numbers in all others, got text in column "
        f"{some(columns)}: convert or drop it."
    )


def duplicated_samples(table: str, names: Iterable[Any]) -> ValueError:
    return ValueError(
        f"samples are matched by name and need distinct ones, got {some(names, 3)} more than once in {table}: "
        "rename or drop them."
    )


def samples_do_not_match(first: str, second: str, only_first: Sequence[Any], only_second: Sequence[Any]) -> ValueError:
    pairs = ((first, second, only_first), (second, first, only_second))
    parts = [f"{len(only)} in {a} and not in {b} ({some(only, 3)})" for a, b, only in pairs if len(only)]
    return ValueError(
        f"{first} and {second} need the same samples, got {'; '.join(parts)}: keep the samples that both have."
    )


def sample_counts_differ(first: str, second: str, n_first: int, n_second: int) -> ValueError:
    return ValueError(
        f"{first} and {second} need the same number of rows (samples), got {n_first} and {n_second}: "
        "one row of each belongs to one sample."
    )


def order_unknown(unnamed: str, first: str, second: str) -> ValueError:
    return ValueError(
        f"{unnamed} needs sample names where tables differ in their order, got none, and {first} and {second} differ: "
        f"name its samples, or bring {first} and {second} into the same order."
    )


def covariates_or_labels(path: Any, got: Iterable[Any]) -> ValueError:
    return ValueError(
        f"an .npz embedding needs an array Z and either Y or labels, got {some(got) or 'none'} in {str(path)!r}: "
        "save it with  numpy.savez(path, Z=Z, labels=labels)  or  numpy.savez(path, Z=Z, Y=Y, names=names)"
    )


def labels_not_text(dtype: Any, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"labels needs one name (text) per row of Z, got values of type {dtype} and shape {shape}: "
        "save labels.astype(str) of one dimension, or 0/1 columns as Y."
    )


def names_differ_from_columns(need: int, got: tuple[int, ...]) -> ValueError:
    return ValueError(f"names needs {need} names, one per column of Y, got shape {got}: save as many as Y has columns.")


def labelled_not_binary(path: Any, values: Iterable[Any]) -> ValueError:
    return ValueError(
        f"labelled needs 1 (the class is shown) or 0 (it is withheld) in every row, got {some(values)} in "
        f"{str(path)!r}: recode it, or leave it out to show all classes."
    )


def nameless_class(path: Any, rows: Sequence[Any]) -> ValueError:
    return ValueError(
        f"every labelled row needs the name of its class, got an empty one in {len(rows)} row(s) of {str(path)!r}, "
        f"first at row {some(rows, 3)}: fill it in, or set labelled = 0 there."
    )


def shared_class_names(path: Any, names: Iterable[Any]) -> ValueError:
    return ValueError(
        f"labelled classes need distinct names, got {some(names)} for more than one wnid in {str(path)!r}: "
        "rename one of them."
    )


def no_labelled_class(path: Any) -> ValueError:
    return ValueError(f"at least one labelled class is needed, got none in {str(path)!r}: set labelled = 1 somewhere.")


# -- embedding images and texts ---------------------------------------------------------------------------------------


def no_images(folder: Any, suffixes: Iterable[str]) -> ValueError:
    return ValueError(
        f"a folder of images is needed, got none below {str(folder)!r} with a suffix of {' '.join(suffixes)}: correct "
        "the path, or list the files in a CSV with a column 'path'."
    )


def empty_cells(file: Any, column: str, rows: Sequence[Any]) -> ValueError:
    got = f"an empty one in {len(rows)} row(s), first at row {some(rows, 3)}" if rows else "no rows"
    return ValueError(f"every row of {str(file)!r} needs a {column!r}, got {got}: fill it in, or drop the rows.")


def distinct_labels(column: str) -> ValueError:
    return ValueError(
        f"a column of labels needs values that several rows share, got a different text in every row of {column!r}: "
        "name the columns to use (--label-column, label_columns=)."
    )


def broken_images(broken: dict[str, str]) -> ValueError:
    listed = "".join(f"\n  {name}: {why}" for name, why in list(broken.items())[:50])
    more = f"\n  and {len(broken) - 50} more" if len(broken) > 50 else ""
    return ValueError(
        f"every image needs to open, got {len(broken)} that did not; the others are computed and kept. Repair or "
        f"remove these, or leave them out with --skip-broken (skip_broken=True), and run the same again:{listed}{more}"
    )


def features_not_finite(names: Sequence[str]) -> ValueError:
    return ValueError(
        f"features need to be finite numbers, got NaN or infinity for {some(names, 3)}: use float32 (float16 overflows "
        "in some models), or check the weights."
    )


def not_an_array_file(path: Any) -> ValueError:
    return ValueError(f"rows go to an .npz (with labels) or an .npy (alone), got {str(path)!r}: choose one of these.")


def not_one_of(what: str, got: Any, known: Sequence[str]) -> ValueError:
    return ValueError(f"{what} needs one of {', '.join(known)}, got {got!r}: use one of these names.")


def no_device(device: str, there: Sequence[str]) -> ValueError:
    return ValueError(
        f"a device that torch sees is needed, got {device!r}, and here are {', '.join(there)}: choose one of these or "
        "'auto', or install a build of torch for it."
    )


def check_count(what: str, value: Any) -> int:
    """A whole number of at least 1."""
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return int(value)
    raise ValueError(f"{what} needs a whole number of at least 1, got {value!r}: choose one.")


class WeightsNotFoundError(FileNotFoundError, ValueError):
    """A model's files are neither here nor to be had."""


def weights_not_found(name: str, revision: str | None, cache: Any, why: Any) -> WeightsNotFoundError:
    version = f" --revision {revision}" if revision else ""
    reason = str(why).splitlines()[0] if str(why) else type(why).__name__
    return WeightsNotFoundError(
        f"the weights of {name!r} are needed, got none: they are not in the cache {str(cache)!r}, and could not be "
        f"downloaded ({reason}). On a machine with internet run\n"
        f"  hf download {name}{version} --include '*.json' '*.txt' '*.model' '*.safetensors' --local-dir model\n"
        f"(or save these files from https://huggingface.co/{name}/tree/{revision or 'main'}; config.json, "
        "model.safetensors and preprocessor_config.json or tokenizer.json are the least), bring the folder here and "
        "pass it as the model (--model model); or, without --local-dir, bring what it put into the cache there to the "
        "cache here."
    )


def no_model(folder: Any, file: str) -> ValueError:
    return ValueError(
        f"a model's folder needs config.json and its weights as .safetensors, got {str(folder)!r} without {file}: "
        "pass the folder that save_pretrained wrote, or download it again."
    )


def pickled_weights(folder: Any, files: Iterable[Any]) -> ValueError:
    return ValueError(
        f"weights are needed as .safetensors, got only {some(getattr(file, 'name', file) for file in files)} in "
        f"{str(folder)!r}, and loading a pickle can run any code: use another revision of the model, or convert it "
        "where you trust it, by model.save_pretrained(folder)."
    )


def code_of_its_own(folder: Any, what: str) -> ValueError:
    return ValueError(
        f"a model without code of its own is needed, got {what!r} in {str(folder)!r}: only the classes of transformers "
        "and sentence-transformers are run; choose a model that they know."
    )


def unusable_model(folder: Any, need: str, why: Any) -> ValueError:
    reason = next((line.strip() for line in str(why).splitlines() if line.strip()), type(why).__name__)
    return ValueError(
        f"{need} is needed, got the folder {str(folder)!r}, which cannot be read as one ({reason}): download it again, "
        "or choose another model."
    )


def random_weights(folder: Any, names: Iterable[str]) -> ValueError:
    return ValueError(
        f"all weights of a model are needed, got none for {some(names, 3)} in {str(folder)!r}, and random ones would "
        "take their place: choose another pooling (cls or mean where it is the pooler), or another model."
    )


def no_pooler(folder: Any) -> ValueError:
    return ValueError(
        f"pooling='pooler' needs a model with a pooled output, got {str(folder)!r}, which has none: use 'cls' or "
        "'mean'."
    )


class PeerError(ValueError):
    """A method that runs in a process of its own failed there."""


def peer_failed(name: str, why: str) -> PeerError:
    return PeerError(f"{name} needs to answer with factors and loadings, got no usable answer: {why}")


def unknown_figures(names: Iterable[str], known: Sequence[str]) -> ValueError:
    from difflib import get_close_matches

    hints = [
        f"{name} (did you mean {near[0]}?)" if (near := get_close_matches(name, known, 1)) else name for name in names
    ]
    return ValueError(f"there is no {', '.join(hints)}: the names are {', '.join(known)}.")


def not_a_named_path(text: str) -> ValueError:
    return ValueError(f"a representation needs NAME=PATH, got {text!r}: write for example clip={text}.")


def not_a_quantile(quantile: object) -> ValueError:
    return ValueError(f"quantile needs a number in [0, 1], got {quantile!r}: 0.5 keeps the better half of features.")


def unknown_kernel(kernel: object) -> ValueError:
    return ValueError(f"kernel needs 'rbf' or 'linear', got {kernel!r}: 'rbf' is the paper's.")


def check_numbers(what: str, text: str) -> tuple[float, ...]:
    """Positive numbers from comma-separated text."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(0 < number < float("inf") for number in numbers):
        raise ValueError(
            f"{what} needs positive numbers separated by commas, got {text!r}: write for example 0.01,0.1."
        )
    return numbers


# -- gaps -------------------------------------------------------------------------------------------------------------


def no_common_rows(name: str, got: Sequence[Any], others: Sequence[Any]) -> ValueError:
    return ValueError(
        f"{name} needs samples in common with the other tables, got {some(got, 3)} where they have {some(others, 3)}: "
        "give all tables the same sample names as index."
    )


def features_all_missing(view: str, names: Sequence[str]) -> ValueError:
    return ValueError(f"view {view!r} needs an observed cell in every feature, got none in {some(names)}: drop these.")


def covariate_missing_everywhere(name: str) -> ValueError:
    return ValueError(f"covariate {name!r} needs observed values, got none: drop it, or check the join of the tables.")


# -- rows in files, streams and clusters ------------------------------------------------------------------------------

ROW_SOURCES = (
    "an array or DataFrame, a scipy sparse matrix, a numpy.memmap, a torch tensor, a zarr array, a dask array or "
    "DataFrame, an AnnData, an HDF5 dataset, or a path to .npy, .npz, .zarr, .parquet (file or folder) or .h5ad"
)


class ColumnLayoutWarning(UserWarning):
    """A sparse matrix on disk is stored by columns, so it is read whole, once."""


class DiskFullError(OSError, ValueError):
    """The disk filled up, or would, while rows were written."""


def unknown_source(name: str, got: Any) -> ValueError:
    return ValueError(f"{name} needs {ROW_SOURCES}, got {type(got).__name__}: convert it to one of these.")


def unknown_suffix(name: str, path: Any) -> ValueError:
    return ValueError(f"{name} needs {ROW_SOURCES}, got the path {str(path)!r}: rename or convert the file.")


def source_without_rows(where: str, shape: Sequence[Any]) -> ValueError:
    return ValueError(
        f"{where} needs at least one row and one column, got shape {tuple(shape)}: check that the data were written."
    )


def truncated_file(path: Any, need: int, got: int) -> ValueError:
    return ValueError(
        f"{str(path)!r} needs {need} bytes according to its header, got {got}: the file is truncated, copy or write it "
        "again."
    )


def pickled_file(path: Any) -> ValueError:
    return ValueError(
        f"{str(path)!r} needs plain numbers, got pickled objects, which are never loaded because they can run code: "
        "save the array with a numeric dtype."
    )


def which_array(where: Any, key: Any, have: Iterable[Any]) -> ValueError:
    got = "no key" if key is None else f"key={key!r}"
    return ValueError(
        f"{str(where)!r} needs the name of one of its arrays, got {got}: pass key= with one of "
        f"{some(have, 10) or 'none (it holds no array)'}."
    )


def key_without_meaning(name: str, key: Any) -> ValueError:
    return ValueError(
        f"{name} needs no key=, got {key!r}: a key names an array within an .npz, .zarr or .h5ad; leave it out here."
    )


def empty_folder(path: Any) -> ValueError:
    return ValueError(f"a folder with .parquet files is needed, got {str(path)!r}, which has none: correct the path.")


def column_not_numeric(where: str, column: Any, kind: Any) -> ValueError:
    return ValueError(
        f"{where} needs numbers in every column, got {kind} in column {str(column)!r}: convert it, or choose the "
        "others with columns=."
    )


def repeated_columns(where: str, names: Iterable[Any]) -> ValueError:
    return ValueError(f"{where} needs distinct column names, got {some(names)} more than once: rename or drop them.")


def schema_changed(file: Any, column: Any, need: Any, got: Any) -> ValueError:
    return ValueError(
        f"{str(file)!r} needs column {str(column)!r} to be {need} as in the first file of the folder, got {got}: write "
        "the file again with the same columns, or choose common ones with columns=."
    )


def lists_differ(file: Any, column: Any, need: int, got: Any) -> ValueError:
    return ValueError(
        f"{str(file)!r} needs lists of {need} numbers in column {str(column)!r} as in its first row, got {got} in "
        "another: drop such rows, or pad the lists."
    )


def columns_not_there(where: str, wrong: Iterable[Any], known: Iterable[Any]) -> ValueError:
    return ValueError(f"columns= needs columns of {where} ({some(known, 8)}), got {some(wrong)}: correct the names.")


def columns_without_names(where: str, wrong: Iterable[Any], width: int) -> ValueError:
    return ValueError(
        f"columns= needs positions from 0 to {width - 1}, since {where} has no column names, got {some(wrong)}: "
        "pass whole numbers."
    )


def not_finite_at(what: str, value: Any, row: int, column: int, name: Any = None, label: Any = None) -> NotFiniteError:
    number = "NaN" if value != value else value
    of_row = f"row {row}" if label is None else f"row {row} ({str(label)!r})"
    of_column = f"column {column}" if name is None else f"column {str(name)!r}"
    error = NotFiniteError(
        f"{what} needs finite numbers, got {number} in {of_row}, {of_column}: drop or impute such rows first."
    )
    error.row, error.column, error.value = row, column, value
    return error


def by_columns(where: str) -> str:
    return (
        f"{where} is sparse and stored by columns, so its rows cannot be read a chunk at a time: its nonzero values "
        "are loaded at once. Store it by rows (csr) to keep memory small."
    )


def check_chunk_rows(rows: Any) -> int:
    """A number of rows in a chunk."""
    if isinstance(rows, Integral) and not isinstance(rows, bool) and int(rows) >= 1:
        return int(rows)
    raise ValueError(f"chunk_rows needs a whole number of at least 1, got {rows!r}: leave it out to have it chosen.")


def check_start(start: Any, n: int) -> int:
    """A row to begin at."""
    if isinstance(start, Integral) and not isinstance(start, bool) and 0 <= int(start) <= n:
        return int(start)
    raise ValueError(f"start needs a row from 0 to {n}, got {start!r}: 0 reads everything.")


def not_a_stream(got: Any) -> ValueError:
    return ValueError(
        f"rows without Y need an iterable of (Z, Y) batches, got {type(got).__name__}: pass Y, or yield pairs."
    )


def not_a_pair(batch: int, got: Any) -> ValueError:
    return ValueError(f"every batch needs to be a pair (Z, Y), got {type(got).__name__} in batch {batch}: yield pairs.")


def batch_columns_differ(batch: int, what: str, need: int, got: int) -> ValueError:
    return ValueError(
        f"{what} needs {need} columns in every batch as in the first, got {got} in batch {batch}: yield the same "
        "columns every time."
    )


def batch_names_differ(batch: int, what: str, need: Sequence[Any], got: Sequence[Any]) -> ValueError:
    pairs = [(a, b) for a, b in zip(need, got, strict=True) if a != b]
    return ValueError(
        f"{what} needs the columns of the first batch in the same order, got {str(pairs[0][1])!r} in place of "
        f"{str(pairs[0][0])!r} in batch {batch}: reorder or rename the columns."
    )


def batch_lengths_differ(batch: int, n_z: int, n_y: int) -> ValueError:
    return ValueError(
        f"Z and Y need the same number of rows (samples), got {n_z} and {n_y} in batch {batch}: yield one row of "
        "covariates per row of Z."
    )


def stream_used_up() -> ValueError:
    return ValueError(
        "a stream of batches can be read once, and it was: pass a new generator, or something that can be read again "
        "(a list of batches, or a path)."
    )


def unknown_sink(path: Any) -> ValueError:
    return ValueError(
        f"results can be written to .npy, .zarr or .parquet, got the path {str(path)!r}: choose one of these suffixes."
    )


def target_exists(path: Any) -> ValueError:
    return ValueError(
        f"a path without a file is needed for results, got {str(path)!r}, which exists: choose another, or pass "
        "overwrite=True."
    )


def being_written(path: Any) -> ValueError:
    return ValueError(
        f"results need one writer at a time, got a second one for {str(path)!r}: wait for the other, or choose another "
        "path."
    )


def sink_shape(path: Any, shape: Any) -> ValueError:
    return ValueError(f"results in {str(path)!r} need a shape of rows and columns, both at least 1, got {shape}.")


def sink_names(path: Any, need: int, names: Sequence[Any]) -> ValueError:
    return ValueError(
        f"results in {str(path)!r} need {need} distinct column names, got {some(names)} ({len(names)}): pass one name "
        "a column."
    )


def sink_rows_differ(path: Any, need: tuple[Any, ...], got: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"rows written to {str(path)!r} need shape (at most {need[0]}, {need[1]}), got {got}: pass shape= of all rows "
        "to open_sink, and write no more than that."
    )


def rows_missing(path: Any, need: int, got: int) -> ValueError:
    return ValueError(
        f"{str(path)!r} needs {need} rows, got {got} before it was closed: nothing was put there; write the rest (the "
        "same call goes on where this one stopped)."
    )


def disk_full(path: Any, need: int, free: int | None, done: int) -> DiskFullError:
    room = "" if free is None else f", {free} are free"
    return DiskFullError(
        f"{str(path)!r} needs about {need} bytes more on its disk{room}: the disk is full or a size limit was reached. "
        f"Make room and call again with the same arguments: it goes on at row {done}."
    )


# -- factor analysis of data larger than memory -----------------------------------------------------------------------


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


# -- clusters ---------------------------------------------------------------------------------------------------------


def partitions_differ(n_z: int, n_y: int) -> ValueError:
    return ValueError(
        f"Z and Y in dask need the same partitions, got {n_z} and {n_y}: repartition one like the other "
        "(Y.repartition(divisions=Z.divisions)), or pass Y from memory."
    )


def partition_lengths_differ(partition: int, n_z: int, n_y: int) -> ValueError:
    return ValueError(
        f"Z and Y need the same number of rows in every partition, got {n_z} and {n_y} in partition {partition}: cut "
        "both in the same way, or pass Y from memory."
    )


def levels_unknown(column: str) -> ValueError:
    return ValueError(
        f"a covariate in dask needs a type that says its levels, got text or unknown categories in column {column!r}: "
        "use Y.categorize() first, or pass Y from memory."
    )


def no_scheduler(address: str, why: str) -> ValueError:
    return ValueError(
        f"a dask scheduler is needed at {address!r}, got no answer ({why}): start one with  dask scheduler, workers "
        "with  dask worker ADDRESS, and pass the address it prints (tcp://host:8786)."
    )


def no_workers(address: str) -> ValueError:
    return ValueError(
        f"the dask cluster at {address!r} needs at least one worker, got none: start them with  dask worker {address}."
    )


def check_number(what: str, value: Any) -> int:
    """A whole number, at least 1, also written as 1e9."""
    if not (isinstance(value, int | float) and 1 <= value <= 1e18 and float(value).is_integer()):
        raise ValueError(f"{what} needs a whole number, at least 1, got {value}: write for example 1000 or 1e9.")
    return int(value)


def check_rate(what: str, value: Any) -> float:
    if not (isinstance(value, int | float) and value > 0):
        raise ValueError(f"{what} needs a positive number of gigabytes a second, got {value}: write for example 1.5.")
    return float(value)


def unknown_precision(dtype: Any) -> ValueError:
    return ValueError(f"--dtype needs to be float32 or float64, got {dtype!r}: choose what the data are stored in.")
