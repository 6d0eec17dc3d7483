"""All experiments: their units, and how to run one; and what a figure or a table needs of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from covalign.study import real_data as real
from covalign.study import simulations, steering, theory
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Row, Store, Unit


class Experiment(NamedTuple):
    """``alone``: units run one after another, because they are timed."""

    units: Callable[[Profile, Inputs], list[Unit]]
    measure: Callable[[Unit, Profile, Inputs], Iterator[Row]]
    what: str
    alone: bool = False


class Output(NamedTuple):
    """The experiments and user data that a figure or table needs, what it shows, and the function that makes it."""

    experiments: tuple[str, ...]
    what: str
    make: Callable[[Store, Profile, Inputs], Any]  # a figure of matplotlib, or the text of a table
    data: str | None = None  # "tcga" or "embeddings"


EXPERIMENTS = {
    "theorems": Experiment(theory.theorem_units, theory.theorems, "the theorems on random covariances"),
    "population": Experiment(theory.population_units, theory.population, "the scenarios' populations, every regime"),
    "methods": Experiment(simulations.method_units, simulations.all_methods, "all methods on simulated data"),
    "consistency": Experiment(simulations.consistency_units, simulations.consistency, "recovery as N grows"),
    "inference": Experiment(simulations.inference_units, simulations.inference, "the paper's inference and ours"),
    "runtime": Experiment(simulations.runtime_units, simulations.runtime, "seconds a fit", alone=True),
    "tcga": Experiment(real.tcga_units, real.tcga, "breast cancer multi-omics, cross-validated"),
    "embedding": Experiment(real.embedding_units, real.embedding, "pretrained representations"),
    "steering": Experiment(steering.units, steering.steering, "moves of one dimension and what probes make of them"),
}
