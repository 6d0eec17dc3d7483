"""Noise with heavy tails: a scale for every sample and view."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.factor.inference import heavy_tails, row_evidence
from covalign.factor.inference.patterns import Gapped
from tests.conftest import thorough


def outlying(seed: int = 0, gaps: bool = False, n: int = 100) -> tuple[dict, np.ndarray, np.ndarray]:
    """Two views, in each of which one sample is far off."""
    s = ca.simulate.scenario(
        "PN", n_samples=n, n_features={"a": 24, "b": 16}, n_factors=6, noise=0.5, random_state=seed
    )
    rng = np.random.default_rng(seed)
    X = {name: view.copy() for name, view in s.X.items()}
    X["a"][3] += 20 * rng.standard_normal(24)
    X["b"][7] += 20 * rng.standard_normal(16)
    if gaps:
        X["b"][20:40] = np.nan
        X["a"][rng.random((n, 24)) < 0.05] = np.nan
    return X, s.Y, s.Z


def fitted(X, Y, **settings):
    return InformedFactorAnalysis(6, **{"noise": "student", "supervision": 1, "folds": 0, **settings}).fit(X, Y)


@pytest.mark.parametrize("posterior", ["full", "mean_field"])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("supervision", [1, 3])
@pytest.mark.parametrize("accelerate", [True, *thorough(False)])
def test_bound_never_falls(posterior, gaps, supervision, accelerate):
    X, Y, _ = outlying(gaps=gaps)
    settings = {
        "posterior": posterior,
        "supervision": supervision,
        "accelerate": accelerate,
        "max_iter": 12,
        "tol": 0.0,
    }
    with pytest.warns(ConvergenceWarning):
        elbo = fitted(X, Y, **settings).elbo_
    assert np.diff(elbo).min() >= -1e-9 * abs(elbo[-1])


def test_distances_are_expected_squared_residuals():
    """Against samples of loadings and factors."""
    X, Y, _ = outlying(gaps=True)
    model = fitted(X, Y)
    data, state, rng = model._problem.data, model._stage_1, np.random.default_rng(0)
    rows = [3, 25, 60]
    for v, part in enumerate(row_evidence.of_views(state.views, data.plain)):
        view, where = state.views[v], model._problem.bounds[v]
        got = part.distances(data.plain, state.z.mean, state.z.cov[state.z.group])
        W2 = row_evidence.feature_moments(view.w, np.ones(len(view.w.mean)))
        for n in rows:
            z = rng.multivariate_normal(state.z.mean[n], state.z.cov[n], size=40_000)
            total = 0.0
            for d in np.flatnonzero(data.observed[n, where]):
                x = data.plain.X[n, where][d] - view.w.intercept[d]
                total += view.precision[d] * np.mean(
                    x**2 - 2 * x * z @ view.w.mean[d] + np.einsum("ik,kl,il->i", z, W2[d], z)
                )
            assert got[n] == pytest.approx(total, rel=0.02, abs=1e-9)


def test_gain_of_a_scale_is_its_bound():
    """E[log p(s | u)] - KL(q || p) by quadrature, up to the part that the views count."""
    nu, cells, s = 5.0, 7.0, 30.0
    scales = heavy_tails.of_distances(np.array([[s]]), np.array([[cells]]), np.array([nu]))
    q = stats.gamma(scales.shape[0, 0], scale=1 / scales.rate[0, 0])
    p = stats.gamma(nu / 2, scale=2 / nu)

    def integrand(u):
        return q.pdf(u) * (cells / 2 * np.log(u) + p.logpdf(u) - q.logpdf(u))

    assert scales.gain(np.array([[cells]])) == pytest.approx(integrate.quad(integrand, 1e-9, 5, limit=200)[0], rel=1e-6)


def test_degrees_of_freedom_are_the_best_of_the_grid():
    rng = np.random.default_rng(1)
    cells = np.full((400, 1), 10.0)
    u = rng.gamma(3.0, 1 / 3.0, size=400)  # nu = 6
    s = (rng.chisquare(10, size=400) / u)[:, None]
    found = heavy_tails.best_degrees(s, cells)[0]

    def height(log_nu):
        scales = heavy_tails.of_distances(s, cells, np.array([np.exp(log_nu)]))
        return -(scales.gain(cells) - np.sum(scales.mean * s) / 2)

    best = np.exp(minimize_scalar(height, bounds=(np.log(3), np.log(1e4)), method="bounded").x)
    assert found == pytest.approx(best, rel=0.15)  # the grid's step is a quarter
    assert 4 < found < 9


@pytest.mark.parametrize("supervision", [3, *thorough(1)])
@pytest.mark.parametrize("gaps", [False, True])
def test_fitted_samples_are_placed_where_they_are(gaps, supervision, tmp_path):
    X, Y, _ = outlying(gaps=gaps)
    model = fitted(X, Y, supervision=supervision)
    for now in (model, model.at(0.5)):
        np.testing.assert_allclose(now.transform(X, Y), now.factors_, atol=1e-9)
        np.testing.assert_allclose(now.transform(X, Y, return_std=True)[1], now.factor_std_, atol=1e-9)
    z = model.at(0).transform(X)[:, :5]
    assert np.abs(np.corrcoef(z.T) - np.eye(5)).max() < 1e-6
    model.at(0.5).save(tmp_path / "model.covalign")
    again = ca.load(tmp_path / "model.covalign")
    np.testing.assert_array_equal(again.transform(X), model.at(0.5).transform(X))
    np.testing.assert_array_equal(again.sample_weights_, model.sample_weights_)
    np.testing.assert_array_equal(again.at(0).transform(X), model.at(0).transform(X))


def test_outlying_samples_own_no_factor():
    recovered = {}
    for noise in ("gaussian", "student"):
        means = []
        for seed in range(3):
            X, Y, Z = outlying(seed)
            with warnings.catch_warnings():
                if noise == "gaussian":  # whose factors these samples own
                    warnings.simplefilter("ignore", ca.exceptions.OwnershipWarning)
                model = fitted(X, Y, noise=noise)
            usual = np.setdiff1d(np.arange(len(Y)), [3, 7])
            means.append([abs(np.corrcoef(model.factors_[usual, p], Z[usual, p])[0, 1]) for p in range(5)])
            if noise == "student":
                weights = model.sample_weights_
                assert weights["a"].idxmin() == 3
                assert weights["b"].idxmin() == 7
                assert weights.to_numpy().min(axis=0).max() < 0.1
                assert not (model.ownership_["kind"] == "sample of a factor").any()
        recovered[noise] = np.mean(means)
    assert recovered["student"] > recovered["gaussian"] + 0.02


def test_without_outliers_the_model_is_the_gaussian_one():
    s = ca.simulate.scenario("PN", n_samples=300, n_features=30, n_factors=6, random_state=0)
    gaussian, student = (fitted(s.X, s.Y, noise=noise) for noise in ("gaussian", "student"))
    np.testing.assert_allclose(student.beta_, gaussian.beta_, atol=0.02)
    assert np.median(np.abs(student.sample_weights_ - 1)) < 0.05


def test_imputed_cells_of_an_outlying_sample_are_uncertain():
    X, Y, _ = outlying()
    X["a"][3, :4] = X["a"][50, :4] = np.nan
    std = fitted(X, Y).impute("a", return_std=True)[1].to_numpy()
    assert (std[3, :4] > 2 * std[50, :4]).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise": "cauchy"}, "noise"),
        ({"regime_from": "model"}, "regime_from"),
        ({"posterior": "coordinates"}, "posterior"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    X, Y, _ = outlying()
    with pytest.raises(ValueError, match=words):
        fitted(X, Y, **settings)


def test_rows_that_are_streamed_are_refused(tmp_path):
    s = ca.simulate.scenario("PN", n_samples=60, n_features=10, n_factors=6)
    np.save(tmp_path / "x.npy", s.X)
    with pytest.raises(ValueError, match="in memory"):
        fitted(ca.open_rows(tmp_path / "x.npy"), s.Y)


def test_warm_start_and_auto_work():
    X, Y, _ = outlying(gaps=True)
    model = InformedFactorAnalysis("auto", noise="student", supervision=1, folds=2).fit(X, Y)
    assert model.n_factors_ >= 5
    bound = model.elbo_[-1]
    assert model.fit(X, Y, warm_start=True).elbo_[-1] >= bound - 1e-6 * abs(bound)
    assert model.informed_["held_out"].notna().all()
    assert isinstance(model._problem.data, Gapped)
