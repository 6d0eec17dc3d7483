"""Intervals of informed factors and of beta: the Laplace approximation is one, and intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.factor.inference import rotation, uncertainty

P = 5
WIDTH = stats.norm.ppf(0.95)  # 90 % intervals


def held(found, std, truth) -> float:
    """How often the truth of the informed factors lies in its interval."""
    return float(np.mean(np.abs(found - truth)[:, :P] < WIDTH * std[:, :P]))


def own_std(fa) -> np.ndarray:
    """What is left of the standard deviations if the rotation is taken as given."""
    return np.sqrt(np.diag(fa._state.z.cov))[None]


def fits(name, n, seeds, new=0, n_factors=10, **settings):
    for seed in seeds:
        s = ca.simulate.scenario(name, n_samples=n + new, random_state=seed)
        yield s, InformedFactorAnalysis(n_factors, **settings).fit(s.X[:n], s.Y[:n])


# -- the approximation ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    s = ca.simulate.scenario("PN", n_samples=300, n_features=30, n_factors=4, n_covariates=2, random_state=0)
    return InformedFactorAnalysis(4).fit(s.X, s.Y)


def test_the_covariance_is_the_inverse_of_minus_the_hessian(small, monkeypatch):
    monkeypatch.setattr(uncertainty, "SOFT", 0.0)
    state, k, p = small._state, 4, 2
    landscape, gamma = rotation.Landscape.of(small._problem, state), np.arctanh(state.beta)

    def value(x):
        return landscape.value(rotation.cayley(x[:-p].reshape(k, k)), x[-p:])

    origin, steps = np.append(np.zeros(k * k), gamma), 1e-3 * np.eye(k * k + p)
    corners = np.array(
        [[[[value(origin + a * u + b * v) for b in (1, -1)] for a in (1, -1)] for v in steps] for u in steps]
    )
    H = (corners[..., 0, 0] - corners[..., 0, 1] - corners[..., 1, 0] + corners[..., 1, 1]) / 4e-6
    assert np.linalg.eigvalsh(H).max() < 0
    C = uncertainty.few_samples(300, k) * np.linalg.inv(uncertainty.UNKNOWN * np.eye(len(H)) - H)
    found = uncertainty.laplace(small._problem, state)
    rows = C[: p * k, : p * k].reshape(p, k, p, k)
    np.testing.assert_allclose(found.rows, rows, atol=1e-3 * np.abs(rows).max())
    np.testing.assert_allclose(found.gamma, np.diag(C)[-p:], rtol=1e-3)


def test_along_soft_directions_variances_are_those_of_quadrature(small, monkeypatch):
    """Along one direction: a fine grid far out has the same mean square; without a bend it is the Laplace variance."""
    landscape, gamma = rotation.Landscape.of(small._problem, small._state), np.arctanh(small._state.beta)
    E = np.zeros((4, 4))
    E[0, 2], E[2, 0] = 0.7, -0.7
    t = np.linspace(-3, 3, 2001)
    weight = np.exp([landscape.value(rotation.cayley(s * E), gamma) - landscape.value(np.eye(4), gamma) for s in t])
    found = uncertainty.mean_square(landscape, gamma, E, np.zeros(2), 0.1)
    assert found == pytest.approx(weight @ t**2 / weight.sum(), rel=0.02)
    wide = uncertainty.laplace(small._problem, small._state)
    monkeypatch.setattr(uncertainty, "SOFT", 0.0)
    plain = uncertainty.laplace(small._problem, small._state)
    assert np.linalg.eigvalsh(wide.rows.reshape(8, 8) - plain.rows.reshape(8, 8)).min() > -1e-12
    assert (wide.gamma >= plain.gamma - 1e-12).all()


@pytest.mark.parametrize("gaps", [False, True])
def test_noise_of_features_makes_beta_less_certain(gaps):
    """J is the curvature of the expected log-density of t given y, by finite differences."""
    s = ca.simulate.scenario("AR", n_samples=120, n_features=20, n_factors=4, n_covariates=2, noise=2, random_state=0)
    if gaps:
        s.X[:40, :10] = np.nan
    fa = InformedFactorAnalysis(4, supervision=1).fit(s.X, s.Y)
    W, tau, beta, S_y = fa.loadings_["X"], fa.noise_precision_["X"], fa.beta_, np.corrcoef(s.Y.T)
    seen = [(40, slice(10, 20)), (80, slice(0, 20))] if gaps else [(120, slice(0, 20))]

    def cov(b, of):
        return np.diag([*(1 - b**2), 1, 1]) + np.linalg.inv((W[of].T * tau[of]) @ W[of])

    def expected(b):
        away, total = np.vstack([np.diag(b - beta), np.zeros((2, 2))]), 0.0
        for n, of in seen:
            V = cov(b, of)
            total -= (
                n / 2 * (np.linalg.slogdet(V)[1] + np.trace(np.linalg.solve(V, cov(beta, of) + away @ S_y @ away.T)))
            )
        return total

    steps = 1e-4 * np.eye(2)
    J = [
        [-sum(a * b * expected(beta + a * u + b * v) for a in (1, -1) for b in (1, -1)) / 4e-8 for v in steps]
        for u in steps
    ]
    complete = (1 - beta**2) ** 2 / (120 * (1 + beta**2))
    more = (np.diag(np.linalg.inv(J + np.eye(2))) - complete) / (1 - beta**2) ** 2
    found = uncertainty.Noise.of(fa._problem, fa._stage_1).gamma
    np.testing.assert_allclose(found, uncertainty.few_samples(120, 4) * more, rtol=1e-3)
    assert (found > 0).all()


def test_beta_of_a_factor_without_loadings_is_unknown():
    s = ca.simulate.scenario("PN", n_samples=100, n_features=20, n_factors=4, n_covariates=2, random_state=0)
    fa = InformedFactorAnalysis(4, supervision=1).fit(s.X, s.Y)
    off = [v._replace(w=v.w._replace(mean=v.w.mean * [1, 0, 1, 1])) for v in fa._stage_1.views]
    fa._stage_1 = fa._stage_1._replace(views=tuple(off))
    assert fa.beta_std_[1] > 0.9


def test_intervals_of_a_supervised_fit_contain_those_of_the_paper_model():
    s = ca.simulate.scenario("PN", n_samples=80, n_features=20, n_factors=4, n_covariates=2, noise=1, random_state=0)
    once, more = (InformedFactorAnalysis(4, supervision=weight).fit(s.X, s.Y) for weight in (1, 16))
    np.testing.assert_allclose(more.beta_std_, np.hypot(once.beta_std_, more.beta_ - once.beta_))
    away = np.mean((more.factors_ - once.factors_)[:, :2] ** 2, axis=0)
    assert (away > 0.01).all()
    assert (np.mean(more.factor_std_[:, :2] ** 2, axis=0) > away + once._state.z.cov.diagonal()[:2]).all()
    np.testing.assert_allclose(more.transform(s.X, s.Y, return_std=True)[1], more.factor_std_)


def test_beta_of_covariates_drawn_anew_may_be_zero():
    """X has structure, Y nothing to do with it; beta is then about sqrt(K / N)."""
    inside = []
    for seed in range(3):
        s = ca.simulate.scenario("PN", n_samples=300, n_features=20, n_factors=6, n_covariates=4, random_state=seed)
        Y = np.random.default_rng(seed + 100).standard_normal(s.Y.shape)
        fa = InformedFactorAnalysis(6, supervision=1).fit(s.X, Y)
        inside += list(fa.beta_ < WIDTH * fa.beta_std_)
    assert np.mean(inside) > 0.7
    found = uncertainty.by_chance(np.array([0.1, 0.9]), np.array([0.02, 0.02]), 6)
    np.testing.assert_allclose(found, [0.1, 0.0043], rtol=0.01)  # all of a small beta, next to nothing of a large one


def test_a_missing_covariate_counts_by_what_the_other_one_says_of_it():
    s = ca.simulate.scenario("PN", n_samples=200, n_features=20, n_factors=4, n_covariates=2, random_state=0)
    s.Y[::2, 1] = np.nan
    fa = InformedFactorAnalysis(4, supervision=1).fit(s.X, s.Y)
    between = fa._problem.data.S_y[0, 1]
    np.testing.assert_allclose(uncertainty.known_samples(fa._problem), [200, 100 + 100 * between**2])


def test_a_regime_takes_the_covariance_along(small):
    rows, m, T = small._rotation().rows, small.factors_[:7], np.array([[0.8, -0.5], [0.3, 1.1]])
    C = rows.reshape(8, 8)  # z~_np = sum_qk T_pq R_qk m_nk, linear in the entries of R
    expected = [[np.kron(T_p, m_n) @ C @ np.kron(T_p, m_n) for T_p in T] for m_n in m]
    np.testing.assert_allclose(uncertainty.of_rotation(rows, T, m), expected, rtol=1e-10)


def test_what_nothing_is_known_of_stays_bounded():
    """Without loadings, and covariates that say nothing, every turn of the factors is as good as any other."""
    rng = np.random.default_rng(0)
    fa = InformedFactorAnalysis(5).fit(rng.standard_normal((50, 8)), rng.standard_normal((50, 3)))
    C = fa._rotation().rows.reshape(15, 15)
    values = np.linalg.eigvalsh(C)
    assert -1e-12 < values.min() < values.max() <= uncertainty.few_samples(50, 5) / uncertainty.UNKNOWN * (1 + 1e-12)
    assert fa.factor_std_.max() < 2


def test_turns_among_factors_that_explain_nothing_may_be_held(monkeypatch):
    ((_, fa),) = fits("PN", 500, [0], n_factors=16)
    assert not fa.active_factors_[10:].any()

    def variance(leading):
        monkeypatch.setattr(uncertainty, "LEADING", leading)
        rows, gamma = uncertainty.laplace(fa._problem, fa._state)
        return np.append(uncertainty.of_rotation(rows, np.eye(P), fa.factors_).mean(axis=0), gamma)

    np.testing.assert_allclose(variance(10), variance(16), rtol=0.02)
    assert variance(5)[P - 1] < 0.9 * variance(16)[P - 1]  # those of the others have a say


def test_factors_turned_off_make_no_difference():
    s = ca.simulate.scenario("PN", n_samples=500, random_state=0)
    needed, more = (InformedFactorAnalysis(k).fit(s.X, s.Y) for k in (10, 16))
    assert more.active_factors_.sum() == 10
    assert np.isfinite(more.factor_std_).all()
    np.testing.assert_allclose(more.factor_std_[:, :P].mean(axis=0), needed.factor_std_[:, :P].mean(axis=0), rtol=0.1)


@pytest.mark.parametrize("rho", [0.95, 0.3])
def test_a_factor_seen_without_noise_has_the_beta_of_a_correlation(rho):
    """sd = (1 - rho^2) / sqrt(N); near rho = 1 half of the variance comes from the spread of y."""
    rng, n = np.random.default_rng(0), 2000
    y = rng.standard_normal(n)
    z = rho * y + np.sqrt(1 - rho**2) * rng.standard_normal(n)
    X = np.outer(z, rng.standard_normal(40)) + 0.05 * rng.standard_normal((n, 40))
    fa = InformedFactorAnalysis(1).fit(X, y[:, None])
    assert fa.beta_std_[0] == pytest.approx((1 - fa.beta_[0] ** 2) / np.sqrt(n), rel=0.05)


# -- coverage ---------------------------------------------------------------------------------------------------------


def test_one_view_of_two_gives_wider_intervals_that_hold_the_truth():
    found = []
    for seed in range(6):
        s = ca.simulate.scenario("PN", 700, {"rna": 70, "protein": 30}, random_state=seed)
        fa = InformedFactorAnalysis(10).fit({view: X[:500] for view, X in s.X.items()}, s.Y[:500])
        both, one = (fa.transform({v: s.X[v][500:] for v in views}, return_std=True) for views in (s.X, ["protein"]))
        assert (one[1] > both[1]).mean() > 0.95
        found.append(held(*one, s.Z[500:]))
    assert 0.83 < np.mean(found) < 0.96


# -- the face ---------------------------------------------------------------------------------------------------------


def test_fitted_samples_have_the_intervals_of_new_ones():
    ((s, fa),) = fits("PN", 300, [0])
    np.testing.assert_allclose(fa.transform(s.X, s.Y, return_std=True)[1], fa.factor_std_, rtol=1e-9)


def test_the_rotation_is_looked_at_when_asked_for_and_once(monkeypatch):
    calls, real = [], uncertainty.laplace
    monkeypatch.setattr(uncertainty, "laplace", lambda *args: calls.append(1) or real(*args))
    ((s, fa),) = fits("PN", 200, [0])
    fa.realign(0.5).transform(s.X)
    assert not calls
    before = fa.factor_std_
    assert fa.realign(0.5).factor_std_.shape == before.shape == (200, 10)
    assert fa.beta_std_.shape == (P,)
    assert len(calls) == 1
    assert fa.fit(s.X[:100], s.Y[:100]).factor_std_.shape == (100, 10)
    assert len(calls) == 2
