"""The regimes on left-out rows: alignment with its interval, coupling, and the held-out frontier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.linalg import Array, to_correlation, unit_rows
from covalign._core.threads import in_threads
from covalign.closed_form import regimes
from covalign.closed_form.measures import off_diagonal_squares, quotient
from covalign.closed_form.pooled_correlation import Estimate, Pairs, estimate, mean_estimate, pair_sums
from covalign.closed_form.regimes import Polar
from covalign.closed_form.shrinkage import Ridge
from covalign.closed_form.splits import Split, mean_of_y
from covalign.closed_form.splits import all_rows as all_rows  # callers ask for it here
from covalign.moments.incomplete import Rows, merged

PART_NUMBERS = 50_000  # for the moments of the left-out rows of all folds, which a report carries with it


class Measured(NamedTuple):
    """A regime on left-out rows."""

    alignment: Estimate  # of every covariate
    mean: Estimate  # over covariates
    coupling: float


class LeftOut(NamedTuple):
    """A fit without a fold, and the rows left out of it."""

    polar: Polar
    parts: list[Rows]  # moments of (T_0 (z - mean of the training set), y)
    known: NDArray[np.bool_]  # covariates that the fit knows
    n_train: int

    def coupled(self, F: Array, grouped: bool) -> CoupledFold:
        """The coupling of F T_0 z."""
        n, C = second_moments(self.parts)
        return CoupledFold(left_out_coupling(n, F @ C @ F.T, grouped), coupling_of(F @ F.T), n.sum(), self.n_train)


class HeldOut(NamedTuple):
    """All folds of a model, and the polar form of the model itself."""

    whole: Polar
    folds: list[LeftOut]
    grouped: bool = False  # rows belong together, and parts are groups

    @property
    def all_exclusive(self) -> bool:
        """Whether the exclusive regime exists in every fold."""
        return all(of.polar.M_inverse is not None for of in self.folds)

    def measure(self, regime: str, lam: float) -> Measured:
        """Alignment and coupling of a regime."""
        return self.measure_mixed(
            regimes.mixing(self.whole, regime, lam), [regimes.mixing(of.polar, regime, lam) for of in self.folds]
        )

    def measure_mixed(self, whole: Array, mixings: Sequence[Array]) -> Measured:
        """``measure`` for any dimensions F T_0 z, given by the F of the model and of every fold."""
        origin, k = self.origin, len(self.folds)
        sums, fitted, coupled = [], [], []
        for F, of in zip(map(unit_rows, mixings), self.folds, strict=True):
            sums += [np.where(of.known, part_sums(F, part, origin), 0.0) for part in of.parts]
            fitted.append(np.diag(F @ of.polar.M))
            coupled.append(of.coupled(F, self.grouped))
        pairs, own = Pairs(*np.stack(sums, axis=1)), np.mean(fitted, axis=0)
        coupling = coupling_on_new_rows(coupling_of(whole @ whole.T), coupled)
        grouped = self.grouped
        return Measured(estimate(pairs, own, k, grouped), mean_estimate(pairs, own, k, grouped), coupling)

    @property
    def origin(self) -> Array:
        """A value near the mean of every covariate."""
        return mean_of_y(chain.from_iterable(of.parts for of in self.folds))


def part_sums(F: Array, part: Rows, origin: Array) -> Array:
    """The sums of ``Pairs`` over the rows of a part (fields x P), of F u and y."""
    sums = np.zeros((len(Pairs._fields), len(F)))
    for columns, seen in part.pairs:
        f = F[columns]
        variance, covariance = np.sum((f @ seen.cov_z) * f, axis=1), np.sum(f * seen.cov_zy.T, axis=1)
        sums[:, columns] = pair_sums(seen, f @ seen.mean_z, variance, covariance, origin[columns])
    return sums


class CoupledFold(NamedTuple):
    """The coupling of a fit on the rows left out of it, and on its own."""

    left_out: float
    fitted: float
    n: float  # left-out rows
    n_train: float


def coupling_of(cov: Array) -> float:
    """|corr - I|_F^2."""
    return float(off_diagonal_squares(to_correlation(cov)))


def coupling_on_new_rows(fitted: float, folds: Sequence[CoupledFold]) -> float:
    """The coupling c(n) of the fit to all n rows, from c_f on the rows left out of a fit to n_f rows.

    Coupling beyond that of the fitted rows comes from errors of the fit, which go with 1 / n:
    c(n) = c_fitted + mean_f (c_f - c_f,fitted) n_f / n.
    """
    n = sum(of.n for of in folds)
    beyond = sum(of.n / n * (of.left_out - of.fitted) * of.n_train / (of.n_train + of.n) for of in folds)
    return max(0.0, fitted + beyond)


def left_out_coupling(n: Array, C: Array, grouped: bool = False) -> float:
    """|corr(z~) - I|_F^2 of left-out rows, without what is due to chance; given in parts: rows n, E[z~ z~'].

    z~ has the mean 0 on the training set. Of m independent rows, C_pq^2 is 1 / m on average where nothing couples, so

        sum_{p != q} 1 - (1 - C_pq^2) m / (m - 1)

    is 0 on average there. With groups, parts are independent and rows are not: C_pq^2 less its variance between parts,
    sum_a (C_pq,a - C_pq h_ap)^2 / (1 - h_ap), where h_ap is the share of part a in the sum of squares of dimension p.
    """
    scatter = n[:, None, None] * C
    whole = scatter.sum(axis=0)
    scale = quotient(1.0, np.sqrt(np.diag(whole)))
    C, rows = whole * scale[:, None] * scale, max(float(n.sum()), 2.0)
    off = ~np.eye(len(C), dtype=bool)
    if not grouped or len(n) == 1:
        return float(np.sum(1 - (1 - C[off] ** 2) * rows / (rows - 1)))
    share = (np.einsum("app->ap", scatter) * scale**2)[:, :, None]
    one = np.sum(quotient((scatter * scale[:, None] * scale - C * share) ** 2, 1 - share), axis=0)
    return float(np.sum((C**2 - (one + one.T) / 2)[off]))


def second_moments(parts: Sequence[Rows]) -> tuple[Array, Array]:
    """Rows of every part, and E[u u']."""
    rows = [all_rows(part) for part in parts]
    n = np.array([m.n or 0 for m in rows], dtype=np.float64)
    return n, np.array([m.cov_z + np.outer(m.mean_z, m.mean_z) for m in rows])


def held_out(whole: Polar, made: Sequence[Split], ridges: Sequence[Ridge], *, grouped: bool = False) -> HeldOut | None:
    """Fit every training set with its own ridge, and reduce its left-out rows to moments.

    A training set whose rows span fewer dimensions than there are covariates cannot be fitted, and is left out; None if
    none can.
    """
    settings = list(zip(made, ridges, strict=True))
    polars = in_threads(
        lambda of: regimes.polar_if_spanned(of[0].train, *of[1]), settings, len(made[0].train.mean_z) if made else 0
    )
    fitted = [(of, polar) for of, polar in zip(made, polars, strict=True) if isinstance(polar, Polar)]
    if not fitted:
        return None
    found = []
    for split, polar in fitted:
        parts = reduced(split.parts, split.train.mean_z, polar, len(fitted))
        found.append(LeftOut(polar, parts, split.known, split.train.n or 0))
    return HeldOut(whole, found, grouped)


def reduced(parts: Sequence[Rows], mean: Array, polar: Polar, folds: int) -> list[Rows]:
    """Moments of (T_0 (z - mean), y) of left-out parts, which are joined if there are too many of them."""
    most = max(1, PART_NUMBERS // (2 * len(polar.M) ** 2 * folds))
    few = [merged(parts[i::most]) for i in range(min(most, len(parts)))]
    return [part.shifted(-mean).transform(polar.T_0) for part in few if part is not None]


def held_out_frontier(held: HeldOut, lams: Iterable[float] | None, names: Sequence[str]) -> pd.DataFrame:
    """A frontier measured on left-out rows, with ``alignment_se``, the standard error of the mean alignment."""
    rows, errors_of_mean = [], []
    # The exclusive regime needs to exist in every fold.
    polars = [held.whole, *(of.polar for of in held.folds)]
    settings, why_not = regimes.frontier_settings(min(polars, key=lambda polar: polar.M_inverse is not None), lams)
    for regime, lam in settings:
        found = held.measure(regime, lam)
        rows.append((regime, lam, found.alignment.value, found.coupling))
        errors_of_mean.append(float(found.mean.se))
    frame = regimes.frontier_frame(rows, names)
    frame.insert(3, "alignment_se", errors_of_mean)
    frame.attrs["exclusive"] = why_not
    return frame
