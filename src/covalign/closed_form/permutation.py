"""Permutation test of alignments: the same procedure after the rows of Y are shuffled against those of Z.

With many latent dimensions, even shuffled covariates have a high alignment in sample, so an alignment is compared with
that. In whitened coordinates everything a regime needs is P x P: with A = W S_zy (k x P) and shrinkage as the matrix
N = W S_z R^-1 S_z W', R the ridged covariance of ``regimes.ridge``,

    M^2 = (A'NA) (A'N^2 A)^+ (A'NA),    N = I without shrinkage,    alignment = diag(F M),   F = unit_rows(f(M)),

so Z is whitened once, rotated to the axes of N, and a permutation costs one k x n x P product. If covariates are
linearly dependent, the undetermined dimensions count as uncorrelated with them, as in ``regimes`` if the dimensions
suffice.

With confounders, Z and Y are replaced by their residuals, and those of Y are shuffled (Freedman and Lane 1983).
Shuffled residuals correlate with the confounders again by chance, so these are regressed out again: this changes
var(y), and no covariance with Z.

With groups (cells of a donor), rows are not exchangeable. A covariate that is constant within groups is shuffled as a
whole: every group gets the value of another. Other covariates are shuffled within groups. With confounders, values of
groups are shuffled as they are, and then adjusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from covalign._core.checks import check_random_state
from covalign._core.linalg import EPS, Array, dense, is_constant, unit_rows, whitener
from covalign.closed_form import regimes
from covalign.closed_form.budget import Budget
from covalign.closed_form.measures import quotient
from covalign.closed_form.optimum import largest_alignment
from covalign.moments.adjustment import adjusted
from covalign.moments.gap_accumulator import incomplete_moments
from covalign.moments.incomplete import Blocks, IncompleteMoments
from covalign.moments.moments import Moments

BATCH_NUMBERS = 2**22  # permuted covariates held at a time
TIE = 1e-8  # statistics this close are equal: M is the root of a matrix that carries rounding errors of 1e-16


class Permutable(NamedTuple):
    """What all permutations share: the whitened, rotated rows of Z, the covariates, and the eigenvalues of N."""

    Q: Array  # n x k, Q'Q = n I
    C: Array  # n x r, C'C = n I, C'Q = 0: the confounders
    Y: Array  # n x P, centred, 0 where missing
    observed: NDArray[np.bool_]  # n x P
    kept: Array  # k: the eigenvalues of N
    together: list[list[int]]  # covariates missing on the same rows
    latents: int  # K
    groups: NDArray[np.intp] | None = None  # 0, 1, ... for every row
    whole: NDArray[np.bool_] | None = None  # covariates that are constant within groups


def permutable(
    Z: Any,
    Y: Array,
    blocks: Blocks,
    shrinkage: float,
    q: int = 0,
    groups: NDArray[np.intp] | None = None,
    scale: str = "raw",
) -> Permutable:
    """Whiten Z and centre Y, after regressing out the last q columns of Z, the confounders."""
    sums = incomplete_moments([(Z, Y)], blocks)
    z, rows, C = sums.rows, dense(Z), np.empty((len(Y), 0))
    whole = np.zeros(Y.shape[1], dtype=bool) if groups is None else constant_within(Y, groups)
    if q:
        z, rows, left, C = _adjusted(sums, rows, Y, q)
        Y = np.where(whole, Y, left)
    W = whitener(z.cov_z, is_constant(z.mean_z, np.diag(z.cov_z)))
    WS = W @ z.cov_z
    of_w = Moments.from_covariances(z.cov_z, WS.T, np.eye(len(W)))
    ridge = regimes.ridge(of_w, shrinkage, scale) if shrinkage > 0 else W.T
    kept, turn = np.linalg.eigh(WS @ ridge)
    observed = ~np.isnan(Y)
    centred = np.where(observed, Y - np.nanmean(Y, axis=0), 0.0)
    Q = (rows - z.mean_z) @ (turn.T @ W).T
    together = [np.arange(Y.shape[1])[columns].tolist() for columns, _ in sums.pairs]
    return Permutable(Q, C, centred, observed, kept, together, Z.shape[1] - q, groups, whole)


def constant_within(Y: Array, groups: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Covariates with one value, or none, within every group."""
    filled = np.where(np.isnan(Y), np.inf, Y)
    _, first = np.unique(groups, return_index=True)
    return np.asarray(np.all(filled == filled[first][groups], axis=0))


def _adjusted(sums: IncompleteMoments, rows: Array, Y: Array, q: int) -> tuple[Moments, Array, Array, Array]:
    """Moments and rows of the residuals of Z given the confounders, residuals of Y, and the whitened confounders."""
    m, (c, B_z, b_y) = adjusted(sums, q)
    C, S_c = rows[:, -q:] - c, sums.cov_z[-q:, -q:]
    return m, rows[:, :-q] - C @ B_z, Y - C @ b_y, C @ whitener(S_c, is_constant(c, np.diag(S_c))).T


def alignments(
    data: Permutable, orders: NDArray[np.intp], regime: str, lam: float, budget: Budget | None = None
) -> Array:
    """Alignment (b x P) where row i of Z is paired with row orders[j, i] of Y, j = 0 ... b - 1.

    Orders may differ between covariates (b x n x P). With groups of unequal size, an order repeats rows.
    """
    n, p = data.Y.shape
    (k, b) = (data.Q.shape[1], len(orders))
    shared = orders.ndim == 2
    at: Any = orders if shared else (orders, np.arange(p))
    Y, seen = data.Y[at].swapaxes(0, 1), data.observed[at].swapaxes(0, 1)
    n_p = seen.sum(axis=0)  # b x P
    Y = Y if data.groups is None else np.where(seen, Y - Y.sum(axis=0) / n_p, 0.0)
    s_zy = (data.Q.T @ Y.reshape(n, b * p)).reshape(k, b, p) / n_p  # on observed rows
    s_cy = (data.C.T @ Y.reshape(n, b * p)).reshape(-1, b, p) / n_p
    variance = np.sum(Y**2, axis=0) / n_p
    A = s_zy / np.sqrt(variance - np.sum(s_cy**2, axis=0))
    for columns in data.together:
        for j in range(b):
            if n_p[j, columns[0]] < n:
                s = np.vstack([s_zy[:, j, columns], s_cy[:, j, columns]])
                A[:, j, columns] = _completed(data, seen[:, j, columns[0]], s, variance[j, columns])
    if p > k:  # more covariates than dimensions: the regressions N A, which ``crowded`` explains
        C = A * data.kept[:, None, None]
        return quotient(np.sum(C * A, axis=0), np.linalg.norm(C, axis=0))
    M = _roots(A.transpose(1, 2, 0), data.kept)
    if budget is not None:  # the exact regime: every permutation has its own optimum
        return np.array([largest_alignment(one, budget).alignment for one in M])
    return _diagonal(M, regime, lam)


def _completed(data: Permutable, rows: NDArray[np.bool_], s: Array, variance: Array) -> Array:
    """W S_z b / sd(y) of ``incomplete``, in whitened coordinates: b = C^-1 s_zy, var(y) = b'b + var(y - b'z).

    s = (s_zy, s_cy); what the confounders c explain on these rows is subtracted from S_z(o), s_zy and var(y).
    """
    n_p, k = int(rows.sum()), data.Q.shape[1]
    Q, C, s_zy = data.Q[rows], data.C[rows], s[:k]
    S_o = _covariance(Q, Q)
    if C.shape[1]:
        S_zc, G = _covariance(Q, C), np.linalg.pinv(_covariance(C, C), rcond=1e-12, hermitian=True)
        variance = variance - np.sum(s[k:] * (G @ s[k:]), axis=0)
        S_o, s_zy = S_o - S_zc @ G @ S_zc.T, s_zy - S_zc @ G @ s[k:]
    b = np.linalg.solve((n_p * S_o + data.latents * np.eye(k)) / (n_p + data.latents), s_zy)
    residual = variance - np.sum(b * (2 * s_zy - S_o @ b), axis=0)
    return np.asarray(b / np.sqrt(np.sum(b**2, axis=0) + residual))


def _covariance(A: Array, B: Array) -> Array:
    """cov(A, B), for columns with means no larger than their spread."""
    return np.asarray(A.T @ B / len(A) - np.outer(A.mean(axis=0), B.mean(axis=0)))


def _roots(At: Array, kept: Array) -> Array:
    """M (b x P x P) of A' (b x P x k); directions of rounding noise are set to zero."""
    C = At * kept
    X = At @ C.transpose(0, 2, 1)
    squared = X @ np.linalg.pinv(C @ C.transpose(0, 2, 1), rcond=1e-12, hermitian=True) @ X
    values, vectors = np.linalg.eigh((squared + squared.transpose(0, 2, 1)) / 2)
    seen = values > 100 * values.shape[1] * EPS * values[:, -1:]
    return np.asarray((vectors * np.sqrt(np.where(seen, values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1))


def _diagonal(M: Array, regime: str, lam: float) -> Array:
    """diag(F M): corr(z~_p, y_p), as T_0 S_zy = M."""
    exclusive = regime == "exclusive"
    F = unit_rows(np.asarray(np.linalg.inv(M))) if exclusive else regimes.mixed(M, regimes.ENDS.get(regime, lam))
    return np.asarray(np.einsum("bpq,bqp->bp", F, M))


def p_values(
    data: Permutable, regime: str, lam: float, n_permutations: int, random_state: Any, budget: Budget | None = None
) -> pd.DataFrame:
    """One row per covariate, then their mean: alignment, by_chance (mean over permutations), p_value."""
    observed = _with_mean(alignments(data, np.arange(len(data.Y))[None], regime, lam, budget))[0]
    reached, total = np.zeros(len(observed)), np.zeros(len(observed))
    for orders in _orders(data, n_permutations, check_random_state(random_state)):
        permuted = _with_mean(alignments(data, orders, regime, lam, budget))
        reached += np.sum(permuted >= observed - TIE, axis=0)
        total += permuted.sum(axis=0)
    p = (1 + reached) / (1 + n_permutations)
    return pd.DataFrame({"alignment": observed, "by_chance": total / n_permutations, "p_value": p})


def _with_mean(values: Array) -> Array:
    return np.hstack([values, values.mean(axis=1, keepdims=True)])


def _orders(data: Permutable, count: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """``count`` permutations of the rows, in batches that fit the memory."""
    n, p = data.Y.shape
    most = max(1, BATCH_NUMBERS // (n * p))
    for done in range(0, count, most):
        b = min(most, count - done)
        if data.groups is None or data.whole is None:
            yield rng.permuted(np.tile(np.arange(n), (b, 1)), axis=1)
        elif data.whole.all():
            yield _whole_groups(data.groups, b, rng)
        elif not data.whole.any():
            yield _within_groups(data.groups, b, rng)
        else:
            both = _whole_groups(data.groups, b, rng), _within_groups(data.groups, b, rng)
            yield np.where(data.whole, *(orders[:, :, None] for orders in both))


def _whole_groups(groups: NDArray[np.intp], b: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """b x n: for every row a row of the group whose value its own group gets."""
    _, first = np.unique(groups, return_index=True)
    return np.asarray(rng.permuted(np.tile(first, (b, 1)), axis=1)[:, groups])


def _within_groups(groups: NDArray[np.intp], b: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """b x n: rows shuffled within their groups."""
    by_group = np.argsort(groups, kind="stable")
    orders = np.empty((b, len(groups)), dtype=np.intp)
    # Sorted by group, then by a random number: the rows of each group in random order.
    keys = rng.random((b, len(groups))) + groups
    orders[:, by_group] = np.argsort(keys, axis=1)
    return orders
