"""Samples, features and views that own what many should share: named where planted, and nowhere else."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.exceptions import OwnershipWarning
from covalign.factor import ownership
from covalign.show.report import factor_facts, plain_copy
from tests.conftest import thorough


def quietly(k, X, Y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OwnershipWarning)
        return InformedFactorAnalysis(k, folds=0, supervision=1, **{"tol": 1e-6, **settings}).fit(X, Y)


def cohort(seed=0, n=90, outlier=None):
    """Two views with names; the ``outlier`` is far off in the first view and lacks the second."""
    s = ca.simulate.scenario(
        "PN", n_samples=n, n_features={"rna": 60, "protein": 30}, n_covariates=2, n_factors=5, random_state=seed
    )
    index = [f"patient{i}" for i in range(n)]
    X = {view: pd.DataFrame(x, index=index).add_prefix(view) for view, x in s.X.items()}
    if outlier is not None:
        X["rna"].loc[outlier] += 12 * np.random.default_rng(seed).standard_normal(60)
        X["protein"].loc[outlier] = np.nan
    return X, pd.DataFrame(s.Y, index=index, columns=["age", "dose"])


@pytest.fixture(scope="module")
def with_outlier():
    return quietly(7, *cohort(outlier="patient4"), regime_from="model")


# -- samples ----------------------------------------------------------------------------------------------------------


def test_an_outlier_that_lacks_a_view_is_named(with_outlier):
    found = with_outlier.ownership_
    assert found["kind"].tolist() == ["sample of a factor"]
    (row,) = found.to_dict("records")
    z = with_outlier.factors_frame()[row["factor"]]
    squares = (z - z.mean()) ** 2
    assert row["owner"] == squares.idxmax() == "patient4"
    assert row["share"] == pytest.approx(squares.max() / squares.sum())
    assert row["share"] > 0.8


def test_fit_warns_and_leaving_the_sample_out_helps():
    X, Y = cohort(outlier="patient4")
    with pytest.warns(OwnershipWarning, match=r"'patient4' of '\w+' \(\d+ %\). Leave the sample out") as caught:
        InformedFactorAnalysis(7, folds=0, supervision=1).fit(X, Y)
    assert [caught[0].filename] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", OwnershipWarning)
        rest = {view: x.drop(index="patient4") for view, x in X.items()}
        InformedFactorAnalysis(7, folds=0, supervision=1).fit(rest, Y.drop(index="patient4"))


def test_summary_report_and_saved_model_have_the_findings(with_outlier, tmp_path):
    records = with_outlier.ownership_.to_dict("records")
    assert with_outlier.summary().attrs["ownership"] == records
    facts = factor_facts.of_model(with_outlier)
    (text,) = facts["factors"]["ownership"]
    assert "patient4" in text
    assert records[0]["advice"] in text
    assert text.replace("'", "&#x27;") in plain_copy.concluded(facts)
    with_outlier.save(tmp_path / "model.covalign")
    pd.testing.assert_frame_equal(ca.load(tmp_path / "model.covalign").ownership_, with_outlier.ownership_)


@pytest.mark.parametrize("name", ["PN", *thorough("AR", "P", "N")])
def test_scenarios_have_no_owners(name):
    for seed in range(4):
        for n in (30, 200):
            s = ca.simulate.scenario(name, n_samples=n, n_features={"a": 30, "b": 12}, random_state=seed)
            fa = quietly(10, s.X, s.Y, max_iter=100, tol=1e-5)
            assert fa.ownership_.empty, (seed, n)
            assert list(fa.ownership_) == list(ownership.COLUMNS)
            assert len(fa.at(regime="strongest").ownership_) == 0


@pytest.mark.parametrize("carriers", [1, 2, 5])
def test_few_samples_of_a_rare_flag_own_its_factor_rightly(carriers):
    rng = np.random.default_rng(0)
    flag = np.zeros(100)
    flag[:carriers] = 1
    X = rng.standard_normal((100, 40)) + np.outer(flag, 4 * rng.standard_normal(40))
    fa = quietly(3, X, pd.DataFrame({"flag": flag}))
    squares = (fa.factors_[:, 0] - fa.factors_[:, 0].mean()) ** 2
    assert squares[:carriers].sum() > 0.8 * squares.sum()  # the flag was there to be found
    assert fa.ownership_.empty
    if carriers < 3:
        other = quietly(3, X, pd.DataFrame({"other": rng.permutation(flag) + rng.standard_normal(100)}))
        assert set(other.ownership_["owner"]) == set(range(carriers))


def test_the_limit_is_rarely_exceeded_by_chance():
    rng, k = np.random.default_rng(0), 5
    for n in (4, 6, 10, 20, 40):
        limits = ownership.Limits.of(n, k)
        found = sum(bool(ownership.owners(z, limits)) for z in rng.standard_normal((4000, n)))
        assert found <= 6  # 1.6 are expected at most
        assert 0.5 <= limits.one < (n - 1) / n  # the share of a sample that is all there is
        assert 0.75 <= limits.two < 1
    assert ownership.Limits.of(90, 10) == (0.5, 0.75)


def test_rows_on_disk_are_looked_at_with_their_factors(tmp_path):
    X, Y = cohort(outlier=None)
    rows = X["rna"].to_numpy()
    rows[4] += 12 * np.random.default_rng(0).standard_normal(60)
    np.save(tmp_path / "rows.npy", rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OwnershipWarning)
        fa = InformedFactorAnalysis(7, folds=0, supervision=1).fit(tmp_path / "rows.npy", Y.to_numpy())
        assert fa.ownership_.empty
        stream = InformedFactorAnalysis(7, folds=0, supervision=1).fit([(rows, Y.to_numpy())])
        assert stream.ownership_.empty
    with pytest.warns(OwnershipWarning, match="'4' of"):
        assert fa.factors_.shape == (90, 7)
    assert fa.ownership_["owner"].tolist() == [4]


# -- features and views -----------------------------------------------------------------------------------------------


def test_a_feature_that_is_a_factor_is_named():
    X, Y = cohort()
    X["rna"]["rna7"] *= 100
    fa = quietly(6, X, Y, scale={"rna": False})
    found = fa.ownership_[fa.ownership_["kind"] == "feature of a factor in a view"]
    assert set(found["owner"]) == {"rna7"}
    assert set(found["view"]) == {"rna"}
    for row in found.itertuples():
        w = fa.loadings_["rna"][:, fa.factor_names_.index(row.factor)] ** 2
        assert row.share == pytest.approx(w[7] / w.sum())
    assert "'rna7' of" in ownership.sentences(fa.ownership_)[0]
    assert quietly(6, X, Y).ownership_.empty  # scaled, it is a feature like the others


def test_views_with_few_features_have_no_owners():
    W = np.zeros((9, 1))
    W[3] = 1.0
    on = np.array([[True]])
    assert not ownership.of_features({"x": W}, {"x": list("abcdefghi")}, ["z"], on)
    (one,) = ownership.of_features({"x": np.vstack([W, [0.0]])}, {"x": list("abcdefghij")}, ["z"], on)
    assert (one.owner, one.share) == ("d", 1.0)
    assert not ownership.of_features({"x": np.vstack([W, [0.0]])}, {"x": list("abcdefghij")}, ["z"], ~on)


def test_a_view_that_has_all_factors_is_named():
    X, Y = cohort()
    X["protein"] = X["protein"] * 0 + np.random.default_rng(0).standard_normal(X["protein"].shape)
    fa = quietly(6, X, Y, tol=1e-8)  # the sixth factor is not needed, and the bound is flat before it is turned off
    (row,) = fa.ownership_.to_dict("records")
    assert (row["kind"], row["owner"], row["factor"]) == ("view of all factors", "rna", None)
    assert row["share"] > 0.95
    assert quietly(6, {"rna": X["rna"]}, Y).ownership_.empty  # the only view has nobody to share with


def test_a_sentence_names_at_most_three():
    many = [ownership.Finding(ownership.SAMPLE, f"free{i}", None, f"s{i}", 0.9) for i in range(5)]
    (text,) = ownership.sentences(ownership.frame(many))
    assert "'s2' of 'free2' (90 %) and 2 more. " in text
    assert "s3" not in text
    assert ownership.sentences(ownership.frame([])) == []
