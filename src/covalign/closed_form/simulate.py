"""The paper's four scenarios: covariates with a known correlation, factors informed by them, features with noise.

>>> import covalign as ca
>>> ca.simulate.SCENARIOS
('PN', 'AR', 'P', 'N')
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from covalign._core.checks import check_choice, check_count, check_number, check_random_state
from covalign._core.data_errors import too_many_covariates
from covalign._core.linalg import Array
from covalign._core.room import check_memory
from covalign.moments.moments import Moments

SCENARIOS = ("PN", "AR", "P", "N")

# The paper shows this matrix only as a picture; these are our values (positive definite, mixed signs).
PN = np.array(
    [
        [1.0, 0.6, -0.5, 0.2, -0.3],
        [0.6, 1.0, -0.4, 0.3, -0.2],
        [-0.5, -0.4, 1.0, -0.3, 0.4],
        [0.2, 0.3, -0.3, 1.0, -0.5],
        [-0.3, -0.2, 0.4, -0.5, 1.0],
    ]
)


@dataclass(frozen=True, eq=False)
class Scenario:
    """A simulated data set and its true parameters. X and W are dicts if there are several views.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=50)
    >>> s.name, s.X.shape, s.W.shape, s.beta.round(2).tolist()
    ('PN', (50, 100), (100, 10), [0.9, 0.75, 0.6, 0.45, 0.3])
    """

    name: str
    X: Any
    Y: Array
    Z: Array
    W: Any
    beta: Array
    noise_variance: Any


def covariate_correlation(name: str, n_covariates: int = 5, alpha: float = 1.0) -> Array:
    """Sigma_Y of a scenario, alpha Sigma_Y + (1 - alpha) I.

    AR: 0.6^|i-j|. P: 0.25 off the diagonal. N: -1/(P-1), the correlation of balanced dummies (the paper's -0.25 at
    P = 5), of rank P - 1. PN: the 5 x 5 matrix, its leading part for fewer covariates, repeated in blocks for more.

    >>> import covalign as ca
    >>> ca.simulate.covariate_correlation("AR", 3).round(2).tolist()
    [[1.0, 0.6, 0.36], [0.6, 1.0, 0.6], [0.36, 0.6, 1.0]]
    """
    check_choice("scenario", name, SCENARIOS)
    alpha, p = _strength("alpha", alpha), check_count("n_covariates", n_covariates)
    check_memory("The simulation", 32 * p**2, "ask for fewer covariates")
    i = np.arange(p)
    if name == "PN":
        Sigma = block_diag(*[PN] * -(-p // 5))[:p, :p]
    elif name == "AR":
        Sigma = 0.6 ** np.abs(i[:, None] - i)
    elif name == "P":
        Sigma = np.where(np.eye(p) == 1, 1.0, 0.25)
    else:
        Sigma = np.where(np.eye(p) == 1, 1.0, -1 / max(p - 1, 1))
    return np.asarray(alpha * Sigma + (1 - alpha) * np.eye(p))


def coefficients(n_covariates: int = 5, b: float = 1.0) -> Array:
    """beta: b times (0.9, 0.75, 0.6, 0.45, 0.3), evenly spaced between the same ends for another P.

    >>> import covalign as ca
    >>> ca.simulate.coefficients(3, b=0.5).round(2).tolist()
    [0.45, 0.3, 0.15]
    """
    p = check_count("n_covariates", n_covariates)
    check_memory("The simulation", 32 * p, "ask for fewer covariates")
    return _strength("b", b) * np.linspace(0.9, 0.3, p)


def population_moments(name: str, alpha: float = 1.0, b: float = 1.0, n_covariates: int = 5) -> Moments:
    """S_z = D_b S_y D_b + D_(1-b^2), S_zy = D_b S_y (n = None): the limit of a scenario's sample moments.

    >>> import covalign as ca
    >>> ca.simulate.population_moments("N").cov_y[0].tolist()
    [1.0, -0.25, -0.25, -0.25, -0.25]
    """
    S_y, beta = covariate_correlation(name, n_covariates, alpha), coefficients(n_covariates, b)
    return Moments.from_covariances(beta[:, None] * S_y * beta + np.diag(1 - beta**2), beta[:, None] * S_y, S_y)


def scenario(
    name: str,
    n_samples: int = 500,
    n_features: int | Mapping[str, int] = 100,
    n_factors: int = 10,
    alpha: float = 1.0,
    b: float = 1.0,
    noise: float = 0.1,
    random_state: Any = 0,
    n_covariates: int = 5,
) -> Scenario:
    """Draw Y ~ N(0, Sigma_Y), z_p = beta_p y_p + sqrt(1 - beta_p^2) e_p, free factors N(0, 1), X = Z W' + noise.

    W is standard normal; each feature's noise variance is ``noise`` times its own signal variance. ``n_features`` as
    ``{"rna": 60, "protein": 40}`` gives views that share Z.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("AR", n_samples=50, n_features={"rna": 6, "protein": 4}, random_state=1)
    >>> s.X["protein"].shape, s.Y.shape, s.Z.shape
    ((50, 4), (50, 5), (50, 10))
    """
    alpha, b = _strength("alpha", alpha), _strength("b", b)
    n_samples, n_factors, n_covariates, noise = _sizes(n_samples, n_factors, n_covariates, noise)
    views = {"": n_features} if not isinstance(n_features, Mapping) or not n_features else dict(n_features)
    views = {name: check_count("n_features", d) for name, d in views.items()}
    d = sum(views.values())
    numbers = n_samples * (2 * n_factors + 2 * n_covariates + 3 * d) + n_factors * (n_factors + 2 * d) + n_covariates**2
    check_memory("The simulation", 8 * numbers, "ask for fewer samples, features or factors")
    rng = check_random_state(random_state)
    Sigma, beta = covariate_correlation(name, n_covariates, alpha), coefficients(n_covariates, b)
    values, vectors = np.linalg.eigh(Sigma)  # this square root exists also for a singular Sigma
    root = vectors * np.sqrt(np.maximum(values, 0))
    Y = rng.standard_normal((n_samples, n_covariates)) @ root.T
    Z = rng.standard_normal((n_samples, n_factors))
    Z[:, :n_covariates] = beta * Y + np.sqrt(1 - beta**2) * Z[:, :n_covariates]
    S_z = np.eye(n_factors)
    S_z[:n_covariates, :n_covariates] = beta[:, None] * Sigma * beta + np.diag(1 - beta**2)

    X, W, variance = {}, {}, {}
    for view, d in views.items():
        W[view] = rng.standard_normal((d, n_factors))
        variance[view] = noise * np.sum((W[view] @ S_z) * W[view], axis=1)
        X[view] = Z @ W[view].T + rng.standard_normal((n_samples, d)) * np.sqrt(variance[view])
    if not isinstance(n_features, Mapping):
        return Scenario(name, X[""], Y, Z, W[""], beta, variance[""])
    return Scenario(name, X, Y, Z, W, beta, variance)


def _strength(what: str, value: Any) -> float:
    return check_number(value, f"{what} needs a number in [0, 1]", "1 is the paper's setting", 1)


def _sizes(n_samples: Any, n_factors: Any, n_covariates: Any, noise: Any) -> tuple[int, int, int, float]:
    n, p, k = (
        check_count(what, value)
        for what, value in (("n_samples", n_samples), ("n_covariates", n_covariates), ("n_factors", n_factors))
    )
    if p > k:
        raise too_many_covariates(p, k)
    need = "noise needs a finite number of at least 0"
    return n, k, p, check_number(noise, need, "0.1 is the paper's setting", sys.float_info.max)
