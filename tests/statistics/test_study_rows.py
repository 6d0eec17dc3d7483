"""Rows of the study, run again, give the committed numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from covalign.study.experiments import EXPERIMENTS
from covalign.study.profiles import FULL, Inputs
from covalign.study.results_store import Store, Unit

STORE = Store(Path(__file__).resolve().parents[2] / "docs" / "study" / "results")
CLASSICAL = ("PCA", "PLS", "SPCA (Bair)", "SPCA (Barshan)", "Y as factors")
OTHERWISE = ("seconds", "sweeps")  # a machine has its own seconds, and rounding can cost a sweep
EXACT = 1e-6  # of what has a closed form
FITTED = 0.01  # of what a factor model gives: a score, a correlation or the square root of one
NATS = 0.5  # of its bound


def compared(experiment: str, method: str, setting: str, rep: int, tolerance: float) -> int:
    """Run a unit and compare its numbers with the committed ones; returns how many there are."""
    unit = Unit(experiment, method, setting, rep)
    frame = STORE.frame(experiment)
    kept = frame[(frame["setting"] == setting) & (frame["rep"] == rep)].set_index(["method", "metric"])["value"]
    count = 0
    for row in EXPERIMENTS[experiment].measure(unit, FULL, Inputs()):
        if row.metric not in OTHERWISE and row.value == row.value:
            allowed = NATS if row.metric == "bound" else tolerance
            committed = kept[row.method, row.metric]
            assert row.value == pytest.approx(committed, abs=allowed, rel=1e-6), (unit, row.method, row.metric)
            count += 1
    return count


def test_theorems():
    assert compared("theorems", "T", "covariances=10", 0, EXACT) >= 5


@pytest.mark.parametrize("scenario", ["PN", "AR", "P", "N"])
def test_the_population(scenario):
    assert compared("population", "T", f"scenario={scenario} alpha=1 b=1", 0, EXACT) >= 80


@pytest.mark.parametrize(("scenario", "rep"), [("PN", 1), ("N", 19)])
@pytest.mark.parametrize("method", CLASSICAL)
def test_classical_methods(scenario, rep, method):
    assert compared("methods", method, f"scenario={scenario} alpha=1 b=1 n=500 budget=2000", rep, EXACT) >= 9


@pytest.mark.parametrize(("scenario", "rep"), [("PN", 1), ("AR", 19), ("P", 1)])
def test_iFA_in_all_regimes(scenario, rep):
    assert compared("methods", "iFA", f"scenario={scenario} alpha=0.5 b=1 n=500 budget=2000", rep, FITTED) >= 60


@pytest.mark.parametrize("n", [200, 1000])
def test_beta_and_factors(n):
    assert compared("consistency", "iFA", f"scenario=PN alpha=1 b=1 n={n}", 0, FITTED) >= 7


@pytest.mark.parametrize("method", ["paper", "full, converged"])
def test_inference(method):
    assert compared("inference", method, "scenario=P alpha=1 b=1 n=500", 0, FITTED) >= 3
