"""The eight metrics of the paper (and two of ours), of any method on any data: on fitted rows and on held-out rows.

In addition to the paper's metrics on fitted rows there is **held-out alignment**, because with many features any
supervised method aligns well on the rows it was fitted to. It is corr(z_p, y_p) over all left-out
rows. The comparison is fair: every method is fitted to the same training rows, features and covariates are standardised
by these rows' means and deviations, informed factors are chosen and signed on them, and the factors of a left-out
sample come **from its features alone, by what the method itself has learned**:

- PCA, PLS and both supervised PCAs have factors F = X R; new samples get theirs by the same R, exactly.
- iFA and the aligner have a ``transform``; iFA's is the posterior mean with the covariates integrated out.
- MOFA, SOFA, MOFA-FLEX and MuVI decode linearly; a sample gets the posterior mean under the fitted loadings, noise and
  covariance of factors, as in iFA (``covalign.study.baselines.linear_decoder``).
- "Y as factors" and the iVAE need the covariates of a sample for its factors: they have no held-out number, and a note
  says so.

A regression of the fitted factors on X for all methods was rejected: if a method's factor is (almost) the covariate, it
would measure that regression and not the method. Pooling over folds, the standard error
and held-out coupling are those of ``covalign.closed_form.heldout``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from covalign._core.linalg import Array
from covalign.closed_form import fold_packing, metrics
from covalign.closed_form.heldout import (
    CoupledFold,
    coupling_of,
    coupling_on_new_rows,
    part_sums,
    second_moments,
)
from covalign.closed_form.measures import quotient
from covalign.closed_form.metrics.alignment import cross_correlation
from covalign.closed_form.pooled_correlation import Pairs, mean_estimate
from covalign.moments.block_sizes import MANY
from covalign.moments.fold_accumulator import fold_moments
from covalign.moments.moments import Moments
from covalign.study.baselines import method as face
from covalign.study.baselines.method import Method
from covalign.study.results_store import Row
from covalign.tables import groups as grouping

LABELS = {
    "alignment": r"mean alignment  corr$(\tilde z_p, y_p)$",
    "coupling": r"coupling  $\|\mathrm{corr}(\tilde z) - I\|_F^2$",
    "variance": "variance explained\nper informed factor",
    "disentanglement": "disentanglement D",
    "completeness": "completeness C",
    "informativeness": "informativeness I",
    "sap": "SAP",
    "nsap": "normalised SAP",
}


def on_fitted_rows(
    method: str, views: dict[str, Array], Y: Array, informed: Array, factors: Array, seconds: float
) -> Iterator[Row]:
    """All metrics on the fitted rows, and seconds."""
    yield from plane(method, informed, Y)
    yield from explained(method, views, informed, factors)
    yield from disentanglement(method, informed, Y)
    yield Row(method, "seconds", seconds)


def plane(method: str, informed: Any, Y: Any = None) -> Iterator[Row]:
    """Alignment and coupling, of rows or of one Moments."""
    yield Row(method, "alignment", metrics.alignment(informed, Y))
    yield Row(method, "coupling", metrics.coupling(informed))


def explained(method: str, views: dict[str, Array], informed: Array, factors: Array) -> Iterator[Row]:
    """Marginal share of an informed factor and joint share of all factors, averaged over features, then views."""
    each = [np.mean(metrics.variance_explained(X, informed)) for X in views.values()]
    total = [metrics.total_variance_explained(X, factors) for X in views.values()]
    yield Row(method, "variance", float(np.mean(each)))
    yield Row(method, "total variance", float(np.mean(total)))


def explained_by_loadings(
    method: str, views: dict[str, Array], factors: Array, loadings: dict[str, Array], p: int
) -> Iterator[Row]:
    """Share of X that z_k w_k' explains, averaged over informed factors, then views; negative if it adds error."""
    each = [
        np.mean(metrics.variance_explained(X, factors, kind="loadings", W=loadings[name])[:p])
        for name, X in views.items()
    ]
    yield Row(method, "loading variance", float(np.mean(each)))


def disentanglement(method: str, informed: Any, Y: Any = None) -> Iterator[Row]:
    """D, C, I, SAP and nSAP of the informed dimensions, of rows or of one Moments."""
    for name, value in metrics.dci(informed, Y)._asdict().items():
        yield Row(method, name, value)
    yield Row(method, "sap", metrics.sap(informed, Y))
    yield Row(method, "nsap", metrics.nsap(informed, Y))


# -- a method on the user's data --------------------------------------------------------------------------------------


PARTS = 4  # of the left-out samples of a fold


class Settings(NamedTuple):
    """Settings that all methods share."""

    n_factors: int
    seed: int
    budget: int


class Data(NamedTuple):
    """Complete numbers: views (n x D each), encoded covariates (n x P, by name), numbers of groups if rows have any."""

    views: dict[str, Array]
    Y: Array
    names: tuple[str, ...] = ()
    groups: Array | None = None

    @property
    def n_groups(self) -> int | None:
        """The number of groups, None if samples are taken as independent."""
        return None if self.groups is None else len(np.unique(self.groups))

    def rows(self, which: Any) -> Data:
        """Some of the samples."""
        groups = None if self.groups is None else self.groups[which]
        return Data({name: view[which] for name, view in self.views.items()}, self.Y[which], self.names, groups)


def in_sample(method: Method, data: Data, settings: Settings) -> Iterator[Row]:
    """The paper's metrics on the rows fitted, and seconds."""
    result = run(method, data, settings)
    yield from on_fitted_rows(method.name, data.views, data.Y, result.informed, result.factors, result.seconds)


def held_out(method: Method, data: Data, settings: Settings, folds: int) -> Iterator[Row]:
    """Alignment and coupling of left-out samples, with factors from their features by a fit to the others."""
    sums, fitted, coupled = [], [], []
    origin = data.Y.mean(axis=0)
    made = divisions(data.Y, folds, settings.seed, data.groups)
    for train, test in made:
        old, new = data.rows(train), data.rows(test)
        result = run(method, old, settings)
        if result.place is None:
            return
        own = Moments.from_arrays(result.informed, old.Y)
        # In the units of the factors of the fitted samples, so that the folds can be put together.
        z = (result.place(new.views) - own.mean_z) * quotient(1.0, np.sqrt(np.diag(own.cov_z)))
        parts = parts_of(z, new, folds)
        known = np.ptp(old.Y, axis=0) > 0
        sums += [np.where(known, part_sums(np.eye(len(known)), part, origin), 0.0) for part in parts]
        fitted.append(np.diag(cross_correlation(own)))
        coupled.append(CoupledFold(*second_moments(parts), own.cov_z, len(train)))
    pairs = Pairs(*np.stack(sums, axis=1))
    found = mean_estimate(pairs, np.mean(fitted, axis=0), len(made), data.groups is not None)
    yield Row(method.name, "held-out alignment", float(np.nan_to_num(pairs.correlation()).mean()))
    yield Row(method.name, "held-out se", float(found.se))
    among_fitted = float(np.mean([coupling_of(of.own) for of in coupled]))
    among = coupling_on_new_rows(among_fitted, coupled, data.groups is not None)
    yield Row(method.name, "held-out coupling", among)
    yield Row(method.name, "folds", len(made))


def parts_of(z: Array, data: Data, folds: int) -> list[Moments]:
    """Moments of left-out factors and covariates in parts that count as independent: buckets of groups, or of rows."""
    if data.groups is None:
        return [part for part in fold_moments(z, data.Y, PARTS) if part is not None]
    bucket = buckets_of(data.groups, folds)
    return [Moments.from_arrays(z[bucket == b], data.Y[bucket == b]) for b in np.unique(bucket)]


def buckets_of(groups: Array, folds: int) -> Any:
    """The bucket of every sample, which follows from its group."""
    return grouping.buckets(groups, MANY)


def run(method: Method, data: Data, settings: Settings) -> face.Result:
    """``baselines.run`` with the settings of this comparison."""
    return face.run(method, data.views, data.Y, settings.n_factors, settings.seed, settings.budget, data.groups)


def divisions(Y: Array, folds: int, seed: int, groups: Array | None = None) -> list[tuple[Any, Any]]:
    """(rows to fit, rows left out) of each fold: the same for all methods, stratified by flags and classes.

    A group (a number for every row) is on one side; there are fewer folds if there are fewer groups.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    if folds == 0:
        return []
    if groups is not None:
        fold = fold_packing.fold_of_rows(buckets_of(groups, folds), Y, folds)
        return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(fold.max() + 1)]
    flags = [p for p in range(Y.shape[1]) if len(np.unique(Y[:, p])) == 2]
    _, group = np.unique(Y[:, flags], axis=0, return_inverse=True)
    stratified = flags and np.bincount(group.reshape(-1)).min() >= folds
    kind = StratifiedKFold if stratified else KFold
    return list(kind(folds, shuffle=True, random_state=seed).split(Y, group.reshape(-1)))
