"""LatentAligner: the scikit-learn contract, and what only it can do."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import covalign as ca
from covalign import LatentAligner
from covalign.closed_form import regimes
from covalign.exceptions import DependentCovariatesError, LeastSquaresWarning, SingularTransformWarning
from tests.conftest import correlated, embedding

KINDS = [
    LatentAligner(),
    LatentAligner("independent", shrinkage=0.0),
    LatentAligner("strongest", keep_rest=True),
    LatentAligner("exclusive", shrinkage=0.3),
]
EXPECTED = {"check_dtype_object": "a table of objects is refused where a cell is no number, with its column"}


@parametrize_with_checks(KINDS[:1], expected_failed_checks=lambda model: EXPECTED)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.thorough
@parametrize_with_checks(KINDS[1:], expected_failed_checks=lambda model: EXPECTED)
def test_scikit_learn_contract_with_other_settings(estimator, check):
    check(estimator)


def categories(n: int = 300, k: int = 6) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    Y = pd.DataFrame({"age": rng.normal(50, 10, n), "subtype": rng.choice(["Basal", "Her2", "LumA"], n)})
    Z = rng.standard_normal((n, k)) + np.outer(Y["age"] / 10, np.ones(k)) * 0.3
    Z[:, 0] += Y["subtype"] == "Her2"
    Z[:, 1] += Y["subtype"] == "LumA"
    return pd.DataFrame(Z, columns=[f"d{i}" for i in range(k)]), Y


# -- fitting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regime", ["independent", "tunable", "strongest", "exclusive"])
def test_transform_is_the_regime(regime):
    Z, Y = correlated(0, 300, 6, 3, offset=1e4)
    al = LatentAligner(regime, lam=0.3, shrinkage=0.0).fit(Z, Y)
    m = ca.Moments.from_arrays(Z, Y)
    T = regimes.turned(regimes.whitened_polar(m), regime, 0.3)
    np.testing.assert_allclose(al.transform_, T, rtol=1e-9)
    out = al.transform(Z)
    np.testing.assert_allclose(out, (Z - Z.mean(0)) @ T.T, atol=1e-6)
    np.testing.assert_allclose(out.std(axis=0), 1, rtol=1e-8)
    expected = [np.corrcoef(out[:, p], Y[:, p])[0, 1] for p in range(3)]
    np.testing.assert_allclose(al.alignment_, expected, rtol=1e-7)
    assert al.coupling_ == pytest.approx(np.sum((np.corrcoef(out.T) - np.eye(3)) ** 2), abs=1e-9)


@pytest.mark.parametrize("shrinkage", ["auto", 0.1])
@pytest.mark.parametrize("size", [1, 7, 60])
def test_partial_fit_equals_fit(shrinkage, size):
    Z, Y = correlated(1, 60, 5, 2)
    whole, parts = LatentAligner(shrinkage=shrinkage).fit(Z, Y), LatentAligner(shrinkage=shrinkage)
    for i in range(0, 60, size):
        parts.partial_fit(Z[i : i + size], Y[i : i + size])
    assert parts.shrinkage_ == whole.shrinkage_
    np.testing.assert_allclose(parts.transform_, whole.transform_, rtol=1e-8, atol=1e-10)


def test_a_batch_without_a_complete_row_adds_nothing():
    Z, Y = correlated(1, 200, 5, 2)
    Y[50:100, 1] = np.nan
    parts = LatentAligner(missing="drop")
    for i in range(0, 200, 50):
        parts.partial_fit(Z[i : i + 50], Y[i : i + 50])
    assert parts.n_rows_ == 150
    np.testing.assert_allclose(parts.transform_, LatentAligner(missing="drop").fit(Z, Y).transform_, rtol=1e-8)


def test_partial_fit_does_not_touch_an_earlier_at():
    Z, Y = correlated(1, 200, 5, 2)
    al = LatentAligner().fit(Z[:100], Y[:100])
    other, before = al.at(lam=0.9), al.at(lam=0.9).transform_
    al.partial_fit(Z[100:], Y[100:])
    np.testing.assert_array_equal(other.transform_, before)
    assert al.moments_.n == 200
    assert other.moments_.n == 100


def test_partial_fit_with_categories():
    Z, Y = (table[:100] for table in categories())
    Y = Y.assign(subtype=pd.Categorical(Y["subtype"]))
    whole, parts = LatentAligner().fit(Z, Y), LatentAligner()
    for i in range(0, 100, 2):  # most batches lack a level
        parts.partial_fit(Z[i : i + 2], Y[i : i + 2])
    np.testing.assert_allclose(parts.transform_, whole.transform_, rtol=1e-7, atol=1e-9)


def test_failed_partial_fit_changes_nothing():
    Z, Y = correlated(1, 100, 5, 2)
    al = LatentAligner().partial_fit(Z, Y)
    with pytest.raises(ValueError, match="NaN"):
        al.partial_fit(np.full((3, 5), np.nan), Y[:3])
    assert al.moments_.n == 100
    np.testing.assert_allclose(al.transform_, LatentAligner().fit(Z, Y).transform_)


def test_row_order_does_not_matter():
    Z, Y = correlated(2, 300, 40, 3)
    order = np.random.default_rng(0).permutation(300)
    a, b = LatentAligner().fit(Z, Y), LatentAligner().fit(Z[order], Y[order])
    assert a.shrinkage_ == b.shrinkage_
    np.testing.assert_allclose(a.transform_, b.transform_, rtol=1e-6, atol=1e-9)


def test_auto_shrinkage_is_the_best_on_its_path_and_none_is_needed_with_many_rows():
    Z, Y = embedding(3, 120, 100, 2)
    al = LatentAligner().fit(Z, Y)
    path = al.shrinkage_path_
    assert path.loc[path["alignment"].idxmax(), "shrinkage"] == al.shrinkage_ > 0
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20_000, 3))
    assert LatentAligner().fit(Z, Z[:, :2] + rng.standard_normal((20_000, 2))).shrinkage_ < 0.05
    assert LatentAligner(shrinkage=0.2).fit(Z, Z[:, 0]).shrinkage_path_ is None


def test_in_sample_and_held_out_are_told_apart():
    Z, Y = embedding(4, 100, 50, 2)
    al = LatentAligner("strongest").fit(Z, Y)
    table = al.summary()
    assert table.columns.tolist() == ["in_sample", "held_out", "se", "low", "high", "rows"]
    assert (table["held_out"] < table["in_sample"]).all()
    pd.testing.assert_series_equal(al.held_out_alignment_, table["held_out"])
    frame = al.frontier([0, 1])
    assert frame.loc[1, "held_out_alignment"] == pytest.approx(table["held_out"].mean())
    assert (frame["held_out_alignment"] < frame["alignment"]).all()
    assert (table["low"] < table["held_out"]).all()
    assert (table["held_out"] < table["high"]).all()
    mean = al.mean_alignment_
    assert mean["in_sample"] == pytest.approx(table["in_sample"].mean())
    assert mean["held_out"] == pytest.approx(table["held_out"].mean())
    assert mean["se"] == pytest.approx(frame.loc[1, "held_out_alignment_se"])
    assert mean["low"] < mean["held_out"] < mean["high"]
    fixed = LatentAligner(shrinkage=0.1).fit(Z, Y)
    assert fixed.held_out_alignment_.isna().all()
    assert fixed.mean_alignment_.isna().tolist() == [False, True, True, True, True]
    assert fixed.frontier([0, 1]).filter(like="held_out").isna().all(axis=None)


def test_wide_singular_and_duplicated_representations_keep_their_quality():
    Z, Y = embedding(5, 150, 30, 2)
    test_Z, test_Y = embedding(6, 3000, 30, 2)
    rng = np.random.default_rng(0)

    def widen(M):
        return np.hstack([M, M[:, :10], np.ones((len(M), 3)), M @ mix])

    mix = rng.standard_normal((30, 200)) / 30
    plain = LatentAligner("strongest").fit(Z, Y)
    wide = LatentAligner("strongest").fit(widen(Z), Y)  # 243 columns, 150 rows, rank 30
    scores = [
        regimes.alignment(al.transform_, ca.Moments.from_arrays(f(test_Z), test_Y)).mean()
        for al, f in ((plain, lambda M: M), (wide, widen))
    ]
    assert np.isfinite(wide.transform_).all()
    assert scores[1] == pytest.approx(scores[0], abs=0.02)


def test_sparse_and_float32():
    Z = sparse.random(400, 20, density=0.3, random_state=0, format="csr")
    Y = Z.toarray()[:, :2] + np.random.default_rng(0).standard_normal((400, 2)) * 0.1
    dense, from_sparse = LatentAligner().fit(Z.toarray(), Y), LatentAligner().fit(Z, Y)
    np.testing.assert_allclose(from_sparse.transform(Z), dense.transform(Z.toarray()), atol=1e-9)
    Z32 = Z.toarray().astype(np.float32)
    single, double = LatentAligner().fit(Z32, Y), LatentAligner().fit(Z32.astype(float), Y)
    assert single.transform(Z32).dtype == np.float32
    np.testing.assert_allclose(single.transform_, double.transform_, rtol=1e-9)


# -- names ------------------------------------------------------------------------------------------------------------


def test_names_go_through():
    Z, Y = categories()
    al = LatentAligner(keep_rest=True).set_output(transform="pandas").fit(Z, Y)
    names = ["age", "subtype_Her2", "subtype_LumA"]
    assert al.covariate_names_ == names
    out = al.transform(Z)
    assert out.columns.tolist() == [*names, "rest0", "rest1", "rest2"]
    assert al.get_feature_names_out().tolist() == out.columns.tolist()
    assert out.index.equals(Z.index)
    assert al.alignment_.index.tolist() == names
    assert set(names) <= set(al.frontier([0.5]).columns)


def test_all_dummies_need_no_drop_first_but_say_so():
    Z, Y = categories()
    al = LatentAligner(drop_first=False).fit(Z, Y)
    assert al.rank_ == 3
    assert al.coupling_ > 0
    with pytest.raises(DependentCovariatesError, match="'subtype_Basal', 'subtype_Her2', 'subtype_LumA'"):
        al.at(regime="exclusive")
    with pytest.warns(SingularTransformWarning, match="T_1 is singular"):
        strongest = al.at(regime="strongest")
    with pytest.raises(DependentCovariatesError, match="steering"):
        strongest.steer(Z, {"age": 1})
    about = al.summary().attrs["categories"]["subtype"]
    assert about["reference"] is None
    assert "3 levels have only 2 independent directions" in about["about"]


def test_a_reference_level_leaves_independent_covariates():
    Z, Y = categories()
    al = LatentAligner("exclusive").fit(Z, Y)
    assert al.rank_ == 3 == len(al.covariate_names_)
    about = al.summary().attrs["categories"]["subtype"]
    assert (about["reference"], about["levels"]) == ("Basal", ["Basal", "Her2", "LumA"])
    means = pd.DataFrame(al.transform(Z), columns=al.covariate_names_).groupby(Y["subtype"].to_numpy()).mean()
    assert abs(means.loc["Her2", "subtype_LumA"]) < 1e-8  # exclusive: a level against the reference level alone
    assert means.loc["LumA", "subtype_LumA"] > 0 > means.loc["Basal", "subtype_LumA"]


@pytest.mark.parametrize("missing", ["pairs", "drop"])
def test_a_declared_reference_level_needs_rows(missing):
    Z, Y = categories()
    Y.loc[::7, "age"] = None
    Y["subtype"] = pd.Categorical(Y["subtype"], categories=["Normal", "Basal", "Her2", "LumA"])
    assert LatentAligner(missing=missing).fit(Z, Y).covariate_names_ == ["age", "subtype_Her2", "subtype_LumA"]
    batches = [(Z[i : i + 100], Y[i : i + 100]) for i in (0, 100, 200)]
    with pytest.raises(ValueError, match="the reference level of 'subtype' needs rows, got none with 'Normal'"):
        LatentAligner(missing=missing).fit(batches)
    with pytest.raises(ValueError, match="the reference level of 'subtype' needs rows, got none with 'Normal'"):
        ca.cross_validated_frontier(batches, None, missing=missing)
    parts = LatentAligner(missing=missing).partial_fit(*batches[0])
    with pytest.raises(ValueError, match="the reference level of 'subtype' needs rows, got none with 'Normal'"):
        parts.summary()
    last = Y[:1].assign(subtype="Normal", age=50.0)
    assert parts.partial_fit(Z[:1], last).covariate_names_[1:] == ["subtype_Basal", "subtype_Her2", "subtype_LumA"]
    assert parts.summary().attrs["categories"]["subtype"]["reference"] == "Normal"


# -- other regimes ----------------------------------------------------------------------------------------------------


def test_at_equals_refitting():
    Z, Y = correlated(6, 200, 20, 3)
    al = LatentAligner(lam=0.2, keep_rest=True).fit(Z, Y)
    for settings in (
        {"lam": 0.9},
        {"regime": "exclusive"},
        {"regime": "independent"},
        {"regime": "tunable", "lam": 0.1},
    ):
        again = clone(al).set_params(**{"regime": "tunable", **settings}).fit(Z, Y)
        moved = al.at(**settings)
        np.testing.assert_allclose(moved.transform_, again.transform_, atol=1e-12)
        assert moved.get_params() == {**al.get_params(), **{"regime": "tunable", **settings}}
    assert al.lam == 0.2


def test_coupling_budget():
    Z, Y = correlated(7, 300, 6, 4)
    al = LatentAligner().fit(Z, Y)
    within = al.at(max_coupling=0.3)
    assert within.coupling_ == pytest.approx(0.3, abs=1e-8)
    assert al.at(max_coupling=0).coupling_ == pytest.approx(0, abs=1e-10)
    assert al.at(max_coupling=1e9).lam == 1
    assert within.alignment_.mean() >= max(
        al.at(lam=lam).alignment_.mean() for lam in np.linspace(0, 1, 50) if al.at(lam=lam).coupling_ <= 0.3
    )


@pytest.mark.parametrize(
    "settings",
    [{}, {"lam": 0.1, "regime": "exclusive"}, {"lam": 0.1, "max_coupling": 1}, {"regime": "max", "max_coupling": 1}],
)
def test_at_wants_one_thing(settings):
    al = LatentAligner().fit(*correlated(0))
    with pytest.raises(ValueError, match="at\\(\\) needs one of"):
        al.at(**settings)


# -- there and back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", [0.0, 0.4])
@pytest.mark.parametrize("regime", ["independent", "tunable", "strongest", "exclusive"])
def test_inverse_is_exact_with_the_rest(regime, shrinkage):
    Z, Y = correlated(8, 200, 7, 3, offset=50)
    al = LatentAligner(regime, shrinkage=shrinkage, keep_rest=True).fit(Z, Y)
    assert al.transform_.shape == (7, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(al.inverse_transform(al.transform(Z)), Z, atol=1e-8)
    new = np.random.default_rng(0).standard_normal((5, 7))
    np.testing.assert_allclose(al.inverse_transform(al.transform(new)), new, atol=1e-7)


def test_inverse_is_exact_on_the_range_of_a_singular_Z():
    Z, Y = correlated(8, 200, 4, 2)
    Z = np.hstack([Z, Z[:, :2], np.full((200, 1), 3.0)])
    al = LatentAligner(keep_rest=True).fit(Z, Y)
    assert al.transform(Z).shape == (200, 4)
    np.testing.assert_allclose(al.inverse_transform(al.transform(Z)), Z, atol=1e-8)


def test_inverse_without_the_rest_is_least_squares_and_says_so():
    Z, Y = correlated(9, 200, 6, 2)
    al = LatentAligner().fit(Z, Y)
    out = al.transform(Z)
    with pytest.warns(LeastSquaresWarning, match="keep_rest=True"):
        back = al.inverse_transform(out)
    np.testing.assert_allclose(back, LinearRegression().fit(out, Z).predict(out), atol=1e-8)


def test_inverse_of_a_singular_map_is_least_squares_and_says_so():
    Z, Y = categories()
    with pytest.warns(SingularTransformWarning):
        al = LatentAligner("strongest", keep_rest=True, drop_first=False).fit(Z, Y)
    out = al.transform(Z)
    with pytest.warns(LeastSquaresWarning, match="singular"):
        back = al.inverse_transform(out)
    np.testing.assert_allclose(back, LinearRegression().fit(out, Z).predict(out), atol=1e-6)


# -- erase and steer --------------------------------------------------------------------------------------------------


def r_squared(Z, y):
    return LinearRegression().fit(Z, y).score(Z, y)


@pytest.mark.parametrize("shrinkage", [0.0, "auto", 0.5])
def test_erased_covariates_leave_no_linear_trace(shrinkage):
    Z, Y = correlated(10, 300, 8, 3, offset=5)
    al = LatentAligner(shrinkage=shrinkage).fit(Z, Y)
    assert r_squared(Z, Y[:, 0]) > 0.2  # there was something to erase
    erased = al.erase(Z, ["y0", "y2"])
    assert r_squared(erased, Y[:, 0]) < 1e-10
    assert r_squared(erased, Y[:, 2]) < 1e-10
    np.testing.assert_allclose(al.erase(erased, ["y0", "y2"]), erased, atol=1e-8)  # nothing left to take
    np.testing.assert_allclose(erased.mean(0), Z.mean(0), atol=1e-8)


def test_unshrunk_erasure_is_the_smallest_change():
    Z, Y = correlated(11, 300, 5, 2)
    al = LatentAligner(shrinkage=0.0).fit(Z, Y)
    S, s = al.moments_.cov_z, al.moments_.cov_zy[:, 0]
    ours = al.erase(Z, "y0") - Z
    rng = np.random.default_rng(0)
    for _ in range(50):  # every linear erasure is I - s c' / (c's) for some c
        c = np.linalg.solve(S, s) + rng.standard_normal(5) * rng.choice([1e-3, 0.1, 1]) * np.linalg.norm(
            np.linalg.solve(S, s)
        )
        other = np.outer((Z - Z.mean(0)) @ c, s) / (c @ s)
        assert np.sum(ours**2) <= np.sum(other**2) * (1 + 1e-12)


def test_protected_covariates_keep_their_covariance():
    Z, Y = correlated(12, 300, 6, 3)
    al = LatentAligner(shrinkage=0.2).fit(Z, Y)
    erased = al.erase(Z, "y1", protect_others=True)
    after = ca.Moments.from_arrays(erased, Y).cov_zy
    np.testing.assert_allclose(after[:, 1], 0, atol=1e-9)
    np.testing.assert_allclose(after[:, [0, 2]], al.moments_.cov_zy[:, [0, 2]], atol=1e-9)


def test_a_category_is_erased_by_its_own_name():
    Z, Y = categories()
    al = LatentAligner().fit(Z, Y)
    erased = al.erase(Z, "subtype")
    assert isinstance(erased, pd.DataFrame)
    assert erased.columns.equals(Z.columns)
    for level in ("Basal", "Her2", "LumA"):
        assert r_squared(erased, Y["subtype"] == level) < 1e-10
    with pytest.raises(ValueError, match="Did you mean 'subtype"):
        al.erase(Z, "subtpye")


@pytest.mark.parametrize("shrinkage", [0.0, 0.3])
def test_steering_moves_one_dimension_and_nothing_else(shrinkage):
    Z, Y = correlated(13, 200, 6, 3)
    al = LatentAligner(lam=0.7, shrinkage=shrinkage, keep_rest=True).fit(Z, Y)
    per_row = np.linspace(-1, 1, 200)
    moved = al.transform(al.steer(Z, {"y1": 2.5, "y2": per_row})) - al.transform(Z)
    expected = np.zeros_like(moved)
    expected[:, 1], expected[:, 2] = 2.5, per_row
    np.testing.assert_allclose(moved, expected, atol=1e-8)
    with pytest.raises(ValueError, match="no covariate 'y9'"):
        al.steer(Z, {"y9": 1})
    with pytest.raises(ValueError, match="same number of rows"):
        al.steer(Z, {"y1": [1, 2]})


def test_to_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed (pip install 'covalign[torch]')")
    Z, Y = correlated(14, 100, 6, 3, offset=10)
    for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-3)):
        X = Z.astype(dtype)
        al = LatentAligner(keep_rest=True).fit(X, Y)
        layer = al.to_torch()
        assert isinstance(layer, torch.nn.Linear)
        np.testing.assert_allclose(layer(torch.from_numpy(X)).detach().numpy(), al.transform(X), atol=tolerance)
    assert al.to_torch(dtype=torch.float64).weight.dtype == torch.float64


def test_to_torch_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match=r"covalign\[torch\]"):
        LatentAligner().fit(*correlated(0)).to_torch()


# -- scikit-learn around it -------------------------------------------------------------------------------------------


def test_in_a_pipeline_and_a_grid_search():
    Z, Y = correlated(15, 120, 6, 2)
    pipe = make_pipeline(StandardScaler(), LatentAligner(), LinearRegression())
    search = GridSearchCV(pipe, {"latentaligner__lam": [0.1, 0.9], "latentaligner__shrinkage": ["auto", 0.0]}, cv=3)
    assert search.fit(Z, Y).best_score_ > 0


def test_survives_pickling_for_joblib():
    Z, Y = correlated(16)
    al = LatentAligner().fit(Z, Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(al)).transform(Z), al.transform(Z))


def test_set_params_after_fit_waits_for_the_next_fit():
    Z, Y = correlated(17)
    al = LatentAligner().fit(Z, Y)
    before = al.summary()
    pd.testing.assert_frame_equal(al.set_params(regime="exclusive").summary(), before)


# -- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"lam": 2}, "lam needs a number"),
        ({"regime": "best"}, "regime needs one of independent, tunable, strongest, exclusive, got 'best'"),
        ({"shrinkage": "some"}, "shrinkage needs"),
        ({"shrinkage": -0.1}, "shrinkage needs"),
        ({"folds": 1}, "folds needs"),
        ({"missing": "?"}, "missing needs"),
    ],
)
def test_bad_parameters(settings, words):
    with pytest.raises(ValueError, match=words):
        LatentAligner(**settings).fit(*correlated(0))


def test_bad_data():
    Z, Y = correlated(0, 50, 4, 2)
    al = LatentAligner()
    with pytest.raises(NotFittedError, match="Call fit"):
        _ = al.transform_
    with pytest.raises(NotFittedError):
        al.transform(Z)
    with pytest.raises(ValueError, match="50 and 49"):
        al.fit(Z, Y[:-1])
    with pytest.raises(ValueError, match="2 covariates need at least 2 latent dimensions, got 1"):
        al.fit(Z[:, :1], Y)
    with pytest.raises(ValueError, match="1 sample"):
        al.fit(Z[:1], Y[:1])
    with pytest.raises(ValueError, match="Z needs finite numbers"):
        al.fit(np.where(np.arange(4) == 2, np.nan, Z), Y)
    with pytest.raises(ValueError, match=r"missing value.*column 'y1'"):
        LatentAligner(missing="raise").fit(Z, np.where(np.arange(2) == 1, np.nan, Y))
    with pytest.raises(ValueError, match="Z needs real numbers, got values of type str"):
        al.fit(Z.astype(str).astype(object) + "x", Y)
    with pytest.raises(ValueError, match="constant in column 'y0'"):
        al.fit(Z, np.ones(50))
    with pytest.raises(ValueError, match="not in Y"):
        al.fit(pd.DataFrame(Z), pd.DataFrame(Y, index=np.arange(1, 51)))
    with pytest.raises(ValueError, match="inverse_transform needs 2 columns"):
        al.fit(Z, Y).inverse_transform(Z)


def test_incomplete_rows_can_be_dropped():
    Z, Y = correlated(0, 50, 4, 2)
    gaps = Y.copy()
    gaps[[3, 7], 1] = np.nan
    keep = ~np.isnan(gaps).any(axis=1)
    al = LatentAligner(missing="drop").fit(Z, gaps)
    assert al.moments_.n == 48
    np.testing.assert_allclose(al.transform_, LatentAligner().fit(Z[keep], Y[keep]).transform_)


# -- gaps -------------------------------------------------------------------------------------------------------------


def gappy(seed: int, n: int = 300, k: int = 6, p: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Gaps here and there, and some rows without any covariate."""
    Z, Y = correlated(seed, n, k, p)
    Y[np.random.default_rng(seed).random(Y.shape) < 0.2] = np.nan
    Y[: n // 10] = np.nan
    return Z, Y


def test_without_gaps_pairs_change_no_bit():
    Z, Y = correlated(0, 300, 6, 3)
    pairs, strict = LatentAligner().fit(Z, Y), LatentAligner(missing="raise").fit(Z, Y)
    np.testing.assert_array_equal(pairs.transform_, strict.transform_)
    pd.testing.assert_frame_equal(pairs.summary(), strict.summary(), check_exact=True)


def test_counts_are_told():
    Z, Y = gappy(1)
    al = LatentAligner().fit(Z, pd.DataFrame(Y, columns=["age", "dose", "bmi"]))
    observed = (~np.isnan(Y)).sum(axis=0)
    assert al.n_rows_ == al.moments_.n == 300
    assert al.n_pairs_.to_dict() == dict(zip(["age", "dose", "bmi"], observed, strict=True))
    assert al.summary()["rows"].tolist() == observed.tolist()
    assert repr(al).endswith(f"fitted on 300 rows, age in {observed[0]}, dose in {observed[1]}, bmi in {observed[2]}")
    assert repr(LatentAligner()) == "LatentAligner()"
    np.testing.assert_allclose(al.moments_.cov_z, np.cov(Z.T, ddof=0), rtol=1e-10)  # of all rows, labelled or not
    assert (al.alignment_.abs() <= 1).all()


@pytest.mark.parametrize("size", [1, 7, 90])
def test_partial_fit_with_gaps_equals_fit(size):
    Z, Y = (A[:90] for A in gappy(2))
    Y[:20] = correlated(2, 300, 6, 3)[1][:20]  # the first batches are complete
    whole, parts = LatentAligner().fit(Z, Y), LatentAligner()
    for i in range(0, 90, size):
        parts.partial_fit(Z[i : i + size], Y[i : i + size])
    assert parts.shrinkage_ == whole.shrinkage_
    assert parts.n_pairs_.equals(whole.n_pairs_)
    np.testing.assert_allclose(parts.transform_, whole.transform_, rtol=1e-8, atol=1e-10)
    pd.testing.assert_frame_equal(parts.summary(), whole.summary(), rtol=1e-7)


def test_gaps_in_columns_of_every_type():
    Z, Y = categories()
    rng = np.random.default_rng(1)
    Y["flag"] = pd.array(Z["d2"] > 0, dtype="boolean")
    Y["count"] = pd.array(rng.integers(0, 9, 300), dtype="Int64")
    Y["loose"] = (Z["d4"] > 0).astype(object)
    full = LatentAligner(drop_first=False).fit(Z.assign(extra=rng.standard_normal(300)), Y)
    for name in Y:
        Y.loc[rng.random(300) < 0.1, name] = None
    assert Y.isna().any().all()
    al = LatentAligner(drop_first=False).fit(Z.assign(extra=rng.standard_normal(300)), Y)
    assert al.covariate_names_ == full.covariate_names_
    assert al.n_pairs_["subtype_Her2"] == Y["subtype"].notna().sum()
    np.testing.assert_allclose(al.alignment_, full.alignment_, atol=0.15)
    whole = al.moments_.cov_y[1:4, 1:4].sum()
    assert whole == pytest.approx(0, abs=1e-10)  # dummies still sum to one


def test_missing_at_random_given_Z_does_not_mislead():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((20_000, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]])
    Y = Z[:, :2] + Z[:, 1:] + rng.standard_normal((20_000, 2))
    gaps = np.where(Z[:, :2] + 0.3 * rng.standard_normal((20_000, 2)) > 0, np.nan, Y)  # labels only where z is low
    truth = LatentAligner("strongest", shrinkage=0.0).fit(Z, Y)
    found, dropped = (LatentAligner("strongest", 0, 0.0, missing=how).fit(Z, gaps) for how in ("pairs", "drop"))
    np.testing.assert_allclose(found.alignment_, truth.alignment_, atol=0.01)
    np.testing.assert_allclose(found.moments_.mean_y, truth.moments_.mean_y, atol=0.06)
    assert (dropped.alignment_ < truth.alignment_ - 0.05).all()


def test_a_covariate_that_is_hardly_there_is_named():
    Z, Y = correlated(0, 50, 4, 2)
    table = pd.DataFrame({"age": Y[:, 0], "dose": np.nan, "site": None})
    with pytest.raises(ValueError, match=r"at least 2 observed rows, got 0 in column 'dose', 0 in column 'site'"):
        LatentAligner().fit(Z, table)
    table["dose"] = np.where(np.arange(50) == 7, 1.0, np.nan)
    with pytest.raises(ValueError, match=r"got 1 in column 'dose'"):
        LatentAligner().fit(Z, table[["age", "dose"]])
    later = LatentAligner().partial_fit(Z, table[["age", "dose"]])  # more may come
    with pytest.raises(ValueError, match=r"got 1 in column 'dose'"):
        _ = later.transform_
    assert later.partial_fit(Z[:9], pd.DataFrame({"age": 1.0, "dose": np.arange(9.0)})).transform_.shape == (2, 4)
    with pytest.raises(ValueError, match="0 in column 'site'"):
        LatentAligner().partial_fit(Z, table[["age", "site"]])  # nothing to learn levels from
    table["dose"] = np.where(np.arange(50) % 2, 1.0, np.nan)
    with pytest.raises(ValueError, match="constant in column 'dose'"):
        LatentAligner().fit(Z, table[["dose", "age"]])


def test_a_batch_may_lack_a_covariate_altogether():
    Z, Y = categories()
    Y["subtype"] = pd.Categorical(Y["subtype"])
    gaps = Y.astype({"subtype": object})
    gaps.loc[100:199, "subtype"] = None
    gaps.loc[200:, "age"] = None
    parts = LatentAligner(shrinkage=0.1).partial_fit(Z[:100], Y[:100])
    for batch in (slice(100, 200), slice(200, 300)):
        parts.partial_fit(Z[batch], gaps[batch])
    assert parts.n_pairs_.tolist() == [200, 200, 200]
    np.testing.assert_allclose(parts.transform_, LatentAligner(shrinkage=0.1).fit(Z, gaps).transform_, atol=1e-8)


# -- categories -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("drop_first", [False, True])
def test_eta_squared_is_the_share_between_levels(drop_first):
    Z, Y = categories()
    al = LatentAligner(drop_first=drop_first).fit(Z, Y)
    (row,) = al.category_alignment_.itertuples(index=False)
    assert row.covariate == "subtype"
    out = pd.DataFrame(al.transform(Z), columns=al.covariate_names_)[list(row.dummies)]
    between = out.groupby(Y["subtype"].to_numpy()).transform("mean").var(ddof=0) / out.var(ddof=0)
    assert row.eta_squared == pytest.approx(between.mean(), rel=1e-8)
    shown = al.summary()["eta_squared"]
    assert shown[list(row.dummies)].tolist() == [row.eta_squared] * len(row.dummies)
    assert np.isnan(shown["age"])
    assert LatentAligner().fit(Z, Y["age"]).category_alignment_.empty


@pytest.mark.parametrize("shrinkage", [0.0, 0.3])
def test_the_canonical_alignment_of_a_category_does_not_depend_on_its_coding(shrinkage):
    Z, Y = categories()
    orders = [["Basal", "Her2", "LumA"], ["LumA", "Basal", "Her2"], ["Her2", "LumA", "Basal"]]
    tables = [pd.DataFrame({"subtype": pd.Categorical(Y["subtype"], categories=order)}) for order in orders]
    fits = [LatentAligner(lam=lam, shrinkage=shrinkage).fit(Z, table) for table in tables for lam in (0.0, 0.5, 1.0)]
    found = np.array([al.category_alignment_["canonical"].item() for al in fits])
    np.testing.assert_allclose(found, found[0], rtol=1e-8)
    if shrinkage == 0:  # then it is that of Z itself
        z, y = (
            np.linalg.qr(A - A.mean(axis=0))[0] for A in (Z.to_numpy(), ca.covariates.encode(Y["subtype"]).to_numpy())
        )
        assert found[0] == pytest.approx(np.sqrt(np.mean(np.linalg.svd(z.T @ y)[1] ** 2)), rel=1e-8)
    assert 0 < found[0] < 1


def test_eta_squared_of_a_perfect_representation_is_one():
    levels = np.random.default_rng(0).choice(3, 200)
    al = LatentAligner(shrinkage=0.0, drop_first=True).fit(np.eye(3)[levels], pd.Series(pd.Categorical(levels)))
    assert al.category_alignment_["eta_squared"].tolist() == pytest.approx([1.0])
    with_gaps = pd.Series(pd.Categorical(levels), name="g").where(np.arange(200) % 3 > 0)
    al = LatentAligner(shrinkage=0.0, drop_first=True).fit(np.eye(3)[levels], with_gaps)
    assert 0.9 < al.category_alignment_["eta_squared"].iloc[0] <= 1
