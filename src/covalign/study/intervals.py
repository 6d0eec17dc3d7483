"""Intervals from several random splits of the same rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student


class Interval(NamedTuple):
    """A mean and the half-width of its interval (NaN for a single value)."""

    mean: float
    reach: float

    def __format__(self, spec: str) -> str:
        """0.071 [0.063, 0.079]; only the mean if there is no interval."""
        spec = spec or ".3f"
        if np.isnan(self.reach):
            return format(self.mean, spec)
        return f"{self.mean:{spec}} [{self.mean - self.reach:{spec}}, {self.mean + self.reach:{spec}}]"

    def __str__(self) -> str:
        return format(self, "+.3f")

    @property
    def excludes_zero(self) -> bool:
        """The whole interval lies on one side of zero (False if there is no interval)."""
        return bool(abs(self.mean) > self.reach)


def over_splits(values: Any, test_over_train: float = 1.0, level: float = 0.9) -> Interval:
    """mean -+ t sqrt((1/J + n_test/n_train) s^2), s^2 the variance of J splits, t with J - 1 degrees of freedom.

    Splits share rows, so their spread alone is too small: s^2 / J would tend to zero with more and more splits of the
    same data. The second term is the correction of Nadeau and Bengio (2003); halves have n_test/n_train = 1, which
    makes intervals of five splits 2.4 times as wide as without it.
    """
    values = np.asarray(values, dtype=np.float64)
    count = len(values)
    if count < 2:
        return Interval(float(np.mean(values)), float("nan"))
    spread = np.sqrt((1 / count + test_over_train) * np.var(values, ddof=1))
    return Interval(float(np.mean(values)), float(student.ppf((1 + level) / 2, count - 1) * spread))
