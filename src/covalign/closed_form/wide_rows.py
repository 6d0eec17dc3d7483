"""Wide data in the space of their rows: the fits without any set of rows follow from one inverse.

The rows of a part are turned by an orthogonal map that takes the vector of ones to one axis: sqrt(n) times the root of
its covariance, and sqrt(n) times its mean. All N turned rows R (N x K), v (what became of ones) and y then give every
sum over rows of a part that products have. With the metric D of ``regimes.ridge`` and G = R D^-1 R', the ridge
regression with intercept on the rows T, and what is left of y there, follow from

    [G_TT + lam I  v_T] [alpha]   [y_T]
    [v_T'            0] [  mu ] = [ 0 ],        fitted = y_T - lam alpha.

Let H (N x N) be the upper left block of the inverse of this matrix for all rows. If the rows F are left out,

    e_F = H_FF^-1 (H y)_F  is y_F less its prediction,      alpha = H y - H_F e_F,

exactly, so a set of left-out rows costs a Cholesky decomposition of its own order. This needs the same lam and D in all
training sets: D has the variances of all rows (labels play no part in it), and lam = rho / (1 - rho) times the mean
size of the training sets of the folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from covalign._core.linalg import Array, is_constant, mirror, range_root, rank_cutoff, regular_cholesky
from covalign._core.threads import one_thread
from covalign.closed_form import regimes
from covalign.closed_form.measures import quotient
from covalign.closed_form.regimes import Polar, Whitened
from covalign.closed_form.ridge_path import error_of_sums
from covalign.moments.block_sizes import is_wide
from covalign.moments.incomplete import Rows
from covalign.moments.moments import Moments

SINGLE_ROWS = 400  # from which predictions that only decide on a shrinkage are float32
SINGLE_CONDITION = 1e4  # of G + lam I, up to which float32 has three digits


class Prediction(NamedTuple):
    """A fit without some rows: ridge regressions b, and b'(z - mean of the training set)."""

    values: Array  # of all turned rows (N x P)
    own: Array  # variance on the training set (P)


class WideRows:
    """All rows, turned within each part; parts have no gaps."""

    def __init__(self, parts: Sequence[Moments]) -> None:
        self.n = np.array([part.n or 0 for part in parts], dtype=np.float64)
        share = self.n / self.n.sum()
        self.mean = share @ np.array([part.mean_z for part in parts])
        self.origin = share @ np.array([part.mean_y for part in parts])
        within = share @ np.array([np.diag(part.cov_z) for part in parts])
        self.variance = within + share @ np.array([(part.mean_z - self.mean) ** 2 for part in parts])
        constant = is_constant(self.mean, self.variance)
        roots = [_root(part) for part in parts]
        ends = np.cumsum([root.shape[1] + 1 for root in roots])
        self.spans = [slice(end - root.shape[1] - 1, end) for end, root in zip(ends, roots, strict=True)]
        self.R, self.v = np.empty((ends[-1], len(self.mean))), np.zeros(ends[-1])
        self.y = np.zeros((ends[-1], len(self.origin)))
        self.yy = np.array(
            [n * (np.diag(m.cov_y) + (m.mean_y - self.origin) ** 2) for n, m in zip(self.n, parts, strict=True)]
        )
        for part, root, at, n in zip(parts, roots, self.spans, self.n, strict=True):
            self.R[at.start] = np.sqrt(n) * (part.mean_z - self.mean)
            self.R[at.start + 1 : at.stop] = np.sqrt(n) * root.T
            self.v[at.start], self.y[at.start] = np.sqrt(n), np.sqrt(n) * (part.mean_y - self.origin)
        self.R[:, constant] = 0.0
        self._grams: dict[str, Array] = {}
        self._largest: dict[str, float] = {}
        self._scratch: dict[Any, Any] = {}
        for part, at, n in zip(parts, self.spans, self.n, strict=True):
            inner = slice(at.start + 1, at.stop)
            # S_zy = L c: what of y varies with the rows.
            units = regimes.penalty_of(self.variance, "standard")[:, None]
            right = (self.R[inner] / np.sqrt(n)) @ (part.cov_zy / units)
            self.y[inner] = np.sqrt(n) * np.linalg.solve(self.gram("standard")[inner, inner] / n, right)

    def gram(self, scale: str) -> Array:
        """G of a scale, regular also along v: v v' changes nothing, as the intercept is free."""
        if scale not in self._grams:
            S = self.R / np.sqrt(regimes.penalty_of(self.variance, scale))
            G = S @ S.T
            # Rows of the same mean make v an eigenvector of 0.
            G += np.trace(G) / len(G) / self.n.sum() * np.outer(self.v, self.v)
            self._grams[scale] = G
        return self._grams[scale]

    def regular(self) -> bool:
        """Whether rows are clearly independent."""
        return regular_cholesky(self.gram("standard"), len(self.mean)) is not None

    def largest(self, scale: str) -> float:
        """The largest eigenvalue of G, from power iterations: two digits suffice."""
        if scale not in self._largest:
            G, x = self.gram(scale), np.ones(len(self.v))
            for _ in range(20):
                x = G @ (x / np.linalg.norm(x))
            self._largest[scale] = float(np.linalg.norm(x))
        return self._largest[scale]

    def inverse(self, scale: str, lam: float, single: bool = False, scratch: dict[Any, Any] | None = None) -> Any:
        """H. ``single``: in float32, where that has digits enough; ``scratch`` keeps its memory for another H."""
        G = self.gram(scale)
        lam = max(lam, rank_cutoff(len(G), self.largest(scale)) / 10)  # no smaller than rounding
        single = single and len(G) > SINGLE_ROWS and self.largest(scale) < SINGLE_CONDITION * lam
        dtype = np.dtype(np.float32 if single else np.float64)
        # Fresh pages of the system cost as much as some of the work.
        A = (scratch if scratch is not None else {}).setdefault(dtype, np.empty(G.shape, dtype))
        np.copyto(A, G, casting="same_kind")
        A[np.diag_indices_from(A)] += dtype.type(lam)
        factor, inverted = (lapack.spotrf, lapack.spotri) if single else (lapack.dpotrf, lapack.dpotri)
        with one_thread(len(A)):
            factored, failed = factor(A.T, lower=1, overwrite_a=1, clean=0)
            if failed and single:
                return self.inverse(scale, lam, scratch=scratch)
            if failed:
                raise np.linalg.LinAlgError("rows are dependent")
            H = mirror(inverted(factored, lower=1, overwrite_c=1)[0].T)
        Hv = H @ self.v.astype(dtype)
        scaled = (Hv / (self.v @ Hv)).astype(dtype)
        for i in range(0, len(H), 128):
            H[i : i + 128] -= scaled[i : i + 128, None] * Hv
        return H

    def rows_of(self, parts: Sequence[int]) -> Any:
        """Turned rows of these parts: a slice, if they are consecutive."""
        if not len(parts):
            return slice(0, 0)
        if list(parts) == list(range(parts[0], parts[-1] + 1)):
            return slice(self.spans[parts[0]].start, self.spans[parts[-1]].stop)
        return np.concatenate([np.arange(len(self.v))[self.spans[i]] for i in parts])

    def without(self, scale: str, lam: float, sets: Sequence[Sequence[int]], single: bool = False) -> list[Prediction]:
        """The fits without each of these sets of parts."""
        if np.isinf(lam):
            return [self._marginal(scale, self.rows_of(parts)) for parts in sets]
        H = self.inverse(scale, lam, single, self._scratch)
        Hy = H @ self.y.astype(H.dtype, copy=False)
        return [self._without(H, Hy, lam, self.rows_of(parts)) for parts in sets]

    def _without(self, H: Any, Hy: Any, lam: float, F: Any) -> Prediction:
        e, alpha = _left_out(H, Hy, F)
        missed = lam * alpha.astype(np.float64, copy=False)
        missed[F] = e
        n_t, mean = self.training_mean(F)
        return self._prediction(self.y - missed - np.outer(self.v, mean), F, n_t)

    def _marginal(self, scale: str, F: Any) -> Prediction:
        """The limit of large lam: b = D^-1 S_zy."""
        n_t, mean = self.training_mean(F)
        v_t, y_t = self.v.copy(), self.y - np.outer(self.v, mean)
        v_t[F], y_t[F] = 0.0, 0.0
        found = self.gram(scale) @ y_t
        return self._prediction(found - np.outer(self.v, v_t @ found / n_t), F, n_t)

    def _prediction(self, values: Array, F: Any, n_t: float) -> Prediction:
        squares = np.sum(values**2, axis=0) - np.sum(values[F] ** 2, axis=0)
        return Prediction(values, np.maximum(squares, 0.0) / n_t)

    def training_mean(self, F: Any) -> tuple[float, Array]:
        """Rows that are not left out, and the mean of y there."""
        v_t = self.v.copy()
        v_t[F] = 0.0
        n_t = float(v_t @ v_t)
        return n_t, v_t @ self.y / n_t


def wide_rows(parts: Sequence[Rows | None]) -> WideRows | None:
    """None if there are not many more columns than rows, or if covariates have gaps, or if rows are dependent."""
    there = [part for part in parts if isinstance(part, Moments)]
    if any(part is not None and not isinstance(part, Moments) for part in parts) or len(there) < 2:
        return None
    if not is_wide(sum(part.n or 0 for part in there), len(there[0].mean_z)):
        return None
    rows = _made(there)
    return rows if rows is not None and rows.regular() else None


def _made(parts: Sequence[Moments]) -> WideRows | None:
    try:
        return WideRows(parts)
    except np.linalg.LinAlgError:  # copies of rows in a part
        return None


def _root(part: Moments) -> Array:
    if part.n == 1:
        return np.empty((len(part.mean_z), 0))
    return range_root(part.cov_z) if part.root is None else part.root


def _left_out(H: Any, Hy: Any, F: Any) -> tuple[Any, Any]:
    """e_F and alpha."""
    rows = H[F]
    if len(rows) == 0:
        return Hy[F], Hy
    factor, solved = (lapack.spotrf, lapack.spotrs) if H.dtype == np.float32 else (lapack.dpotrf, lapack.dpotrs)
    lower, _ = factor(rows[:, F].T, lower=1, clean=0)
    e = solved(lower, Hy[F], lower=1)[0]
    return e, Hy - rows.T @ e


def error_of_inverse(H: Any, F: Any) -> float:
    """``ridge_path.error_of`` of the fit without the rows F: lam (H - H_F' H_FF^-1 H_F) has the eigenvalues g.

    As rows are no more than dimensions, only ratios of these count.
    """
    n, trace, squares = float(len(H)) - 1, float(np.trace(H)), float(np.vdot(H, H))
    rows = H[F]
    if len(rows):
        half = solve_triangular(np.linalg.cholesky(rows[:, F]), rows, lower=True, check_finite=False)
        n -= len(rows)
        trace -= float(np.vdot(half, half))
        inner = half @ half.T
        squares += float(np.vdot(inner, inner)) - 2 * float(np.vdot(half, half @ H))
    return error_of_sums(0.0, trace, squares, n)


class TrainingRows:
    """The whitening of a training set, without some parts: coordinates are its turned rows, centred (N x ...)."""

    def __init__(self, space: WideRows, H: Any, left_out: Sequence[int]) -> None:
        self.space, self._H, self._F = space, H, space.rows_of(left_out)
        self.n, _ = space.training_mean(self._F)
        self.rank = len(space.v) - len(space.v[self._F]) - 1
        v = space.v.copy()
        v[self._F] = 0.0
        self._v, self.mean = v, space.mean + v @ space.R / self.n

    def rows(self, F: Array) -> Array:
        """F'W (P x K): the combinations of columns of Z whose values on the turned rows are sqrt(n) F."""
        alpha = _left_out(self._H, self._H @ F, self._F)[1]
        T = (alpha.T @ self.space.R) / regimes.penalty_of(self.space.variance, "standard")
        return np.asarray(np.sqrt(self.n) * T)

    @property
    def matrix(self) -> Array:
        """W."""
        return self.rows(np.eye(len(self.space.v)))

    @property
    def size(self) -> float:
        """At least the norm of W D^1/2."""
        return float(np.sqrt(self.n * max(np.trace(self._H), 0.0)))

    def centred(self, M: Array) -> Array:
        """Values of turned rows, less their mean on the training set; 0 for rows that are left out."""
        M = M - np.outer(self._v, self._v @ M / self.n)
        M[self._F] = 0.0
        return M

    def polar(self, sd: Array, ridged: Array | None, names: Sequence[str]) -> Polar | int:
        """``regimes.polar_if_spanned`` of the training set.

        ``sd`` are the deviations of covariates (infinite for one that the training set does not know), and ``ridged``
        the values of their ridge regressions on its rows.
        """
        if self.rank < len(sd) <= self.space.R.shape[1]:
            return self.rank
        root = np.sqrt(self.n)

        def regressions(V: Array | None) -> Array:
            assert ridged is not None
            values = self.centred(ridged) / sd / root
            return np.asarray(values if V is None else values @ V)

        def columns(at: Any) -> Array:
            Z = self.centred(self.space.R[:, at])
            return np.asarray(quotient(Z, np.linalg.norm(Z, axis=0)))

        A = self.centred(self.space.y) / sd / root
        cutoff = rank_cutoff(self.space.R.shape[1], self.size)
        return regimes.polar_of(Whitened(A, cutoff, None if ridged is None else regressions, columns, self), names)
