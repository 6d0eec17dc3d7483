"""Moments of incomplete covariates: the documented formula, one pass, any portions, always a covariance matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import covalign as ca
from covalign._core.linalg import positive_semidefinite
from covalign.closed_form import regimes
from covalign.moments import incomplete
from covalign.moments.gap_accumulator import incomplete_moments
from covalign.moments.incomplete import IncompleteMoments
from tests.conftest import correlated

FIELDS = ("mean_z", "mean_y", "cov_z", "cov_zy", "cov_y")
seeds = st.integers(0, 2**32 - 1)


def with_gaps(seed: int, n: int, k: int = 4, p: int = 3, share: float = 0.3, offset: float = 0.0):
    """Z, and Y with gaps in every column and at least two values in each."""
    Z, Y = correlated(seed, n, k, p, offset)
    gaps = np.random.default_rng(seed).random(Y.shape) < share
    gaps[:2] = False
    return Z, np.where(gaps, np.nan, Y)


def of(Z, Y, blocks=None) -> IncompleteMoments:
    return incomplete_moments([(Z, Y)], blocks)


def formula(Z: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """mean_y, S_zy and S_y of the module's docstring, row by row."""
    K, P, S_z = Z.shape[1], Y.shape[1], np.cov(Z.T, ddof=0)
    there, B, e, mean = ~np.isnan(Y), np.empty((K, P)), np.empty(Y.shape), np.empty(P)
    for p in range(P):
        z, y = Z[there[:, p]], Y[there[:, p], p]
        z0, y0, n_p = z - z.mean(0), y - y.mean(), len(y)
        B[:, p] = np.linalg.solve((z0.T @ z0 + K * S_z) / (n_p + K), z0.T @ y0 / n_p)
        e[:, p] = Y[:, p] - Z @ B[:, p]
        mean[p] = y.mean() + (Z.mean(0) - z.mean(0)) @ B[:, p]
    both = [[there[:, p] & there[:, q] for q in range(P)] for p in range(P)]
    cov_e = np.array([[np.cov(e[both[p][q], p], e[both[p][q], q], ddof=0)[0, 1] for q in range(P)] for p in range(P)])
    return mean, S_z @ B, B.T @ S_z @ B + positive_semidefinite(cov_e)


@given(seeds, st.sampled_from([0.0, 1e4]))
def test_completed_moments_are_the_formula(seed, offset):
    Z, Y = with_gaps(seed, 100, offset=offset)
    m = of(Z, Y).completed()
    for found, expected in zip((m.mean_y, m.cov_zy, m.cov_y), formula(Z, Y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


@given(seeds, st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(lambda sizes: sum(sizes) > 2))
def test_any_chunking_is_bit_for_bit_one_pass(seed, sizes):
    Z, Y = with_gaps(seed, sum(sizes))
    cuts = np.cumsum(sizes)[:-1]
    chunks = incomplete_moments(zip(np.split(Z, cuts), np.split(Y, cuts), strict=True)).completed()
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(chunks, field), getattr(of(Z, Y).completed(), field))


def assert_same(a: ca.Moments, b: ca.Moments) -> None:
    assert a.n == b.n
    for field in FIELDS:
        x, y = getattr(a, field), getattr(b, field)
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9 * np.abs(y).max(), err_msg=field)


@given(seeds)
def test_merge_equals_concatenation(seed):
    Z, Y = with_gaps(seed, 90)
    Y[30:60] = correlated(seed, 90, 4, 3)[1][30:60]
    parts = [of(Z[:30], Y[:30]), ca.Moments.from_arrays(Z[30:60], Y[30:60]), of(Z[60:], Y[60:])]
    for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0)):
        assert_same(incomplete.merged(parts[i] for i in order).completed(), of(Z, Y).completed())


@given(seeds, st.floats(0.1, 0.9), st.integers(12, 60))
def test_always_a_covariance_matrix(seed, share, n):
    Z, Y = with_gaps(seed, n, 5, 4, share)
    m = of(Z, Y).completed()
    joint = np.block([[m.cov_z, m.cov_zy], [m.cov_zy.T, m.cov_y]])
    sd = np.sqrt(np.diag(joint))
    assert np.linalg.eigvalsh(joint / sd / sd[:, None])[0] > -1e-9
    polar = regimes.whitened_polar(m)
    np.testing.assert_allclose(polar.T_0 @ m.cov_z @ polar.T_0.T, np.eye(4), atol=1e-6)
    assert np.abs(regimes.alignment(regimes.strongest(m), m)).max() <= 1 + 1e-9


def test_nothing_missing_is_the_plain_moments():
    Z, Y = correlated(0, 200, 4, 2)
    plain, made = ca.Moments.from_arrays(Z, Y), of(Z, Y)
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(made.completed(), field), getattr(plain, field))
    unlabelled = of(np.vstack([Z, Z]), np.vstack([Y, np.full(Y.shape, np.nan)]))  # the same rows again, without labels
    np.testing.assert_allclose(unlabelled.completed().cov_zy, plain.cov_zy, rtol=1e-9)
    np.testing.assert_allclose(unlabelled.completed().cov_y, plain.cov_y, rtol=1e-9)
    assert unlabelled.n == 400
    assert unlabelled.n_pairs.tolist() == [200, 200]


@pytest.mark.parametrize("blocks", [None, ((0, 1), (2,), (3,), (4,))])
def test_many_patterns_are_split_without_loss(monkeypatch, blocks):
    Z, Y = with_gaps(3, 400, 4, 5)
    Y[np.isnan(Y[:, 0]), 1] = np.nan
    Y[np.isnan(Y[:, 1]), 0] = np.nan
    unsplit = of(Z, Y)
    monkeypatch.setattr("covalign.moments.incomplete.SUMS_BYTES", 0)
    split = of(Z, Y, blocks)
    halves = of(Z[:200], Y[:200], blocks) + of(Z[200:], Y[200:], blocks)
    limit = 2 * len(split.blocks) + 2
    for few in (split, halves):
        assert len(few.parts) <= limit < len(unsplit.parts)
        assert few.n == 400
        assert few.n_pairs.tolist() == unsplit.n_pairs.tolist()
        a, b = few.completed(), unsplit.completed()
        np.testing.assert_allclose(a.cov_zy, b.cov_zy, rtol=1e-9)
        np.testing.assert_allclose(np.diag(a.cov_y), np.diag(b.cov_y), rtol=1e-9)
    chunks = incomplete_moments(((Z[i : i + 3], Y[i : i + 3]) for i in range(0, 400, 3)), blocks)
    np.testing.assert_array_equal(chunks.completed().cov_y, split.completed().cov_y)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("shares", [(0.1, 0.1, 0.1, 0.1, 0.1), (0.1, 0.9, 0.2, 0.8, 0.0), (0.9, 0.9, 0.9, 0.9, 0.9)])
def test_split_sums_are_those_of_the_rows_that_have_a_covariate(monkeypatch, shares, offset):
    Z, Y = correlated(8, 600, 4, 5, offset)
    Y[np.random.default_rng(8).random(Y.shape) < shares] = np.nan
    monkeypatch.setattr("covalign.moments.incomplete.SUMS_BYTES", 0)
    found = of(Z, Y)
    assert any(not part.counts for part in found.parts)
    np.testing.assert_allclose(found.cov_z, np.cov(Z.T, ddof=0), rtol=1e-8)
    for columns, seen in found.pairs:
        for i, p in enumerate(columns):
            o = ~np.isnan(Y[:, p])
            joint = np.cov(np.column_stack([Z, Y[:, p]])[o].T, ddof=0)
            assert seen.n == o.sum()
            np.testing.assert_allclose(seen.mean_z, Z[o].mean(axis=0), rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(seen.mean_y[i], Y[o, p].mean(), rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(seen.cov_z, joint[:4, :4], rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(seen.cov_zy[:, i], joint[:4, 4], rtol=1e-7, atol=1e-7)
            np.testing.assert_allclose(seen.cov_y[i, i], joint[4, 4], rtol=1e-7)
    chunks = incomplete_moments((Z[i : i + 7], Y[i : i + 7]) for i in range(0, 600, 7))
    assert chunks.parts.keys() == found.parts.keys()
    for part, m in found.parts.items():
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(chunks.parts[part], field), getattr(m, field))


def test_covariates_never_seen_together_are_independent_given_Z():
    Z, Y = correlated(4, 200, 4, 2)
    Y[:100, 0] = Y[100:, 1] = np.nan
    m = of(Z, Y).completed()
    B = np.linalg.solve(m.cov_z, m.cov_zy)
    assert m.cov_y[0, 1] == pytest.approx(B[:, 0] @ m.cov_z @ B[:, 1])


def test_few_labels_in_many_dimensions_do_not_explode():
    Z, Y = correlated(5, 205, 100, 1)
    Y[:102] = np.nan  # 103 labels, 100 dimensions: plain regression fits them exactly, and nothing else
    variance = of(Z, Y).completed().cov_y[0, 0]
    assert 0.3 < variance / np.nanvar(Y) < 2


def test_positive_semidefinite_keeps_variances():
    C = np.array([[4.0, 1.8, -1.8], [1.8, 1.0, 0.9], [-1.8, 0.9, 1.0]])
    assert np.linalg.eigvalsh(C)[0] < -0.1
    fixed = positive_semidefinite(C)
    np.testing.assert_allclose(np.diag(fixed), np.diag(C))
    assert np.linalg.eigvalsh(fixed)[0] > -1e-12
    np.testing.assert_array_equal(positive_semidefinite(fixed), fixed)


def test_bad_numbers_are_named():
    Z, Y = with_gaps(0, 20)
    Y[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"Y needs finite numbers.*column 1"):
        of(Z, Y)
    with pytest.raises(ValueError, match=r"Z needs finite numbers.*column 2"):
        of(np.where(np.arange(4) == 2, np.nan, Z), with_gaps(0, 20)[1])
    with pytest.raises(ValueError, match="at least one row"):
        incomplete_moments([])
    with pytest.raises(ValueError, match="Y needs 3 columns as before, got 2"):
        incomplete_moments([(Z, with_gaps(0, 20)[1]), (Z, Y[:, :2])])
