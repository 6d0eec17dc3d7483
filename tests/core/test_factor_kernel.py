"""The kernel of informed factor analysis: the bound, its maximisers, the rotation, and what must never happen."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, stats
from scipy.linalg import block_diag, hadamard

import covalign as ca
from covalign.factor.inference import complete, rotation, start, updates
from covalign.factor.inference import engines as statistics
from covalign.factor.inference import state as q
from covalign.factor.inference import sweeps as fitting
from covalign.factor.inference.bound import bound
from covalign.factor.inference.complete import kl_factors
from covalign.factor.inference.updates import expected_loglik, kl_loadings
from tests.conftest import thorough

full_or_not = pytest.mark.parametrize("full", [True, False], ids=["full", "mean_field"])
one_or_two_views = pytest.mark.parametrize("views", [1, 2], ids=["one view", "two views"])
paper_or_more = pytest.mark.parametrize(
    "more", [{}, {"beta_prior": 4.0, "of_y": 2.5}], ids=["paper", "prior of beta, supervised"]
)


# -- makers -----------------------------------------------------------------------------------------------------------


def standardised(A: np.ndarray) -> np.ndarray:
    A = A - A.mean(axis=0)
    scale = A.std(axis=0)
    return A / np.where(scale > 1e-12, scale, 1.0)


def problem_of(
    X, Y, k: int, full: bool, views: int = 1, dense: bool = False, beta_prior: float = 0.0, of_y: float = 0.0
) -> q.Problem:
    X, Y = standardised(X), standardised(Y)
    data = statistics.Dense(X, Y) if dense else statistics.Gram(len(X), X.T @ X, X.T @ Y, Y.T @ Y)
    edges = np.linspace(0, X.shape[1], views + 1).astype(int)
    bounds = tuple(slice(*ends) for ends in pairwise(edges))
    return q.Problem(data, len(X), Y.shape[1], k, bounds, full, beta_prior).supervised(of_y)


def simulated(
    full: bool, views: int = 1, seed: int = 0, n=60, d=12, k=4, p=2, dense=True, name="PN", **more
) -> q.Problem:
    s = ca.simulate.scenario(name, n_samples=n, n_features=d, n_factors=k, n_covariates=p, random_state=seed)
    return problem_of(s.X, s.Y, k, full, views, dense, **more)


def swept(problem: q.Problem, sweeps: int = 3, accelerate: bool = False) -> q.State:
    state = start.start(problem)
    for _ in range(sweeps):
        state = fitting.sweep(problem, state, accelerate)
    return state


def perturbed(problem: q.Problem, state: q.State, seed: int = 0, size: float = 0.2) -> q.State:
    """Every parameter moved within its family, each by ``size`` times a direction that the seed decides."""
    rng, p, k, z = np.random.default_rng(seed), problem.p, problem.k, state.z

    def near(A):
        return A + size * np.sqrt(np.mean(A**2)) * rng.standard_normal(A.shape)

    def about(A):
        return A * np.exp(size * rng.standard_normal(np.shape(A)))

    def turn():
        return np.eye(k) + size * rng.standard_normal((k, k))

    def gamma(g):
        return q.Gamma(about(g.shape), about(g.rate))

    A = turn()
    if not problem.full:
        A = block_diag(A[:p, :p], np.diag(np.diag(A)[p:]))
    views = []
    for w, ard, noise, weight in state.views:
        V = turn() @ w.V if problem.full else w.V
        views.append(q.View(q.Loadings(near(w.mean), V, about(w.scale)), gamma(ard), gamma(noise), weight))
    of_x, of_y, beta = near(z.of_x), near(z.of_y), np.tanh(np.arctanh(state.beta) + size * rng.standard_normal(p))
    return q.State(q.Factors(of_x, of_y, A @ z.cov @ A.T, *problem.data.sums(of_x, of_y)), tuple(views), np.abs(beta))


def means(problem: q.Problem, z: q.Factors) -> np.ndarray:
    return problem.data.X @ z.of_x + problem.data.Y @ z.of_y


def covariances(w: q.Loadings) -> list[np.ndarray]:
    return [w.V @ np.diag(scale) @ w.V.T for scale in w.scale]


def frozen(g: q.Gamma):
    return stats.gamma(g.shape, scale=1 / g.rate)


PRIOR = stats.gamma(q.SHAPE_0, scale=1 / q.RATE_0)


# -- the bound is what its name says ----------------------------------------------------------------------------------


def log_ratios(problem: q.Problem, state: q.State, draws: int, seed: int) -> np.ndarray:
    """log p(X, Z, W, alpha, tau, beta | Y) - log q at draws from q, written from the model, not from the code."""
    rng = np.random.default_rng(seed)
    X, Y, p = problem.data.X, problem.data.Y, problem.p
    noise_z = rng.multivariate_normal(np.zeros(problem.k), state.z.cov, (draws, problem.n))
    Z = means(problem, state.z) + noise_z
    out = -stats.multivariate_normal(cov=state.z.cov).logpdf(noise_z).sum(axis=1)
    out += stats.norm(state.beta * Y, np.sqrt(1 - state.beta**2)).logpdf(Z[..., :p]).sum(axis=(1, 2))
    out += stats.norm.logpdf(Z[..., p:]).sum(axis=(1, 2))
    out += problem.beta_prior * np.log(1 - state.beta**2).sum()
    for (w, ard, noise, weight), where in zip(state.views, problem.bounds, strict=True):
        alpha = frozen(ard).rvs((draws, problem.k), random_state=rng)
        tau = frozen(noise).rvs((draws, len(w.mean)), random_state=rng)
        out += (PRIOR.logpdf(alpha) - frozen(ard).logpdf(alpha)).sum(axis=1)
        out += (PRIOR.logpdf(tau) - frozen(noise).logpdf(tau)).sum(axis=1)
        for d, C in enumerate(covariances(w)):
            W_d = rng.multivariate_normal(w.mean[d], C, draws)
            out += stats.norm.logpdf(W_d, scale=alpha**-0.5).sum(axis=1)
            out -= stats.multivariate_normal(w.mean[d], C).logpdf(W_d)
            fit = np.einsum("snk,sk->sn", Z, W_d)
            out += weight * stats.norm.logpdf(X[:, where][:, d], fit, tau[:, d, None] ** -0.5).sum(axis=1)
    return out


@full_or_not
@one_or_two_views
@paper_or_more
@pytest.mark.parametrize("away", [True, *thorough(False)], ids=["perturbed", "swept"])
def test_bound_is_the_expected_log_ratio(full, views, away, more):
    problem = simulated(full, views, n=20, d=6, k=3, **more)
    state = perturbed(problem, swept(problem)) if away else swept(problem)
    ratios = log_ratios(problem, state, draws=20_000, seed=1)
    error = ratios.std() / np.sqrt(len(ratios))
    assert error < 0.3
    assert abs(ratios.mean() - bound(problem, state)) < 4.5 * error


@pytest.mark.parametrize(("shape", "rate"), [(0.501, 0.2), (6.001, 3.0), (250.001, 40.0)])
def test_gamma_kl_is_its_integral(shape, rate):
    g = frozen(q.Gamma(shape, np.array(rate)))

    def integrand(u):  # a = exp(u): smooth where the density has a pole at 0
        a = np.exp(u)
        return a * g.pdf(a) * (g.logpdf(a) - PRIOR.logpdf(a))

    low, high = np.log(g.ppf(1e-13)), np.log(g.isf(1e-13))
    value, _ = integrate.quad(integrand, low, high, limit=200)
    assert q.Gamma(shape, np.array([rate, rate])).kl() == pytest.approx(2 * value, rel=1e-6)


def gaussian_kl(mean, cov, prior_mean, prior_variance) -> float:
    """KL(N(mean, cov) || N(prior_mean, diag(prior_variance)))."""
    terms = (np.diag(cov) + (mean - prior_mean) ** 2) / prior_variance - 1 + np.log(prior_variance)
    return (terms.sum() - np.log(np.linalg.det(cov))) / 2


@full_or_not
def test_kl_of_factors_and_loadings_row_by_row(full):
    problem = simulated(full, 2)
    state = perturbed(problem, swept(problem))
    prior_mean = np.zeros((problem.n, problem.k))
    prior_mean[:, : problem.p] = problem.data.Y * state.beta
    variance = np.append(1 - state.beta**2, np.ones(problem.k - problem.p))
    rows = zip(means(problem, state.z), prior_mean, strict=True)
    expected = sum(gaussian_kl(mean, state.z.cov, prior, variance) for mean, prior in rows)
    assert kl_factors(problem, state) == pytest.approx(expected, rel=1e-9)
    for w, ard, *_ in state.views:
        # E_alpha KL: linear in alpha and log alpha, so the KL at E[alpha] and a correction for E[log alpha]
        logs = [stats.gamma(ard.shape, scale=1 / rate).expect(np.log) for rate in ard.rate]
        gap = np.sum(np.log(frozen(ard).mean()) - logs)
        rows = zip(w.mean, covariances(w), strict=True)
        expected = sum(gaussian_kl(mean, C, 0, 1 / frozen(ard).mean()) + gap / 2 for mean, C in rows)
        assert kl_loadings(w, ard) == pytest.approx(expected, rel=1e-7)


@full_or_not
def test_loadings_moments_feature_by_feature(full):
    problem = simulated(full)
    w = perturbed(problem, swept(problem)).views[0].w
    rng = np.random.default_rng(0)
    weights, B = rng.uniform(0.1, 2, len(w.mean)), rng.standard_normal((6, problem.k))
    S = B.T @ B
    seconds = [np.outer(m, m) + C for m, C in zip(w.mean, covariances(w), strict=True)]
    np.testing.assert_allclose(w.variance, [np.diag(C) for C in covariances(w)], rtol=1e-10)
    np.testing.assert_allclose(w.quadratic(S), [np.trace(S @ M) for M in seconds], rtol=1e-10)
    np.testing.assert_allclose(w.second_moment_diagonal, np.diag(sum(seconds)), rtol=1e-10)
    weighted = sum(t * M for t, M in zip(weights, seconds, strict=True))
    np.testing.assert_allclose(w.weighted_second_moment(weights), weighted, rtol=1e-10, atol=1e-12)
    assert w.log_det == pytest.approx(sum(np.log(np.linalg.det(C)) for C in covariances(w)), rel=1e-10)


# -- every update maximises the bound over its own factor -------------------------------------------------------------


def all_updated(problem: q.Problem, s: q.State) -> q.State:
    """Each update made from s alone, as if it were the only one."""
    S, views = s.z.second_moment(problem.n), []
    for (w, ard, noise, c), where in zip(s.views, problem.bounds, strict=True):
        residuals = updates.expected_residuals(problem.data.xx[where], s.z.xz[where], S, w)
        new_w = updates.update_loadings(S, s.z.xz[where], ard, c * noise.mean, problem.full)
        views.append(q.View(new_w, updates.update_ard(w), updates.update_noise(c * problem.n, c * residuals), c))
    beta = updates.update_beta(s.z, problem.n, problem.p, problem.beta_prior)
    return q.State(complete.update_factors(problem, s.views, s.beta), tuple(views), beta)


def with_one(s: q.State, name: str, other: q.State) -> q.State:
    """s, but one of its factors as in another state."""
    if name in q.State._fields:
        return s._replace(**{name: getattr(other, name)})
    views = zip(s.views, other.views, strict=True)
    return s._replace(views=tuple(mine._replace(**{name: getattr(new, name)}) for mine, new in views))


@full_or_not
@one_or_two_views
@paper_or_more
@pytest.mark.parametrize("name", ["z", "w", "ard", "noise", "beta"])
def test_every_update_is_a_maximum_of_the_bound(name, full, views, more):
    problem = simulated(full, views, **more)
    state = updates.point_at_covariates(perturbed(problem, swept(problem)), problem.p)
    new, eps = all_updated(problem, state), 1e-3
    here = bound(problem, with_one(state, name, new))
    assert here > bound(problem, state)
    for seed in range(5):
        low, high = (bound(problem, with_one(state, name, perturbed(problem, new, seed, e))) for e in (-eps, eps))
        assert here > max(low, high)
        assert abs(high - low) < 0.005 * (2 * here - high - low)  # a slope of zero: only the curvature is left


# -- beta -------------------------------------------------------------------------------------------------------------


def one_factor(c: float, s: float) -> q.Factors:
    nothing = np.zeros((1, 1))
    return q.Factors(nothing, nothing, nothing, np.array([[s]]), nothing, np.array([[c]]))


def assert_best_beta(n: int, c: float, s: float, kappa: float) -> None:
    """No other beta is better: not on a grid, nor where a generic optimiser ends near the best of the grid."""
    (beta,) = updates.update_beta(one_factor(c, s), n, 1, kappa)
    assert 0 <= beta < 1
    step = 1 / 2000
    grid = np.arange(0, 1, step)
    values = updates.beta_bound(grid, n, c, s, kappa)
    best = grid[values.argmax()]
    ends = (max(best - step, 0.0), min(best + step, updates.BETA_MAX))
    near = optimize.minimize_scalar(
        lambda b: -updates.beta_bound(b, n, c, s, kappa), bounds=ends, method="bounded", options={"xatol": 1e-12}
    )
    found = updates.beta_bound(np.array([beta]), n, c, s, kappa)[0]
    assert found >= max(values.max(), -near.fun) - 1e-9 * (n + s)


@given(
    st.integers(2, 5000), st.floats(0.01, 100), st.floats(-1, 1), st.booleans(), st.sampled_from([0.0, 0.5, 4.0, 40.0])
)
def test_beta_is_the_best_on_a_grid_and_near_it(n, scale, correlation, tie, kappa):
    s = float(n) if tie else n * scale
    c = correlation * np.sqrt(n * s)  # Cauchy-Schwarz, as sum y^2 = n
    if c <= 0:
        assert updates.update_beta(one_factor(c, s), n, 1, kappa) == 0
    else:
        assert_best_beta(n, c, s, kappa)


@pytest.mark.parametrize("kappa", [3.999999999, 4.0, 4.000000001, 5.0])
@pytest.mark.parametrize("correlation", [0.01, 0.5, 0.99, 1.0])
def test_beta_of_as_few_samples_as_the_prior_counts(kappa, correlation):
    """With N = 2 kappa the cubic is a quadratic."""
    assert_best_beta(8, correlation * 8, 8.0, kappa)
    assert_best_beta(8, correlation * np.sqrt(8 * 3.0), 3.0, kappa)


def test_a_stronger_prior_of_beta_never_says_more():
    found = [updates.update_beta(one_factor(12.0, 40.0), 40, 1, kappa)[0] for kappa in (0.0, 1.0, 4.0, 20.0, 1e4)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.2 > 0.01 > found[-1]


@full_or_not
@one_or_two_views
def test_pointing_at_covariates_never_lowers_the_bound(full, views):
    problem = simulated(full, views)
    state = perturbed(problem, swept(problem))
    turn = np.diag([-1.0, 1.0, -1.0, 1.0])  # factor 0 turned away from its covariate; factor 2 is free
    away = updates.transformed(state, turn, full)
    pointed = updates.point_at_covariates(away, problem.p)
    assert np.diag(away.z.zy)[0] < 0
    assert np.all(np.diag(pointed.z.zy) >= 0)
    for new, old in zip(pointed.z[3:], problem.data.sums(pointed.z.of_x, pointed.z.of_y), strict=True):
        np.testing.assert_allclose(new, old, atol=1e-9)
    assert bound(problem, pointed) > bound(problem, away)
    unlinked = [bound(problem, s._replace(beta=np.zeros(problem.p))) for s in (pointed, away)]
    assert unlinked[0] == pytest.approx(unlinked[1], rel=1e-12)
    assert updates.point_at_covariates(pointed, problem.p) is pointed


# -- the paper's own sweeps -------------------------------------------------------------------------------------------


def paper_sweeps(problem: q.Problem, state: q.State, sweeps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Section Inference of the paper with T = I, one coordinate after another; E[Z], E[W], beta and the last change."""
    X, Y, n, p, k = problem.data.X, problem.data.Y, problem.n, problem.p, problem.k
    (w, ard, noise, _), D = state.views[0], X.shape[1]
    Z, W, beta, cov = means(problem, state.z), w.mean.copy(), state.beta.copy(), state.z.cov.copy()
    variance, alpha, tau, change = w.scale.copy(), ard.mean, noise.mean, np.inf
    for _ in range(sweeps):
        before = Z.copy()
        for b in range(p):
            C, S = Z[:, b] @ Y[:, b], Z[:, b] @ Z[:, b] + n * cov[b, b]
            beta[b] = optimize.brentq(lambda x, C=C, S=S: n * x**3 - (1 + x**2) * C + x * S, 0, 1, xtol=1e-14)
        ZZ, ZX = Z.T @ Z + n * cov, Z.T @ X
        for j in range(k):
            variance[:, j] = 1 / (alpha[j] + tau * ZZ[j, j])
            W[:, j] = variance[:, j] * tau * (ZX[j] - W @ ZZ[j] + W[:, j] * ZZ[j, j])
        alpha = (q.SHAPE_0 + D / 2) / (q.RATE_0 + np.sum(W**2 + variance, axis=0) / 2)
        for d in range(D):
            error = X[:, d] @ X[:, d] - 2 * W[d] @ ZX[:, d] + W[d] @ ZZ @ W[d] + variance[d] @ np.diag(ZZ)
            tau[d] = (q.SHAPE_0 + n / 2) / (q.RATE_0 + error / 2)
        WW = (W.T * tau) @ W + np.diag(tau @ variance)
        cov[:p, :p] = np.linalg.inv(np.diag(1 / (1 - beta**2)) + WW[:p, :p])
        pull = (X - Z[:, p:] @ W[:, p:].T) * tau @ W[:, :p] + Y * beta / (1 - beta**2)
        Z[:, :p] = pull @ cov[:p, :p]
        for j in range(p, k):
            cov[j, j] = 1 / (1 + WW[j, j])
            rest = X - Z @ W.T + np.outer(Z[:, j], W[:, j])
            Z[:, j] = cov[j, j] * (rest * tau) @ W[:, j]
        change = np.abs(Z - before).max()
    return Z, W, beta, change


# -- rotation ---------------------------------------------------------------------------------------------------------


def landscape_of(
    full: bool, views: int, seed: int = 0, **more
) -> tuple[q.Problem, q.State, rotation.Landscape, np.ndarray]:
    problem = simulated(full, views, seed, **more)
    state = swept(problem, 1)
    return problem, state, rotation.Landscape.of(problem, state), np.arctanh(state.beta)


def central(f, x: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """Derivatives by central differences, one row for each entry of x."""
    return np.array([(f(x + e) - f(x - e)) / (2 * eps) for e in eps * np.eye(len(x))])


def rotation_gradient(landscape: rotation.Landscape, R: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """L's derivatives at any R, flat, from those at the origin moved there: L(R + H) is the moved L at I + H R^-1."""
    by_R, by_gamma = landscape.moved(R).gradient(gamma)
    return np.append((by_R @ np.linalg.inv(R).T).ravel(), by_gamma)


@full_or_not
@one_or_two_views
@paper_or_more
def test_gradient_and_curvature_are_derivatives(full, views, more):
    _, _, landscape, gamma = landscape_of(full, views, **more)
    k, p = len(landscape.S), len(gamma)

    def value(x):
        return landscape.value(rotation.cayley(x[: k * k].reshape(k, k)), x[k * k :])

    def by_R(x):
        return rotation_gradient(landscape, x[: k * k].reshape(k, k), x[k * k :])

    away = np.append(np.eye(k).ravel(), gamma) + 0.15 * np.random.default_rng(0).standard_normal(k * k + p)
    expected = central(lambda x: landscape.value(x[: k * k].reshape(k, k), x[k * k :]), away)
    np.testing.assert_allclose(by_R(away), expected, atol=1e-6 * np.abs(expected).max())

    curvature = landscape.curvature(gamma, landscape.gradient(gamma)[0])
    ends = np.split(np.eye(k * k + p), [k * k], axis=1)
    products = [curvature.times(E.reshape(k, k), delta) for E, delta in zip(*ends, strict=True)]
    H = np.array([np.append(E.ravel(), delta) for E, delta in products])
    origin = np.append(np.zeros(k * k), gamma)
    expected = -central(lambda x: central(value, x, 2e-4), origin, 2e-4)
    np.testing.assert_allclose(H, expected, atol=1e-4 * np.abs(H).max())

    i, j = np.indices((k, k)).reshape(2, -1)
    for some in (i >= 0, (i < p) | (j < p)):
        here = np.append(some, np.full(p, True))
        np.testing.assert_allclose(
            curvature.matrix(i[some], j[some]), H[np.ix_(here, here)], atol=1e-12 * np.abs(H).max()
        )

    own, other = curvature.pairs()
    H = H[: k * k, : k * k].reshape(k, k, k, k)
    off = ~np.eye(k, dtype=bool)
    np.testing.assert_allclose(own[off], np.einsum("ijij->ij", H)[off], rtol=1e-9)
    np.testing.assert_allclose(other[off], np.einsum("ijji->ij", H)[off], rtol=1e-9)
    np.testing.assert_allclose(np.diag(own + other), np.einsum("iiii->i", H), rtol=1e-9)


@full_or_not
@one_or_two_views
@pytest.mark.parametrize("seed", range(3))
def test_no_generic_optimiser_climbs_higher_than_ascend(full, views, seed, monkeypatch):
    monkeypatch.setattr(rotation, "ENOUGH", 1e-12)  # to the top, not to where the next sweep would take over
    _, _, landscape, gamma = landscape_of(full, views, seed)
    k = len(landscape.S)

    def loss(x):
        R, gamma = x[: k * k].reshape(k, k), x[k * k :]
        value = landscape.value(R, gamma)
        return (1e10, np.zeros_like(x)) if np.isinf(value) else (-value, -rotation_gradient(landscape, R, gamma))

    origin = np.append(np.eye(k).ravel(), gamma)
    R = np.eye(k)
    for _ in range(10):
        step, gamma = rotation.ascend(landscape.moved(R), gamma)
        R = step @ R
    reached = np.append(R.ravel(), gamma)
    options = {"maxiter": 20_000, "maxfun": 50_000, "gtol": 1e-9, "ftol": 1e-15}
    generic = [optimize.minimize(loss, x, jac=True, method="L-BFGS-B", options=options).fun for x in (reached, origin)]
    assert loss(reached)[0] < loss(origin)[0] - 0.1
    assert loss(reached)[0] < generic[0] + 1e-4
    assert loss(reached)[0] < generic[1] + 1.0  # L has several maxima: from the same origin both may find the better
    assert np.abs(rotation_gradient(landscape, R, gamma)).max() < 1e-4


@full_or_not
@one_or_two_views
@paper_or_more
def test_rotation_raises_the_bound_by_what_L_promises(full, views, more):
    problem, state, landscape, gamma = landscape_of(full, views, **more)
    R, new = rotation.ascend(landscape, gamma)
    promised = landscape.value(R, new) - landscape.value(np.eye(problem.k), gamma)
    gained = bound(problem, rotation.rotate(problem, state)) - bound(problem, state)
    assert promised > 0.1
    assert gained == pytest.approx(promised, abs=1e-6)


@one_or_two_views
def test_X_does_not_see_a_transformation(views):
    problem = simulated(True, views)
    state = swept(problem)
    R = np.eye(problem.k) + 0.3 * np.random.default_rng(0).standard_normal((problem.k, problem.k))
    moved = updates.transformed(state, R, full=True)

    def likelihood(s):
        S, terms = s.z.second_moment(problem.n), []
        for (w, _, noise, _), where in zip(s.views, problem.bounds, strict=True):
            residuals = updates.expected_residuals(problem.data.xx[where], s.z.xz[where], S, w)
            terms.append(expected_loglik(problem.n, residuals, noise))
        return sum(terms)

    assert likelihood(moved) == pytest.approx(likelihood(state), rel=1e-10)
    assert likelihood(state._replace(z=moved.z)) < likelihood(state) - 1  # the loadings' half is needed


# -- whole fits -------------------------------------------------------------------------------------------------------


def assert_never_falls(problem: q.Problem, accelerate: bool, sweeps: int = 15) -> None:
    state = start.start(problem)
    values = [bound(problem, state)]
    for _ in range(sweeps):
        state = fitting.sweep(problem, state, accelerate)
        values.append(bound(problem, state))
    assert np.isfinite(values).all()
    assert np.all(np.diff(values) >= -1e-9 * np.abs(values[1:])), np.diff(values).min()
    assert np.all((state.beta >= 0) & (state.beta < 1))


@given(st.data())
def test_bound_never_falls(data):
    p = data.draw(st.integers(1, 3), label="p")
    k = p + data.draw(st.integers(0, 4), label="k - p")
    n, d = data.draw(st.integers(5, 80), label="n"), data.draw(st.integers(1, 15), label="d")
    views = data.draw(st.integers(1, min(d, 2)), label="views")
    full, dense, accelerate = (data.draw(st.booleans(), label=name) for name in ("full", "dense", "accelerate"))
    more = {"beta_prior": data.draw(st.sampled_from([0.0, 4.0])), "of_y": data.draw(st.sampled_from([0.0, 2.5, 19.0]))}
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    Y = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    X = (Y @ rng.standard_normal((p, d)) + rng.standard_normal((n, d))) @ rng.standard_normal((d, d))
    assert_never_falls(problem_of(X, Y, k, full, views, dense, **more), accelerate)


def awkward() -> dict[str, tuple[np.ndarray, np.ndarray, int]]:
    rng = np.random.default_rng(0)
    Y, H = rng.standard_normal((40, 2)), hadamard(32)
    X = np.hstack([Y[:, :1] + rng.standard_normal((40, 3)), rng.standard_normal((40, 5))])
    return {
        "more factors than features": (X[:, :3], Y, 6),
        "every factor informed": (X, Y, 2),
        "one factor, one covariate": (X, Y[:, :1], 1),
        "one feature": (X[:, :1], Y, 3),
        "five samples": (X[:5], Y[:5], 3),
        "heavy tails": (np.clip(rng.standard_cauchy((40, 8)), -1e3, 1e3), Y, 4),
        "constant features": (np.hstack([X, np.full((40, 2), 7.0)]), Y, 4),
        "duplicated features": (np.hstack([X, X]), Y, 4),
        "features of rank two": (X[:, :2] @ rng.standard_normal((2, 8)), Y, 4),
        "a covariate among the features": (X, X[:, 5:7], 4),
        "the same covariate twice": (X, Y[:, [0, 0]], 4),
        "a balanced design": (H[:, [1, 1, 2, 2, 3, 3]], H[:, 8:9], 3),  # X'Y is 0 to the last bit
    }


AWKWARD = awkward()


@full_or_not
@pytest.mark.parametrize("accelerate", [True, *thorough(False)], ids=["accelerated", "plain"])
@pytest.mark.parametrize("kind", AWKWARD)
def test_bound_never_falls_on_awkward_data(kind, full, accelerate):
    X, Y, k = AWKWARD[kind]
    assert_never_falls(problem_of(X, Y, k, full), accelerate, sweeps=20)


@full_or_not
@paper_or_more
@pytest.mark.parametrize("size", [(60, 12), (15, 40)], ids=["n > d", "n < d"])
def test_gram_and_dense_agree(full, size, more):
    n, d = size
    dense, gram = (simulated(full, 2, n=n, d=d, dense=dense, **more) for dense in (True, False))
    fits = [fitting.fit(p, start.start(p), accelerate=True, max_iter=10, tol=-1.0) for p in (dense, gram)]
    np.testing.assert_allclose(fits[0].elbo, fits[1].elbo, rtol=1e-9)
    np.testing.assert_allclose(means(dense, fits[0].state.z), means(dense, fits[1].state.z), atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_full_posterior_is_never_worse_than_mean_field(seed):
    mean_field, full = simulated(False, seed=seed), simulated(True, seed=seed)
    lower = fitting.fit(mean_field, start.start(mean_field), accelerate=True, max_iter=300, tol=1e-9)
    upper = fitting.fit(full, start.start(full), accelerate=True, max_iter=300, tol=1e-9)
    onwards = fitting.fit(
        full, lower.state, accelerate=True, max_iter=300, tol=1e-9
    )  # a mean field is a full posterior
    assert bound(full, lower.state) == pytest.approx(lower.elbo[-1], rel=1e-12)
    assert min(upper.elbo[-1], onwards.elbo[-1]) > lower.elbo[-1]


def test_plain_sweeps_crawl_where_the_rotation_leaps():
    problem = simulated(True, n=500, d=100, k=10, p=5, dense=False)
    begin = start.start(problem)
    fast = fitting.fit(problem, begin, accelerate=True, max_iter=60, tol=1e-8)
    plain = fitting.fit(problem, begin, accelerate=False, max_iter=300, tol=-1.0)
    assert fast.converged
    assert fast.elbo[min(14, len(fast.elbo) - 1)] > fast.elbo[-1] - 1
    assert plain.elbo[-1] < fast.elbo[-1] - 1
