"""Two kernels, one protocol: ``complete`` where nothing is missing, ``gaps`` where something is."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.factor.inference import complete, gaps
from covalign.factor.inference.patterns import Gapped
from covalign.factor.inference.state import Problem, State, View


class Kernel(Protocol):
    """What fitting, realigning and showing a model ask of the data."""

    def update_factors(self, problem: Problem, views: tuple[View, ...], beta: Array) -> Any:
        """q(z) of every sample, given everything else."""

    def update_views(self, problem: Problem, z: Any, views: tuple[View, ...]) -> tuple[View, ...]:
        """Loadings, ARD and noise of every view, given the factors."""

    def shifted(self, problem: Problem, state: State, held: int = 0) -> State:
        """The best z + c, intercepts moved along."""

    def of_views(self, problem: Problem, state: State) -> float:
        """Everything in the bound but the divergence of the factors."""

    def kl_factors(self, problem: Problem, state: State) -> float:
        """That divergence."""

    def hold(self, problem: Problem, state: State, T: Array) -> Any:
        """q of the informed factors moved by T, and its divergence."""

    def update_free(self, problem: Problem, views: tuple[View, ...], held: Any) -> Any:
        """q(z) with the informed factors held."""

    def kl_free(self, problem: Problem, state: State) -> float:
        """The divergence of the free factors given the informed ones."""

    def filled(self, problem: Problem) -> Problem:
        """The problem with complete data, for a start."""

    def started(self, problem: Problem, state: State) -> State:
        """A start made on complete data, as one of this kernel."""

    def resumed(self, problem: Problem, state: State) -> State:
        """A fitted state on other data."""

    def observed_sums(self, problem: Problem, state: State, where: slice) -> tuple[Array, Array, Array]:
        """x'x, X'M and diag M'M of every feature, over the samples that have it."""

    def centred_products_of_means(self, problem: Problem, state: State) -> tuple[Array, NDArray[Any]]:
        """M'M for every group of features, and the group of each feature."""

    def own_variances(self, state: State, group: NDArray[Any]) -> Array:
        """Var(z_nk) of samples, by their combination of gaps."""


def kernel_of(problem: Problem) -> Kernel:
    """The kernel for these data."""
    return gaps if isinstance(problem.data, Gapped) else complete
