"""Tests of gene sets: they are those of CAMERA, and correlated genes do not make them find what is not there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from covalign.closed_form import set_tests
from covalign.closed_form.set_tests import false_discovery_rates, mean_correlations, mean_test, rank_test


def correlated_genes(rng: np.random.Generator, n: int, sizes: list[int], rho: float) -> np.ndarray:
    """Genes of variance 1, those of a set with this correlation."""
    blocks = [
        np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - rho) * rng.standard_normal((n, m)) for m in sizes
    ]
    return np.hstack(blocks)


def members(sizes: list[int]) -> list[np.ndarray]:
    ends = np.cumsum(sizes)
    return [np.arange(end - m, end) for end, m in zip(ends, sizes, strict=True)]


def brute_force_camera(values: np.ndarray, E: np.ndarray, inside: np.ndarray) -> tuple[float, float]:
    """Two groups of genes, a variance within them, and the whole correlation matrix of the set."""
    others = np.setdiff1d(np.arange(len(values)), inside)
    a, b = values[inside], values[others]
    s2 = (np.sum((a - a.mean()) ** 2) + np.sum((b - b.mean()) ** 2)) / (len(values) - 2)
    U = E[:, inside] / np.sqrt(np.mean(E[:, inside] ** 2, axis=0))
    R = U.T @ U / len(U)
    m = len(inside)
    rho = R[~np.eye(m, dtype=bool)].mean()
    var_a = s2 / m**2 * np.sum(np.where(np.eye(m, dtype=bool), 1.0, max(rho, 0.0)))
    t = (a.mean() - b.mean()) / np.sqrt(var_a + s2 / len(b))
    return float(rho), float(t)


@given(st.integers(0, 10_000))
def test_it_is_camera(seed):
    rng = np.random.default_rng(seed)
    sizes = [3, 8, 12]
    E = correlated_genes(rng, 40, [*sizes, 30], rho=0.3)
    values, sets = rng.standard_normal((E.shape[1], 2)), members(sizes)
    rho, rows = mean_correlations(lambda: np.array_split(E, 3), sets)
    t, p = mean_test(values, sets, rho, df=35.0)
    assert rows == 40
    for i, inside in enumerate(sets):
        for k in range(2):
            expected_rho, expected_t = brute_force_camera(values[:, k], E, inside)
            assert rho[i] == pytest.approx(expected_rho, abs=1e-12)
            assert t[i, k] == pytest.approx(expected_t, rel=1e-10)
            assert p[i, k] == pytest.approx(2 * stats.t.sf(abs(expected_t), 35.0), rel=1e-10)


def test_a_correlation_uses_the_rows_that_have_both_genes():
    rng = np.random.default_rng(1)
    E = correlated_genes(rng, 60, [5], rho=0.5)
    E[rng.random(E.shape) < 0.3] = np.nan
    E[:, 4] = 0.0  # a gene without residuals has no correlation
    U = E / np.sqrt([*np.nanmean(E[:, :4] ** 2, axis=0), 1.0])
    products = [U[:, d] * U[:, e] for d in range(4) for e in range(4) if d != e]
    expected = np.nanmean(np.concatenate(products))
    (rho,), rows = mean_correlations(lambda: [E[:20], E[20:]], [np.arange(5)])
    assert rho == pytest.approx(expected, abs=1e-12)
    assert rows == 60


def test_a_set_of_one_gene_has_no_correlation():
    E = np.random.default_rng(0).standard_normal((20, 3))
    assert mean_correlations(lambda: [E], [np.array([1])])[0].tolist() == [0.0]


def test_without_correlation_ranks_are_those_of_mann_and_whitney():
    rng = np.random.default_rng(2)
    values = np.round(rng.standard_normal((60, 1)), 1)  # with ties
    inside = np.arange(15)
    _, p = rank_test(values, [inside], np.zeros(1), np.inf)
    expected = stats.mannwhitneyu(values[:15, 0], values[15:, 0], method="asymptotic", use_continuity=True)
    assert p[0, 0] == pytest.approx(expected.pvalue, rel=1e-10)


def test_the_variance_of_a_sum_of_ranks_is_that_of_simulated_ranks():
    rng, rho, m, G = np.random.default_rng(3), 0.3, 10, 40
    draws = correlated_genes(rng, 20_000, [m], rho)
    draws = np.hstack([draws, rng.standard_normal((20_000, G - m))])
    sums = stats.rankdata(draws, axis=1)[:, :m].sum(axis=1)
    t, _ = rank_test(draws[:1].T, [np.arange(m)], np.array([rho]), np.inf)
    away = sums[0] - m * (G + 1) / 2
    spread = (abs(away) - 0.5) * np.sign(away) / t[0, 0]
    assert spread == pytest.approx(sums.std(), rel=0.03)


@pytest.mark.parametrize("method", ["camera", "rank"])
def test_null_p_values_are_uniform_though_genes_are_correlated(method):
    """The statistics of genes are regressions on a factor that has nothing to do with them."""
    rng = np.random.default_rng(4)
    sizes, p, naive = [20] * 10 + [200], [], []
    sets = members(sizes)[:-1]
    for _ in range(40):
        X = correlated_genes(rng, 50, sizes, rho=0.2)
        X[:, 200:] = rng.standard_normal((50, 200))
        z = rng.standard_normal((50, 1))
        W = X.T @ z / np.sum(z**2)
        E = X - z @ W.T
        rho, _ = mean_correlations(lambda E=E: [E], sets)
        test = set_tests.TESTS[method]
        p += test(W, sets, rho, 49.0)[1].ravel().tolist()
        naive += test(W, sets, 0 * rho, 49.0)[1].ravel().tolist()
    assert stats.kstest(p, "uniform").pvalue > 0.01
    assert np.mean(np.array(naive) < 0.05) > 0.3  # without the correlation they are not


def test_rates_of_false_discoveries_leave_gaps_out():
    q = false_discovery_rates(np.array([0.01, np.nan, 0.04, 0.5]))
    np.testing.assert_allclose(q, [0.03, np.nan, 0.06, 0.5])
    assert np.isnan(false_discovery_rates(np.array([np.nan]))).all()
