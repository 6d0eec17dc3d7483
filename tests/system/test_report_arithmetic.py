"""The page computes what Python computes: its script is run by node where that is installed, on the same facts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
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
const found = settings.map(([regime, lam]) => arithmetic.measured(facts, regime, lam));
console.log(JSON.stringify([found, budgets.map((budget) => arithmetic.lamWithin(facts, budget))]));
"""


def by_node(known, settings, budgets):
    text = json.dumps([known, settings, budgets])
    done = subprocess.run([NODE, "-e", RUN, str(SCRIPT)], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "data", [correlated(0, 300, 6, 3), correlated(1, 60, 40, 5), correlated(2, 300, 4, 1), gappy(3)]
)
def test_the_script_gives_the_numbers_of_python(data):
    aligner = LatentAligner().fit(*data)
    known, budgets = facts.of_aligner(aligner), [0.0, 0.01, 0.3, 100.0]
    found, lams = by_node(known, SETTINGS, budgets)
    for (regime, lam), got in zip(SETTINGS, found, strict=True):
        need = facts.measured(known, regime, lam)
        np.testing.assert_allclose(got["withY"], need["with_y"], atol=1e-9)
        np.testing.assert_allclose(got["among"], need["among"], atol=1e-9)
        np.testing.assert_allclose(got["coupling"], need["coupling"], atol=1e-9)
        for name in ("alignment", "se", "low", "high", "coupling"):
            np.testing.assert_allclose(got["heldOut"][name], need["held_out"][name], atol=1e-9)
    for budget, lam in zip(budgets, lams, strict=True):
        assert lam == pytest.approx(aligner.at(max_coupling=budget).lam, abs=1e-6)


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
