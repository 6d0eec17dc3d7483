"""Informed factor analysis and the aligner, with the interface of the methods they are compared with."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from covalign._core.checks import check_flags, check_lam
from covalign._core.linalg import Array
from covalign.aligner.latent import LatentAligner
from covalign.exceptions import NotHeldOutWarning, SingularTransformWarning
from covalign.factor import InformedFactorAnalysis
from covalign.study.baselines.linear import principal_components
from covalign.study.baselines.method import BuiltIn, Fitted, stacked


@contextmanager
def of_few_groups() -> Iterator[None]:
    """No warning about few groups: ``compare`` warns once, for all methods."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Held-out numbers are based on", NotHeldOutWarning)
        yield


@dataclass(frozen=True)
class IFA(BuiltIn):
    """iFA: stage 1 alone (``lam=None``), or realigned to a lambda, or to the exclusive regime where that exists.

    >>> from covalign import baselines
    >>> baselines.IFA(lam=0.5).name
    'iFA (lam=0.5)'
    """

    lam: float | None = None
    exclusive: bool = False

    def __post_init__(self) -> None:
        """Raise an error unless this is a regime."""
        check_flags(exclusive=self.exclusive)
        object.__setattr__(self, "lam", None if self.lam is None else check_lam(self.lam))

    @property
    def name(self) -> str:
        """iFA with its regime."""
        if self.exclusive:
            return "iFA (ex)"
        return "iFA (no T)" if self.lam is None else f"iFA (lam={self.lam:g})"

    paired = True
    takes_groups = True

    def fit(
        self, views: dict[str, Array], Y: Array, n_factors: int, seed: int, budget: int, groups: Array | None = None
    ) -> Fitted:
        """Stage 1 (at most ``budget`` sweeps; it needs few) and, with a regime, stage 2."""
        with of_few_groups():
            fa = InformedFactorAnalysis(n_factors, max_iter=budget, random_state=seed).fit(views, Y, groups=groups)
        if self.exclusive:
            fa = fa.realign(regime="exclusive")
        elif self.lam is not None:
            fa = fa.realign(self.lam)
        return Fitted(fa.factors_, fa.loadings_, fa.elbo_, place=fa.transform)


@dataclass(frozen=True)
class Aligned(BuiltIn):
    """What one does with a representation: principal components (or the features themselves), then T_lambda.

    ``components=False`` turns the features themselves, shrunk by cross-validation as ``LatentAligner`` does, into P
    dimensions. With components there are K: the informed ones, then the rest of their space.

    >>> from covalign import baselines
    >>> baselines.Aligned(lam=0.5).name
    'PCA, then T_0.5'
    """

    lam: float
    components: bool = True

    def __post_init__(self) -> None:
        """Raise an error unless this is a regime."""
        check_flags(components=self.components)
        object.__setattr__(self, "lam", check_lam(self.lam))

    @property
    def name(self) -> str:
        """The route, with its lambda."""
        return f"{'PCA' if self.components else 'ridge'}, then T_{self.lam:g}"

    paired = True
    takes_groups = True

    def fit(
        self, views: dict[str, Array], Y: Array, n_factors: int, seed: int, budget: int, groups: Array | None = None
    ) -> Fitted:
        """Closed forms: neither ``seed`` nor ``budget`` is used. The factors have no loadings of their own."""
        X = stacked(views)
        R = principal_components(X, n_factors).loadings if self.components else np.eye(X.shape[1])
        aligner = LatentAligner(lam=self.lam, keep_rest=self.components)
        with of_few_groups():
            warnings.simplefilter("ignore", SingularTransformWarning)  # T_1 is singular by intention
            aligner.fit(X @ R, Y, groups=groups)

        def place(new: dict[str, Array]) -> Array:
            return np.asarray(aligner.transform(stacked(new) @ R))

        return Fitted(place(views), place=place)
