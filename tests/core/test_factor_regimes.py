"""Regimes of a factor model hold for the factors that features alone give; supervision, files and failed fits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.closed_form.heldout import all_rows
from covalign.exceptions import NotHeldOutWarning
from covalign.factor import label_free, supervision
from covalign.factor.fitted_rows import Streamed
from covalign.factor.inference import sweeps, updates
from covalign.factor.inference.bound import bound
from covalign.factor.inference.engines import Dense, Gram, Sparse
from covalign.factor.inference.kernel import update_views
from covalign.factor.inference.patterns import Gapped
from covalign.factor.inference.start import start
from tests.conftest import thorough
from tests.core.test_factor_gaps import gapped_problem

P, K, N = 3, 6, 150
LAMS = np.linspace(0, 1, 6)
REGIMES = [{"lam": 0.0}, {"lam": 0.5}, {"lam": 1.0}, {"regime": "exclusive"}]


def data(gaps: str = "", views: int = 2, n: int = N, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Views and covariates; a tenth of the cells of X and a fifth of those of Y are missing where ``gaps`` says so."""
    sizes = {"rna": 20, "protein": 10} if views == 2 else {"rna": 30}
    s = ca.simulate.scenario("PN", n, sizes, n_factors=K, n_covariates=P, random_state=seed)
    rng = np.random.default_rng(seed)
    X = {name: np.where(rng.random(V.shape) < 0.1 * ("X" in gaps), np.nan, V) for name, V in s.X.items()}
    return X, np.where(rng.random(s.Y.shape) < 0.2 * ("Y" in gaps), np.nan, s.Y)


def aligned(z: np.ndarray, Y: np.ndarray) -> list[float]:
    """corr(z_p, y_p) of the samples that have y_p."""
    there = ~np.isnan(Y)
    return [np.corrcoef(z[there[:, p], p], Y[there[:, p], p])[0, 1] for p in range(Y.shape[1])]


CASES = [("", 1, 1.0), ("X", 2, 1.0), ("Y", 1, 5.0), ("XY", 2, 5.0)]
EVERY = [(gaps, views, s) for gaps in ("", "X", "Y", "XY") for views in (1, 2) for s in (1.0, 5.0)]
OTHERS = thorough(*(case for case in EVERY if case not in CASES))


@pytest.fixture(
    scope="module", params=[*CASES, *OTHERS], ids=lambda case: f"gaps in {case[0] or 'nothing'}, {case[1]}, {case[2]}"
)
def fitted(request):
    gaps, views, weight = request.param
    X, Y = data(gaps, views)
    return X, Y, InformedFactorAnalysis(K, supervision=weight, folds=0).fit(X, Y)


# -- what samples get from their features -----------------------------------------------------------------------------


def test_factors_of_features_are_uncoupled_at_0_and_neither_measure_falls_along_lambda(fitted):
    X, Y, fa = fitted
    path = [fa.at(lam) for lam in LAMS]
    placed = [model.transform(X)[:, :P] for model in path]
    alignment, coupling = np.array([aligned(z, Y) for z in placed]), [ca.metrics.coupling(z) for z in placed]
    assert coupling[0] < 1e-9
    assert np.diff(coupling).min() > -1e-9
    assert np.diff(alignment, axis=0).min() > -1e-9
    assert coupling[-1] > 0.1  # there was something to gain
    assert (alignment[-1] > alignment[0] + 0.005).all()
    np.testing.assert_allclose([model.alignment_ for model in path], alignment, atol=1e-9)
    np.testing.assert_allclose([model.coupling_ for model in path], coupling, atol=1e-9)
    frontier = fa.frontier(LAMS).iloc[: len(LAMS)]
    np.testing.assert_allclose(frontier[fa.covariate_names_], alignment, atol=1e-9)
    np.testing.assert_allclose(frontier["coupling"], coupling, atol=1e-9)


@pytest.mark.parametrize("regime", REGIMES, ids=str)
def test_a_regime_moves_factors_and_loadings_and_leaves_their_product(fitted, regime):
    X, Y, fa = fitted
    moved = fa.at(**regime)
    assert moved.T_.shape == (P, K)
    np.testing.assert_allclose(moved.factors_[:, :P], fa.factors_ @ moved.T_.T, atol=1e-9)
    np.testing.assert_allclose(moved.transform(X)[:, :P], fa.transform(X) @ moved.T_.T, atol=1e-9)
    np.testing.assert_allclose(moved.transform(X, Y), moved.factors_, atol=1e-8)
    assert np.abs(moved.factors_ - fa.factors_).max() > 0.1
    for view, before in fa.reconstruct().items():
        np.testing.assert_allclose(moved.reconstruct()[view], before, atol=1e-8)
        product = moved.factors_ @ moved.loadings_[view].T
        np.testing.assert_allclose(product, fa.factors_ @ fa.loadings_[view].T, atol=1e-8)
    np.testing.assert_allclose(moved.total_variance_explained(), fa.total_variance_explained(), atol=1e-8)
    np.testing.assert_array_equal(moved.elbo_, fa.elbo_)
    np.testing.assert_array_equal(moved.at(0.3).factors_, fa.at(0.3).factors_)  # stage 1 is shared


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("n", "k"), [(150, 15), (30, 20), (12, 6)])
def test_superfluous_factors_do_no_harm_in_a_regime(n, k):
    """Features say next to nothing about them (a variance of 1e-20): a map that whitened them would be singular."""
    X, Y = data(n=n)
    fa = InformedFactorAnalysis(k, folds=0, supervision=1.0).fit(X, Y)
    for regime in REGIMES:
        moved = fa.at(**regime)
        assert np.linalg.cond(moved._realigned.R) < 1e3
        assert moved.factor_std_.max() < 5 * fa.factor_std_.max()
        np.testing.assert_allclose(moved.reconstruct()["rna"], fa.reconstruct()["rna"], atol=1e-8)
        np.testing.assert_allclose(moved.transform(X, Y), moved.factors_, atol=1e-8)
    assert fa.at(0).coupling_ < 1e-9


def test_the_rest_is_uncorrelated_with_independent_factors_and_near_the_free_ones(fitted):
    X, _, fa = fitted
    z, before = fa.at(0).transform(X), fa.transform(X)
    assert np.abs(np.corrcoef(z.T)[:P, P:]).max() < 1e-8
    assert min(np.corrcoef(z[:, k], before[:, k])[0, 1] for k in range(P, K)) > 0.8


def test_with_fewer_features_than_covariates_there_is_no_regime_but_all_else():
    X, Y = data(views=1)
    x = X["rna"][:, :2]
    fa = InformedFactorAnalysis(5).fit(x, Y)
    np.testing.assert_allclose(fa.alignment_[:2], aligned(fa.transform(x), Y)[:2], atol=1e-8)
    with pytest.raises(ValueError, match="3 covariates need 3 linearly independent latent dimensions"):
        fa.at(0.5)
    with pytest.warns(NotHeldOutWarning, match="features that distinguish the informed factors"):
        table = fa.summary()
    assert table["in_sample"].iloc[:2].notna().all()
    assert table["held_out"].isna().all()


# -- their moments ----------------------------------------------------------------------------------------------------


def assert_moments_are_those_of_rows(fa: InformedFactorAnalysis, z: np.ndarray, Y: np.ndarray) -> None:
    """Moments from the sums of the fit, against rows: z from X alone, Y in the units of the fit."""
    blocks = fa._table.encoding.blocks
    found = label_free.moments(fa._problem, fa._stage_1, fa.covariate_names_, blocks)
    every = all_rows(found)
    assert every.n == len(z)
    np.testing.assert_allclose(every.mean_z, z.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(every.cov_z, np.cov(z.T, ddof=0), atol=1e-9)
    Y = (Y - fa._table.mean_y) / fa._table.sd_y
    seen: list[int] = []
    for columns, m in found.pairs:
        at = np.arange(P)[columns]
        there = ~np.isnan(Y[:, at]).any(axis=1)
        both = np.cov(np.hstack([z[there], Y[there][:, at]]).T, ddof=0)
        assert m.n == there.sum()
        np.testing.assert_allclose(m.mean_z, z[there].mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(m.mean_y, Y[there][:, at].mean(axis=0), atol=1e-9)
        np.testing.assert_allclose(m.cov_z, both[:K, :K], atol=1e-9)
        np.testing.assert_allclose(m.cov_zy, both[:K, K:], atol=1e-9)
        np.testing.assert_allclose(m.cov_y, both[K:, K:], atol=1e-9)
        seen.extend(at)
    assert sorted(seen) == list(range(P))


def test_moments_are_those_of_rows_placed_without_covariates(fitted):
    X, Y, fa = fitted
    assert_moments_are_those_of_rows(fa, fa.transform(X), Y)


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_moments_of_compressed_rows(weight):
    X, Y = data(n=300)
    X["protein"][:120] = np.nan
    Y[::2, 1] = np.nan
    fa = InformedFactorAnalysis(K, supervision=weight).fit(X, Y)
    assert len(fa._problem.data.X) < 300
    assert_moments_are_those_of_rows(fa, fa.transform(X), Y)


@pytest.mark.parametrize("weight", [1.0, 5.0])
@pytest.mark.parametrize("gaps", ["", "X", "Y"])
def test_moments_of_rows_in_a_file(gaps, weight, tmp_path):
    X, Y = data(gaps, views=1)
    np.save(tmp_path / "x.npy", X["rna"])
    fa = InformedFactorAnalysis(K, supervision=weight, chunk_rows=40).fit(tmp_path / "x.npy", Y)
    assert isinstance(fa._rows, Streamed)
    assert_moments_are_those_of_rows(fa, fa.transform(X["rna"]), Y)


@pytest.mark.parametrize("weight", [1.0, 5.0])
@pytest.mark.parametrize("kind", [Gram, Dense, Sparse])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_moments_of_every_engine(kind, weight):
    X, Y = data(views=1, n=20 if kind is Sparse else N)
    settings = {"engine": "gram" if kind is Gram else "dense", "supervision": weight, "max_iter": 30}
    x = sparse.csr_matrix(X["rna"]) if kind is Sparse else X["rna"]
    fa = InformedFactorAnalysis(K, **settings).fit(x, Y)
    assert isinstance(fa._problem.data, kind)
    assert_moments_are_those_of_rows(fa, fa.transform(X["rna"]), Y)


# -- supervision ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [True, False], ids=["full", "mean_field"])
@pytest.mark.parametrize("cells", [0.0, 0.3])
@pytest.mark.parametrize("of_y", [2.5, 19.0])
def test_with_gaps_updates_of_noise_and_beta_end_where_the_bound_is_flat(full, cells, of_y):
    problem = gapped_problem(full, cells, 0.0, of_y=of_y)
    assert isinstance(problem.data, Gapped)
    state = sweeps.fit(problem, start(problem), True, 5, -1.0).state
    beta = updates.update_beta(state.z, problem.n, problem.p, problem.beta_prior)
    state = state._replace(views=update_views(problem, state.z, state.views), beta=beta)
    gamma, last = np.arctanh(state.beta), len(state.views) - 1
    assert state.views[last].weight == of_y

    def with_noise(view, d, x):
        rate = state.views[view].noise.rate.copy()
        rate[d] *= np.exp(x)
        views = list(state.views)
        views[view] = views[view]._replace(noise=views[view].noise._replace(rate=rate))
        return bound(problem, state._replace(views=tuple(views)))

    def with_beta(p, x):
        return bound(problem, state._replace(beta=np.tanh(gamma + x * np.eye(problem.p)[p])))

    def off(at, e=1e-3):
        """How far the maximum is, by the slope and the curvature."""
        low, here, high = (at(x) for x in (-e, 0.0, e))
        bend = (high - 2 * here + low) / e**2
        assert bend < 0
        return abs((high - low) / (2 * e) / bend)

    for view, d in ((0, 0), (0, 5), (last, 0), (last, 1), (last, 2)):
        assert off(lambda x, view=view, d=d: with_noise(view, d, x)) < 2e-3
    for p in range(problem.p):
        if beta[p] < updates.BETA_MAX:
            assert off(lambda x, p=p: with_beta(p, x)) < 2e-3
        else:  # the end of its range
            assert with_beta(p, -1e-3) < with_beta(p, 0.0)


@pytest.mark.parametrize("posterior", ["full", "mean_field"])
@pytest.mark.parametrize("gaps", [False, True])
def test_with_supervision_the_factor_of_a_faint_covariate_is_found(gaps, posterior):
    """The covariate is seen in X, but other directions of X vary more and take all factors."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 8))
    X = (Z * np.array([0.4, *[1] * 7])) @ rng.standard_normal((8, 40)) + rng.standard_normal((200, 40))
    y = Z[:, :1] + 0.3 * rng.standard_normal((200, 1))
    if gaps:
        X[rng.random(X.shape) < 0.05], y[rng.random(y.shape) < 0.1] = np.nan, np.nan
    found = {}
    for weight in (1.0, 20.0):
        fa = InformedFactorAnalysis(5, posterior, supervision=weight, folds=0, tol=1e-6).fit(X, y)
        assert np.diff(fa.elbo_).min() >= -1e-9 * abs(fa.elbo_[-1])
        assert fa.supervision_ == weight
        assert fa.loadings_["X"].shape == (40, 5)
        assert list(fa.loadings_) == ["X"]  # covariates are no view of the user's
        found[weight] = fa.alignment_.item()
    assert found[20.0] > found[1.0] + 0.1


# -- files and failures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regime", [None, *REGIMES[1:]], ids=str)
def test_a_loaded_model_places_samples_as_the_saved_one(fitted, regime, tmp_path):
    X, Y, fa = fitted
    model = fa if regime is None else fa.at(**regime)
    model.save(tmp_path / "m.covalign")
    loaded = ca.load(tmp_path / "m.covalign")
    for y in (None, Y):
        pairs = zip(loaded.transform(X, y, return_std=True), model.transform(X, y, return_std=True), strict=True)
        for same, saved in pairs:
            np.testing.assert_array_equal(same, saved)
    np.testing.assert_array_equal(loaded.T_, model.T_)
    assert (loaded.supervision_, loaded.regime_) == (model.supervision_, model.regime_)
    np.testing.assert_allclose(loaded.alignment_, model.alignment_, atol=1e-12)
    np.testing.assert_allclose(loaded.at(0.9).transform(X), model.at(0.9).transform(X), atol=1e-12)


def test_a_failed_fit_leaves_the_model_as_it_was(monkeypatch):
    X, Y = data()
    fa = InformedFactorAnalysis(K).fit(X, Y)
    z = fa.transform(X)
    before = dict(vars(fa))
    with pytest.raises(ValueError, match="got 150 and 100"):
        fa.fit(X, Y[:100])
    with pytest.raises(ValueError, match="constant in column"):
        fa.fit(X, np.ones(N))

    def fails(*args):
        raise RuntimeError("in the middle of a fit")

    monkeypatch.setattr(supervision, "is_lost", fails)  # after the sweeps
    with pytest.raises(RuntimeError, match="in the middle"):
        fa.fit({name: V[:100] for name, V in X.items()}, Y[:100])
    assert vars(fa).keys() == before.keys()
    assert all(vars(fa)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(fa.transform(X), z)
    assert fa.n_rows_ == N


def test_regimes_of_few_samples_are_not_shrunk_like_covariances(monkeypatch):
    """Factors are posterior means: shrinking them again as covariances of raw columns would lose alignment."""
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Z, W = rng.normal(size=(450, 8)), rng.normal(size=(8, 200)) * np.geomspace(3, 0.3, 8)[:, None]
        X, Y = Z @ W + rng.normal(size=(450, 200)), Z[:, [1, 4, 7]] + 0.5 * rng.normal(size=(450, 3))
        fa = InformedFactorAnalysis(8, folds=0, supervision=4.0, max_iter=60, tol=1e-6).fit(X[:50], Y[:50])
        ours = fa.at(0.5).score(X[50:], Y[50:])
        with monkeypatch.context() as patch:
            patch.setattr(label_free, "shrinkage", label_free.analytic_shrinkage)
            fa._placing.clear()
            gains.append(ours - fa.at(0.5).score(X[50:], Y[50:]))
    assert min(gains) > 0.01


def test_shrinkage_vanishes_with_the_number_of_samples():
    rng = np.random.default_rng(0)
    for n in (20, 200, 2000):
        m = ca.Moments.from_arrays(rng.normal(size=(n, 5)), rng.normal(size=(n, 1)))
        assert 0 < label_free.shrinkage(m) <= 5 / (n + 5)
