"""n_factors="auto": what it costs, where it looks, and that it shows what it does."""

from __future__ import annotations

import numpy as np
import pytest

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign._core.progress import Progress
from covalign.factor.fit_search import Best, Search
from covalign.factor.inference import n_factors as selection
from covalign.factor.inference import sweeps
from covalign.factor.inference.sweeps import Fit

QUICK = {"supervision": 1, "folds": 0}


@pytest.fixture
def swept(monkeypatch):
    """The number of factors of every sweep so far."""
    whole, seen = sweeps.sweep, []

    def counted(problem, *args, **settings):
        seen.append(problem.k)
        return whole(problem, *args, **settings)

    monkeypatch.setattr(sweeps, "sweep", counted)
    return seen


def tables(gaps: bool):
    s = ca.simulate.scenario("PN", n_samples=200, n_features=40, n_factors=8, noise=0.5, random_state=3)
    X = s.X.copy()
    if gaps:
        X[:60, :10] = np.nan
        X[40:120, 25:] = np.nan
    return X, s.Y


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_auto_has_at_most_five_times_the_sweeps_of_one_fit(gaps, swept):
    X, Y = tables(gaps)
    auto = InformedFactorAnalysis("auto", **QUICK).fit(X, Y)
    spent = len(swept)
    swept.clear()
    one = InformedFactorAnalysis(auto.n_factors_, **QUICK).fit(X, Y)
    assert spent <= 5 * len(swept)
    assert auto.elbo_[-1] >= one.elbo_[-1] - 1e-6 * abs(one.elbo_[-1])  # and no less far


def test_auto_finds_its_number_from_too_few(monkeypatch):
    X, Y = tables(gaps=False)
    usual = InformedFactorAnalysis("auto", **QUICK).fit(X, Y)
    monkeypatch.setattr(selection, "suggested", lambda problem: problem.p)
    monkeypatch.setattr(selection, "SPARE", 1)
    fa = InformedFactorAnalysis("auto", **QUICK).fit(X, Y)
    assert {5, 6, 12} <= set(fa.n_factors_path_.index)  # all six were needed, so twice as many were tried
    assert fa.n_factors_ == usual.n_factors_ == 8


def test_the_number_chosen_has_the_highest_bound():
    X, Y = tables(gaps=True)
    fa = InformedFactorAnalysis("auto", **QUICK).fit(X, Y)
    assert fa.converged_
    assert fa.n_factors_path_.idxmax() == fa.n_factors_
    assert fa.n_factors_path_.max() == fa.elbo_[-1]
    for other in (fa.n_factors_ - 1, fa.n_factors_ + 1):
        assert InformedFactorAnalysis(other, **QUICK).fit(X, Y).elbo_[-1] < fa.elbo_[-1]


def test_the_search_shows_which_number_it_tries(monkeypatch):
    shown = []
    monkeypatch.setattr(Progress, "update", lambda self, done, text=None: shown.append(text))
    fa = InformedFactorAnalysis("auto", **QUICK).fit(*tables(gaps=False))
    tried = {int(text.split(":")[1].split(",")[0]) for text in shown if text and text.startswith("number of factors")}
    assert tried == set(fa.n_factors_path_.index)


def test_sweeps_end_where_the_rival_is_out_of_reach():
    X, Y = tables(gaps=False)
    problem = InformedFactorAnalysis(8, **QUICK).fit(X, Y)._problem
    search = Search(False, True, 100, 1e-8, 0, 1, None, Best())
    begun = Fit(search.begin(problem).state, [], False)
    with Progress(None) as bar:
        whole = search.explore(problem, begun, 12, bar)
        ended = search.explore(problem, begun, 12, bar, target=0.0)
        assert search.explore(problem, whole._replace(converged=True), 12, bar).elbo == whole.elbo
    assert len(ended.elbo) == 2 < len(whole.elbo) <= 12
    np.testing.assert_array_equal(ended.elbo, whole.elbo[:2])
