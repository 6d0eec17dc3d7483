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
from covalign.closed_form.pooled_correlation import Estimate, Gain, Pairs, estimate, mean_estimate, pair_sums
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

    def coupled(self, F: Array) -> CoupledFold:
        """The second moments of F T_0 z."""
        n, C = second_moments(self.parts)
        return CoupledFold(n, F @ C @ F.T, F @ F.T, self.n_train)


class HeldOut(NamedTuple):
    """All folds of a model, and the polar form of the model itself."""

    whole: Polar
    folds: list[LeftOut]
    grouped: bool = False  # rows belong together, and parts are groups
    gain: Gain | None = None  # error of the model over that of the fits (``pooled_correlation.estimate``)
    columns: int = 0  # of the rows, whose number limits what more rows take away from coupling

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
            coupled.append(of.coupled(F))
        pairs, own = Pairs(*np.stack(sums, axis=1)), np.mean(fitted, axis=0)
        coupling = coupling_on_new_rows(coupling_of(whole @ whole.T), coupled, self.grouped, self.columns)
        each, mean = (of(pairs, own, k, self.grouped, self.gain) for of in (estimate, mean_estimate))
        return Measured(each, mean, coupling)

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
    """The dimensions z~ of a fit: E[z~ z~'] on the rows left out of it, in parts, and cov(z~) on its own rows."""

    n: Array  # rows of the parts
    C: Array  # parts x P x P; z~ has the mean 0 on the rows of the fit
    own: Array
    n_train: float

    @property
    def share(self) -> float:
        """Left-out rows among all."""
        return float(self.n.sum() / (self.n.sum() + self.n_train))

    @property
    def second_moment(self) -> Array:
        """E[z~ z~'] over all parts."""
        return np.asarray(np.tensordot(self.n, self.C, 1) * quotient(1.0, self.n.sum()))


def coupling_of(cov: Array) -> float:
    """|corr - I|_F^2."""
    return float(off_diagonal_squares(to_correlation(cov)))


def coupling_on_new_rows(fitted: float, folds: Sequence[CoupledFold], grouped: bool = False, columns: int = 0) -> float:
    """The coupling c(n) of the fit to all n rows, from c_f on the rows left out of a fit to n_f rows.

    Coupling beyond that of the fitted rows comes from errors of the fit, which go with 1 / n if rows have few columns.
    If columns are no fewer than rows, P directions of noise have a coupling of P (P - 1) / K, whatever n is. In between
    we take c(n) = c_fitted + mean_f (c_f - c_f,fitted) (1 - (1 - n_f / n) (1 - K / n)). Groups have few columns: K = 0.
    """
    left_out = coupling_of_groups(folds) if grouped else [coupling_of_rows(of) for of in folds]
    n = sum(of.n.sum() for of in folds)
    spare = 1.0 if grouped or n == 0 else max(0.0, 1 - columns / n)
    beyond = [
        of.n.sum() / n * (c - coupling_of(of.own)) * (1 - of.share * spare)
        for of, c in zip(folds, left_out, strict=True)
    ]
    return max(0.0, fitted + float(sum(beyond)))


def coupling_of_rows(of: CoupledFold) -> float:
    """|corr(z~) - I|_F^2 of independent left-out rows, without what is due to chance.

    Of m rows, the square of a correlation C_pq is 1 / m on average where nothing couples, so

        u_pq = 1 - (1 - C_pq^2) m / (m - 1)

    is 0 on average there. Where dimensions couple, it is too low by about 2 c^2 (1 - c^2) / (m + 2) for the true c, so
    the estimate is the sum of u_pq (1 + 2 (1 - C_pq^2) / (m + 2)) over p != q (after Olkin and Pratt 1958).
    """
    C, rows = to_correlation(of.second_moment), max(float(of.n.sum()), 2.0)
    rest = 1 - C[_off_diagonal(C)] ** 2
    return float(np.sum((1 - rest * rows / (rows - 1)) * (1 + 2 * rest / (rows + 2))))


def coupling_of_groups(folds: Sequence[CoupledFold]) -> list[float]:
    """|corr(z~) - I|_F^2 on new groups for the fit of every fold; rows of a group (a part) are not independent.

    A fold may have one group, which does not say how much groups vary. So the squares of left-out correlations C are
    not used. Let C_own be the correlations on the m' groups of the fit, those on all groups plus the mean error e_own
    of these groups, and D = C - C_own = e - e_own, with the error e of the m groups left out. What is wanted is

        (C_own - e_own)^2 = C_own^2 - 2 C_own e_own + e_own^2.

    Left-out groups took no part in the fit, so -2 C_own e_own has the mean of 2 C_own D. Errors of groups have the same
    variance, so e_own^2 has the mean of D^2 (1 / m') / (1 / m + 1 / m').
    """
    found = []
    for i, (of, variance) in enumerate(zip(folds, _variances(folds), strict=True)):
        others = [rest.n for j, rest in enumerate(folds) if j != i] or [of.n]
        out, own = _per_group(of.n), _per_group(np.concatenate(others))
        scale, C_own = quotient(1.0, np.sqrt(variance)), to_correlation(of.own)
        D = of.second_moment * scale * scale[:, None] - C_own
        squares = C_own**2 + 2 * C_own * D + D**2 * quotient(own, out + own)
        found.append(float(np.sum(squares[_off_diagonal(D)])))
    return found


def _variances(folds: Sequence[CoupledFold]) -> Array:
    """The variances of the dimensions on new groups, for the fit of every fold (folds x P).

    Folds differ because their fits do (in shrinkage), and by chance if they have few groups. Let r be variances over
    those of all left-out rows, r_f in a fold and r_a in its parts. Of the squares of r_f - 1, chance explains the
    variance of r_a between the parts of a fold, times 1 / m. As this variance is uncertain, twice as much counts as
    chance. The rest, a share of the squares, is kept: variances are those of all rows if it is 0, or if no fold has two
    parts.
    """
    n = np.array([of.n.sum() for of in folds])
    of_all = np.array([np.diag(of.second_moment) for of in folds]).T @ n / n.sum()
    in_parts = [np.einsum("app->ap", of.C) * quotient(1.0, of_all) for of in folds]
    in_folds = np.array([of.n @ r / of.n.sum() for of, r in zip(folds, in_parts, strict=True)])
    spread = sum(float(np.sum((r - r_f) ** 2)) for r, r_f in zip(in_parts, in_folds, strict=True))
    freedom = sum(len(of.n) - 1 for of in folds) * len(of_all)
    chance = 2 * spread * float(quotient(np.mean([_per_group(of.n) for of in folds]), freedom, np.inf))
    share = max(0.0, 1 - float(quotient(chance, np.mean((in_folds - 1) ** 2), 1.0)))
    return np.asarray(of_all * (1 + share * (in_folds - 1)))


def _per_group(n: Array) -> float:
    """One over the number of groups with n rows that count: sum n^2 / (sum n)^2."""
    return float(np.sum(n**2) * quotient(1.0, np.sum(n) ** 2))


def _off_diagonal(C: Array) -> NDArray[np.bool_]:
    return ~np.eye(len(C), dtype=bool)


def second_moments(parts: Sequence[Rows]) -> tuple[Array, Array]:
    """Rows of every part, and E[u u']."""
    rows = [all_rows(part) for part in parts]
    n = np.array([m.n or 0 for m in rows], dtype=np.float64)
    return n, np.array([m.cov_z + np.outer(m.mean_z, m.mean_z) for m in rows])


def held_out(
    whole: Polar, made: Sequence[Split], ridges: Sequence[Ridge], *, grouped: bool = False, gain: Gain | None = None
) -> HeldOut | None:
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
    return HeldOut(whole, found, grouped, gain, len(made[0].train.mean_z))


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
