"""Reports of many covariates: no slider, no matrices, the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import covalign as ca
from covalign.show import report
from covalign.show.report import facts as known


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 12))
    return ca.LatentAligner().fit(Z, Z[:, :8] + Z[:, [1, 2, 3, 4, 5, 6, 7, 0]] + rng.normal(size=(300, 8)))


def test_a_page_of_many_covariates_has_their_numbers_and_no_matrices(fitted, monkeypatch, tmp_path):
    usual = report.summary(fitted)
    assert "arithmetic" in report.page(usual, "Usual") or len(report.page(usual, "Usual")) > 50_000
    monkeypatch.setattr(known, "MANY_COVARIATES", 8)
    facts = report.summary(fitted)
    for regime, lam in (("tunable", 0.3), ("strongest", 1.0), ("exclusive", np.nan)):
        found, expected = known.measured(facts, regime, lam), known.measured(usual, regime, lam)
        np.testing.assert_allclose(found["alignment"], expected["alignment"], atol=1e-8)
        for name, values in expected["held_out"].items():
            np.testing.assert_allclose(found["held_out"][name], values, atol=1e-7)
    page = report.write(fitted, tmp_path / "many.html").read_text()
    assert '<script type="application/json" id="facts">{}</script>' in page
    assert "<script></script>" in page
    assert "8 covariates has no slider" in page
    assert "The slider" not in page
    held = fitted.summary()["held_out"]
    for name in fitted.covariate_names_:
        assert f'<th scope="row">{name}</th>' in page
        assert f"<td>{held[name]:.3f}</td>" in page


def test_held_out_numbers_are_measured_once_for_a_setting(fitted, monkeypatch):
    calls = []
    measure = type(fitted._held_out()).measure_mixed
    monkeypatch.setattr(
        type(fitted._held_out()), "measure_mixed", lambda self, *rest: calls.append(1) or measure(self, *rest)
    )
    al = fitted.at(0.25)
    al.summary(), al.mean_alignment_, al.summary()
    assert len(calls) == 1
    other = al.at(0.75)
    assert other.mean_alignment_["held_out"] != al.mean_alignment_["held_out"]
    assert len(calls) == 2
    within = al.at(max_coupling=0.2, exact=True)
    assert within.mean_alignment_["held_out"] != al.mean_alignment_["held_out"]
