"""The sizes of a study: the paper's, a quick one, and the smallest that runs every part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SIMULATED = ("PN", "AR", "P", "N")


class Profile(NamedTuple):
    """Sizes. The b grid of the paper's table is not evenly spaced, although the paper says so; ours is."""

    name: str = "full"
    reps: int = 20
    slow_reps: int = 2  # of methods that take a minute per fit
    n: int = 500
    d: int = 100
    k: int = 10
    alphas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    bs: tuple[float, ...] = (1 / 3, 1 / 2, 2 / 3, 5 / 6, 1.0)
    lams: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    budget: int = 2000
    scaling_factors: tuple[float, ...] = (0.01, 0.02, 0.03, 0.04, 0.05, 0.1)
    slow_scenarios: tuple[str, ...] = SIMULATED  # in which methods that take a minute per fit are run
    sizes: tuple[int, ...] = (100, 200, 500, 1000, 2000, 5000, 10_000)  # consistency
    inference_sizes: tuple[int, ...] = (500, 5000)
    real_lams: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 0.9)
    real_k: int = 20
    real_budget: int = 5000
    folds: int = 5
    cpu_limit: float | None = None  # seconds of computation of a fit, in the arena
    data: tuple[str, ...] = ()  # of the arena; all if empty
    methods: tuple[str, ...] = ()

    def settings(self) -> list[tuple[float, float]]:
        """(alpha, b): alpha varies at b = 1, then b at alpha = 1."""
        return [(alpha, 1.0) for alpha in self.alphas] + [(1.0, b) for b in self.bs if b != 1.0]

    @staticmethod
    def panels(scenario: str) -> list[tuple[float, float]]:
        """The two settings of panel D: the baseline, and a smaller alpha (PN, AR) or a smaller b (P, N)."""
        return [(1.0, 1.0), (0.5, 1.0) if scenario in ("PN", "AR") else (1.0, 2 / 3)]


FULL = Profile()
QUICK = Profile(
    "quick",
    reps=2,
    slow_reps=1,
    alphas=(0.0, 0.5, 1.0),
    bs=(1 / 3, 2 / 3, 1.0),
    budget=200,
    scaling_factors=(0.01, 0.1),
    slow_scenarios=("PN", "N"),
    sizes=(100, 500, 2000),
    real_budget=200,
    folds=3,
)
TINY = Profile(
    "tiny",
    reps=1,
    slow_reps=1,
    n=60,
    d=12,
    k=6,
    alphas=(0.5, 1.0),
    bs=(2 / 3, 1.0),
    lams=(0.0, 0.5, 1.0),
    budget=5,
    scaling_factors=(0.1,),
    sizes=(60, 120),
    inference_sizes=(60,),
    real_lams=(0.0, 0.9),
    real_k=5,
    real_budget=5,
    folds=2,
)
ARENA = Profile("arena", reps=3, slow_reps=1, budget=1000, folds=3, cpu_limit=300)
PROFILES = {profile.name: profile for profile in (FULL, QUICK, TINY)}


class Inputs(NamedTuple):
    """Data that are not part of the package."""

    tcga: Path | None = None
    embeddings: Mapping[str, Path] = {}
    cll: Path | None = None
    cases: Path | None = None
    cities: Path | None = None
