"""Both estimators have the same names for the same things: tests run on LatentAligner and InformedFactorAnalysis."""

from __future__ import annotations

import inspect
import sys
import types

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import covalign as ca
from covalign import InformedFactorAnalysis, LatentAligner
from covalign.stream.npy import NpyRows

ATTRIBUTES = [
    *("regime_", "lam_", "T_", "alignment_", "coupling_", "held_out_alignment_", "mean_alignment_"),
    *("category_alignment_", "n_rows_", "n_pairs_", "covariate_names_", "confounder_names_"),
    *("n_features_in_", "feature_names_in_"),
]
SET_BY_FIT = {"covariate_names_", "confounder_names_", "n_features_in_", "feature_names_in_"}
COMPUTED = {*ATTRIBUTES} - SET_BY_FIT
METHODS = [
    *("fit", "fit_transform", "transform", "score", "at", "path", "frontier", "summary", "save"),
    *("set_output", "get_feature_names_out", "get_params", "set_params"),
]
FRONTIER = [
    *("regime", "lam", "alignment", "coupling"),
    *("held_out_alignment", "held_out_alignment_se", "held_out_coupling", "exact_alignment"),
]
MAKERS = {"aligner": LatentAligner, "factors": lambda **options: InformedFactorAnalysis(6, tol=1e-6, **options)}


def rows(n: int = 240, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Features and covariates: two numbers, a category."""
    s = ca.simulate.scenario("PN", n_samples=n, n_features=20, n_factors=6, n_covariates=3, random_state=seed)
    X = pd.DataFrame(s.X, columns=[f"x{i}" for i in range(20)], index=[f"s{i}" for i in range(n)])
    Y = pd.DataFrame(s.Y[:, :2], columns=["age", "dose"], index=X.index)
    Y["stage"] = np.array(["i", "ii", "iii"])[np.digitize(s.Y[:, 2], [-0.5, 0.5])]
    return X, Y


@pytest.fixture(scope="module", params=sorted(MAKERS))
def make(request):
    return MAKERS[request.param]


@pytest.fixture(scope="module")
def fitted(make):
    return make(folds=3).fit(*rows())


def correlations(z, y) -> np.ndarray:
    z, y = np.asarray(z, dtype=float), np.asarray(y, dtype=float)
    seen = ~np.isnan(y)
    return np.array([np.corrcoef(z[seen[:, p], p], y[seen[:, p], p])[0, 1] for p in range(y.shape[1])])


def dummies(Y: pd.DataFrame) -> pd.DataFrame:
    return pd.get_dummies(Y, columns=["stage"], drop_first=True, dtype=float)


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_the_same_attributes(make, fitted, name):
    assert getattr(fitted, name) is not None or name in ("regime_", "lam_")
    with pytest.raises((NotFittedError, AttributeError), match="not fitted" if name in COMPUTED else name):
        getattr(make(), name)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_methods_take_the_same_words(name):
    one, other = (inspect.signature(getattr(kind, name)).parameters for kind in (LatentAligner, InformedFactorAnalysis))
    allowed = {"self", "Z", "X", "Y", "y", "Zt", "warm_start", "return_std"}  # the factor model has more to say
    assert {*one} - allowed == {*other} - allowed
    assert not {"folds", "chunk_rows"} & ({*one} | {*other})


def test_the_same_parameters():
    one, other = (kind().get_params() for kind in (LatentAligner, InformedFactorAnalysis))
    assert one["drop_first"] is other["drop_first"] is True
    assert one["folds"] == other["folds"] == 5
    assert one["chunk_rows"] is other["chunk_rows"] is None


def test_attributes_say_the_same_things(fitted):
    X, Y = rows()
    names = dummies(Y).columns.tolist()
    assert fitted.covariate_names_ == names
    assert fitted.confounder_names_ == []
    assert fitted.n_rows_ == 240
    assert fitted.n_pairs_.to_dict() == dict.fromkeys(names, 240)
    assert fitted.n_features_in_ == 20
    assert fitted.feature_names_in_.tolist() == X.columns.tolist()
    assert fitted.T_.shape[0] == len(names)
    assert fitted.alignment_.index.tolist() == names
    assert fitted.alignment_.name == "alignment"
    assert fitted.mean_alignment_.index.tolist() == ["in_sample", "held_out", "se", "low", "high"]
    assert fitted.mean_alignment_["in_sample"] == pytest.approx(fitted.alignment_.mean())
    assert fitted.category_alignment_.columns.tolist() == [
        "covariate",
        "eta_squared",
        "canonical",
        "held_out",
        "dummies",
    ]
    assert fitted.summary().columns.tolist() == [*("in_sample", "held_out", "se", "low", "high", "rows"), "eta_squared"]
    pd.testing.assert_series_equal(fitted.summary()["held_out"], fitted.held_out_alignment_)
    assert fitted.summary().attrs["categories"]["stage"]["reference"] == "i"
    assert repr(fitted).endswith("fitted on 240 rows")


def test_alignment_coupling_and_eta_squared_are_those_of_the_fitted_dimensions(make):
    X, Y = rows()
    model = make(folds=0, **({"shrinkage": 0.0} if make is LatentAligner else {})).fit(X, Y).at(0.7)
    z = np.asarray(model.transform(X))[:, : len(model.covariate_names_)]  # of factors: from X alone
    np.testing.assert_allclose(model.alignment_, correlations(z, dummies(Y)), atol=1e-7)
    assert model.coupling_ == pytest.approx(ca.metrics.coupling(z), abs=1e-7)
    levels = pd.DataFrame(z[:, 2:]).groupby(Y["stage"].to_numpy()).transform("mean")
    eta = levels.var(ddof=0) / pd.DataFrame(z[:, 2:]).var(ddof=0)
    assert model.category_alignment_["eta_squared"].item() == pytest.approx(eta.mean(), abs=1e-7)


def test_nothing_is_held_out_without_folds(make):
    fixed = {"shrinkage": 0.1} if make is LatentAligner else {}
    model = make(folds=0, **fixed).fit(*rows())
    assert model.held_out_alignment_.isna().all()
    assert model.mean_alignment_.isna().tolist() == [False, True, True, True, True]
    frame = model.frontier([0, 0.5])
    assert frame.columns.tolist() == [*FRONTIER, *model.covariate_names_]
    assert frame.filter(like="held_out").isna().all(axis=None)
    assert len(ca.plot.frontier(frame).get_lines()) == 1


@pytest.mark.parametrize("folds", [1, -1, 2.5, True])
def test_folds_are_checked(make, folds):
    with pytest.raises(ValueError, match="folds needs a whole number"):
        make(folds=folds).fit(*rows())


def test_automatic_shrinkage_needs_folds():
    with pytest.raises(ValueError, match="at least 2 folds, got 0: use folds=5"):
        LatentAligner(folds=0).fit(*rows())


# -- regimes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("move", ["at", "realign"])
def test_at_moves_to_a_regime(fitted, move):
    at = getattr(fitted, move, fitted.at)  # only the factor model has both names
    assert (at(0.5).regime_, at(0.5).lam_) == ("tunable", 0.5)
    assert (at(lam=0.5).regime_, at(regime="tunable", lam=0.5).lam_) == ("tunable", 0.5)
    assert (at(regime="independent").regime_, at(regime="independent").lam_) == ("independent", 0.0)
    assert at(max_coupling=1e9).lam_ == 1.0
    assert at(0.5).folds == 3


def test_the_exclusive_regime_has_no_lambda(make):
    X, Y = rows()
    exclusive = make().fit(X, Y[["age", "dose"]]).at(regime="exclusive")
    assert exclusive.regime_ == "exclusive"
    assert np.isnan(exclusive.lam_)


@pytest.mark.parametrize(
    "wrong",
    [{}, {"lam": 0.5, "regime": "exclusive"}, {"lam": 0.5, "max_coupling": 1}, {"regime": "max", "max_coupling": 1}],
)
def test_at_needs_one_thing(fitted, wrong):
    with pytest.raises(ValueError, match=r"at\(\) needs one of lam=, regime= or max_coupling="):
        fitted.at(**wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"lam": 2}, "lam needs"), ({"regime": "best"}, "regime needs"), ({"max_coupling": -1}, "max_coupling needs")],
)
def test_at_checks_what_it_is_given(fitted, wrong, words):
    with pytest.raises(ValueError, match=words):
        fitted.at(**wrong)


def test_the_coupling_budget_is_kept_and_used_up(fitted):
    low, high = (fitted.at(lam).coupling_ for lam in (0.0, 1.0))
    budget = (low + high) / 2
    within = fitted.at(max_coupling=budget)
    assert within.coupling_ == pytest.approx(budget, abs=1e-6)
    assert 0 < within.lam_ < 1


def test_a_budget_nothing_keeps_is_refused():
    """In the paper's way, the factors of fitted samples are correlated a little in every regime."""
    X, Y = rows()
    with pytest.raises(ValueError, match=r"no lambda keeps the coupling of the fitted rows within 1e-12\. frontier"):
        InformedFactorAnalysis(6, regime_from="model").fit(X, Y).at(max_coupling=1e-12)
    assert InformedFactorAnalysis(6).fit(X, Y).at(max_coupling=1e-12).coupling_ <= 1e-12


def test_path_is_at(fitted):
    path = fitted.path([0, 0.5])
    assert [*path] == [0.0, 0.5]
    for lam, model in path.items():
        assert model.lam_ == lam
        np.testing.assert_allclose(model.T_, fitted.at(lam).T_)


def test_the_frontier_is_what_at_reaches(make):
    X, Y = rows()
    model = make(folds=3).fit(X, Y[["age", "dose"]])
    frame = model.frontier([0, 0.4, 1])
    assert frame.columns.tolist() == [*FRONTIER, "age", "dose"]
    assert frame["regime"].tolist() == ["independent", "tunable", "strongest", "exclusive"]
    for row in frame.itertuples(index=False):
        at = model.at(regime="exclusive") if row.regime == "exclusive" else model.at(row.lam)
        np.testing.assert_allclose([row.age, row.dose], at.alignment_, atol=1e-7)
        assert row.alignment == pytest.approx(at.alignment_.mean(), abs=1e-7)
        assert row.coupling == pytest.approx(at.coupling_, abs=1e-7)
        assert row.held_out_alignment == pytest.approx(at.held_out_alignment_.mean(), abs=1e-9)
        assert row.held_out_alignment_se == pytest.approx(at.mean_alignment_["se"], abs=1e-9)
    assert len(ca.plot.frontier(frame).get_lines()) == 2


def test_a_frontier_without_an_exclusive_point_says_why(make):
    frame = make(folds=3, drop_first=False).fit(*rows()).frontier([0.5])
    assert frame["regime"].tolist() == ["tunable"]
    assert "stage_ii" in frame.attrs["exclusive"]


def test_a_frontier_with_gaps(make):
    X, Y = rows()
    Y.loc["s10":"s60", "dose"] = np.nan
    model = make(folds=3).fit(X, Y)
    row = model.frontier([0.5]).iloc[0]
    np.testing.assert_allclose(row[model.covariate_names_].astype(float), model.at(0.5).alignment_, atol=1e-7)
    assert model.n_pairs_["dose"] == 189
    assert repr(model).endswith("fitted on 240 rows, dose in 189")


# -- score ------------------------------------------------------------------------------------------------------------


def test_score_is_the_mean_correlation_on_new_rows(fitted):
    X, Y = rows(seed=1)
    model = fitted.at(0.6)
    p = len(model.covariate_names_)
    expected = correlations(np.asarray(model.transform(X))[:, :p], dummies(Y))
    assert model.score(X, Y) == pytest.approx(expected.mean(), abs=1e-9)
    shuffled = Y.sample(frac=1, random_state=0)
    assert model.score(X, shuffled) == pytest.approx(expected.mean(), abs=1e-9)  # matched by name


def test_a_covariate_is_scored_on_the_rows_that_have_it(fitted):
    X, Y = rows(seed=1)
    Y.loc["s0":"s99", "age"] = np.nan
    Y.loc["s200":, "stage"] = None
    coded = dummies(Y)
    coded.loc["s200":, coded.columns[2:]] = np.nan
    p = len(fitted.covariate_names_)
    expected = correlations(np.asarray(fitted.transform(X))[:, :p], coded)
    assert fitted.score(X, Y) == pytest.approx(expected.mean(), abs=1e-9)


def test_a_constant_covariate_does_not_count(fitted):
    X, Y = rows(seed=1)
    p = len(fitted.covariate_names_)
    expected = correlations(np.asarray(fitted.transform(X))[:, :p], dummies(Y))
    assert fitted.score(X, Y.assign(age=3.7)) == pytest.approx(expected[1:].mean(), abs=1e-9)
    assert np.isnan(fitted.score(X, Y.assign(age=3.7, dose=0.1, stage="ii")))


def test_score_takes_what_confounders_explain_out(make):
    X, Y = rows()
    batch = pd.DataFrame({"batch": np.resize([0.0, 1.0, 2.0], 240)}, index=X.index)
    shift = 2 * batch["batch"].to_numpy()[:, None]
    Y = Y[["age", "dose"]]
    each = np.arange(240)  # folds that do not depend on the numbers
    model = make().fit(X + shift, Y + shift, confounders=batch, groups=each)
    new_X, new_Y = rows(seed=1)
    expected = make().fit(X, Y, groups=each).score(new_X, new_Y[["age", "dose"]])
    scored = model.score(new_X + shift, new_Y[["age", "dose"]] + shift, confounders=batch)
    assert scored == pytest.approx(expected, abs=0.02)
    with pytest.raises(ValueError, match="batch"):
        model.score(new_X, new_Y[["age", "dose"]])


def test_score_reads_files(fitted, tmp_path):
    X, Y = rows(seed=1)
    X.to_parquet(tmp_path / "x.parquet")
    Y.to_csv(tmp_path / "y.csv")
    for labels in (Y, tmp_path / "y.csv"):
        assert fitted.score(tmp_path / "x.parquet", labels) == pytest.approx(fitted.score(X, Y), abs=1e-9)


def test_score_needs_y(fitted):
    with pytest.raises(ValueError, match="y is None"):
        fitted.score(rows()[0], None)


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (LatentAligner(), {"lam": [0.0, 1.0]}),
        (InformedFactorAnalysis(tol=1e-4, supervision=1.0), {"n_factors": [3, 6]}),
    ],
    ids=["aligner", "factors"],
)
def test_grid_search_needs_no_scorer(model, grid):
    X, Y = rows()
    search = GridSearchCV(model, grid, cv=3).fit(X, Y[["age", "dose"]])
    assert search.best_score_ == search.cv_results_["mean_test_score"].max() > 0.3
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# -- scikit-learn -----------------------------------------------------------------------------------------------------


def test_tables_have_names(make, fitted):
    X, Y = rows()
    plain = fitted.transform(X)
    assert plain.columns.tolist() == fitted.get_feature_names_out().tolist()
    assert plain.index.equals(X.index)
    table = clone(make(folds=3)).set_output(transform="pandas").fit(X, Y).transform(X)
    assert table.columns.tolist() == fitted.get_feature_names_out().tolist()
    assert table.index.equals(X.index)
    pd.testing.assert_frame_equal(table, plain)
    assert isinstance(make().set_output(transform="pandas").fit_transform(X, Y), pd.DataFrame)
    with sklearn.config_context(transform_output="pandas"):
        assert fitted.transform(X).index.equals(X.index)


def test_tables_give_tables_and_arrays_give_arrays(make):
    """Names of rows and columns come along, in ``fit_transform`` too."""
    X, Y = rows()
    names = make().fit(X, Y).get_feature_names_out().tolist()
    for table in (
        make().fit_transform(X, Y),
        make().set_output(transform="default").fit(X, Y).transform(X[::-1])[::-1],
    ):
        assert isinstance(table, pd.DataFrame)
        assert (table.index.tolist(), table.columns.tolist()) == (X.index.tolist(), names)
    array, numbers = X.to_numpy(), Y.to_numpy()[:, :2].astype(float)
    assert isinstance(make().fit_transform(array, numbers), np.ndarray)
    assert isinstance(make().fit(array, numbers).transform(array), np.ndarray)


def test_a_model_says_its_regime(fitted):
    """So a fit and a realigned model look different."""
    assert "in the tunable regime (lambda 0.9), fitted on" in repr(fitted.at(0.9))
    assert "in the exclusive regime, fitted on" in repr(fitted.at(regime="exclusive"))
    assert "in the exact regime (coupling at most 0.2), fitted on" in repr(fitted.at(max_coupling=0.2, exact=True))
    assert "in the exact regime, fitted on" in repr(fitted.at(exact=True, uncoupled=[("age", "dose")]))
    plain = "without a regime" if fitted.regime_ is None else "in the tunable regime (lambda 0.5)"
    assert f" {plain}, fitted on" in repr(fitted)


def test_a_printed_frontier_shows_its_coupling(make):
    X, Y = rows()
    Y = Y.rename(
        columns={"age": "age_at_the_first_visit_in_whole_years", "dose": "dose_in_mg_for_each_kg_of_body_mass"}
    )
    frontier = make(folds=2).fit(X, Y).frontier([0, 0.5])
    with pd.option_context("display.width", 80, "display.max_columns", 4):
        assert {"coupling", "exact_alignment"} < set(repr(frontier).split())
        assert "<th>coupling</th>" in frontier._repr_html_()
    assert "also 'age_at_the_first_visit_in_whole_years'" in repr(frontier)
    assert type(frontier[["lam", "coupling"]]) is pd.DataFrame
    assert "exclusive" in frontier.attrs


def test_copies_keep_their_own_output(make):
    X, Y = (table.to_numpy() for table in rows())
    fitted = make().fit(X, Y[:, :2].astype(float))
    moved = fitted.at(0.5).set_output(transform="pandas")
    again = moved.at(0.7)
    again.set_output(transform="default")
    assert isinstance(moved.transform(X), pd.DataFrame)
    assert isinstance(again.transform(X), np.ndarray)
    assert isinstance(fitted.transform(X), np.ndarray)
    assert clone(moved)._sklearn_output_config == {"transform": "pandas"}


def test_a_path_is_returned_as_it_is(make, tmp_path):
    X, Y = rows()
    model = make().set_output(transform="pandas").fit(X, Y)
    out = model.transform(X, out=tmp_path / "z.npy")
    assert out == tmp_path / "z.npy"
    np.testing.assert_allclose(np.load(out), model.transform(X), atol=1e-9)


def test_a_dask_array_is_returned_as_it_is(make):
    da = pytest.importorskip("dask.array")
    X, Y = rows()
    model = make().set_output(transform="pandas").fit(X.to_numpy(), Y.to_numpy()[:, :2].astype(float))
    lazy = model.transform(da.from_array(X.to_numpy(), chunks=(80, 20)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.transform(X.to_numpy()), atol=1e-8)


def test_tables_of_polars(make, monkeypatch):
    class DataFrame:
        def __init__(self, values, schema, orient):
            self.shape, self.columns, self.orient = values.shape, schema, orient

    X, Y = rows()
    model = make().fit(X.to_numpy(), Y)
    with sklearn.config_context(transform_output="polars"):
        monkeypatch.setitem(sys.modules, "polars", None)
        with pytest.raises(ImportError, match="pip install polars"):
            model.transform(X.to_numpy())
        fake = {"DataFrame": DataFrame, "LazyFrame": DataFrame, "Series": DataFrame}
        monkeypatch.setitem(sys.modules, "polars", types.SimpleNamespace(**fake))
        made = model.transform(X.to_numpy())
    assert isinstance(made, DataFrame)
    assert made.columns == model.get_feature_names_out().tolist()
    assert (made.shape, made.orient) == ((240, len(made.columns)), "row")


def test_an_unknown_container_is_refused(make):
    with pytest.raises(ValueError, match="one of default, pandas, polars, got 'xarray'"):
        make().set_output(transform="xarray")


def test_in_a_pipeline(make):
    X, Y = rows()
    pipe = make_pipeline(StandardScaler(), make()).set_output(transform="pandas").fit(X, Y)
    assert pipe.transform(X).columns.tolist()[:2] == ["age", "dose"]
    assert pipe.score(X, Y) > 0.3


def test_names_of_the_input_are_checked(fitted):
    X, _ = rows()
    assert fitted.get_feature_names_out(X.columns).tolist() == fitted.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        fitted.get_feature_names_out(["a"] * 20)


def test_arrays_have_no_feature_names(make):
    X, Y = rows()
    model = make().fit(X, Y).fit(X.to_numpy(), Y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 20
    with pytest.raises(ValueError, match=r"number of features \(20\), got 3"):
        model.get_feature_names_out(["a", "b", "c"])


def test_features_of_views_are_named_with_their_view():
    X, Y = rows()
    model = InformedFactorAnalysis(6).fit({"rna": X.iloc[:, :15], "protein": X.iloc[:, 15:]}, Y)
    assert model.feature_names_in_[[0, 14, 15]].tolist() == ["rna:x0", "rna:x14", "protein:x15"]
    assert model.n_features_in_ == 20


def test_views_of_different_samples_become_a_table_of_all():
    X, Y = rows()
    views = {"rna": X.iloc[:200, :15], "protein": X.iloc[40:, 15:]}
    model = InformedFactorAnalysis(6, tol=1e-4).set_output(transform="pandas").fit(views, Y)
    placed, std = model.transform(views, return_std=True)
    assert placed.index.equals(X.index)
    assert std.columns.tolist() == model.factor_names_
    pd.testing.assert_frame_equal(clone(model).fit_transform(views, Y), model.factors_frame())


def test_tags_say_what_is_needed(make):
    tags = make().__sklearn_tags__()
    assert tags.target_tags.required
    assert tags.target_tags.multi_output
    assert tags.transformer_tags is not None


def test_no_more_rows_than_chunk_rows_are_read_at_a_time(make, tmp_path, monkeypatch):
    X, Y = rows()
    np.save(tmp_path / "x.npy", X.to_numpy())
    read, real = [], NpyRows._pieces

    def pieces(self, rows, start):
        for piece in real(self, rows, start):
            read.append(len(piece))
            yield piece

    monkeypatch.setattr(NpyRows, "_pieces", pieces)
    whole = make(folds=2).fit(tmp_path / "x.npy", Y)
    expected = whole.transform(tmp_path / "x.npy")
    assert max(read) == 240
    read.clear()
    model = make(folds=2, chunk_rows=50).fit(tmp_path / "x.npy", Y)
    np.testing.assert_allclose(model.transform(tmp_path / "x.npy"), expected, atol=1e-5)
    scored = model.score(tmp_path / "x.npy", Y)
    assert max(read) == 50
    assert scored == pytest.approx(whole.score(tmp_path / "x.npy", Y), abs=1e-6)
    with pytest.raises(ValueError, match="chunk_rows"):
        make(chunk_rows=0).fit(X, Y)


@pytest.mark.parametrize("saved", [False, True])
def test_parameters_are_kept(make, tmp_path, saved):
    model = make(folds=3, chunk_rows=70).fit(*rows()).at(0.7)
    if saved:
        model.save(tmp_path / "m.covalign")
        model = ca.load(tmp_path / "m.covalign")
    assert (model.folds, model.chunk_rows, model.lam_) == (3, 70, 0.7)
    assert model.feature_names_in_[0] == "x0"
    assert model.n_features_in_ == 20
