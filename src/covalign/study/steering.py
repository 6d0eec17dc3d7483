"""Steering: move one dimension, map back to Z, and measure the change of linear probes of all covariates.

Moves are the columns of the decoder D = S_z T_0' F^-1, T = F T_0, F = unit_rows(f(M)); probes B = S_z^-1 S_zy. On the
fitted rows the response, probe q's change per unit of dimension p, is

    R = B'D = M F^-1,       M^2 = S_yz S_z^-1 S_zy = cov(y-hat), y-hat the least-squares predictions,

and with D = S_zy M^-1 F^-1 every regime is a power of M away from the difference of means, up to the scale of columns:

    T_ex   D = S_zy        R = M^2      the difference of means: other covariates change as in rows with more of y_p
    T_0    D = S_zy M^-1   R = M        halfway
    T_1    D = S_zy M^-2   R diagonal   predictions of other covariates do not change

Of all moves that raise probe p by one, that of T_ex is the shortest (least d'S_z^-1 d); of those that do not change the
other probes, that of T_1. Reading is the opposite: corr(z~, y) = F M is diagonal at T_ex. A dimension that correlates
with one covariate only changes all probes, and one that changes one probe only correlates with all covariates. A linear
probe changes by the same amount on every row, so R is known without steering rows; held out means that the probes were
fitted to other rows.

If the covariates cause Z, an intervention on y_p moves Z by column p of S_zy S_y^-1 (Z regressed on all of Y). This is
the move of T_1 if Z determines Y linearly (M^2 = S_y); otherwise it is not the move of any regime.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from covalign._core.linalg import Array
from covalign.bridges import datasets
from covalign.closed_form import editing, regimes, simulate
from covalign.closed_form.regimes import Polar
from covalign.moments.moments import Moments
from covalign.study import contenders
from covalign.study.profiles import SIMULATED, Inputs, Profile
from covalign.study.real_data import halves, numbers, polar_form, with_shrinkage
from covalign.study.results_store import Row, Unit, setting
from covalign.study.theory import SHOWN, mixings_of

LAMS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
MEANS, WEIGHTS, ENCODING = "difference of means", "probe's own weights", "Z on all of Y"
REFERENCES = (MEANS, WEIGHTS, ENCODING)


def units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """Every representation, and scenarios of weak and strong correlation, with new halves in each repetition."""
    reps = range(min(profile.reps, contenders.FEWER))
    made = [
        Unit("steering", name, setting(embedding=name, covariates=covariates), rep)
        for name in inputs.embeddings
        for covariates in ("given", "overlapping")
        for rep in reps
    ]
    alphas = [alpha for alpha in (0.5, 1.0) if alpha in profile.alphas]
    return made + [
        Unit("steering", "T", setting(scenario=name, alpha=alpha, n=profile.n, k=profile.k), rep)
        for name in SIMULATED
        for alpha in alphas
        for rep in reps
    ]


def steering(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """Leakage, effect and effort of every move: probes of the rows fitted, and of the other half of the rows."""
    Z, Y = rows_of(unit, inputs)
    fitted, others = halves(len(Z), unit.rep)
    m, rho = with_shrinkage(Z[fitted], Y[fitted])
    polar = polar_form(m, rho)
    made, fresh = moves(m, polar, rho), probes(Z[others], Y[others])
    seen = least_squares(m, polar)
    for name, D in made.items():
        yield from judged(name, "in sample", seen.T @ D, D, m)
        yield from judged(name, "held out", fresh.T @ D, D, m)
        if name in SHOWN and drawn(unit.at):
            for (q, p), value in np.ndenumerate(fresh.T @ D):
                yield Row(name, f"response {q} {p}", float(value))
    if "scenario" in unit.at:
        yield from nearness(made, unit.at)


def drawn(at: dict[str, str]) -> bool:
    """Whether the figure shows this setting's response matrices."""
    return at.get("covariates") == "overlapping" or (at.get("scenario"), at.get("alpha")) == ("PN", "1")


def judged(name: str, label: str, R: Array, D: Array, m: Moments) -> Iterator[Row]:
    """Effect: mean change of the own probe; effort: squared length of moves per squared effect, relative to tr S_z."""
    own = np.diag(R)
    yield Row(name, f"leakage, {label}", editing.leakage(R))
    yield Row(name, f"effect, {label}", float(own.mean()))
    yield Row(name, f"effort, {label}", float(np.sum(D**2) / np.sum(own**2) / np.trace(m.cov_z)))


def nearness(made: dict[str, Array], at: dict[str, str]) -> Iterator[Row]:
    """Mean cosine of moves with what setting y_p + 1 does to Z in the scenario, and with what goes with it."""
    m = simulate.population_moments(at["scenario"], alpha=float(at["alpha"]))
    p = len(m.cov_y)
    S_zy = m.cov_zy / np.sqrt(np.diag(m.cov_y))
    # In the scenarios z_p is caused by y_p alone.
    targets = {"intervention": np.eye(p), "observation": S_zy}
    for name, D in made.items():
        for label, target in targets.items():
            full = np.zeros_like(D)
            full[:p] = target
            cosine = np.sum(D * full, axis=0) / np.linalg.norm(D, axis=0) / np.linalg.norm(full, axis=0)
            yield Row(name, f"cosine with {label}", float(cosine.mean()))


def rows_of(unit: Unit, inputs: Inputs) -> tuple[Array, Array]:
    """The representation and the covariates of a unit; twice the profile's rows of a scenario, for two halves."""
    at = unit.at
    if "embedding" in at:
        Z, Y = numbers(datasets.embedding(inputs.embeddings[unit.method]))
        return Z, overlapping(Y) if at["covariates"] == "overlapping" else Y
    size = {"n_samples": 2 * int(at["n"]), "n_features": int(at["k"]), "n_factors": int(at["k"])}
    s = simulate.scenario(at["scenario"], **size, alpha=float(at["alpha"]), random_state=unit.rep)
    return s.Z, s.Y


def overlapping(Y: Array) -> Array:
    """y_0 + y_1 + y_2, y_2 + y_3 + y_4, ...: groups of three that share a class, so that covariates correlate.

    Classes that exclude each other hardly correlate, and then all regimes are the same.
    """
    starts = range(0, max(Y.shape[1] - 2, 1), 2)
    return np.stack([Y[:, i : i + 3].sum(axis=1) for i in starts], axis=1)


def probes(Z: Array, Y: Array) -> Array:
    """K x P: ridge regressions of the standardised covariates, shrunk for the best predictions."""
    m, rho = with_shrinkage(Z, Y)
    return regimes.ridge(m, rho) if rho > 0 else least_squares(m, polar_form(m))


def least_squares(m: Moments, polar: Polar) -> Array:
    """S_z^+ S_zy = W'W S_zy (K x P), Y standardised."""
    return np.asarray(polar.whitener.T @ (polar.whitener @ regimes.standardised_cross_covariance(m)))


def moves(m: Moments, polar: Polar, shrinkage: float) -> dict[str, Array]:
    """What is added to Z (K x P) for one unit of each dimension, by regime, as ``LatentAligner.steer`` does.

    Then common ways to steer without a regime, scaled to move the fitted rows' own probe by one.
    """
    mixings = {name: F for name, F in mixings_of(polar, LAMS).items() if np.linalg.matrix_rank(F) == len(F)}
    made = {name: editing.decoder(m, polar, F) for name, F in mixings.items()}  # of those that can be undone
    S_zy, B = regimes.standardised_cross_covariance(m), least_squares(m, polar)
    scale = np.sqrt(np.diag(m.cov_y))
    plain = {
        MEANS: S_zy,
        WEIGHTS: regimes.ridge(m, shrinkage) if shrinkage > 0 else B,
        ENCODING: S_zy @ np.linalg.pinv(m.cov_y / scale / scale[:, None], hermitian=True),
    }
    return made | {name: D / np.sum(B * D, axis=0) for name, D in plain.items()}
