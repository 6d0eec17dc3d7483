"""Factor kernel: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import numpy as np
import pytest

from covalign.factor.inference import start
from covalign.factor.inference import sweeps as fitting
from covalign.factor.inference.bound import bound
from tests.core.test_factor_kernel import (
    AWKWARD,
    assert_never_falls,
    full_or_not,
    means,
    paper_sweeps,
    problem_of,
    simulated,
)


@pytest.mark.parametrize("seed", range(2))
def test_block_updates_end_where_the_papers_sweeps_end(seed):
    problem = simulated(False, seed=seed, n=30, d=5, k=2, p=1)
    begin = start.start(problem)
    Z, W, beta, change = paper_sweeps(problem, begin, 4000)
    assert change < 1e-7
    ours = fitting.fit(problem, begin, accelerate=False, max_iter=4000, tol=-1.0).state
    np.testing.assert_allclose(means(problem, ours.z), Z, atol=1e-4)
    np.testing.assert_allclose(ours.views[0].w.mean, W, atol=1e-4)
    np.testing.assert_allclose(ours.beta, beta, atol=1e-4)
    fast = fitting.fit(problem, begin, accelerate=True, max_iter=300, tol=-1.0).state
    assert bound(problem, fast) == pytest.approx(bound(problem, ours), abs=1e-4)
    np.testing.assert_allclose(means(problem, fast.z), Z, atol=1e-3)


@full_or_not
@pytest.mark.parametrize("accelerate", [True, False], ids=["accelerated", "plain"])
@pytest.mark.parametrize("dense", [False, True], ids=["sums", "rows"])
@pytest.mark.parametrize("kind", AWKWARD)
def test_bound_never_falls_on_awkward_data_in_many_sweeps(kind, dense, full, accelerate):
    X, Y, k = AWKWARD[kind]
    assert_never_falls(problem_of(X, Y, k, full, dense=dense), accelerate, sweeps=60)
