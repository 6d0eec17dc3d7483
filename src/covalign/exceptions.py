"""The kinds of errors and warnings that covalign raises.

All errors but ``MissingExtraError`` are ``ValueError``, so ``except ValueError`` catches every error in the data or in
the arguments.

>>> import covalign as ca
>>> data = ca.simulate.scenario("PN", n_samples=100)
>>> try:
...     ca.LatentAligner("exclusive").fit(data.Z, data.Y[:, [0, 0]])  # the same covariate twice
... except ca.exceptions.DependentCovariatesError:
...     print("drop one of the two")
drop one of the two
"""

from __future__ import annotations

__all__ = [
    "CannotBeSavedError",
    "CannotHoldOutError",
    "CannotWriteError",
    "ColumnLayoutWarning",
    "DataNotFoundError",
    "DependentCovariatesError",
    "DiskFullError",
    "FileFormatError",
    "LeastSquaresWarning",
    "MissingExtraError",
    "NotFiniteError",
    "NotHeldOutWarning",
    "OwnershipWarning",
    "PeerError",
    "RawCountsWarning",
    "SingularTransformWarning",
    "TargetExistsError",
    "TransposedWarning",
    "UngroupedRowsWarning",
    "UnmatchedNamesWarning",
    "WeightsNotFoundError",
]


class DependentCovariatesError(ValueError):
    """The exclusive regime does not exist, because covariates are linearly dependent."""


class SingularTransformWarning(UserWarning):
    """The transformation is singular: it merges dimensions and has no exact inverse."""


class LeastSquaresWarning(UserWarning):
    """No exact inverse exists; the result is the best linear reconstruction."""


class MissingExtraError(ImportError):
    """An optional package is needed and not installed."""


class TargetExistsError(ValueError):
    """The output file exists already."""


class NotFiniteError(ValueError):
    """A number is NaN or infinite. ``row`` and ``column`` are its position, where that is known."""

    row: int | None = None
    column: int | None = None
    value: float | None = None


class ColumnLayoutWarning(UserWarning):
    """A sparse matrix on disk is stored by columns, so all of it is read into memory."""


class CannotWriteError(OSError, ValueError):
    """A file cannot be written: no permission, a read-only disk, a name that is too long, a device."""


class DiskFullError(OSError, ValueError):
    """The disk is full, or is too small for the rows to write."""


class DataNotFoundError(FileNotFoundError, ValueError):
    """A data set, or one of its files, was not found."""


class WeightsNotFoundError(FileNotFoundError, ValueError):
    """The weights of a pretrained model are not on this machine and cannot be downloaded."""


class CannotHoldOutError(ValueError):
    """Held-out alignment cannot be computed."""


class NotHeldOutWarning(UserWarning):
    """No row can be left out, or too little is left out to judge by it."""


class OwnershipWarning(UserWarning):
    """One sample, feature or view dominates what many should share: a factor, or all that factors explain."""


class TransposedWarning(UserWarning):
    """A file has samples as columns (their names are those of the covariates' rows); it was read transposed."""


class UngroupedRowsWarning(UserWarning):
    """Rows seem to belong together (cells of a donor), but no groups were given."""


class RawCountsWarning(UserWarning):
    """A table of cells looks like raw counts, which were not log-normalised."""


class UnmatchedNamesWarning(UserWarning):
    """More than half of the names of a gene set are no features of the view."""


class FileFormatError(ValueError):
    """A file is damaged or incomplete, is something else, makes false claims, or was saved by a later version."""


class CannotBeSavedError(ValueError):
    """A model holds a value that cannot be saved."""


class PeerError(ValueError):
    """A method that runs in its own process failed."""
