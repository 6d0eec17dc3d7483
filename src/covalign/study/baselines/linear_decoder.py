"""Factors of new samples from a linear decoder, for packages that cannot compute them.

MOFA, SOFA, MOFA-FLEX and MuVI all model the features as x = W z + noise, with one Gaussian noise variance per feature.
The factors of a sample without covariates are the posterior mean under this model, with the fitted loadings, the
residual variances of the fitted features as noise, and the mean and covariance C of the fitted factors as prior.
``InformedFactorAnalysis.transform`` without y does the same with its own posterior. An invertible change of the factors
(and the opposite change of the loadings) does not change the result.
"""

from __future__ import annotations

import numpy as np

from covalign._core.linalg import Array

LEAST_NOISE = 1e-4  # of the variance of a feature: one that is reconstructed exactly must not decide alone


def posterior_means(
    views: dict[str, Array], factors: Array, loadings: dict[str, Array], new: dict[str, Array]
) -> Array:
    """E[z | x] = mean(z) + C (I + W' N^-1 W C)^-1 W' N^-1 x, N = diag var(X - Z W'): n_new x K, all views together.

    C need not be invertible: factors that the model switched off have no variance and keep their mean.
    """
    mean = factors.mean(axis=0)
    Z = factors - mean
    C = Z.T @ Z / len(Z)
    precision, projected = np.zeros_like(C), np.zeros((len(next(iter(new.values()))), len(C)))
    for name, W in loadings.items():
        noise = np.maximum(np.var(views[name] - Z @ W.T, axis=0), LEAST_NOISE)
        precision += W.T @ (W / noise[:, None])
        projected += new[name] @ (W / noise[:, None])
    return np.asarray(mean + np.linalg.solve((np.eye(len(C)) + precision @ C).T, (projected @ C).T).T)
