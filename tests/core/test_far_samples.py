"""Samples whose cells are far from all that was fitted."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy import sparse

import covalign as ca
from covalign import InformedFactorAnalysis


@pytest.fixture(scope="module")
def fitted():
    """A model whose largest cell, of feature 0, is 9 standard deviations from the mean."""
    s = ca.simulate.scenario("PN", n_samples=300, n_features=20)
    X = 3 + 2 * s.X
    X[7, 0] = X[:, 0].mean() + 9 * X[:, 0].std()
    return InformedFactorAnalysis(8, folds=0).fit(X, s.Y), X


def moved(fa, X, feature, deviations):
    """Five rows, the first with this cell so many standard deviations from the mean."""
    new, view = X[20:25].copy(), next(iter(fa._table.views.values()))
    new[0, feature] = view.mean[feature] + deviations * view.sd[feature]
    return new


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_cell_counts_up_to_six_deviations(fitted, sign):
    fa, X = fitted
    for model in (fa, fa.at(0.3)):
        near, at, far = (model.transform(moved(fa, X, 3, sign * d)) for d in (5.5, 6, 60))
        np.testing.assert_allclose(far, at, atol=1e-8)
        assert np.abs(near - at)[0].max() > 1e-3
        np.testing.assert_array_equal(near[1:], at[1:])


def test_or_up_to_the_farthest_fitted_cell(fitted):
    fa, X = fitted
    farthest = fa._table.reach[0]
    assert farthest > 7
    far, at, near = (fa.transform(moved(fa, X, 0, d)) for d in (70, farthest, 6.5))
    np.testing.assert_allclose(far, at, atol=1e-8)
    assert np.abs(near - at)[0].max() > 1e-3


def test_fitted_rows_count_as_they_are(fitted):
    fa, X = fitted
    alone = np.vstack([fa.transform(row[None]) for row in X[:12]])
    np.testing.assert_allclose(alone, fa.transform(X)[:12], atol=1e-9)
    assert ca.metrics.coupling(fa.at(0.0).transform(X)[:, :5]) < 1e-12


def test_all_ways_to_give_rows_agree(fitted, tmp_path):
    fa, X = fitted
    new = moved(fa, X, 3, 80)
    want = fa.transform(new)
    np.testing.assert_allclose(fa.transform(sparse.csr_matrix(new)), want, atol=1e-9)
    np.save(tmp_path / "new.npy", new)
    np.testing.assert_allclose(fa.transform(tmp_path / "new.npy"), want, atol=1e-9)
    fa.save(tmp_path / "model.covalign")
    np.testing.assert_array_equal(ca.load(tmp_path / "model.covalign").transform(new), want)
    gaps = np.vstack([new, np.where(np.arange(20) == 5, np.nan, new[1])[None]])
    np.testing.assert_allclose(fa.transform(gaps)[:5], want, atol=1e-9)


def test_with_confounders_what_they_explain_is_subtracted_first():
    s = ca.simulate.scenario("PN", n_samples=300, n_features=20)
    C = np.random.default_rng(0).normal(size=(300, 1))
    X = s.X + 30 * C  # cells far from the mean, for a reason that is known
    fa = InformedFactorAnalysis(8, folds=0).fit(X[:200], s.Y[:200], confounders=C[:200])
    far, free = C[200:] * 3, copy.copy(fa)
    free._table = fa._table._replace(reach=None)
    new = X[200:] + 30 * (far - C[200:])
    assert np.abs((new - X.mean(axis=0)) / s.X.std(axis=0)).max() > 100
    np.testing.assert_allclose(fa.transform(new, confounders=far), free.transform(new, confounders=far), atol=1e-9)


def test_the_paper_has_no_such_limit():
    s = ca.simulate.scenario("PN", n_samples=100, n_features=20)
    fa = InformedFactorAnalysis(8, folds=0, regime_from="model", supervision=1.0).fit(s.X, s.Y)
    new = np.vstack([s.X[:1], s.X[:1]])
    new[1, 2] += 1000
    assert np.abs(np.diff(fa.transform(new), axis=0)).max() > 10


def test_one_far_sample_does_not_couple_the_others():
    s = ca.simulate.scenario("PN", n_samples=400, n_features=30, noise=0.5)
    fa = InformedFactorAnalysis(10, folds=0).fit(s.X[:300], s.Y[:300]).at(0.0)
    new = s.X[300:].copy()
    before = ca.metrics.coupling(fa.transform(new)[:, :5])
    new[0, 4] = 1000
    assert ca.metrics.coupling(fa.transform(new)[:, :5]) < before + 1
