"""The four regimes: theorems, constraints, and each closed form against a generic optimiser."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import ortho_group
from sklearn.linear_model import LinearRegression

import covalign as ca
from covalign.closed_form import regimes
from covalign.exceptions import DependentCovariatesError
from tests.conftest import correlated, thorough

seeds = st.integers(0, 2**32 - 1)
sizes = st.tuples(st.integers(1, 5), st.integers(0, 4))  # P and K - P
lams = st.floats(0, 1)


def moments(seed: int, p: int = 3, extra: int = 2, n: int = 300) -> ca.Moments:
    return ca.Moments.from_arrays(*correlated(seed, n, p + extra, p))


def standardised(m: ca.Moments) -> np.ndarray:
    return m.cov_zy / np.sqrt(np.diag(m.cov_y))


def four(m: ca.Moments, lam: float = 0.5, shrinkage: float = 0.0) -> dict[str, np.ndarray]:
    return {
        "exclusive": regimes.exclusive(m, shrinkage=shrinkage),
        "independent": regimes.independent(m, shrinkage=shrinkage),
        "tunable": regimes.tunable(m, lam, shrinkage=shrinkage),
        "strongest": regimes.strongest(m, shrinkage=shrinkage),
    }


# -- theorems ---------------------------------------------------------------------------------------------------------


@given(seeds, sizes, lams, lams, st.sampled_from([0.0, 0.3, 1.0]))
def test_ordering_per_covariate_and_monotone_in_lam(seed, size, a, b, shrinkage):
    m = moments(seed, *size)
    low, high = sorted((a, b))
    T = four(m, low, shrinkage)
    chain = [
        T["exclusive"],
        T["independent"],
        T["tunable"],
        regimes.tunable(m, high, shrinkage=shrinkage),
        T["strongest"],
    ]
    aligned = np.array([regimes.alignment(t, m) for t in chain])
    assert np.all(np.diff(aligned, axis=0) >= -1e-9)
    assert np.all(aligned >= 0)


@given(seeds, sizes, lams)
def test_independent_couples_least(seed, size, lam):
    m = moments(seed, *size)
    coupling = {name: regimes.coupling(T, m) for name, T in four(m, lam).items()}
    assert coupling["independent"] < 1e-12
    assert min(coupling.values()) > -1e-12


@given(seeds, st.integers(2, 5))
def test_all_equal_when_M_is_diagonal(seed, p):
    rng = np.random.default_rng(seed)
    M = np.diag(rng.uniform(0.1, 0.9, p))
    mixing = rng.standard_normal((p, p))
    m = ca.Moments.from_covariances(mixing @ mixing.T, mixing @ M, np.eye(p))  # Z = mixing Zbar, cov(Zbar, Y) = M
    reference = regimes.independent(m)
    for T in four(m, 0.7).values():
        np.testing.assert_allclose(T, reference, rtol=1e-7, atol=1e-9)


@given(seeds)
def test_strictly_different_when_M_is_not_diagonal(seed):
    m = moments(seed, 3, 1)
    total = {name: regimes.alignment(T, m).sum() for name, T in four(m).items()}
    M = regimes.whitened_polar(m).M
    if np.abs(M - np.diag(np.diag(M))).max() > 0.05:
        assert total["exclusive"] < total["independent"] < total["tunable"] < total["strongest"]


@given(seeds, sizes, lams)
def test_any_invertible_remix_of_Z_gives_the_same_dimensions(seed, size, lam):
    m = moments(seed, *size)
    k = len(m.cov_z)
    A = ortho_group.rvs(k, random_state=seed % 2**31) if k > 1 else np.array([[-1.0]])
    A = A * np.logspace(-2, 2, k)  # condition number 1e4
    remixed = m.transform(A)
    for (name, T), T_A in zip(four(m, lam).items(), four(remixed, lam).values(), strict=True):
        np.testing.assert_allclose(T_A @ A, T, atol=1e-6 * np.abs(T).max(), err_msg=name)


@given(seeds, sizes)
def test_units_of_the_covariates_do_not_matter(seed, size):
    Z, Y = correlated(seed, 200, sum(size), size[0])
    other = Y * np.logspace(-3, 3, size[0]) + 7
    for T, T_other in zip(
        four(ca.Moments.from_arrays(Z, Y)).values(), four(ca.Moments.from_arrays(Z, other)).values(), strict=True
    ):
        np.testing.assert_allclose(T_other, T, rtol=1e-6, atol=1e-8 * np.abs(T).max())


@given(seeds, sizes, lams, st.sampled_from([0.0, 1e-3, 0.5, 1.0]))
def test_constraints_hold_exactly_at_any_shrinkage(seed, size, lam, shrinkage):
    m = moments(seed, *size)
    T = four(m, lam, shrinkage)
    for name, t in T.items():
        np.testing.assert_allclose(np.diag(t @ m.cov_z @ t.T), 1, rtol=1e-8, err_msg=name)  # unit variances
    np.testing.assert_allclose(T["independent"] @ m.cov_z @ T["independent"].T, np.eye(size[0]), atol=1e-9)
    cross = T["exclusive"] @ standardised(m)
    np.testing.assert_allclose(cross, np.diag(np.diag(cross)), atol=1e-8)
    assert np.all(np.diag(cross) > 0)


@given(seeds, sizes)
def test_lam_0_is_whitening_and_lam_1_is_regression(seed, size):
    Z, Y = correlated(seed, 200, sum(size), size[0])
    m = ca.Moments.from_arrays(Z, Y)
    np.testing.assert_allclose(regimes.tunable(m, 0), regimes.independent(m), rtol=1e-12)
    np.testing.assert_allclose(regimes.tunable(m, 1), regimes.strongest(m), rtol=1e-12)
    fitted = LinearRegression().fit(Z, Y).predict(Z).reshape(Y.shape)
    transformed = (Z - m.mean_z) @ regimes.strongest(m).T
    np.testing.assert_allclose(transformed, (fitted - fitted.mean(0)) / fitted.std(0), atol=1e-6)


def test_the_rest_is_uncorrelated_with_everything_and_completes_the_space():
    m = moments(0, 3, 4)
    polar = regimes.whitened_polar(m)
    rest = regimes.rest_of_space(m, polar)
    full = np.vstack([polar.T_0, rest])
    np.testing.assert_allclose(full @ m.cov_z @ full.T, np.eye(7), atol=1e-10)
    np.testing.assert_allclose(rest @ m.cov_zy, 0, atol=1e-10)
    explained = np.sum((m.cov_z @ rest.T) ** 2, axis=0)
    assert np.all(np.diff(explained) < 0)  # principal components of what is left, largest first


# -- each closed form against a generic optimiser -------------------------------------------------------------------


def best_of(restarts: int, objective, start, seed: int = 0) -> float:
    rng = np.random.default_rng(seed)
    return max(-minimize(lambda v: -objective(v), start(rng), method="BFGS").fun for _ in range(restarts))


@pytest.mark.parametrize("seed", [0, 1, *thorough(2, 3)])
def test_no_whitening_rotation_beats_T0(seed):
    m = moments(seed, 3, 2)
    values, vectors = np.linalg.eigh(m.cov_z)
    A = (vectors / np.sqrt(values)) @ vectors.T @ standardised(m)

    above = np.triu_indices(5, 1)

    def total(v):
        G = np.zeros((5, 5))
        G[above] = v
        angles, U = np.linalg.eigh(1j * (G - G.T))  # exp of a skew matrix is U exp(-i angles) U*
        return np.trace(((U * np.exp(-1j * angles)) @ U.conj().T).real[:3] @ A)

    found = best_of(8, total, lambda rng: rng.standard_normal(10))
    ours = np.trace(regimes.independent(m) @ standardised(m))
    assert ours == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("lam", [0.0, 0.3, 0.8, 1.0])
def test_no_unit_rows_beat_T_lambda(lam):
    m = moments(7, 3, 2)
    polar = regimes.whitened_polar(m)
    M = polar.T_0 @ standardised(m)

    def objective(v):
        T = v.reshape(3, 3)
        T = T / np.linalg.norm(T, axis=1, keepdims=True)
        return lam * np.trace(T @ M) - (1 - lam) / 2 * np.sum((T - np.eye(3)) ** 2)

    found = best_of(8, objective, lambda rng: rng.standard_normal(9))
    assert objective(regimes.mixing(polar, "tunable", lam).ravel()) == pytest.approx(found, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("p", range(3))
def test_no_exclusive_direction_beats_T_ex(p):
    m = moments(3, 3, 2)
    S_zy = standardised(m)
    others = [q for q in range(3) if q != p]

    found = 0.0
    for seed in range(6):
        start = np.random.default_rng(seed).standard_normal(5)
        result = minimize(
            lambda t: -(t @ S_zy[:, p]),
            start,
            method="SLSQP",
            constraints=[
                {"type": "eq", "fun": lambda t: t @ m.cov_z @ t - 1},
                {"type": "eq", "fun": lambda t: t @ S_zy[:, others]},
            ],
            options={"maxiter": 500, "ftol": 1e-14},
        )
        if result.success and abs(result.x @ m.cov_z @ result.x - 1) < 1e-6:
            found = max(found, -result.fun)
    assert regimes.alignment(regimes.exclusive(m), m)[p] == pytest.approx(found, rel=1e-5)


def test_M_has_the_papers_closed_form():
    m = moments(2, 4, 0)
    S_zy = standardised(m)
    values, vectors = np.linalg.eigh(S_zy.T @ np.linalg.solve(m.cov_z, S_zy))
    M = (vectors * np.sqrt(values)) @ vectors.T
    np.testing.assert_allclose(regimes.whitened_polar(m).M, M, atol=1e-9)
    np.testing.assert_allclose(regimes.alignment(regimes.independent(m), m), np.diag(M), atol=1e-9)
    inverse_square = np.linalg.inv(M @ M)
    np.testing.assert_allclose(regimes.alignment(regimes.exclusive(m), m), np.diag(inverse_square) ** -0.5, rtol=1e-6)


# -- population values, frontier --------------------------------------------------------------------------------------

POPULATION = {
    ("PN", "exclusive"): (0.3510, 4.1039),
    ("PN", "independent"): (0.5613, 0),
    ("PN", "tunable"): (0.6292, 1.2358),
    ("PN", "strongest"): (0.6704, 8.2566),
    ("AR", "exclusive"): (0.3185, 3.4899),
    ("AR", "independent"): (0.5523, 0),
    ("AR", "tunable"): (0.6328, 1.4556),
    ("AR", "strongest"): (0.6819, 8.8270),
    ("P", "exclusive"): (0.4933, 1.0358),
    ("P", "independent"): (0.5886, 0),
    ("P", "tunable"): (0.6192, 0.5691),
    ("P", "strongest"): (0.6412, 5.0007),
    ("N", "independent"): (0.5947, 0),
    ("N", "tunable"): (0.6448, 0.5538),
    ("N", "strongest"): (0.6736, 1.6991),
}


@pytest.mark.parametrize(("scenario", "regime"), POPULATION)
def test_population_values(scenario, regime):
    frame = regimes.frontier(ca.simulate.population_moments(scenario), [0, 0.5, 1]).set_index("regime")
    alignment, coupling = POPULATION[scenario, regime]
    assert frame.loc[regime, "alignment"] == pytest.approx(alignment, abs=6e-5)
    assert frame.loc[regime, "coupling"] == pytest.approx(coupling, abs=6e-5)


def test_frontier_is_the_regimes_one_by_one():
    m = moments(1, 3, 2)
    frame = regimes.frontier(m, [0, 0.25, 1])
    assert frame["regime"].tolist() == ["independent", "tunable", "strongest", "exclusive"]
    for (_, row), T in zip(
        frame.iterrows(),
        [regimes.independent(m), regimes.tunable(m, 0.25), regimes.strongest(m), regimes.exclusive(m)],
        strict=True,
    ):
        np.testing.assert_allclose(row[["y0", "y1", "y2"]].to_numpy(float), regimes.alignment(T, m), atol=1e-10)
        assert row["alignment"] == pytest.approx(regimes.alignment(T, m).mean())
        assert row["coupling"] == pytest.approx(regimes.coupling(T, m), abs=1e-10)


def test_alignment_and_coupling_are_those_of_the_rows():
    Z, Y = correlated(0, 400, 5, 3)
    m, T = ca.Moments.from_arrays(Z, Y), np.random.default_rng(1).standard_normal((3, 5))
    rows = Z @ T.T
    expected = [np.corrcoef(rows[:, p], Y[:, p])[0, 1] for p in range(3)]
    np.testing.assert_allclose(regimes.alignment(T, m), expected, rtol=1e-10)
    assert regimes.coupling(T, m) == pytest.approx(np.sum((np.corrcoef(rows.T) - np.eye(3)) ** 2))


@given(seeds, st.floats(0, 3))
def test_coupling_budget_is_kept_and_used_up(seed, budget):
    m = moments(seed, 4, 1)
    M = regimes.whitened_polar(m).M
    lam = regimes.lam_within(M, budget)
    assert regimes.coupling(regimes.tunable(m, lam), m) <= budget + 1e-9
    if lam < 1:
        assert regimes.coupling(regimes.tunable(m, min(1, lam + 1e-3)), m) > budget


def test_a_covariate_called_alignment_keeps_its_column():
    m = moments(0, 2, 0).with_names(["alignment", "lam"])
    frame = regimes.frontier(m, [0])
    assert frame.columns.is_unique
    assert "alignment (covariate)" in frame


def test_covariates_called_like_any_column_of_a_frontier_keep_theirs():
    Z, Y = np.random.default_rng(0).standard_normal((2, 60, len(regimes.FRONTIER_COLUMNS)))
    named = pd.DataFrame(Y, columns=list(regimes.FRONTIER_COLUMNS))
    theirs = [f"{name} (covariate)" for name in named]
    for frame in (ca.LatentAligner().fit(Z, named).frontier([0, 1]), ca.cross_validated_frontier(Z, named, [0, 1])):
        assert frame.columns.is_unique
        assert frame.columns[-len(theirs) :].tolist() == theirs
        assert set(frame.columns) <= {*regimes.FRONTIER_COLUMNS, *theirs}  # a new column has to be listed


# -- rank -------------------------------------------------------------------------------------------------------------


def dummies(seed: int = 0, n: int = 400, k: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y = np.eye(3)[rng.integers(0, 3, n)]
    return Y @ rng.standard_normal((3, k)) + rng.standard_normal((n, k)), Y


@pytest.mark.parametrize("k", [3, 6])
@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
def test_all_dummies_of_a_category(k, shrinkage):
    Z, Y = dummies(k=k)
    m = ca.Moments.from_arrays(Z, Y)
    T_0 = regimes.independent(m, shrinkage=shrinkage)
    np.testing.assert_allclose(T_0 @ m.cov_z @ T_0.T, np.eye(3), atol=1e-9)
    assert regimes.whitened_polar(m, shrinkage).null.shape == (3, 1)
    assert np.linalg.matrix_rank(regimes.strongest(m, shrinkage=shrinkage) @ np.linalg.cholesky(m.cov_z)) == 2
    with pytest.raises(DependentCovariatesError, match=r"'y0', 'y1', 'y2'.*drop_first"):
        regimes.exclusive(m, shrinkage=shrinkage)
    frame = regimes.frontier(m, [0, 0.5, 1], shrinkage=shrinkage)
    assert "exclusive" not in frame["regime"].tolist()
    assert "y1" in frame.attrs["exclusive"]
    assert frame["alignment"].is_monotonic_increasing


def test_only_the_dependent_covariates_are_named():
    Z, Y = dummies()
    m = ca.Moments.from_arrays(Z, np.hstack([Y, Z[:, :1]])).with_names(["A", "B", "C", "age"])
    with pytest.raises(DependentCovariatesError, match=r"'A', 'B', 'C'\."):
        regimes.exclusive(m)


@pytest.mark.parametrize("k", [3, 6])
def test_tie_break_does_not_depend_on_row_order_or_chunking(k):
    Z, Y = dummies(k=k)
    order = np.random.default_rng(1).permutation(len(Z))
    a = regimes.independent(ca.Moments.from_arrays(Z, Y))
    b = regimes.independent(ca.Moments.from_arrays(Z[order], Y[order]))
    np.testing.assert_allclose(a, b, atol=1e-9)


def test_tie_break_is_the_closest_to_the_first_columns():
    m = ca.simulate.population_moments("N")  # rank 4 of 5: only the sign of one direction is free
    polar = regimes.whitened_polar(m)
    closeness = np.trace(polar.T_0 @ m.cov_z)
    free = np.outer(polar.null[:, 0], polar.null[:, 0])
    other = (np.eye(5) - 2 * free) @ polar.T_0  # the other solution
    np.testing.assert_allclose(other @ m.cov_z @ other.T, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(np.diag(other @ m.cov_zy), np.diag(polar.T_0 @ m.cov_zy), atol=1e-10)
    assert closeness > np.trace(other @ m.cov_z)


def test_tie_break_where_the_first_columns_do_not_vary():
    Z, Y = dummies(k=6)
    Z[:, :3] = 1.0
    Z[:, 0] = np.argmax(Y, axis=1)
    m = ca.Moments.from_arrays(Z, Y)
    T_0 = regimes.independent(m)
    np.testing.assert_allclose(T_0 @ m.cov_z @ T_0.T, np.eye(3), atol=1e-9)


def test_a_covariate_Z_knows_nothing_about():
    m = ca.Moments.from_covariances(np.eye(3), np.array([[0.5, 0], [0.2, 0], [0, 0]]), np.eye(2))
    T = regimes.strongest(m)
    assert np.isfinite(T).all()
    np.testing.assert_allclose(regimes.alignment(T, m), [np.hypot(0.5, 0.2), 0], atol=1e-12)
    with pytest.raises(DependentCovariatesError, match="'y1'"):
        regimes.exclusive(m)


@given(seeds, lams)
def test_singular_representation_works_on_its_range(seed, lam):
    Z, Y = correlated(seed, 200, 4, 2)
    wide = np.hstack([Z, Z[:, :2], np.ones((200, 1)), Z @ np.ones((4, 1)), np.zeros((200, 1))])
    m, m_wide = ca.Moments.from_arrays(Z, Y), ca.Moments.from_arrays(wide, Y)
    for T, T_wide in zip(four(m, lam).values(), four(m_wide, lam).values(), strict=True):
        np.testing.assert_allclose(
            (wide - m_wide.mean_z) @ T_wide.T, (Z - m.mean_z) @ T.T, atol=1e-6 * np.sqrt(np.linalg.cond(m.cov_z))
        )


def test_more_dimensions_than_rows():
    Z, Y = correlated(0, 20, 50, 2)
    m = ca.Moments.from_arrays(Z, Y)
    assert regimes.alignment(regimes.strongest(m), m) == pytest.approx([1, 1])  # the illusion shrinkage is for
    assert np.isfinite(regimes.strongest(m, shrinkage=0.5)).all()
    assert regimes.alignment(regimes.strongest(m, shrinkage=0.5), m).max() < 1


def test_scales_far_apart_are_not_mistaken_for_rank():
    Z, Y = correlated(0, 500, 4, 2)
    scales = np.array([1e-9, 1, 1e3, 1e9])
    a, b = ca.Moments.from_arrays(Z, Y), ca.Moments.from_arrays(Z * scales, Y)
    np.testing.assert_allclose(regimes.independent(b) * scales, regimes.independent(a), rtol=1e-6, atol=1e-9)


# -- errors -----------------------------------------------------------------------------------------------------------


def test_bad_input_is_named():
    Z, Y = correlated(0, 50, 2, 3)
    with pytest.raises(ValueError, match="3 covariates need at least 3 latent dimensions, got 2"):
        regimes.independent(ca.Moments.from_arrays(Z, Y))
    Z, Y = correlated(0, 50, 4, 2)
    with pytest.raises(ValueError, match=r"2 linearly independent latent dimensions.*span only 1"):
        regimes.independent(ca.Moments.from_arrays(np.repeat(Z[:, :1], 4, axis=1), Y))
    with pytest.raises(ValueError, match="constant in column 'dose'"):
        regimes.strongest(ca.Moments.from_arrays(Z, np.c_[Y[:, 0], np.full(50, 0.1)]).with_names(["age", "dose"]))
    with pytest.raises(ValueError, match="at least 2 rows"):
        regimes.strongest(ca.Moments.from_arrays(Z[:1], Y[:1]))


@pytest.mark.parametrize("lam", [-0.1, 1.1, np.nan, "half", None, True])
def test_lam_is_checked(lam):
    with pytest.raises(ValueError, match="lam needs a number between 0"):
        regimes.tunable(moments(0), lam)
