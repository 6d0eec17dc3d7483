"""The evidence lower bound: expected log-likelihood minus Kullback-Leibler divergences, term by term in the kernels."""

from __future__ import annotations

from covalign.factor.inference.kernel import kernel_of
from covalign.factor.inference.state import Problem, State


def bound(problem: Problem, state: State) -> float:
    """E_q[log p(X, Z, W, alpha, tau | Y)] - E_q[log q]."""
    kernel = kernel_of(problem)
    return kernel.of_views(problem, state) - kernel.kl_factors(problem, state)
