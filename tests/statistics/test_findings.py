"""Gene sets of fitted models: p-values of sets that are not enriched, and power where one is."""

from __future__ import annotations

import numpy as np
from scipy import stats

import covalign as ca

SIZE, SETS = 20, 20


def fitted(seed: int, *, rho: float, shift: float = 0.0, spread: float = 0.0):
    """A factor that a covariate pins down, and genes of which those of a set are correlated.

    Loadings have the standard deviation ``spread``, and those of the first set are higher by ``shift``.
    """
    rng = np.random.default_rng(seed)
    n, block = 80, np.repeat(np.arange(SETS), SIZE)
    E = np.sqrt(rho) * rng.standard_normal((n, SETS))[:, block] + np.sqrt(1 - rho) * rng.standard_normal(
        (n, SIZE * SETS)
    )
    y = rng.standard_normal((n, 1))
    w = spread * rng.standard_normal(SIZE * SETS) + shift * (block == 0)
    fa = ca.InformedFactorAnalysis(1, supervision=500, folds=0).fit(E + y * w, y)
    return fa, {f"s{i}": np.flatnonzero(block == i) for i in range(SETS)}


def test_null_p_values_of_fitted_models_are_uniform():
    """Of each fit only a quarter of the sets, since its sets share the mean of the others."""
    p, naive = {"camera": [], "rank": []}, []
    for seed in range(40):
        fa, sets = fitted(seed, rho=0.2)
        some = {name: sets[name] for name in list(sets)[:5]}
        for method, found in p.items():
            found += fa.enrichment(some, factor=0, method=method)["p"].tolist()
        naive += fa.enrichment(some, factor=0, correlation=0.0)["p"].tolist()
    for found in p.values():
        assert stats.kstest(found, "uniform").pvalue > 0.01
    assert np.mean(np.array(naive) < 0.05) > 0.3


def test_real_loadings_make_the_test_careful():
    """Where genes differ in earnest, only a part of their variance is correlated error: p-values are too large."""
    p = []
    for seed in range(10):
        fa, sets = fitted(seed, rho=0.2, spread=0.5)
        p += fa.enrichment(sets, factor=0)["p"].tolist()
    assert np.mean(np.array(p) < 0.05) < 0.03


def test_a_shifted_set_is_found():
    hits = []
    for seed in range(20):
        fa, sets = fitted(seed, rho=0.05, shift=0.5)
        first = fa.enrichment(sets, factor=0).iloc[0]
        hits.append(first["set"] == "s0" and first["direction"] == "up" and first["q"] < 0.05)
    assert np.mean(hits) > 0.9
