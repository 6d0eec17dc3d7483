"""Independent dimensions stay uncorrelated on the fitted rows, however badly Z is conditioned, within a limit."""

from __future__ import annotations

import numpy as np
import pytest

import covalign as ca


def badly_conditioned(seed: int):
    """Z of a condition number up to 1e5; columns in other units, or repeated, or far from 0."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 7))
    k = p if seed % 2 else p + int(rng.integers(1, 12))
    n = int(rng.integers(2 * k + 10, 200))
    U, V = (np.linalg.qr(rng.standard_normal((rows, k)))[0] for rows in (n, k))
    Z = (U * np.geomspace(1, 10 ** -rng.uniform(0, 5), k)) @ V.T * np.sqrt(n)
    Y = U[:, :p] * np.sqrt(n) + rng.standard_normal((n, p))
    if seed % 3 == 0:
        Z = Z * 10 ** rng.uniform(-6, 6, k)
    if seed % 4 == 0:
        Z = np.hstack([Z, Z[:, :1], 2 * Z[:, -1:]])
    return Z + (100 * np.std(Z, axis=0) if seed % 7 == 0 else 0), Y


@pytest.mark.parametrize("shrinkage", [0.0, 0.1])
def test_independent_dimensions_are_uncorrelated_on_the_fitted_rows(shrinkage):
    for seed in range(40):
        Z, Y = badly_conditioned(seed)
        z = ca.LatentAligner(lam=0.0, shrinkage=shrinkage).fit(Z, Y).transform(Z)
        C = np.corrcoef(z.T)
        assert np.sum((C - np.diag(np.diag(C))) ** 2) < 1e-10, seed
