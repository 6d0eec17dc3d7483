"""What users are told: the kinds of errors and warnings, and how lists are shown in a message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
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


class TargetExistsError(ValueError):
    """Results would replace a file."""


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


def nearest(name: Any, known: Iterable[Any], most: int) -> list[str]:
    """Names that may have been meant, the nearest first; capitals do not count."""
    folded = {str(one).casefold(): str(one) for one in known}
    return [folded[match] for match in difflib.get_close_matches(str(name).casefold(), folded, most, 0.5)]


def meant(wrong: Iterable[Any], known: Iterable[Any], most: int = 2) -> str:
    """A question after the names that may have been meant; empty if none is near."""
    have = list(known)
    near = dict.fromkeys(match for name in wrong for match in nearest(name, have, most))
    return f"did you mean {some(near)}?" if near else ""
