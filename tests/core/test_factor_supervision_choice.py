"""When weights of the supervision are tried at all, where there are more features than samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from covalign import InformedFactorAnalysis, simulate
from covalign.factor import cross_validation, supervision


def test_left_out_ridge_is_ridge_regression_on_the_features(monkeypatch):
    rng = np.random.default_rng(0)
    X, fold_of = rng.normal(size=(40, 60)), np.arange(40) % 3
    Y = X[:, :2] + rng.normal(size=(40, 2))
    Y -= Y.mean(axis=0)
    penalties = np.array([0.1, 1.0])
    monkeypatch.setattr(supervision, "PENALTIES", penalties)
    unit = np.sum(X**2) / 40
    found = np.zeros((2, 2))
    for i, penalty in enumerate(penalties):
        made = np.zeros_like(Y)
        for fold in range(3):
            train = fold_of != fold
            made[~train] = Ridge(penalty * unit, fit_intercept=False).fit(X[train], Y[train]).predict(X[~train])
        found[i] = [np.corrcoef(made[:, p], Y[:, p])[0, 1] for p in range(2)]
    want = found[np.argmax(found.mean(axis=1))]
    np.testing.assert_allclose(supervision.left_out_ridge(X @ X.T, Y, fold_of), want, atol=1e-10)


def weights_tried(monkeypatch, X, Y, k):
    """The weights, and the one that was chosen."""
    tried, real = [], cross_validation.with_shares

    def watched(model, folds, settings, shares):
        tried.append(settings.supervision)
        return real(model, folds, settings, shares)

    monkeypatch.setattr(cross_validation, "with_shares", watched)
    fa = InformedFactorAnalysis(k, folds=0, max_iter=30, tol=1e-5).fit(X, Y)
    return tried, fa.supervision_


def test_factors_that_predict_as_well_as_the_features_need_no_choice(monkeypatch):
    s = simulate.scenario("PN", n_samples=100, n_features=300, noise=1.0)
    assert weights_tried(monkeypatch, s.X, s.Y, 10) == ([1.0], 1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_covariates_that_large_factors_hide_get_more_weight(monkeypatch):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(80, 12))
    X = Z @ (rng.normal(size=(12, 200)) * np.linspace(3, 0.8, 12)[:, None]) + 0.3 * rng.normal(size=(80, 200))
    tried, chosen = weights_tried(monkeypatch, X, Z[:, -2:] + 0.1 * rng.normal(size=(80, 2)), 4)
    assert tried[:2] == [1.0, 4.0]
    assert chosen > 1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("confounded", [False, True])
def test_rows_that_are_read_by_chunks_choose_as_rows_in_memory_do(tmp_path, monkeypatch, confounded):
    monkeypatch.setattr(supervision, "MOST_ROWS", 150)  # every second row
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(300, 9))
    X = Z @ (rng.normal(size=(9, 30)) * np.linspace(3, 0.5, 9)[:, None]) + 0.3 * rng.normal(size=(300, 30))
    Y, C = Z[:, -2:] + 0.1 * rng.normal(size=(300, 2)), rng.normal(size=(300, 1))
    X = X + 2 * C @ rng.normal(size=(1, 30))
    np.save(tmp_path / "X.npy", X)
    more = {"confounders": C} if confounded else {}
    models = [
        InformedFactorAnalysis(3, folds=0, max_iter=30, chunk_rows=64).fit(source, Y, **more)
        for source in (X, tmp_path / "X.npy")
    ]
    assert models[0].supervision_ > 1
    assert models[1].supervision_ == models[0].supervision_
    np.testing.assert_allclose(models[1].T_, models[0].T_, atol=1e-6)


def test_small_data_count_for_1_only_if_it_is_clearly_better(monkeypatch):
    """Left-out samples of small data say little: a weight above 1 stays unless 1 gains more than chance."""
    s = simulate.scenario("PN", n_samples=60, n_features=80, noise=1.0)
    fa = InformedFactorAnalysis(10, folds=0, supervision=1.0).fit(s.X, s.Y)
    clear = 0.003 + 1.5 / 60
    monkeypatch.setattr(supervision, "suffices", lambda *_: False)

    class Level:
        def __init__(self, value):
            self.value = value
            self.mean = self.alignment = self

        def measure(self, *_):
            return self

    for best, ahead, wanted in ((0.5, 0.9 * clear, 4.0), (0.5, 1.1 * clear, 1.0), (0.12, 0.0, 1.0), (0.14, 0.0, 4.0)):

        def judged(_model, _folds, trial, shares, best=best, ahead=ahead):
            level = Level({1.0: best + ahead, 4.0: best, 16.0: best - 0.1}[trial.supervision])
            return [cross_validation.Judged(level, level)] * len(shares)

        monkeypatch.setattr(cross_validation, "with_shares", judged)
        assert supervision.chosen(fa) == wanted
