"""Principal components of rows with tens of thousands of columns, without a matrix of columns by columns.

A randomised range finder (Halko, Martinsson and Tropp 2011): with G the covariance (K x K, never made) and Omega random
(K x l, l = rank + EXTRA), every pass over the rows yields

    G Omega = 1/n sum_i x_i (x_i'Omega),        x_i = z_i - mean,

and the next pass has an orthonormal basis Q of it in place of Omega. After the last pass, G Q is known: the
eigenvectors of Q'G Q give the components, and G Q - Q Q'G Q says how far they are from eigenvectors of G. Two passes
are exact if the rank of Z is at most l. A pass takes 4 n K l operations and K l numbers of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from covalign._core.checks import check_count, check_random_state
from covalign._core.data_errors import columns_differ
from covalign._core.linalg import Array, dense, rank_cutoff
from covalign._core.messages import message
from covalign._core.number_range import LARGEST, check_large
from covalign._core.user_arrays import as_matrix
from covalign.stream import Checked, Source, is_source, map_rows, open_rows
from covalign.stream.reduction import Size, of_rows

EXTRA = 10  # directions beyond the rank that is asked for
MOST_PASSES = 10_000
ROWS_BYTES = 2**25  # of rows that are multiplied at once


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """The ``rank`` leading principal components of Z (n x K), and how to go there and back.

    ``components`` (rank x K) are orthonormal rows, ``variance`` are the variances along them, ``errors`` are the
    distances |G v - variance v|, relative to the largest variance, and ``explained`` is their share of the variance of
    all columns.

    >>> import numpy as np, covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=300)
    >>> few = ca.principal_components(s.Z, rank=10)
    >>> al = ca.LatentAligner(shrinkage=0.1).fit(few.transform(s.Z), s.Y)
    >>> few.back(al.T_).shape, round(few.explained, 3)
    ((5, 10), 1.0)
    """

    mean: Array
    components: Array
    variance: Array
    errors: Array
    explained: float

    def transform(self, Z: Any, *, out: Any = None, overwrite: bool = False) -> Any:
        """(Z - mean) components' (n x rank). Z and ``out`` are as in ``LatentAligner.transform``.

        >>> import covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=300)
        >>> ca.principal_components(s.Z, rank=4).transform(s.Z).shape
        (300, 4)
        """
        source = _rows(Z)
        if source.shape[1] != len(self.mean):
            raise columns_differ("Z", len(self.mean), source.shape[1])
        dtype = np.dtype(np.float32 if source.dtype == np.float32 else np.float64)
        key = [self.mean, self.components]

        def scores(_: int, z: Any) -> Array:
            return _centred_product(z, self.mean, self.components.T)

        return map_rows(scores, [source], len(self.components), dtype, out=out, key=key, overwrite=overwrite)

    def back(self, T: Any) -> Array:
        """A map of components (P x rank) as a map of the columns of Z (P x K): T components.

        >>> import numpy as np, covalign as ca
        >>> s = ca.simulate.scenario("PN", n_samples=300)
        >>> ca.principal_components(s.Z, rank=4).back(np.eye(4)).shape
        (4, 10)
        """
        return np.asarray(as_matrix(T, "T", len(self.components)) @ self.components)


def principal_components(Z: Any, rank: int, *, passes: int = 3, random_state: int = 0) -> PrincipalComponents:
    """The leading principal components of Z (n x K), for a K whose covariance matrix is too large.

    Z is whatever ``covalign.open_rows`` takes, dense or sparse, read ``passes`` times, a chunk at a time. Two passes
    are exact if Z has at most ``rank`` independent columns (or rows); otherwise each further pass makes the components
    more accurate. The result has fewer components if Z spans fewer dimensions. Fit an aligner to ``transform(Z)``: it
    knows nothing of what the components leave out, which is ``1 - explained`` of the variance.

    >>> import numpy as np, covalign as ca
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 1000)) + 7
    >>> found = ca.principal_components(Z, rank=20)
    >>> found.components.shape, round(found.explained, 6)
    ((3, 1000), 1.0)
    """
    rank, passes = check_count("rank", rank), check_count("passes", passes, 2, "3 is a good choice", MOST_PASSES)
    source = _rows(Z)
    n, k = source.shape
    if n < 2:
        raise ValueError(message("principal components need at least 2 rows", got=n, remedy="pass more rows"))
    Q: Array = np.linalg.qr(check_random_state(random_state).normal(size=(k, min(rank + EXTRA, k))))[0]
    GQ, mean, total = _covariance_product(source, Q, None)
    for _ in range(passes - 1):
        Q = np.linalg.qr(GQ)[0]
        GQ, mean, total = _covariance_product(source, Q, mean)
    return _of_product(Q, GQ, mean, total, rank)


def _of_product(Q: Array, GQ: Array, mean: Array, total: float, rank: int) -> PrincipalComponents:
    """The eigenvectors of Q'G Q, largest first, each with its largest weight positive."""
    H = Q.T @ GQ
    values, turn = np.linalg.eigh((H + H.T) / 2)
    kept = np.flatnonzero(values > rank_cutoff(len(mean), max(float(values[-1]), 0.0)))[::-1][:rank]
    if len(kept) == 0:
        problem = "principal components need columns that vary"
        raise ValueError(message(problem, got="constant columns", remedy="check Z"))
    values, turn = values[kept], turn[:, kept]
    V = Q @ turn
    sign = np.sign(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])])
    errors = np.linalg.norm(GQ @ turn - V * values, axis=0) / values[0]
    share = min(1.0, float(values.sum()) / total)
    return PrincipalComponents(mean, np.ascontiguousarray((V * sign).T), values, errors, share)


class _ProductSums:
    """Sums over rows z - origin: of the rows, of their squares, and of the products with Q."""

    def __init__(self, Q: Array, origin: Array) -> None:
        self._Q, self._origin, self.n = Q, origin, 0
        self._sum, self._squares, self._product = np.zeros(len(Q)), 0.0, np.zeros(Q.shape)

    def add(self, start: int, Z: Any) -> None:
        """Add rows. Sparse rows stay sparse: their origin is subtracted from the sums."""
        step = max(64, ROWS_BYTES // (8 * max(1, Z.shape[1])))
        for i in range(0, Z.shape[0], step):
            z = Z[i : i + step]
            origin = self._origin
            if not sparse.issparse(z):
                z, origin = np.asarray(z, dtype=np.float64) - origin, np.zeros(len(origin))
            scores = z @ self._Q - origin @ self._Q
            total = np.asarray(z.sum(axis=0)).ravel()
            squares = float(z.multiply(z).sum()) if sparse.issparse(z) else float(np.sum(z * z))
            m = z.shape[0]
            self.n += m
            self._sum += total - m * origin
            self._squares += squares - 2 * float(origin @ total) + m * float(origin @ origin)
            self._product += z.T @ scores - np.outer(origin, scores.sum(axis=0))

    def finish(self) -> tuple[int, Array, float, Array]:
        """Rows and the sums."""
        return self.n, self._sum, self._squares, self._product


def _covariance_product(source: Source, Q: Array, mean: Array | None) -> tuple[Array, Array, float]:
    """G Q, the mean and tr G, in one pass; sums are of rows less ``mean``, or less the first row if it is not known."""
    origin = _first_row(source) if mean is None else mean
    size = Size(len(Q), 1, max(64, ROWS_BYTES // (8 * len(Q))))
    with np.errstate(over="ignore", invalid="ignore"):  # columns whose squares overflow are refused next
        n, total, squares, product = of_rows([source], partial(_ProductSums, Q, origin), _added, size)
    if not squares <= LARGEST**2:
        for chunk in source.chunks():
            check_large("Z", source.names or range(len(Q)), dense(abs(chunk).max(axis=0)).reshape(1, -1))
    d = total / n
    return product / n - np.outer(d, d @ Q), origin + d, squares / n - float(d @ d)


def _first_row(source: Source) -> Array:
    """The first row, or 0 for sparse rows."""
    first = next(iter(source.chunks(1)))
    return np.zeros(source.shape[1]) if sparse.issparse(first) else np.array(first[0], dtype=np.float64)


def _added(several: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(sum(part[1:], part[0]) for part in zip(*several, strict=True))


def _centred_product(z: Any, mean: Array, M: Array) -> Array:
    """(z - mean) M."""
    if sparse.issparse(z):
        return np.asarray(z @ M - mean @ M)
    return np.asarray((np.asarray(z, dtype=np.float64) - mean) @ M)


def _rows(Z: Any) -> Source:
    """Rows that are checked as they are read."""
    return Checked(Z if is_source(Z) else open_rows(Z))
