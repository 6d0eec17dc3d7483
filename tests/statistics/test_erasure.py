"""Erasure: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import numpy as np

from covalign import LatentAligner
from covalign.bridges import datasets
from tests.core.test_erasure import erased, leace


def test_on_a_real_embedding_new_rows_change_less_than_with_the_published_shrinkage(shared_data):
    data = datasets.embedding(shared_data("tinyimagenet_efflite0"))
    Z, Y = np.asarray(data.Z, dtype=np.float64), data.covariates
    half = np.random.default_rng(0).permutation(len(Z))
    fitted, unseen = half[:1000], half[1000:]
    al, mean = LatentAligner().fit(Z[fitted], Y.iloc[fitted]), Z[fitted].mean(0)
    S = np.cov(Z[fitted].T, ddof=0)
    # Bodnar, Gupta and Parolya (2014), the weight that concept-erasure gives to the isotropic covariance.
    rho = np.trace(S) ** 2 / 1000 / (np.sum(S**2) - np.trace(S) ** 2 / len(S))
    names = list(Y.columns[:2])
    P, Q = (leace(Z[fitted], Y.loc[fitted, names].to_numpy(), weight) for weight in (rho, al.shrinkage_))
    ours = np.sum((al.erase(Z[unseen], names) - Z[unseen]) ** 2)
    theirs, predicting = (np.sum((erased(Z[unseen], mean, M) - Z[unseen]) ** 2) for M in (P, Q))
    assert ours < theirs < 0.95 * predicting
