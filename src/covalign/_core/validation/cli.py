"""What users are told: files, columns and rows given on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.validation.base import meant, some


def unknown_columns(where: Any, wrong: Sequence[str], have: Sequence[str]) -> ValueError:
    hint = " ".join(filter(None, [meant(wrong, have), f"It has {some(have, 20) or 'none'}."]))
    return ValueError(
        f"columns that are there are needed, got {some(wrong)}, which {str(where)!r} does not have: {hint}"
    )


def both_roles(names: Sequence[str]) -> ValueError:
    return ValueError(
        f"a column needs to be a covariate or a confounder, got {some(names)} as both: name it once, with "
        "--covariate or with --confounder."
    )


def only_confounders_left(where: Any) -> ValueError:
    return ValueError(
        f"at least one covariate is needed, got none in {str(where)!r}: name columns with --covariate, or give a table "
        "that has some besides the confounders."
    )


def covariates_needed(path: Any) -> ValueError:
    return ValueError(
        f"covariates are needed, got none, and {str(path)!r} does not bring them along: give a table of covariates, or "
        "name columns of that file with --covariate."
    )


def nameless_rows(where: Any, column: str) -> ValueError:
    return ValueError(
        f"every row needs a name in the column {column!r}, got an empty one in {str(where)!r}: fill it in, or name "
        "another column with --index."
    )


def several_names(where: Any, levels: int) -> ValueError:
    return ValueError(
        f"every row needs one name, got an index of {levels} levels in {str(where)!r}: join them into one, or write "
        "the table without its index."
    )


def rows_longer_than_header(path: Any, columns: int) -> ValueError:
    return ValueError(
        f"rows need a value for each of the {columns} names in the first line, and at most a name of their own before "
        f"these, got more in {str(path)!r}: complete the first line, or remove separators at the ends of rows."
    )


def repeated_names(where: Any, names: Iterable[Any]) -> ValueError:
    return ValueError(
        f"rows are matched by name and need distinct names, got {some(names, 3)} more than once in {str(where)!r}: "
        "rename or drop these rows, or say --by-position."
    )


def no_names_in_common(first: Any, some_names: Sequence[Any], second: Any, others: Sequence[Any]) -> ValueError:
    return ValueError(
        f"{str(first)!r} and {str(second)!r} need row names in common, got {some(some_names, 3)} and "
        f"{some(others, 3)}: name the column that holds them with --index, or say --by-position if rows are in the "
        "same order."
    )


def names_in_some(named: Sequence[str], nameless: Sequence[str]) -> ValueError:
    return ValueError(
        f"all views need row names, or none, got names in {some(named)} and none in {some(nameless)}: name the column "
        "that holds them with --index, or say --by-position if rows are in the same order."
    )


def not_a_table(path: Any) -> ValueError:
    return ValueError(
        f"a table of covariates needs to be .csv, .tsv, .txt (also .gz), .parquet, .h5ad, .h5mu, .npy or .npz, got "
        f"{str(path)!r}: export it to one of these."
    )


def columns_of_lengths(path: Any, lengths: dict[str, int]) -> ValueError:
    return ValueError(
        f"columns of one table need the same length, got {', '.join(f'{k} {n}' for k, n in lengths.items())} in "
        f"{str(path)!r}: save the covariates in a file of their own."
    )


def not_a_view(text: str) -> ValueError:
    return ValueError(f"--view needs NAME=PATH, got {text!r}: write for example rna={text or 'rna.csv'}.")


def repeated_view(name: str) -> ValueError:
    return ValueError(f"views need distinct names, got {name!r} more than once: rename one.")


def one_way_to_data(got: str) -> ValueError:
    return ValueError(
        f"data are needed once, as one file or as --view NAME=PATH (which may be repeated), got {got}: choose one."
    )
