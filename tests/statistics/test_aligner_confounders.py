"""Aligner confounders: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import numpy as np
import pytest

from covalign import LatentAligner


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_p_values_are_right_where_confounders_are_all_there_is(gaps):
    p = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        C = rng.standard_normal((50, 8))
        Z, Y = (3 * C @ rng.standard_normal((8, d)) + rng.standard_normal((50, d)) for d in (3, 2))
        Y[rng.random(Y.shape) < gaps] = np.nan
        al = LatentAligner(shrinkage=0.0).fit(Z, Y, confounders=C)
        p.append(al.permutation_test(Z, Y, 19, seed, confounders=C).loc["overall", "p_value"])
    assert 0.05 < np.mean(np.array(p) <= 0.1) < 0.16
    assert 0.42 < np.mean(np.array(p) <= 0.5) < 0.6
