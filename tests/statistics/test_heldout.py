"""Heldout: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import numpy as np
import pytest

import covalign as ca
from covalign.closed_form import regimes
from tests.core.test_heldout import assert_alignment_never_falls, assert_few_labels_fit


def test_intervals_cover_the_population_alignment_of_the_fitted_transform():
    population, hits, of_mean = ca.simulate.population_moments("PN"), [], []
    for seed in range(200):
        s = ca.simulate.scenario("PN", n_samples=500, n_features=1, n_factors=5, random_state=seed)
        al = ca.LatentAligner().fit(s.Z, s.Y)
        truth, table, mean = regimes.alignment(al.transform_, population), al.summary(), al.mean_alignment_
        hits.append((table["low"] <= truth) & (truth <= table["high"]))
        of_mean.append(mean["low"] <= truth.mean() <= mean["high"])
    assert 0.85 < np.mean(hits) < 0.95
    assert all(0.8 < share < 0.97 for share in [*np.mean(hits, axis=0), np.mean(of_mean)])


@pytest.mark.parametrize("labels", [3, 5, 10, 20])
def test_few_labels_always_fit(labels):
    assert_few_labels_fit(labels, range(4, 20))


@pytest.mark.filterwarnings("ignore::covalign.exceptions.SingularTransformWarning")
@pytest.mark.parametrize("shrinkage", ["auto", 0.02, 0.4, 0.95])
def test_alignment_never_falls_along_lambda_with_dependent_dummies(shrinkage):
    assert_alignment_never_falls(shrinkage, range(12, 60))
