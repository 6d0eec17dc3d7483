"""All experiments: their units, and how to run one; and what a figure or a table needs of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from covalign.study import contenders, simulations, steering, theory
from covalign.study import real_data as real
from covalign.study.arena import bouts, entrants
from covalign.study.baselines.method import Method
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Row, Store, Unit


class Experiment(NamedTuple):
    """``alone``: units run one after another, because they are timed. ``methods`` finds methods that may be absent."""

    units: Callable[[Profile, Inputs], list[Unit]]
    measure: Callable[[Unit, Profile, Inputs], Iterator[Row]]
    what: str
    alone: bool = False
    methods: Callable[[Iterable[str]], list[Method]] = lambda names: []


class Output(NamedTuple):
    """The experiments and user data that a figure or table needs, what it shows, and the function that makes it."""

    experiments: tuple[str, ...]
    what: str
    make: Callable[[Store, Profile, Inputs], Any]  # a figure of matplotlib, or the text of a table
    data: str | None = None  # "tcga" or "embeddings"


def others(names: Iterable[str]) -> list[Method]:
    """The methods of other authors among these names."""
    return contenders.chosen(name for name in names if not name.startswith("iFA"))


EXPERIMENTS = {
    "theorems": Experiment(theory.theorem_units, theory.theorems, "the theorems on random covariances"),
    "population": Experiment(theory.population_units, theory.population, "the scenarios' populations, every regime"),
    "methods": Experiment(
        simulations.method_units, simulations.all_methods, "all methods on simulated data", methods=others
    ),
    "consistency": Experiment(simulations.consistency_units, simulations.consistency, "recovery as N grows"),
    "inference": Experiment(simulations.inference_units, simulations.inference, "the paper's inference and ours"),
    "runtime": Experiment(simulations.runtime_units, simulations.runtime, "seconds a fit", alone=True, methods=others),
    "tcga": Experiment(real.tcga_units, real.tcga, "breast cancer multi-omics, cross-validated", methods=others),
    "embedding": Experiment(real.embedding_units, real.embedding, "pretrained representations"),
    "steering": Experiment(steering.units, steering.steering, "moves of one dimension and what probes make of them"),
    "arena": Experiment(bouts.units, bouts.measure, "all methods on real data, held out", methods=entrants.methods),
}
