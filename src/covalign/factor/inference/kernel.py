"""Two kernels, one protocol: ``complete`` where nothing is missing, ``gaps`` where something is."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covalign._core.linalg import Array
from covalign.factor.inference import complete, gaps, updates
from covalign.factor.inference.heavy_tails import Scaled
from covalign.factor.inference.patterns import Gapped
from covalign.factor.inference.state import Held, Problem, State, View


class Kernel(Protocol):
    """What fitting, realigning and showing a model ask of the data."""

    def update_factors(self, problem: Problem, views: tuple[View, ...], beta: Array) -> Any:
        """q(z) of every sample, given everything else."""

    def update_loadings(self, problem: Problem, z: Any, where: slice, view: View) -> Any:
        """Loadings (and intercepts) of a view, given the factors."""

    def expected_residuals(self, problem: Problem, z: Any, where: slice, w: Any) -> Array:
        """E sum_n (x_nd - intercept_d - w_d'z_n)^2 of every feature of a view, over its observed cells."""

    def counts(self, problem: Problem, where: slice) -> Any:
        """The number of these cells."""

    def shifted(self, problem: Problem, state: State, held: int = 0) -> State:
        """The best z + c, intercepts moved along."""

    def kl_factors(self, problem: Problem, state: State) -> float:
        """The divergence of the factors from their prior."""

    def update_free(self, problem: Problem, views: tuple[View, ...], held: Held) -> Any:
        """q(z) with the informed factors held."""

    def evidence(self, problem: Problem, views: tuple[View, ...]) -> tuple[Array, Any]:
        """What the data say about the precision of z, one matrix or a stack, and the samples that have each."""

    def known_covariates(self, problem: Problem) -> Array:
        """How much of the variance of each covariate is known, one row for each of the samples' precisions of z."""

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


def kernel_of(problem: Problem) -> Kernel:
    """The kernel for these data."""
    return gaps if isinstance(problem.data, Gapped) else complete


def noise_rate(problem: Problem, where: slice) -> Array:
    """b0 of the noise of every feature of a view."""
    counts = np.maximum(kernel_of(problem).counts(problem, where), 1)
    data = problem.data.plain if isinstance(problem.data, Scaled) else problem.data  # a prior does not know the scales
    return updates.noise_rate(data.xx[where] / counts)


def update_views(problem: Problem, z: Any, views: tuple[View, ...]) -> tuple[View, ...]:
    """Loadings, ARD and noise of every view, given the factors."""
    kernel, new = kernel_of(problem), []
    for view, where in zip(views, problem.bounds, strict=True):
        w = kernel.update_loadings(problem, z, where, view)
        residuals = view.weight * kernel.expected_residuals(problem, z, where, w)
        noise = updates.update_noise(view.weight * kernel.counts(problem, where), residuals, noise_rate(problem, where))
        new.append(View(w, updates.update_ard(w), noise, view.weight))
    return tuple(new)
