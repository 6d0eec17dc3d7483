"""Steering: what a move of one dimension does to linear probes, by rows, by closed form and by its optimality."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from covalign import LatentAligner
from covalign.closed_form import editing, regimes
from covalign.moments.moments import Moments
from covalign.study import steering
from covalign.study.intervals import Interval, over_splits
from covalign.study.profiles import TINY, Inputs
from covalign.study.theory import random_moments
from tests.conftest import correlated, embedding

REGIMES = {"T_ex": {"regime": "exclusive"}, "T_0": {"lam": 0.0}, "T_0.5": {"lam": 0.5}, "T_1": {"lam": 1.0}}


def standardised(Y: np.ndarray) -> np.ndarray:
    return (Y - Y.mean(0)) / Y.std(0)


def response_by_rows(al: LatentAligner, Z: np.ndarray, probes: np.ndarray) -> np.ndarray:
    """Steer every dimension in turn by half a unit and see where the probes go."""
    moved = [((al.steer(Z, {name: 0.5}) - Z) @ probes).mean(0) / 0.5 for name in al.covariate_names_]
    return np.array(moved).T


@pytest.mark.parametrize("shrinkage", [0.0, 0.4])
@pytest.mark.parametrize("shape", [(200, 6), (40, 60)], ids=["many rows", "few rows"])
@pytest.mark.parametrize("regime", REGIMES)
def test_least_squares_probes_move_as_the_closed_form_says(regime, shape, shrinkage):
    Z, Y = correlated(3, *shape, p=3)
    probes = np.linalg.lstsq(Z - Z.mean(0), standardised(Y), rcond=1e-10)[0]
    al = LatentAligner(shrinkage=shrinkage).fit(Z, Y).at(**REGIMES[regime])
    R = response_by_rows(al, Z, probes)
    polar = regimes.whitened_polar(al.moments_, shrinkage)
    F = regimes.mixing(polar, al.regime, al.lam)
    np.testing.assert_allclose(R, editing.response(polar, F), atol=1e-8)
    off = R - np.diag(np.diag(R))
    if regime == "T_1":
        np.testing.assert_allclose(off, 0, atol=1e-8)  # shrinkage or not
    else:
        assert np.abs(off).max() > 1e-2
    if regime == "T_0":
        np.testing.assert_allclose(R, R.T, atol=1e-8)


def test_the_exclusive_move_is_the_difference_of_means():
    Z, Y = correlated(5, 300, 7, 3)
    m = Moments.from_arrays(Z, Y)
    moves = steering.moves(m, regimes.whitened_polar(m), 0.0)
    means, exclusive = moves[steering.MEANS], moves["T_ex"]
    np.testing.assert_allclose(exclusive / np.linalg.norm(exclusive, axis=0), means / np.linalg.norm(means, axis=0))
    predicted = LinearRegression().fit(Z, standardised(Y)).predict(Z)
    R = editing.response(regimes.whitened_polar(m), regimes.mixing(regimes.whitened_polar(m), "exclusive"))
    together = np.cov(predicted.T)  # how predictions come along with each other
    np.testing.assert_allclose(R / np.diag(R), together / np.diag(together), atol=1e-8)


@given(seed=st.integers(0, 10**6))
def test_moves_are_the_most_ordinary_of_their_kind(seed):
    rng = np.random.default_rng(seed)
    m = random_moments(rng, 3, 5)
    S, B = m.cov_z, np.linalg.solve(m.cov_z, m.cov_zy / np.sqrt(np.diag(m.cov_y)))
    moves = steering.moves(m, regimes.whitened_polar(m), 0.0)

    def cost(d):
        return d @ np.linalg.solve(S, d)

    for name, constraints in (("T_ex", B[:, [0]]), ("T_1", B)):
        d = moves[name][:, 0] / (B[:, 0] @ moves[name][:, 0])
        for _ in range(5):  # any other move with the same effect on the probes that matter
            other = rng.standard_normal(5)
            other -= constraints @ np.linalg.solve(constraints.T @ constraints, constraints.T @ other)
            assert cost(d) <= cost(d + 0.1 * other) * (1 + 1e-6)


@given(seed=st.integers(0, 10**6), p=st.integers(2, 6))
def test_leakage_falls_along_lambda_to_nothing(seed, p):
    m = random_moments(np.random.default_rng(seed), p, p + 2)
    polar = regimes.whitened_polar(m)
    settings_ = [("exclusive", np.nan), *(("tunable", lam) for lam in np.linspace(0, 1, 11))]
    leaks = np.array([editing.leakage(editing.response(polar, regimes.mixing(polar, *at))) for at in settings_])
    assert (np.diff(leaks) <= 1e-9 * (1 + leaks[0])).all()
    assert leaks[-1] < 1e-9 * (1 + leaks[0])


def test_shrunken_probes_are_moved_at_T_1_too():
    Z, Y = embedding(0, 80, 60, 3)
    Y = Y @ np.array([[1, 0.7, 0], [0, 0.7, 0.7], [0, 0, 0.7]])
    m = Moments.from_arrays(Z, Y)
    D = steering.moves(m, regimes.whitened_polar(m, 0.5), 0.5)["T_1"]
    assert editing.leakage(regimes.ridge(m, 0.5).T @ D) > 1e-4


def test_an_intervention_is_T_1_where_Z_determines_Y():
    Z, _ = correlated(8, 400, 6, 3)
    Y = Z @ np.random.default_rng(0).standard_normal((6, 3))
    noisy = Y + 2 * Y.std(0) * np.random.default_rng(1).standard_normal(Y.shape)
    same = []
    for target in (Y, noisy):
        m = Moments.from_arrays(Z, target)
        moves = steering.moves(m, regimes.whitened_polar(m), 0.0)
        a, b = (moves[name] / np.linalg.norm(moves[name], axis=0) for name in ("T_1", steering.ENCODING))
        same.append(np.sum(a * b, axis=0).min())
    assert same[0] > 1 - 1e-9
    assert same[1] < 0.999


def test_what_cannot_be_undone_is_left_out():
    Z, _ = correlated(1, 200, 6, 3)
    dummies = np.eye(3)[np.random.default_rng(0).integers(0, 3, 200)]
    Z = Z + dummies @ np.random.default_rng(1).standard_normal((3, 6))
    m = Moments.from_arrays(Z, dummies)
    made = steering.moves(m, steering.polar_form(m, 0.0), 0.0)
    assert "T_0" in made
    assert "T_1" not in made
    assert "T_ex" not in made


def test_leakage_by_hand():
    assert editing.leakage(np.array([[2.0, 1.0], [0.0, 1.0]])) == pytest.approx(1 / 5)
    assert np.isnan(editing.leakage(np.array([[0.0, 1.0], [1.0, 0.0]])))


# -- the study --------------------------------------------------------------------------------------------------------


def test_held_out_probes_are_those_of_other_rows():
    (unit,) = [u for u in steering.units(TINY, Inputs()) if u.setting.startswith("scenario=PN alpha=1 ")]
    rows = pd.DataFrame(steering.steering(unit, TINY, Inputs()))
    found = rows.set_index(["method", "metric"])["value"]
    assert abs(found["T_1", "leakage, in sample"]) < 1e-10
    assert found["T_1", "leakage, held out"] > 1e-3
    assert found["T_ex", "leakage, held out"] > found["T_1", "leakage, held out"]
    # What is kept for the figure is what was judged.
    R = np.array([[found["T_1", f"response {q} {p}"] for p in range(5)] for q in range(5)])
    assert editing.leakage(R) == pytest.approx(found["T_1", "leakage, held out"])


def test_groups_overlap():
    Y = np.eye(7)
    np.testing.assert_array_equal(
        steering.overlapping(Y).T, [[1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1]]
    )
    assert steering.overlapping(Y[:, :2]).shape == (7, 1)


def test_intervals_over_splits_count_the_rows_they_share():
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    got = over_splits(values)
    assert got.mean == 3
    assert got.reach == pytest.approx(2.131847 * np.sqrt((0.2 + 1) * 2.5), rel=1e-6)  # Student's t, 4 degrees, 95 %
    assert over_splits(values, 0.0).reach == pytest.approx(2.131847 * np.sqrt(0.2 * 2.5), rel=1e-6)
    assert not got.excludes_zero
    assert Interval(-1.0, 0.5).excludes_zero
    assert f"{Interval(1.0, 0.5):.1f}" == "1.0 [0.5, 1.5]"
    assert f"{over_splits([2.0]):.1f}" == "2.0"
