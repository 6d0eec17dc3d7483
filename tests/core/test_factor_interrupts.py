"""Ctrl-C in the factor model: the best state so far is kept, with a warning, or KeyboardInterrupt is raised."""

from __future__ import annotations

import signal
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from covalign import InformedFactorAnalysis, simulate
from covalign.factor.inference import sweeps

DATA = simulate.scenario("PN", n_samples=60, n_features=30, n_factors=6, random_state=1)
WIDE = simulate.scenario("PN", n_samples=40, n_features=60, n_factors=6, random_state=1)  # chooses its supervision


@pytest.fixture
def control_c(monkeypatch):
    """``control_c(i)`` sends the signal in sweep i (from 0); the list it returns has an entry for every sweep."""

    def at(i: int) -> list[int]:
        calls: list[int] = []

        def sweep(*given):
            calls.append(len(calls))
            if len(calls) == i + 1:
                signal.raise_signal(signal.SIGINT)
            return real(*given)

        monkeypatch.setattr(sweeps, "sweep", sweep)
        return calls

    real = sweeps.sweep
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore the signal
    yield at
    signal.signal(signal.SIGINT, before)


def interrupted(data, calls, at, **settings):
    """The fit, if a state was kept; None if it raised. Not one sweep may follow."""
    model = InformedFactorAnalysis(**{"n_factors": 6, "tol": 0.0, "max_iter": 12, **settings})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            model.fit(data.X, data.Y)
        except KeyboardInterrupt:
            model = None
    assert len(calls) == at + 1
    if model is not None:
        assert not model.converged_
        assert (np.diff(model.elbo_) >= 0).all()
        assert model.transform(data.X).shape == (len(data.X), model.n_factors_)
        assert "interrupted" in str(caught[-1].message)
        return model, str(caught[-1].message)
    return None, ""


@pytest.mark.parametrize(
    ("settings", "at", "left"),
    [
        ({}, 5, "the sweeps until the bound converges, the choice of the supervision"),
        ({"n_init": 4, "supervision": 1.0}, 5, "the sweeps until the bound converges, 4 of 4 starts"),
        ({"n_init": 4, "supervision": 1.0, "accelerate": False}, 30, "2 of 4 starts"),
        ({"n_factors": "auto", "supervision": 4.0}, 8, "the choice of the number of factors, the sweeps until"),
        ({"pretrain_iter": 6, "supervision": 1.0}, 9, "the sweeps until the bound converges"),
        ({"posterior": "mean_field", "n_init": 2}, 7, "2 of 2 starts, the choice of the supervision"),
    ],
)
def test_a_fit_keeps_its_best_state_and_names_what_is_left(control_c, settings, at, left):
    model, said = interrupted(DATA, control_c(at), at, **settings)
    assert model is not None
    assert left in said


@pytest.mark.parametrize("settings", [{}, {"n_init": 3}, {"n_factors": "auto"}, {"pretrain_iter": 6}])
def test_a_fit_without_a_sweep_raises(control_c, settings):
    assert interrupted(DATA, control_c(0), 0, **settings)[0] is None


def test_a_warm_up_is_no_fit(control_c):
    assert interrupted(DATA, control_c(4), 4, pretrain_iter=6)[0] is None


def test_a_refit_that_raises_leaves_the_model_as_it_was(control_c):
    model = InformedFactorAnalysis(6, folds=0, supervision=1.0).fit(DATA.X, DATA.Y)
    before = model.elbo_.copy()
    control_c(0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA.X[::2], DATA.Y[::2])
    np.testing.assert_array_equal(model.elbo_, before)
    assert model.converged_


def test_the_choice_of_supervision_ends_and_the_fit_with_1_is_kept(control_c):
    whole = InformedFactorAnalysis(6, supervision=1.0, folds=0).fit(WIDE.X, WIDE.Y)
    at = whole.n_iter_ + 25
    model, said = interrupted(WIDE, control_c(at), at, tol=1e-8, max_iter=2000)
    assert model is not None
    assert model.supervision_ == 1.0
    assert "Not done: the choice of the supervision. " in said
    np.testing.assert_array_equal(model.elbo_, whole.elbo_)


@pytest.mark.parametrize("number", [InformedFactorAnalysis.summary, InformedFactorAnalysis.informed_.fget])
def test_numbers_of_left_out_samples_are_whole_or_absent(control_c, number):
    model = InformedFactorAnalysis(6, supervision=1.0).fit(DATA.X, DATA.Y)
    calls = control_c(8)
    with pytest.raises(KeyboardInterrupt):
        number(model)
    assert len(calls) == 9
    assert model._held == {}


def test_a_fit_goes_on_where_it_was_interrupted(control_c, monkeypatch):
    model, _ = interrupted(DATA, control_c(4), 4, supervision=1.0, tol=1e-8, max_iter=2000)
    assert model is not None
    reached = model.elbo_[-1]
    monkeypatch.undo()
    model.fit(DATA.X, DATA.Y, warm_start=True)
    assert model.converged_
    assert model.elbo_[0] >= reached
