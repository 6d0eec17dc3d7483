"""What users are told: the study, its methods, and the commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.validation.base import nearest, some


def unknown_figures(names: Iterable[str], known: Sequence[str]) -> ValueError:
    hints = [f"{name} (did you mean {near[0]}?)" if (near := nearest(name, known, 1)) else name for name in names]
    return ValueError(f"there is no {', '.join(hints)}: the names are {', '.join(known)}.")


def not_a_named_path(text: str) -> ValueError:
    return ValueError(f"a representation needs NAME=PATH, got {text!r}: write for example clip={text}.")


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


# -- compare ----------------------------------------------------------------------------------------------------------


def unknown_methods(names: Iterable[str], known: Sequence[str]) -> ValueError:
    hints = []
    for name in names:
        near = nearest(name, known, 3)
        hints.append(f"{name!r} (did you mean {' or '.join(map(repr, near))}?)" if near else repr(name))
    return ValueError(f"methods need known names, got {', '.join(hints)}: the names are {'; '.join(known)}.")


def constant_in_fold(names: Iterable[str], folds: int) -> ValueError:
    return ValueError(
        f"covariates need to vary in every training fold, got {some(names)} which is constant in one of {folds}: use "
        "fewer folds, another seed, no folds (0), or drop the rare covariate."
    )


def check_division(folds: Any, n: int) -> int:
    """A number of folds: 0, or from 2 to the number of samples."""
    if isinstance(folds, int) and (folds == 0 or 2 <= folds <= n):
        return folds
    raise ValueError(f"folds needs 0 (none), or a number from 2 to the {n} samples, got {folds!r}: 5 is usual.")


def check_view(text: str) -> tuple[str, int]:
    """NAME=FEATURES as a name that can be a file's, and a number."""
    name, _, count = text.partition("=")
    if not (re.fullmatch(r"\w[\w.-]*", name) and count.isascii() and count.isdigit() and int(count) > 0):
        raise ValueError(
            f"--view needs NAME=FEATURES, got {text!r}: write for example rna=60, with a name of letters, digits, - "
            "and _, and at least one feature."
        )
    return name, int(count)


def view_name_taken(name: str) -> ValueError:
    return ValueError(f"every view needs a file of its own, got a second {name}.csv: choose another name for it.")


def features_or_views() -> ValueError:
    return ValueError("either --features or --view is needed, got both: --view says the number of features itself.")


def check_seed(seed: int) -> int:
    if seed < 0:
        raise ValueError(f"--seed needs a whole number, at least 0, got {seed}: choose another.")
    return seed


def not_a_folder(path: Any) -> ValueError:
    return ValueError(f"a folder is needed for the results, got {str(path)!r}, which is a file: choose another name.")


def too_many_files(files: Sequence[str]) -> ValueError:
    return ValueError(
        f"a table and its covariates are needed once, got {some(files)}: write for example  covalign compare Z.npy "
        "covariates.csv, or name several tables by --view NAME=PATH."
    )
