"""The kinds of errors and warnings that covalign raises.

All errors but ``MissingExtraError`` are ``ValueError``s, so ``except ValueError`` catches whatever the data or the
arguments are to blame for.
"""

from __future__ import annotations

__all__ = [
    "CannotBeSavedError",
    "CannotHoldOutError",
    "ColumnLayoutWarning",
    "DataNotFoundError",
    "DependentCovariatesError",
    "DiskFullError",
    "FileFormatError",
    "LeastSquaresWarning",
    "MissingExtraError",
    "NotFiniteError",
    "PeerError",
    "SingularTransformWarning",
    "TargetExistsError",
    "WeightsNotFoundError",
]


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


class ColumnLayoutWarning(UserWarning):
    """A sparse matrix on disk is stored by columns, so it is read whole, once."""


class DiskFullError(OSError, ValueError):
    """The disk filled up, or would, while rows were written."""


class DataNotFoundError(FileNotFoundError, ValueError):
    """A data set, or a file of it, is not where it was said to be."""


class WeightsNotFoundError(FileNotFoundError, ValueError):
    """A model's files are neither here nor to be had."""


class CannotHoldOutError(ValueError):
    """A model cannot be judged on samples left out."""


class FileFormatError(ValueError):
    """A file is not a complete model of a version this covalign can read."""


class CannotBeSavedError(ValueError):
    """A value has no form in a file of arrays and JSON."""


class PeerError(ValueError):
    """A method that runs in a process of its own failed there."""
