"""The interface that all methods share: data in, factors out, and the numbers of a fair comparison."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy import sparse

from covalign._core.checks import check_count
from covalign._core.data_errors import no_views, not_finite, too_many_factors_asked
from covalign._core.linalg import Array, is_constant
from covalign._core.messages import kind_of, message
from covalign._core.number_range import check_large
from covalign.closed_form import metrics
from covalign.moments.numeric_rows import as_rows
from covalign.tables.covariates import encode, match_rows

T = TypeVar("T")
Views = dict[str, Array]


class Cost(NamedTuple):
    """Seconds of computation, and the most memory that the process had, in megabytes (None if it is not known).

    >>> from covalign.study.baselines import Cost
    >>> Cost(1.5, 200.0).memory
    200.0
    """

    cpu_seconds: float
    memory: float | None


class Fitted(NamedTuple):
    """What a method returns; ``seconds``, ``versions`` and ``cost`` only if it ran in its own process.

    >>> import numpy as np
    >>> from covalign.study.baselines import Fitted
    >>> Fitted(np.zeros((3, 2))).loadings is None
    True
    """

    factors: Array  # n x K
    loadings: dict[str, Array] | None = None  # view -> D x K
    curve: Array | None = None  # the objective of the method, step by step
    seconds: float | None = None
    versions: dict[str, str] | None = None
    place: Callable[[Views], Array] | None = None  # standardised features of new samples -> their factors
    cost: Cost | None = None


class Method(Protocol):
    """A method with its settings. Views are (n x D, columns standardised), Y is (n x P, standardised).

    >>> from covalign import baselines
    >>> method = baselines.PCA()  # any object with these four
    >>> method.name, method.paired, method.absent()
    ('PCA', False, None)
    """

    @property
    def name(self) -> str:
        """The name in tables and figures, with settings."""

    @property
    def paired(self) -> bool:
        """Whether factor p stands for covariate p by construction."""

    def absent(self) -> str | None:
        """Why it cannot run here, or None."""

    def fit(self, views: dict[str, Array], Y: Array, n_factors: int, seed: int, budget: int) -> Fitted:
        """Fit; ``budget`` is the number of iterations, epochs or steps of iterative methods."""


class BuiltIn:
    """A method that is part of this package and can always run."""

    takes_groups = False  # whether ``fit`` has an argument ``groups``, for settings that left-out rows choose

    def absent(self) -> str | None:
        """None: nothing needs to be installed."""
        return None


@dataclass(frozen=True, eq=False)
class Result:
    """A fitted method, ready to be compared.

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200)
    >>> result = baselines.run(baselines.PLS(), s.X, s.Y, n_factors=10)
    >>> result.informed.shape, result.place(s.X[:3]).shape
    ((200, 5), (3, 5))
    """

    method: str
    paired: bool
    factors: Array
    informed: Array  # n x P: column p stands for covariate p, by construction or by matching
    loadings: dict[str, Array] | None
    seconds: float
    versions: dict[str, str]
    curve: Array | None = field(default=None, repr=False)
    place: Callable[[Any], Array] | None = field(default=None, repr=False)


def run(
    method: Method, X: Any, Y: Any, n_factors: int, seed: int = 0, budget: int = 2000, groups: Any = None
) -> Result:
    """Fit one method and time it.

    X is an array or DataFrame, or a dict of views; Y a table of covariates (categories become dummies). Every method
    gets the same numbers: the columns of X and Y standardised. The informed factors of unpaired methods are chosen as
    in the paper: the one-to-one matching with the largest sum of absolute correlations, signed so that these are >= 0.
    A method with ``takes_groups`` gets ``groups`` (a label for every row of X): it leaves out whole groups where it
    chooses its settings.

    ``place`` of the result takes new samples (X with the same columns) and returns their informed factors, from their
    features alone; it is None for methods that cannot do this.

    >>> import covalign as ca
    >>> from covalign import baselines
    >>> s = ca.simulate.scenario("PN", n_samples=200, random_state=0)
    >>> pca = baselines.run(baselines.PCA(), s.X, s.Y, n_factors=10)
    >>> pca.method, pca.paired, pca.factors.shape, pca.informed.shape
    ('PCA', False, (200, 10), (200, 5))
    """
    if isinstance(method, type) or not all(hasattr(method, name) for name in ("name", "paired", "absent", "fit")):
        problem, remedy = "method needs one of covalign.baselines", "for example covalign.baselines.PCA()"
        raise ValueError(message(problem, got=kind_of(method), remedy=remedy))
    n_factors, budget = check_count("n_factors", n_factors), check_count("budget", budget)
    seed = check_count("seed", seed, least=0, most=2**32 - 1)
    why = method.absent()
    if why is not None:
        raise ValueError(f"{method.name} cannot run here: {why}")
    views, Y = named_views(X, Y)
    scales, Y = {name: Scale.of(view) for name, view in views.items()}, standardised(Y)
    views = {name: scales[name].apply(view) for name, view in views.items()}
    if Y.shape[1] > n_factors:
        raise too_many_factors_asked(Y.shape[1], n_factors)
    more = {"groups": groups} if groups is not None and getattr(method, "takes_groups", False) else {}
    fitted, seconds = timed(lambda: method.fit(views, Y, n_factors, seed, budget, **more))
    factors = np.asarray(fitted.factors, dtype=np.float64)
    p = Y.shape[1]
    pairs = metrics.Matching(np.arange(p), np.ones(p)) if method.paired else metrics.match(factors, Y)
    versions = versions_of("scikit-learn") if fitted.versions is None else fitted.versions
    place = None if fitted.place is None else placing(fitted.place, pairs, scales)
    informed = pairs.apply(factors)
    seconds = seconds if fitted.seconds is None else fitted.seconds
    return Result(
        method.name, method.paired, factors, informed, fitted.loadings, seconds, versions, fitted.curve, place
    )


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What the work returns, and its seconds."""
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def placing(
    place: Callable[[Views], Array], pairs: metrics.Matching, scales: dict[str, Scale]
) -> Callable[[Any], Array]:
    """``place`` for new samples that are scaled and matched like the fitted ones."""

    def informed(X: Any) -> Array:
        new = X if isinstance(X, Mapping) else {"X": X}
        return pairs.apply(place({name: scale.apply(np.asarray(new[name])) for name, scale in scales.items()}))

    return informed


def standardised_views(X: Any, Y: Any) -> tuple[dict[str, Array], Array]:
    """{view: n x D} and n x P with mean 0 and variance 1 in every column (constant features are 0).

    Rows are matched by index if there is one, in the order of the first view.
    """
    views, covariates = named_views(X, Y)
    return {name: standardised(view) for name, view in views.items()}, standardised(covariates)


def named_views(X: Any, Y: Any) -> tuple[dict[str, Array], Array]:
    """Views and encoded covariates as arrays, in the units of the data."""
    views = dict(X) if isinstance(X, Mapping) and not sparse.issparse(X) else {"X": X}
    if not views:
        raise no_views()
    first = next(iter(views.values()))
    covariates = encode(match_rows(first, Y)).to_numpy()
    out = {}
    for name, values in views.items():
        rows, _ = as_rows(match_rows(first, values), covariates)
        rows = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
        check_large(f"view {name!r}", range(rows.shape[1]), rows)
        if not np.isfinite(rows).all():
            raise not_finite(str(name), str(int(np.flatnonzero(~np.isfinite(rows).all(axis=0))[0])))
        out[str(name)] = rows
    return out, covariates


class Scale(NamedTuple):
    """Mean and standard deviation (ddof = 0) of columns; they also scale other rows of the same columns."""

    mean: Array
    sd: Array
    varies: Array  # 1, or 0 for a constant

    @classmethod
    def of(cls, A: Array) -> Scale:
        """The scale of A."""
        mean, variance = A.mean(axis=0), A.var(axis=0)
        constant = is_constant(mean, variance)
        return cls(mean, np.where(constant, 1.0, np.sqrt(variance)), np.where(constant, 0.0, 1.0))

    def apply(self, A: Array) -> Array:
        """(A - mean) / sd; columns that were constant become 0."""
        return np.asarray((A - self.mean) / self.sd * self.varies)


def standardised(A: Array) -> Array:
    """Columns with mean 0 and variance 1 (ddof = 0); constant ones become 0."""
    return Scale.of(A).apply(A)


def stacked(views: dict[str, Array]) -> Array:
    """All views side by side (n x sum D)."""
    return np.hstack(list(views.values()))


def split(loadings: Array, views: dict[str, Array]) -> dict[str, Array]:
    """The rows of (sum D x K) loadings, view by view."""
    ends = np.cumsum([view.shape[1] for view in views.values()])
    return dict(zip(views, np.split(loadings, ends[:-1]), strict=True))


def versions_of(*packages: str) -> dict[str, str]:
    """Versions of those packages that are installed, Python's first."""
    found = {"python": platform.python_version()}
    for name in packages:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
