"""Groups: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import covalign as ca
from tests.system.test_groups import covariates, donors


@pytest.mark.parametrize(("n", "n_donors", "k"), [(3000, 8, 10), (300, 12, 4)])
def test_intervals_hold_0_where_a_covariate_of_donors_has_no_effect(n, n_donors, k):
    """An interval of 90 % does so in fewer than 23 of 30 draws with a probability of 0.8 %."""
    held, without = 0, 0
    for seed in range(30):
        Z, Y = donors(seed, n, n_donors, k)
        age = ca.LatentAligner().fit(Z, Y, groups="donor").summary().loc["age"]
        held += bool(age["low"] <= 0 <= age["high"])
        alone = ca.LatentAligner().fit(Z, covariates(Y)).summary().loc["age"]
        without += bool(alone["low"] <= 0 <= alone["high"])
    assert held >= 23
    assert without <= 3


# -- permutations -----------------------------------------------------------------------------------------------------


def test_p_values_of_a_covariate_of_donors_without_effect_are_uniform():
    found = []
    for seed in range(60):
        Z, Y = donors(seed, 120, n_donors=12, k=3, effect=0.5)
        model = ca.LatentAligner(shrinkage=0.1).fit(Z, Y, groups="donor")
        found.append(model.permutation_test(Z, Y, 99, seed, groups="donor")["p_value"])
    p = pd.DataFrame(found).reset_index(drop=True)
    # Kolmogorov's distance from a uniform distribution: 1 % of samples of 60 are farther away than 0.21.
    ranks = (np.arange(60) + 0.5) / 60
    assert np.abs(np.sort(p["age"]) - ranks).max() < 0.21
    # Dose differs within donors, and has an effect. Without groups age seems to have one.
    assert (p["dose"] <= 0.05).mean() > 0.8
    Z, Y = donors(0, 120, n_donors=12, k=3)
    alone = ca.LatentAligner(shrinkage=0.1).fit(Z, covariates(Y)).permutation_test(Z, covariates(Y), 99)
    assert alone.loc["age", "p_value"] == 0.01
