"""Cross-validation in the space of the rows gives what every training set gives by itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign._core.linalg import Whitening
from covalign.closed_form import regimes, shrinkage, shrinkage_search, validation, wide_rows
from covalign.closed_form.fold_packing import packed
from covalign.closed_form.pooled_correlation import Pairs
from covalign.closed_form.ridge_path import RidgePath
from covalign.closed_form.shrinkage import SHRINKAGE_GRID, Ridge, best_ridge, inner_sets, path_frame
from covalign.closed_form.splits import Split, mean_of_y, splits, training
from covalign.moments.gap_accumulator import fold_moments
from covalign.moments.incomplete import merged
from tests.core.test_ridge_path import wide

SCALES = ("raw", "root", "standard")


def fitted(n: int = 90, folds: int = 5, **more: object) -> ca.LatentAligner:
    Z, Y = wide(n)
    return ca.LatentAligner(folds=folds).fit(Z, Y, **more)


def penalty(buckets: list, folds: int, rho: float) -> float:
    n, count = merged(buckets).n, len(packed(buckets, folds))
    return n * (1 - 1 / count) * rho / (1 - rho)


def regressions(train: ca.Moments, D: np.ndarray, lam: float) -> np.ndarray:
    """(n S_z + lam D)^-1 n S_zy, in the columns of Z."""
    return np.linalg.solve(
        train.n * train.cov_z + lam * np.diag(D), train.n * train.cov_zy / np.sqrt(np.diag(train.cov_y))
    )


def left_out_sums(train: ca.Moments, split: Split, D: np.ndarray, lam: float, origin: np.ndarray) -> Pairs:
    B = regressions(train, D, lam)
    own = np.sum(B * (train.cov_z @ B), axis=0)
    return shrinkage._sums(RidgePath(B[:, None], own[None]).unit, split, origin)


@pytest.mark.parametrize("more", [{}, {"groups": np.arange(90) // 3}, {"folds": 3}])
def test_the_path_is_that_of_every_training_set(more):
    al = fitted(**more)
    checked = al._validated()
    assert isinstance(checked, validation.WideValidation)
    whole, made = merged(al._folds), splits(al._folds, al.folds)
    origin = mean_of_y(part for part in al._folds if part is not None)
    for scale in SCALES:
        D = regimes.penalty(whole, scale)
        for place in (3, 12, 20):
            lam = penalty(al._folds, al.folds, SHRINKAGE_GRID[place])
            sums = [left_out_sums(split.train, split, D, lam, origin) for split in made]
            slow = path_frame(sums, scale, SHRINKAGE_GRID[[place]])
            pd.testing.assert_frame_equal(checked._frame(scale, [place]), slow, rtol=1e-8)


def test_the_ends_of_the_grid_are_limits():
    checked = fitted()._validated()
    for scale in SCALES:
        ends = checked._frame(scale, [0, len(SHRINKAGE_GRID) - 1])["alignment"]
        rows, size = checked._rows, [of.left_out for of in checked._made]
        for alignment, lam in zip(ends, (1e-9, 1e9), strict=True):
            near = rows.without(scale, lam * checked._rows.largest(scale), size)
            sums = [checked._sums(one, of, of.left_out) for one, of in zip(near, checked._made, strict=True)]
            found = path_frame([validation._stacked([of]) for of in sums], scale, SHRINKAGE_GRID[:1])
            np.testing.assert_allclose(found["alignment"], alignment, atol=1e-5)


@pytest.mark.parametrize("folds", [5, 3])
def test_a_training_set_chooses_without_the_rows_left_out(folds):
    al, places = fitted(folds=folds), [4, 10, 16]
    checked, whole, origin = al._validated(), merged(al._folds), mean_of_y(al._folds)
    inner, wanted = inner_sets(packed(al._folds, folds))
    rows = [merged(al._folds[b] for b in piece) for _, piece in inner]
    lams = [penalty(al._folds, folds, rho) for rho in SHRINKAGE_GRID[places]]
    for scale in ("raw", "standard"):
        D = regimes.penalty(whole, scale)
        sums: dict[int, list[Pairs]] = {}
        for left_out, scored in wanted.items():
            train = training(merged(part for i, part in enumerate(rows) if i not in left_out))
            for fold, some in scored:
                split = Split(fold, train.moments, merged(rows[i] for i in some), [], train.known)
                each = [left_out_sums(train.moments, split, D, lam, origin) for lam in lams]
                sums.setdefault(fold, []).append(
                    Pairs(*(np.concatenate(part, axis=1) for part in zip(*each, strict=True)))
                )
        for fold, of_fold in sums.items():
            slow = path_frame(of_fold, scale, SHRINKAGE_GRID[places])
            pd.testing.assert_frame_equal(checked._nested_frame(fold, scale, places), slow, rtol=1e-8)
    for fold, ridge in enumerate(checked.ridges(al.shrinkage_path_, Ridge(0.1))):
        frames = [checked._nested_frame(fold, scale, range(25)) for scale in al.shrinkage_path_["scale"].unique()]
        assert ridge == best_ridge(pd.concat(frames, ignore_index=True))


def test_a_fit_without_a_fold_is_the_polar_form_of_its_training_set():
    al = fitted()
    checked, whole = al._validated(), merged(al._folds)
    ridges = [Ridge(0.1, "raw"), Ridge(0.3, "standard"), Ridge(0.0), Ridge(1.0, "root"), Ridge(0.1, "raw")]
    held = checked.held_out(al._polar(), ridges, Ridge(0.1), False)
    D = whole.cov_z.diagonal()
    for of, split, ridge in zip(held.folds, splits(al._folds, 5), ridges, strict=True):
        train = split.train
        L = train.root
        W = np.linalg.solve(L.T @ (L / D[:, None]), L.T / D)
        A = W @ regimes.standardised_cross_covariance(train)
        metric = regimes.penalty(whole, ridge.scale)
        B = train.cov_zy / metric[:, None] / np.sqrt(np.diag(train.cov_y))
        if ridge.shrinkage < 1:
            B = regressions(train, metric, penalty(al._folds, 5, ridge.shrinkage) if ridge.shrinkage else 1e-12)
        whitening = Whitening(train.cov_z, np.zeros(len(D), dtype=bool), L)
        whitening.rows = lambda F, W=W: F.T @ W
        span = (lambda V, L=L, B=B: L.T @ B @ V) if ridge.shrinkage else None
        slow = regimes.polar_of(regimes.Whitened(A, 1e-9, span, lambda at: at, whitening), whole.covariate_names)
        np.testing.assert_allclose(of.polar.T_0, slow.T_0, atol=1e-7 * np.abs(slow.T_0).max())
        np.testing.assert_allclose(of.polar.M, slow.M, atol=1e-8)
        assert of.n_train == train.n
        for part, own in zip(of.parts, split.parts, strict=True):
            same = own.shifted(-train.mean_z).transform(slow.T_0)
            np.testing.assert_allclose(part.cov_zy, same.cov_zy, atol=1e-7)


def test_all_levels_of_a_category_and_a_rare_one():
    """A level that one training set lacks, and dependent dummies."""
    Z, Y = wide()
    Y.loc[Y.index[:2], "stage"] = "rare"
    al = ca.LatentAligner(drop_first=False).fit(Z, Y)
    slow = ca.LatentAligner(drop_first=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "wide_rows", lambda parts: None)
        slow.fit(Z, Y)
        expected = slow.summary()
    assert al.summary()["held_out"].isna().tolist() == expected["held_out"].isna().tolist()
    # Scales of columns of all rows, not of a training set, change little.
    np.testing.assert_allclose(al.summary()["held_out"], expected["held_out"], atol=0.03)


def test_the_search_finds_the_best_of_the_grid(monkeypatch):
    for seed in range(2):
        Z, Y = wide(seed=seed)
        Y = Y[["stage"]]
        full = ca.LatentAligner().fit(Z, Y)
        with monkeypatch.context() as patch:
            patch.setattr(validation, "ALL_SHRINKAGES", 0)
            few = ca.LatentAligner().fit(Z, Y)
        both = few.shrinkage_path_.merge(full.shrinkage_path_, on=["scale", "shrinkage"], suffixes=("", "_full"))
        np.testing.assert_allclose(both["alignment"], both["alignment_full"], atol=1e-9)
        assert len(few.shrinkage_path_) < len(full.shrinkage_path_)
        best = full.shrinkage_path_["alignment"].max()
        assert best - few.shrinkage_path_["alignment"].max() < 2e-3


def test_single_precision_decides_nothing_else(monkeypatch):
    al = fitted()
    with monkeypatch.context() as patch:
        patch.setattr(wide_rows, "SINGLE_ROWS", 0)
        single = fitted()
        assert single._validated()._rows.inverse("standard", 100.0, single=True).dtype == np.float32
    path, exact = single.shrinkage_path_, al.shrinkage_path_
    np.testing.assert_allclose(path["alignment"], exact["alignment"], atol=1e-4)
    assert (path["alignment"] != exact["alignment"]).any()
    assert (single.shrinkage_, single.scale_) == (al.shrinkage_, al.scale_)
    np.testing.assert_array_equal(single.T_, al.T_)
    np.testing.assert_allclose(single.summary()["held_out"], al.summary()["held_out"], rtol=1e-9)


def test_copies_of_rows_take_the_other_route():
    Z, Y = wide()
    al = ca.LatentAligner().fit(np.vstack([Z[:60], Z[:30]]), Y)
    assert isinstance(al._validated(), validation.FoldValidation)


def test_steps_climb_to_the_highest_value():
    for best in range(25):
        assert shrinkage_search.highest(lambda i, best=best: -abs(i - best), 13, (4, 2, 1)) == best


def test_rows_keep_their_root():
    Z, Y = wide()
    m = ca.Moments.from_arrays(Z, Y[["age"]])
    assert m.known_root.shape == (210, 89)
    np.testing.assert_allclose(m.known_root @ m.known_root.T, m.cov_z, atol=1e-12 * np.trace(m.cov_z))
    parts = [ca.Moments.from_arrays(Z[a:b], Y[["age"]][a:b]) for a, b in ((0, 1), (1, 40), (40, 90))]
    joined = merged(parts)
    np.testing.assert_allclose(joined.known_root @ joined.known_root.T, m.cov_z, atol=1e-12 * np.trace(m.cov_z))
    many = ca.Moments.from_arrays(np.vstack([Z] * 3), np.tile(Y["age"], 3))
    assert many.known_root is None
    # A fold of many rows keeps none, whatever its size.
    Z, Y = np.tile(Z, (3, 1)) + np.arange(270)[:, None], np.tile(Y["age"], 3)
    assert all(part.known_root is None for part in fold_moments(Z, Y, 5))
