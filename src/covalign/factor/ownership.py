"""Samples, features and views that own what many should share; ``ownership_`` names them.

A factor describes many samples. If one sample (or two, such as replicates) has most of the sum of squares of a factor,
the factor is that sample: an outlier, a failed measurement, another unit. In the same way one feature can be all that a
factor has in a view, and one view all that the factors explain. None of these is an error, so they are reported, with
what to do.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import beta

from covalign._core.linalg import Array
from covalign.closed_form.measures import quotient
from covalign.exceptions import OwnershipWarning

SAMPLE, FEATURE, VIEW = "sample of a factor", "feature of a factor in a view", "view of all factors"
OF_SAMPLE, OF_TWO, LEAST_OF_TWO = 0.5, 0.75, 0.2  # of the sum of squares of a factor
OF_FEATURES, LEAST_FEATURES = 0.9, 10  # of the squared loadings; a view with few features may well have one that counts
OF_VIEWS = 0.95  # of the explained variance
BY_CHANCE = 1e-3  # how often one of K normal factors of few samples may be reported
NAMED = 3  # in a sentence
COLUMNS = ("kind", "factor", "view", "owner", "share", "advice")
HEADLINES = {
    SAMPLE: "Single samples have most of the sum of squares of a factor",
    FEATURE: "Single features have nearly all squared loadings of a factor in a view",
    VIEW: "One view has nearly all the variance that the factors explain",
}
ADVICE = {
    SAMPLE: "Leave the sample out, log-transform its features, or use noise='student', and fit again.",
    FEATURE: "Log-transform or winsorise the feature, or leave it out, unless the factor should be this feature.",
    VIEW: "Check the units and the scale of the other views, or leave them out if they share no factors with this one.",
}


Flags = NDArray[np.bool_]


class Finding(NamedTuple):
    """An owner and what it owns: of a factor (None: all), in a view (None: all)."""

    kind: str
    factor: str | None
    view: str | None
    owner: Any
    share: float


def frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row for each finding: kind, factor, view, owner, share, advice."""
    rows = [(*found, ADVICE[found.kind]) for found in findings]
    made = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"share": np.float64})
    return made.astype(dict.fromkeys(("kind", "factor", "view", "owner", "advice"), object))


class Limits(NamedTuple):
    """The share of a factor that is too much for one sample, and for two together."""

    one: float
    two: float

    @classmethod
    def of(cls, n: int, k: int) -> Limits:
        """Half and three quarters, or more where chance alone gives that: in few samples.

        If a factor is normal, n / (n - 1) times the share of a sample is Beta(1/2, (n - 2) / 2), and that of two is
        below Beta(1, (n - 3) / 2).
        """
        if n < 4:
            return cls(1.0, 1.0)
        one = (n - 1) / n * float(beta.isf(BY_CHANCE / (n * k), 0.5, (n - 2) / 2))
        two = float(beta.isf(BY_CHANCE / (comb(n, 2) * k), 1.0, (n - 3) / 2))
        return cls(max(OF_SAMPLE, one), max(OF_TWO, two))


def owners(values: Array, limits: Limits) -> list[tuple[int, float]]:
    """The sample, or the two samples, with too much of the sum of squares; else none."""
    squares = (values - values.mean()) ** 2
    shares = quotient(squares, squares.sum())
    top = [(i, float(shares[i])) for i in np.argsort(-shares, kind="stable")[:2].tolist()]
    if len(top) == 2 and top[1][1] > LEAST_OF_TWO and top[0][1] + top[1][1] > limits.two:
        return top
    return top[:1] if top[0][1] > limits.one else []


def of_samples(
    Z: Array, Y: Array, factors: Sequence[str], active: Flags, samples: Sequence[Any] | None
) -> list[Finding]:
    """Samples that own an active factor; a sample that also owns the covariate of the factor does so rightly.

    ``Z`` is n x K, ``Y`` n x P with NaN where a covariate is missing.
    """
    limits, found = Limits.of(*Z.shape), []
    for k in np.flatnonzero(active).tolist():
        of_covariate = owners(np.nan_to_num(Y[:, k]), limits) if k < Y.shape[1] else []
        rightly = {i for i, _ in of_covariate}
        for i, share in owners(Z[:, k], limits):
            if i not in rightly:
                found.append(Finding(SAMPLE, factors[k], None, i if samples is None else samples[i], share))
    return found


def of_features(
    loadings: Mapping[str, Array], names: Mapping[str, Sequence[str]], factors: Sequence[str], active: Flags
) -> list[Finding]:
    """Features that own a factor in a view. ``active`` says which factors explain something of each view."""
    found = []
    for (view, W), counts in zip(loadings.items(), active, strict=True):
        if len(W) < LEAST_FEATURES:
            continue
        shares = quotient(W**2, np.sum(W**2, axis=0))
        for k in np.flatnonzero(counts & (shares.max(axis=0) > OF_FEATURES)).tolist():
            d = int(shares[:, k].argmax())
            found.append(Finding(FEATURE, factors[k], view, names[view][d], float(shares[d, k])))
    return found


def of_views(explained: Array, views: Sequence[str]) -> list[Finding]:
    """The view that owns the explained variance. ``explained`` is the share of every view's own variance.

    So a view does not own more only because it has more features.
    """
    shares = quotient(np.maximum(explained, 0.0), np.maximum(explained, 0.0).sum())
    own = [i for i in range(len(views)) if shares[i] > OF_VIEWS and len(views) > 1]
    return [Finding(VIEW, None, None, views[i], float(shares[i])) for i in own]


# -- in words ---------------------------------------------------------------------------------------------------------


def sentences(found: pd.DataFrame) -> list[str]:
    """What was found and what to do, a text for each kind."""
    texts = []
    for kind in (SAMPLE, FEATURE, VIEW):
        rows = [Finding(*row[:-1]) for row in found[found["kind"] == kind].itertuples(index=False, name=None)]
        if rows:
            more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
            texts.append(f"{HEADLINES[kind]}: {', '.join(map(_said, rows[:NAMED]))}{more}. {ADVICE[kind]}")
    return texts


def warn(found: pd.DataFrame, informed: Sequence[str], stacklevel: int) -> None:
    """A warning for each kind. The factor of a covariate may rightly be one feature, so that is no warning."""
    expected = (found["kind"] == FEATURE) & found["factor"].isin(list(informed))
    for text in sentences(found[~expected]):
        warnings.warn(text, OwnershipWarning, stacklevel=stacklevel)


def _said(one: Finding) -> str:
    of = "" if one.factor is None else f" of {one.factor!r}"
    where = "" if one.view is None else f" in {one.view!r}"
    return f"{str(one.owner)!r}{of}{where} ({100 * one.share:.0f} %)"
