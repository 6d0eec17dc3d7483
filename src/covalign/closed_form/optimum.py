"""The exact trade-off: the largest total alignment of any linear map within a coupling budget, with a certificate.

In the coordinates of T_0 a map is F (P x P, unit rows), corr(z~) = C = F F' and alignment_p = (F M)_pp. With weights w
(mean 1), B = diag(w) M and the singular values s of L'B, C = L L',

    max {sum_p w_p alignment_p : F F' = C} = g(C) = |L'B|_* = sum(s) = tr((B'C B)^(1/2)),    F = L U E',  L'B = U s E'.

g is concave, and the correlation matrices C with sum_{p != q} C_pq^2 <= c and C_pq = 0 for given pairs are convex, so
that a local maximum is global. With X and G the entries of C and of the gradient of g at the other pairs,

    g(C') <= g(C) + sqrt(c) |G| - <G, X>    for every admissible C',

and the right side minus what F reaches is the ``gap``: no linear map is better by more. ``docs/mathematics.md`` has the
proofs. Maps of more than P dimensions of z are no better.

>>> import covalign as ca
>>> from covalign.closed_form.budget import Budget
>>> from covalign.closed_form.optimum import largest_alignment
>>> m = ca.simulate.population_moments("PN")
>>> best = largest_alignment(ca.regimes.whitened_polar(m).M, Budget(1.2358))
>>> round(best.alignment.mean().item(), 4), round(best.coupling, 4), best.gap < 1e-9  # T_0.5 reaches 0.6292
(0.6301, 1.2358, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from covalign._core.linalg import Array, rank_cutoff, unit_rows
from covalign._core.threads import one_thread
from covalign.closed_form import regimes
from covalign.closed_form.budget import Budget
from covalign.closed_form.crowded import only_strongest
from covalign.closed_form.measures import off_diagonal_squares

# g has no gradient where its singular values vanish. So the eigenvalues of M are raised to a small share of the
# largest, which raises g, and the share falls until the gap is small enough.
FLOORS = tuple(10.0 ** np.arange(-1, -5.5, -0.5))
TOLERANCE, COARSE = 1e-9, 1e-6  # of the gap, relative to g: at the end, and while eigenvalues of M are raised
MOST_STEPS, SUBSPACE = 60, 40
HIDDEN, MOST_HIDDEN = 1e-14, 5  # a rise of g that rounding errors can hide, and how many such steps are tried


class Optimum(NamedTuple):
    """The best map within a budget."""

    mixing: Array  # F (P x P)
    alignment: Array  # of every covariate
    coupling: float
    gap: float  # no admissible map has a weighted mean alignment that is larger by more


class _Point(NamedTuple):
    """A correlation matrix C = L L', and L'B = U diag(s) E'."""

    C: Array
    L: Array
    U: Array
    s: Array
    Et: Array

    @property
    def value(self) -> float:
        """g(C)."""
        return float(self.s.sum())

    @property
    def root(self) -> Array:
        """R with 2 grad g = R R': R = L'^-1 U s^(1/2)."""
        return np.asarray(solve_triangular(self.L.T, self.U * np.sqrt(self.s)))


def largest_alignment(M: Array, budget: Budget, tolerance: float = TOLERANCE) -> Optimum:
    """The map with the largest weighted mean alignment within the budget; M as in ``regimes.Polar``.

    >>> import numpy as np
    >>> M = np.array([[0.8, 0.3], [0.3, 0.6]])
    >>> largest_alignment(M, Budget(0.0)).alignment.round(6).tolist()  # of T_0
    [0.8, 0.6]
    >>> best = largest_alignment(M, Budget(0.5, weights=(1.8, 0.2)))
    >>> best.alignment.round(3).tolist(), round(best.coupling, 6)
    ([0.854, 0.646], 0.5)
    """
    if M.shape[-1] > len(M):
        raise only_strongest(M.shape[-1], len(M))
    with one_thread(len(M)):
        return _largest_alignment(np.asarray(M, dtype=np.float64), budget, tolerance)


def _largest_alignment(M: Array, budget: Budget, tolerance: float) -> Optimum:
    p = len(M)
    w = np.ones(p) if budget.weights is None else np.array(budget.weights)
    strongest = unit_rows(M)
    C = strongest @ strongest.T
    free = ~np.eye(p, dtype=bool)
    for a, b in budget.uncoupled:
        free[a, b] = free[b, a] = False
    refused = np.where(free, 0.0, C - np.eye(p))
    if off_diagonal_squares(C) <= budget.max_coupling and np.all(np.abs(refused) <= rank_cutoff(p, 1.0)):
        return _reached(strongest, M, w, float(w @ np.linalg.norm(M, axis=1)))  # no map exceeds |M e_p|
    radius = math.sqrt(min(budget.max_coupling, float(free.sum())))
    d, V = np.linalg.eigh(M)
    lam, bound = regimes.lam_within(M, radius**2), math.inf
    C = _start(regimes.mixed(M, min(lam, 0.9)), radius, free)
    best = _reached(regimes.mixed(M, 0.0 if budget.uncoupled else lam), M, w, bound)  # never worse than these
    for floor in FLOORS:
        raised = np.maximum(d, floor * d[-1])
        B = w[:, None] * ((V * raised) @ V.T)
        is_raised, is_last = bool(np.any(raised > d)), floor == FLOORS[-1]
        point, gap = _maximised(C, B, radius, free, COARSE if is_raised and not is_last else tolerance / 2)
        # M = M_raised K with |K| <= 1, so that g with the raised M is never smaller.
        bound = min(bound, point.value + gap)
        if is_raised:
            bound = min(bound, _bound_on_range(point.C, w[:, None] * V, np.where(raised > d, 0.0, d), d, radius, free))
        found = _reached(point.L @ point.U @ point.Et, M, w, bound)
        best = min(found, _reached(best.mixing, M, w, bound), key=lambda one: one.gap)
        C = point.C
        if not is_raised or best.gap * p <= tolerance * point.value:
            break
    return best


def _reached(F: Array, M: Array, w: Array, bound: float) -> Optimum:
    alignment = np.einsum("pq,qp->p", F, M)
    return Optimum(F, alignment, float(off_diagonal_squares(F @ F.T)), max(0.0, bound - float(w @ alignment)) / len(M))


def _start(F: Array, radius: float, free: NDArray[np.bool_]) -> Array:
    """A correlation matrix within the budget and far from singular: F F', nearer to I where needed."""
    X = np.where(free, F @ F.T, 0.0)
    lowest = float(np.linalg.eigvalsh(X)[0])
    size = float(np.linalg.norm(X))
    return np.eye(len(F)) + X * min(1.0, 0.8 / max(-lowest, 0.8), radius / max(size, 1e-300))


def _point(C: Array, B: Array) -> _Point | None:
    """None where C is not positive definite."""
    try:
        L = np.asarray(np.linalg.cholesky(C), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    return _Point(C, L, *np.linalg.svd(L.T @ B))


def _maximised(C: Array, B: Array, radius: float, free: NDArray[np.bool_], tolerance: float) -> tuple[_Point, float]:
    """The maximum of g in the ball |X| <= radius, and its gap.

    Every step maximises the second-order model of g over the ball, in a subspace, and goes as far towards that point as
    g rises. The ball is convex, so every step stays inside.
    """
    point = _point(C, B)
    best, least, hidden = point, math.inf, 0
    for _ in range(MOST_STEPS):
        if point is None or hidden > MOST_HIDDEN:
            break
        R = point.root
        X, G = np.where(free, point.C, 0.0), np.where(free, R @ R.T / 2, 0.0)
        gap = radius * float(np.linalg.norm(G)) - float(np.sum(G * X))
        if gap < least:
            best, least = point, gap
        if gap <= tolerance * point.value:
            break
        following = _searched(point, _model_maximum(X, G, R, point.s, radius, free) - X, G, B)
        hidden += following is not None and following.value <= point.value * (1 + HIDDEN)
        point = following
    assert best is not None
    return best, max(least, 0.0)


def _searched(point: _Point, D: Array, G: Array, B: Array) -> _Point | None:
    """A point on the line C + t D, 0 < t <= 1, where g has risen enough, up to rounding errors; None if there is none.

    Where C is nearly singular, g is flat to rounding errors long before its gradient is accurate.
    """
    relative = solve_triangular(point.L, solve_triangular(point.L, D, lower=True).T, lower=True)
    lowest, slope = float(np.linalg.eigvalsh((relative + relative.T) / 2)[0]), float(np.sum(G * D))
    t = min(1.0, 0.7 / max(-lowest, 1e-300))
    while t > 1e-10:
        following = _point(point.C + t * D, B)
        if following is not None and following.value >= point.value * (1 - HIDDEN) + 1e-4 * t * slope:
            return following
        t /= 2
    return None


def _model_maximum(X: Array, G: Array, R: Array, s: Array, radius: float, free: NDArray[np.bool_]) -> Array:
    """argmax <G, Y - X> + <Y - X, H (Y - X)> / 2 over |Y| <= radius, Y in the Krylov space of H from X and G.

    -H V = R (R'V R / (2 (s_i + s_j))) R' at the free pairs: the derivative of the gradient.
    """
    K = 0.25 / (s[:, None] + s)

    def minus_H(V: Array) -> Array:
        image = np.where(free, R @ ((R.T @ V @ R) * K) @ R.T, 0.0)
        return np.asarray(image + image.T)  # a Krylov basis would amplify an antisymmetric rounding error

    Q, images = _krylov(minus_H, [X, (G + G.T) / 2], int(free.sum()) // 2)
    A = Q @ images.T
    h, E = np.linalg.eigh((A + A.T) / 2)
    b = E.T @ (Q @ G.ravel() + A @ (Q @ X.ravel()))
    return np.asarray((_in_ball(np.maximum(h, 0.0), b, radius) @ E.T @ Q).reshape(X.shape))


def _krylov(apply: Callable[[Array], Array], first: Sequence[Array], most: int) -> tuple[Array, Array]:
    """An orthonormal basis of at most SUBSPACE vectors (rows), and what the operator makes of each."""
    basis, images, waiting = np.empty((0, first[0].size)), [], [V.ravel() for V in first]
    while waiting:
        v = waiting.pop(0)
        size = float(np.linalg.norm(v))
        for _ in range(2):  # twice is enough (Kahan)
            v = v - (basis @ v) @ basis
        left = float(np.linalg.norm(v))
        if left > 1e-10 * size and len(basis) < min(most, SUBSPACE):
            basis = np.vstack([basis, v / left])
            images.append(apply(basis[-1].reshape(first[0].shape)).ravel())
            waiting.append(images[-1])
    return basis, np.array(images)


def _in_ball(h: Array, b: Array, radius: float) -> Array:
    """argmax b'y - y'diag(h) y / 2 over |y| <= radius: y = b / (h + mu), mu >= 0 the multiplier of the ball."""
    low, high = 0.0, float(np.linalg.norm(b)) / radius
    if np.all(h > 0) and np.linalg.norm(b / h) <= radius:
        return np.asarray(b / h)
    mu = high
    for _ in range(100):  # Newton for 1 / |y| = 1 / radius, which is nearly linear in mu, between two bounds
        y = b / (h + mu)
        size = float(np.linalg.norm(y))
        low, high = (mu, high) if size > radius else (low, mu)
        if abs(size - radius) <= 1e-14 * radius:
            break
        step = mu + (size / radius - 1) * size**2 / float(np.sum(y * y / (h + mu)))
        mu = step if low < step < high else (low + high) / 2
    return np.asarray(y * min(1.0, radius / float(np.linalg.norm(y))))


def _bound_on_range(C: Array, WV: Array, kept: Array, d: Array, radius: float, free: NDArray[np.bool_]) -> float:
    """An upper bound of g from its gradient where only the eigenvalues ``kept`` > 0 of M count.

    The others add at most sum_i (d_i - kept_i) |diag(w) v_i| sqrt(P), as |L'| <= sqrt(P).
    """
    A = (WV * kept)[:, kept > 0]  # the nuclear norm of L'B is that of L'A
    values, E = np.linalg.eigh(A.T @ C @ A)
    s = np.sqrt(np.maximum(values, 0.0))
    if s[0] <= 1e-8 * s[-1]:
        return math.inf
    N = A @ E
    G = np.where(free, (N / s) @ N.T / 2, 0.0)
    rest = float(np.maximum(d - kept, 0.0) @ np.linalg.norm(WV, axis=0)) * math.sqrt(len(C))
    return float(s.sum()) + radius * float(np.linalg.norm(G)) - float(np.sum(G * C)) + rest
