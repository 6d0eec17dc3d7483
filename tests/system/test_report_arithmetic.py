"""The page computes what Python computes: its script is run by node where that is installed, on the same facts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covalign.show.report
from covalign import LatentAligner
from covalign.show.report import facts
from tests.conftest import correlated
from tests.system.test_report_facts import SETTINGS, gappy

SCRIPT = Path(covalign.report.__file__).parent / "page" / "arithmetic.js"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(
    NODE is None, reason="node is not installed; the browser tests compare the same numbers"
)

RUN = """
const arithmetic = require(process.argv[1]);
const [facts, settings, budgets] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const views = facts.factors ? facts.factors.views : [];
const found = settings.map(([regime, lam]) => ({
  ...arithmetic.measured(facts, regime, lam),
  shares: views.map((view) => arithmetic.allShares(view, facts.fitted, regime, lam)),
}));
console.log(JSON.stringify([found, budgets.map((budget) => arithmetic.lamWithin(facts, budget))]));
"""


def by_node(known, settings, budgets):
    text = json.dumps([known, settings, budgets])
    done = subprocess.run([NODE, "-e", RUN, str(SCRIPT)], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def rare():
    """A covariate and a category: of its levels, one has a single row, which no fit knows when it is left out."""
    Z, Y = correlated(6, 80, 8, 1)
    return Z, pd.DataFrame({"dose": Y[:, 0], "site": ["north"] + ["east"] * 2 + ["south"] * 77})


def few_labels():
    Z, Y = correlated(10, 20, 4, 3)
    Y[np.random.default_rng(0).random(Y.shape) < 0.4] = np.nan
    return Z, Y


def nuisance(n: int):
    return np.random.default_rng(1).standard_normal((n, 2))


FITS = {
    "complete": lambda: LatentAligner().fit(*correlated(0, 300, 6, 3)),
    "fewer rows than columns": lambda: LatentAligner().fit(*correlated(1, 60, 80, 5)),
    "one covariate": lambda: LatentAligner().fit(*correlated(2, 300, 4, 1)),
    "gaps": lambda: LatentAligner().fit(*gappy(3)),
    "confounders": lambda: LatentAligner().fit(*correlated(5, 200, 6, 3), confounders=nuisance(200)),
    "gaps and confounders": lambda: LatentAligner().fit(*gappy(4), confounders=nuisance(400)),
    "rare levels": lambda: LatentAligner(drop_first=True).fit(*rare()),
    "few labels": lambda: LatentAligner().fit(*few_labels()),
    "two folds": lambda: LatentAligner(folds=2).fit(*correlated(7, 100, 6, 3)),
    "ten folds": lambda: LatentAligner(folds=10).fit(*correlated(8, 400, 6, 3)),
    "groups": lambda: LatentAligner().fit(*correlated(9, 120, 6, 3), groups=np.arange(120) % 7),
    "many groups": lambda: LatentAligner().fit(*correlated(9, 120, 60, 3), groups=np.arange(120) % 60),
    "three rows": lambda: LatentAligner().fit(*correlated(11, 3, 4, 1)),
    "four rows": lambda: LatentAligner().fit(*correlated(12, 4, 4, 2)),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_the_script_gives_the_numbers_of_python(fit):
    aligner = fit()
    known, budgets = facts.of_aligner(aligner), [0.0, 0.01, 0.3, 100.0]
    settings = [setting for setting in SETTINGS if setting[0] != "exclusive" or known["held_out_exclusive"]]
    found, lams = by_node(known, settings, budgets)
    for (regime, lam), got in zip(settings, found, strict=True):
        need = facts.measured(known, regime, lam)
        close(got["withY"], need["with_y"])
        close(got["among"], need["among"])
        close(got["coupling"], need["coupling"])
        for name in ("alignment", "se", "low", "high", "coupling"):
            close(got["heldOut"][name], need["held_out"][name])
        mean = (aligner.at(lam=lam) if regime == "tunable" else aligner.at(regime=regime)).mean_alignment_
        of_page = [got["heldOut"][name] for name in ("mean", "meanLow", "meanHigh")]
        close(of_page, mean[["held_out", "low", "high"]], 1e-8)  # facts are rounded
    for budget, lam in zip(budgets, lams, strict=True):
        assert lam == pytest.approx(aligner.at(max_coupling=budget).lam, abs=1e-6)


def close(got, need, atol=1e-9):
    """Numbers of the page and of Python; JSON has null for NaN."""
    np.testing.assert_allclose(np.array(got, dtype=float), need, atol=atol)


def test_a_level_with_one_row_is_not_held_out_and_the_others_are():
    known = facts.of_aligner(LatentAligner(drop_first=True).fit(*rare()))
    (got,), _ = by_node(known, [("tunable", 0.5)], [])
    there = dict(zip(known["covariates"], got["heldOut"]["alignment"], strict=True))
    assert [name for name, value in there.items() if value is None] == ["site_north"]


def unseen():
    """Covariates of which Z cannot see one at all, nor tell three others apart."""
    Z, Y = correlated(4, 300, 7, 3)
    seen = Y - Y.mean(axis=0)
    basis = np.linalg.qr(np.column_stack([np.ones(300), Z, seen]))[0]
    apart = np.random.default_rng(4).standard_normal(300)
    apart -= basis @ (basis.T @ apart)
    return Z, np.column_stack([seen, seen[:, 0] + seen[:, 1], apart])


def test_singular_covariates_are_the_same_up_to_the_strongest():
    known = facts.of_aligner(LatentAligner(shrinkage=0.0).fit(*unseen()))
    assert min(np.abs(np.array(known["fitted"]["M"])).max(axis=1)) < 1e-12
    settings = [("tunable", lam) for lam in (0.0, 0.5, 0.99, 0.9999)] + [("strongest", 1.0)]
    found, _ = by_node(known, settings, [])
    for (regime, lam), got in zip(settings, found, strict=True):
        need = facts.measured(known, regime, lam)
        np.testing.assert_allclose(got["withY"], need["with_y"], atol=1e-9)
        np.testing.assert_allclose(got["among"], need["among"], atol=1e-9)
        np.testing.assert_allclose(got["coupling"], need["coupling"], atol=1e-9)


@pytest.mark.parametrize("limits", [{"max_coupling": 0.2}, {"uncoupled": [("y0", "y1")], "weights": {"y2": 3}}])
@pytest.mark.parametrize("estimator", ["aligner", "model"])
def test_the_exact_regime_has_the_numbers_of_its_model(estimator, limits):
    Z, Y = correlated(13, 200, 12, 3)
    fitted = LatentAligner() if estimator == "aligner" else covalign.InformedFactorAnalysis(5, folds=3, supervision=1)
    exact = fitted.fit(Z, Y).at(exact=True, **limits)
    known = covalign.report.summary(exact)
    assert (known["regime"], known["limits"]["words"] != "") == ("exact", True)
    assert eval(f"fitted.at({known['limits']['code']})", {"fitted": fitted}).coupling_ == pytest.approx(exact.coupling_)
    (got,), _ = by_node(known, [("exact", known["lam"])], [])
    need, summary = facts.measured(known, "exact", known["lam"]), exact.summary()
    close(need["alignment"], exact.alignment_, 1e-8)
    close(need["coupling"], exact.coupling_, 1e-8)
    for name, column in (("alignment", "held_out"), ("low", "low"), ("high", "high")):
        close(need["held_out"][name], summary[column], 1e-7)
        close(got["heldOut"][name], need["held_out"][name])
    close(got["withY"], need["with_y"])
    close(got["coupling"], need["coupling"])
    assert known["limits"]["words"] in known["conclusion"]["meaning"]


def test_other_regimes_have_no_limits():
    assert facts.of_aligner(LatentAligner().fit(*correlated(0, 300, 6, 3)))["limits"] is None
