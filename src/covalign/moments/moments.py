"""Moments of (Z, Y): all that a regime ever needs, from one pass over the rows, exactly mergeable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from covalign._core.checks import (
    LARGEST,
    columns_differ,
    lengths_differ,
    not_finite,
    not_numeric,
    not_two_dimensional,
    out_of_range,
)
from covalign._core.linalg import (
    Array,
    add_gram,
    is_constant,
    is_explained,
    mirror,
    range_root,
    rank_cutoff,
    whitener,
)
from covalign._core.messages import listed, message
from covalign._core.user_arrays import in_pandas, plain, shape_of
from covalign.stream import is_dask, is_elsewhere, is_source, open_rows, refuse_not_finite
from covalign.stream.folds import FoldSorter
from covalign.stream.folds import fold_of_rows as fold_of_rows  # callers ask for the folds of moments here
from covalign.stream.levels import Levels
from covalign.stream.reduction import BLOCK_BYTES, Size, of_rows

MANY = 1024  # buckets, or groups
GROUPS_BYTES = 2**28  # for the sums of all groups
WIDE = 200  # columns of Z, from which fewer rows than columns are a reason to work in the space of the rows
BUCKETS_BYTES = 2**25  # for the sums of all buckets, where there are more buckets than folds


@dataclass(frozen=True, eq=False)
class Moments:
    """Number of rows, means and covariances (ddof = 0) of representations Z (K) and covariates Y (P).

    ``m1 + m2`` are the moments of the rows of both. ``n`` is None for population moments, which cannot be merged.

    >>> import numpy as np, covalign as ca
    >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
    >>> whole = ca.Moments.from_arrays(Z, Y)
    >>> parts = ca.Moments.from_arrays(Z[:1], Y[:1]) + ca.Moments.from_arrays(Z[1:], Y[1:])
    >>> bool(np.allclose(whole.cov_zy, parts.cov_zy, rtol=1e-13)), whole.n
    (True, 100)
    """

    n: int | None
    mean_z: Array
    mean_y: Array
    cov_z: Array
    cov_zy: Array
    cov_y: Array
    covariate_names: tuple[str, ...]
    # What was summed, if somebody keeps it (``with_terms``). A copy with other numbers does not have it.
    _terms: tuple[Moments, ...] = field(default=(), init=False, repr=False)

    @classmethod
    def from_arrays(cls, Z: Any, Y: Any) -> Moments:
        """Moments of the rows of Z (n x K, dense or sparse, any real dtype) and Y (n x P, or n).

        Z may also be a path, or anything else that ``covalign.open_rows`` takes; it is read a chunk at a time.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> ca.Moments.from_arrays(Z, Y)
        Moments(n=100, 3 latent dimensions, 3 covariates: 'y0', 'y1', 'y2')
        """
        if (is_elsewhere(Z) or is_dask(Z)) and not is_source(Z):
            Z = open_rows(Z)
        (moments,) = fold_moments(Z, Y, folds=1)
        assert moments is not None  # a single fold holds every row
        return moments

    @classmethod
    def from_batches(cls, batches: Iterable[tuple[Any, Any]]) -> Moments:
        """Moments of all rows of an iterable of (Z, Y); how they are cut into batches does not change the result.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> ca.Moments.from_batches((Z[i : i + 30], Y[i : i + 30]) for i in range(0, 100, 30)).n
        100
        """
        rows: Accumulator | None = None
        names: tuple[str, ...] = ()
        n = 0
        for Z, Y in batches:
            batch_names = covariate_names(Y)
            Z, Y = as_rows(Z, Y)
            if rows is None:
                rows, names = Accumulator(Z.shape[1], Y.shape[1]), batch_names
            for what, part in (("Z", Z), ("Y", Y)):
                refuse_not_finite(part, n, what=what)
            rows.add(Z, Y)
            n += len(Y)
        if rows is None:
            raise no_rows()
        return rows.moments(names)

    @classmethod
    def from_covariances(
        cls,
        cov_z: ArrayLike,
        cov_zy: ArrayLike,
        cov_y: ArrayLike,
        *,
        n: int | None = None,
        mean_z: ArrayLike | None = None,
        mean_y: ArrayLike | None = None,
        covariate_names: Sequence[str] | None = None,
    ) -> Moments:
        """Moments of a population (n = None) or of rows summarised elsewhere.

        >>> import covalign as ca
        >>> m = ca.Moments.from_covariances([[1, 0], [0, 1]], [[0.6], [0]], [[1]], covariate_names=["age"])
        >>> ca.regimes.alignment(ca.regimes.strongest(m), m).tolist()
        [0.6]
        """
        S_z, S_zy, S_y = (np.array(S, dtype=np.float64, ndmin=2) for S in (cov_z, cov_zy, cov_y))
        k, p = len(S_z), len(S_y)
        if S_z.shape != (k, k):
            raise _not_a_covariance("cov_z", S_z.shape, "a square matrix")
        if S_y.shape != (p, p):
            raise _not_a_covariance("cov_y", S_y.shape, "a square matrix")
        if S_zy.shape != (k, p):
            raise _not_a_covariance("cov_zy", S_zy.shape, f"a {k} x {p} matrix (latents x covariates)")
        joint = np.block([[S_z, S_zy], [S_zy.T, S_y]])
        if not _is_covariance(joint):
            raise _not_a_covariance("[[cov_z, cov_zy], [cov_zy', cov_y]]", joint.shape, "a covariance matrix")
        names = _default_names(p) if covariate_names is None else tuple(map(str, covariate_names))
        return cls(
            n=n,
            mean_z=np.zeros(k) if mean_z is None else np.asarray(mean_z, dtype=np.float64),
            mean_y=np.zeros(p) if mean_y is None else np.asarray(mean_y, dtype=np.float64),
            cov_z=(S_z + S_z.T) / 2,
            cov_zy=S_zy,
            cov_y=(S_y + S_y.T) / 2,
            covariate_names=names,
        )

    def __add__(self, other: Moments) -> Moments:
        """cov = (n1 cov1 + n2 cov2) / n + (n1 n2 / n^2) d d',  d the difference of the means (Chan et al.)."""
        if not isinstance(other, Moments):
            return NotImplemented
        if self.n is None or other.n is None:
            problem = "Only moments with a number of rows can be merged"
            raise ValueError(message(problem, got="n = None", remedy="pass n= to from_covariances"))
        for what, a, b in (("Z", self.mean_z, other.mean_z), ("Y", self.mean_y, other.mean_y)):
            if len(a) != len(b):
                raise columns_differ(what, len(a), len(b))
        n = self.n + other.n
        share = other.n / n
        spread = share * (self.n / n)
        d_z, d_y = other.mean_z - self.mean_z, other.mean_y - self.mean_y

        def merged(a: Array, b: Array, d_row: Array, d_col: Array) -> Array:
            return (1 - share) * a + share * b + spread * np.outer(d_row, d_col)

        return Moments(
            n=n,
            mean_z=self.mean_z + share * d_z,
            mean_y=self.mean_y + share * d_y,
            cov_z=merged(self.cov_z, other.cov_z, d_z, d_z),
            cov_zy=merged(self.cov_zy, other.cov_zy, d_z, d_y),
            cov_y=merged(self.cov_y, other.cov_y, d_y, d_y),
            covariate_names=self.covariate_names,
        )

    def transform(self, T: Array) -> Moments:
        """Moments of (TZ, Y).

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> ca.Moments.from_arrays(Z, Y).transform(np.eye(3)[:2]).cov_z.shape
        (2, 2)
        """
        return replace(self, mean_z=T @ self.mean_z, cov_z=T @ self.cov_z @ T.T, cov_zy=T @ self.cov_zy)

    def shifted(self, by: Array) -> Moments:
        """Moments of (Z + by, Y).

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> m = ca.Moments.from_arrays(Z, Y)
        >>> m.shifted(-m.mean_z).mean_z.tolist()
        [0.0, 0.0, 0.0]
        """
        return replace(self, mean_z=self.mean_z + by).with_root(self.known_root)

    def regression(self, q: int) -> tuple[Array, Array, Array]:
        """c = mean(C), B_z = S_c^+ S_cz and b_y = S_c^+ S_cy, where C are the last q columns of what is Z here.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> [part.shape for part in ca.Moments.from_arrays(np.hstack([Z, Y[:, :1]]), Y[:, 1:]).regression(1)]
        [(1,), (1, 3), (1, 2)]
        """
        k = len(self.mean_z) - q
        S_c, c = self.cov_z[k:, k:], self.mean_z[k:]
        W = whitener(S_c, is_constant(c, np.diag(S_c)))
        return c, W.T @ (W @ self.cov_z[k:, :k]), W.T @ (W @ self.cov_zy[k:])

    def residual(self, centre: Array, B_z: Array, b_y: Array) -> Moments:
        """Moments of (Z - (C - c) B_z, Y - (C - c) b_y), where C are the last columns of what is Z here.

        cov of two of these columns, a and b: S_ab - B_a'D_b - D_a'B_b,  D = S_c. - S_c B / 2. Of a dimension of Z that
        follows from C only rounding would be left, which looks like a dimension once scaled: it becomes a constant.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> m = ca.Moments.from_arrays(np.hstack([Z, Y[:, :1]]), Y[:, 1:])
        >>> m.residual(*m.regression(1)).cov_zy.shape
        (3, 2)
        """
        k = B_z.shape[1]
        S_c, off = self.cov_z[k:, k:], self.mean_z[k:] - centre
        D_z, D_y = self.cov_z[k:, :k] - S_c @ B_z / 2, self.cov_zy[k:] - S_c @ b_y / 2
        of_z, of_y = B_z.T @ D_z, b_y.T @ D_y
        cov_z, cov_zy = self.cov_z[:k, :k] - of_z - of_z.T, self.cov_zy[:k] - B_z.T @ D_y - D_z.T @ b_y
        gone = is_explained(np.diag(cov_z), np.diag(self.cov_z)[:k])
        cov_z[gone], cov_z[:, gone], cov_zy[gone] = 0.0, 0.0, 0.0
        return replace(
            self,
            mean_z=self.mean_z[:k] - off @ B_z,
            mean_y=self.mean_y - off @ b_y,
            cov_z=cov_z,
            cov_zy=cov_zy,
            cov_y=self.cov_y - of_y - of_y.T,
        )

    def select(self, columns: Sequence[int]) -> Moments:
        """The same rows with these covariates only.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> ca.Moments.from_arrays(Z, Y).select([2, 0]).covariate_names
        ('y2', 'y0')
        """
        at = list(columns)
        return replace(
            self,
            mean_y=self.mean_y[at],
            cov_zy=self.cov_zy[:, at],
            cov_y=self.cov_y[np.ix_(at, at)],
            covariate_names=tuple(self.covariate_names[c] for c in at),
        ).with_root(self.known_root)

    @cached_property
    def root(self) -> Array | None:
        """L (K x r) with cov_z = L L' if there are fewer rows than columns, else None.

        Wide data have a small space of rows, in which the regimes and the shrinkage are solved.

        >>> import numpy as np, covalign as ca
        >>> rng = np.random.default_rng(0)
        >>> ca.Moments.from_arrays(rng.normal(size=(50, 300)), rng.normal(size=50)).root.shape
        (300, 49)
        """
        if self.n is None or self.n < 2 or not is_wide(self.n, len(self.mean_z)):
            return None
        return _joined_root(self._terms) if self._terms else range_root(self.cov_z)

    def with_root(self, root: Array | None) -> Moments:
        """The same moments, whose root is known, if they are wide.

        >>> import numpy as np, covalign as ca
        >>> Z = np.random.default_rng(0).normal(size=(50, 300))
        >>> m = ca.Moments.from_arrays(Z, Z[:, 0])
        >>> m.with_root(m.root).root is m.root
        True
        """
        same = replace(self)
        if root is not None and is_wide(self.n or 0, len(self.mean_z)):
            vars(same)["root"] = root  # as cached_property keeps it
        return same

    @property
    def known_root(self) -> Array | None:
        """The root, if it is there already.

        >>> import numpy as np, covalign as ca
        >>> Z = np.random.default_rng(0).normal(size=(50, 300))
        >>> ca.Moments.from_arrays(Z, Z[:, 0]).known_root.shape  # from the rows
        (300, 49)
        """
        found: Array | None = vars(self).get("root")
        return found

    @property
    def n_pairs(self) -> NDArray[np.int64]:
        """Rows with each covariate: here all of them.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> ca.Moments.from_arrays(Z, Y).n_pairs.tolist()
        [100, 100, 100]
        """
        return np.full(len(self.mean_y), self.n or 0, dtype=np.int64)

    @property
    def pairs(self) -> list[tuple[Any, Moments]]:
        """Which covariates were observed on the same rows, and the moments of those: here all, on all rows.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> [(columns, seen.n) for columns, seen in ca.Moments.from_arrays(Z, Y).pairs]
        [(slice(None, None, None), 100)]
        """
        return [(slice(None), self)]

    def completed(self, n_confounders: int = 0) -> Moments:
        """Moments in which nothing is missing: these.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> m = ca.Moments.from_arrays(Z, Y)
        >>> m.completed() is m
        True
        """
        return self

    def with_terms(self, terms: Iterable[Moments]) -> Moments:
        """The same moments, which remember that they are the sum of these: their roots are then that of the sum.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> parts = [ca.Moments.from_arrays(Z[:50], Y[:50]), ca.Moments.from_arrays(Z[50:], Y[50:])]
        >>> (parts[0] + parts[1]).with_terms(parts).n
        100
        """
        same = replace(self)
        object.__setattr__(same, "_terms", tuple(terms))  # frozen for others
        return same

    def with_names(self, names: Sequence[str]) -> Moments:
        """The same moments with other covariate names.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> ca.Moments.from_arrays(Z, Y).with_names(["age", "dose", "stage"]).covariate_names
        ('age', 'dose', 'stage')
        """
        return replace(self, covariate_names=tuple(names))

    def __repr__(self) -> str:
        k, p = self.cov_zy.shape
        return f"Moments(n={self.n}, {k} latent dimensions, {p} covariates: {listed(self.covariate_names)})"


class Accumulator:
    """Running mean and scatter of the rows [z y], which may arrive in any portions.

    Rows are collected in blocks of a fixed size, so the result does not depend on the portions. A block is shifted by
    its first row (a constant column becomes exactly zero), then by its mean, and merged with earlier blocks by Chan's
    formula, which is one more row of the block:  scatter += B'B + (n c / (n + c)) d d'.
    """

    def __init__(self, k: int, p: int, block_bytes: int | None = None) -> None:
        self.k, self.p, self.n = k, p, 0
        self.width = p  # columns of Y as they arrive
        self.mean = np.zeros(k + p)
        self._scatter = np.zeros((k + p, k + p))  # its upper triangle counts
        self._block = np.empty((block_rows(k + p, block_bytes) + 1, k + p))
        self._first = np.empty(k + p)
        self._filled = 0
        self._kept: list[Array] | None = []  # rows of Z, less the first of all, as long as they are few

    def add(self, Z: Any, Y: Array, rows: NDArray[np.intp] | None = None) -> None:
        """Add Z[rows], Y[rows] (all rows by default)."""
        if Z.shape[1] != self.k:
            raise columns_differ("Z", self.k, Z.shape[1])
        if Y.shape[1] != self.width:
            raise columns_differ("Y", self.width, Y.shape[1])
        n, room = Y.shape[0] if rows is None else len(rows), len(self._block) - 1
        start = 0
        while start < n:
            stop = min(n, start + room - self._filled)
            take: Any = slice(start, stop) if rows is None else rows[start:stop]
            self._fill(Z[take].toarray() if sparse.issparse(Z) else Z[take], Y[take])
            start = stop
            if self._filled == room:
                self._absorb()

    def _fill(self, z: Any, y: Array) -> None:
        """Copy rows into the block, in float64, shifted by the block's first row."""
        if self._filled == 0:
            self._first[: self.k], self._first[self.k :] = z[0], y[0]
        into = self._block[self._filled : self._filled + len(y)]
        with np.errstate(invalid="ignore", over="ignore"):  # not finite is noticed, and named, in _absorb
            np.subtract(z, self._first[: self.k], out=into[:, : self.k])
            np.subtract(y, self._first[self.k :], out=into[:, self.k :])
        self._filled += len(y)

    def _absorb(self) -> None:
        c, n = self._filled, self.n
        if c == 0:
            return
        B = self._block[:c]
        self._keep(B)
        with np.errstate(invalid="ignore", over="ignore"):
            centre = B.mean(axis=0)
            B -= centre
        if not np.isfinite(centre).all():
            self._refuse(int(np.flatnonzero(~np.isfinite(centre))[0]))
        with np.errstate(over="ignore", invalid="ignore"):  # too large is refused in moments
            d = self._first + centre - self.mean
            self._block[c] = np.sqrt(n * c / (n + c)) * d
            self._add_products(c)
            self.mean += d * (c / (n + c))
        self.n, self._filled = n + c, 0

    def _add_products(self, c: int) -> None:
        """Add the products of c centred rows and the row after them."""
        add_gram(self._scatter, self._block[: c + 1])

    def forget_rows(self) -> None:
        """Keep no rows: they will not be few."""
        self._kept = None

    def _keep(self, B: Array) -> None:
        """Keep rows of Z, from which the root of few rows follows."""
        if self._kept is None:
            return
        if not is_wide(self.n + len(B), self.k):
            self._kept = None
            return
        if not self._kept:
            self._origin = self._first[: self.k].copy()
        with np.errstate(invalid="ignore", over="ignore"):
            self._kept.append(B[:, : self.k] + (self._first[: self.k] - self._origin))

    def _root(self) -> Array | None:
        """L (K x (n - 1)): the centred rows over sqrt(n), reflected so that one of them is 0 and left out."""
        if not self._kept or self.n < 2:
            return None
        X = self._kept[0] if len(self._kept) == 1 else np.vstack(self._kept)
        X = X - X.mean(axis=0)
        # I - 2 u u' / u'u takes sqrt(n) e_1 to the vector of ones, and back.
        u = np.ones(self.n)
        u[0] -= np.sqrt(self.n)
        X -= np.outer(2 / (u @ u) * u, u @ X)
        return np.asarray(X[1:].T / np.sqrt(self.n))

    def _refuse(self, column: int) -> None:
        error = not_finite("Z", str(column)) if column < self.k else not_finite("Y", str(column - self.k))
        error.column = column
        raise error

    def _check_size(self, variance: Array, names: Sequence[str] | None) -> None:
        """Refuse numbers whose squares overflow, or come near it."""
        if variance.max(initial=0.0) <= LARGEST**2 and np.abs(self.mean).max(initial=0.0) <= LARGEST:
            return
        column = int(np.argmax(~(variance <= LARGEST**2) | ~(np.abs(self.mean) <= LARGEST)))
        if column < self.k:
            raise out_of_range("Z", column, large=True, position=column)
        raise out_of_range("Y", column - self.k if names is None else names[column - self.k], large=True)

    @property
    def empty(self) -> bool:
        """Whether no row has been added."""
        return self.n + self._filled == 0

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """The moments of all rows so far."""
        self._absorb()
        if self.empty:
            raise no_rows()
        k, scatter = self.k, mirror(self._scatter)
        self._check_size(scatter.diagonal() / self.n, names)
        return Moments(
            n=self.n,
            mean_z=self.mean[:k].copy(),
            mean_y=self.mean[k:].copy(),
            # Not views, because sums over views run in another order than over what a file gives back.
            cov_z=np.ascontiguousarray(scatter[:k, :k] / self.n),
            cov_zy=np.ascontiguousarray(scatter[:k, k:] / self.n),
            cov_y=np.ascontiguousarray(scatter[k:, k:] / self.n),
            covariate_names=tuple(names) if names is not None else _default_names(self.p),
        ).with_root(self._root())


class FoldSums:
    """Sums of the rows of every fold. ``fold_of_rows`` decides the fold of a row.

    ``accumulator(k, p, block_bytes=...)`` makes the sums of one fold. The last ``n_confounders`` columns of Z do not
    influence folds. ``grouped``: the last column of Y has the numbers of groups, of which there are about ``expected``.
    ``levels``: Y is a short table (``stream.levels``).
    """

    def __init__(
        self,
        folds: int,
        accumulator: Callable[..., Any],
        names: Sequence[str],
        n_confounders: int = 0,
        grouped: bool = False,
        expected: int | None = None,
        levels: Levels | None = None,
    ) -> None:
        self._new, self._names = partial(accumulator, block_bytes=block_bytes(expected or folds)), names
        self._sorter = FoldSorter(folds, n_confounders, grouped, levels)
        self._sums: list[Any] = [None] * folds
        self._n = 0

    def add(self, start: int, Z: Any, Y: Array) -> None:
        """Add rows of Z and Y."""
        self._n += len(Y)
        many = not is_wide(self._n, Z.shape[1])
        for sums in self._sums if many else ():
            if sums is not None:
                sums.forget_rows()
        for fold, z, y in self._sorter.sorted(Z, Y):
            if self._sums[fold] is None and len(y):
                self._sums[fold] = self._new(z.shape[1], y.shape[1])
                if many:
                    self._sums[fold].forget_rows()
            if len(y):
                self._sums[fold].add(z, y)

    def finish(self) -> list[Any]:
        """Moments of every fold, None for a fold without rows."""
        return [None if sums is None else sums.moments(self._names) for sums in self._sums]


def fold_moments(Z: Any, Y: Any, folds: int, n_confounders: int = 0) -> list[Moments | None]:
    """Moments of every fold, None for a fold without rows, in one pass."""
    return sums_of_folds(Z, Y, folds, Accumulator, merge, n_confounders)


def sums_of_folds(
    Z: Any,
    Y: Any,
    folds: int,
    accumulator: Callable[..., Any],
    merge: Callable[..., Any],
    n_confounders: int,
    grouped: bool = False,
    names: Sequence[str] | None = None,
    levels: Levels | None = None,
) -> list[Any]:
    """What accumulators make of the rows of every fold, in one pass; ``merge`` joins the results of threads.

    ``grouped``: the last column of Y has the numbers of groups (``stream.folds``). ``levels``: Y is a short table
    (``stream.levels``), which becomes columns with these names.
    """
    names = covariate_names(Y)[: -1 if grouped else None] if names is None else names
    Z, Y = as_rows(Z, Y)
    if Y.shape[0] == 0:
        raise no_rows()

    def locate(start: int, z: Any, y: Array) -> None:
        refuse_not_finite(z, start, Z if is_source(Z) else None, "Z")
        gaps = accumulator is not Accumulator and y.dtype.kind == "f"
        refuse_not_finite(np.where(np.isnan(y), 0.0, y) if gaps else y, start, what="Y")

    columns = Z.shape[1] + Y.shape[1]
    expected = min(folds, len(np.unique(Y[:, -1]))) if grouped else folds
    size = Size(columns, expected, block_rows(columns, block_bytes(expected)))
    new = partial(FoldSums, folds, accumulator, names, n_confounders, grouped, expected, levels)
    found: list[Any] = of_rows([Z, Y], new, partial(merge_folds, merge=merge), size, locate)
    return found


def merge_folds(several: Sequence[Sequence[Any]], merge: Callable[[Iterable[Any]], Any]) -> list[Any]:
    """The results of several ``FoldSums``, merged fold by fold."""
    return [merge(parts) for parts in zip(*several, strict=True)]


def merge(parts: Iterable[Moments | None]) -> Moments | None:
    """The sum of all parts that are not None; None if there is none."""
    there = [part for part in parts if part is not None]
    if len(there) < 2:
        return there[0] if there else None
    if len(there) < 3 or (len(there) < 6 and len(there[0].mean_z) < 256):  # one product pays for many or large matrices
        whole = sum(there[1:], there[0])
    else:
        (whole,) = merge_groups(there, [dict.fromkeys(range(len(there)), range(len(there[0].mean_y)))])
    known = is_wide(whole.n or 0, len(whole.mean_z)) and all(
        part.n == 1 or part.known_root is not None for part in there
    )
    return whole.with_root(_joined_root(there)) if known else whole


def without_z(m: Moments) -> Moments:
    """Moments of the covariates alone: Z has no columns."""
    p = len(m.mean_y)
    return replace(m, mean_z=np.empty(0), cov_z=np.empty((0, 0)), cov_zy=np.empty((0, p)))


def is_wide(n: int, k: int) -> bool:
    """Whether n rows with k columns are better treated in the space of the rows."""
    return k >= WIDE and n <= 0.9 * k


def _joined_root(parts: Sequence[Moments]) -> Array:
    """The root of a sum: sqrt(w_i) times the roots of its parts, and the distances of their means.

    The distances, sqrt(w_i) d_i, have one dimension less than there are parts: they are orthogonal to sqrt(w).
    """
    n = np.array([part.n or 0 for part in parts], dtype=np.float64)
    w = np.sqrt(n / n.sum())[:, None]
    between = w * np.array([part.mean_z - parts[0].mean_z for part in parts])
    turn = np.linalg.qr(w, mode="complete")[0][:, 1:]
    roots = [
        np.empty((len(part.mean_z), 0)) if part.n == 1 else _root(part) * share
        for part, share in zip(parts, w, strict=True)
    ]
    return np.hstack([*roots, between.T @ turn])


def _root(part: Moments) -> Array:
    return range_root(part.cov_z) if part.root is None else part.root


def merge_groups(parts: Sequence[Moments], groups: Sequence[Mapping[int, Sequence[int]]]) -> list[Moments]:
    """For each group, {i: covariates of part i, ...}, the sum of its parts:  cov = sum_i w_i (cov_i + d_i d_i').

    w_i = n_i / n, and d_i is the distance of the i-th mean from that of all. The K x K sums of all groups are one
    product with the table of weights, some rows of the matrices at a time.
    """
    made, k = [], len(parts[0].mean_z)
    W = np.zeros((len(groups), len(parts)))
    for g, group in enumerate(groups):
        few = [parts[i].select(columns) for i, columns in group.items()]
        W[g, list(group)] = [m.n or 0 for m in few]
        made.append(_merged_but_for_cov_z(few))
    W /= W.sum(axis=1, keepdims=True)
    step = max(1, BLOCK_BYTES // (8 * max(k, 1) * len(parts)))
    for i in range(0, k, step):
        rows = np.stack([part.cov_z[i : i + step] for part in parts]).reshape(len(parts), -1)
        for m, within in zip(made, W @ rows, strict=True):
            m.cov_z[i : i + step] += within.reshape(-1, k)
    return made


def _merged_but_for_cov_z(parts: Sequence[Moments]) -> Moments:
    """The sum of the parts, where cov_z is only what lies between them."""
    first, n = parts[0], sum(part.n or 0 for part in parts)
    w = np.array([part.n or 0 for part in parts]) / n
    from_z, from_y = (np.array([getattr(m, of) - getattr(first, of) for m in parts]) for of in ("mean_z", "mean_y"))
    to_z, to_y, root = w @ from_z, w @ from_y, np.sqrt(w)[:, None]
    d_z, d_y = root * (from_z - to_z), root * (from_y - to_y)
    return replace(
        first,
        n=n,
        mean_z=first.mean_z + to_z,
        mean_y=first.mean_y + to_y,
        cov_z=d_z.T @ d_z,
        cov_zy=_weighted_sum(w, [m.cov_zy for m in parts], d_z.T @ d_y),
        cov_y=_weighted_sum(w, [m.cov_y for m in parts], d_y.T @ d_y),
    )


def _weighted_sum(w: Array, matrices: Sequence[Array], into: Array) -> Array:
    """into + sum_i w_i matrices_i, in place."""
    for share, matrix in zip(w.tolist(), matrices, strict=True):
        into += share * matrix
    return into


def as_rows(Z: Any, Y: Any) -> tuple[Any, Any]:
    """Z and Y as two-dimensional numeric arrays (Z possibly sparse, by rows, or a Source) of the same length."""
    Z, Y = Z if is_source(Z) else _numeric("Z", Z), _numeric("Y", Y)
    if sparse.issparse(Y):
        Y = Y.toarray()
    if Y.ndim == 1:
        Y = Y[:, None]
    for name, M in (("Z", Z), ("Y", Y)):
        if len(M.shape) != 2:
            raise not_two_dimensional(name, M.shape)
    if Z.shape[0] != Y.shape[0]:
        raise lengths_differ(Z.shape[0], Y.shape[0])
    return Z, Y


def covariate_names(Y: Any) -> tuple[str, ...]:
    """Column names where Y has them, else y0, y1, ..."""
    if hasattr(Y, "columns"):
        return tuple(map(str, Y.columns))
    if hasattr(Y, "to_frame") and getattr(Y, "name", None) is not None:
        return (str(Y.name),)
    shape = shape_of(Y, "Y")
    return _default_names(shape[1] if len(shape) == 2 else 1)


def _numeric(name: str, M: Any) -> Any:
    M = plain(M, name)
    if sparse.issparse(M):
        return M.tocsr()
    M = np.asarray(in_pandas(M, name))
    if M.dtype.kind in "fiub":
        return M
    if M.dtype.kind != "O":
        raise not_numeric(name, M.dtype)
    try:
        return M.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise not_numeric(name, M.dtype) from None


def _default_names(p: int) -> tuple[str, ...]:
    return tuple(f"y{i}" for i in range(p))


def bucket_count(folds: int, columns: int, groups: int | None = None) -> int:
    """How many buckets the rows are sorted into, of which folds are packed: four a fold if their sums are small.

    It depends on the columns alone, so that rows get the same buckets however they arrive. Groups need many buckets
    (most of them empty), or several groups would share one: as many as there is memory for, if all groups have sums.
    """
    size = 8 * max(columns, 1) ** 2
    if folds == 1:
        return 1
    if groups is None:
        return int(np.clip(BUCKETS_BYTES // size, folds, max(folds, min(4 * folds, 64))))
    return MANY if groups * size <= GROUPS_BYTES else int(np.clip(GROUPS_BYTES // size, folds, MANY))


def block_bytes(buckets: int) -> int:
    """The size of the blocks of every bucket, so that those of all buckets need no more memory than five folds."""
    return BLOCK_BYTES if buckets <= 5 else 5 * BLOCK_BYTES // buckets


def block_rows(q: int, size: int | None = None) -> int:
    """Rows of q numbers in a block; a function of q alone, so that blocks are the same however rows arrive."""
    return int(np.clip((BLOCK_BYTES if size is None else size) // (8 * q), 64, 8192))


def _is_covariance(S: Array) -> bool:
    scale = np.abs(S).max(initial=0.0)
    if not np.isfinite(scale) or np.abs(S - S.T).max(initial=0.0) > 1e-8 * scale:
        return False
    return bool(np.linalg.eigvalsh(S)[0] >= -max(1e-8, rank_cutoff(len(S), 1.0)) * scale) if len(S) else True


def no_rows() -> ValueError:
    """The error for an empty input."""
    problem, remedy = "Moments need at least one row", "pass at least one batch with rows"
    return ValueError(message(problem, got="an empty input", remedy=remedy))


def _not_a_covariance(what: str, shape: tuple[int, ...], need: str) -> ValueError:
    got = f"shape {shape} or values that are not"
    return ValueError(message(f"{what} needs to be {need}", got=got, remedy="check the matrix"))
