"""The polar form of moments, which every regime shares: T_0, M and the matrices behind them, and the ridge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from covalign._core.checks import check_choice, check_ridge
from covalign._core.data_errors import constant_covariates, too_few_rows
from covalign._core.linalg import (
    Array,
    Whitening,
    is_constant,
    orthonormal_range,
    range_eigh,
    rank_cutoff,
    regular_cholesky,
)
from covalign._core.messages import kind_of, message
from covalign._core.threads import one_thread
from covalign.closed_form.crowded import unit_columns
from covalign.moments.incomplete import IncompleteMoments
from covalign.moments.moments import Moments

POWERS = {"raw": 0.0, "root": 0.5, "standard": 1.0}  # of the deviations by which columns are divided before the ridge


SCALED = {"raw": "", "root": ", columns divided by the root of their deviations", "standard": ", columns standardised"}


MANY_COVARIATES = 100  # from which products replace singular value decompositions, where columns are independent


REGULAR = 1e-6  # the reciprocal condition of a gram matrix of columns that are clearly independent


class Polar(NamedTuple):
    """The matrices behind every regime; ``null`` (P x (P - rank)): combinations of covariates uncorrelated with Z.

    With more covariates than dimensions (``crowded``), T_0 is W (k x K), M is A (k x P), and ``basis`` has the
    directions of T_1, so that T = F T_0, corr(z~) = F F' and corr(z~_p, y_p) = (F M)_pp as elsewhere.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> polar.T_0.shape, polar.M.shape, polar.dependent
    ((5, 5), (5, 5), [])
    """

    T_0: Array
    M: Array
    M_inverse: Array | None
    null: Array
    basis: Array  # U V' (k x P): column p is the whitened direction of dimension p
    whitening: Whitening
    covariate_names: tuple[str, ...]

    @property
    def whitener(self) -> Array:
        """W (k x K)."""
        return self.whitening.matrix

    @property
    def crowded(self) -> bool:
        """Whether covariates are more than the dimensions of Z."""
        return bool(len(self.M) < self.basis.shape[1])

    @property
    def rank(self) -> int:
        """How many covariates are linearly independent as seen from Z."""
        return int(np.linalg.matrix_rank(self.M)) if self.crowded else len(self.M) - self.null.shape[1]

    @property
    def dependent(self) -> list[str]:
        """Names of the covariates that take part in a linear dependence."""
        involved = np.linalg.norm(self.null, axis=1) > 1e-6
        return [name for name, is_in in zip(self.covariate_names, involved, strict=True) if is_in]


def whitened_polar(m: Moments, shrinkage: float = 0.0, scale: str = "raw") -> Polar:
    """T_0, M and the matrices behind them. With shrinkage, U is restricted to the span of the ridge regressions.

    Within that span the problem is solved exactly, so every regime meets its constraint exactly. At shrinkage 0 the
    span is that of the ordinary regressions.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T_0 = ca.regimes.whitened_polar(m).T_0
    >>> bool(abs(T_0 @ m.cov_z @ T_0.T - [[i == j for i in range(5)] for j in range(5)]).max() < 1e-12)
    True
    """
    k, p = checked_moments(m).cov_zy.shape
    shrinkage = check_ridge(shrinkage)
    if m.n is not None and m.n < 2:
        raise too_few_rows(m.n)
    with one_thread(k):
        found = polar_if_spanned(m, shrinkage, scale)
    if isinstance(found, int):
        problem = f"{p} covariates need {p} linearly independent latent dimensions, but the {k} columns of Z span only "
        remedy = "Columns are constant or repeated, or there are fewer rows than columns: drop covariates, or add rows"
        raise ValueError(message(f"{problem}{found}", remedy=remedy))
    return found


def checked_moments(m: Any) -> Moments:
    if isinstance(m, Moments | IncompleteMoments):
        return m  # type: ignore[return-value]  # where covariates have gaps, alignment and coupling are defined, too
    problem, got = "regimes need the moments of Z and Y", kind_of(m)
    raise ValueError(message(problem, got=got, remedy="pass covalign.Moments.from_arrays(Z, Y)"))


def checked_polar(polar: Any) -> Polar:
    if isinstance(polar, Polar):
        return polar
    problem, got = "a regime needs the polar form of moments", kind_of(polar)
    raise ValueError(message(problem, got=got, remedy="pass covalign.regimes.whitened_polar(moments)"))


def polar_if_spanned(m: Moments, shrinkage: float = 0.0, scale: str = "raw") -> Polar | int:
    """``whitened_polar``, or the number of dimensions that Z spans if there are more covariates.

    >>> import covalign as ca
    >>> m = ca.Moments.from_covariances([[1, 0], [0, 0]], [[0.6, 0.1], [0, 0]], [[1, 0], [0, 1]])
    >>> ca.regimes.polar_if_spanned(m)
    1
    """
    k, p = m.cov_zy.shape
    S_zy = standardised_cross_covariance(m)
    W = Whitening(m.cov_z, is_constant(m.mean_z, np.diag(m.cov_z)), m.root)
    if W.rank < p <= k:
        return W.rank
    unit = np.sqrt(np.where(np.diag(m.cov_z) > 0, np.diag(m.cov_z), 1.0))

    A = W.of(S_zy)

    def regressions(V: Array | None) -> Array:
        if W.has_root:
            return _ridge_of_root(m, W, shrinkage, scale, _times(A, V))
        return W.of(m.cov_z @ _times(ridge(m, shrinkage, scale), V))

    def columns(at: Any) -> Array:
        return W.of(m.cov_z[:, at] / unit[at])

    # S_zy has rounding errors on the scale of unit variances, and W on that scale multiplies them.
    cutoff = rank_cutoff(k, W.size)
    whitened = Whitened(A, cutoff, regressions if shrinkage > 0 else None, columns, W)
    return polar_of(whitened, m.covariate_names)


def _ridge_of_root(m: Moments, W: Whitening, rho: float, scale: str, c: Array) -> Array:
    """W S_z B = G ((1 - rho) G + rho I)^-1 c with S_z = L L', G = L'D^-1 L and S_zy = L c (``ridge_path``)."""
    root, D = m.root, penalty(m, scale)
    assert root is not None  # the caller asked for it
    same = scale == "standard" and not is_constant(m.mean_z, np.diag(m.cov_z)).any()
    if same:
        G = W.gram
    else:
        S = root / np.sqrt(D)[:, None]
        G = S.T @ S
    ridged = (1 - rho) * G
    ridged[np.diag_indices_from(ridged)] += rho
    return np.asarray(G @ scipy.linalg.cho_solve((np.linalg.cholesky(ridged), True), c, check_finite=False))


class Whitened(NamedTuple):
    """What ``polar_of`` needs of moments: everything in the k coordinates of a whitening W.

    >>> import covalign as ca
    >>> ca.regimes.Whitened._fields
    ('A', 'cutoff', 'regressions', 'columns', 'whitening')
    """

    A: Array  # W S_zy
    cutoff: float  # singular values of A up to it are rounding
    regressions: Callable[[Array | None], Array] | None  # V (or I) -> W S_z B V, B of ``ridge``; None without shrinkage
    columns: Callable[[Any], Array]  # W S_z / sd of these columns of Z
    whitening: Any  # ``rank``, ``rows(F)`` = F'W and ``matrix``, as of ``Whitening``


def polar_of(whitened: Whitened, names: Sequence[str]) -> Polar:
    """``whitened_polar`` in whitened coordinates.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> W = ca.regimes.whitened_polar(m).whitening
    >>> A = W.of(ca.regimes.standardised_cross_covariance(m))
    >>> ca.regimes.polar_of(ca.regimes.Whitened(A, 1e-12, None, W.of, W), m.covariate_names).M.shape
    (5, 5)
    """
    A, p = whitened.A, whitened.A.shape[1]
    if p > len(A):
        C = A if whitened.regressions is None else whitened.regressions(None)
        return Polar(
            whitened.whitening.matrix, A, None, np.empty((p, 0)), unit_columns(C), whitened.whitening, tuple(names)
        )
    if p >= MANY_COVARIATES and (regular := _regular_polar(whitened)) is not None:
        basis, M, M_inverse = regular
        T_0 = whitened.whitening.rows(basis)
        return Polar(T_0, M, M_inverse, np.empty((p, 0)), basis, whitened.whitening, tuple(names))
    U, d, Vt = np.linalg.svd(A, full_matrices=False)
    r = int(np.sum(d > whitened.cutoff))
    U, d, V, null = U[:, :r], d[:r], Vt[:r].T, Vt[r:].T
    shrunk = whitened.regressions is not None and r > 0
    if whitened.regressions is not None and r > 0:
        span = np.linalg.qr(whitened.regressions(V))[0]
        U_span, d, Vt_span = np.linalg.svd(span.T @ (A @ V))
        U, V = span @ U_span, V @ Vt_span.T
    if r < p:
        U = np.hstack([U, _nearest_completion(whitened, U, null)])
    if r < p and shrunk:
        U, d, V = _symmetric(U, A, V)
    basis = U @ np.hstack([V, null]).T
    return Polar(
        T_0=whitened.whitening.rows(basis),
        M=(V * d) @ V.T,
        M_inverse=(V / d) @ V.T if r == p else None,
        null=null,
        basis=basis,
        whitening=whitened.whitening,
        covariate_names=tuple(names),
    )


def _regular_polar(whitened: Whitened) -> tuple[Array, Array, Array] | None:
    """U V', M and M^-1 from products, without the two singular value decompositions of ``polar_of``.

    If A and the regressions R have clearly independent columns, U V' is the orthonormal factor of C, the part of A in
    the span of R. It is C (C'C)^-1/2 but for rounding, which a step of Newton and Schulz takes away. None if columns
    are nearly dependent: the error grows with the square of a condition number, which is at most 1e3 here.
    """
    A = C = whitened.A
    if regular_cholesky(A.T @ A, len(A), REGULAR) is None:
        return None
    if whitened.regressions is not None:
        R = whitened.regressions(None)
        factor = regular_cholesky(R.T @ R, len(R), REGULAR)
        if factor is None:
            return None
        C = R @ scipy.linalg.cho_solve((factor, True), R.T @ A, check_finite=False)
    values, V = np.linalg.eigh(C.T @ C)
    if values[0] <= REGULAR * values[-1]:
        return None
    Q = C @ ((V / np.sqrt(values)) @ V.T)
    Q = 1.5 * Q - Q @ (Q.T @ Q / 2)
    M = Q.T @ A
    M = (M + M.T) / 2
    return Q, M, np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(M), np.eye(len(M))))


def _times(B: Array, V: Array | None) -> Array:
    return B if V is None else np.asarray(B @ V)


def _symmetric(U: Array, A: Array, V: Array) -> tuple[Array, Array, Array]:
    """U turned within its span, d and V, so that T_0 S_zy = V diag(d) V' again after U was completed.

    With few dimensions, a completing direction correlates with covariates (shrinkage left this correlation out), and
    T_0 S_zy would not be symmetric: alignment could fall along lambda. The polar form of A within the span of U has no
    such direction; those that stand for no covariate are turned as little as possible.
    """
    left, d, right = np.linalg.svd(U.T @ (A @ V), full_matrices=True)
    r = V.shape[1]
    spare = left[:, r:]
    near, _, far = np.linalg.svd(spare.T[:, r:])
    return np.hstack([U @ left[:, :r], U @ (spare @ (near @ far))]), d, V @ right.T


def _nearest_completion(whitened: Whitened, U: Array, null: Array) -> Array:
    """P - r whitened directions for the covariates' null space, as close as possible to the first P columns of Z.

    They are orthogonal to U and, if the dimensions suffice, to all that correlates with a covariate in sample (which
    shrinkage leaves out).
    """
    need = null.shape[1]
    used = orthonormal_range(np.hstack([U, whitened.A]), scale=1.0)
    if whitened.whitening.rank - used.shape[1] < need:
        used = U

    def own(columns: Any) -> Array:
        found = whitened.columns(columns)
        return np.asarray(found - used @ (used.T @ found))

    left, strength, right = np.linalg.svd(own(slice(len(null))) @ null, full_matrices=False)
    if strength[-1] > 1e-6:
        return np.asarray(left @ right)
    # The first P columns do not determine the directions: take the columns of Z in the order of what they add.
    Q, R, _ = scipy.linalg.qr(own(slice(None)), mode="economic", pivoting=True)
    return np.asarray(Q[:, :need] * np.where(np.diag(R)[:need] < 0, -1.0, 1.0))


def rest_of_space(m: Moments, polar: Polar) -> Array:
    """(k - P) x K: unit-variance dimensions, uncorrelated with T_0 Z and each other.

    Without shrinkage they are also uncorrelated with every covariate. They are the principal components of the residual
    of Z given T_0 Z, the largest first, each with its largest loading positive. Below an invertible T they make the map
    invertible on the range of Z.

    >>> import covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> m = ca.Moments.from_arrays(s.Z, s.Y)
    >>> ca.regimes.rest_of_space(m, ca.regimes.whitened_polar(m)).shape
    (5, 10)
    """
    checked_moments(m)
    if checked_polar(polar).crowded:
        return np.empty((0, len(m.cov_z)))
    complement = scipy.linalg.qr(polar.basis)[0][:, polar.basis.shape[1] :]
    loadings = m.cov_z @ (polar.whitener.T @ complement)  # cov(Z, rest)
    _, turn = np.linalg.eigh(loadings.T @ loadings)
    complement, loadings = complement @ turn[:, ::-1], loadings @ turn[:, ::-1]
    if loadings.size:
        largest = np.abs(loadings).argmax(axis=0)
        complement = complement * np.sign(loadings[largest, np.arange(loadings.shape[1])])
    return np.asarray(complement.T @ polar.whitener)


def ridge(m: Moments, shrinkage: float, scale: str = "raw") -> Array:
    """B = ((1 - rho) S_z + rho D)^-1 S_zy (K x P), Y standardised, D = mean(diag S_z) I.

    This is for columns in one unit. On columns divided by sd^a it is the same as D = mean(sd^(2 - 2a)) diag(sd^2a):
    a is 0 for scale "raw", 1/2 for "root" and 1 for "standard" (columns of variance 1).

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.regimes.ridge(m, 0.1).shape
    (5, 5)
    """
    rho, S_zy = check_ridge(shrinkage), standardised_cross_covariance(m)
    ridged = (1 - rho) * m.cov_z
    ridged[np.diag_indices_from(ridged)] += rho * penalty(m, scale)
    try:
        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(ridged), S_zy))
    except np.linalg.LinAlgError:
        values, vectors = range_eigh(ridged)
        return np.asarray((vectors / values) @ (vectors.T @ S_zy))


def penalty(m: Moments, scale: str = "raw") -> Array:
    """The diagonal of D in ``ridge``.

    >>> import covalign as ca
    >>> m = ca.Moments.from_covariances([[1, 0], [0, 9]], [[0.6], [0]], [[1]])
    >>> ca.regimes.penalty(m).tolist(), ca.regimes.penalty(m, "standard").tolist()
    ([5.0, 5.0], [1.0, 9.0])
    """
    return penalty_of(np.diag(m.cov_z), scale)


def penalty_of(variance: Array, scale: str = "raw") -> Array:
    """``penalty``, from the variances of the columns.

    >>> import numpy as np, covalign as ca
    >>> ca.regimes.penalty_of(np.array([1.0, 9.0]), "root").tolist()
    [2.0, 6.0]
    """
    a = POWERS[check_choice("scale", scale, tuple(POWERS))]
    if a == 0:
        return np.full(len(variance), np.mean(variance))
    units = np.where(variance > 0, variance, np.mean(variance)) ** a
    return np.asarray(np.mean(variance / units) * units)


def standardised_cross_covariance(m: Moments) -> Array:
    """cov(Z, Y / sd(Y)): the regimes do not depend on the units of the covariates.

    >>> import covalign as ca
    >>> in_days = ca.Moments.from_covariances([[1]], [[0.6 * 365]], [[365**2]])
    >>> ca.regimes.standardised_cross_covariance(in_days).item()
    0.6
    """
    variance = np.diag(checked_moments(m).cov_y)
    constant = is_constant(m.mean_y, variance)
    if constant.any():
        raise constant_covariates(np.array(m.covariate_names)[constant])
    return m.cov_zy / np.sqrt(variance)
