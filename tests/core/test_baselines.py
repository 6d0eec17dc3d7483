"""The methods compared with: each against its definition, and all through their common face."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist, squareform
from sklearn import decomposition
from sklearn.cross_decomposition import PLSRegression

import covalign as ca
from covalign.closed_form import metrics
from covalign.study.baselines import IFA, Aligned, ivae, linear
from covalign.study.baselines.ivae import IVAE
from covalign.study.baselines.linear import PCA, PLS, BairSPCA, BarshanSPCA, YAsFactors
from covalign.study.baselines.linear_decoder import posterior_means
from covalign.study.baselines.method import run, standardised, standardised_views
from tests import fits

LINEAR = [PCA(), PLS(), YAsFactors(), BairSPCA(), BarshanSPCA(), BarshanSPCA(kernel="linear")]
by_name = pytest.mark.parametrize("method", LINEAR, ids=lambda method: method.name)


def draw(n=200, d=12, p=3, seed=0):
    """Standardised X (n x d) that depends on standardised Y (n x p)."""
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((n, p))
    X = Y @ rng.standard_normal((p, d)) + rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) / 2
    return standardised(X), standardised(Y)


def classes(n=150, levels=3, seed=0):
    """Standardised dummies of all levels: their rank is levels - 1."""
    return standardised(np.eye(levels)[np.random.default_rng(seed).permutation(n) % levels])


def fit(method, X, Y, k, seed=0):
    fitted = method.fit({"X": X}, Y, k, seed, 100)
    return fitted.factors, fitted.loadings["X"]


def same_up_to_sign(A, B, **tolerance):
    np.testing.assert_allclose(A * np.sign((A * B).sum(axis=0)), B, **{"atol": 1e-8, **tolerance})


def projector(U):
    return U @ np.linalg.pinv(U)


# -- what linear methods share ----------------------------------------------------------------------------------------


@by_name
@pytest.mark.parametrize("shape", [(200, 12, 3), (60, 300, 4), (40, 10, 1)])
def test_there_are_K_factors_that_reconstruct_X_no_better_than_PCA_and_better_than_nothing(method, shape):
    X, Y = draw(*shape)
    k = 5
    F, W = fit(method, X, Y, k)
    assert F.shape == (len(X), k)
    assert W.shape == (X.shape[1], k)
    pca_F, pca_W = fit(PCA(), X, Y, k)
    assert np.linalg.norm(X - pca_F @ pca_W.T) <= np.linalg.norm(X - F @ W.T) * (1 + 1e-12)
    assert np.linalg.norm(X - F @ W.T) < np.linalg.norm(X)


@by_name
def test_all_dimensions_of_X_together_leave_nothing_out(method):
    X, Y = draw(d=6)
    F, W = fit(method, X, Y, 6 + 3 * method.paired)
    if isinstance(method, BairSPCA):
        dropped = ~W.any(axis=1)
        np.testing.assert_allclose(F @ W.T, X * ~dropped, atol=1e-10)
    else:
        np.testing.assert_allclose(F @ W.T, X, atol=1e-10)


@by_name
def test_where_X_has_fewer_dimensions_there_are_fewer_factors_but_one_for_each_covariate(method):
    X, Y = draw(n=50, d=2, p=3)
    doubled = np.hstack([X, X])  # four features of rank two
    F, W = fit(method, doubled, Y, 8)
    assert 3 <= F.shape[1] <= 5
    assert F.shape[1] == W.shape[1]
    assert np.isfinite(F).all()
    assert np.isfinite(W).all()
    assert metrics.match(F, Y).columns.shape == (3,)


@by_name
def test_few_rows_and_many_features(method):
    X, Y = draw(n=8, d=40, p=2)
    F, W = fit(method, X, Y, 20)
    assert F.shape[1] <= 7 + 2 * method.paired  # centred rows have rank n - 1
    assert np.isfinite(F).all()
    assert np.isfinite(W).all()


@by_name
def test_X_without_variation_gives_zeros_and_not_nan(method):
    _, Y = draw(n=30)
    F, W = fit(method, np.zeros((30, 5)), Y, 4)
    assert F.shape[1] >= 3
    assert np.isfinite(F).all()
    assert not W.any()


@by_name
def test_dummies_of_all_levels_are_no_obstacle(method):
    X, Y = draw(n=150, d=20)[0], classes()
    F, _ = fit(method, X, Y, 8)
    assert F.shape == (150, 8)
    assert (F.std(axis=0) > 1e-6).all()


@by_name
def test_the_same_seed_gives_the_same_factors(method):
    X, Y = draw()
    np.testing.assert_array_equal(fit(method, X, Y, 5)[0], fit(method, X, Y, 5)[0])


# -- PCA and PLS ------------------------------------------------------------------------------------------------------


def test_pca_is_scikit_learns():
    X, Y = draw()
    theirs = decomposition.PCA(5, svd_solver="full").fit(X)
    F, W = fit(PCA(), X, Y, 5)
    same_up_to_sign(F, theirs.transform(X))
    same_up_to_sign(W, theirs.components_.T)


def test_pls_is_scikit_learns_also_beyond_the_number_of_covariates():
    X, Y = draw(p=2)
    theirs = PLSRegression(6, scale=False).fit(X, Y)
    F, W = fit(PLS(), X, Y, 6)
    np.testing.assert_array_equal(F, theirs.x_scores_)
    np.testing.assert_array_equal(W, theirs.x_loadings_)


def test_the_first_pls_direction_has_the_largest_covariance_with_a_covariate_combination():
    X, Y = draw()
    F, _ = fit(PLS(), X, Y, 1)
    U, _, _ = np.linalg.svd(X.T @ Y)
    assert abs(np.corrcoef(F[:, 0], X @ U[:, 0])[0, 1]) > 1 - 1e-5  # scikit-learn stops its power method there


def test_pls_is_filled_up_with_principal_components_once_Y_is_explained():
    """Orthogonal features of equal variance: one component explains a single covariate, and the others are free."""
    X = np.linalg.qr(draw(n=50, d=6)[0])[0] * np.sqrt(50)
    Y = X[:, :1]
    F, _ = fit(PLS(), X, Y, 4)
    assert F.shape == (50, 4)
    np.testing.assert_allclose(np.abs(Y.T @ F / 50), [[1, 0, 0, 0]], atol=1e-10)
    np.testing.assert_allclose(F.T @ F / 50, np.eye(4), atol=1e-10)


# -- Y as factors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("collinear", [False, True])
def test_y_as_factors_are_the_covariates_then_components_uncorrelated_with_them(collinear):
    X, Y = draw(n=150)[0], classes() if collinear else draw(n=150)[1]
    F, W = fit(YAsFactors(), X, Y, 7)
    np.testing.assert_array_equal(F[:, :3], Y)
    np.testing.assert_allclose(Y.T @ F[:, 3:], 0, atol=1e-9)
    np.testing.assert_allclose(Y @ W[:, :3].T, projector(Y) @ X, atol=1e-9)
    same_up_to_sign(F[:, 3:], decomposition.PCA(4).fit_transform(X - projector(Y) @ X))


def test_as_many_factors_as_covariates_leave_no_room_for_components():
    X, Y = draw()
    np.testing.assert_array_equal(fit(YAsFactors(), X, Y, 3)[0], Y)


# -- Bair -------------------------------------------------------------------------------------------------------------


def test_bair_keeps_the_planted_features_and_no_others():
    rng = np.random.default_rng(0)
    Y = standardised(rng.standard_normal((300, 2)))
    planted = rng.permutation(20) < 10
    X = rng.standard_normal((300, 20))
    X[:, planted] += Y @ rng.choice([-2.0, 2.0], (2, 10))
    X = standardised(X)
    F, W = fit(BairSPCA(), X, Y, 4)
    np.testing.assert_array_equal(W.any(axis=1), planted)
    same_up_to_sign(F, decomposition.PCA(4).fit_transform(X[:, planted]))


def test_bair_with_quantile_0_is_pca_and_with_1_is_the_best_feature():
    X, Y = draw()
    same_up_to_sign(fit(BairSPCA(0), X, Y, 4)[0], fit(PCA(), X, Y, 4)[0])
    best = np.abs(np.corrcoef(X.T, Y.T)[:12, 12:]).max(axis=1).argmax()
    same_up_to_sign(fit(BairSPCA(1), X, Y, 4)[0][:, :1], X[:, [best]])


@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_bair_keeps_the_share_above_the_quantile_and_nothing_dropped_is_stronger(seed, quantile):
    X, Y = draw(n=30, seed=seed)
    kept, strength = linear.screened(X, Y, quantile), np.abs(X.T @ Y).max(axis=1)
    assert abs(12 - quantile * 11 - kept.sum()) <= 1
    assert strength[kept].min() >= strength[~kept].max(initial=0)


# -- Barshan ----------------------------------------------------------------------------------------------------------


def directly(X, Y, k):
    """Eigenvectors of X'HLHX with every matrix written out."""
    n = len(X)
    distance = pdist(Y)
    L = np.exp(-(squareform(distance) ** 2) / (2 * np.median(distance) ** 2))
    H = np.eye(n) - 1 / n
    return np.linalg.eigh(X.T @ H @ L @ H @ X)[1][:, ::-1][:, :k]


@pytest.mark.parametrize("shape", [(200, 12, 3), (60, 150, 3), (60, 60, 5)])
def test_barshan_is_the_eigenproblem_written_out(shape):
    X, Y = draw(*shape)
    F, U = fit(BarshanSPCA(), X, Y, 5)
    same_up_to_sign(U, directly(X, Y, 5), atol=1e-7)
    np.testing.assert_allclose(F, X @ U, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 7, 50, 1000])
def test_blocks_of_rows_give_the_dense_product(rows):
    X, Y = draw()
    L = linear.rbf(Y, Y, 1.3)
    np.testing.assert_allclose(linear.kernel_scatter(X, Y, 1.3, rows), X.T @ L @ X, rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("shape", [(90, 12, 3), (60, 150, 3)])
def test_with_and_without_a_kernel_matrix_in_memory_the_directions_are_the_same(shape):
    X, Y = draw(*shape)
    few = linear.hsic_directions(X, Y, 1.3, 5, seed=0, most=20)  # at most 400 entries at once
    same_up_to_sign(few, linear.hsic_directions(X, Y, 1.3, 5, seed=0), atol=1e-7)


def test_large_n_never_holds_a_kernel_matrix(monkeypatch):
    sizes, rbf = [], linear.rbf
    monkeypatch.setattr(linear, "rbf", lambda A, B, s: sizes.append(len(A) * len(B)) or rbf(A, B, s))
    X, Y = draw(n=4500, d=5)
    fit(BarshanSPCA(), X, Y, 3)
    assert max(sizes) <= linear.DENSE**2 < 4500**2 == sum(sizes)


def test_the_linear_kernel_has_a_closed_form():
    X, Y = draw()
    _, U = fit(BarshanSPCA(kernel="linear"), X, Y, 5)
    C = X.T @ Y
    same_up_to_sign(U[:, :3], np.linalg.eigh(C @ C.T)[1][:, ::-1][:, :3])
    np.testing.assert_allclose(C.T @ U[:, 3:], 0, atol=1e-9)  # the rest says nothing about Y
    np.testing.assert_allclose(U.T @ U, np.eye(5), atol=1e-10)


@given(st.integers(0, 2**32 - 1))
def test_no_orthonormal_directions_have_a_larger_hsic(seed):
    X, Y = draw(n=40, d=6, p=2, seed=seed)
    _, U = fit(BarshanSPCA(), X, Y, 3)
    M = linear.kernel_scatter(X, Y, linear.median_distance(Y, 0), 40)
    other = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 3)))[0]
    assert np.trace(other.T @ M @ other) <= np.trace(U.T @ M @ U) * (1 + 1e-9)


def test_categories_are_worked_on_by_level():
    X, Y = draw(n=150)[0], classes()
    sums, distinct = linear.merged_rows(X, Y)
    assert sums.shape == (3, 12)
    np.testing.assert_allclose(sums.sum(axis=0), 0, atol=1e-10)
    s = linear.median_distance(Y, 0)
    np.testing.assert_allclose(
        linear.kernel_scatter(sums, distinct, s, 3), linear.kernel_scatter(X, Y, s, 150), atol=1e-8
    )
    _, U = fit(BarshanSPCA(), X, Y, 6)
    np.testing.assert_allclose(projector(U[:, :2]), projector(directly(X, Y, 2)), atol=1e-8)  # rank 2; more is PCA
    same_up_to_sign(U[:, 2:], fit(PCA(), X - X @ U[:, :2] @ U[:, :2].T, Y, 4)[1])


def test_the_bandwidth_is_the_median_distance_and_a_sample_of_pairs_comes_close(monkeypatch):
    _, Y = draw(n=500)
    exact = linear.median_distance(Y, 0)
    assert exact == np.median(pdist(Y))
    monkeypatch.setattr(linear, "DENSE", 100)
    sampled = linear.median_distance(Y, 0)
    assert sampled != exact
    assert sampled == pytest.approx(exact, rel=0.01)
    assert sampled == linear.median_distance(Y, 0) != linear.median_distance(Y, 1)


def test_a_rare_category_still_has_a_bandwidth():
    Y = standardised(np.repeat([0.0, 1.0], [90, 10])[:, None])
    assert linear.median_distance(Y, 0) == pytest.approx(np.ptp(Y))
    assert linear.median_distance(np.zeros((10, 2)), 0) == 1


# -- iVAE -------------------------------------------------------------------------------------------------------------


def nonstationary(seed, segments=20, per_segment=100, sources=3, features=10):
    """Sources with a mean and variance of their own in each segment, seen through a random invertible network.

    After the simulations of Khemakhem et al. (2020); the segment, one-hot, is the covariate.
    """
    rng = np.random.default_rng(seed)
    segment = np.repeat(np.arange(segments), per_segment)
    mean, sd = rng.uniform(-5, 5, (segments, sources)), rng.uniform(0.5, 3, (segments, sources))
    S = mean[segment] + sd[segment] * rng.standard_normal((len(segment), sources))
    first, second = (np.linalg.qr(rng.standard_normal((features, features)))[0] for _ in range(2))
    hidden = S / S.std(axis=0) @ first[:sources]
    X = np.where(hidden > 0, hidden, 0.2 * hidden) @ second
    return S, standardised(X), standardised(np.eye(segments)[segment])


def mean_correlation(F, S):
    """MCC: the mean |corr| of factors and sources under the best one-to-one matching."""
    C = np.abs(np.corrcoef(F.T, S.T)[: F.shape[1], F.shape[1] :])
    return C[linear_sum_assignment(C, maximize=True)].mean()


@pytest.fixture(scope="module")
def small():
    s = ca.simulate.scenario("PN", n_samples=150, n_features=12, n_factors=4, n_covariates=2, random_state=0)
    views, Y = standardised_views(s.X, s.Y)
    return views, Y


def test_the_bound_rises(small):
    pytest.importorskip("torch")
    fitted = IVAE().fit(*small, 4, 0, 40)
    assert fitted.curve.shape == (40,)
    assert fitted.curve[-10:].mean() > fitted.curve[:10].mean() + 1
    assert np.isfinite(fitted.factors).all()


def test_the_same_seed_gives_the_same_model_and_the_callers_random_state_is_untouched(small):
    torch = pytest.importorskip("torch")
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002  what must not change
    first = IVAE().fit(*small, 4, 7, 5)
    torch.testing.assert_close(torch.get_rng_state(), before, rtol=0, atol=0)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002
    torch.rand(3)
    again = IVAE().fit(*small, 4, 7, 5)
    np.testing.assert_array_equal(first.factors, again.factors)
    np.testing.assert_array_equal(first.curve, again.curve)
    assert not np.array_equal(first.factors, IVAE().fit(*small, 4, 8, 5).factors)


def test_the_divergence_and_likelihood_are_pytorchs():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    g, log_r, m, log_s = torch.randn(4, 7, 3, generator=generator)
    normal = torch.distributions.Normal
    theirs = torch.distributions.kl_divergence(normal(g, (log_r / 2).exp()), normal(m, (log_s / 2).exp())).sum()
    torch.testing.assert_close(ivae.kl(g, log_r, m, log_s), theirs)
    v = log_r[0].exp()
    torch.testing.assert_close(ivae.loglik(g, m, v), normal(m, v.sqrt()).log_prob(g).sum())


def test_ivae_has_the_sizes_of_the_paper():
    torch = pytest.importorskip("torch")
    model = ivae.initial(100, 5, 10, torch.Generator().manual_seed(0))
    shapes = {name: [tuple(layer.weight.shape) for layer in getattr(model, name)[::2]] for name in model._fields[:3]}
    assert shapes == {
        "encoder": [(64, 105), (64, 64), (20, 64)],
        "prior": [(64, 5), (64, 64), (20, 64)],
        "decoder": [(64, 10), (64, 64), (100, 64)],
    }
    assert all(layer.negative_slope == 0.1 for layer in model.encoder[1::2])


def test_ivae_without_pytorch_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(ivae.util, "find_spec", lambda name: None)
    assert IVAE().absent() == "it needs PyTorch: pip install 'covalign[torch]'"
    with pytest.raises(ValueError, match=r"iVAE cannot run here: .*covalign\[torch\]"):
        run(IVAE(), np.eye(5), np.arange(5), 1)


# -- through the common face ------------------------------------------------------------------------------------------

PAIRED = {"Y as factors"}
EVERY = [*LINEAR, IVAE()]
every = pytest.mark.parametrize("method", EVERY, ids=lambda method: method.name)


def available(method):
    if method.absent():
        pytest.skip(method.absent())
    return method


@every
def test_run_gives_what_is_needed_to_compare(method):
    s = ca.simulate.scenario("AR", n_samples=80, n_features={"rna": 9, "protein": 6}, n_covariates=3, random_state=0)
    result = run(available(method), s.X, s.Y, n_factors=5, budget=3)
    assert result.method == method.name
    assert result.paired == (method.name in PAIRED)
    assert result.factors.shape == (80, 5)
    assert result.informed.shape == (80, 3)
    assert (metrics.alignment(result.informed, s.Y, per_covariate=True) >= 0).all()
    assert result.seconds > 0
    assert {"python", "torch" if method.name == "iVAE" else "scikit-learn"} <= set(result.versions)
    if method.name == "iVAE":
        assert result.loadings is None
        assert result.curve.shape == (3,)
    else:
        assert {view: W.shape for view, W in result.loadings.items()} == {"rna": (9, 5), "protein": (6, 5)}
        assert result.curve is None


@every
def test_rows_are_matched_by_name(method):
    s = ca.simulate.scenario("AR", n_samples=60, n_features=8, n_covariates=2, random_state=0)
    names = [f"sample{i}" for i in range(60)]
    X, Y = pd.DataFrame(s.X, index=names), pd.DataFrame(s.Y, index=names, columns=["age", "dose"])
    plain = run(available(method), s.X, s.Y, 3, budget=2)
    shuffled = run(method, X, Y.sample(frac=1, random_state=1), 3, budget=2)
    np.testing.assert_allclose(plain.informed, shuffled.informed, rtol=1e-4, atol=1e-6)  # iVAE has single precision


@every
def test_categories_become_dummies(method):
    s = ca.simulate.scenario("AR", n_samples=60, n_features=8, n_covariates=2, random_state=0)
    subtype = pd.DataFrame({"subtype": np.resize(["Basal", "Her2", "LumA"], 60)})
    result = run(available(method), s.X, subtype, 4, budget=2)
    assert result.factors.shape == (60, 4)
    assert result.informed.shape == (60, 2)  # Basal is the reference level


@every
def test_bad_input_is_refused_with_a_reason(method):
    X, Y = draw(n=20, d=6, p=2)
    available(method)
    with pytest.raises(ValueError, match="2 covariates need at least 2 factors, got n_factors = 1"):
        run(method, X, Y, 1)
    with pytest.raises(ValueError, match="same number of rows"):
        run(method, X[:-1], Y, 3)
    with pytest.raises(ValueError, match="X needs finite numbers, got NaN"):
        run(method, np.where(np.arange(6) == 2, np.nan, X), Y, 3)
    with pytest.raises(ValueError, match="at least one view"):
        run(method, {}, Y, 3)


def test_settings_are_checked_and_named():
    with pytest.raises(ValueError, match=r"quantile needs a number in \[0, 1\], got 1.5"):
        BairSPCA(1.5)
    with pytest.raises(ValueError, match="kernel needs one of rbf, linear, got 'delta'"):
        BarshanSPCA("delta")
    assert [m.name for m in EVERY] == [
        "PCA",
        "PLS",
        "Y as factors",
        "SPCA (Bair)",
        "SPCA (Barshan)",
        "SPCA (Barshan, linear)",
        "iVAE",
    ]
    assert BairSPCA(0.9).name == "SPCA (Bair, q=0.9)"


# -- placing new samples ----------------------------------------------------------------------------------------------

PLACING = [*(method for method in LINEAR if method.name != "Y as factors"), IFA(), IFA(lam=0.5), IFA(exclusive=True)]
PLACING += [Aligned(0.0), Aligned(1.0), Aligned(0.5, components=False)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # any fit will do
@pytest.mark.parametrize("method", PLACING, ids=lambda method: method.name)
@pytest.mark.parametrize("shape", [(120, 12, 3), (50, 80, 2)])
def test_fitted_samples_are_placed_where_they_are(method, shape, monkeypatch):
    fits.fix_supervision(monkeypatch)
    X, Y = draw(*shape)
    X = 3 * X + 7  # in units of its own
    result = run(method, {"a": X[:, :5], "b": X[:, 5:]}, Y, n_factors=6, budget=100)
    placed = result.place({"b": X[:, 5:], "a": X[:, :5]})
    if isinstance(method, IFA):  # which has forgotten the covariates, so that factors shrink: never the other way
        strength = metrics.alignment(placed, Y, per_covariate=True)
        assert (strength < metrics.alignment(result.informed, Y, per_covariate=True) + 1e-9).all()
        assert (strength > 0.3).all()
    else:
        np.testing.assert_allclose(placed, result.informed, atol=1e-7)


def test_methods_that_need_the_covariates_of_a_sample_do_not_place_it_without():
    X, Y = draw()
    assert run(YAsFactors(), X, Y, 5).place is None


def test_iFA_and_the_aligner_place_as_their_own_transform_does(monkeypatch):
    fits.fix_supervision(monkeypatch)
    X, Y = draw()
    fa = ca.InformedFactorAnalysis(6, max_iter=2000, random_state=0).fit(X[:150], Y[:150]).realign(0.5)
    placed = run(IFA(0.5), X[:150], Y[:150], 6).place(X[150:])
    expected = fa.transform(standardised_by(X[:150], X[150:]))[:, :3]
    assert np.diag(np.corrcoef(placed.T, expected.T)[:3, 3:]) == pytest.approx(1, abs=1e-3)
    aligner = ca.LatentAligner(lam=1).fit(standardised(X[:150]), standardised(Y[:150]))
    expected = aligner.transform(standardised_by(X[:150], X[150:]))
    np.testing.assert_allclose(run(Aligned(1, components=False), X[:150], Y[:150], 6).place(X[150:]), expected)


def standardised_by(fitted, new):
    return (new - fitted.mean(axis=0)) / fitted.std(axis=0)


def test_posterior_means_of_a_decoder_are_those_of_the_joint_normal():
    rng = np.random.default_rng(0)
    Z, W = rng.standard_normal((300, 3)) @ np.diag([1, 2, 0]) + 1, rng.standard_normal((7, 3))
    X = standardised(Z @ W.T + rng.standard_normal((300, 7)))
    new = rng.standard_normal((4, 7))
    C, noise = np.cov(Z.T, bias=True), np.diag(np.var(X - Z @ W.T, axis=0))
    expected = Z.mean(axis=0) + new @ np.linalg.solve(W @ C @ W.T + noise, W @ C)
    views, parts, news = ({"a": A[..., :4], "b": A[..., 4:]} for A in (X, W.T, new))
    parts = {name: part.T for name, part in parts.items()}
    np.testing.assert_allclose(posterior_means(views, Z, parts, news), expected, atol=1e-10)
    mix = rng.standard_normal((3, 3))  # z -> mix z, W -> W mix^-1: the same model
    turned = {name: part @ np.linalg.inv(mix) for name, part in parts.items()}
    np.testing.assert_allclose(posterior_means(views, Z @ mix.T, turned, news), expected @ mix.T, atol=1e-8)
