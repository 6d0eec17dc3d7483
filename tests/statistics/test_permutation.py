"""Permutation: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from covalign import LatentAligner


@pytest.mark.parametrize("settings", [{"shrinkage": 0.1}, {"shrinkage": "auto"}])
@pytest.mark.parametrize("gaps", [False, True])
def test_p_values_are_uniform_where_there_is_nothing(settings, gaps):
    found = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        Z, Y = rng.standard_normal((40, 8)), rng.standard_normal((40, 2))
        if gaps:
            Y[rng.random(Y.shape) < 0.2] = np.nan
        found.append(LatentAligner(**settings).fit(Z, Y).permutation_test(Z, Y, 99, seed)["p_value"])
    for values in np.array(found).T:
        assert stats.kstest(values - 0.005, "uniform").pvalue > 0.01  # p is a multiple of 0.01
