"""The evidence lower bound: expected log-likelihood minus Kullback-Leibler divergences, term by term."""

from __future__ import annotations

import numpy as np

from covalign.factor.inference import heavy_tails, updates
from covalign.factor.inference.kernel import kernel_of, noise_rate
from covalign.factor.inference.state import Problem, State


def bound(problem: Problem, state: State) -> float:
    """E_q[log p(X, Z, W, alpha, tau | Y)] + log p(beta) - E_q[log q]."""
    problem = heavy_tails.scaled(problem, state)
    other = problem.beta_prior * float(np.sum(np.log1p(-(state.beta**2)))) + heavy_tails.gain(problem, state)
    return of_views(problem, state) - kernel_of(problem).kl_factors(problem, state) + other


def of_views(problem: Problem, state: State) -> float:
    """Likelihood, loadings, ARD and noise of every view."""
    kernel, total = kernel_of(problem), 0.0
    for view, where in zip(state.views, problem.bounds, strict=True):
        residuals = kernel.expected_residuals(problem, state.z, where, view.w)
        total += view.weight * updates.expected_loglik(kernel.counts(problem, where), residuals, view.noise)
        total -= updates.kl_loadings(view.w, view.ard) + view.ard.kl() + view.noise.kl(noise_rate(problem, where))
    return total
