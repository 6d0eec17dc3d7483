"""Numbers whose squares and their sums a float64 can hold, and the error for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from covalign._core.messages import message

LARGEST, SMALLEST = 1e100, 1e-100  # of values and of standard deviations: squares and their sums stay exact


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
