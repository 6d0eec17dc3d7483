"""Held-out numbers from fold moments equal those of fitting and testing on rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import covalign as ca
from covalign._core.linalg import to_correlation
from covalign.closed_form import heldout, regimes, shrinkage
from covalign.closed_form.fold_packing import packed
from covalign.closed_form.ridge_path import error_of, ridge_path
from covalign.exceptions import NotHeldOutWarning
from covalign.moments.block_sizes import bucket_count
from covalign.moments.fold_accumulator import fold_moments
from covalign.moments.gap_accumulator import incomplete_moments
from covalign.moments.incomplete import merged
from covalign.stream.folds import fold_of_rows
from tests.conftest import correlated, embedding, folds_of_rows, thorough


def pooled(z, y):
    """corr(z_p, y_p) over the rows that have y_p."""
    return np.array([np.corrcoef(*(v[~np.isnan(y[:, p]), p] for v in (z, y)))[0, 1] for p in range(y.shape[1])])


def left_out(Z, Y, folds, place):
    """z of every row, placed by ``place(training moments, its mean, rows)`` from the fit without its fold."""
    fold, z = folds_of_rows(Z, Y, folds), np.empty(Y.shape)
    for f in np.unique(fold):
        train = incomplete_moments([(Z[fold != f], Y[fold != f])]).completed()
        z[fold == f] = place(train, Z[fold == f] - Z[fold != f].mean(axis=0))
    return z


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_held_out_alignment_is_that_of_all_left_out_rows(gaps):
    Z, Y = correlated(0, 300, 6, 3)
    Y[np.random.default_rng(0).random(Y.shape) < gaps] = np.nan
    frame = ca.cross_validated_frontier(Z, Y, [0, 0.4, 1], shrinkage=0.2).set_index("lam")
    for lam in (0, 0.4, 1):
        z = left_out(Z, Y, 5, lambda m, rows, lam=lam: rows @ regimes.tunable(m, lam, shrinkage=0.2).T)
        np.testing.assert_allclose(frame.loc[lam, ["y0", "y1", "y2"]].to_numpy(float), pooled(z, Y), rtol=1e-8)
        assert frame.loc[lam, "alignment"] == pytest.approx(pooled(z, Y).mean())


@pytest.mark.parametrize("heavy", [False, True])
def test_standard_error_and_interval_are_those_of_a_jackknife_over_parts(heavy):
    Z, Y = correlated(3, 200, 8, 2)
    Y = np.exp(3 * Y / Y.std(axis=0)) if heavy else Y
    al = ca.LatentAligner().fit(Z, Y)
    bucket, fold = fold_of_rows(Z, Y, bucket_count(5, 10)), folds_of_rows(Z, Y, 5)
    chosen = ca.cross_validated_frontier(Z, Y).attrs["fold_shrinkages"]  # inside every training set
    z, own = np.empty(Y.shape), []
    for f in range(5):
        train = ca.Moments.from_arrays(Z[fold != f], Y[fold != f])
        T = regimes.tunable(train, 0.5, shrinkage=chosen[f])
        z[fold == f] = (Z[fold == f] - train.mean_z) @ T.T
        own.append(regimes.alignment(T, train))
    parts = np.unique(bucket)
    A = len(parts)
    table = al.summary()
    for p in range(2):
        r = np.corrcoef(z[:, p], Y[:, p])[0, 1]
        d = np.array([np.arctanh(np.corrcoef(z[bucket != b, p], Y[bucket != b, p])[0, 1]) for b in parts]) - np.arctanh(
            r
        )
        factor = 1 + 5 / 4 * (1 - (r / np.mean(own, axis=0)[p]) ** 2)
        sd = np.sqrt((A - 1) / A * np.sum(d**2) * (A + 1) / A * factor)
        y2 = (Y[:, p] - Y[:, p].mean()) ** 2 / Y[:, p].var()
        of_parts = [(np.sum(y2[bucket == b]) - np.sum(bucket == b)) ** 2 for b in parts]
        excess = max(0.0, np.sum(of_parts) / 200 * A / (A - 1) - 2)
        assert (excess > 10) == heavy
        freedom = min(A, 3 * np.sum(d**2) ** 2 / np.sum(d**4), A / (1 + excess * A / 400)) - 1
        t = stats.t.ppf(0.95, max(1, np.floor(freedom + 1e-9)))
        tail = min((r / (1 - r**2) / 2) ** 2 * excess / 200, 1.5 * sd**2)
        limits = np.tanh(np.arctanh(r) + t * np.array([-np.sqrt(sd**2 + tail), sd]))
        ratio = r / np.mean(own, axis=0)[p]
        share = np.maximum([ratio, ratio**2], limits**2)
        # A map that learned from all rows reaches more, if there is anything to learn.
        error, n_train = error_of(ca.Moments.from_arrays(Z, Y), al.shrinkage_), np.sum(fold != 0)
        d = 199 * error / (1 + error)
        gain = np.array([(n_train - 1) / 199, (n_train - 1 - d) / (199 - d)])
        low, high = np.where(limits > 0, limits / np.sqrt(share + (1 - share) * gain), limits)
        assert (low > 0) != heavy
        expected = [r, sd * (1 - r**2), low, high]
        np.testing.assert_allclose(
            table.loc[f"y{p}", ["held_out", "se", "low", "high"]].to_numpy(float), expected, rtol=1e-7
        )


@pytest.mark.parametrize("lam", [0.0, 0.5, 1.0])
def test_held_out_coupling_from_rows(lam):
    Z, Y = correlated(4, 240, 8, 3)
    frame = ca.cross_validated_frontier(Z, Y, [lam], shrinkage=0.1)
    fold = folds_of_rows(Z, Y, 5)

    def squares(C):
        return np.sum(C**2) - np.sum(np.diag(C) ** 2)

    whole = ca.Moments.from_arrays(Z, Y)
    T = regimes.tunable(whole, lam, shrinkage=0.1)
    expected = squares(np.corrcoef((Z @ T.T).T))
    for f in range(5):
        train = ca.Moments.from_arrays(Z[fold != f], Y[fold != f])
        T = regimes.tunable(train, lam, shrinkage=0.1)
        z = (Z[fold == f] - train.mean_z) @ T.T
        z /= np.sqrt(np.mean(z**2, axis=0))
        C = z.T @ z / len(z)
        rest = 1 - C[np.triu_indices(3, 1)] ** 2
        among = 2 * np.sum((1 - rest * len(z) / (len(z) - 1)) * (1 + 2 * rest / (len(z) + 2)))
        own = squares(np.corrcoef((Z[fold != f] @ T.T).T))
        expected += len(z) / 240 * (among - own) * (1 - len(z) / 240 * (1 - 8 / 240))
    assert frame["coupling"].iloc[0] == pytest.approx(max(0, expected), abs=1e-9)


@pytest.mark.parametrize("true", [0.0, 0.3, 0.7])
def test_the_squared_correlation_of_few_rows_is_fair(true):
    m, z = 15, np.random.default_rng(0).normal(size=(6000, 15, 2))
    z[:, :, 1] = true * z[:, :, 0] + np.sqrt(1 - true**2) * z[:, :, 1]
    C = np.einsum("rmp,rmq->rpq", z, z) / m
    found = [heldout.coupling_of_rows(heldout.CoupledFold(np.array([m]), c[None], np.eye(2), 100)) for c in C]
    assert np.mean(found) == pytest.approx(2 * true**2, abs=0.03)
    squares = np.array([to_correlation(c)[0, 1] ** 2 for c in C])
    assert np.mean(2 * (1 - (1 - squares) * m / (m - 1))) < 2 * true**2 + 0.01 - 0.06 * (true == 0.7)


@pytest.mark.parametrize("n_groups", [5, 7, 30])
def test_held_out_coupling_from_groups(n_groups):
    """From rows: groups of different sizes, one or more in a fold, and folds of different scales."""
    rng = np.random.default_rng(0)
    group = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=240 - n_groups)])
    z = rng.standard_normal((240, 3)) @ rng.standard_normal((3, 3)) + 0.3 * rng.standard_normal((n_groups, 3))[group]
    z *= (1 + group % 5)[:, None]
    fold, sizes = group % 5, np.bincount(group)
    made, left = [], [z[fold == f] for f in range(5)]
    in_folds = np.array([np.mean(rows**2, axis=0) for rows in left]) / np.mean(z**2, axis=0)
    in_groups = np.array([np.mean(z[group == g] ** 2, axis=0) for g in range(n_groups)]) / np.mean(z**2, axis=0)
    m = np.array([np.sum(n) ** 2 / np.sum(n**2) for n in (sizes[f::5] for f in range(5))])
    within = np.sum((in_groups - in_folds[np.arange(n_groups) % 5]) ** 2) / max(1, 3 * (n_groups - 5))
    chance = 2 * within * np.mean(1 / m)
    share = max(0, 1 - chance / np.mean((in_folds - 1) ** 2)) if n_groups > 5 else 0
    assert (0.05 < share < 0.99) == (n_groups == 30)
    expected = 9.0
    for f in range(5):
        C = np.array([z[group == g].T @ z[group == g] / sizes[g] for g in range(f, n_groups, 5)])
        made.append(heldout.CoupledFold(sizes[f::5], C, np.cov(z[fold != f].T), np.sum(fold != f)))
        u = left[f] / np.sqrt(np.mean(z**2, axis=0) * (1 + share * (in_folds[f] - 1)))
        C_own, others = np.corrcoef(z[fold != f].T), np.delete(sizes, np.arange(f, n_groups, 5))
        D, m_own = u.T @ u / len(u) - C_own, np.sum(others) ** 2 / np.sum(others**2)
        beyond = 2 * C_own * D + D**2 * m[f] / (m[f] + m_own)
        expected += len(u) / 240 * np.sum(beyond[~np.eye(3, dtype=bool)]) * (240 - len(u)) / 240
    assert heldout.coupling_on_new_rows(9.0, made, grouped=True) == pytest.approx(expected, rel=1e-9)
    assert expected > 0


@pytest.mark.parametrize("n_groups", [8, *thorough(5, 20)])
def test_held_out_coupling_of_few_groups_is_that_of_new_groups(n_groups):
    """Rows of a group are the same, so a group is worth one row, and a fold has one or a few."""
    rng, found = np.random.default_rng(0), []
    for _ in range(300):
        z = rng.standard_normal((n_groups, 3))
        folds = []
        for f in range(5):
            train, test = z[np.arange(n_groups) % 5 != f], z[np.arange(n_groups) % 5 == f]
            u = (test - train.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(train.T))).T
            folds.append(heldout.CoupledFold(np.full(len(u), 9), u[:, :, None] * u[:, None], np.eye(3), 9 * len(train)))
        of_map = np.linalg.inv(np.linalg.cholesky(np.cov(z.T)))
        found.append((heldout.coupling_on_new_rows(0.0, folds, True), heldout.coupling_of(of_map @ of_map.T)))
    reported, true = np.mean(found, axis=0)
    assert abs(reported - true) < 0.2 * true


def test_folds_are_equal_in_rows_labels_and_levels():
    rng = np.random.default_rng(0)
    for n in (30, 40, 60, 200):
        Z, Y = (
            rng.standard_normal((n, 4)),
            np.column_stack([rng.standard_normal(n), np.arange(n) < 5, np.arange(n) < 10.0]),
        )
        Y[10:, 0] = np.nan  # ten labels
        fold = folds_of_rows(Z, Y, 5)
        rows, labels, rare, levels = (np.bincount(fold, w, 5) for w in (None, ~np.isnan(Y[:, 0]), Y[:, 1], Y[:, 2]))
        assert len(rows) == 5
        assert np.ptp(rows) <= 2 + n // 20
        assert rare.max() <= 3  # rows that share a bucket stay together
        assert max(np.ptp(labels), np.ptp(levels)) <= 3


def assert_few_labels_fit(labels, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        Z = rng.standard_normal((300, 10))
        Y = Z[:, :2] + 0.5 * rng.standard_normal((300, 2))
        Y[rng.permutation(300)[labels:]] = np.nan
        assert np.isfinite(ca.LatentAligner(shrinkage=0.3).fit(Z, Y).transform(Z)).all()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotHeldOutWarning)  # three labels in one bucket
            al = ca.LatentAligner().fit(Z, Y)
        assert np.isfinite(al.transform(Z)).all()
        table = al.summary()
        judged = table["held_out"].notna()
        assert ((table["high"] - table["low"])[judged] > 0.05).all()


@pytest.mark.parametrize("labels", [3, *thorough(5, 10, 20)])
def test_few_labels_always_fit(labels):
    assert_few_labels_fit(labels, range(4))


def test_levels_that_cannot_be_held_out_do_not_overfit():
    rng = np.random.default_rng(0)
    Z, y = rng.standard_normal((150, 200)), np.zeros((150, 8))
    y[np.arange(8), np.arange(8)] = 1  # one row each
    with pytest.warns(NotHeldOutWarning, match="nothing can be held out"):
        al = ca.LatentAligner().fit(Z, y)
    assert al.shrinkage_ > 0.5
    assert al.summary()["held_out"].isna().all()
    noise = np.column_stack([y, rng.standard_normal(150)])
    al = ca.LatentAligner().fit(Z, noise)  # the ninth covariate can be held out
    assert al.summary().loc["y8", "low"] < 0 < al.summary().loc["y8", "high"]


@pytest.mark.parametrize("gaps", [False, True])
def test_the_shrinkage_path_is_that_of_ridge_regressions(gaps):
    Z, Y = correlated(1, 120, 30, 2)
    if gaps:
        Y[:40, 0] = np.nan
    path = ca.LatentAligner().fit(Z, Y).shrinkage_path_.set_index(["scale", "shrinkage"])["alignment"]["raw"]

    def predicted(m, rows, rho):
        B = np.linalg.solve((1 - rho) * m.cov_z + rho * np.mean(np.diag(m.cov_z)) * np.eye(30), m.cov_zy)
        return rows @ B / np.sqrt(np.sum(B * (m.cov_z @ B), axis=0))

    for rho in path.index[[0, 3, 12, 20, -1]]:
        z = left_out(Z, Y, 5, lambda m, rows, rho=rho: predicted(m, rows, rho))
        assert path[rho] == pytest.approx(pooled(z, Y).mean(), rel=1e-7)


def test_nested_choice_never_sees_the_left_out_fold():
    Z, Y = correlated(2, 150, 40, 2)
    buckets = fold_moments(Z, Y, 5)
    chosen, packs = shrinkage.nested_ridges(buckets, 5), packed(buckets, 5)
    for f in range(5):
        rest = [b for i, b in enumerate(buckets) if i not in packs[f]]
        path = shrinkage.shrinkage_path(rest)
        assert chosen[f] == shrinkage.best_ridge(path[path["scale"] == "raw"])


def test_with_many_folds_the_nested_choice_joins_those_of_a_training_set():
    Z, Y = correlated(2, 150, 40, 2)
    buckets = fold_moments(Z, Y, 10)
    chosen, packs = shrinkage.nested_ridges(buckets, 10), packed(buckets, 10)
    for f in range(10):
        rest = [merged(buckets[b] for b in pack) for i, pack in enumerate(packs) if i != f]
        path = shrinkage.shrinkage_path([merged(rest[i::4]) for i in range(4)])
        assert chosen[f] == shrinkage.best_ridge(path[path["scale"] == "raw"])


@pytest.mark.parametrize("labels", [80, *thorough(150)])
@pytest.mark.parametrize("groups", [None, 30])
def test_left_out_rows_take_no_part_in_the_choice_of_a_summary(labels, groups):
    """The summary is that of ``cross_validated_frontier``, and not that of the shrinkage chosen on the same folds."""
    Z, Y = embedding(1, 150, 100, 3)
    Y[labels:, 1] = np.nan
    of = None if groups is None else np.arange(150) % groups
    al, frame = ca.LatentAligner().fit(Z, Y, groups=of), ca.cross_validated_frontier(Z, Y, [0, 0.5, 1], groups=of)
    assert set(frame.attrs["fold_shrinkages"]) != {al.shrinkage_}
    for lam, row in frame[frame["regime"] != "exclusive"].set_index("lam").iterrows():
        table = al.at(lam).summary()
        np.testing.assert_allclose(table["held_out"], row[table.index].to_numpy(float), rtol=1e-9)
    held = al.frontier([0, 0.5, 1]).set_index("regime")
    found = frame.set_index("regime")
    np.testing.assert_allclose(held["held_out_alignment"], found.loc[held.index, "alignment"], rtol=1e-9)
    np.testing.assert_allclose(held["held_out_coupling"], found.loc[held.index, "coupling"], rtol=1e-9)


@pytest.mark.parametrize(("labels", "nested"), [(60, True), (2100, False)])
def test_with_many_labels_the_choice_for_all_rows_serves(labels, nested):
    Z, Y = embedding(7, 2100, 30, 2)
    Y[labels:, 0] = np.nan
    al = ca.LatentAligner().fit(Z, Y)
    fixed = ca.cross_validated_frontier(Z, Y, [0.5], shrinkage=al.shrinkage_)["alignment"].iloc[0]
    inside = ca.cross_validated_frontier(Z, Y, [0.5])["alignment"].iloc[0]
    assert al.scale_ == "raw"
    assert fixed != pytest.approx(inside, rel=1e-9)
    assert al.mean_alignment_["held_out"] == pytest.approx(inside if nested else fixed, rel=1e-9)


@pytest.mark.parametrize("folds", [2, 3, 4, 5, 10])
def test_any_number_of_folds(folds):
    Z, Y = embedding(3, 120, 100, 2)
    frame = ca.cross_validated_frontier(Z, Y, [0, 1], folds=folds)
    assert len(frame.attrs["fold_shrinkages"]) == folds
    assert min(frame.attrs["fold_shrinkages"]) > 0  # 100 dimensions, 120 rows: every training set wants some
    assert np.isfinite(frame[["alignment", "coupling", "alignment_se"]].to_numpy()).all()


def test_as_many_folds_as_rows_are_as_many_as_can_be_judged():
    Z, Y = correlated(7, 200, 4, 2)
    many, twenty = (ca.LatentAligner(folds=folds).fit(Z, Y) for folds in (200, 20))
    with pytest.raises(ValueError, match="at most the number of rows, 200"):
        ca.LatentAligner(folds=1000).fit(Z, Y)
    table = many.summary()
    assert (table["low"] < table["held_out"]).all()
    assert (table["held_out"] < table["high"]).all()
    np.testing.assert_allclose(many.mean_alignment_["held_out"], twenty.mean_alignment_["held_out"], atol=0.02)
    frame = ca.cross_validated_frontier(Z, Y, [1], folds=200)
    assert len(frame.attrs["fold_shrinkages"]) == 20  # ten rows each on average
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
    frame = ca.cross_validated_frontier(Z, pd.Series(pd.Categorical(group), name="g"), [0, 1], drop_first=False)
    assert frame["regime"].tolist() == ["independent", "strongest"]
    assert "'g_0', 'g_1', 'g_2'" in frame.attrs["exclusive"]
    assert frame.attrs["categories"]["g"]["reference"] is None
    frame = ca.cross_validated_frontier(Z, pd.Series(pd.Categorical(group), name="g"), [0, 1])
    assert frame["regime"].tolist() == ["independent", "strongest", "exclusive"]
    assert frame.attrs["categories"]["g"]["reference"] == "0"


@pytest.mark.parametrize("scale", ["root", "standard"])
def test_another_scale_is_the_ridge_of_rescaled_columns(scale):
    Z, Y = correlated(8, 100, 12, 2)
    Z = Z * np.exp(np.random.default_rng(0).uniform(-2, 2, 12))
    u = Z.std(axis=0) ** {"root": 0.5, "standard": 1.0}[scale]
    m, rescaled = ca.Moments.from_arrays(Z, Y), ca.Moments.from_arrays(Z / u, Y)
    for rho in (0.0, 0.1, 0.7, 1.0):
        expected = regimes.ridge(rescaled, rho) / u[:, None]
        np.testing.assert_allclose(regimes.ridge(m, rho, scale), expected, rtol=1e-8)
        np.testing.assert_allclose(
            regimes.turned(regimes.whitened_polar(m, rho, scale), "tunable"),
            regimes.tunable(rescaled, 0.5, shrinkage=rho) / u,
            rtol=1e-6,
            atol=1e-10,
        )
    path = ridge_path(m, shrinkage.SHRINKAGE_GRID, scale)
    B, variance = path.predictions(np.eye(12)), path.own
    for at in (3, 12, -1):
        expected = regimes.ridge(m, shrinkage.SHRINKAGE_GRID[at], scale)
        np.testing.assert_allclose(B[:, at], expected, rtol=1e-7)
        np.testing.assert_allclose(variance[at], np.sum(expected * (m.cov_z @ expected), axis=0), rtol=1e-7)


def test_the_scale_is_chosen_by_held_out_alignment():
    Z, Y = embedding(9, 150, 60, 2)  # scale is information: the first columns are the largest
    groups = np.arange(150)  # folds that do not depend on units
    units = np.exp(np.random.default_rng(1).uniform(-4, 4, 60))
    raw = ca.LatentAligner().fit(Z, Y, groups=groups)
    mixed = ca.LatentAligner().fit(Z / Z.std(axis=0) * units, Y, groups=groups)
    plain = ca.LatentAligner().fit(Z / Z.std(axis=0), Y, groups=groups)
    assert raw.scale_ == plain.scale_ == "raw"
    assert mixed.scale_ in ("root", "standard")
    at = [al.shrinkage_path_.set_index(["scale", "shrinkage"])["alignment"] for al in (raw, mixed, plain)]
    assert at[1].max() > at[1]["raw"].max()
    assert at[1].max() > at[2].max() - 0.01
    assert mixed.mean_alignment_["held_out"] > 0.5 * plain.mean_alignment_["held_out"]
    assert len(at[0]) == len(shrinkage.SHRINKAGE_GRID)  # nothing else was decomposed
    frame = ca.cross_validated_frontier(Z / Z.std(axis=0) * units, Y, [0], groups=groups)
    assert frame.attrs["scale"] == mixed.scale_


def test_the_scale_travels_with_the_model(tmp_path):
    Z, Y = embedding(9, 150, 60, 2)
    al = ca.LatentAligner().fit(Z / Z.std(axis=0) * np.exp(np.random.default_rng(1).uniform(-4, 4, 60)), Y)
    assert al.scale_ != "raw"
    al.save(tmp_path / "m.covalign")
    other = ca.load(tmp_path / "m.covalign")
    assert other.scale_ == al.scale_
    np.testing.assert_array_equal(other.T_, al.T_)
    pd.testing.assert_frame_equal(other.summary(), al.summary())
    pd.testing.assert_frame_equal(other.shrinkage_path_, al.shrinkage_path_)


def assert_alignment_never_falls(shrinkage, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, k, levels = int(rng.integers(30, 200)), int(rng.integers(4, 12)), int(rng.integers(3, 5))
        g = rng.integers(0, levels, n)
        Z = rng.standard_normal((levels, k))[g] * rng.uniform(0.1, 1.5) + rng.standard_normal((n, k))
        al = ca.LatentAligner(shrinkage=shrinkage).fit(Z, pd.DataFrame({"g": [f"l{i}" for i in g]}))
        path = np.array([al.at(lam).alignment_ for lam in np.linspace(0, 1, 9)])
        assert np.diff(path, axis=0).min() > -1e-9
        assert al.at(0).coupling_ < 1e-18


@pytest.mark.filterwarnings("ignore::covalign.exceptions.SingularTransformWarning")
@pytest.mark.parametrize("shrinkage", ["auto", 0.02, 0.4, 0.95])
def test_alignment_never_falls_along_lambda_with_dependent_dummies(shrinkage):
    assert_alignment_never_falls(shrinkage, range(12))


def with_a_category(seed, n=300, levels=4):
    """Z, and a category that its first dimensions know a little of, beside a number."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 12)) * np.linspace(2, 0.5, 12)
    level = np.argmax(Z[:, :levels] + 2 * rng.normal(size=(n, levels)), axis=1)
    return Z, pd.DataFrame({"kind": pd.Categorical(level), "dose": Z[:, 5] + rng.normal(size=n)})


def of_regressions(category, fold, dimensions):
    """The correlation of the whitened category with its regressions on the dimensions of each fit: left-out rows."""
    D = ca.covariates.encode(category.to_frame()).to_numpy()
    white = np.linalg.qr(D - D.mean(axis=0))[0]
    predicted = np.empty(white.shape)
    for f in np.unique(fold):
        z = dimensions(f)
        A, b = z[fold != f], white[fold != f]
        slope = np.linalg.lstsq(A - A.mean(axis=0), b - b.mean(axis=0), rcond=None)[0]
        predicted[fold == f] = (z[fold == f] - A.mean(axis=0)) @ slope
    return np.sum(predicted * white) / np.linalg.norm(predicted - predicted.mean(axis=0)) / np.linalg.norm(white)


@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_the_held_out_canonical_alignment_is_that_of_regressions_of_the_category_on_left_out_rows(lam):
    Z, Y = with_a_category(0)
    al = ca.LatentAligner(lam=lam).fit(Z, Y)
    numbers = ca.covariates.encode(Y).to_numpy()
    fold = folds_of_rows(Z, numbers, 5)
    chosen = ca.cross_validated_frontier(Z, Y).attrs["fold_shrinkages"]

    def dimensions(f):
        train = ca.Moments.from_arrays(Z[fold != f], numbers[fold != f])
        return Z @ regimes.tunable(train, lam, shrinkage=chosen[f])[:3].T

    found = al.category_alignment_.iloc[0]
    assert found["held_out"] == pytest.approx(of_regressions(Y["kind"], fold, dimensions), rel=1e-6)
    assert found["held_out"] < found["canonical"]
    about = al.summary().attrs["categories"]["kind"]
    assert (about["canonical"], about["canonical_held_out"]) == (found["canonical"], found["held_out"])
    assert about["about"].endswith(f"{found['canonical']:.2f} on fitted rows and {found['held_out']:.2f} on new ones.")
    nothing = ca.LatentAligner(shrinkage=0.1).fit(Z, Y)
    assert np.isnan(nothing.category_alignment_["held_out"].item())
    assert nothing.summary().attrs["categories"]["kind"]["about"].endswith("on fitted rows.")


def test_the_held_out_canonical_alignment_needs_no_second_pass_and_takes_gaps_and_groups():
    Z, Y = with_a_category(1)
    batches = ((Z[i : i + 50], Y[i : i + 50]) for i in range(0, 300, 50))
    whole, streamed = ca.LatentAligner().fit(Z, Y), ca.LatentAligner().fit(batches)
    assert streamed.category_alignment_["held_out"].item() == pytest.approx(
        whole.category_alignment_["held_out"].item(), rel=1e-7
    )
    gaps = Y.assign(kind=Y["kind"].where(np.arange(300) % 3 > 0), donor=np.arange(300) % 25)
    found = ca.LatentAligner().fit(Z, gaps, groups="donor").category_alignment_
    assert 0 < found["held_out"].item() < 1


def test_the_held_out_canonical_alignment_of_a_category_that_z_does_not_know_is_about_zero():
    found = [
        ca.LatentAligner()
        .fit(with_a_category(seed)[0], with_a_category(seed + 100)[1][["kind"]])
        .category_alignment_.iloc[0]
        for seed in range(12)
    ]
    assert abs(np.mean([of["held_out"] for of in found])) < 0.04
    assert np.mean([of["canonical"] for of in found]) > 0.08
