"""New samples' factors from a linear decoder, for packages that have no way of their own to place them.

MOFA, SOFA, MOFA-FLEX and MuVI all model the features as x = W z + noise, with Gaussian noise of a variance per feature.
What such a model says of a sample whose covariates are not known is its posterior mean, and for that loadings and
factors are enough: the noise is what they leave of the features they were fitted to, and the prior is the fitted
factors' mean and covariance C. ``InformedFactorAnalysis.transform`` without y follows the same rule with its own
posterior. Mixing or scaling the factors (and the loadings against it) leaves the answer as it is.
"""

from __future__ import annotations

import numpy as np

from covalign._core.linalg import Array

LEAST_NOISE = (
    1e-4  # of a standardised feature's variance: a feature that is reconstructed exactly must not decide alone
)


def posterior_means(
    views: dict[str, Array], factors: Array, loadings: dict[str, Array], new: dict[str, Array]
) -> Array:
    """E[z | x] = mean(z) + C (I + W' N^-1 W C)^-1 W' N^-1 x, N = diag var(X - Z W'): n_new x K, all views together.

    Nothing here inverts C: factors that were switched off have no variance, and stay at their mean.
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
