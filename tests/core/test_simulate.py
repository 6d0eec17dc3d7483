"""The scenarios generate what they say."""

from __future__ import annotations

import numpy as np
import pytest

import covalign as ca
from covalign.closed_form import simulate


@pytest.mark.parametrize("name", simulate.SCENARIOS)
@pytest.mark.parametrize(("alpha", "b"), [(1.0, 1.0), (0.5, 2 / 3), (0.0, 1 / 3)])
def test_sample_moments_tend_to_the_population(name, alpha, b):
    s = simulate.scenario(name, n_samples=200_000, n_features=1, alpha=alpha, b=b, random_state=1)
    sample = ca.Moments.from_arrays(s.Z[:, :5], s.Y)
    population = simulate.population_moments(name, alpha=alpha, b=b)
    for field in ("cov_z", "cov_zy", "cov_y"):
        np.testing.assert_allclose(getattr(sample, field), getattr(population, field), atol=0.015)
    np.testing.assert_allclose(np.diag(population.cov_z), 1)


def test_noise_is_relative_to_the_signal_of_each_feature():
    s = simulate.scenario("PN", n_samples=100_000, n_features=20, noise=0.25, random_state=0)
    signal = s.Z @ s.W.T
    np.testing.assert_allclose((s.X - signal).var(axis=0) / signal.var(axis=0), 0.25, rtol=0.05)


@pytest.mark.parametrize("name", simulate.SCENARIOS)
@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_any_number_of_covariates(name, p):
    Sigma = simulate.covariate_correlation(name, p)
    np.testing.assert_allclose(np.diag(Sigma), 1)
    assert np.linalg.eigvalsh(Sigma)[0] > -1e-12
    s = simulate.scenario(name, n_samples=30, n_features=7, n_factors=p + 1, n_covariates=p)
    assert s.Y.shape == (30, p)
    assert s.beta.shape == (p,)


def test_negative_scenario_loses_one_rank():
    assert np.linalg.matrix_rank(simulate.covariate_correlation("N", 5)) == 4
    np.testing.assert_allclose(simulate.covariate_correlation("N", 5)[0, 1], -0.25)
    np.testing.assert_allclose(simulate.coefficients(), [0.9, 0.75, 0.6, 0.45, 0.3])


def test_views_share_the_factors():
    s = simulate.scenario("AR", n_features={"rna": 8, "protein": 5}, noise=0.0)
    for view, d in (("rna", 8), ("protein", 5)):
        assert s.W[view].shape == (d, 10)
        np.testing.assert_allclose(s.X[view], s.Z @ s.W[view].T)


def test_seeds():
    a, b, c = (simulate.scenario("P", random_state=seed).X for seed in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - c).max() > 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": "Q"}, "one of PN, AR, P, N, got 'Q'"),
        ({"alpha": 1.5}, "alpha needs a number in"),
        ({"b": -1}, "b needs a number in"),
        ({"n_covariates": 11}, "11 covariates need at least 11 latent dimensions, got 10"),
        ({"n_samples": 0}, "n_samples needs a whole number of at least 1"),
        ({"noise": -1}, "noise needs a finite"),
        ({"noise": np.inf}, "noise needs a finite"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        simulate.scenario(**{"name": "PN", **settings})
