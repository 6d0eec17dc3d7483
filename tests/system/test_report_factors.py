"""What a report knows of a factor model gives back what the model says, at any setting, from plain numbers alone."""

from __future__ import annotations

import json
import re
from copy import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import covalign as ca
from covalign import InformedFactorAnalysis
from covalign.closed_form import metrics
from covalign.show import report
from covalign.show.report import factor_facts as factors
from covalign.show.report import facts
from covalign.show.report.document import as_json
from covalign.show.report.plain_copy import static
from tests.system.test_report_arithmetic import NODE, by_node, close


@cache
def complete_tables():
    s = ca.simulate.scenario("PN", n_samples=200, n_features={"a": 30, "b": 20}, n_factors=7, random_state=1)
    return s.X, s.Y


@cache
def complete():
    return InformedFactorAnalysis(7).fit(*complete_tables())


@cache
def paper():
    return InformedFactorAnalysis(7, folds=3, tol=1e-6, regime_from="model").fit(*complete_tables())


@cache
def supervised():
    return InformedFactorAnalysis(7, folds=3, supervision=4).fit(*complete_tables())


@cache
def gappy_tables():
    s = ca.simulate.scenario("N", n_samples=200, n_features={"a": 30, "b": 20}, n_factors=7, random_state=2)
    views = {name: pd.DataFrame(X) for name, X in s.X.items()}
    views["b"].iloc[:50] = np.nan
    views["a"].iloc[150:160, :7] = np.nan
    Y = pd.DataFrame(s.Y[:, :3], columns=["age", "dose", "weight"])
    Y.loc[20:40, "dose"] = np.nan
    Y["subtype"] = np.array(["x", "y", "z"])[np.digitize(s.Y[:, 3], [-0.5, 0.5])]
    Y.loc[0:3, "subtype"] = None
    Y["batch"] = np.array(["p", "q"])[np.arange(200) % 2]
    return views, Y


@cache
def gappy():
    model = InformedFactorAnalysis(9, tol=1e-2, folds=3, drop_first=False)  # dependent covariates
    views, Y = gappy_tables()
    return model.fit(views, Y, confounders=["batch"])


def judged_factors(model):
    """The factors that alignment_ and coupling_ are about: of features alone, in the paper's way with covariates."""
    if model.regime_from == "model":
        return model.factors_
    if model.confounder_names_:
        views, Y = gappy_tables()
        return np.asarray(model.transform(views, confounders=Y[["batch"]]))
    return model.transform(complete_tables()[0])


MODELS = {"complete": complete, "gaps": gappy, "paper": paper, "supervised": supervised}


@pytest.fixture(scope="module", params=MODELS.values(), ids=MODELS)
def model(request):
    return request.param()


def unfolded(model):
    """The model with nothing held out."""
    return copy(model).set_params(folds=0)


MOVES = [
    (facts.AS_FITTED, lambda m: m),
    ("tunable", lambda m: m.realign(0.35)),
    ("independent", lambda m: m.realign(regime="independent")),
    ("strongest", lambda m: m.realign(regime="strongest")),
]


@pytest.mark.parametrize(("regime", "move"), MOVES, ids=[name for name, _ in MOVES])
def test_numbers_are_those_of_the_model(model, regime, move):
    known = json.loads(json.dumps(report.summary(model)))
    moved = move(model)
    p = len(moved.covariate_names_)
    found = facts.measured(known, regime, 0.35)
    np.testing.assert_allclose(found["alignment"], moved.alignment_, atol=1e-8)
    np.testing.assert_allclose(found["coupling"], metrics.coupling(judged_factors(moved)[:, :p]), atol=1e-8)
    for name in ("alignment", "se", "low", "high"):
        column = "held_out" if name == "alignment" else name
        np.testing.assert_allclose(found["held_out"][name], moved.summary()[column], atol=1e-8)
    many = p if model.regime_from == "model" else model.n_factors_  # the paper's free factors are fitted again
    for at, view in enumerate(known["factors"]["views"]):
        need = moved.variance_explained().to_numpy()[at, :many]
        np.testing.assert_allclose(facts.all_shares(view, known["fitted"], regime, 0.35)[:many], need, atol=1e-8)


@pytest.mark.parametrize("made", MODELS.values(), ids=MODELS)
@pytest.mark.skipif(NODE is None, reason="node is not installed; the browser tests compare the same numbers")
def test_the_script_gives_the_numbers_of_python(made):
    known = report.summary(made())
    settings = [(facts.AS_FITTED, 0.5), ("independent", 0.0), ("tunable", 0.35), ("strongest", 1.0)]
    found, _ = by_node(json.loads(as_json(known)), settings, [])
    for (regime, lam), got in zip(settings, found, strict=True):
        need = facts.measured(known, regime, lam)
        close(got["withY"], need["with_y"])
        close(got["among"], need["among"])
        for name in ("alignment", "se", "low", "high", "coupling"):
            close(got["heldOut"][name], need["held_out"][name])
        for at, shares in enumerate(got["shares"]):
            close(shares, facts.all_shares(known["factors"]["views"][at], known["fitted"], regime, lam))


def test_a_realigned_model_opens_at_its_own_setting(model):
    known = report.summary(unfolded(model.realign(0.8)))
    assert (known["regime"], known["lam"]) == ("tunable", 0.8)
    assert report.summary(unfolded(model))["regime"] == facts.AS_FITTED
    assert known["folds"] == []
    assert known["why_not_held_out"] == "the model has folds=0"


def test_samples_are_those_of_the_model():
    model = gappy()
    shown = report.summary(unfolded(model))["factors"]["samples"]
    assert len(shown["informed"]) == shown["of"] == 200
    known = report.summary(unfolded(model))
    F = facts.mixing(known["fitted"], "tunable", 0.6)
    first, moved = judged_factors(model), judged_factors(model.realign(0.6))  # from features alone
    for p in range(6):
        assert np.corrcoef(np.array(shown["informed"]) @ F[p], moved[:, p])[0, 1] == pytest.approx(1, abs=1e-6)
    free = [model.factor_names_.index(name) for name in shown["free"]]
    np.testing.assert_allclose(shown["free_values"], moved[:, free], rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(shown["stage_1"]["informed"], first[:, :6], rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(shown["stage_1"]["free_values"], first[:, free], rtol=1e-4, atol=1e-8)
    colours = {colour["name"]: colour for colour in shown["colours"]}
    assert colours["subtype"]["levels"] == ["x", "y", "z"]
    assert colours["subtype"]["values"][:4] == [None] * 4
    assert colours["dose"]["values"][20] is None
    assert set(colours) == {"age", "dose", "weight", "subtype"}


@pytest.mark.parametrize("kind", ["complete", "supervised", "paper"])
def test_samples_of_complete_tables(kind):
    model = MODELS[kind]()
    shown = report.summary(unfolded(model))["factors"]["samples"]
    np.testing.assert_allclose(shown["stage_1"]["informed"], judged_factors(model)[:, :5], rtol=1e-4, atol=1e-8)


def test_colours_are_the_covariates_before_coding():
    s = ca.simulate.scenario("PN", n_samples=120, n_features=20, n_factors=6)
    stage = pd.Categorical(
        np.array(["low", "mid", "high"])[np.digitize(s.Y[:, 1], [-0.5, 0.5])], ["low", "mid", "high"]
    )
    Y = pd.DataFrame(
        {
            "age": s.Y[:, 0] * 10 + 50,
            "stage": stage.as_ordered(),
            "sex": np.where(s.Y[:, 2] > 0, "f", "m"),
            "site": np.array(["a", "b", "c", "d"])[np.digitize(s.Y[:, 3], [-0.7, 0, 0.7])],
        }
    )
    for drop_first in (False, True):
        model = InformedFactorAnalysis(8, drop_first=drop_first, tol=1e-3, supervision=1).fit(s.X, Y)
        colours = report.summary(unfolded(model))["factors"]["samples"]["colours"]
        assert colours[0]["values"] == pytest.approx(Y["age"].tolist(), rel=1e-4)
        for colour, name in zip(colours[1:], ["stage", "sex", "site"], strict=True):
            assert [colour["levels"][level] for level in colour["values"]] == Y[name].astype(str).tolist()


def test_a_report_says_which_covariates_are_captured():
    model = supervised().realign(0.4)
    known = report.summary(model)
    assert known["supervision"] == 4
    frame = pd.DataFrame(known["informed"]).set_index("covariate")
    pd.testing.assert_frame_equal(frame, model.informed_)
    known["informed"][2]["verdict"] = "not captured"
    copy_without_scripts = static(known)
    shown = dict(re.findall(r'<th scope="row">(\w+)</th>(?:<td>[^<]*</td>){3}<td>([a-z ]+)</td>', copy_without_scripts))
    assert shown == {row["covariate"]: row["verdict"] for row in known["informed"]}
    assert "Supervision 4, share of the regression on all features 0." in copy_without_scripts
    assert {row["verdict"] for row in report.summary(unfolded(model))["informed"]} == {"unclear"}


def test_many_samples_are_thinned_evenly():
    s = ca.simulate.scenario("PN", n_samples=3000, n_features=20, n_factors=6)
    shown = report.summary(unfolded(InformedFactorAnalysis(6).fit(s.X, s.Y)))["factors"]["samples"]
    names = [int(name) for name in shown["names"]]
    assert (len(names), names[0], names[-1], shown["of"]) == (1000, 1, 3000, 3000)
    assert set(np.diff(names)) <= {3, 4}


def test_gaps_are_counted():
    missing = report.summary(unfolded(gappy()))["factors"]["missing"]
    first, second = missing["views"]
    assert (first["whole"], first["partly"], first["absent"]) == (190, 10, 0)
    assert first["observed"] == pytest.approx(1 - 70 / (200 * 30))
    assert (second["whole"], second["partly"], second["absent"]) == (150, 0, 50)
    assert missing["together"] == [{"has": [True, True], "samples": 150}, {"has": [True, False], "samples": 50}]
    assert missing["covariates"] == [0, 21, 0, 4, 4, 4]


def test_gaps_are_counted_by_the_model_alone(monkeypatch):
    model = gappy()
    frame = model.missing_frame()
    monkeypatch.setattr(model, "missing_frame", lambda: frame.assign(samples=2 * frame["samples"]), raising=False)
    missing = factors.missing(model)
    assert [view["absent"] for view in missing["views"]] == [0, 100]
    assert missing["covariates"] == [0, 42, 0, 8, 8, 8]


def test_the_bound_and_the_features_are_the_models(model):
    known = report.summary(unfolded(model))["factors"]
    assert known["bound"]["values"] == model.elbo_.tolist()
    assert known["bound"]["at"] == list(range(1, model.n_iter_ + 1))
    top = model.top_features(1, "a", factors.TOP)
    assert [row[0] for row in known["views"][0]["top"][1]] == top["feature"].tolist()
    assert [row[1] for row in known["views"][0]["top"][1]] == top["loading"].tolist()
    assert known["beta"] == model.beta_.tolist()


def test_a_long_curve_is_thinned_and_keeps_its_end():
    s = ca.simulate.scenario("PN", n_samples=100, n_features=20, n_factors=6)
    model = InformedFactorAnalysis(6, accelerate=False, max_iter=600, tol=1e-12, posterior="mean_field")
    with pytest.warns(ConvergenceWarning):
        model.fit(s.X, s.Y)
    bound = factors.bound(model)
    assert len(bound["values"]) <= factors.POINTS
    assert (bound["at"][0], bound["at"][-1], bound["values"][-1]) == (1, 600, model.elbo_[-1])
    assert not bound["converged"]


def test_many_groups_of_gaps_leave_shares_where_they_are(monkeypatch):
    monkeypatch.setattr(factors, "LIVE", 100)
    model = gappy()
    views = report.summary(unfolded(model))["factors"]["views"]
    assert [view["live"] for view in views] == [None, None]
    np.testing.assert_allclose([view["shares"] for view in views], model.variance_explained())


def test_rows_read_by_chunks_leave_a_report_without_samples(tmp_path):
    s = ca.simulate.scenario("PN", n_samples=300, n_features=20, n_factors=6)
    np.save(tmp_path / "x.npy", s.X)
    model = InformedFactorAnalysis(6).fit(tmp_path / "x.npy", s.Y)
    known = report.summary(model)
    assert known["factors"]["samples"] is None
    assert known["folds"] == []
    assert "rows in memory" in known["why_not_held_out"]
    np.testing.assert_allclose(
        facts.measured(known, "tunable", 0.5)["alignment"], model.realign(0.5).alignment_, atol=1e-8
    )
    model.save(tmp_path / "m.covalign")
    again = report.summary(ca.load(tmp_path / "m.covalign"))
    assert again["fitted"] == known["fitted"]


def test_code_says_what_was_asked():
    assert report.summary(complete())["code"] == "fa = ca.InformedFactorAnalysis(n_factors=7).fit(X, y)"
    assert report.summary(unfolded(gappy()))["code"].endswith(
        "(drop_first=False, folds=0, n_factors=9, tol=0.01).fit(X, y, confounders=C)"
    )


def test_only_models_have_reports():
    with pytest.raises(ValueError, match="needs a fitted LatentAligner or InformedFactorAnalysis, got a dict"):
        report.summary({})
