"""What users are told: files, columns and rows given on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from covalign._core.validation.base import some


def unknown_output(option: str, path: Any, known: Sequence[str]) -> ValueError:
    return ValueError(
        f"{option} needs a name that ends in one of {', '.join(known)}, got {str(path)!r}: choose one of these."
    )


def nothing_asked(options: Sequence[str]) -> ValueError:
    return ValueError(f"something to make is needed, got no output: say {' or '.join(options)}.")


def same_file(path: Any, what: str) -> ValueError:
    return ValueError(f"every output needs a file of its own, got {str(path)!r} also as {what}: choose another name.")


def regime_and(option: str, regime: str) -> ValueError:
    return ValueError(
        f"{option} needs the tunable regime, got --regime {regime}: leave one of the two out (--lam alone is tunable)."
    )


def lam_and_coupling() -> ValueError:
    return ValueError(
        "one way to choose lambda is needed, got both --lam and --max-coupling: leave one of the two out."
    )


def check_lams(text: str) -> list[float]:
    """Numbers in [0, 1] from comma-separated text."""
    try:
        lams = [float(part) for part in text.split(",")]
    except ValueError:
        lams = [-1.0]
    if not all(0 <= lam <= 1 for lam in lams):
        raise ValueError(
            f"--lams needs numbers in [0, 1] separated by commas, got {text!r}: write for example 0,0.5,1."
        )
    return lams


def check_auto(option: str, text: str, number: type[int] | type[float]) -> Any:
    """``"auto"``, or a number; in which range is for the estimator to say."""
    if text == "auto":
        return text
    try:
        return number(text)
    except ValueError:
        kind = "a whole number" if number is int else "a number"
        raise ValueError(f"{option} needs 'auto' or {kind}, got {text!r}: use one of these.") from None


def which_view(path: Any, views: Sequence[str]) -> ValueError:
    return ValueError(
        f"a model of several views needs to know which one a file is, got {str(path)!r} alone: say --view NAME=PATH, "
        f"where NAME is one of {some(views)}."
    )


def for_factor_models(option: str) -> ValueError:
    return ValueError(
        f"{option} needs a model of informed factor analysis (covalign fit), got an aligner: leave it out."
    )


def views_share_a_file(names: Sequence[str], file: str) -> ValueError:
    return ValueError(
        f"every view needs a file of its own, got {some(names)}, which would all be {file!r}: rename a view, or give "
        "--loadings-out the name of one file."
    )
