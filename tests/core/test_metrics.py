"""Metrics as statements: hand-computed cases, laws for all inputs, and what the theory says of the regimes."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.testing import assert_allclose
from scipy.stats import entropy
from sklearn.linear_model import LassoCV, LinearRegression

from covalign.closed_form import metrics, regimes, simulate
from covalign.moments.moments import Moments
from tests.conftest import thorough

A, B, C = np.array(list(product([1.0, -1.0], repeat=3))).T  # three columns, exactly uncorrelated, of unit variance
AB = np.column_stack([A, B])


def correlated(n=200, k=4, p=3, seed=0):
    """Z (n x k) and Y (n x p) that share a signal."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, k)) @ rng.standard_normal((k, k))
    return Z, Z @ rng.standard_normal((k, p)) + rng.standard_normal((n, p))


def closed_dci(Z, Y):
    return metrics.dci(Moments.from_arrays(Z, Y))


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_covariates_themselves_are_the_perfect_code():
    assert_allclose(closed_dci(AB, AB), (1, 1, 1))
    assert_allclose([metrics.alignment(AB, AB), metrics.sap(AB, AB), metrics.nsap(AB, AB)], 1)
    assert metrics.coupling(AB) == 0
    assert_allclose(metrics.variance_explained(AB, AB), [0.5, 0.5])
    assert_allclose(metrics.total_variance_explained(AB, AB), 1)


def test_alignment_is_signed_and_paired_in_order():
    assert_allclose(metrics.alignment(np.column_stack([A, -B, C]), AB, per_covariate=True), [1, -1])
    swapped = AB[:, ::-1]
    assert metrics.alignment(swapped, AB) == 0
    assert_allclose([*closed_dci(swapped, AB), metrics.sap(swapped, AB), metrics.nsap(swapped, AB)], 1)


def test_duplicated_code_costs_completeness_and_separation_only():
    Z = np.column_stack([A, A, B])
    # Least squares shares y_1 between the twins: H(1/2, 1/2, 0) = log 2 for it, 0 for y_2, equal weights.
    assert_allclose(closed_dci(Z, AB), (1, 1 - np.log(2) / np.log(3) / 2, 1))
    assert_allclose([metrics.sap(Z, AB), metrics.nsap(Z, AB), metrics.coupling(Z)], [0.5, 0.5, 2])


def test_evenly_mixed_code_is_informative_and_entangled():
    Z = np.column_stack([A + B, A - B])
    assert_allclose(closed_dci(Z, AB), (0, 0, 1), atol=1e-12)
    assert_allclose([metrics.sap(Z, AB), metrics.nsap(Z, AB)], 0, atol=1e-12)


def test_unequal_importances_by_hand():
    Z, Y = AB, np.column_stack([A, A + 2 * B])  # R = [[1, 1/sqrt 5], [0, 2/sqrt 5]]
    R = np.array([[1, 1 / np.sqrt(5)], [0, 2 / np.sqrt(5)]])
    D, C_ = (sum(row.sum() * (1 - entropy(row, base=2)) for row in M) / R.sum() for M in (R, R.T))
    assert_allclose(closed_dci(Z, Y), (D, C_, 1))
    assert_allclose(metrics.sap(Z, Y), (1 + 3 / 5) / 2)
    assert_allclose(metrics.nsap(Z, Y), (1 + 3 / 4) / 2)


def test_knowing_nothing_scores_nothing():
    Z = np.column_stack([C, A * B])
    assert closed_dci(Z, AB) == (0, 0, 0)
    assert (metrics.sap(Z, AB), metrics.nsap(Z, AB), metrics.alignment(Z, AB)) == (0, 0, 0)
    assert metrics.variance_explained(AB, Z).tolist() == [0, 0]


def test_one_dimension_or_one_covariate_has_no_one_to_share_with():
    assert_allclose(closed_dci(AB, A + B)[:2], (1, 0), atol=1e-12)  # P = 1: D undefined, C halves evenly
    assert_allclose(closed_dci((A + B)[:, None], AB)[:2], (0, 1), atol=1e-12)  # K = 1: the reverse
    assert_allclose([metrics.sap((A + B)[:, None], A), metrics.nsap((A + B)[:, None], A)], [0.5, 1])


# -- forms agree ------------------------------------------------------------------------------------------------------


def test_arrays_frames_and_moments_agree():
    Z, Y = correlated()
    m = Moments.from_arrays(Z, Y)
    for metric in (metrics.alignment, metrics.sap, metrics.nsap):
        assert metric(Z, Y) == metric(m) == metric(pd.DataFrame(Z), pd.DataFrame(Y))
    assert_allclose(metrics.coupling(Z), metrics.coupling(m))
    assert metrics.match(Z, Y).columns.tolist() == metrics.match(m).columns.tolist()
    assert_allclose(metrics.alignment(m, per_covariate=True), regimes.alignment(np.eye(4)[:3], m))
    assert_allclose(metrics.coupling(m), regimes.coupling(np.eye(4), m))


def test_rows_are_matched_by_name():
    Z, Y = (pd.DataFrame(M, index=[f"row{i}" for i in range(len(M))]) for M in correlated())
    shuffled = Y.sample(frac=1, random_state=0)
    for metric in (metrics.alignment, metrics.sap, metrics.dci, lambda Z, X: metrics.total_variance_explained(X, Z)):
        assert metric(Z, shuffled) == metric(Z, Y)


def test_rows_tend_to_the_population():
    m, s = simulate.population_moments("PN"), simulate.scenario("PN", n_samples=100_000, n_factors=5, n_features=70)
    assert_allclose(metrics.alignment(s.Z, s.Y), metrics.alignment(m), atol=0.01)
    assert_allclose([metrics.sap(s.Z, s.Y), metrics.nsap(s.Z, s.Y)], [metrics.sap(m), metrics.nsap(m)], atol=0.02)
    assert_allclose(closed_dci(s.Z, s.Y), metrics.dci(m), atol=0.02)
    S_zx, S_x = m.cov_z @ s.W.T, s.W @ m.cov_z @ s.W.T + np.diag(s.noise_variance)
    features = Moments.from_covariances(m.cov_z, S_zx, S_x)
    for options in ({}, {"kind": "loadings", "W": s.W}):
        of_rows, of_population = (metrics.variance_explained(*a, **options) for a in ((s.X, s.Z), (features,)))
        assert_allclose(of_rows, of_population, atol=0.01)
    assert_allclose(metrics.total_variance_explained(features), 1 / 1.1)  # noise is a tenth of the signal
    assert_allclose(metrics.total_variance_explained(s.X, s.Z), 1 / 1.1, atol=0.01)


def test_units_and_far_origins_do_not_matter():
    Z, Y = correlated()
    far_Z, far_Y = Z * [1, -2, 1e-3, 50] + 1e6 * np.array([1, 1, 1e-3, 50]), 3 * Y - 1e6
    for metric in (metrics.sap, metrics.nsap, closed_dci, metrics.total_variance_explained):
        assert_allclose(metric(far_Z, far_Y), metric(Z, Y), rtol=1e-7)
    assert_allclose(metrics.coupling(far_Z), metrics.coupling(Z), rtol=1e-7)
    assert_allclose(metrics.variance_explained(far_Y, far_Z), metrics.variance_explained(Y, Z), rtol=1e-7)
    assert_allclose(metrics.variance_explained(far_Y, far_Y, kind="loadings", W=np.eye(3)).sum(), 1, rtol=1e-7)
    signs = [1, -1, 1]
    before, after = metrics.alignment(Z, Y, per_covariate=True), metrics.alignment(far_Z, far_Y, per_covariate=True)
    assert_allclose(after, before * signs, rtol=1e-7)


def test_shares_are_those_of_regression():
    Z, X = correlated(n=60, k=4, p=150, seed=1)  # more features than a block holds
    joint = LinearRegression().fit(Z, X)
    r2 = 1 - np.var(X - joint.predict(Z), axis=0) / np.var(X, axis=0)
    assert_allclose(metrics.total_variance_explained(X, Z), r2.mean())
    alone = [LinearRegression().fit(Z[:, [k]], X).predict(Z[:, [k]]) for k in range(4)]
    marginal = [np.mean(1 - np.var(X - fit, axis=0) / np.var(X, axis=0)) for fit in alone]
    assert_allclose(metrics.variance_explained(X, Z), marginal)
    assert_allclose(metrics.variance_explained(Moments.from_arrays(Z, X)), marginal)


def test_loading_shares_are_those_of_the_residual():
    Z, X = correlated(n=60, k=2, p=5)
    W = np.random.default_rng(2).standard_normal((5, 2))
    Xc, Zc = X - X.mean(0), Z - Z.mean(0)
    direct = [1 - np.sum((Xc - np.outer(Zc[:, k], W[:, k])) ** 2) / np.sum(Xc**2) for k in range(2)]
    assert_allclose(metrics.variance_explained(X + 7, Z - 3, kind="loadings", W=pd.DataFrame(W)), direct)


def test_constants_and_copies_add_nothing():
    Z, X = correlated()
    more_X, more_Z = np.column_stack([X, np.full(200, 0.1)]), np.column_stack([Z, Z @ [1, 1, 0, 0], np.full(200, 0.1)])
    assert_allclose(metrics.total_variance_explained(more_X, more_Z), metrics.total_variance_explained(X, Z))
    assert_allclose(metrics.variance_explained(more_X, more_Z)[:4], metrics.variance_explained(X, Z))
    assert metrics.variance_explained(more_X, more_Z)[5] == metrics.coupling(more_Z[:, [0, 5]]) == 0
    assert metrics.sap(more_Z[:, [5]], X) == 0
    assert 5 not in metrics.match(more_Z, X).columns
    rounding = Moments.from_covariances([[1e-24]], [[1e-12]], [[1]], mean_z=[1e6])
    assert metrics.sap(rounding) == 0


# -- the regimes (DESIGN C12) -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize("name", ["PN", "AR", "P"])
def test_what_each_regime_does_to_the_disentanglement_metrics(name, alpha):
    m = simulate.population_moments(name, alpha=alpha)
    along = [m.transform(regimes.tunable(m, lam)) for lam in np.linspace(0, 1, 21)]
    exclusive = m.transform(regimes.exclusive(m))
    D, C_, informed = np.array([metrics.dci(of) for of in along]).T
    SAP, NSAP = np.array([(metrics.sap(of), metrics.nsap(of)) for of in along]).T
    assert (np.diff(D) > 0).all()
    assert (np.diff(C_) > 0).all()
    assert_allclose([D[-1], C_[-1]], 1, rtol=1e-12)
    assert_allclose([*informed, metrics.dci(exclusive).informativeness], metrics.dci(m).informativeness)
    assert (np.diff(NSAP) < 0).all()
    assert SAP.argmax() <= 10  # lam <= 1/2
    assert_allclose(metrics.nsap(exclusive), 1)
    assert metrics.sap(exclusive) < SAP.min()


def test_strongest_is_not_disentangled_where_M_is_singular():
    """Scenario N at alpha = 1: one dimension is a combination of the others, and D and C stay where they began."""
    m = simulate.population_moments("N")
    at_0, at_1 = (metrics.dci(m.transform(regimes.tunable(m, lam))) for lam in (0, 1))
    assert_allclose(at_0[:2], [0.1635, 0.1635], atol=1e-4)
    assert_allclose(at_1[:2], [0.1650, 0.1510], atol=1e-4)
    assert_allclose(at_1.informativeness, at_0.informativeness)


def test_lasso_dci_of_the_covariates_is_perfect():
    Y = np.random.default_rng(0).standard_normal((60, 2)) + 1e6
    assert_allclose(metrics.dci(pd.DataFrame(Y), Y * [1, 1e-3]), 1, atol=1e-3)


@pytest.mark.parametrize("seed", [0, *thorough(1, 2, 3)])
def test_lasso_paths_agree_with_coordinate_descent(seed):
    from sklearn.model_selection import KFold, cross_val_predict

    from covalign.closed_form.metrics.lasso import importances_and_predictions, paths_are_safe

    s = simulate.scenario("PN", n_samples=150, random_state=seed)
    Z, y = s.Z - s.Z.mean(axis=0), s.Y[:, seed] - s.Y[:, seed].mean()
    folds = KFold(5, shuffle=True, random_state=seed)
    lasso = LassoCV(cv=folds, tol=1e-10, max_iter=100_000)
    assert paths_are_safe(Z)
    coefficients, predictions = importances_and_predictions(Z, y, folds)
    assert_allclose(coefficients, lasso.fit(Z, y).coef_, atol=1e-6)
    assert_allclose(predictions, cross_val_predict(lasso, Z, y, cv=folds), atol=1e-6)


def test_dependent_dimensions_leave_the_paths_to_coordinate_descent():
    from covalign.closed_form.metrics.lasso import paths_are_safe

    s = simulate.scenario("N", n_samples=150, random_state=0)  # covariates that sum to zero
    assert not paths_are_safe(s.Y)
    assert metrics.dci(s.Y, s.Y).informativeness > 0.99


def test_lasso_informativeness_is_held_out():
    rng = np.random.default_rng(8)
    Z, y = rng.standard_normal((60, 50)), rng.standard_normal(60)
    assert LassoCV(max_iter=10_000).fit(Z, y).score(Z, y) > 0.2  # noise, fitted
    assert closed_dci(Z, y).informativeness > 0.7
    assert metrics.dci(Z, y).informativeness < 0.05


def test_lasso_dci_tends_to_the_population():
    m = simulate.population_moments("PN", n_covariates=3)
    s = simulate.scenario("PN", n_samples=5000, n_factors=3, n_features=1, n_covariates=3)
    assert_allclose(metrics.dci(s.Z, s.Y), metrics.dci(m), atol=0.03)


def test_lasso_folds_follow_the_seed():
    Z, Y = correlated(n=50, p=1)
    once, again, other = (metrics.dci(Z, Y, random_state=seed) for seed in (1, 1, 2))
    assert once == again != other


def test_lasso_leaves_constants_out():
    Z = np.column_stack([np.tile(A, 5), np.ones(40)])
    assert_allclose(metrics.dci(Z, np.column_stack([np.tile(A, 5), np.full(40, 0.1)])), [1, 1, 0.5], atol=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_no_matching_correlates_more(seed):
    Z, Y = correlated(n=20, k=5, p=3, seed=seed)
    matched = metrics.match(Z, Y)
    r = metrics.alignment(matched.apply(Z), Y, per_covariate=True)
    every = np.abs(np.corrcoef(Z.T, Y.T)[:5, 5:])
    assert (r >= 0).all()
    assert_allclose(r.sum(), max(sum(every[k, p] for p, k in enumerate(ks)) for ks in permutations(range(5), 3)))


# -- all inputs -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_scores_stay_in_range_for_any_table(data):
    """Small whole numbers make constant, duplicated and dependent columns common."""
    n, k, p = data.draw(st.integers(2, 8)), data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    Z, Y = (data.draw(npst.arrays(float, (n, c), elements=st.integers(-2, 2))) for c in (k, p))
    scores = [*closed_dci(Z, Y), metrics.sap(Z, Y), metrics.nsap(Z, Y), metrics.total_variance_explained(Y, Z)]
    marginal = metrics.variance_explained(Y, Z)
    assert all(0 <= score <= 1 for score in [*scores, *marginal])
    assert metrics.sap(Z, Y) <= metrics.nsap(Z, Y) + 1e-12
    assert marginal.max() <= metrics.total_variance_explained(Y, Z) + 1e-9  # alone no factor beats all
    assert 0 <= metrics.coupling(Z) <= k * (k - 1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: metrics.alignment(AB, np.column_stack([A, B, C])), "3 covariates need at least 3"),
        (lambda: metrics.match(AB, np.column_stack([A, B, C])), "3 covariates need at least 3"),
        (lambda: metrics.alignment(pd.DataFrame({"one": A, "flat": 0 * A}), AB), "constant in column 'flat' of Z"),
        (lambda: metrics.alignment(AB, pd.DataFrame({"age": A, "site": 0 * A})), "constant in column 'site'"),
        (lambda: metrics.alignment(AB), "got Z alone"),
        (lambda: metrics.sap(Moments.from_arrays(AB, AB), AB), "got a Moments and Y"),
        (lambda: metrics.nsap(AB[:1], AB[:1]), "at least 2 rows"),
        (lambda: metrics.coupling(AB * np.nan), "Z needs finite numbers"),
        (lambda: metrics.dci(AB, AB * np.nan), "Y needs finite numbers"),
        (lambda: metrics.dci(AB, AB), "at least 10 rows"),
        (lambda: metrics.variance_explained(np.outer(A, [1] * 70 + [np.nan]), AB), "X needs .* column 70"),
        (lambda: metrics.variance_explained(A[:5], AB), "X and Z need the same number of rows"),
        (lambda: metrics.variance_explained(AB, AB, kind="loadings"), "needs W"),
        (lambda: metrics.variance_explained(AB, AB, W=np.eye(2)), "got W"),
        (lambda: metrics.variance_explained(AB, AB, kind="joint"), "got 'joint'"),
        (lambda: metrics.variance_explained(AB, AB, kind="loadings", W=np.eye(3)), r"shape \(2, 2\)"),
        (lambda: metrics.match(AB, AB).apply(AB[:, :1]), "at least 2 columns, got 1"),
    ],
)
def test_errors_name_what_is_wrong(call, says):
    with pytest.raises(ValueError, match=says):
        call()
