"""Held-out numbers against the truth; ``benchmarks/held_out.py`` has more settings, docs/held_out.md their table."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("held_out", ROOT / "benchmarks" / "held_out.py")
held_out = importlib.util.module_from_spec(spec)
sys.modules["held_out"] = held_out
spec.loader.exec_module(held_out)
Setting = held_out.Setting


def means(part: str, setting: held_out.Setting, reps: int) -> pd.Series:
    return pd.DataFrame([held_out.repetition(part, setting, rep) for rep in range(reps)]).mean()


@pytest.mark.parametrize(
    "setting",
    [
        Setting(60, 5, effect=0.0),
        Setting(100, 20),
        Setting(300, 20, kind="flag5"),
        Setting(400, 10, groups=20),
    ],
    ids=Setting.named,
)
def test_intervals_hold_the_alignment_on_new_rows(setting):
    found = means("coverage", setting, 80)
    assert 0.8 <= found["covered"] <= 0.97
    assert abs(found["reported"] - found["true"]) < 0.04


def test_intervals_hold_the_alignment_of_a_map_that_learned_from_all_rows():
    """The truth lies above 15 % of the intervals of the fits to four fifths of the rows, which cover 82 %."""
    found = means("coverage", Setting(100, 20, effect=0.98), 60)
    assert found["true"] > found["reported"]
    assert found["above"] <= 0.1
    assert found["covered"] >= 0.87


@pytest.mark.parametrize("kind", ["exp", "t3"])
def test_intervals_of_strong_effects_on_covariates_with_heavy_tails_hold_the_truth(kind):
    found = means("coverage", Setting(300, 5, effect=0.8, kind=kind), 60)
    assert found["covered"] >= 0.87


@pytest.mark.parametrize(
    "setting",
    [
        Setting(500, 20, 2, noise=0.5),
        Setting(1000, 20, 5, noise=0.5),
        Setting(100, 20, 5, noise=0.5),
        Setting(400, 10, 3, groups=8, noise=0.5),
    ],
    ids=Setting.named,
)
def test_held_out_coupling_is_that_of_new_rows(setting):
    found = means("coupling", setting, 30)
    for lam in held_out.LAMS:
        true, reported = found[f"true {lam:g}"], found[f"reported {lam:g}"]
        assert abs(reported - true) <= max(held_out.NEAR, held_out.NEAR_SHARE * true)


@pytest.mark.parametrize(
    ("setting", "reps", "of_one_choice"),
    [
        (Setting(60, 20, 5, held_out.MIXED), 120, 0.008),
        (Setting(100, 200, 5, held_out.MIXED), 60, 0.008),
        (Setting(200, 100, 5, held_out.MIXED), 60, 0.004),
        (Setting(1000, 100, 5, held_out.MIXED), 15, 0.0),
    ],
    ids=str,
)
def test_left_out_rows_that_take_no_part_in_the_choice_are_fair(setting, reps, of_one_choice):
    """One choice of shrinkage on the same folds is too high; a choice inside every training set is not."""
    found = means("nested", setting, reps)
    assert abs(found["summary optimism"]) < 0.005
    assert found["one optimism"] > of_one_choice
    assert abs(found["summary against fits"]) < 0.03  # which has an error of .01 in so few repetitions


def test_the_alignment_of_new_rows_is_that_of_many_rows():
    rng = np.random.default_rng(0)
    for setting in (Setting(200_000, 6, decay=0.5), Setting(200_000, 6, kind="flag5"), Setting(200_000, 6, kind="exp")):
        data, T = held_out.drawn(setting, rng), rng.normal(size=(3, 6))
        measured = [np.corrcoef(z, y)[0, 1] for z, y in zip(T @ data.Z.T, data.Y.T, strict=True)]
        assert data.alignment(T) == pytest.approx(measured, abs=0.02)
        C = np.corrcoef(T @ data.Z.T)
        assert data.coupling(T) == pytest.approx(np.sum(C**2) - 3, abs=0.02)
