"""Baselines: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import numpy as np
import pytest

from covalign.study.baselines.ivae import IVAE
from covalign.study.baselines.linear import PCA
from tests.core.test_baselines import fit, mean_correlation, nonstationary


def test_ivae_recovers_nonlinearly_mixed_sources_and_needs_the_covariates_for_it():
    pytest.importorskip("torch")
    found, linear_only = [], []
    for seed in range(3):
        S, X, Y = nonstationary(seed)
        found.append(mean_correlation(IVAE().fit({"X": X}, Y, 3, seed, 200).factors, S))
        linear_only.append(mean_correlation(fit(PCA(), X, Y, 3)[0], S))
    shuffled = np.random.default_rng(0).permutation(Y)
    uninformed = mean_correlation(IVAE().fit({"X": X}, shuffled, 3, seed, 200).factors, S)
    print(f"MCC: iVAE {np.round(found, 3)}, PCA {np.round(linear_only, 3)}, covariates shuffled {uninformed:.3f}")
    assert np.mean(found) > 0.9
    assert np.mean(found) > np.mean(linear_only) + 0.08
    assert found[-1] > uninformed + 0.05
