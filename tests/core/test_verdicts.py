"""informed_: beta, its interval and a verdict from what left-out samples say."""

from __future__ import annotations

import numpy as np
import pytest

from covalign.closed_form.pooled_correlation import Estimate
from covalign.factor.verdicts import informed, verdict


def said(value, se, low, high, reliability=1.0, n_factors=10, n_train=90):
    known = Estimate(*(np.array([part]) for part in (value, se, low, high)))
    return informed(["age"], known, known, np.array([reliability]), n_factors, n_train).loc["age"]


@pytest.mark.parametrize("beta", [0.5, 0.8])
def test_the_error_of_a_direction_is_taken_out(beta):
    """y is regressed on K factors of n samples; new samples see a smaller correlation, and the estimate undoes it."""
    rng, n, k, seen = np.random.default_rng(0), 100, 10, []
    for _ in range(2000):
        Z = rng.standard_normal((n, k))
        w = np.linalg.lstsq(Z, beta * Z[:, 0] + np.sqrt(1 - beta**2) * rng.standard_normal(n), rcond=None)[0]
        seen.append(beta * w[0] / np.linalg.norm(w))  # corr(w'z, y) of new samples
    r = float(np.sqrt(np.mean(np.square(seen))))
    assert r < beta - 0.02
    assert said(r, 1e-9, r, r, n_factors=k, n_train=n)["beta"] == pytest.approx(beta, abs=0.01)


def test_a_correlation_that_may_be_chance_is_not_enlarged():
    one = said(0.1, 0.1, -0.07, 0.26)
    assert one["beta"] == pytest.approx(0.1)
    assert one["low"] == 0
    assert one["high"] > 0.26


def test_a_factor_that_is_known_badly_has_a_larger_beta():
    assert said(0.5, 0.05, 0.4, 0.6, 0.6)["beta"] > said(0.5, 0.05, 0.4, 0.6)["beta"]
    assert said(0.9, 0.05, 0.8, 0.95, 0.1)["high"] == 1


def test_verdicts():
    assert [verdict(*ends) for ends in ((0.01, 0.2), (-0.1, 0.2), (-0.1, 0.4), (np.nan, np.nan))] == [
        "captured",
        "not captured",
        "unclear",
        "unclear",
    ]
    assert said(0.1, 0.1, -0.07, 0.26, n_train=10_000)["verdict"] == "not captured"
    assert said(0.1, 0.1, -0.07, 0.26, n_train=90)["verdict"] == "unclear"  # a beta of .3 is not excluded
