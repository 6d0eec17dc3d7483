"""Erasure against least-squares concept erasure (LEACE), written here from its mathematics: what goes, at what cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

import covalign as ca
from covalign import LatentAligner
from covalign.closed_form import shrinkage, splits
from covalign.exceptions import SingularTransformWarning
from covalign.moments.block_sizes import bucket_count
from covalign.moments.fold_accumulator import fold_moments
from tests.conftest import correlated, embedding


def leace(Z: np.ndarray, C: np.ndarray, rho: float = 0.0) -> np.ndarray:
    """P = I - W^+ Q W: W the inverse root of S, Q the orthogonal projection onto the columns of W S_zc.

    S is the covariance, mixed with rho parts of the isotropic one of the same trace.
    """
    Zc, Cc = Z - Z.mean(0), C - C.mean(0)
    S = Zc.T @ Zc / len(Z)
    S = (1 - rho) * S + rho * np.trace(S) / len(S) * np.eye(len(S))
    values, vectors = np.linalg.eigh(S)
    kept = values > values[-1] * len(S) * 1e-13
    root = np.sqrt(values[kept])
    W = (vectors[:, kept] / root) @ vectors[:, kept].T
    W_inverse = (vectors[:, kept] * root) @ vectors[:, kept].T
    U, d, _ = np.linalg.svd(W @ (Zc.T @ Cc / len(Z)), full_matrices=False)
    U = U[:, d > 1e-8 * d[0]]
    return np.eye(len(S)) - W_inverse @ U @ U.T @ W


def erased(Z: np.ndarray, mean: np.ndarray, P: np.ndarray) -> np.ndarray:
    return mean + (Z - mean) @ P.T


@given(seed=st.integers(0, 10**6), shape=st.sampled_from([(200, 8), (40, 60)]), rho=st.sampled_from([0.0, 0.2, 0.9]))
def test_erasing_is_leace_with_this_shrinkage(seed, shape, rho):
    Z, Y = correlated(seed, *shape, p=3)
    P = leace(Z, Y[:, [0, 2]], rho)
    ours = LatentAligner(shrinkage=rho).fit(Z, Y).erase(Z, ["y0", "y2"])
    np.testing.assert_allclose(ours, erased(Z, Z.mean(0), P), atol=1e-6 * np.abs(Z).max())


def test_dependent_dummies_are_erased_as_leace_does():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 300)
    Z = rng.standard_normal((300, 6)) + rng.standard_normal((3, 6))[level]
    dummies = np.eye(3)[level]  # they add up to one
    with pytest.warns(SingularTransformWarning):
        al = LatentAligner("strongest", shrinkage=0.0).fit(Z, dummies)
    np.testing.assert_allclose(
        al.erase(Z, ["y0", "y1", "y2"]), erased(Z, Z.mean(0), leace(Z, dummies[:, :2])), atol=1e-8
    )


@pytest.mark.parametrize(("n", "k"), [(400, 20), (150, 300)])
def test_a_probe_trained_on_erased_rows_knows_nothing_of_others(n, k):
    Z, Y = embedding(1, n, k, 3)
    new, truth = embedding(2, 500, k, 3)
    label = (Y[:, 0] > 0).astype(float)
    al = LatentAligner().fit(Z, np.column_stack([label, Y[:, 1:]]))
    before = LogisticRegression(C=0.1).fit(Z, label)
    assert roc_auc_score(truth[:, 0] > 0, before.decision_function(new)) > 0.75
    blind, blind_new = al.erase(Z, "y0"), al.erase(new, "y0")
    for probe in (LogisticRegression(C=0.1, tol=1e-10, max_iter=1000), Ridge(1.0)):
        assert np.abs(probe.fit(blind, label).coef_).max() < 1e-6  # nothing to learn
    # What the erased rows of others still hold of it, a probe needs these others' labels to find.
    fresh = Ridge(float(k)).fit(blind_new[:250], truth[:250, 0]).predict(blind_new[250:])
    raw = Ridge(float(k)).fit(new[:250], truth[:250, 0]).predict(new[250:])
    assert abs(np.corrcoef(fresh, truth[250:, 0])[0, 1]) < np.corrcoef(raw, truth[250:, 0])[0, 1] - 0.1


def test_a_fresh_probe_finds_ever_less_as_rows_grow():
    new, truth = embedding(9, 4000, 20, 2)
    found = []
    for n in (100, 1000, 10_000):
        Z, Y = embedding(3, n, 20, 2)
        blind = LatentAligner().fit(Z, Y).erase(new, "y0")
        probe = np.linalg.lstsq(blind[:2000] - blind[:2000].mean(0), truth[:2000, 0], rcond=None)[0]
        found.append(np.corrcoef(blind[2000:] @ probe, truth[2000:, 0])[0, 1])
    assert found[0] > 0.15
    assert abs(found[2]) < 0.06 < found[0]


def test_others_keep_what_they_do_not_share():
    Z, Y = embedding(4, 2000, 30, 3)  # independent covariates
    new, truth = embedding(5, 500, 30, 3)
    al = LatentAligner("strongest").fit(Z, Y)
    before, after = (
        ca.metrics.alignment(al.transform(rows)[:, 1:], truth[:, 1:]) for rows in (new, al.erase(new, "y0"))
    )
    assert abs(after - before) < 0.01


# -- the shrinkage of erasing -----------------------------------------------------------------------------------------


def test_the_path_of_changes_is_what_erasing_left_out_rows_does():
    Z, Y = embedding(6, 120, 80, 2)
    folds = fold_moments(Z, Y, 3)
    path = shrinkage.erasure_path(folds).set_index("shrinkage")["change"]
    at = int(len(path) // 2)
    rho, seen = float(path.index[at]), []
    for split in splits.splits(folds):
        total = np.trace(split.train.cov_z)
        for p in range(2):
            s = split.train.cov_zy[:, [p]] / np.sqrt(split.train.cov_y[p, p])
            S = (1 - rho) * split.train.cov_z + rho * total / 80 * np.eye(80)
            gone = s @ np.linalg.inv(s.T @ np.linalg.inv(S) @ s) @ s.T @ np.linalg.inv(S)  # I - P
            seen.append(np.trace(gone @ split.test.cov_z @ gone.T) / total)
    np.testing.assert_allclose(path.iloc[at], np.mean(seen), rtol=1e-8)


def test_the_shrinkage_with_the_least_held_out_change_is_used():
    Z, Y = embedding(2, 200, 300, 4)
    al = LatentAligner().fit(Z, Y)
    path = shrinkage.erasure_path(fold_moments(Z, Y, bucket_count(5, 304)), 5)
    rho = path["shrinkage"][path["change"].argmin()]
    assert rho != al.shrinkage_
    np.testing.assert_allclose(al.erase(Z, "y0"), erased(Z, Z.mean(0), leace(Z, Y[:, [0]], rho)), atol=1e-8)
    np.testing.assert_allclose(al.at(lam=1).erase(Z, "y0"), al.erase(Z, "y0"), atol=1e-12)


def test_a_fixed_shrinkage_is_obeyed():
    Z, Y = embedding(0, 60, 90, 2)
    np.testing.assert_allclose(
        LatentAligner(shrinkage=0.0).fit(Z, Y).erase(Z, "y1"), erased(Z, Z.mean(0), leace(Z, Y[:, [1]])), atol=1e-6
    )


def test_erasing_after_more_rows_chooses_anew():
    Z, Y = embedding(7, 300, 200, 2)
    al = LatentAligner().partial_fit(Z[:100], Y[:100])
    al.erase(Z[:2], "y0")
    al.partial_fit(Z[100:], Y[100:])
    np.testing.assert_allclose(al.erase(Z, "y0"), LatentAligner().fit(Z, Y).erase(Z, "y0"), atol=1e-8)
