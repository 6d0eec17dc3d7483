"""The arena: its frontier, its ranks, its data, and how it takes failures."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from covalign import LatentAligner
from covalign.study.arena import arena_advice, bouts, collection, entrants, standings
from covalign.study.arena.collection import Case
from covalign.study.arena.entrants import Rules
from covalign.study.baselines.linear_decoder import posterior_means
from covalign.study.profiles import ARENA, Inputs

RULES = Rules(n_factors=4, seed=0, budget=50, cpu_limit=None)


def small_case(n: int = 60, seed: int = 0) -> Case:
    """Two correlated covariates in two views."""
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((n, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    views = {name: Y @ rng.standard_normal((2, d)) + rng.standard_normal((n, d)) for name, d in (("a", 6), ("b", 5))}
    return Case(views, Y)


# -- the frontier -----------------------------------------------------------------------------------------------------


def test_alignment_within_a_budget_lies_on_the_line_between_two_settings():
    alignment, coupling = np.array([0.4, 0.6, 0.7]), np.array([0.0, 0.4, 2.0])
    assert bouts.within(alignment, coupling, 0.2) == pytest.approx(0.5)
    assert bouts.within(alignment, coupling, 0.4) == pytest.approx(0.6)
    assert bouts.within(alignment, coupling, 5.0) == pytest.approx(0.7)


def test_above_the_budget_a_share_of_the_dimensions_is_kept():
    """Setting three of four equally coupled dimensions to constants leaves a quarter of the alignment."""
    assert bouts.within(np.array([0.8]), np.array([1.6]), 0.1) == pytest.approx(0.8 * 0.25)


def test_more_coupling_never_costs_alignment():
    rng = np.random.default_rng(0)
    for _ in range(50):
        alignment, coupling = np.sort(rng.random(6)), np.sort(rng.random(6) * 2)
        at = [bouts.within(alignment, coupling, budget) for budget in bouts.GRID]
        assert (np.diff(at) > -1e-12).all()


def test_the_frontier_is_correlation_and_coupling_less_chance():
    rng = np.random.default_rng(1)
    Y = rng.standard_normal((200, 3))
    z = Y @ rng.standard_normal((3, 3))
    (alignment,), (coupling,) = bouts.frontier(z[None], Y)
    full = np.corrcoef(np.hstack([z, Y]).T)
    assert alignment == pytest.approx(np.diag(full[:3, 3:]).mean())
    assert coupling == pytest.approx(np.sum((full[:3, :3] - np.eye(3)) ** 2) - 6 / 200)


def test_a_constant_dimension_has_no_alignment_and_no_coupling():
    Y = np.random.default_rng(2).standard_normal((50, 2))
    (alignment,), (coupling,) = bouts.frontier(np.column_stack([Y[:, 0], np.ones(50)])[None], Y)
    assert alignment == pytest.approx(0.5)
    assert coupling == pytest.approx(-2 / 50)


# -- ranks ------------------------------------------------------------------------------------------------------------


def test_strengths_are_those_that_made_the_games():
    s = np.array([4.0, 2.0, 1.0, 0.5])
    W = 1000 * s[:, None] / (s[:, None] + s) * (1 - np.eye(4))
    found = standings.strengths(W)
    assert found / found[2] == pytest.approx(s, rel=0.01)


def test_strengths_are_the_optimum_that_a_logistic_regression_finds():
    """Bradley-Terry is a logistic regression on differences of methods; the prior games are against a method of 1."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    W = standings.wins(np.where(rng.random((15, 6)) < 0.2, np.nan, rng.random((15, 6)) + np.arange(6) / 8))
    eye = np.eye(6)
    games = [(eye[i] - eye[j], W[i, j], W[j, i]) for i in range(6) for j in range(i)]
    games += [(eye[i], standings.PRIOR / 2, standings.PRIOR / 2) for i in range(6)]
    X = np.array([x for x, _, _ in games for _ in range(2)])
    y, weight = np.tile([1, 0], len(games)), np.array([part for _, *won in games for part in won])
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000)
    s = np.exp(model.fit(X, y, weight).coef_[0])
    np.testing.assert_allclose(standings.strengths(W), s, rtol=1e-3)
    expected = [np.mean([s[i] / (s[i] + s[j]) for j in range(6) if j != i]) for i in range(6)]
    np.testing.assert_allclose(standings.expected_wins(W), expected, atol=1e-5)


def test_ties_and_absent_numbers_are_counted_as_such():
    nothing = float("nan")
    W = standings.wins(np.array([[0.5, 0.502, nothing], [0.9, 0.1, 0.2]]))
    assert W.tolist() == [[0, 1.5, 1], [0.5, 0, 0], [0, 1, 0]]


def test_the_best_is_first_and_fewer_games_are_less_certain():
    rng = np.random.default_rng(0)
    areas = pd.DataFrame(rng.random((12, 3)) * 0.1 + [0.5, 0.4, 0.45], columns=["x", "y", "z"])
    areas["rare"] = areas["x"] + 0.1
    areas.loc[2:, "rare"] = np.nan
    ranks = standings.standings(areas).set_index("method")
    assert [*ranks.index][-2:] == ["y", "rare"], "a method with few data sets is not ranked above others"
    assert ranks["few"].tolist() == [False, False, False, True]
    assert ranks.loc["rare", "wins"] > ranks.loc["x", "wins"]
    assert ranks.loc["rare", "data"] == 2
    assert ((ranks["low"] <= ranks["wins"] + 1e-9) & (ranks["wins"] <= ranks["high"] + 1e-9)).all()


def test_advice_tells_methods_apart_only_where_a_paired_test_does():
    rng = np.random.default_rng(4)
    base = rng.random(12)
    areas = pd.DataFrame({"best": base, "alike": base + 0.1 * rng.standard_normal(12) - 0.01, "worse": base - 0.1})
    areas["rare"] = np.where(np.arange(12) < 4, base, np.nan)
    text = arena_advice.recommended(areas)
    best, alike = (areas.max(axis=1) - areas[name] for name in ("best", "alike"))
    assert text.startswith(f"take best, {best.mean():.3f} behind")
    assert f"Alike ({alike.mean():.3f} behind) is as good as these data sets can tell" in text
    assert ". Worse (" in text
    assert text.endswith(" is worse.")
    assert "rare" not in text, "it has a number on a third of the data sets"


def test_a_paired_test_of_one_data_set_tells_nothing():
    assert not arena_advice.differs(pd.DataFrame({"x": [0.9], "y": [0.1]}), "x", "y")
    assert arena_advice.differs(pd.DataFrame({"x": [0.9, 0.8, 0.91], "y": [0.1, 0.0, 0.1]}), "x", "y")


def test_only_repetitions_that_all_methods_have_are_compared():
    """Folds differ between repetitions: a method with more of them must not be judged on others' folds."""
    rows = [("a", "x", 0), ("a", "x", 1), ("a", "y", 0), ("b", "x", 0), ("b", "x", 1), ("b", "y", 0), ("b", "y", 1)]
    frame = pd.DataFrame(rows, columns=["data", "method", "rep"]).assign(condition="complete")
    kept = standings.shared(frame)
    assert kept[["data", "method", "rep"]].to_numpy().tolist() == [list(row) for row in rows if row != ("a", "x", 1)]


# -- data -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes", "linnerud"])
def test_bundled_data_are_complete_and_have_a_K(name):
    found = collection.case(name, Inputs())
    assert np.isfinite(found.Y).all()
    assert all(np.isfinite(view).all() and (np.ptp(view, axis=0) > 0).all() for view in found.views.values())
    assert found.Y.shape[1] < found.n_factors


def test_missing_packages_and_folders_are_said(tmp_path):
    missing = collection.missing(Inputs(cll=tmp_path))
    assert "tcga=..." in missing["tcga"]
    assert "cll" not in missing
    assert "iris" not in missing
    with pytest.raises(ValueError, match="The data set 'tcga' is not here"):
        collection.case("tcga", Inputs())


def test_conditions_hide_cells_and_views():
    whole = small_case(300)
    cells, views = (collection.hidden(whole, condition, 0).views for condition in ("cells", "views"))
    assert np.mean([np.isnan(view).mean() for view in cells.values()]) == pytest.approx(1 / 3, abs=0.03)
    assert not np.isnan(views["a"]).any()
    lost = np.isnan(views["b"])
    assert (lost.all(axis=1) == lost.any(axis=1)).all()
    assert lost.mean() == pytest.approx(0.5, abs=0.1)
    assert collection.conditions(whole) == ["complete", "cells", "views"]
    assert collection.conditions(Case({"a": whole.views["a"]}, whole.Y)) == ["complete", "cells"]


# -- methods ----------------------------------------------------------------------------------------------------------


def test_gaps_of_a_new_sample_leave_its_other_features():
    """The posterior mean of a sample that lacks features is that of a model without these features."""
    rng = np.random.default_rng(0)
    Z, W = rng.standard_normal((40, 3)), rng.standard_normal((7, 3))
    X, new = Z @ W.T + 0.3 * rng.standard_normal((40, 7)), rng.standard_normal((2, 7))
    whole = posterior_means({"X": X}, Z, {"X": W}, {"X": new})
    gappy = new.copy()
    gappy[0, [1, 4]] = np.nan
    found = posterior_means({"X": X}, Z, {"X": W}, {"X": gappy})
    kept = [0, 2, 3, 5, 6]
    alone = posterior_means({"X": X[:, kept]}, Z, {"X": W[kept]}, {"X": new[:, kept]})
    assert found[1] == pytest.approx(whole[1])
    assert found[0] == pytest.approx(alone[0])
    assert np.abs(found[0] - whole[0]).max() > 1e-3


@pytest.mark.parametrize("name", ["PCA", "FactorAnalysis", "PLS", entrants.FEATURES, "iFA"])
def test_every_method_places_new_rows_with_gaps(name):
    whole = small_case()
    seen = collection.hidden(whole, "cells", 0)
    rows = list(bouts.judged(name, whole, seen, RULES, folds=2))
    found = {(row.method, row.metric): row.value for row in rows}
    judged = [value for (method, metric), value in found.items() if metric == "area"]
    assert len(judged) == (1 if name == entrants.FEATURES else 2)
    assert max(judged) > 0.4
    assert found[name, "seconds"] > 0
    if name != entrants.FEATURES:
        assert found[name, "imputation error"] < 1.1
    if name == "iFA":
        assert 0.7 < found["iFA", "cell coverage"] <= 1


def test_T_is_that_of_transform():
    """Rows times ``along_lambda`` differ from ``transform`` by a constant only."""
    whole = small_case()
    X = whole.views["a"]
    aligner = LatentAligner().fit(X, whole.Y)
    for lam, T in zip(entrants.LAMS, entrants.along_lambda(aligner), strict=True):
        assert np.ptp(X @ T - aligner.at(lam).transform(X), axis=0) == pytest.approx(0, abs=1e-12)


def test_a_failure_is_a_row():
    unit = bouts.unit("Y as factors", "iris", "complete", 0, ARENA)
    (row,) = bouts.measure(unit, ARENA, Inputs())
    assert row.method == "Y as factors"
    assert "its factors are the covariates themselves" in row.metric


def test_a_fit_that_takes_too_long_is_stopped():
    def busy():
        while True:
            sum(range(1000))

    start = time.process_time()
    with pytest.raises(TimeoutError, match=r"0\.1 seconds of computation"), bouts.limited(0.1):
        busy()
    assert time.process_time() - start < 2


def test_quick_methods_come_first_and_slow_ones_see_complete_data_only():
    profile = ARENA._replace(data=("linnerud", "iris"), reps=2)
    units = bouts.units(profile, Inputs())
    assert len({*units}) == len(units)
    slow = [unit for unit in units if unit.method in entrants.SLOW]
    assert {unit.at["condition"] for unit in slow} == {"complete"}
    assert {unit.rep for unit in slow} == {0}
    names = [unit.method for unit in units]
    assert max(i for i, name in enumerate(names) if name == "PCA") < names.index("iFA")


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="There is no method 'PAC'"):
        entrants.chosen(["PAC"])
