"""The schema of model files: of every field its kind, shape and range, checked before a model is made of them.

``model_fields`` lists the fields. A check takes a value and raises ``Fault`` if it does not fit. Fields that no list
has are ignored, so that later versions can add some.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from covalign._core.linalg import Array

Check = Callable[[Any], None]
ROUNDING = 1e-6  # relative, of sums that were rounded in another order
LARGE = 1e100  # no number of a fitted model is larger, or above 0 and smaller than its inverse, so products are finite
RAW = 1e150  # of numbers in the units of the user; their squares are finite


class Fault(ValueError):
    """A field that is absent or wrong: its name, and why."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field} {why}")
        self.field, self.why = field, why


# -- values of JSON ---------------------------------------------------------------------------------------------------


def text(value: Any) -> None:
    """Text."""
    _need(isinstance(value, str), "needs to be text")


def flag(value: Any) -> None:
    """True or False, also as 1 or 0."""
    _need(value in (0, 1) and isinstance(value, bool | int), "needs to be true or false")


def anything(value: Any) -> None:
    """Any value."""


def pattern(value: Any) -> None:
    """A regular expression."""
    text(value)
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError):
        raise Fault("", "needs a regular expression") from None


def scalar(value: Any) -> None:
    """Null, text, a flag or a number."""
    _need(value is None or isinstance(value, str | bool | int | float), "needs one value")


def whole(least: int, most: float = 2**53) -> Check:
    """A whole number."""

    def check(value: Any) -> None:
        _need(type(value) is int and least <= value <= most, f"needs a whole number of at least {least}")

    return check


def number(low: float, high: float = math.inf, *, gap: bool = False) -> Check:
    """A finite number from ``low`` to ``high``; with ``gap`` also NaN."""

    def check(value: Any) -> None:
        known = isinstance(value, int | float) and not isinstance(value, bool)
        fits = known and ((math.isfinite(value) and low <= value <= high) or (gap and math.isnan(value)))
        _need(fits, f"needs a number from {low:g} to {high:g}")

    return check


def one_of(*values: Any) -> Check:
    """One of these texts."""

    def check(value: Any) -> None:
        _need(isinstance(value, str) and value in values, f"needs one of {', '.join(values)}")

    return check


def either(*checks: Check) -> Check:
    """What passes one of the checks."""

    def check(value: Any) -> None:
        faults = []
        for one in checks:
            try:
                return one(value)
            except Fault as fault:
                faults.append(fault.why)
        raise Fault("", " or ".join(faults))

    return check


def optional(check: Check) -> Check:
    """Null, or what passes."""
    return lambda value: None if value is None else check(value)


def several(check: Check, length: int | None = None, *, distinct: bool = False) -> Check:
    """A list (of some length) whose items all pass."""

    def check_all(value: Any) -> None:
        _need(isinstance(value, list), "needs a list")
        _need(length is None or len(value) == length, f"needs {length} items")
        for item in value:
            check(item)
        _need(not distinct or len(set(value)) == len(value), "needs distinct items")

    return check_all


def items(*checks: Check) -> Check:
    """A list with one item for each check."""

    def check(value: Any) -> None:
        _need(isinstance(value, list) and len(value) == len(checks), f"needs a list of {len(checks)}")
        for one, item in zip(checks, value, strict=True):
            one(item)

    return check


def mapping(check: Check) -> Check:
    """An object whose values all pass."""

    def check_all(value: Any) -> None:
        _need(isinstance(value, dict), "needs an object")
        for item in value.values():
            check(item)

    return check_all


def check_fields(found: Any, fields: dict[str, Check], where: str = "", *, needed: Sequence[str] = ()) -> None:
    """Check the fields of an object that are there; ``needed`` ones have to be."""
    if not isinstance(found, dict):
        raise Fault(where or "meta.json", "needs an object")
    for name in needed:
        if name not in found:
            raise Fault(where + name, "is missing")
    for name, check in fields.items():
        if name in found:
            try:
                check(found[name])
            except Fault as fault:
                raise Fault(where + name, fault.why) from None


# -- arrays -----------------------------------------------------------------------------------------------------------


class Arrays:
    """The arrays of a file. Sizes have names: one that is not known yet is that of the first array that has it."""

    def __init__(self, arrays: dict[str, Array], sizes: dict[str, int]) -> None:
        self.arrays, self.sizes = arrays, dict(sizes)

    def numbers(self, name: str, shape: str, *, low: float = -LARGE, high: float = LARGE, gaps: bool = False) -> Array:
        """An array of floats within [low, high]; with ``gaps`` also NaN."""
        found = self._found(name, shape, "fiu" if name == "groups" else "f")
        inside = np.isfinite(found) & (found >= low) & (found <= high)
        if gaps:
            inside |= np.isnan(found)
        if not inside.all():
            raise Fault(name, f"needs finite numbers from {low:g} to {high:g}")
        return found

    def positive(self, name: str, shape: str, most: float = LARGE) -> Array:
        """An array of floats above 0, from 1 / most to most."""
        return self.numbers(name, shape, low=1 / most, high=most)

    def raw(self, name: str, shape: str, *, gaps: bool = False) -> Array:
        """An array of floats in the units of the user."""
        return self.numbers(name, shape, low=-RAW, high=RAW, gaps=gaps)

    def flags(self, name: str, shape: str) -> Array:
        """An array of flags."""
        return self._found(name, shape, "b")

    def whole(self, name: str, shape: str, least: int, below: float = math.inf) -> Array:
        """An array of whole numbers from ``least``, below a limit."""
        found = self._found(name, shape, "iu")
        if found.size and not (int(found.min()) >= least and int(found.max()) < below):
            raise Fault(name, f"needs whole numbers from {least} below {below:g}")
        return found

    def covariance(self, name: str, shape: str, slack: float = 0.0) -> Array:
        """Symmetric matrices that no entry keeps from being covariances: |c_ij| <= sqrt(c_ii c_jj), but for rounding.

        ``slack`` is what rounding may add, if the numbers were differences of larger ones.
        """
        found = self.numbers(name, shape, low=-(RAW**2), high=RAW**2)
        variances = np.diagonal(found, axis1=-2, axis2=-1)
        size = np.max(np.abs(found), initial=0.0)
        if np.any(variances < -(ROUNDING * np.max(variances, initial=0.0) + slack)):
            raise Fault(name, "needs variances of at least 0")
        sd = np.sqrt(np.maximum(variances, 0.0))
        self.within(name, found, sd[..., :, None] * sd[..., None, :], slack)
        if np.any(np.abs(found - np.swapaxes(found, -1, -2)) > ROUNDING * size + slack):
            raise Fault(name, "needs a symmetric matrix")
        return found

    def within(self, name: str, found: Array, most: Array, slack: float = 0.0) -> None:
        """No entry beyond its limit, but for rounding."""
        if not np.all(np.abs(found) <= most + ROUNDING * np.max(most, initial=0.0) + slack):
            raise Fault(name, "needs covariances that variances allow")

    def size(self, name: str) -> int:
        """A size that is known."""
        return self.sizes[name]

    def _found(self, name: str, shape: str, kinds: str) -> Array:
        if name not in self.arrays:
            raise Fault(name, "is missing")
        found = self.arrays[name]
        if found.dtype.kind not in kinds or found.dtype.itemsize > 8:
            raise Fault(name, f"needs {'numbers' if 'f' in kinds else 'whole numbers or flags'}, got {found.dtype}")
        names = shape.split()
        if found.ndim == len(names):
            for size, at in zip(found.shape, names, strict=True):
                self.sizes.setdefault(at, size)
        need = tuple(self.sizes.get(at, -1) for at in names)
        if found.shape != need:
            raise Fault(name, f"needs shape {need}, got {found.shape}")
        return found


def _need(fits: bool, why: str) -> None:
    if not fits:
        raise Fault("", why)
