"""The largest alignment within a coupling budget: optimal, certified, equal to T_0 and T_1 at its ends."""

import warnings

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy.optimize import minimize

import covalign as ca
from covalign._core.linalg import unit_rows
from covalign.closed_form import budget, regimes
from covalign.closed_form.budget import Budget
from covalign.closed_form.optimum import largest_alignment
from covalign.factor import label_free

WEIGHTS = (2.0, 0.5, 0.5, 1.0)


def matrix(p, seed, rank=None):
    """M of P covariates with multiple correlations below 1; the last P - rank are negatives of the first."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p + 3, p)) @ (np.eye(p) + 0.4 * rng.standard_normal((p, p)))
    A *= rng.uniform(0.2, 0.95, p) / np.linalg.norm(A, axis=0)
    if rank is not None:
        A[:, rank:] = -A[:, :1]
    _, d, Vt = np.linalg.svd(A, full_matrices=False)
    return (Vt.T * d) @ Vt


def coupling(F):
    return regimes.squared_distance_from_identity(F @ F.T)


def strongest(M):
    return regimes.mixed(M, 1.0)


def total(F, M, w=None):
    return float(np.einsum("p,pq,qp->", np.ones(len(M)) if w is None else np.array(w), F, M))


matrices = st.builds(matrix, st.integers(2, 7), st.integers(0, 10**6))


@given(M=matrices, share=st.floats(0.001, 0.999))
def test_the_optimum_is_certified_and_within_its_budget(M, share):
    c = share * coupling(strongest(M))
    best = largest_alignment(M, Budget(c))
    np.testing.assert_allclose(np.linalg.norm(best.mixing, axis=1), 1, atol=1e-12)
    assert best.coupling == pytest.approx(coupling(best.mixing), abs=1e-12)
    assert best.coupling <= c * (1 + 1e-10)
    assert best.coupling == pytest.approx(c, rel=1e-4)  # all of the budget is used
    assert 0 <= best.gap <= 1e-8
    np.testing.assert_allclose(best.alignment, np.diag(best.mixing @ M), atol=1e-13)


@given(M=matrices, lam=st.floats(0, 1))
def test_tunable_is_never_above_it(M, lam):
    F = regimes.mixed(M, lam)
    assert largest_alignment(M, Budget(coupling(F))).alignment.mean() >= total(F, M) / len(M) - 1e-11


@given(M=matrices, seed=st.integers(0, 1000), share=st.floats(0.01, 0.9))
def test_no_random_map_beats_the_bound(M, seed, share):
    c, rng = share * coupling(strongest(M)), np.random.default_rng(seed)
    best = largest_alignment(M, Budget(c))
    for spread in (0.01, 0.1, 1.0):
        F = unit_rows(best.mixing + spread * rng.standard_normal(M.shape))
        if coupling(F) <= c:
            assert total(F, M) / len(M) <= best.alignment.mean() + best.gap + 1e-12


@pytest.mark.parametrize("case", ["plain", "weights", "uncoupled", "both", "singular"])
def test_no_general_optimiser_beats_it(case):
    M = matrix(4, 5, rank=3 if case == "singular" else None)
    w = WEIGHTS if case in ("weights", "both") else None
    pairs = ((0, 1), (2, 3)) if case in ("uncoupled", "both") else ()
    c = 0.4 * coupling(strongest(M))
    best = largest_alignment(M, Budget(c, w, pairs))
    weights = np.ones(4) if w is None else np.array(w)
    WM = (weights[:, None] * M).ravel()

    def correlations(f):
        F = f.reshape(4, 4)
        return F @ F.T

    constraints = [
        {"type": "eq", "fun": lambda f: np.diag(correlations(f)) - 1},
        {"type": "ineq", "fun": lambda f: c - regimes.squared_distance_from_identity(correlations(f))},
        *({"type": "eq", "fun": lambda f, a=a, b=b: correlations(f)[a, b]} for a, b in pairs),
    ]
    found = []
    for seed in range(6):
        start = unit_rows(np.eye(4) + np.random.default_rng(seed).standard_normal((4, 4))).ravel()
        run = minimize(
            lambda f: -WM @ f,
            start,
            jac=lambda _: -WM,
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 500},
        )
        if run.success:
            found.append(-run.fun)
    reached = total(best.mixing, M, w)
    assert max(found) == pytest.approx(reached, abs=1e-5)  # so the optimiser finds it, too
    assert max(found) <= reached + 4 * best.gap + 1e-5
    for a, b in pairs:
        assert abs(best.mixing[a] @ best.mixing[b]) < 1e-12


@pytest.mark.parametrize("p", [1, 2, 5, 12])
def test_ends_are_independent_and_strongest(p):
    M = matrix(p, p)
    np.testing.assert_allclose(largest_alignment(M, Budget(0.0)).mixing, np.eye(p), atol=1e-12)
    for c in (coupling(strongest(M)), 1e9, np.inf):
        best = largest_alignment(M, Budget(c))
        np.testing.assert_allclose(best.mixing, strongest(M), atol=1e-12)
        assert best.gap < 1e-14
    near = largest_alignment(M, Budget(coupling(strongest(M)) * (1 - 1e-9)))
    np.testing.assert_allclose(near.mixing, strongest(M), atol=1e-3)


def test_alignment_rises_with_the_budget_and_is_concave_in_its_root():
    M = matrix(6, 1)
    roots = np.linspace(0, np.sqrt(coupling(strongest(M))), 15)
    means = np.array([largest_alignment(M, Budget(root**2)).alignment.mean() for root in roots])
    assert (np.diff(means) > 0).all()
    assert (np.diff(means, 2) < 1e-9).all()  # the ball of radius sqrt(c) is convex jointly in C and sqrt(c)


def test_two_covariates_have_a_closed_form():
    """C has one free entry r, and g^2 = tr(MCM) + 2 det(M) sqrt(1 - r^2)."""
    M = matrix(2, 3)
    r = np.sign((M @ M)[0, 1]) * 0.3
    C = np.array([[1, r], [r, 1]])
    want = np.sqrt(np.trace(M @ C @ M) + 2 * np.linalg.det(M) * np.sqrt(1 - r**2))
    assert largest_alignment(M, Budget(2 * r**2)).alignment.sum() == pytest.approx(want, abs=1e-10)


@given(seed=st.integers(0, 10**6), share=st.floats(0.05, 0.9))
def test_the_order_of_covariates_does_not_matter(seed, share):
    M, order = matrix(5, seed), np.random.default_rng(seed).permutation(5)
    c, w = share * coupling(strongest(M)), np.array([*WEIGHTS, 1.0])
    one = largest_alignment(M, Budget(c, tuple(w), ((0, 3),)))
    where = np.argsort(order)
    pair = tuple(sorted((int(where[0]), int(where[3]))))
    other = largest_alignment(M[np.ix_(order, order)], Budget(c, tuple(w[order]), (pair,)))
    np.testing.assert_allclose(other.mixing, one.mixing[np.ix_(order, order)], atol=1e-4)
    assert total(other.mixing, M[np.ix_(order, order)], w[order]) == pytest.approx(total(one.mixing, M, w), abs=1e-8)


def test_a_weight_raises_the_alignment_of_its_covariate():
    M = matrix(5, 2)
    c = 0.3 * coupling(strongest(M))
    for p in range(5):
        means = [
            largest_alignment(M, Budget(c, tuple(np.where(np.arange(5) == p, w, 1.0)))).alignment[p] for w in (1, 2, 5)
        ]
        assert means[0] < means[1] < means[2] <= np.linalg.norm(M[p]) + 1e-9


@pytest.mark.parametrize("pairs", [((0, 1),), ((0, 1), (1, 2), (3, 4)), tuple((0, q) for q in range(1, 5))])
@pytest.mark.parametrize("c", [0.2, 1.0, np.inf])
def test_uncoupled_pairs_are_uncorrelated(pairs, c):
    M = matrix(5, 8)
    best = largest_alignment(M, Budget(c, None, pairs))
    C = best.mixing @ best.mixing.T
    assert max(abs(C[pair]) for pair in pairs) < 1e-12
    assert 0 <= best.gap < 1e-8
    assert np.trace(M) / 5 < best.alignment.mean() < largest_alignment(M, Budget(c)).alignment.mean() + 1e-12
    assert best.coupling <= c * (1 + 1e-10)


def test_all_pairs_uncoupled_is_independent():
    M = matrix(4, 0)
    best = largest_alignment(M, Budget(uncoupled=tuple((a, b) for a in range(4) for b in range(a + 1, 4))))
    np.testing.assert_allclose(best.mixing, np.eye(4), atol=1e-12)


@pytest.mark.parametrize(("p", "rank"), [(2, 1), (3, 2), (5, 4), (8, 7), (8, 5), (20, 19)])
@pytest.mark.parametrize("lam", [0.0, 0.3, 0.9, 0.99])
def test_linearly_dependent_covariates(p, rank, lam):
    M = matrix(p, 4, rank)
    F = regimes.mixed(M, lam)
    best = largest_alignment(M, Budget(coupling(F)))
    assert best.alignment.mean() >= total(F, M) / p - 1e-12
    assert 0 <= best.gap < 3e-6
    assert best.coupling <= coupling(F) * (1 + 1e-10) + 1e-12


def test_covariates_unrelated_to_z():
    M = np.zeros((3, 3))
    np.testing.assert_array_equal(largest_alignment(M, Budget(1.0, uncoupled=((0, 1),))).mixing, np.eye(3))
    M[:2, :2] = matrix(2, 0)
    best = largest_alignment(M, Budget(0.05))
    assert best.alignment[2] == pytest.approx(0, abs=1e-9)
    assert best.gap < 1e-8


def test_sixty_covariates():
    M = matrix(60, 0)
    best = largest_alignment(M, Budget(0.7 * coupling(strongest(M)), uncoupled=((0, 1), (5, 9))))
    assert best.gap < 1e-8


def test_distance_of_tunable_from_the_optimum():
    """T_lambda is near the exact trade-off, and never on it between the ends."""
    for seed in range(9):
        M = matrix(5, 100 + seed)
        F = regimes.mixed(M, 0.5)
        distance = largest_alignment(M, Budget(coupling(F))).alignment.mean() - total(F, M) / 5
        assert 1e-5 < distance < 0.01


# -- the aligner ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    s = ca.simulate.scenario("PN", n_samples=300)
    return s.Z, pd.DataFrame(s.Y, columns=["age", "dose", "sex", "mass", "site"])


@pytest.fixture(scope="module")
def aligner(data):
    return ca.LatentAligner(keep_rest=True).fit(*data)


def test_the_aligner_solves_it(aligner, data):
    within, best = aligner.at(max_coupling=0.3), aligner.at(max_coupling=0.3, exact=True)
    assert (best.regime_, np.isnan(best.lam_)) == ("exact", True)
    assert best.coupling_ == pytest.approx(0.3)
    assert best.alignment_.mean() > within.alignment_.mean()
    assert best.gap_ < 1e-9
    assert np.isnan(within.gap_)
    Z, Y = data
    seen = ca.metrics.alignment(best.transform(Z)[:, :5], Y.to_numpy())
    assert seen == pytest.approx(best.alignment_.mean(), abs=1e-9)
    np.testing.assert_allclose(best.inverse_transform(best.transform(Z)), Z, atol=1e-8)
    moved = best.transform(best.steer(Z, {"dose": 1.0})) - best.transform(Z)
    np.testing.assert_allclose(moved[:, :5], np.tile([0.0, 1, 0, 0, 0], (len(Z), 1)), atol=1e-8)
    np.testing.assert_allclose(best.erase(Z, "dose"), aligner.erase(Z, "dose"), atol=1e-10)


def test_every_fold_solves_its_own_problem(aligner):
    best = aligner.at(max_coupling=0.3, exact=True)
    held = aligner._held_out()
    solved = [
        largest_alignment(polar.M, Budget(0.3)).mixing for polar in (held.whole, *(of.polar for of in held.folds))
    ]
    need = held.measure_mixed(solved[0], solved[1:]).alignment.value
    np.testing.assert_allclose(best.summary()["held_out"], need)


def test_ends_of_the_aligner(aligner):
    np.testing.assert_allclose(aligner.at(max_coupling=0, exact=True).T_, aligner.at(0).T_, atol=1e-10)
    np.testing.assert_allclose(aligner.at(max_coupling=1e9, exact=True).T_, aligner.at(1).T_, atol=1e-10)


def test_weights_and_uncoupled_pairs_by_name(aligner, data):
    plain = aligner.at(max_coupling=0.5, exact=True)
    heavy = aligner.at(max_coupling=0.5, exact=True, weights={"dose": 3})
    assert heavy.alignment_["dose"] > plain.alignment_["dose"]
    apart = aligner.at(exact=True, uncoupled=[("age", "sex"), ("sex", "mass")])
    C = np.corrcoef(apart.transform(data[0])[:, :5].T)
    assert max(abs(C[0, 2]), abs(C[2, 3])) < 1e-8 < abs(C[0, 1])


def test_a_category_stands_for_its_dummies(data):
    Z, Y = data
    Y = Y[["age", "dose"]].assign(sex=np.where(Y["sex"] > 0, "f", "m"))
    al = ca.LatentAligner(drop_first=False).fit(Z, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ca.exceptions.SingularTransformWarning)
        best = al.at(max_coupling=1.0, exact=True, weights={"sex": 2}, uncoupled=[("age", "sex")])
    C = np.corrcoef(best.transform(Z).T)
    of_sex = [best.covariate_names_.index(name) for name in best.covariate_names_ if name.startswith("sex")]
    assert np.abs(C[0, of_sex]).max() < 1e-8


@pytest.mark.parametrize(
    "choice",
    [{"max_coupling": 0.2}, {"uncoupled": [("age", "sex")]}, {"max_coupling": 1.0, "weights": {"age": 2}}],
    ids=["budget", "pairs", "weights"],
)
def test_a_file_keeps_it(tmp_path, aligner, data, choice):
    best = aligner.at(exact=True, **choice)
    best.save(tmp_path / "m.covalign")
    other = ca.load(tmp_path / "m.covalign")
    assert other.regime_ == "exact"
    assert other.gap_ == best.gap_
    np.testing.assert_array_equal(other.transform(data[0]), best.transform(data[0]))
    pd.testing.assert_frame_equal(other.summary(), best.summary())


def test_other_regimes_and_fits_leave_it(aligner, data):
    best = aligner.at(max_coupling=0.2, exact=True)
    assert (best.at(0.3).regime_, best.at(0.3)._budget) == ("tunable", None)
    np.testing.assert_array_equal(best.at(0.3).held_out_alignment_, aligner.at(0.3).held_out_alignment_)
    more = best.at(max_coupling=0.2, exact=True).partial_fit(*data)
    assert more.regime_ == "exact"
    assert more.fit(*data).regime_ == "tunable"


def test_the_frontier_shows_it(aligner):
    frame = aligner.frontier([0, 0.5, 0.9, 1]).set_index("regime")
    assert (frame["exact_alignment"] >= frame["alignment"]).all()
    assert frame.loc[["independent", "strongest"], "exact_alignment"].tolist() == pytest.approx(
        frame.loc[["independent", "strongest"], "alignment"].tolist(), abs=1e-6
    )
    want = aligner.at(max_coupling=frame.loc["exclusive", "coupling"], exact=True).alignment_.mean()
    assert frame.loc["exclusive", "exact_alignment"] == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"max_coupling": -1}, "max_coupling needs a number >= 0"),
        ({"max_coupling": float("nan")}, "max_coupling needs a number >= 0"),
        ({}, "needs max_coupling= or uncoupled="),
        ({"max_coupling": 1, "weights": {"dos": 3}}, "no covariate 'dos'.*Did you mean 'dose'"),
        ({"max_coupling": 1, "weights": {"dose": 0}}, "weight of 'dose' needs a positive number, got 0"),
        ({"max_coupling": 1, "weights": {"dose": float("nan")}}, "positive number, got nan"),
        ({"max_coupling": 1, "weights": {"dose": "3"}}, "positive number, got '3'"),
        ({"max_coupling": 1, "weights": [1, 2]}, "weights needs a dict"),
        ({"uncoupled": [("age", "seks")]}, "no covariate 'seks'"),
        ({"uncoupled": [("age", "age")]}, "two different covariates"),
        ({"uncoupled": ("age", "sex")}, "uncoupled needs pairs"),
        ({"max_coupling": 1, "lam": 0.5}, "excludes lam= and regime="),
        ({"max_coupling": 1, "exact": False, "weights": {"dose": 2}}, "need exact=True"),
    ],
    ids=str,
)
def test_wrong_settings(aligner, wrong, words):
    with pytest.raises(ValueError, match=words):
        aligner.at(**{"exact": True, **wrong})


def test_permutations_solve_their_own_problems(aligner, data):
    best = aligner.at(max_coupling=0.2, exact=True)
    table = best.permutation_test(*data, 19)
    np.testing.assert_allclose(table["alignment"][:-1], best.alignment_, atol=1e-5)
    assert table["p_value"]["overall"] == 0.05
    below = aligner.at(max_coupling=0.2).permutation_test(*data, 19)["by_chance"]
    assert table["by_chance"]["overall"] > below["overall"] - 0.01


def test_a_report_shows_the_exact_regime(aligner):
    best = aligner.at(max_coupling=0.2, exact=True)
    shown = ca.report.summary(best)
    assert (shown["regime"], shown["limits"]["words"] != "") == ("exact", True)


def test_names_are_checked_in_one_place():
    assert budget.asked({"a": [0], "b": [1]}, 1, None, [["b", "a"]]) == Budget(1.0, None, ((0, 1),))


# -- the factor model -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples():
    s = ca.simulate.scenario("PN", n_samples=80, n_features=30)
    return s.X, pd.DataFrame(s.Y, columns=["age", "dose", "sex", "mass", "site"])


@pytest.fixture(scope="module")
def factors(samples):
    return ca.InformedFactorAnalysis(7, supervision=1.0, max_iter=100, tol=1e-4).fit(*samples)


CHOICES = [
    {"max_coupling": 0.3},
    {"max_coupling": 0.5, "weights": {"dose": 3}},
    {"uncoupled": [("age", "sex"), ("sex", "mass")]},
]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_the_factor_model_has_the_map_of_an_aligner_of_its_factors(samples, factors, choice):
    X, Y = samples
    Z = factors.transform(X)
    shrinkage = label_free.shrinkage(ca.Moments.from_arrays(Z, Y))
    expected = ca.LatentAligner(shrinkage=shrinkage).fit(Z, Y).at(exact=True, **choice)
    found = factors.at(exact=True, **choice)
    assert (found.regime_, np.isnan(found.lam_), found.gap_ < 1e-8) == ("exact", True, True)
    np.testing.assert_allclose(found.alignment_, expected.alignment_, atol=1e-6)
    assert found.coupling_ == pytest.approx(expected.coupling_, abs=1e-6)
    np.testing.assert_allclose(found.transform(X)[:, :5], expected.transform(Z), atol=1e-4)


def test_the_ends_of_the_factor_model_are_T_0_and_T_1(factors):
    for c, lam in ((0, 0), (1e9, 1)):
        np.testing.assert_allclose(factors.at(max_coupling=c, exact=True).T_, factors.at(lam).T_, atol=1e-9)


def test_the_exact_factor_model_is_saved_measured_and_left(samples, factors, tmp_path):
    best = factors.at(max_coupling=0.3, exact=True)
    best.save(tmp_path / "best.covalign")
    again = ca.load(tmp_path / "best.covalign")
    assert (again.regime_, again.gap_, again._budget) == (best.regime_, best.gap_, best._budget)
    np.testing.assert_array_equal(again.transform(samples[0]), best.transform(samples[0]))
    held = best.summary()["held_out"]
    assert held.notna().all()
    assert (held - factors.at(max_coupling=0.3).summary()["held_out"]).abs().max() < 0.1
    left = best.at(0.5)
    assert (left.regime_, left._budget, np.isnan(left.gap_)) == ("tunable", None, True)
    np.testing.assert_allclose(left.T_, factors.at(0.5).T_)


def test_the_regimes_of_the_model_have_no_exact_one():
    s = ca.simulate.scenario("PN", n_samples=60)
    fa = ca.InformedFactorAnalysis(6, folds=0, tol=1e-3, supervision=1.0, regime_from="model").fit(s.X, s.Y)
    with pytest.raises(ValueError, match='exact=True needs regime_from="features", got regime_from="model"'):
        fa.at(max_coupling=0.2, exact=True)


def test_the_frontier_of_the_factor_model_stays_below_its_optimum():
    s = ca.simulate.scenario("PN", n_samples=60)
    fa = ca.InformedFactorAnalysis(6, folds=0, tol=1e-3, supervision=1.0).fit(s.X, s.Y)
    frame = fa.frontier([0, 0.5, 1])
    assert (frame["exact_alignment"] >= frame["alignment"]).all()
