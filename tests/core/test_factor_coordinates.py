"""The paper's coordinate ascent: against loops over samples, features and factors, written from its equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.closed_form import regimes
from covalign.factor.inference import sweeps, updates
from covalign.factor.inference.bound import bound
from covalign.factor.inference.engines import Dense, Gram
from covalign.factor.inference.realignment import model_moments, realign
from covalign.factor.inference.start import start
from covalign.factor.inference.state import Problem, State
from tests.conftest import thorough

N, D, K, P = 30, (4, 3), 4, 2
A0 = B0 = 1e-3


def standardised(A):
    return (A - A.mean(axis=0)) / A.std(axis=0)


def data(seed: int = 0):
    s = ca.simulate.scenario(
        "PN", n_samples=N, n_features=sum(D), n_factors=K, n_covariates=P, noise=0.4, random_state=seed
    )
    return standardised(s.X), standardised(s.Y)


def problem_of(X, Y, gram: bool = False) -> Problem:
    engine = Gram(N, X.T @ X, X.T @ Y, Y.T @ Y) if gram else Dense(X, Y)
    return Problem(engine, N, P, K, (slice(0, D[0]), slice(D[0], sum(D))), full=False, coordinates=True)


def warmed_up(problem: Problem) -> State:
    """A state after some sweeps without covariates."""
    state = start(problem)._replace(beta=np.zeros(P))
    return sweeps.fit(problem, state, False, 5, -np.inf, supervised=False).state


class Slow:
    """The paper's q, one number at a time. Sums of each view are over its own features."""

    def __init__(self, X, Y, state: State) -> None:
        self.X, self.Y, self.T, self.beta = X, Y, np.eye(P), state.beta.copy()
        self.view = [0] * D[0] + [1] * D[1]  # of each feature
        self.z = X @ state.z.of_x + Y @ state.z.of_y
        self.cov = state.z.cov.copy()
        self.w = np.vstack([v.w.mean for v in state.views])
        self.w_var = np.vstack([v.w.variance for v in state.views])
        self.alpha = [v.ard.mean.copy() for v in state.views]
        self.tau = np.concatenate([v.noise.mean for v in state.views])

    def ww(self, d, j, k):
        """<w_dj w_dk>."""
        return self.w[d, j] * self.w[d, k] + (self.w_var[d, k] if j == k else 0.0)

    def zz(self, n, j, k):
        """<z_nj z_nk>."""
        return self.z[n, j] * self.z[n, k] + (self.cov[j, k] if j == k or max(j, k) < P else 0.0)

    def update_beta(self) -> None:
        """The root of N b^3 - (1 + b^2) C + b S; a factor with C < 0 changes its sign."""
        for p in range(P):
            C = sum(self.z[n, p] * self.Y[n, p] for n in range(N))
            if C < 0:
                self.z[:, p] *= -1
                self.w[:, p] *= -1
                self.cov[p, :] *= -1
                self.cov[:, p] *= -1
                C = -C
            S = sum(self.zz(n, p, p) for n in range(N))
            self.beta[p] = optimize.brentq(lambda b, C=C, S=S: N * b**3 - (1 + b * b) * C + b * S, 0, 1, xtol=1e-15)

    def update_loadings(self) -> None:
        for d in range(sum(D)):
            for k in range(K):
                precision = self.alpha[self.view[d]][k] + self.tau[d] * sum(self.zz(n, k, k) for n in range(N))
                of_x = sum(self.z[n, k] * self.X[n, d] for n in range(N))
                others = sum(self.w[d, j] * sum(self.zz(n, j, k) for n in range(N)) for j in range(K) if j != k)
                self.w_var[d, k] = 1 / precision
                self.w[d, k] = self.tau[d] * (of_x - others) / precision

    def update_precisions(self) -> None:
        for v in range(2):
            features = [d for d in range(sum(D)) if self.view[d] == v]
            for k in range(K):
                self.alpha[v][k] = (A0 + len(features) / 2) / (B0 + sum(self.ww(d, k, k) for d in features) / 2)
        for d in range(sum(D)):
            residual = 0.0
            for n in range(N):
                residual += self.X[n, d] ** 2 - 2 * self.X[n, d] * sum(self.z[n, k] * self.w[d, k] for k in range(K))
                residual += sum(self.zz(n, j, k) * self.ww(d, j, k) for j in range(K) for k in range(K))
            self.tau[d] = (A0 + N / 2) / (B0 + residual / 2)

    def update_informed_covariance(self) -> None:
        undo = np.linalg.inv(self.T)
        precision = undo.T @ np.diag(1 / (1 - self.beta**2)) @ undo
        for j in range(P):
            for k in range(P):
                precision[j, k] += sum(self.tau[d] * self.ww(d, j, k) for d in range(sum(D)))
        self.cov[:P, :P] = np.linalg.inv(precision)

    def update_informed_means(self) -> None:
        """Sigma~ [(T')^-1 D (beta y) + sum_d tau_d (x_nd - w_F'z_F) w_I]: corrected, the paper has T^-1 D."""
        for n in range(N):
            r = np.linalg.inv(self.T.T) @ (self.beta * self.Y[n] / (1 - self.beta**2))
            for d in range(sum(D)):
                rest = self.X[n, d] - sum(self.w[d, k] * self.z[n, k] for k in range(P, K))
                r = r + self.tau[d] * rest * self.w[d, :P]
            self.z[n, :P] = self.cov[:P, :P] @ r

    def update_free(self) -> None:
        for k in range(P, K):
            precision = 1 + sum(self.tau[d] * self.ww(d, k, k) for d in range(sum(D)))
            self.cov[k, k] = 1 / precision
            for n in range(N):
                r = 0.0
                for d in range(sum(D)):
                    rest = self.X[n, d] - sum(self.w[d, j] * self.z[n, j] for j in range(K) if j != k)
                    r += self.tau[d] * rest * self.w[d, k]
                self.z[n, k] = r / precision

    def sweep(self) -> None:
        self.update_beta()
        self.update_loadings()
        self.update_precisions()
        self.update_informed_covariance()
        self.update_informed_means()
        self.update_free()

    def begin_stage_2(self, T) -> None:
        self.T = T
        self.z[:, :P] = self.z[:, :P] @ T.T
        self.cov[:P, :P] = T @ self.cov[:P, :P] @ T.T

    def sweep_stage_2(self) -> None:
        self.update_loadings()
        self.update_precisions()
        self.update_informed_covariance()
        self.update_free()


def assert_same(state: State, slow: Slow) -> None:
    near = {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(slow.X @ state.z.of_x + slow.Y @ state.z.of_y, slow.z, **near)
    np.testing.assert_allclose(state.z.cov, slow.cov, **near)
    np.testing.assert_allclose(np.vstack([v.w.mean for v in state.views]), slow.w, **near)
    np.testing.assert_allclose(np.vstack([v.w.variance for v in state.views]), slow.w_var, **near)
    np.testing.assert_allclose([v.ard.mean for v in state.views], slow.alpha, **near)
    np.testing.assert_allclose(np.concatenate([v.noise.mean for v in state.views]), slow.tau, **near)
    np.testing.assert_allclose(state.beta, slow.beta, **near)


def regime_of(state: State, Y, lam: float):
    return regimes.tunable(model_moments(state.beta, Y.T @ Y / N, ["a", "b"]), lam)


@pytest.mark.parametrize("gram", [False, True], ids=["dense", "gram"])
def test_sweeps_are_those_of_the_paper_by_loops(gram):
    X, Y = data()
    problem = problem_of(X, Y, gram)
    state = warmed_up(problem)
    state = updates.arranged(state, np.arange(K), np.array([1.0, -1.0, 1.0, 1.0]))  # a sign to be found
    slow = Slow(X, Y, state)
    for _ in range(3):
        state = sweeps.sweep(problem, state, accelerate=False)
        slow.sweep()
    assert_same(state, slow)


@pytest.mark.parametrize("lam", [0.0, 0.6])
def test_stage_2_is_that_of_the_paper_by_loops(lam):
    X, Y = data()
    problem = problem_of(X, Y)
    state = sweeps.fit(problem, warmed_up(problem), False, 4, -np.inf).state
    T, slow = regime_of(state, Y, lam), Slow(X, Y, state)
    slow.begin_stage_2(T)
    for _ in range(3):
        slow.sweep_stage_2()
    assert_same(realign(problem, state, T, False, 3, -np.inf).state, slow)


@pytest.mark.parametrize("seed", [0, *thorough(1, 2)])
@pytest.mark.parametrize("accelerate", [False, True])
def test_the_bound_never_falls(seed, accelerate):
    X, Y = data(seed)
    problem = problem_of(X, Y)
    first = sweeps.fit(problem, start(problem), accelerate, 40, -np.inf)
    singular = np.array([[0.6, -0.3], [-1.2, 0.6]])
    transformations = [regime_of(first.state, Y, 0.0), regime_of(first.state, Y, 0.9), singular]
    moved = [realign(problem, first.state, T, False, 40, -np.inf).elbo for T in transformations]
    for elbo in (first.elbo, *moved):
        assert np.diff(elbo).min() >= -1e-9 * abs(elbo[-1])
        assert elbo[-1] > elbo[0] + 1e-6  # there was something to gain


def test_stage_2_holds_the_means_and_not_the_covariance():
    X, Y = data()
    problem = problem_of(X, Y)
    first = sweeps.fit(problem, start(problem), False, 30, -np.inf).state
    T = regime_of(first, Y, 0.5)
    moved = realign(problem, first, T, False, 30, -np.inf).state
    np.testing.assert_allclose(moved.z.of_x[:, :P], first.z.of_x[:, :P] @ T.T, atol=1e-14)
    assert np.abs(moved.z.cov[:P, :P] - T @ first.z.cov[:P, :P] @ T.T).max() > 1e-3
    np.testing.assert_array_equal(moved.beta, first.beta)


def test_converged_coordinates_are_the_mean_field():
    """Both climb the same bound: at an optimum of one, the other does not move."""
    X, Y = data()
    problem = problem_of(X, Y)
    blocks = problem._replace(coordinates=False)
    best = sweeps.fit(blocks, start(blocks), True, 500, 1e-13).state
    moved = sweeps.sweep(problem, best, accelerate=False)
    assert bound(problem, moved) == pytest.approx(bound(blocks, best), abs=1e-5)
    assert bound(problem, moved) >= bound(blocks, best) - 1e-9


def test_missing_values_need_other_updates():
    s = ca.simulate.scenario("PN", n_samples=60)
    X, Y = s.X.copy(), s.Y.copy()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"needs data without missing values, got X with .* posterior='mean_field'"):
        InformedFactorAnalysis.paper(6).fit(X, s.Y)
    Y[5, 0] = np.nan
    with pytest.raises(ValueError, match="got y with missing values"):
        InformedFactorAnalysis.paper(6).fit(s.X, Y)
    assert InformedFactorAnalysis.paper(6, posterior="mean_field", max_iter=2, tol=1).fit(X, Y).n_iter_ == 2


def test_the_warm_up_has_all_its_sweeps_and_turns_nothing(monkeypatch):
    s = ca.simulate.scenario("PN", n_samples=100, n_features=20)
    seen = []
    whole = sweeps.fit

    def watched(problem, state, *args, **settings):
        fit = whole(problem, state, *args, **settings)
        seen.append((state, fit))
        return fit

    monkeypatch.setattr(sweeps, "fit", watched)
    InformedFactorAnalysis.paper(6, max_iter=5, tol=1.0).fit(s.X, s.Y)
    (_, warm_up), (begun, _) = seen
    assert len(warm_up.elbo) == 250
    assert begun is warm_up.state


def test_a_loaded_model_goes_on_as_the_paper(tmp_path):
    s = ca.simulate.scenario("PN", n_samples=100, n_features=20)
    fa = InformedFactorAnalysis.paper(6, pretrain_iter=10, tol=1e-5).fit(s.X, s.Y)
    fa.save(tmp_path / "model.covalign")
    loaded = ca.load(tmp_path / "model.covalign")
    np.testing.assert_array_equal(loaded.at(lam=0.5).factors_, fa.at(lam=0.5).factors_)
    joint = InformedFactorAnalysis.paper(6, pretrain_iter=10, tol=1e-5, posterior="mean_field").fit(s.X, s.Y)
    assert np.abs(joint.at(lam=0.5).factors_ - fa.at(lam=0.5).factors_).max() > 1e-6
