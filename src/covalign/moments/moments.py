"""Moments of (Z, Y): all that a regime ever needs, from one pass over the rows, exactly mergeable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covalign._core.checks import check_count, check_positions
from covalign._core.data_errors import columns_differ, no_rows
from covalign._core.linalg import Array, is_constant, is_explained, range_root, rank_cutoff, whitener
from covalign._core.messages import listed, message
from covalign._core.user_arrays import as_matrix, as_vector
from covalign.moments.block_sizes import is_wide
from covalign.moments.moments_sum import joined_root
from covalign.moments.numeric_rows import as_rows, covariate_names, default_names, distinct_names
from covalign.stream import is_dask, is_elsewhere, is_source, open_rows, refuse_not_finite
from covalign.stream.batches import as_pair, each_batch


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
        from covalign.moments.fold_accumulator import fold_moments  # it makes moments

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
        from covalign.moments.accumulator import Accumulator  # it makes moments

        rows: Accumulator | None = None
        names: tuple[str, ...] = ()
        n = 0
        for number, batch in enumerate(each_batch(batches)):
            Z, Y = as_pair(batch, number)
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
        given = {"cov_z": cov_z, "cov_zy": cov_zy, "cov_y": cov_y}
        S_z, S_zy, S_y = (as_matrix(S, name).copy() for name, S in given.items())
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
        names = default_names(p) if covariate_names is None else distinct_names(covariate_names, p)
        return cls(
            n=None if n is None else check_count("n", n, remedy="None stands for a population"),
            mean_z=np.zeros(k) if mean_z is None else as_vector(mean_z, "mean_z", k),
            mean_y=np.zeros(p) if mean_y is None else as_vector(mean_y, "mean_y", p),
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
        T = as_matrix(T, "T", len(self.mean_z))
        return replace(self, mean_z=T @ self.mean_z, cov_z=T @ self.cov_z @ T.T, cov_zy=T @ self.cov_zy)

    def shifted(self, by: Array) -> Moments:
        """Moments of (Z + by, Y).

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> m = ca.Moments.from_arrays(Z, Y)
        >>> m.shifted(-m.mean_z).mean_z.tolist()
        [0.0, 0.0, 0.0]
        """
        return replace(self, mean_z=self.mean_z + as_vector(by, "by", len(self.mean_z))).with_root(self.known_root)

    def regression(self, q: int) -> tuple[Array, Array, Array]:
        """c = mean(C), B_z = S_c^+ S_cz and b_y = S_c^+ S_cy, where C are the last q columns of what is Z here.

        >>> import numpy as np, covalign as ca
        >>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
        >>> [part.shape for part in ca.Moments.from_arrays(np.hstack([Z, Y[:, :1]]), Y[:, 1:]).regression(1)]
        [(1,), (1, 3), (1, 2)]
        """
        k = len(self.mean_z)
        k -= check_count("q", q, least=0, most=k, remedy="it is the number of columns of C")
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
        at = check_positions("columns", columns, len(self.mean_y))
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
        return joined_root(self._terms) if self._terms else range_root(self.cov_z)

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
        return replace(self, covariate_names=distinct_names(names, len(self.mean_y)))

    def __repr__(self) -> str:
        k, p = self.cov_zy.shape
        return f"Moments(n={self.n}, {k} latent dimensions, {p} covariates: {listed(self.covariate_names)})"


def without_z(m: Moments) -> Moments:
    """Moments of the covariates alone: Z has no columns."""
    p = len(m.mean_y)
    return replace(m, mean_z=np.empty(0), cov_z=np.empty((0, 0)), cov_zy=np.empty((0, p)))


def _is_covariance(S: Array) -> bool:
    scale = np.abs(S).max(initial=0.0)
    if not np.isfinite(scale) or np.abs(S - S.T).max(initial=0.0) > 1e-8 * scale:
        return False
    return bool(np.linalg.eigvalsh(S)[0] >= -max(1e-8, rank_cutoff(len(S), 1.0)) * scale) if len(S) else True


def _not_a_covariance(what: str, shape: tuple[int, ...], need: str) -> ValueError:
    got = f"shape {shape} or values that are not"
    return ValueError(message(f"{what} needs to be {need}", got=got, remedy="check the matrix"))
