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
    tried, real = [], cross_validation.held_out

    def watched(model, folds, settings=None):
        tried.append(settings.supervision)
        return real(model, folds, settings)

    monkeypatch.setattr(cross_validation, "held_out", watched)
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
