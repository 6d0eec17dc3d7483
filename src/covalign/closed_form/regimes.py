"""The four regimes in closed form: moments in, T (P x K) out, TZ has unit variances and dimension p stands for y_p.

With A = W S_zy = U D V' (W any whitening of Z, Y standardised; thin SVD), T_0 = V U' W and M = V D V', and every regime
is unit_rows(f(M)) T_0:

    independent   f(M) = I                      TZ uncorrelated
    tunable       f(M) = (1 - lam) I + lam M    between the two
    strongest     f(M) = M                      least-squares regression, scaled: the largest possible corr(z~_p, y_p)
    exclusive     f(M) = M^-1                   z~_p uncorrelated with every y_q, q != p

Per covariate, alignment never falls in the order exclusive, independent, tunable (rising in lam), strongest.

**Ties.** Where S_zy has rank r < P (all dummies of a category), P - r dimensions of T_0 are uncorrelated with every
covariate, and the problem does not determine them. Of all solutions we take the one whose dimensions are closest to the
first P columns of Z (orthogonal Procrustes), a continuous choice that does not depend on row order or chunking.
A covariate that is uncorrelated with Z keeps its T_0 dimension under ``strongest``.

**More covariates than dimensions.** Only ``strongest`` exists (``crowded``).

>>> import covalign as ca
>>> m = ca.simulate.population_moments("PN")
>>> ca.regimes.frontier(m, [0, 0.5, 1])["coupling"].round(2).tolist()
[0.0, 1.24, 8.26, 4.1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.linalg
from numpy.typing import ArrayLike

from covalign._core.checks import (
    check_choice,
    check_lam,
    check_regime,
    check_ridge,
    constant_covariates,
    listed_lams,
    no_exclusive,
    too_few_rows,
)
from covalign._core.linalg import (
    Array,
    Whitening,
    dense,
    is_constant,
    orthonormal_range,
    range_eigh,
    rank_cutoff,
    regular_cholesky,
    to_correlation,
    unit_rows,
    whitener,
)
from covalign._core.messages import message, shown
from covalign._core.threads import one_thread
from covalign._core.user_arrays import numbers, plain
from covalign.closed_form.crowded import only_strongest, unit_columns
from covalign.closed_form.measures import correlation, explained_share, off_diagonal_squares
from covalign.moments.incomplete import IncompleteMoments, Rows
from covalign.moments.moments import Moments

POWERS = {"raw": 0.0, "root": 0.5, "standard": 1.0}  # of the deviations by which columns are divided before the ridge
SCALED = {"raw": "", "root": ", columns divided by the root of their deviations", "standard": ", columns standardised"}
ENDS = {"independent": 0.0, "strongest": 1.0}  # regimes that are an end of the lambda scale
DEFAULT_LAMS = tuple(np.linspace(0, 1, 21).round(2).tolist())
MANY_COVARIATES = 100  # from which products replace singular value decompositions, where columns are independent
REGULAR = 1e-6  # the reciprocal condition of a gram matrix of columns that are clearly independent
FRONTIER_COLUMNS = (  # of all kinds of frontiers; a covariate of the same name becomes "... (covariate)" in all of them
    *("regime", "lam", "alignment", "alignment_se", "coupling", "alignment_in_sample", "coupling_in_sample"),
    *("held_out_alignment", "held_out_alignment_se", "held_out_coupling", "exact_alignment"),
)


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


def independent(m: Moments, *, shrinkage: float = 0.0) -> Array:
    """T_0 = V U' W: the uncorrelated dimensions with the highest alignment.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.independent(m)
    >>> round(ca.regimes.alignment(T, m).mean().item(), 4), round(ca.regimes.coupling(T, m), 4)
    (0.5613, 0.0)
    """
    return turned(whitened_polar(m, shrinkage), "independent")


def tunable(m: Moments, lam: float, *, shrinkage: float = 0.0) -> Array:
    """T_lambda = unit_rows((1 - lam) I + lam M) T_0.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.tunable(m, 0.5)
    >>> round(ca.regimes.alignment(T, m).mean().item(), 4), round(ca.regimes.coupling(T, m), 4)
    (0.6292, 1.2358)
    """
    return turned(whitened_polar(m, shrinkage), "tunable", lam)


def strongest(m: Moments, *, shrinkage: float = 0.0) -> Array:
    """T_1 = unit_rows(M) T_0: the regression of each covariate on Z, scaled to unit variance.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.strongest(m)
    >>> round(ca.regimes.alignment(T, m).mean().item(), 4), round(ca.regimes.coupling(T, m), 4)
    (0.6704, 8.2566)
    """
    return turned(whitened_polar(m, shrinkage), "strongest")


def exclusive(m: Moments, *, shrinkage: float = 0.0) -> Array:
    """T_ex = unit_rows(M^-1) T_0: dimension p is uncorrelated with every covariate but p.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.exclusive(m)
    >>> round(ca.regimes.alignment(T, m).mean().item(), 4), round(ca.regimes.coupling(T, m), 4)
    (0.351, 4.1039)
    """
    return turned(whitened_polar(m, shrinkage), "exclusive")


def turned(polar: Polar, regime: str, lam: float = 0.5) -> Array:
    """T of a regime from its polar form.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> bool((ca.regimes.turned(polar, "tunable", 0.3) == ca.regimes.tunable(m, 0.3)).all())
    True
    """
    return mixing(polar, regime, lam) @ polar.T_0


def mixing(polar: Polar, regime: str, lam: float = 0.5) -> Array:
    """unit_rows(f(M)), the P x P matrix that takes T_0 to the regime (P x k with more covariates than dimensions).

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> ca.regimes.mixing(polar, "independent").trace().item()
    5.0
    """
    check_regime(regime)
    polar = _polar(polar)
    if polar.crowded:
        if regime == "strongest" or (regime == "tunable" and check_lam(lam) == 1):
            return polar.basis.T
        raise only_strongest(polar.basis.shape[1], len(polar.M))
    if regime == "exclusive":
        if polar.M_inverse is None:
            raise no_exclusive(polar.dependent)
        return unit_rows(polar.M_inverse)
    lam = ENDS.get(regime, lam)
    return mixed(polar.M, check_lam(lam))


def mixed(M: Array, lam: float | Array) -> Array:
    """unit_rows((1 - lam) I + lam M); M and lam may have leading axes.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> ca.regimes.mixed(polar.M, 0.5).shape
    (5, 5)
    """
    if not (isinstance(M, np.ndarray) and M.ndim >= 2 and M.dtype.kind == "f" and isinstance(lam, np.ndarray | Real)):
        problem, got = "mixing needs the matrix M of a Polar and a number", f"{shown(M)} and {shown(lam)}"
        raise ValueError(message(problem, got=got, remedy="use whitened_polar(moments).M"))
    return unit_rows((1 - lam) * np.eye(M.shape[-1]) + lam * M)


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
    k, p = _moments(m).cov_zy.shape
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


def _moments(m: Any) -> Moments:
    if isinstance(m, Moments | IncompleteMoments):
        return m  # type: ignore[return-value]  # where covariates have gaps, alignment and coupling are defined, too
    problem, got = "regimes need the moments of Z and Y", f"a {type(m).__name__}"
    raise ValueError(message(problem, got=got, remedy="pass covalign.Moments.from_arrays(Z, Y)"))


def _polar(polar: Any) -> Polar:
    if isinstance(polar, Polar):
        return polar
    problem, got = "a regime needs the polar form of moments", f"a {type(polar).__name__}"
    raise ValueError(message(problem, got=got, remedy="pass covalign.regimes.whitened_polar(moments)"))


def _map(T: Any, m: Any) -> Array:
    """T as a matrix with a column for every dimension of Z."""
    k = len(_moments(m).cov_z)
    if not (isinstance(T, np.ndarray) and T.ndim == 2 and T.dtype == np.float64):
        T = np.asarray(dense(numbers(plain(T, "T"), "T")))
    if T.ndim != 2 or T.shape[1] != k:
        problem = f"T needs a column for each of the {k} dimensions of Z"
        raise ValueError(message(problem, got=f"shape {T.shape}", remedy="pass a map of these moments, such as T_"))
    return np.asarray(T, dtype=np.float64)


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
    _moments(m)
    if _polar(polar).crowded:
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
    variance = np.diag(_moments(m).cov_y)
    constant = is_constant(m.mean_y, variance)
    if constant.any():
        raise constant_covariates(np.array(m.covariate_names)[constant])
    return m.cov_zy / np.sqrt(variance)


# -- alignment and coupling of a transformation, on any moments -------------------------------------------------------


def alignment(T: Array, m: Moments) -> Array:
    """corr(z~_p, y_p) of every covariate; NaN if either is constant in these moments.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.regimes.alignment(ca.regimes.independent(m), m).round(2).tolist()
    [0.79, 0.69, 0.56, 0.43, 0.33]
    """
    T = _map(T, m)[: m.cov_zy.shape[1]]
    variance = np.sum((T @ m.cov_z) * T, axis=1)
    return correlation(np.sum(T * m.cov_zy.T, axis=1), variance, np.diag(m.cov_y), constant=np.nan)


def observed_alignment(T: Array, m: Rows) -> Array:
    """corr(z~_p, y_p) over the rows that have y_p; NaN if it is not defined there.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.regimes.observed_alignment(ca.regimes.strongest(m), m).round(2).tolist()
    [0.91, 0.8, 0.68, 0.51, 0.46]
    """
    values = np.full(len(m.n_pairs), np.nan)
    for columns, seen in m.pairs:
        values[columns] = alignment(T[: len(values)][columns], seen)
    return values


def eta_squared(T: Array, m: Moments, columns: Sequence[int]) -> Array:
    """R^2 of every dimension of TZ regressed on these covariates: c'S_y^+ c / var(z~), c = cov(y, z~).

    For the dummies of a category this is the classical eta squared: the share of the dimension's variance that lies
    between the levels.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T = ca.regimes.exclusive(m)
    >>> bool(abs(ca.regimes.eta_squared(T[:1], m, [1, 2])).max() < 1e-9)  # uncorrelated with both
    True
    """
    at = list(columns)
    S_y = m.cov_y[np.ix_(at, at)]
    W = whitener(S_y, is_constant(m.mean_y[at], np.diag(S_y)))
    variance = np.sum((T @ m.cov_z) * T, axis=1)
    between = np.sum((W @ (T @ m.cov_zy[:, at]).T) ** 2, axis=0)
    return explained_share(between, variance, constant=np.nan)


def canonical_alignment(T: Array, m: Moments, columns: Sequence[int]) -> float:
    """Root mean square of the canonical correlations of TZ and these covariates: |W_z T S_zy W_y'|_F / sqrt(rank S_y).

    It depends only on the spaces that the rows of T and the covariates span. So for a category that is the only
    covariate, it is the same for every left-out level and every lambda.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> T_0, T_half = ca.regimes.independent(m), ca.regimes.tunable(m, 0.5)
    >>> both = [ca.regimes.canonical_alignment(T, m, range(5)) for T in (T_0, T_half)]
    >>> abs(both[0] - both[1]) < 1e-9
    True
    """
    at = list(columns)
    S_y, S_z = m.cov_y[np.ix_(at, at)], T @ m.cov_z @ T.T
    W_y = whitener(S_y, is_constant(m.mean_y[at], np.diag(S_y)))
    W_z = whitener(S_z, is_constant(T @ m.mean_z, np.diag(S_z)))
    if len(W_y) == 0:
        return float("nan")
    return float(np.linalg.norm(W_z @ T @ m.cov_zy[:, at] @ W_y.T) / np.sqrt(len(W_y)))


def coupling(T: Array, m: Rows) -> float:
    """|corr(TZ) - I|_F^2.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.regimes.coupling(ca.regimes.independent(m), m) < 1e-12
    True
    """
    T = _map(T, m)
    return squared_distance_from_identity(to_correlation(T @ m.cov_z @ T.T))


def squared_distance_from_identity(C: Array) -> float:
    """|C - I|_F^2 off the diagonal, where a correlation matrix can differ from I.

    >>> import numpy as np, covalign as ca
    >>> ca.regimes.squared_distance_from_identity(np.array([[1, 0.5], [0.5, 1]]))
    0.5
    """
    return float(off_diagonal_squares(C))


def frontier(m: Moments, lams: Iterable[float] | None = None, *, shrinkage: float = 0.0) -> pd.DataFrame:
    """One row per lambda, and the exclusive regime if it exists: regime, lam, alignment, coupling, each covariate.

    lam = 0 is called independent, lam = 1 strongest, others tunable. If there is no exclusive row,
    ``frame.attrs["exclusive"]`` says why.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> ca.regimes.frontier(m, [0, 0.5, 1])[["regime", "alignment"]].round(2).values.tolist()
    [['independent', 0.56], ['tunable', 0.63], ['strongest', 0.67], ['exclusive', 0.35]]
    """
    return frontier_of(whitened_polar(m, shrinkage), m, lams, m.covariate_names)


def frontier_of(polar: Polar, rows: Rows, lams: Iterable[float] | None, names: Sequence[str]) -> pd.DataFrame:
    """The frontier of regimes that are solved already, on the moments of any rows, with gaps or without.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> ca.regimes.frontier_of(polar, m, [0.5], m.covariate_names).equals(ca.regimes.frontier(m, [0.5]))
    True
    """
    reduced, made = rows.transform(polar.T_0), []
    settings, why_not = frontier_settings(polar, lams)
    for regime, lam in settings:
        F = mixing(polar, regime, lam)
        made.append((regime, lam, observed_alignment(F, reduced), coupling(F, reduced)))
    frame = frontier_frame(made, names)
    frame.attrs["exclusive"] = why_not
    return frame


def frontier_settings(polar: Polar, lams: Iterable[float] | None) -> tuple[list[tuple[str, float]], str | None]:
    """(regime, lam) of every row of a frontier, and the reason if the exclusive regime does not exist (else None).

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> ca.regimes.frontier_settings(polar, [0, 0.5])
    ([('independent', 0.0), ('tunable', 0.5), ('exclusive', nan)], None)
    """
    checked = [check_lam(lam) for lam in (DEFAULT_LAMS if lams is None else listed_lams(lams))]
    named = {0.0: "independent", 1.0: "strongest"}
    if polar.crowded:
        p, k = polar.basis.shape[::-1]
        if lams is not None and 1.0 not in checked:
            raise only_strongest(p, k)
        return [("strongest", 1.0)], str(only_strongest(p, k))
    settings = [(named.get(lam, "tunable"), lam) for lam in checked]
    if polar.M_inverse is None:
        return settings, str(no_exclusive(polar.dependent))
    return [*settings, ("exclusive", float("nan"))], None


def frontier_frame(rows: Sequence[tuple[str, float, Array, float]], names: Sequence[str]) -> pd.DataFrame:
    """Tidy rows (regime, lam, alignment per covariate, coupling) as a DataFrame.

    >>> import numpy as np, covalign as ca
    >>> ca.regimes.frontier_frame([("tunable", 0.5, np.array([0.8, 0.6]), 0.1)], ["age", "dose"]).columns.tolist()
    ['regime', 'lam', 'alignment', 'coupling', 'age', 'dose']
    """
    head = pd.DataFrame(
        {
            "regime": [row[0] for row in rows],
            "lam": [row[1] for row in rows],
            "alignment": [mean_or_nan(row[2]) for row in rows],
            "coupling": [row[3] for row in rows],
        }
    )
    columns = [f"{name} (covariate)" if name in FRONTIER_COLUMNS else name for name in names]
    return pd.concat([head, pd.DataFrame(np.array([row[2] for row in rows]), columns=columns)], axis=1)


def mean_or_nan(values: ArrayLike) -> float:
    """The mean of the values that are not NaN; NaN (without a warning) if there is none.

    >>> import covalign as ca
    >>> ca.regimes.mean_or_nan([1.0, float("nan"), 3.0]), ca.regimes.mean_or_nan([])
    (2.0, nan)
    """
    there = np.asarray(values, dtype=np.float64)
    there = there[~np.isnan(there)]
    return float(there.mean()) if there.size else float("nan")


def lam_within(M: Array, max_coupling: float, C: Array | None = None) -> float:
    """The largest lambda whose T_lambda couples its dimensions by at most ``max_coupling``; NaN if there is none.

    Alignment rises with lambda, so this is the strongest alignment within the budget. Coupling need not be monotone:
    a grid brackets the last crossing, bisection finds it. ``C`` is the covariance of T_0 Z on the rows that count, by
    default I, as on the rows that T_0 was fitted to.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> polar = ca.regimes.whitened_polar(m)
    >>> lam = ca.regimes.lam_within(polar.M, 0.5)
    >>> round(ca.regimes.coupling(ca.regimes.tunable(m, lam), m), 6)
    0.5
    """
    if M.shape[-1] > len(M):
        raise only_strongest(M.shape[-1], len(M))
    S = np.eye(len(M)) if C is None else C

    def coupling_at(lam: Array) -> Array:
        F = mixed(M, lam[:, None, None])
        return off_diagonal_squares(to_correlation(F @ S @ F.transpose(0, 2, 1)))

    grid = np.linspace(0, 1, 201)
    within = np.flatnonzero(coupling_at(grid) <= max_coupling + rank_cutoff(len(M), 1.0))
    if len(within) == 0 or within[-1] == len(grid) - 1:
        return 1.0 if len(within) else float("nan")
    low, high = grid[within[-1]], grid[within[-1] + 1]
    kept = max_coupling * (1 - 1e-9)  # within the budget also for who computes it by another route
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if coupling_at(np.array([middle]))[0] <= kept else (low, middle)
    return float(low)


def matrices(
    m: Moments, settings: Iterable[tuple[str, float]] | None = None, *, shrinkage: float = 0.0
) -> pd.DataFrame:
    """corr(z~, y) and corr(z~) of several regimes as a tidy frame: regime, lam, matrix, row, column, value.

    >>> import covalign as ca
    >>> m = ca.simulate.population_moments("PN")
    >>> frame = ca.regimes.matrices(m, [("exclusive", 0)])
    >>> frame[(frame["matrix"] == "corr(z~, y)") & (frame["row"] == "y0")]["value"].round(2).abs().tolist()
    [0.47, 0.0, 0.0, 0.0, 0.0]
    """
    polar = whitened_polar(m, shrinkage)
    reduced = m.transform(polar.T_0)
    if settings is None:
        settings = [("exclusive", np.nan)] if polar.M_inverse is not None else []
        ends = [] if polar.crowded else [("independent", 0.0), ("tunable", 0.5)]
        settings = [*settings, *ends, ("strongest", 1.0)]
    frames = []
    for regime, lam in settings:
        of = reduced.transform(mixing(polar, regime, lam))
        sd_z, sd_y = np.sqrt(np.diag(of.cov_z)), np.sqrt(np.diag(of.cov_y))
        for matrix, C in (("corr(z~, y)", of.cov_zy / sd_z[:, None] / sd_y), ("corr(z~)", to_correlation(of.cov_z))):
            names = np.array(m.covariate_names, dtype=object)
            tidy = {"row": np.tile(names, len(names)), "column": np.repeat(names, len(names)), "value": C.T.ravel()}
            frames.append(pd.DataFrame({"regime": regime, "lam": lam, "matrix": matrix, **tidy}))
    return pd.concat(frames, ignore_index=True)
