"""What a report says first: sentences with the numbers of the model."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import covalign as ca
from covalign import InformedFactorAnalysis, LatentAligner
from covalign.exceptions import NotHeldOutWarning
from covalign.show import report
from covalign.show.report import conclusion
from covalign.show.report.plain_copy import concluded, static
from tests.conftest import correlated


def of(model, **settings):
    return report.summary(model, **settings)["conclusion"]


@cache
def mixed():
    """age and dose go along with each other and with Z, noise with nothing."""
    rng = np.random.default_rng(0)
    age = rng.standard_normal(400)
    Y = pd.DataFrame({"age": age, "the dose": age + 0.5 * rng.standard_normal(400), "noise": rng.standard_normal(400)})
    Z = np.column_stack([Y[["age", "the dose"]] + 0.4 * rng.standard_normal((400, 2)), rng.standard_normal((400, 4))])
    return LatentAligner(lam=0.3).fit(Z, Y)


def test_covariates_are_named_by_verdict_with_their_held_out_alignment():
    model = mixed()
    said, table = of(model), model.summary()
    assert said["headline"] == "2 of 3 covariates are captured on new rows"
    first = sorted(["age", "the dose"], key=lambda name: -table.loc[name, "held_out"])
    quoted = {"age": "age", "the dose": "“the dose”"}
    listed = " and ".join(f"{quoted[name]} ({table.loc[name, 'held_out']:.2f})" for name in first)
    assert said["said"][0] == f"Captured: {listed}."
    assert said["said"][1] == f"Not captured: noise ({table.loc['noise', 'held_out']:.2f})."
    assert f"λ = 0.30, coupling {model.coupling_:.2g}" in said["meaning"]
    assert said["warnings"] == []


def test_what_the_slider_buys_is_the_frontier():
    model = mixed()
    ends = model.frontier([0, 1]).set_index("regime")
    gained = [model.at(lam=lam).summary()["held_out"] for lam in (0, 1)]
    most = (gained[1] - gained[0]).idxmax()
    said = of(model)["said"][-1]
    a, b = ends.loc[["independent", "strongest"], "held_out_alignment"]
    assert f"mean alignment on new rows goes from {a:.2f} to {b:.2f}" in said
    assert f"{gained[0][most]:.2f} to {gained[1][most]:.2f}" in said
    assert f"coupling from 0 to {ends.loc['strongest', 'coupling']:.2g} (age and “the dose” then correlate by" in said


def test_a_slider_that_changes_nothing_is_called_so():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((3000, 2))
    model = LatentAligner().fit(Y + 0.3 * rng.standard_normal((3000, 2)), Y)
    said = of(model)["said"][-1]
    assert said.startswith("The slider changes almost nothing")
    largest = abs(np.corrcoef(model.at(lam=1).transform(Y).T)[0, 1])
    assert largest < 0.1
    assert "With one covariate the slider changes nothing" in of(LatentAligner().fit(Y, Y[:, :1]))["said"][-1]


def test_overfitting_buys_no_alignment_and_is_warned_of():
    rng = np.random.default_rng(3)
    model = LatentAligner().fit(rng.standard_normal((120, 40)), rng.standard_normal((120, 4)))
    said, mean = of(model), model.mean_alignment_
    assert "None of the 4 covariates is captured" in said["headline"]
    (warned,) = said["warnings"]
    assert f"mean alignment {mean['in_sample']:.2f} and {mean['held_out']:.2f}" in warned


def test_without_held_out_rows_nothing_is_said_of_new_ones():
    model = LatentAligner(shrinkage=0.1).fit(*correlated(0, 200, 6, 3))
    said = of(model)
    assert said["headline"] == "Nothing is known about new rows"
    assert f"mean alignment is {model.alignment_.mean():.2f}" in said["said"][0]
    assert "on the fitted rows goes from" in said["said"][-1]
    assert not any("aptured" in text for text in [*said["said"], said["meaning"]])


def test_many_covariates_are_not_all_named():
    said = of(LatentAligner().fit(*correlated(1, 500, 35, 30)))
    assert said["headline"] == "All 30 covariates are captured on new rows"
    assert said["said"][0].endswith("and 24 more.")
    assert said["said"][0].count("(") == 6


def test_few_groups_are_warned_of():
    Z, Y = correlated(0, 120, 6, 2)
    for n_groups, warned in ((4, True), (12, False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotHeldOutWarning)
            model = LatentAligner().fit(Z, Y, groups=np.arange(120) % n_groups)
        assert any("only 4 groups" in text for text in of(model)["warnings"]) == warned


def test_right_to_left_names_are_isolated_and_nothing_is_markup():
    Z, Y = correlated(0, 300, 6, 3)
    names = ["\u05d2\u05d9\u05dc", "\u202edose", "<b>age</b>"]
    facts = report.summary(LatentAligner().fit(Z, pd.DataFrame(Y, columns=names)))
    first = facts["conclusion"]["said"][0]
    assert all(f"\u2068{name}\u2069 (" in first for name in names[:2])
    assert "<b>" not in concluded(facts)
    assert "&lt;b&gt;age&lt;/b&gt;" in concluded(facts)


@pytest.mark.parametrize(
    ("coupling", "shown"), [(1e-17, "0"), (0.00149, "0.0015"), (0.31, "0.31"), (173.2, "173"), (1234.0, "1,234")]
)
def test_a_coupling_has_the_digits_that_count(coupling, shown):
    assert conclusion._plain(coupling) == shown


# -- factor models ----------------------------------------------------------------------------------------------------


@cache
def far_off():
    s = ca.simulate.scenario("PN", n_samples=80, n_features={"rna": 30, "protein": 12}, n_covariates=2, n_factors=4)
    names = [f"patient {i}" for i in range(80)]
    views = {name: pd.DataFrame(X, names).add_prefix(name) for name, X in s.X.items()}
    views["rna"].iloc[7] *= 30
    Y = pd.DataFrame(s.Y, names, ["age", "dose"])
    return InformedFactorAnalysis(5, noise="student", folds=0, supervision=1, tol=1e-3).fit(views, Y)


def test_samples_that_count_less_are_named():
    model = far_off()
    facts = report.summary(model)
    weights = model.sample_weights_
    shown = facts["factors"]["weights"]
    assert shown["count"] == int((weights < 0.25).any(axis=1).sum())
    assert shown["samples"][0]["name"] == "patient 7"
    for one in shown["samples"]:
        assert one["weight"] == pytest.approx(weights.loc[one["name"], one["view"]])
    text = next(text for text in facts["conclusion"]["warnings"] if "far off" in text)
    assert f"“patient 7” ({weights.loc['patient 7', 'rna']:.2g} in rna)" in text
    assert "far off" in concluded(facts)
    assert "No samples were left out (the model has folds=0)" in facts["conclusion"]["said"][0]


def test_a_fit_that_did_not_converge_is_warned_of():
    s = ca.simulate.scenario("PN", n_samples=60, n_features=12, n_covariates=2, n_factors=3)
    with pytest.warns(ConvergenceWarning):
        model = InformedFactorAnalysis(3, max_iter=2, tol=1e-12, folds=0, supervision=1).fit(s.X, s.Y)
    assert any("did not converge in 2 sweeps" in text for text in of(model)["warnings"])
    assert report.summary(model)["factors"]["weights"] is None  # noise is Gaussian


# -- gene sets and features -------------------------------------------------------------------------------------------


def test_gene_sets_are_those_of_enrichment():
    model = far_off()
    sets = {"first": [f"rna{d}" for d in range(8)], "second": [f"rna{d}" for d in range(10, 22)], "none": ["x", "y"]}
    shown, frame = report.summary(model, gene_sets=sets)["factors"]["sets"], model.enrichment(sets)
    assert (shown["given"], shown["tested"]) == (3, 2)
    assert shown["unmatched"] == {"rna": 2}  # a view in which no set is tested has no say
    for k, name in enumerate(model.factor_names_):
        rows = frame[frame["factor"] == name].sort_values("p")
        assert [one["set"] for one in shown["best"][k]] == rows["set"].tolist()
        assert [one["q"] for one in shown["best"][k]] == rows["q"].tolist()
        assert shown["found"][k] == int((rows["q"] < 0.05).sum())


def test_without_scripts_there_are_features_and_gene_sets():
    model = far_off()
    best = model.top_features("dose", "rna", 3)
    sets = {"of <dose>": model.top_features("dose", "rna", 30).query("loading > 0")["feature"][:6]}
    text = static(report.summary(model, gene_sets=sets))
    assert ", ".join(f"{feature} ({loading:.2g})" for feature, loading, _ in best.itertuples(index=False)) in text
    found = model.enrichment(sets).query("q < 0.05")
    assert len(found)
    assert text.count("<td>of &lt;dose&gt;</td>") == len(found)
    assert "No gene set has q" in static(report.summary(model, gene_sets={"any": [f"rna{d}" for d in range(0, 30, 4)]}))


def test_gene_sets_need_a_factor_model():
    with pytest.raises(ValueError, match="gene_sets needs a fitted InformedFactorAnalysis, which has loadings"):
        report.summary(mixed(), gene_sets={"a": ["b"]})


def test_features_without_a_loading_are_not_listed():
    s = ca.simulate.scenario("PN", n_samples=100, n_features={"rna": 20, "other": 20}, n_covariates=2, n_factors=3)
    views = {**s.X, "other": np.random.default_rng(0).standard_normal((100, 20))}
    model = InformedFactorAnalysis(6, folds=0, supervision=1).fit(views, s.Y)
    shown = report.summary(model)["factors"]["views"]
    dropped = 0
    for view in shown:
        largest = np.abs(model.loadings_[view["name"]]).max()
        for k in range(model.n_factors_):
            listed = [abs(loading) for _, loading, _ in view["top"][k]]
            every = model.top_features(k, view["name"], 10)["loading"].abs()
            assert listed == every[every >= 0.01 * largest].tolist()
            dropped += 10 - len(listed)
    assert dropped > 0
