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

    C need not be invertible: factors that the model switched off have no variance and keep their mean. Missing cells
    (NaN) have no part in the sums over features.
    """
    mean = factors.mean(axis=0)
    Z = factors - mean
    C = Z.T @ Z / len(Z)
    k, n = len(C), len(next(iter(new.values())))
    gaps = any(np.isnan(view).any() for view in new.values())
    precision, projected = np.zeros((n if gaps else 1, k, k)), np.zeros((n, k))
    for name, W in loadings.items():
        noise = np.maximum(np.nanvar(views[name] - Z @ W.T, axis=0), LEAST_NOISE)
        weighted = W / noise[:, None]
        if gaps:
            products = (W[:, :, None] * weighted[:, None, :]).reshape(len(W), -1)  # of every feature, k x k
            precision += (~np.isnan(new[name]) @ products).reshape(n, k, k)
        else:
            precision += W.T @ weighted
        projected += np.nan_to_num(new[name]) @ weighted
    # (I + P C)' a = C q for every sample, P of the sample or of all
    solved = np.linalg.solve(np.swapaxes(np.eye(k) + precision @ C, 1, 2), (projected @ C)[:, :, None])
    return np.asarray(mean + solved[:, :, 0])
