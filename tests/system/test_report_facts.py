"""What a report knows gives back what the aligner says, at any setting, from plain numbers alone."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from covalign import LatentAligner
from covalign.show.report import exact_tradeoff, facts
from tests.conftest import correlated

SETTINGS = [("independent", 0.0), ("tunable", 0.3), ("tunable", 0.85), ("strongest", 1.0), ("exclusive", 0.5)]


def gappy(seed: int):
    Z, Y = correlated(seed, 400, 6, 3)
    Y[np.random.default_rng(seed).random(Y.shape) < 0.15] = np.nan
    return Z, Y


@pytest.mark.parametrize(("regime", "lam"), SETTINGS)
@pytest.mark.parametrize(
    "data", [correlated(0, 300, 6, 3), correlated(1, 60, 40, 3), correlated(2, 300, 4, 1), gappy(3)]
)
def test_numbers_are_those_of_the_aligner(data, regime, lam):
    aligner = LatentAligner().fit(*data)
    known = json.loads(json.dumps(facts.of_aligner(aligner)))
    found, need = (
        facts.measured(known, regime, lam),
        aligner.at(lam=lam) if regime == "tunable" else aligner.at(regime=regime),
    )
    np.testing.assert_allclose(found["alignment"], need.alignment_, atol=1e-9)
    np.testing.assert_allclose(found["coupling"], need.coupling_, atol=1e-9)
    table = need.summary()
    for name, column in (("alignment", "held_out"), ("se", "se"), ("low", "low"), ("high", "high")):
        np.testing.assert_allclose(found["held_out"][name], table[column], atol=1e-8)
    row = need.frontier([lam]).set_index("regime").loc["exclusive" if regime == "exclusive" else regime]
    np.testing.assert_allclose(found["held_out"]["coupling"], row["held_out_coupling"], atol=1e-8)


def test_matrices_are_those_of_the_rows():
    Z, Y = correlated(4, 500, 5, 3)
    aligner = LatentAligner(regime="tunable", lam=0.6).fit(Z, Y)
    found = facts.measured(facts.of_aligner(aligner), "tunable", 0.6)
    named = aligner.transform(Z)
    both = np.corrcoef(named.T, Y.T)
    np.testing.assert_allclose(found["with_y"], both[:3, 3:], atol=1e-9)
    np.testing.assert_allclose(found["among"], both[:3, :3], atol=1e-9)


def test_a_fixed_shrinkage_has_no_folds_and_dependent_covariates_no_exclusive_point():
    Z, Y = correlated(5, 200, 6, 2)
    known = facts.of_aligner(LatentAligner(shrinkage=0.1).fit(Z, Y))
    assert known["folds"] == []
    assert facts.measured(known, "tunable", 0.5)["held_out"] is None
    levels = pd.DataFrame({"site": np.select([Y[:, 0] > 1, Y[:, 0] > 0], ["north", "east"], "south")})
    known = facts.of_aligner(LatentAligner(drop_first=False).fit(Z, levels))
    assert known["covariates"] == ["site_east", "site_north", "site_south"]
    assert "site_north" in known["why_no_exclusive"]
    assert known["fitted"]["M_inverse"] is None
    assert not known["held_out_exclusive"]


def test_the_exact_trade_off_is_that_of_the_frontier():
    Z, Y = correlated(6, 200, 8, 5)
    aligner = LatentAligner().fit(Z, Y)
    known = json.loads(json.dumps(facts.of_aligner(aligner)))
    frame = aligner.frontier(known["exact"]["lam"]).dropna(subset="lam")
    above = frame["exact_alignment"] - frame["alignment"]
    assert above.max() > 0.001
    np.testing.assert_allclose(known["exact"]["above"], above, atol=1e-6)
    assert f"at most {above.max():.4f} below it" in known["about_exact"]


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (1, None),
        (exact_tradeoff.MOST + 1, "drawn for up to 20 covariates; frontier() has it for up to 60."),
        (61, "drawn for up to 20 covariates."),
    ],
)
def test_where_the_exact_trade_off_is_not_computed_the_report_says_so(p, said):
    known = facts.of_aligner(LatentAligner(shrinkage=0.1).fit(*correlated(7, 200, p, p)))
    assert known["exact"] is None
    assert (known["about_exact"] or "").endswith(said or "")
    assert (known["about_exact"] is None) == (said is None)


def test_a_line_that_cannot_be_told_from_that_of_lambda_is_not_drawn():
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((2000, 2))
    known = facts.of_aligner(LatentAligner().fit(Y + 0.3 * rng.standard_normal((2000, 2)), Y))
    assert known["exact"] is None
    assert "less than 0.0005 below it everywhere" in known["about_exact"]


def test_facts_are_small():
    Z, Y = correlated(6, 400, 80, 60)
    text = json.dumps(facts.of_aligner(LatentAligner().fit(Z, Y)))
    assert len(text) < 1_600_000


def test_code_passes_confounders_and_groups():
    Z, Y = correlated(7, 200, 6, 2)
    aligner = LatentAligner().fit(Z, Y, confounders=Z[:, :1] + Y[:, :1], groups=np.arange(200) % 20)
    assert facts.code(aligner, "aligner", "Z, Y").endswith(".fit(Z, Y, confounders=C, groups=groups)")


def test_code_is_python_whatever_was_asked():
    Z, Y = correlated(7, 200, 6, 2)
    known = facts.of_aligner(LatentAligner(shrinkage=np.float64(0.25), folds=np.int64(4)).fit(Z, Y))
    assert known["code"] == "aligner = ca.LatentAligner(folds=4, shrinkage=0.25).fit(Z, Y)"
    s = ca.simulate.scenario("PN", n_samples=60, n_features=10, n_factors=5)
    model = ca.InformedFactorAnalysis(5, random_state=np.random.default_rng(0)).fit(s.X, s.Y)
    assert "random_state=random_state" in facts.code(model, "fa", "X, y")
