"""Results without samples: the theorems on random covariances, and the populations of the scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from covalign._core.linalg import Array
from covalign.closed_form import regimes, simulate
from covalign.closed_form.regimes import Polar
from covalign.moments.moments import Moments
from covalign.study.profiles import SIMULATED, Inputs, Profile
from covalign.study.results_store import Row, Unit, setting
from covalign.study.scores import disentanglement, plane

SHOWN = ("T_ex", "T_0", "T_0.5", "T_1")  # regimes that figures show
LAMS = tuple(np.linspace(0, 1, 21).round(2).tolist())


def theorem_units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """Random joint covariances, ten per repetition."""
    return [Unit("theorems", "T", setting(covariances=10), rep) for rep in range(profile.reps)]


def theorems(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """The worst violation of every statement (at most rounding where it holds), over random covariances."""
    rng = np.random.default_rng(unit.rep)
    worst: dict[str, float] = {}
    for _ in range(10):
        p = int(rng.integers(2, 8))
        for name, value in violations(random_moments(rng, p, p + int(rng.integers(0, 4))), rng).items():
            worst[name] = max(worst.get(name, -np.inf), value)
    for name, value in worst.items():
        yield Row("T", name, value)


def random_moments(rng: np.random.Generator, p: int, k: int) -> Moments:
    """A joint covariance of K latents and P covariates with all kinds of correlations."""
    A = rng.standard_normal((k + p, k + p)) + rng.standard_normal((k + p, 1))
    S = A @ A.T
    return Moments.from_covariances(S[:k, :k], S[:k, k:], S[k:, k:])


def violations(m: Moments, rng: np.random.Generator) -> dict[str, float]:
    """Each should be at most zero, up to rounding; ``not all equal``: minus the total by which T_1 beats T_0."""
    k, p = m.cov_zy.shape
    T = {"exclusive": regimes.exclusive(m), **{lam: regimes.tunable(m, lam) for lam in LAMS}}
    aligned = np.array([regimes.alignment(matrix, m) for matrix in T.values()])  # exclusive, then rising lambda
    coupled = {name: regimes.coupling(matrix, m) for name, matrix in T.items()}
    A = rng.standard_normal((k, k))
    moved = m.transform(A)
    same = [np.abs(regimes.tunable(moved, lam) @ A - T[lam]).max() for lam in (0.0, 0.5, 1.0)]
    diagonal = aligned_moments(rng, p)
    spread = np.ptp([regimes.alignment(regimes.tunable(diagonal, lam), diagonal) for lam in LAMS], axis=0)
    return {
        "ordering, per covariate": float(-np.diff(aligned, axis=0).min()),
        "ordering, in total": float(-np.diff(aligned.sum(axis=1)).min()),
        "coupling of T_0 over T_1": coupled[0.0] - coupled[1.0],
        "coupling of T_0 over T_ex": coupled[0.0] - coupled["exclusive"],
        "change under Z -> AZ": float(max(same)) / max(1.0, float(np.linalg.cond(A))),
        "spread where M is diagonal": float(spread.max()),
        "not all equal elsewhere": float(-(aligned[-1] - aligned[1]).sum()),
    }


def aligned_moments(rng: np.random.Generator, p: int) -> Moments:
    """Moments whose M is diagonal: latents mixed from uncorrelated ones, each correlated with its own covariate."""
    strengths, A = rng.uniform(0.1, 0.9, p), rng.standard_normal((p, p))
    return Moments.from_covariances(A @ A.T, A * strengths, np.eye(p))


def population_units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """Every scenario along alpha and along b."""
    return [
        Unit("population", "T", setting(scenario=scenario, alpha=alpha, b=b), 0)
        for scenario in SIMULATED
        for alpha, b in [*((a, 1.0) for a in LAMS), *((1.0, b) for b in profile.bs if b != 1.0)]
    ]


def population(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """Alignment, coupling, D, C, I, SAP and nSAP of every regime, from the scenario's own covariances."""
    at = unit.at
    m = simulate.population_moments(at["scenario"], alpha=float(at["alpha"]), b=float(at["b"]))
    for name, T in regimes_of(regimes.whitened_polar(m), LAMS).items():
        moved = m.transform(T)
        yield from plane(name, moved)
        yield from disentanglement(name, moved)


def regimes_of(polar: Polar, lams: Iterable[float] = (0.0, 0.5, 1.0)) -> dict[str, Array]:
    """T of the exclusive regime (T_ex), if it exists, and of T_lambda along lambda, by name."""
    return {name: F @ polar.T_0 for name, F in mixings_of(polar, lams).items()}


def mixings_of(polar: Polar, lams: Iterable[float]) -> dict[str, Array]:
    """F of the same regimes: T = F T_0."""
    exclusive = [("T_ex", "exclusive", np.nan)] if polar.M_inverse is not None else []
    settings = [*exclusive, *((f"T_{lam:g}", "tunable", lam) for lam in lams)]
    return {name: regimes.mixing(polar, regime, lam) for name, regime, lam in settings}
