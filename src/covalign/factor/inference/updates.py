"""One pure function per q-factor, its equation above it: what both kernels share."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg.lapack
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.factor.inference.state import RATE_0, SHAPE_0, Gamma, Loadings, State, View

GRADED = 3e4  # ratio of scales; its square times 1e-16 is what a small eigenvalue would lose
BETA_MAX = 1 - 1e-6  # keeps 1 / (1 - beta^2) finite for a covariate that X determines


def prior_precision(beta: Array, k: int) -> Array:
    """1 / (1 - beta_p^2) for informed factors, 1 for free ones."""
    precision = np.ones(k)
    precision[: len(beta)] = 1 / (1 - beta**2)
    return precision


def evidence(views: tuple[View, ...]) -> Array:
    """sum_d E[tau_d] E[w_d w_d'] over all views: what the data say about the precision of z."""
    return np.asarray(np.sum([view.w.weighted_second_moment(view.precision) for view in views], axis=0))


def update_loadings(S: Array, xz: Array, ard: Gamma, precision: Array, full: bool) -> Loadings:
    """(A + tau_d S) E[w_d] = tau_d E[Z]'x_d for every d at once, A = diag(E[alpha]), tau_d what a cell counts.

    With A^(-1/2) S A^(-1/2) = U L U' and V = A^(-1/2) U:  E[w_d] = V diag(tau_d / (1 + tau_d L)) V' E[Z]'x_d and, in
    the full posterior, Cov(w_d) = V diag(1 / (1 + tau_d L)) V'. Mean field: Var(w_dk) = 1 / (alpha_k + tau_d S_kk).
    """
    a, tau = ard.mean, precision[:, None]
    root = 1 / np.sqrt(a)
    L, U = scaled_eigh(S, root)
    V, shrink = root[:, None] * U, 1 / (1 + tau * L)
    mean = ((xz @ V) * (tau * shrink)) @ V.T
    if full:
        return Loadings(mean, V, shrink)
    return Loadings(mean, np.eye(len(a)), 1 / (a + tau * np.diag(S)))


def update_ard(w: Any) -> Gamma:
    """q(alpha_k) = Gamma(a0 + D/2, b0 + sum_d E[w_dk^2] / 2)."""
    return Gamma(SHAPE_0 + len(w.mean) / 2, RATE_0 + w.second_moment_diagonal / 2)


def expected_residuals(xx: Array, xz: Array, S: Array, w: Loadings) -> Array:
    """E sum_n (x_nd - w_d'z_n)^2 for every d."""
    return np.asarray(np.maximum(xx - 2 * np.sum(w.mean * xz, axis=1) + w.quadratic(S), 0.0))


def update_noise(n: Any, residuals: Array, rate_0: Any = RATE_0) -> Gamma:
    """q(tau_d) = Gamma(a0 + n_d/2, b0 + E sum_n (x_nd - w_d'z_n)^2 / 2), n_d cells of feature d."""
    return Gamma(SHAPE_0 + n / 2, rate_0 + residuals / 2)


def noise_rate(variance: Array) -> Array:
    """b0 of the noise of every feature: RATE_0, in units of the feature's variance where that is above 1.

    Residuals are differences of sums of squares. In a feature of variance 1e12, noise of variance 1e-5 would be less
    than the rounding of these sums.
    """
    return np.asarray(RATE_0 * np.maximum(variance, 1.0))


def expected_loglik(counts: Any, residuals: Array, noise: Gamma) -> float:
    """sum_d n_d/2 (E[log tau_d] - log 2 pi) - E[tau_d] E sum_n (x_nd - w_d'z_n)^2 / 2, n_d cells of feature d."""
    return float(np.sum(counts / 2 * (noise.mean_log - np.log(2 * np.pi)) - noise.mean * residuals / 2))


def kl_loadings(w: Any, ard: Gamma) -> float:
    """sum_d E KL(q(w_d) || N(0, 1/alpha)) = (E[alpha]'E[w^2] - D K - sum_d log|C_d| - D sum_k E[log alpha_k]) / 2."""
    d, k = w.mean.shape
    return float((ard.mean @ w.second_moment_diagonal - d * k - w.log_det - d * np.sum(ard.mean_log)) / 2)


def update_beta(z: Any, n: int, p: int, kappa: float = 0.0) -> Array:
    """The root in (0, 1) of (N - 2 kappa) b^3 - (1 + b^2) C + b (S + 2 kappa) = 0 with the highest bound.

    C = E[z_p'y_p], S = E[z_p'z_p], and (1 - b^2)^kappa is the prior of b. C > 0 is arranged by the caller
    (``point_at_covariates``). Where covariates are missing, E[y_p'y_p] is not N, and what it exceeds N by adds to S:
    the bound then differs by a constant only.
    """
    return best_beta(n, np.diag(z.zy[:p]), np.diag(z.second_moment(n))[:p] + z.excess, kappa)


def best_beta(n: int, C: Array, S: Array, kappa: float = 0.0) -> Array:
    """Candidates are the real parts of the cubic's roots, and the ends: the bound itself decides among them."""
    lead, least = n - 2 * kappa, 1e-9 * n  # with N = 2 kappa it is a quadratic, whose roots hardly see so small a lead
    companion = np.zeros((len(C), 3, 3))
    companion[:, 0] = np.column_stack([C, -S - 2 * kappa, C]) / (lead if abs(lead) > least else least)
    companion[:, 1, 0] = companion[:, 2, 1] = 1.0
    roots = np.clip(np.linalg.eigvals(companion).real, 0.0, BETA_MAX)
    candidates = np.column_stack([roots, np.zeros(len(C)), np.full(len(C), BETA_MAX)])
    best = np.argmax(beta_bound(candidates, n, C[:, None], S[:, None], kappa), axis=1)
    return np.where(C > 0, candidates[np.arange(len(C)), best], 0.0)


def beta_bound(beta: Array, n: int, c: Any, s: Any, kappa: float = 0.0) -> Array:
    """(kappa - N/2) log(1 - b^2) - (S - 2 b C + N b^2) / (2 (1 - b^2))."""
    v = 1 - beta**2
    return np.asarray((kappa - n / 2) * np.log(v) - (s - 2 * beta * c + n * beta**2) / (2 * v))


def transformed(state: State, R: Array, full: bool) -> State:
    """z -> R z, w -> R^-T w: X sees no difference. In the mean field only means move; covariances are held."""
    P = np.linalg.inv(R)
    views = tuple(view._replace(w=view.w.moved(P, full)) for view in state.views)
    return state._replace(z=state.z.moved(R, full), views=views)


def moved_by_map(state: State, R: Array) -> State:
    """z -> R z and w -> R^-T w in every q-factor; where R is singular, W R^+ explains as much of X as can be."""
    undo = np.linalg.pinv(R)
    views = []
    for view in state.views:
        w = view.w.moved(undo, full=True)
        views.append(view._replace(w=w, ard=update_ard(w)))
    return state._replace(z=state.z.moved(R, full=True), views=tuple(views))


def point_at_covariates(state: State, p: int) -> State:
    """Turn round every informed factor whose correlation with its covariate is negative, with its loadings."""
    signs = np.ones(len(state.z.zz))
    signs[:p] = np.where(np.diag(state.z.zy[:p]) < 0, -1.0, 1.0)
    return state if (signs > 0).all() else arranged(state, np.arange(len(signs)), signs)


def in_order(state: State, p: int, d: int) -> State:
    """Free factors in the order of what they explain of d features, each with its largest loading positive."""
    W = np.vstack([view.w.mean for view in state.views])[:d]
    explained = 2 * np.sum(W * state.z.xz[:d], axis=0) - np.diag(state.z.zz) * np.sum(W**2, axis=0)
    order = np.concatenate([np.arange(p), p + np.argsort(-explained[p:], kind="stable")])
    largest = W[np.abs(W).argmax(axis=0), np.arange(W.shape[1])]
    signs = np.where((np.arange(len(order)) >= p) & (largest < 0), -1.0, 1.0)
    return arranged(state, order, signs[order])


def arranged(state: State, order: NDArray[np.intp], signs: Array) -> State:
    """Factor k becomes ``signs[k]`` times factor ``order[k]``, in every q-factor: the same model, nothing moved."""
    R = signs[:, None] * np.eye(len(order))[order]
    views = tuple(
        view._replace(w=view.w.moved(R.T, full=True), ard=view.ard._replace(rate=view.ard.rate[order]))
        for view in state.views
    )
    return state._replace(z=state.z.moved(R, full=True), views=views)


# -- one K x K matrix, or a stack of them (one for each pattern of gaps) -----------------------------------------------


def transposed(M: Array) -> Array:
    """M' of every matrix."""
    return np.swapaxes(M, -1, -2)


def symmetric_inverse(S: Array) -> Array:
    """Inverse of positive definite matrices, symmetric to the last bit."""
    inverse = np.asarray(np.linalg.inv(S), dtype=np.float64)
    return np.asarray((inverse + transposed(inverse)) / 2)


def scaled_eigh(S: Array, root: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of diag(root) S diag(root), S positive definite.

    A QR or divide-and-conquer method errs by 1e-16 of the largest eigenvalue. If loadings of one factor are a million
    times those of another (features of very different variance, not scaled), the small eigenvalues would be lost;
    Jacobi's method on diag(root) times a root of S finds each to its own precision.
    """
    if root.max() < GRADED * root.min():
        values, vectors = np.linalg.eigh(S * root * root[:, None])
        return np.maximum(values, 0.0), vectors
    if S.ndim > 2:
        parts = [scaled_eigh(one, root) for one in S]
        return np.array([values for values, _ in parts]), np.array([vectors for _, vectors in parts])
    own = np.sqrt(np.diag(S))
    values, turn = np.linalg.eigh(S / own / own[:, None])
    half = np.sqrt(np.maximum(values, 0.0))[:, None] * turn.T * own  # half' half = S
    values, _, vectors, work, *_ = scipy.linalg.lapack.dgejsv(half * root, joba=0, jobu=3, jobv=0)
    return (values * work[0] / work[1]) ** 2, vectors


def mean_field_covariance(precision: Array, p: int) -> Array:
    """The informed block inverted alone, free factors one by one."""
    cov, free = np.zeros_like(precision), np.arange(p, precision.shape[-1])
    cov[..., free, free] = 1 / precision[..., free, free]
    cov[..., :p, :p] = symmetric_inverse(precision[..., :p, :p])
    return cov


def free_precision(Q: Array, p: int) -> Array:
    """I + Q_FF, Q the evidence: the precision of the free factors given the informed ones."""
    return np.eye(Q.shape[-1] - p) + Q[..., p:, p:]


def held_covariance(Q: Array, held: Array, full: bool) -> Array:
    """Cov(z) if Cov(z_I) is held: z_F = B z_I + rest, B = -C Q_FI, Cov(rest) = C = (I + Q_FF)^-1, Q the evidence.

    In the mean field free factors do not depend on the informed ones: only their means do.
    """
    p, cov = held.shape[-1], np.zeros_like(Q)
    precision = free_precision(Q, p)
    cov[..., :p, :p] = held
    if full:
        inverse = symmetric_inverse(precision)
        B = -inverse @ Q[..., p:, :p]
        cov[..., p:, :p] = B @ held
        cov[..., :p, p:] = transposed(cov[..., p:, :p])
        cov[..., p:, p:] = inverse + B @ held @ transposed(B)
    else:
        cov[..., p:, p:] = mean_field_covariance(precision, 0)
    return cov


def kl_free(Q: Array, sizes: Any, S: Array, p: int, full: bool) -> float:
    """sum_n E KL(q(z_F | z_I) || N(0, I)) for S = E[Z'Z] and ``sizes`` samples with each evidence Q.

    Log-determinants are those of the covariance of the conditional, the free factors having just been updated.
    """
    precision = free_precision(Q, p)
    if full:
        log_dets = -np.linalg.slogdet(precision)[1]
    else:
        log_dets = -np.log(np.diagonal(precision, axis1=-2, axis2=-1)).sum(axis=-1)
    return float(np.trace(S[p:, p:]) - np.sum(sizes) * (len(S) - p) - np.sum(sizes * log_dets)) / 2
