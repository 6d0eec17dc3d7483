"""The linear methods: PCA, PLS, the covariates themselves as factors, and the two supervised PCAs.

All take standardised columns, so X'Y / n are correlations and X is centred; all return factors F (n x K), loadings
W (D x K) with X ~ F W' and, if the factors are functions of the features, directions R (D x K) with F = X R, which also
give the factors of new samples. If X has fewer than K dimensions, there are fewer factors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial.distance import cdist, pdist
from sklearn import decomposition
from sklearn.cross_decomposition import PLSRegression

from covalign._core.checks import check_choice, check_number
from covalign._core.linalg import Array, orthonormal_range, range_eigh, rank_cutoff
from covalign.study.baselines.method import BuiltIn, Fitted, split, stacked, versions_of

DENSE = 2000  # of larger kernels, at most DENSE^2 entries are in memory at once
KERNELS = ("rbf", "linear")  # the first is the paper's
PAIRS = 200_000  # pairs of rows drawn for a median distance if n > DENSE: this gives its rank to 0.1 %


class Linear(NamedTuple):
    """X ~ F W', F = X R."""

    factors: Array  # F: n x K
    loadings: Array  # W: D x K
    directions: Array | None  # R: D x K; None if F is not a function of X


class _Linear(BuiltIn):
    """The methods below; they differ in ``decompose``."""

    paired = False
    packages: tuple[str, ...] = ("scikit-learn",)

    def fit(self, views: dict[str, Array], Y: Array, n_factors: int, seed: int, budget: int) -> Fitted:
        """Factors of all views side by side; no iterations, so ``budget`` is not used."""
        F, W, R = at_least(self.decompose(stacked(views), Y, n_factors, seed), min(n_factors, Y.shape[1]))
        place = None if R is None else lambda new: np.asarray(stacked(new) @ R)
        return Fitted(F, split(W, views), versions=versions_of(*self.packages), place=place)

    def decompose(self, X: Array, Y: Array, n_factors: int, seed: int) -> Linear:
        """The method itself."""
        raise NotImplementedError


@dataclass(frozen=True)
class PCA(_Linear):
    """Principal component analysis.

    >>> from covalign import baselines
    >>> baselines.PCA().paired  # its components are matched with covariates afterwards
    False
    """

    name = "PCA"

    def decompose(self, X: Array, Y: Array, n_factors: int, seed: int) -> Linear:
        """Principal components; Y is not used."""
        return principal_components(X, n_factors)


@dataclass(frozen=True)
class PLS(_Linear):
    """Partial least squares regression: successive directions of X with the largest covariance with Y.

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> baselines.run(baselines.PLS(), s.X, s.Y, n_factors=10).informed.shape
    (200, 5)
    """

    name = "PLS"

    def decompose(self, X: Array, Y: Array, n_factors: int, seed: int) -> Linear:
        """X scores and X loadings, and principal components if fewer than K components explain Y."""
        return completed(partial_least_squares(X, Y, n_factors, seed), X, n_factors)


@dataclass(frozen=True)
class YAsFactors(_Linear):
    """The covariates themselves, and the principal components of what they leave of X.

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> round(ca.metrics.alignment(baselines.run(baselines.YAsFactors(), s.X, s.Y, n_factors=10).informed, s.Y), 9)
    1.0
    """

    name = "Y as factors"
    paired = True

    def decompose(self, X: Array, Y: Array, n_factors: int, seed: int) -> Linear:
        """F = [Y, PCs of X - Y beta], beta = argmin |X - Y beta|, the shortest solution if Y is rank deficient."""
        beta = np.asarray(np.linalg.lstsq(Y, X, rcond=None)[0], dtype=np.float64)
        return completed(Linear(Y, beta.T, None), X, n_factors)


@dataclass(frozen=True)
class BairSPCA(_Linear):
    """Supervised PCA of Bair et al. (2006): PCA of the features that correlate most with a covariate.

    >>> from covalign import baselines
    >>> baselines.BairSPCA(quantile=0.9).name
    'SPCA (Bair, q=0.9)'
    """

    quantile: float = 0.5

    def __post_init__(self) -> None:
        """Raise an error unless this is a quantile."""
        remedy = "0.5 keeps the better half of the features"
        object.__setattr__(
            self, "quantile", check_number(self.quantile, "quantile needs a number in [0, 1]", remedy, 1)
        )

    @property
    def name(self) -> str:
        """The name, with the quantile if it is not the default."""
        return "SPCA (Bair)" if self.quantile == 0.5 else f"SPCA (Bair, q={self.quantile:g})"

    def decompose(self, X: Array, Y: Array, n_factors: int, seed: int) -> Linear:
        """PCA of the kept features; the others have loadings 0."""
        kept = screened(X, Y, self.quantile)
        F, W_kept, _ = principal_components(X[:, kept], n_factors)
        W = np.zeros((X.shape[1], F.shape[1]))
        W[kept] = W_kept
        return Linear(F, W, W)


@dataclass(frozen=True)
class BarshanSPCA(_Linear):
    """Supervised PCA of Barshan et al. (2011): directions of X with the largest HSIC with Y.

    ``kernel`` on Y is "rbf", exp(-|y - y'|^2 / 2 s^2) with s the median distance between rows of Y, or "linear", y'y.

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> baselines.run(baselines.BarshanSPCA(), s.X, s.Y, n_factors=10).factors.shape
    (200, 10)
    """

    kernel: str = "rbf"
    packages = ("scikit-learn", "scipy", "numpy")

    def __post_init__(self) -> None:
        """Raise an error about an unknown kernel."""
        check_choice("kernel", self.kernel, KERNELS)

    @property
    def name(self) -> str:
        """The name, with the kernel if it is not the default."""
        return "SPCA (Barshan)" if self.kernel == "rbf" else "SPCA (Barshan, linear)"

    def decompose(self, X: Array, Y: Array, n_factors: int, seed: int) -> Linear:
        """F = X U with U = argmax tr(U' X'HLHX U) over U'U = I_K.

        Beyond the rank of X'HLHX (two, for dummies of three levels) all further orthonormal columns are equally good.
        Those with most of the variance of X are taken, so that rounding errors do not choose.
        """
        if self.kernel == "linear":
            U = orthonormal_range(X.T @ Y)[:, :n_factors]  # X'HYY'HX = C C' with C = X'Y
        else:
            U = hsic_directions(*merged_rows(X, Y), median_distance(Y, seed), n_factors, seed)
        return completed(Linear(X @ U, U, U), X, n_factors)


# -- shared -----------------------------------------------------------------------------------------------------------


def principal_components(X: Array, k: int, scale: float | None = None) -> Linear:
    """Scores and directions of the k leading principal components, or of all if there are fewer.

    Components of rounding noise are left out: their scores would correlate with anything. Rounding errors are relative
    to ``scale``, by default the Frobenius norm of X.
    """
    k, scale = min(k, *X.shape), float(np.linalg.norm(X)) if scale is None else scale
    cutoff = rank_cutoff(max(X.shape), scale)
    if k <= 0 or np.linalg.norm(X) <= cutoff:
        return nothing(X)
    pca = decomposition.PCA(k, svd_solver="full").fit(X)
    kept = pca.singular_values_ > cutoff
    W = pca.components_[kept].T
    return Linear((X - pca.mean_) @ W, W, W)


def nothing(X: Array) -> Linear:
    """No factor."""
    none = np.zeros((X.shape[1], 0))
    return Linear(np.zeros((len(X), 0)), none, none)


def completed(found: Linear, X: Array, k: int) -> Linear:
    """``found`` filled up to k factors with the leading principal components V of X - F W' = X (I - R W')."""
    F, W, R = found
    F_more, V, _ = principal_components(X - F @ W.T, k - F.shape[1], float(np.linalg.norm(X)))
    directions = None if R is None else np.hstack([R, V - R @ (W.T @ V)])
    return Linear(np.hstack([F, F_more]), np.hstack([W, V]), directions)


def at_least(found: Linear, p: int) -> Linear:
    """``found`` filled up to p factors with zeros: each covariate needs a factor to be matched with."""
    F, W, R = found
    zeros = ((0, 0), (0, max(0, p - F.shape[1])))
    return Linear(np.pad(F, zeros), np.pad(W, zeros), None if R is None else np.pad(R, zeros))


# -- PLS --------------------------------------------------------------------------------------------------------------


def partial_least_squares(X: Array, Y: Array, k: int, seed: int) -> Linear:
    """At most k components of scikit-learn, up to the first in which X or Y is only rounding noise."""
    # X times a random D x k matrix has the rank of X, or k: scikit-learn divides by zero beyond the rank.
    sketch = X @ np.random.default_rng(seed).standard_normal((X.shape[1], k))
    rank = orthonormal_range(sketch).shape[1]
    if rank == 0:
        return nothing(X)
    pls = PLSRegression(rank, scale=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Maximum number of iterations")  # two directions tie: either is right
        warnings.filterwarnings("ignore", "y residual is constant")  # such components are left out below
        pls.fit(X, Y)
    F, W, R = pls.x_scores_, pls.x_loadings_, pls.x_rotations_
    length, eps = np.linalg.norm(F, axis=0), rank_cutoff(max(X.shape), 1.0)
    of_x = length > eps * np.linalg.norm(X)
    of_y = np.linalg.norm(Y.T @ F, axis=0) > eps * np.linalg.norm(Y) * length
    real = np.logical_and.accumulate(of_x & of_y)
    return Linear(F[:, real], W[:, real], R[:, real])


# -- Bair -------------------------------------------------------------------------------------------------------------


def screened(X: Array, Y: Array, quantile: float) -> Array:
    """True for features with max_p |corr(x_d, y_p)| at or above its quantile over features."""
    strength = np.abs(X.T @ Y / len(X)).max(axis=1)
    return np.asarray(strength >= np.quantile(strength, quantile))


# -- Barshan ----------------------------------------------------------------------------------------------------------


def rbf(A: Array, B: Array, s: float) -> Array:
    """L_ij = exp(-|a_i - b_j|^2 / 2 s^2)."""
    return np.asarray(np.exp(cdist(A, B, "sqeuclidean") / (-2 * s**2)))


def median_distance(Y: Array, seed: int) -> float:
    """The median of |y_i - y_j| over pairs of rows: all pairs up to DENSE rows, then PAIRS random ones.

    If most pairs are equal, as with a rare category, this is 0 and cannot be a bandwidth. Then it is the median of the
    pairs that differ (or 1, if there are none).
    """
    n = len(Y)
    if n <= DENSE:
        distance = pdist(Y)
    else:
        rng = np.random.default_rng(seed)
        i = rng.integers(n, size=PAIRS)
        j = (i + rng.integers(1, n, size=PAIRS)) % n
        distance = np.linalg.norm(Y[i] - Y[j], axis=1)
    median = float(np.median(distance))
    if median > 0 or not distance.any():
        return median or 1.0
    return float(np.median(distance[distance > 0]))


def merged_rows(X: Array, Y: Array) -> tuple[Array, Array]:
    """GX (g x D) and the g distinct rows of Y, G summing rows of X with equal covariates: X'LX = (GX)' L_g (GX).

    If all covariates are categories, g is the number of their combinations, for any number of samples.
    """
    distinct, group = np.unique(Y, axis=0, return_inverse=True)
    n = len(Y)
    G = sparse.csr_array((np.ones(n), (group.reshape(n), np.arange(n))), shape=(len(distinct), n))
    return np.asarray(G @ X), distinct


def hsic_directions(X: Array, Y: Array, s: float, k: int, seed: int, most: int = DENSE) -> Array:
    """Leading eigenvectors U (D x k, or fewer: the rank) of X'HLHX = X'LX, as the columns of X sum to 0.

    Three ways to the same U: by a D x D matrix, by an n x n matrix, or by products if both are too large.
    """
    n, D = X.shape
    if n >= D:
        return leading_eigenvectors(kernel_scatter(X, Y, s, max(1, most**2 // n)), k)
    if n <= most:
        values, vectors = range_eigh(rbf(Y, Y, s))
        return orthonormal_range(X.T @ (vectors * np.sqrt(values)))[:, :k]  # L = F F': left singular vectors of X'F
    return lanczos(lambda V: X.T @ kernel_times(X @ V, Y, s, most**2 // n), D, k, seed)


def leading_eigenvectors(M: Array, k: int) -> Array:
    """Eigenvectors of the (at most) k largest eigenvalues of M that are not zero, largest first."""
    D = len(M)
    return _nonzero(*eigh(M, subset_by_index=(max(0, D - k), D - 1)))


def lanczos(product: Callable[[Array], Array], D: int, k: int, seed: int) -> Array:
    """``leading_eigenvectors`` of a D x D matrix that is given by its products."""
    M = LinearOperator((D, D), matvec=product, matmat=product, dtype=np.float64)
    return _nonzero(*eigsh(M, min(k, D - 1), v0=np.random.default_rng(seed).standard_normal(D)))


def _nonzero(values: Array, vectors: Array) -> Array:
    """The eigenvectors whose eigenvalues (rising) are not zero, the largest first."""
    kept = values > rank_cutoff(len(vectors), float(values[-1]))
    return np.asarray(vectors[:, kept][:, ::-1])


def kernel_scatter(X: Array, Y: Array, s: float, rows: int) -> Array:
    """X'LX."""
    M = X.T @ kernel_times(X, Y, s, rows)
    return np.asarray((M + M.T) / 2)


def kernel_times(V: Array, Y: Array, s: float, rows: int) -> Array:
    """L V, some rows of L at a time."""
    blocks = (slice(i, i + rows) for i in range(0, len(Y), rows))
    return np.concatenate([rbf(Y[block], Y, s) @ V for block in blocks])
