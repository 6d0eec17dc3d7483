"""A share of ridge regression on all features in the factors of samples without covariates."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.factor import feature_regression


def hidden(n=240, d=40, seed=0):
    """Features whose small components predict the covariates: too few factors miss them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 12))
    X = Z @ (rng.normal(size=(12, d)) * np.linspace(3, 0.5, 12)[:, None]) + 0.3 * rng.normal(size=(n, d))
    return X, Z[:, -2:] + 0.3 * rng.normal(size=(n, 2))


def with_gaps(X, seed=1):
    X = X.copy()
    X[::2, 25:] = np.nan
    X[np.random.default_rng(seed).random(X.shape) < 0.05] = np.nan
    return X


@pytest.fixture(scope="module")
def fitted():
    """Models with a share, by kind of data."""
    X, Y = hidden()
    unlabelled = Y.copy()
    unlabelled[:20], unlabelled[20:40, 1] = np.nan, np.nan
    model = InformedFactorAnalysis(4, folds=0, supervision=4.0, regression_share=0.6)
    wide_X, wide_Y = hidden(60, 90)
    rows = {"complete": (X, Y), "gaps": (with_gaps(X), unlabelled), "wide": (wide_X, wide_Y)}
    return {kind: (clone(model).fit(*data), *data) for kind, data in rows.items()}


def standardised(A):
    return (A - A.mean(axis=0)) / A.std(axis=0)


def test_with_the_whole_share_it_is_ridge_regression(fitted):
    fa, X, Y = fitted["complete"]
    alone = clone(fa).set_params(regression_share=1.0).fit(X, Y)
    X, Y = standardised(X), standardised(Y)
    made = alone.transform(hidden()[0])[:, :2]
    distances = []
    for penalty in feature_regression.PENALTIES:
        said = Ridge(penalty * len(X)).fit(X, Y).predict(X)
        said /= np.maximum(np.maximum(alone.beta_, 0.3), said.std(axis=0))
        distances.append(np.abs(said - made).max())
    assert min(distances) < 1e-9
    assert np.max(distances) > 0.1


def test_it_is_a_mixture(fitted):
    fa, X, Y = fitted["complete"]
    ends = [clone(fa).set_params(regression_share=share).fit(X, Y).transform(X) for share in (0.0, 1.0)]
    np.testing.assert_allclose(fa.transform(X), 0.4 * ends[0] + 0.6 * ends[1], atol=1e-10)
    np.testing.assert_allclose(ends[0][:, 2:], ends[1][:, 2:], atol=1e-12)  # free factors are those of the model


@pytest.mark.parametrize("kind", ["complete", "gaps", "wide"])
def test_regimes_hold_on_the_fitted_rows(fitted, kind):
    fa, X, _ = fitted[kind]
    z = fa.at(0.0).transform(X)[:, :2]
    assert ca.metrics.coupling(z) < 1e-12
    assert fa.at(0.0).coupling_ < 1e-12


def test_an_absent_view_is_a_view_of_gaps():
    X, Y = hidden()
    views = {"a": X[:, :25], "b": X[:, 25:]}
    fa = InformedFactorAnalysis(4, folds=0, supervision=4.0, regression_share=0.6).fit(views, Y).at(0.5)
    empty = np.full_like(views["b"][:7], np.nan)
    np.testing.assert_allclose(fa.transform({"a": X[:7, :25]}), fa.transform({"a": X[:7, :25], "b": empty}), atol=1e-10)


def test_samples_of_the_fit_are_placed_as_new_ones(fitted):
    fa, X, Y = fitted["gaps"]
    for model in (fa, fa.at(0.3)):
        np.testing.assert_allclose(model.factors_, model.transform(X, Y), atol=1e-8)
        np.testing.assert_allclose(model.factors_[:20], model.transform(X[:20]), atol=1e-8)


def test_rows_that_are_read_by_chunks_give_the_same(fitted, tmp_path):
    fa, X, Y = fitted["complete"]
    np.save(tmp_path / "X.npy", X)
    streamed = clone(fa).set_params(chunk_rows=50).fit(tmp_path / "X.npy", Y)
    np.testing.assert_allclose(streamed.transform(X), fa.transform(X), atol=1e-7)
    np.testing.assert_allclose(streamed.T_, fa.T_)


def test_a_saved_model_places_samples_as_before(fitted, tmp_path):
    fa, X, _ = fitted["gaps"]
    fa.at(0.2).save(tmp_path / "model.covalign")
    again = ca.load(tmp_path / "model.covalign")
    assert again.regression_share_ == 0.6
    np.testing.assert_array_equal(again.transform(X), fa.at(0.2).transform(X))
    np.testing.assert_array_equal(again.at(0.7).transform(X), fa.at(0.7).transform(X))


def test_the_penalty_is_that_of_the_best_left_out_predictions():
    rng = np.random.default_rng(0)
    X, folds = rng.normal(size=(40, 60)), np.arange(40) % 3
    Y = X[:, :2] + rng.normal(size=(40, 2))
    reached = []
    for penalty in feature_regression.PENALTIES:
        made = np.zeros_like(Y)
        for fold in range(3):
            train = folds != fold
            centred = X[train] - X[train].mean(axis=0)
            unit = np.sum(centred**2) / X.shape[1]
            made[~train] = Ridge(penalty * unit).fit(X[train], Y[train]).predict(X[~train]) - Y[train].mean(axis=0)
        reached.append(np.mean([np.corrcoef(made[:, p], Y[:, p])[0, 1] for p in range(2)]))
    assert feature_regression.best_left_out(X, Y, folds) == np.argmax(reached)


def test_what_factors_lack_is_found_by_itself():
    X, Y = hidden(300)
    fa = InformedFactorAnalysis(3, folds=0).fit(X[:150], Y[:150])
    assert fa.regression_share_ > 0
    alone = InformedFactorAnalysis(3, folds=0, regression_share=0.0).fit(X[:150], Y[:150])

    def reached(model):
        z = model.at(0.5).transform(X[150:])
        return np.mean([np.corrcoef(z[:, p], Y[150:, p])[0, 1] for p in range(2)])

    assert reached(fa) > reached(alone) + 0.01


def test_where_factors_suffice_there_is_none():
    s = ca.simulate.scenario("PN", n_samples=300)
    assert InformedFactorAnalysis(10, folds=0).fit(s.X, s.Y).regression_share_ == 0
    assert InformedFactorAnalysis(3, folds=0, supervision=4.0).fit(*hidden()).regression_share_ == 0


@pytest.mark.parametrize("value", [-0.1, 1.5, "some", None])
def test_other_shares_are_refused(value):
    with pytest.raises(ValueError, match="regression_share needs a number from 0 to 1"):
        InformedFactorAnalysis(3, regression_share=value).fit(*hidden())
