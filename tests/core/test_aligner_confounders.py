"""Confounders in LatentAligner: the same as least squares by hand on the right rows, wherever rows come from."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import covalign as ca
from covalign import LatentAligner
from covalign._core.linalg import positive_semidefinite
from covalign.closed_form import regimes, shrinkage
from covalign.closed_form.fold_packing import packed
from covalign.moments import gap_accumulator
from tests.conftest import correlated, embedding, folds_of_rows, thorough

REGIMES = ["independent", "tunable", "strongest", "exclusive"]


def confounded(seed: int, n: int = 300, k: int = 6, p: int = 3, gaps: float = 0.0):
    """Z and Y that both depend, much, on a batch and an age; the two of them as a table; Y possibly with gaps."""
    Z, Y = correlated(seed, n, k, p)
    rng = np.random.default_rng([seed, 1])
    C = pd.DataFrame({"batch": rng.choice(["b0", "b1", "b2", "b3"], n), "age": rng.normal(50, 10, n)})
    D = coded(C)
    Z, Y = Z + D @ rng.normal(0, 5, (D.shape[1], k)), Y + D @ rng.normal(0, 5, (D.shape[1], p))
    return Z, np.where(rng.random(Y.shape) < gaps, np.nan, Y), C


def coded(C: pd.DataFrame) -> np.ndarray:
    """[1 dummies age]: another coding than the library's."""
    levels = np.array(["b0", "b1", "b2"])
    age = (C["age"].to_numpy() - 50) / 10
    return np.column_stack([np.ones(len(C)), C["batch"].to_numpy()[:, None] == levels, age]).astype(float)


def fit(D: np.ndarray, M: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(D, M, rcond=None)[0]


def left(D: np.ndarray, M: np.ndarray) -> np.ndarray:
    return M - D @ fit(D, M)


def by_hand(Z: np.ndarray, Y: np.ndarray, D: np.ndarray):
    """Moments of what D leaves of Z and of Y, and the coefficients of both, row by row.

    With gaps: y = b'z + d'b_d + e, b by the covariances of what D leaves on the rows that have y, steadied by all rows.
    """
    K, P, there = Z.shape[1], Y.shape[1], ~np.isnan(Y)
    B_z, z_left = fit(D, Z), left(D, Z)
    S_z = z_left.T @ z_left / len(Z)
    b, b_y, e = np.empty((K, P)), np.empty((D.shape[1], P)), np.empty(Y.shape)
    for p in range(P):
        o = there[:, p]
        z, y, n_p = left(D[o], Z[o]), left(D[o], Y[o, p]), o.sum()
        b[:, p] = np.linalg.solve((z.T @ z + K * S_z) / (n_p + K), z.T @ y / n_p)
        b_d = fit(D[o], Y[o, p] - Z[o] @ b[:, p])
        e[:, p] = Y[:, p] - Z @ b[:, p] - D @ b_d
        b_y[:, p] = b_d + B_z @ b[:, p]
    cov_e = np.empty((P, P))
    for p in range(P):
        for q in range(P):
            both = there[:, p] & there[:, q]
            cov_e[p, q] = np.cov(e[both, p], e[both, q], ddof=0)[0, 1]
    m = ca.Moments.from_covariances(S_z, S_z @ b, b.T @ S_z @ b + positive_semidefinite(cov_e), n=len(Z))
    return m, B_z, b_y


# -- the fit ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("shrinkage", [0.0, 0.2])
def test_it_is_the_fit_of_residuals(regime, shrinkage):
    Z, Y, C = confounded(0)
    D = coded(C)
    al = LatentAligner(regime, shrinkage=shrinkage).fit(Z, Y, confounders=C)
    hand = LatentAligner(regime, shrinkage=shrinkage).fit(left(D, Z), left(D, Y))
    for field in ("cov_z", "cov_zy", "cov_y"):
        np.testing.assert_allclose(getattr(al.moments_, field), getattr(hand.moments_, field), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(al.moments_.mean_z, Z.mean(axis=0))
    np.testing.assert_allclose(al.moments_.mean_y, Y.mean(axis=0))
    np.testing.assert_allclose(al.transform_, hand.transform_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(al.alignment_, hand.alignment_, rtol=1e-8)
    assert al.coupling_ == pytest.approx(hand.coupling_, abs=1e-9)
    new_Z, _, new_C = confounded(1)
    expected = hand.transform(new_Z - coded(new_C) @ fit(D, Z))
    np.testing.assert_allclose(al.transform(new_Z, confounders=new_C), expected, rtol=1e-7, atol=1e-8)


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.5))
def test_with_gaps_it_is_the_formula(seed, share):
    Z, Y, C = confounded(seed, 150, gaps=share)
    al = LatentAligner(shrinkage=0.0).fit(Z, Y, confounders=C)
    expected, *_ = by_hand(Z, Y, coded(C))
    for field in ("cov_z", "cov_zy", "cov_y"):
        a, b = getattr(al.moments_, field), getattr(expected, field)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7 * np.abs(b).max(), err_msg=field)
    assert al.n_pairs_.tolist() == (~np.isnan(Y)).sum(axis=0).tolist()


def test_the_formula_by_hand_is_least_squares_where_nothing_is_missing():
    Z, Y, C = confounded(0)
    m, _, b_y = by_hand(Z, Y, coded(C))
    np.testing.assert_allclose(m.cov_zy, left(coded(C), Z).T @ left(coded(C), Y) / len(Z), atol=1e-9)
    np.testing.assert_allclose(b_y, fit(coded(C), Y), atol=1e-8)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_what_confounders_add_to_Z_and_Y_changes_nothing(gaps):
    Z, Y, C = confounded(2, gaps=gaps)
    D, rng = coded(C), np.random.default_rng(0)
    more = (M + D @ rng.normal(0, 100, (D.shape[1], M.shape[1])) for M in (Z, Y))
    a = LatentAligner(shrinkage=0.1).fit(Z, Y, confounders=C)
    b = LatentAligner(shrinkage=0.1).fit(*more, confounders=C)
    np.testing.assert_allclose(a.transform_, b.transform_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(a.alignment_, b.alignment_, rtol=1e-7)


def test_labels_missing_at_random_given_Z_and_the_batch_do_not_mislead():
    Z, Y, C = confounded(3, 20_000, 4, 2)
    rng = np.random.default_rng(0)
    D = coded(C)
    drive = left(D, Z) @ rng.standard_normal(4) + 3 * D[:, 2]
    gone = rng.random(len(Z)) < 1 / (1 + np.exp(-2 * drive / drive.std()))
    some = np.where(gone[:, None], np.nan, Y)
    whole, partly = (LatentAligner(shrinkage=0.0).fit(Z, y, confounders=C) for y in (Y, some))
    np.testing.assert_allclose(partly.alignment_, whole.alignment_, atol=0.02)
    np.testing.assert_allclose(partly.transform_, whole.transform_, atol=0.05 * np.abs(whole.transform_).max())


@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("size", [7, *thorough(1, 100)])
def test_batches_equal_one_fit(size, gaps):
    Z, Y, C = confounded(4, 120, gaps=gaps)
    C["batch"] = pd.Categorical(C["batch"])
    whole, parts = LatentAligner().fit(Z, Y, confounders=C), LatentAligner()
    for i in range(0, 120, size):
        parts.partial_fit(Z[i : i + size], Y[i : i + size], confounders=C[i : i + size])
    assert parts.shrinkage_ == whole.shrinkage_
    assert parts.confounder_names_ == whole.confounder_names_
    np.testing.assert_allclose(parts.transform_, whole.transform_, rtol=1e-7, atol=1e-9)
    pd.testing.assert_frame_equal(parts.summary(), whole.summary(), rtol=1e-6)
    one = parts.transform(Z[:3], confounders=C[:3])
    np.testing.assert_allclose(one, whole.transform(Z[:3], confounders=C[:3]), atol=1e-7)


@pytest.mark.parametrize("gaps", [0.0, *thorough(0.2)])
def test_any_coding_of_the_batch_gives_the_same_answer(gaps):
    Z, Y, C = confounded(5, 200, 10, gaps=gaps)
    levels = [f"b{i}" for i in range(4)]
    dummies = (C["batch"].to_numpy()[:, None] == levels).astype(float)
    age = C[["age"]].to_numpy()
    contrasts = dummies @ np.array([[1, 1, 1], [-1, 1, 1], [0, -2, 1], [0, 0, -3]])
    codings = [
        C,
        C.assign(batch=pd.Categorical(C["batch"], categories=[*levels[::-1], "never"])),
        np.hstack([dummies, age]),
        np.hstack([dummies[:, 1:], age]),
        np.hstack([contrasts, 1e3 * age, np.ones((200, 1)), age]),
    ]
    first, *others = (LatentAligner(keep_rest=False).fit(Z, Y, confounders=coding) for coding in codings)
    for other in others:
        assert other.shrinkage_ == first.shrinkage_
        np.testing.assert_allclose(other.transform_, first.transform_, rtol=1e-6, atol=1e-8)
        pd.testing.assert_frame_equal(other.summary(), first.summary(), rtol=1e-6)
    a, b = (ca.cross_validated_frontier(Z, Y, [0, 1], confounders=coding) for coding in codings[:2])
    pd.testing.assert_frame_equal(a, b, rtol=1e-6)


def test_row_order_does_not_matter_and_tables_are_matched_by_index():
    Z, Y, C = confounded(6, 200, gaps=0.1)
    names = [f"s{i}" for i in range(200)]
    Zf, Yf, Cf = (pd.DataFrame(M, index=names).rename(columns=str) for M in (Z, Y, C.set_axis(names)))
    Yf.columns = ["y0", "y1", "y2"]
    plain = LatentAligner().fit(Z, Y, confounders=C)
    order = np.random.default_rng(0).permutation(200)
    larger = pd.concat([Cf, Cf.iloc[:3].set_axis(["other1", "other2", "other3"]).assign(batch=None)])
    for tables in (
        (Zf, Yf.iloc[order], Cf.iloc[order[::-1]]),
        (Zf, Yf, larger.iloc[::-1]),
        (Z, Yf, Cf.iloc[order]),  # rows of Y are those of Z, and have names
        (Zf, Y, Cf.iloc[order]),
        (Z[order], Y[order], C.iloc[order]),
    ):
        al = LatentAligner().fit(*tables[:2], confounders=tables[2])
        np.testing.assert_allclose(al.transform_, plain.transform_, rtol=1e-6, atol=1e-9)
        assert al.shrinkage_ == plain.shrinkage_
    out = plain.transform(Z, confounders=C)
    together = LatentAligner().fit_transform(Z, Yf, confounders=Cf.iloc[order])
    np.testing.assert_allclose(together, out, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(plain.transform(Zf.to_numpy(), confounders=C), out)
    al = LatentAligner().fit(Zf, Yf, confounders=Cf)
    np.testing.assert_allclose(al.transform(Zf.iloc[order], confounders=larger), out[order], rtol=1e-6, atol=1e-8)


def test_columns_of_Y_can_be_named():
    Z, Y, C = confounded(7, 200)
    table = pd.DataFrame(Y, columns=["x", "y", "z"]).assign(**C)
    apart = LatentAligner().fit(Z, table[["x", "y", "z"]], confounders=C)
    for names in (["batch", "age"], ("batch", "age")):
        al = LatentAligner().fit(Z, table, confounders=names)
        assert al.covariate_names_ == ["x", "y", "z"]
        np.testing.assert_allclose(al.transform_, apart.transform_, rtol=1e-9)
    assert al.confounder_names_ == ["batch_b0", "batch_b1", "batch_b2", "batch_b3", "age"]
    np.testing.assert_allclose(al.transform(Z, confounders=table), apart.transform(Z, confounders=C))
    together = LatentAligner().fit_transform(Z, table, confounders=["batch", "age"])
    np.testing.assert_allclose(together, apart.transform(Z, confounders=C))
    parts = LatentAligner().partial_fit(Z[:100], table[:100], confounders=["batch", "age"])
    parts.partial_fit(Z[100:150], table[100:150])  # the same columns again
    parts.partial_fit(Z[150:], table[["x", "y", "z"]][150:], confounders=C[150:])
    np.testing.assert_allclose(parts.transform_, apart.transform_, rtol=1e-7, atol=1e-9)
    alone = LatentAligner().fit(Z, table[["x", "batch"]], confounders="batch")
    assert alone.covariate_names_ == ["x"]
    labels = C["batch"].tolist()
    by_list = LatentAligner().fit(Z, table[["x"]], confounders=labels)
    np.testing.assert_allclose(by_list.transform_, alone.transform_, rtol=1e-9)
    np.testing.assert_allclose(by_list.transform(Z[:9], confounders=labels[:9]), alone.transform(Z, confounders=C)[:9])
    a = ca.cross_validated_frontier(Z, table, [0.5], confounders=["batch", "age"])
    b = ca.cross_validated_frontier(Z, table[["x", "y", "z"]], [0.5], confounders=C)
    pd.testing.assert_frame_equal(a, b)


def test_dropped_rows_take_their_confounders_along():
    Z, Y, C = confounded(8, 200, gaps=0.1)
    complete = ~np.isnan(Y).any(axis=1)
    holes = C.copy()
    holes.loc[~complete, "age"] = np.nan  # nobody asks for these
    dropped = LatentAligner(missing="drop").fit(Z, Y, confounders=holes)
    chosen = LatentAligner().fit(Z[complete], Y[complete], confounders=C[complete])
    np.testing.assert_allclose(dropped.transform_, chosen.transform_, rtol=1e-10)
    a = ca.cross_validated_frontier(Z, Y, [0.5], missing="drop", confounders=holes)
    b = ca.cross_validated_frontier(Z[complete], Y[complete], [0.5], confounders=C[complete])
    pd.testing.assert_frame_equal(a, b)


def test_dimensions_are_uncorrelated_with_the_confounders():
    Z, Y, C = confounded(9, 300, gaps=0.2)
    al = LatentAligner(keep_rest=True).fit(Z, Y, confounders=C)
    out, D = al.transform(Z, confounders=C), coded(C)
    assert out.shape == (300, 6)
    assert np.abs(out.T @ D / 300).max() < 1e-8 * np.abs(out).max()
    plain = LatentAligner(keep_rest=True).fit(Z, Y).transform(Z)
    assert np.abs(plain.T @ D / 300).max() > 0.1  # they were there before


def test_a_batch_that_drives_both_does_not_count():
    rng = np.random.default_rng(10)
    n, k = 500, 8
    batch = rng.integers(0, 2, n)
    y, noise = rng.standard_normal((n, 1)), rng.standard_normal((n, k))
    clean = 0.3 * y * np.eye(k)[0] + noise  # population alignment .287
    Z, Y = clean + 4 * batch[:, None] * rng.standard_normal(k), y + 3 * batch[:, None]
    truth = LatentAligner("strongest").fit(clean, y).held_out_alignment_.iloc[0]
    fooled = LatentAligner("strongest").fit(Z, Y).held_out_alignment_.iloc[0]
    al = LatentAligner("strongest").fit(Z, Y, confounders=batch)
    assert truth < 0.4
    assert fooled > 0.75
    assert al.held_out_alignment_.iloc[0] == pytest.approx(truth, abs=0.05)
    frame = ca.cross_validated_frontier(Z, Y, [1], confounders=batch)
    assert frame["alignment"].iloc[0] == pytest.approx(truth, abs=0.05)


def test_a_dimension_that_follows_from_the_confounders_is_no_dimension():
    Z, Y, C = confounded(11)
    follows = 3 * C[["age"]].to_numpy() + (C[["batch"]] == "b2").to_numpy()
    without = LatentAligner(shrinkage=0.0).fit(Z, Y, confounders=C)
    al = LatentAligner(shrinkage=0.0, keep_rest=True).fit(np.hstack([Z, follows]), Y, confounders=C)
    np.testing.assert_allclose(al.transform_[:3, :6], without.transform_, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(al.transform_[:, 6], 0)
    assert al.transform_.shape == (6, 7)
    back = al.inverse_transform(al.transform(np.hstack([Z, follows]), confounders=C), confounders=C)
    np.testing.assert_allclose(back, np.hstack([Z, follows]), atol=1e-8 * np.abs(Z).max())


def test_more_dimensions_than_rows():
    Z, Y = embedding(12, 60, 100, 2)
    C = np.random.default_rng(0).standard_normal((60, 3))
    al = LatentAligner(shrinkage=0.0, keep_rest=True).fit(Z + C @ np.ones((3, 100)), Y, confounders=C)
    assert al.transform_.shape == (60 - 1 - 3, 100)
    out = al.transform(Z + C @ np.ones((3, 100)), confounders=C)
    np.testing.assert_allclose(out.T @ out / 60, al.transform_ @ al.moments_.cov_z @ al.transform_.T, atol=1e-8)


# -- held out ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [0.0, 0.25])
def test_left_out_rows_are_adjusted_by_the_training_rows(gaps):
    Z, Y, C = confounded(13, 300, gaps=gaps)
    D = coded(C)
    frame = ca.cross_validated_frontier(Z, Y, [0.4], shrinkage=0.2, confounders=C)
    fold, out, left = folds_of_rows(Z, Y, 5, D.shape[1]), np.empty(Y.shape), np.empty(Y.shape)
    for f in range(5):
        train, test = fold != f, fold == f
        m, B_z, b_y = by_hand(Z[train], Y[train], D[train])
        rest = Z - D @ B_z
        out[test] = (rest[test] - rest[train].mean(axis=0)) @ regimes.tunable(m, 0.4, shrinkage=0.2).T
        left[test] = Y[test] - (D[test] - D[train].mean(axis=0)) @ b_y
    seen = ~np.isnan(Y)
    need = [np.corrcoef(out[seen[:, p], p], left[seen[:, p], p])[0, 1] for p in range(3)]
    row = frame.iloc[0]
    np.testing.assert_allclose(row[["y0", "y1", "y2"]].to_numpy(float), need, rtol=1e-7)
    whole = by_hand(Z, Y, D)[0]
    assert row["alignment_in_sample"] == pytest.approx(
        regimes.alignment(regimes.tunable(whole, 0.4, shrinkage=0.2), whole).mean()
    )


def test_the_shrinkage_is_chosen_on_adjusted_rows():
    Z, Y, C = confounded(14, 150, 30, 2)
    D = coded(C)
    fold = folds_of_rows(Z, Y, 5, D.shape[1])
    al = LatentAligner().fit(Z, Y, confounders=C)
    path = al.shrinkage_path_.set_index(["scale", "shrinkage"])["alignment"]
    assert (al.scale_, al.shrinkage_) == path.idxmax()
    path = path["raw"]
    for rho in path.index[[3, 12, -1]]:
        z, y = np.empty(Y.shape), np.empty(Y.shape)
        for f in range(5):
            train, test = fold != f, fold == f
            m, B_z, b_y = by_hand(Z[train], Y[train], D[train])
            B, rest, centre = regimes.ridge(m, rho), Z - D @ B_z, D[train].mean(axis=0)
            z[test] = (rest[test] - rest[train].mean(axis=0)) @ B / np.sqrt(np.sum(B * (m.cov_z @ B), axis=0))
            y[test] = Y[test] - (D[test] - centre) @ b_y
        scores = [np.corrcoef(z[:, p], y[:, p])[0, 1] for p in range(2)]
        assert path[rho] == pytest.approx(np.mean(scores), rel=1e-6)


def test_the_nested_choice_never_sees_the_left_out_fold():
    Z, Y, C = confounded(15, 150, 40, 2)
    buckets = gap_accumulator.fold_moments(np.hstack([Z, coded(C)]), Y, 5, n_confounders=5)
    chosen = shrinkage.nested_ridges(buckets, 5, 5)
    for f, pack in enumerate(packed(buckets, 5)):
        rest = [bucket for i, bucket in enumerate(buckets) if i not in pack]
        path = shrinkage.shrinkage_path(rest, q=5)
        assert chosen[f] == shrinkage.best_ridge(path[path["scale"] == "raw"])


def test_nothing_leaks_where_confounders_are_many():
    rng = np.random.default_rng(16)
    Z, Y, C = rng.standard_normal((80, 3)), rng.standard_normal((80, 1)), rng.standard_normal((80, 40))
    al = LatentAligner("strongest", shrinkage="auto").fit(Z, Y, confounders=C)
    low, high = al.mean_alignment_[["low", "high"]]
    assert low < 0 < high  # there is nothing, and half of the degrees of freedom are gone
    assert al.alignment_.iloc[0] > 0.1


def test_a_covariate_counts_in_the_folds_whose_training_rows_know_it():
    rng = np.random.default_rng(0)
    Z, C = rng.standard_normal((100, 5)), rng.standard_normal((100, 1))
    rare = np.zeros(100)
    rare[0] = 1
    al = LatentAligner().fit(Z, pd.DataFrame({"x": Z[:, 0] + C[:, 0], "rare": rare}), confounders=C)
    table = al.summary()
    assert np.isnan(table.loc["rare", "held_out"])  # unknown where its row is left out, constant elsewhere
    assert table.loc["x", "held_out"] > 0.9
    rare[1] = 1
    known = LatentAligner().fit(Z, pd.DataFrame({"x": Z[:, 0] + C[:, 0], "rare": rare}), confounders=C).summary()
    assert np.isfinite(known.loc["rare", "held_out"])


# -- use --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regime", REGIMES)
def test_the_round_trip_is_exact_with_the_rest(regime):
    Z, Y, C = confounded(20)
    al = LatentAligner(regime, keep_rest=True).fit(Z, Y, confounders=C)
    new, _, new_C = confounded(21, 50)
    back = al.inverse_transform(al.transform(new, confounders=new_C), confounders=new_C)
    np.testing.assert_allclose(back, new, rtol=1e-8, atol=1e-8)


def test_the_inverse_puts_samples_into_another_batch():
    Z, Y, C = confounded(22)
    al = LatentAligner(keep_rest=True).fit(Z, Y, confounders=C)
    moved = al.inverse_transform(al.transform(Z, confounders=C), confounders=C.assign(batch="b1"))
    effect = fit(coded(C), Z)
    np.testing.assert_allclose(moved - Z, (coded(C.assign(batch="b1")) - coded(C)) @ effect, atol=1e-7)


@pytest.mark.parametrize("shrinkage", [0.0, 0.3])
@pytest.mark.parametrize("protect_others", [False, True])
def test_erasing_leaves_alone_what_confounders_explain(shrinkage, protect_others):
    Z, Y, C = confounded(23)
    D = coded(C)
    al = LatentAligner(shrinkage=shrinkage).fit(Z, Y, confounders=C)
    out = al.erase(Z, ["y0"], protect_others=protect_others, confounders=C)
    np.testing.assert_allclose(fit(D, out), fit(D, Z), atol=1e-7)
    before, after = (left(D, M).T @ left(D, Y) / len(Z) for M in (Z, out))
    assert np.abs(before[:, 0]).max() > 0.1
    assert np.abs(after[:, 0]).max() < 1e-8
    if protect_others:
        np.testing.assert_allclose(after[:, 1:], before[:, 1:], atol=1e-8)
    if shrinkage == 0 and not protect_others:
        by_residuals = LatentAligner(shrinkage=0.0).fit(left(D, Z), left(D, Y)).erase(left(D, Z), "y0")
        np.testing.assert_allclose(left(D, out), by_residuals, atol=1e-7)


def test_steering_needs_no_confounders():
    Z, Y, C = confounded(24)
    al = LatentAligner().fit(Z, Y, confounders=C)
    change = al.transform(al.steer(Z, {"y1": 2.0}), confounders=C) - al.transform(Z, confounders=C)
    np.testing.assert_allclose(change, np.tile([0.0, 2.0, 0.0], (300, 1)), atol=1e-7)


def test_float32_stays_float32():
    Z, Y, C = confounded(25)
    Z = Z.astype(np.float32)
    double = LatentAligner(keep_rest=True).fit(Z.astype(float), Y, confounders=C)
    al = LatentAligner(keep_rest=True).fit(Z, Y, confounders=C)
    np.testing.assert_allclose(al.transform_, double.transform_, rtol=1e-7, atol=1e-9)
    out = al.transform(Z, confounders=C)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, double.transform(Z.astype(float), confounders=C), rtol=1e-6, atol=1e-6)
    back = al.inverse_transform(out, confounders=C)
    assert back.dtype == al.erase(Z, "y0", confounders=C).dtype == np.float32
    np.testing.assert_allclose(back, Z, atol=1e-5 * np.abs(Z).max())


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_sparse_rows(gaps):
    Z, Y, C = confounded(26, gaps=gaps)
    Z[np.abs(Z) < 2] = 0
    a = LatentAligner().fit(Z, Y, confounders=C)
    b = LatentAligner().fit(sparse.csr_matrix(Z), Y, confounders=C)
    np.testing.assert_allclose(b.transform_, a.transform_, rtol=1e-9)
    out = b.transform(sparse.csr_matrix(Z), confounders=C)
    np.testing.assert_allclose(out, a.transform(Z, confounders=C), atol=1e-9)
    np.testing.assert_allclose(b.erase(sparse.csr_matrix(Z), "y0", confounders=C), a.erase(Z, "y0", confounders=C))


def test_to_torch_takes_the_confounders_beside_Z():
    torch = pytest.importorskip("torch")
    Z, Y, C = confounded(27)
    al = LatentAligner().fit(Z, Y, confounders=C)
    numbers = np.column_stack([C["batch"] == name.removeprefix("batch_") for name in al.confounder_names_[:4]])
    layer = al.to_torch()
    out = layer(torch.from_numpy(np.hstack([Z, numbers, C[["age"]]]))).detach().numpy()
    np.testing.assert_allclose(out, al.transform(Z, confounders=C), atol=1e-9)


def test_other_regimes_frames_and_pipelines():
    Z, Y, C = confounded(28)
    al = LatentAligner("strongest").fit(Z, Y, confounders=C)
    again = LatentAligner("tunable", lam=0.3).fit(Z, Y, confounders=C)
    np.testing.assert_allclose(al.at(lam=0.3).transform(Z, confounders=C), again.transform(Z, confounders=C))
    held = al.frontier([0.3])
    assert held["held_out_alignment"].iloc[0] == pytest.approx(again.mean_alignment_["held_out"])
    frame = clone(al).set_output(transform="pandas").fit_transform(pd.DataFrame(Z), Y, confounders=C)
    assert frame.columns.tolist() == ["y0", "y1", "y2"]
    np.testing.assert_allclose(frame, al.transform(Z, confounders=C))
    with config_context(enable_metadata_routing=True):
        asked = LatentAligner("strongest").set_fit_request(confounders=True).set_transform_request(confounders=True)
        line = make_pipeline(StandardScaler(), asked).fit(Z, Y, confounders=C)
        np.testing.assert_allclose(line.transform(Z, confounders=C).std(axis=0), 1, rtol=1e-6)


# -- permutations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("shrinkage", [0.0, 0.3])
def test_the_statistic_of_the_permutation_test_is_that_of_fitting(gaps, shrinkage):
    Z, Y, C = confounded(30, 120, gaps=gaps)
    al = LatentAligner("strongest", shrinkage=shrinkage).fit(Z, Y, confounders=C)
    found = al.permutation_test(Z, Y, 20, confounders=C)
    np.testing.assert_allclose(found["alignment"][:3], al.alignment_, rtol=1e-6)
    table = pd.DataFrame(Y, columns=["y0", "y1", "y2"]).assign(**C)
    named = LatentAligner("strongest", shrinkage=shrinkage).fit(Z, table, confounders=["batch", "age"])
    pd.testing.assert_frame_equal(named.permutation_test(Z, table, 20), found, rtol=1e-6)


# -- errors -----------------------------------------------------------------------------------------------------------


def test_confounders_are_asked_for():
    Z, Y, C = confounded(40)
    table = pd.DataFrame(Y, columns=["x", "y", "z"]).assign(**C)
    al = LatentAligner(keep_rest=True).fit(Z, table, confounders=["batch", "age"])
    words = r"fitted with confounders \('batch', 'age'\).*pass confounders="
    for call in (
        lambda: al.transform(Z),
        lambda: al.transform(Z, confounders="batch"),
        lambda: al.inverse_transform(Z),
        lambda: al.erase(Z, "x"),
        lambda: al.partial_fit(Z, table[["x", "y", "z"]]),
        lambda: al.permutation_test(Z, table[["x", "y", "z"]], 5),
        lambda: LatentAligner().fit(Z, Y, confounders=C).partial_fit(Z, table),  # never were columns of Y
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert al.moments_.n == 300


def test_confounders_that_were_not_fitted_are_refused():
    Z, Y, C = confounded(41)
    al = LatentAligner(keep_rest=True).fit(Z, Y)
    assert al.confounder_names_ == []
    for call in (
        lambda: al.transform(Z, confounders=C),
        lambda: al.inverse_transform(Z, confounders=C),
        lambda: al.erase(Z, "y0", confounders=C),
        lambda: al.partial_fit(Z, Y, confounders=C),
        lambda: al.permutation_test(Z, Y, 5, confounders=C),
    ):
        with pytest.raises(ValueError, match="this model was fitted without any"):
            call()


def test_a_covariate_that_follows_from_confounders_is_named():
    Z, Y, C = confounded(42)
    table = pd.DataFrame(Y, columns=["x", "y", "z"]).assign(site=C["batch"].map({"b0": 0, "b1": 0, "b2": 1, "b3": 1}))
    words = "vary where the confounders are the same, got 'site', which the confounders predict"
    with pytest.raises(ValueError, match=words):
        LatentAligner().fit(Z, table, confounders=C)
    with pytest.raises(ValueError, match=words):
        ca.cross_validated_frontier(Z, table, confounders=C)
    table.loc[::3, "site"] = np.nan
    with pytest.raises(ValueError, match=words):
        LatentAligner(shrinkage=0.0).fit(Z, table, confounders=C)
    single = table.assign(site=(C["age"] * 1.7 + 3).astype(np.float32))
    with pytest.raises(ValueError, match=words):
        LatentAligner().fit(Z, single, confounders=C)
    batches = LatentAligner().partial_fit(Z, table, confounders=C)
    with pytest.raises(ValueError, match=words):
        _ = batches.alignment_


def test_gaps_new_levels_and_lost_rows_are_named():
    Z, Y, C = confounded(43)
    al, hole = LatentAligner().fit(Z, Y, confounders=C), C.copy()
    hole.loc[7, "age"] = np.nan
    for call in (
        lambda: LatentAligner().fit(Z, Y, confounders=hole),
        lambda: LatentAligner().partial_fit(Z, Y, confounders=C).partial_fit(Z, Y, confounders=hole),
        lambda: al.transform(Z, confounders=hole),
        lambda: ca.cross_validated_frontier(Z, Y, confounders=hole),
    ):
        with pytest.raises(ValueError, match=r"a value for every sample, got 1 missing in 'age'"):
            call()
    with pytest.raises(ValueError, match=r"column 'batch' can only have the levels of the first rows, got 'b9'"):
        al.transform(Z[:1], confounders=C[:1].assign(batch="b9"))
    with pytest.raises(ValueError, match="one row for each of the 300 samples, got 10"):
        LatentAligner().fit(Z, Y, confounders=C[:10])
    with pytest.raises(ValueError, match="one row for each of the 5 samples, got 300"):
        al.transform(Z[:5], confounders=C)
    with pytest.raises(ValueError, match="Z and Y need the same number of rows"):
        LatentAligner().fit(Z, Y[:10], confounders=C)
    with pytest.raises(ValueError, match="confounders need the columns 'age' as in fit"):
        al.transform(Z, confounders=C[["batch"]])
    with pytest.raises(ValueError, match="every row of the data needs a row of confounders, got none for '0', '1'"):
        al.transform(pd.DataFrame(Z), confounders=C[3:])
    with pytest.raises(ValueError, match="need distinct names, got '0' more than once"):
        al.transform(pd.DataFrame(Z), confounders=pd.concat([C, C[:1]]))
    table = pd.DataFrame(Y, columns=["x", "y", "z"])
    with pytest.raises(ValueError, match="need the columns 'batch', got 'x', 'y', 'z'"):
        LatentAligner().fit(Z, table, confounders="batch")
    with pytest.raises(ValueError, match="at least one covariate is needed besides the confounders"):
        LatentAligner().fit(Z, C, confounders=["batch", "age"])
    with pytest.raises(ValueError, match="7 covariates need at least 7 latent dimensions, got 6"):
        LatentAligner().fit(Z, np.random.default_rng(0).standard_normal((300, 7)), confounders=C)


def test_constant_confounders_change_nothing():
    Z, Y = correlated(44, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        al = LatentAligner().fit(Z, Y, confounders=np.full((200, 2), 1e6))
    plain = LatentAligner().fit(Z, Y)
    np.testing.assert_allclose(al.transform_, plain.transform_, rtol=1e-9)
    pd.testing.assert_frame_equal(al.summary(), plain.summary(), rtol=1e-8)
    np.testing.assert_allclose(al.transform(Z, confounders=np.zeros((200, 2))), plain.transform(Z), atol=1e-9)
