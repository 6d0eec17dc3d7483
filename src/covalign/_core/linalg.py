"""Linear algebra that all rooms share, and the only place where a rank is decided."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_solve, cython_blas, lapack, solve_triangular

Array: TypeAlias = NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
ROWS_AT_ONCE = 4096
BAND = 32  # width of a band matrix: narrow ones need small products, wide ones need long solutions
UNDERFLOW = 1e-290  # variances below have few digits


def rank_cutoff(size: int, scale: float) -> float:
    """The value at or below which an eigenvalue or singular value counts as zero: 10 size eps scale.

    A covariance summed from rows carries a rounding error of about eps relative to its entries, hence of at most
    size * eps in spectral norm, and the decompositions add as much again. Ten times that separates a direction that
    varies from a direction of rounding noise, and still counts one whose standard deviation is a millionth of the
    largest. It needs a common scale, so covariances are scaled to unit diagonal first.
    """
    return 10 * size * EPS * scale


def is_constant(mean: Array, variance: Array) -> NDArray[np.bool_]:
    """True where a variable varies by no more than the rounding of its own mean, or so little that squares vanish."""
    return np.asarray(variance <= np.maximum((8 * EPS * np.abs(mean)) ** 2, UNDERFLOW))


def is_explained(left: Array, variance: Array) -> NDArray[np.bool_]:
    """True where a regression leaves no more of a variance than the rounding of float32 values in their sd, squared."""
    return np.asarray(left <= 1e-10 * variance)


def whitener(cov: Array, constant: NDArray[np.bool_], root: Array | None = None) -> Array:
    """W (k x K) with W cov W' = I_k, where k is the rank of cov; constant variables get zero columns.

    Results of this package do not depend on which of the many possible whitenings W is. ``root`` is that of cov, if it
    is known (``range_root``).
    """
    return Whitening(cov, constant, root).matrix


class Whitening:
    """The W of ``whitener``. With a root of cov, products with W need no W, which takes the time of a decomposition.

    W = (C'C)^-1 C' D^-1/2 with C = D^-1/2 root, D = diag cov.
    """

    def __init__(self, cov: Array, constant: NDArray[np.bool_], root: Array | None = None) -> None:
        self._sd = np.sqrt(np.diag(cov))
        self._factor: Array | None = None
        self.gram = np.empty((0, 0))  # C'C
        if root is not None:
            scale = np.where(constant, 0.0, 1 / np.where(constant, 1.0, self._sd))[:, None]
            C = root * scale
            self.gram = C.T @ C
            self._factor, self._weighted = regular_cholesky(self.gram, len(cov)), C * scale
        if self._factor is None:
            self._matrix: Array | None = _dense_whitener(cov, constant)
            self.rank = len(self._matrix)
        else:
            self._matrix, self.rank = None, len(self._factor)

    @property
    def matrix(self) -> Array:
        """W."""
        if self._matrix is None:
            self._matrix = self._solved(self._weighted.T)
        return self._matrix

    @cached_property
    def size(self) -> float:
        """The norm of W D^1/2."""
        if self._factor is None:
            return float(np.linalg.norm(self.matrix * self._sd))
        return float(np.linalg.norm(lapack.dtrtri(self._factor, lower=1)[0]))

    @property
    def has_root(self) -> bool:
        """Whether W root = I of the root that was given."""
        return self._factor is not None

    def of(self, M: Array) -> Array:
        """W M."""
        return self.matrix @ M if self._factor is None else self._solved(self._weighted.T @ M)

    def rows(self, F: Array) -> Array:
        """F'W, combinations of the rows of W."""
        return F.T @ self.matrix if self._factor is None else np.asarray((self._weighted @ self._solved(F)).T)

    def _solved(self, M: Array) -> Array:
        return np.asarray(cho_solve((self._factor, True), M, check_finite=False))


def _dense_whitener(cov: Array, constant: NDArray[np.bool_]) -> Array:
    keep = np.flatnonzero(~constant)
    scale = 1 / np.sqrt(np.diag(cov)[keep])
    on_kept = _correlation_whitener(cov[np.ix_(keep, keep)] * scale * scale[:, None]) * scale
    W = np.zeros((len(on_kept), len(cov)))
    W[:, keep] = on_kept
    return W


def _correlation_whitener(corr: Array) -> Array:
    """Inverse Cholesky factor where corr has full rank to working precision, else l^(-1/2) E' on its range."""
    size = len(corr)
    if size == 0:
        return corr
    L = regular_cholesky(corr, size)
    if L is not None:
        return np.asarray(solve_triangular(L, np.eye(size), lower=True))
    values, vectors = range_eigh(corr)  # not positive definite: the range is what remains
    return (vectors / np.sqrt(values)).T


def regular_cholesky(S: Array, size: int, least: float | None = None) -> Array | None:
    """The lower Cholesky factor of S, or None if S has not clearly full rank; ``size`` is that of ``rank_cutoff``.

    ``least`` is a larger reciprocal condition number to ask for.
    """
    try:
        L = np.asarray(np.linalg.cholesky(S), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None
    reciprocal_condition, _ = lapack.dpocon(L, np.abs(S).sum(0).max(initial=0.0), uplo="L")
    return L if reciprocal_condition > (rank_cutoff(size, 1.0) if least is None else least) else None


def range_root(S: Array) -> Array:
    """L (K x r) of full rank with S = L L', by a Cholesky decomposition with pivots, for a small rank r.

    This takes K r^2 operations, eigenvectors take about 10 K^3.
    """
    variance = np.diag(S)
    sd = np.sqrt(np.where(variance > 0, variance, 1.0))
    lower, pivots, rank, _ = lapack.dpstrf(S / sd / sd[:, None], lower=1, tol=rank_cutoff(len(S), 1.0), overwrite_a=1)
    L = np.empty((len(S), rank))
    L[pivots - 1] = np.tril(lower[:, :rank])
    return np.asarray(L * sd[:, None])


class Banded(NamedTuple):
    """Q'S Q of a symmetric matrix S, which has a narrow band; Q is a product of reflections of blocks."""

    diagonal: list[Array]  # blocks
    below: list[Array]  # blocks below the diagonal
    reflections: list[tuple[int, Array, Array]]  # first row, V, T:  I - V T V'

    @property
    def _edges(self) -> Any:
        """Where blocks after the first begin."""
        return np.cumsum([len(D) for D in self.diagonal[:-1]])

    def turned(self, M: Array) -> Array:
        """Q'M."""
        M = M.copy()
        for start, V, T in self.reflections:
            M[start:] -= V @ (T.T @ (V.T @ M[start:]))
        return M

    def products(self, x: Array) -> Array:
        """Q'S Q x; x may have leading axes."""
        parts = np.split(x, self._edges, axis=-2)
        found = [D @ part for D, part in zip(self.diagonal, parts, strict=True)]
        for i, E in enumerate(self.below):
            found[i] += E.T @ parts[i + 1]
            found[i + 1] += E @ parts[i]
        return np.concatenate(found, axis=-2)

    def solutions(self, scales: Array, shifts: Array, c: Array) -> Array:
        """(scale Q'S Q + shift I)^-1 c for every scale and shift (first axis), by block elimination."""
        scales, shifts = scales[:, None, None], shifts[:, None, None]
        parts = np.split(c, self._edges)
        links = [scales * E for E in self.below]  # of a block with the next
        solved: list[tuple[Array, Array]] = []  # (link', right-hand side) over the pivot
        for i, (D, right) in enumerate(zip(self.diagonal, parts, strict=True)):
            pivot, rest = scales * D + shifts * np.eye(len(D)), np.broadcast_to(right, (len(scales), *right.shape))
            if i:
                pivot = pivot - links[i - 1] @ solved[-1][0]
                rest = rest - links[i - 1] @ solved[-1][1]
            after = links[i].transpose(0, 2, 1) if i < len(links) else np.empty((len(scales), len(D), 0))
            both = np.linalg.solve(pivot, np.concatenate([after, rest], axis=2))
            solved.append((both[:, :, : after.shape[2]], both[:, :, after.shape[2] :]))
        found = [solved[-1][1]]
        for after, rest in reversed(solved[:-1]):
            found.append(rest - after @ found[-1])
        return np.concatenate(found[::-1], axis=1)


def banded(S: Array, width: int = BAND) -> Banded:
    """S reduced to a band matrix by Householder reflections of blocks of columns.

    All work is in matrix products. A tridiagonal reduction has as many vector products, for which threads wait: they
    share the memory.
    """
    S, reflections = S.copy(), []
    starts = range(0, len(S), width)
    for start in starts[1:]:
        panel, rest = S[start:, start - width : start], S[start:, start:]
        V, T = _reflection(panel)
        panel -= V @ (T.T @ (V.T @ panel))
        P = rest @ (V @ T)
        W = P - V @ (T.T @ (V.T @ P)) / 2
        rest -= np.hstack([V, W]) @ np.hstack([W, V]).T
        reflections.append((start, V, T))
    diagonal = [S[i : i + width, i : i + width].copy() for i in starts]
    below = [S[i : i + width, i - width : i].copy() for i in starts[1:]]
    return Banded(diagonal, below, reflections)


def _reflection(panel: Array) -> tuple[Array, Array]:
    """V and T: (I - V T V')' panel is upper triangular."""
    h, tau = np.linalg.qr(panel, mode="raw")
    V = np.tril(h.T, -1)[:, : len(tau)]
    np.fill_diagonal(V, 1.0)
    V[:, tau == 0] = 0.0  # nothing to reflect
    inverse = np.triu(V.T @ V, 1) + np.diag(1 / np.where(tau == 0, 1.0, tau))
    return V, np.asarray(solve_triangular(inverse, np.eye(len(tau))))


def range_eigh(S: Array) -> tuple[Array, Array]:
    """Eigenvalues above the rank cut-off, in rising order, and their eigenvectors as columns."""
    values, vectors = np.linalg.eigh(S)
    kept = values > rank_cutoff(len(S), float(values[-1]))
    return values[kept], vectors[:, kept]


def orthonormal_range(C: Array, scale: float | None = None) -> Array:
    """An orthonormal basis of the column space of C; ``scale`` overrides the size rounding errors are relative to."""
    U, d, _ = np.linalg.svd(C, full_matrices=False)
    top = float(d[0]) if len(d) else 0.0
    return U[:, d > rank_cutoff(max(C.shape), top if scale is None else scale)]


def unit_rows(F: Array) -> Array:
    """F with every row divided by its norm; a row of zeros p becomes e_p, the limit of (1 - lam) e_p + lam 0."""
    norms = np.linalg.norm(F, axis=-1, keepdims=True)
    zero = norms <= rank_cutoff(F.shape[-1], 1.0)
    return np.where(zero, np.eye(*F.shape[-2:]), F / np.where(zero, 1.0, norms))


def to_correlation(cov: Array) -> Array:
    """cov (or each in a stack) with unit diagonal; the row and column of a constant are 0, the diagonal included."""
    variance = np.diagonal(cov, axis1=-2, axis2=-1)
    scale = np.divide(1.0, np.sqrt(variance), out=np.zeros_like(variance), where=variance > 0)
    return cov * scale[..., None, :] * scale[..., None]


def positive_semidefinite(C: Array) -> Array:
    """C with the negative eigenvalues of its correlation matrix set to zero and its variances restored.

    A matrix without negative eigenvalues beyond rounding is returned unchanged.
    """
    variance = np.maximum(np.diag(C), 0.0)
    C = C - np.diag(np.diag(C) - variance)
    values, vectors = np.linalg.eigh(to_correlation(C))
    if len(values) == 0 or values[0] >= -rank_cutoff(len(C), 1.0):
        return C
    sd = np.sqrt(variance)
    return np.asarray(to_correlation((vectors * np.maximum(values, 0)) @ vectors.T) * sd * sd[:, None])


def affine(X: Any, centre: Any, matrix: Array, shift: Any, dtype: Any = None) -> Any:
    """(X - centre) matrix + shift in float64, some rows at a time, in the precision of X."""
    dtype = dtype or (X.dtype if X.dtype == np.float32 else np.float64)
    out = np.empty((X.shape[0], matrix.shape[1]), dtype=dtype)
    for i in range(0, X.shape[0], ROWS_AT_ONCE):
        out[i : i + ROWS_AT_ONCE] = (dense(X[i : i + ROWS_AT_ONCE]) - centre) @ matrix + shift
    return out


def dense(X: Any) -> Any:
    """X as a dense array."""
    return X.toarray() if sparse.issparse(X) else X


def _blas_syrk() -> Callable[..., None] | None:
    """dsyrk as SciPy exports it to Cython, called through ctypes, or None where its signature is not the one we know.

    SciPy's Python wrapper of dsyrk holds the interpreter lock, so threads would wait for each other. ``B.T @ B`` does
    not, but it makes a new matrix, mirrors it, and needs another pass for the addition.
    """
    capsule = getattr(cython_blas, "__pyx_capi__", {}).get("dsyrk")
    if capsule is None:
        return None
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name_of(capsule)
    kinds = [part.strip().rsplit(b" ", 1)[0] for part in signature[signature.find(b"(") + 1 : -1].split(b",")]
    char, integer = ctypes.POINTER(ctypes.c_char), ctypes.POINTER(ctypes.c_int)
    double = ctypes.c_void_p  # d *, spelt differently by different versions of Cython
    if len(kinds) != 10 or [i for i, kind in enumerate(kinds) if kind == b"int"] != [2, 3, 6, 9]:
        return None
    prototype = ctypes.CFUNCTYPE(None, char, char, integer, integer, double, double, integer, double, double, integer)
    return prototype(pointer_of(capsule, signature))


_SYRK = _blas_syrk()


def add_gram(C: Array, B: Array) -> None:
    """C += B'B in the upper triangle of C, in place, the interpreter lock released; rows of both are contiguous."""
    if _SYRK is None:
        C += B.T @ B
        return
    one = ctypes.c_double(1.0)

    def integer(value: int) -> Any:
        return ctypes.byref(ctypes.c_int(value))

    # BLAS reads columns first: our rows are its columns, our upper triangle its lower one.
    _SYRK(
        ctypes.byref(ctypes.c_char(b"L")),
        ctypes.byref(ctypes.c_char(b"N")),
        integer(B.shape[1]),
        integer(B.shape[0]),
        ctypes.addressof(one),
        B.ctypes.data,
        integer(B.strides[0] // B.itemsize),
        ctypes.addressof(one),
        C.ctypes.data,
        integer(C.strides[0] // C.itemsize),
    )


def mirror(C: Any) -> Any:
    """C, after its upper triangle was copied to the lower one, in place."""
    step = 128
    for i in range(0, len(C), step):
        corner = C[i : i + step, i : i + step]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T
        C[i + step :, i : i + step] = C[i : i + step, i + step :].T
    return C
