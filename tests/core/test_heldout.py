"""Held-out numbers from fold moments equal those of fitting and testing on rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import covalign as ca
from covalign.closed_form import heldout, regimes
from covalign.moments import incomplete
from covalign.moments.incomplete import IncompleteMoments
from covalign.moments.moments import fold_moments, fold_of_rows
from tests.conftest import correlated, embedding


def test_fold_moments_give_what_fitting_on_rows_gives():
    Z, Y = correlated(0, 300, 6, 3)
    frame = ca.cross_validated_frontier(Z, Y, [0, 0.4, 1], shrinkage=0.2)
    fold, aligned = fold_of_rows(Z, Y, 5), {lam: [] for lam in (0, 0.4, 1)}
    correlations = {lam: np.zeros((3, 3)) for lam in aligned}
    for f in range(5):
        train = ca.Moments.from_arrays(Z[fold != f], Y[fold != f])
        for lam, values in aligned.items():
            rows = Z[fold == f] @ regimes.tunable(train, lam, shrinkage=0.2).T
            values.append([np.corrcoef(rows[:, p], Y[fold == f, p])[0, 1] for p in range(3)])
            correlations[lam] += np.corrcoef(rows.T) * np.mean(fold == f)
    for lam, values in aligned.items():
        row = frame[frame["lam"] == lam].iloc[0]
        np.testing.assert_allclose(row[["y0", "y1", "y2"]].to_numpy(float), np.mean(values, axis=0), rtol=1e-8)
        assert row["alignment"] == pytest.approx(np.mean(values))
        assert row["alignment_se"] == pytest.approx(np.std(np.mean(values, axis=1), ddof=1) / np.sqrt(5))
        assert row["coupling"] == pytest.approx(np.sum((correlations[lam] - np.eye(3)) ** 2), abs=1e-10)


def test_left_out_rows_are_judged_by_the_pairs_they_have():
    Z, Y = correlated(0, 300, 6, 3)
    Y[np.random.default_rng(0).random(Y.shape) < 0.3] = np.nan
    frame = ca.cross_validated_frontier(Z, Y, [0.4], shrinkage=0.2)
    fold, aligned, correlations = fold_of_rows(Z, Y, 5), [], np.zeros((3, 3))
    for f in range(5):
        train = IncompleteMoments.from_batches([(Z[fold != f], Y[fold != f])]).completed()
        rows, y = Z[fold == f] @ regimes.tunable(train, 0.4, shrinkage=0.2).T, Y[fold == f]
        there = ~np.isnan(y)
        aligned.append([np.corrcoef(rows[there[:, p], p], y[there[:, p], p])[0, 1] for p in range(3)])
        correlations += np.corrcoef(rows.T) * np.mean(fold == f)
    row = frame.iloc[0]
    np.testing.assert_allclose(row[["y0", "y1", "y2"]].to_numpy(float), np.mean(aligned, axis=0), rtol=1e-8)
    assert row["coupling"] == pytest.approx(np.sum((correlations - np.eye(3)) ** 2), abs=1e-10)


def test_shrinkage_with_gaps_is_chosen_by_observed_pairs():
    Z, Y = correlated(1, 120, 30, 2)
    Y[:40, 0] = np.nan
    path = heldout.shrinkage_path(incomplete.fold_moments(Z, Y, 5)).set_index("shrinkage")["alignment"]
    fold = fold_of_rows(Z, Y, 5)
    for rho in path.index[[3, 12, -1]]:
        scores = []
        for f in range(5):
            train = IncompleteMoments.from_batches([(Z[fold != f], Y[fold != f])]).completed()
            for p in range(2):
                there = (fold == f) & ~np.isnan(Y[:, p])
                scores.append(np.corrcoef(Z[there] @ regimes.ridge(train, rho)[:, p], Y[there, p])[0, 1])
        assert path[rho] == pytest.approx(np.mean(scores), rel=1e-7)


def test_interval_is_students_on_fishers_scale():
    per_fold = np.array([[0.5, 1.0], [0.6, 1.0], [0.7, np.nan]])
    low, high = heldout.interval(per_fold, level=0.9)
    expected = stats.t.interval(0.9, 2, *(f(np.arctanh(per_fold[:, 0])) for f in (np.mean, stats.sem)))
    np.testing.assert_allclose([low[0], high[0]], np.tanh(expected))
    np.testing.assert_allclose([low[1], high[1]], 1)


def test_shrinkage_path_equals_ridge_fold_by_fold():
    Z, Y = correlated(1, 120, 30, 2)
    path = heldout.shrinkage_path(fold_moments(Z, Y, 5)).set_index("shrinkage")["alignment"]
    fold = fold_of_rows(Z, Y, 5)
    for rho in path.index[[0, 3, 12, 20, -1]]:
        scores = []
        for f in range(5):
            train, test = (ca.Moments.from_arrays(Z[part], Y[part]) for part in (fold != f, fold == f))
            ridged = (1 - rho) * train.cov_z + rho * np.mean(np.diag(train.cov_z)) * np.eye(30)
            B = np.linalg.solve(ridged, train.cov_zy)
            scores.append(regimes.alignment(B.T, test).mean())
        assert path[rho] == pytest.approx(np.mean(scores), rel=1e-7)


def test_nested_choice_never_sees_the_left_out_fold():
    Z, Y = correlated(2, 150, 40, 2)
    buckets = fold_moments(Z, Y, 5)
    chosen = heldout.nested_shrinkages(buckets, 5)
    for f in range(5):
        alone = heldout.best_shrinkage(heldout.shrinkage_path([b for i, b in enumerate(buckets) if i != f]))
        assert chosen[f] == alone


@pytest.mark.parametrize("folds", [2, 3, 4, 5, 10])
def test_any_number_of_folds(folds):
    Z, Y = embedding(3, 120, 100, 2)
    frame = ca.cross_validated_frontier(Z, Y, [0, 1], folds=folds)
    assert len(frame.attrs["fold_shrinkages"]) == folds
    assert min(frame.attrs["fold_shrinkages"]) > 0  # 100 dimensions, 120 rows: every training set wants some
    assert np.isfinite(frame[["alignment", "coupling", "alignment_se"]].to_numpy()).all()


def test_as_many_folds_as_rows_are_as_many_as_can_be_judged():
    Z, Y = correlated(7, 200, 4, 2)
    many, twenty = (ca.LatentAligner(folds=folds).fit(Z, Y) for folds in (1000, 20))
    table = many.summary()
    assert (table["low"] < table["held_out"]).all()
    assert (table["held_out"] < table["high"]).all()
    np.testing.assert_allclose(many.mean_alignment_["held_out"], twenty.mean_alignment_["held_out"], atol=0.02)
    frame = ca.cross_validated_frontier(Z, Y, [1], folds=200)
    assert len(frame.attrs["fold_shrinkages"]) == 20  # ten rows each
    five = ca.cross_validated_frontier(Z, Y, [1])
    np.testing.assert_allclose(frame["alignment"].iloc[0], five["alignment"].iloc[0], atol=0.02)


def test_held_out_is_below_in_sample_where_dimensions_are_many():
    Z, Y = embedding(4, 120, 100, 3)
    frame = ca.cross_validated_frontier(Z, Y, [0, 0.5, 1], shrinkage=0.0)
    assert (frame["alignment"] < frame["alignment_in_sample"] - 0.05).all()
    assert (ca.cross_validated_frontier(Z, Y, [0, 0.5, 1])["alignment"] > frame["alignment"]).all()


def test_row_order_does_not_matter():
    Z, Y = correlated(5, 200, 20, 2)
    order = np.random.default_rng(0).permutation(200)
    a, b = ca.cross_validated_frontier(Z, Y, [0, 1]), ca.cross_validated_frontier(Z[order], Y[order], [0, 1])
    pd.testing.assert_frame_equal(a, b, rtol=1e-7)


def test_a_level_rarer_than_the_folds():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((100, 5))
    rare = np.zeros(100)
    rare[:3] = 1
    frame = ca.cross_validated_frontier(Z, pd.DataFrame({"x": Z[:, 0], "rare": rare}), [0, 1])
    assert np.isfinite(frame["alignment"]).all()  # folds without a positive are left out of that covariate's mean


def test_missing_rows_and_names():
    Z, Y = correlated(6, 100, 4, 2)
    table = pd.DataFrame(Y, columns=["age", "dose"])
    table.loc[3, "age"] = np.nan
    for rows in (Z, Z.tolist(), pd.DataFrame(Z)):
        frame = ca.cross_validated_frontier(rows, table, [0.5], missing="drop")
        assert frame.attrs["n"] == 99
    assert {"age", "dose"} <= set(frame.columns)
    with pytest.raises(ValueError, match="column 'age'"):
        ca.cross_validated_frontier(Z, table, missing="raise")
    assert ca.cross_validated_frontier(Z, table).attrs["n_pairs"] == {"age": 99, "dose": 100}
    with pytest.raises(ValueError, match="folds needs a whole number"):
        ca.cross_validated_frontier(Z, Y, folds=1)
    with pytest.raises(ValueError, match="same number of rows"):
        ca.cross_validated_frontier(Z, Y[:50])
    with pytest.raises(ValueError, match="got 50 and 100"):
        ca.cross_validated_frontier(Z[:50], table, missing="drop")
    with pytest.raises(ValueError, match="at least"):
        ca.cross_validated_frontier(Z[:2], Y[:2])


def test_exclusive_point_is_left_out_with_a_reason_where_it_does_not_exist():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 300)
    Z = np.eye(3)[group] @ rng.standard_normal((3, 4)) + rng.standard_normal((300, 4))
    frame = ca.cross_validated_frontier(Z, pd.Series(pd.Categorical(group), name="g"), [0, 1])
    assert frame["regime"].tolist() == ["independent", "strongest"]
    assert "'g_0', 'g_1', 'g_2'" in frame.attrs["exclusive"]
