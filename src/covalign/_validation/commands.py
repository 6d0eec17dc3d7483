"""What users are told: the study, its methods, and the commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any


def absent_method(name: str, why: str) -> ValueError:
    return ValueError(f"{name} cannot run here: {why}")


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
