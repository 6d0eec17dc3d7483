"""Experiments on simulated data: all methods, consistency, the paper's inference against ours, runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from covalign._core.linalg import Array
from covalign.closed_form import simulate
from covalign.exceptions import DependentCovariatesError
from covalign.factor import InformedFactorAnalysis
from covalign.study import contenders
from covalign.study.baselines import method as face
from covalign.study.profiles import SIMULATED, Inputs, Profile
from covalign.study.results_store import Row, Unit, setting
from covalign.study.scores import Data, Settings, in_sample, on_fitted_rows


def drawn(unit: Unit, profile: Profile) -> simulate.Scenario:
    """The data of a unit: the repetition is the seed."""
    at, size = unit.at, (int(unit.at["n"]), profile.d, profile.k)
    return simulate.scenario(at["scenario"], *size, float(at["alpha"]), float(at["b"]), random_state=unit.rep)


# -- all methods ------------------------------------------------------------------------------------------------------


def method_units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """Fast methods in all settings; iVAE and methods that take a minute per fit only in the settings of panel D."""
    units = []
    for scenario in SIMULATED:
        for alpha, b in profile.settings():
            at = setting(scenario=scenario, alpha=alpha, b=b, n=profile.n, budget=profile.budget)
            in_panel = (alpha, b) in profile.panels(scenario)
            is_slow_there = in_panel and scenario in profile.slow_scenarios
            slow = contenders.slow(profile.scaling_factors) if is_slow_there else []
            times = {name: contenders.repetitions(name, profile.reps) for name in ("iFA", *contenders.FAST)}
            times |= dict.fromkeys(slow, profile.slow_reps)
            times["iVAE"] = min(times["iVAE"], profile.reps if in_panel else profile.slow_reps)
            units += [Unit("methods", name, at, rep) for name, reps in times.items() for rep in range(reps)]
    return units


def all_methods(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """The eight metrics, and the share of X that all factors explain together."""
    s = drawn(unit, profile)
    views, Y = face.standardised_views(s.X, s.Y)
    if unit.method != "iFA":
        (method,), settings = contenders.chosen([unit.method]), Settings(profile.k, unit.rep, profile.budget)
        yield from in_sample(method, Data(views, Y), settings)
        return
    fa = InformedFactorAnalysis(profile.k, random_state=unit.rep)
    for name, model, seconds in informed_family(fa, views, Y, profile.lams, exclusive=True):
        yield from on_fitted_rows(name, views, Y, model.factors_[:, : Y.shape[1]], model.factors_, seconds)


def informed_family(
    fa: InformedFactorAnalysis, X: Any, Y: Any, lams: tuple[float, ...], exclusive: bool = False
) -> Iterator[tuple[str, InformedFactorAnalysis, float]]:
    """(name, model, seconds to its factors) of stage 1 and of each realignment."""

    def timed(name: str, make: Callable[[], InformedFactorAnalysis]) -> tuple[str, InformedFactorAnalysis, float]:
        (model, _), seconds = face.timed(lambda: (model := make(), model.factors_))  # computed when first asked for
        return name, model, seconds

    yield timed("iFA (no T)", lambda: fa.fit(X, Y))
    for lam in lams:
        yield timed(f"iFA (lam={lam:g})", partial(fa.realign, lam))
    if exclusive:
        with suppress(DependentCovariatesError):
            yield timed("iFA (ex)", partial(fa.realign, regime="exclusive"))


# -- consistency ------------------------------------------------------------------------------------------------------


def consistency_units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """Scenario 1 as N grows."""
    at = [setting(scenario="PN", alpha=1.0, b=1.0, n=n) for n in profile.sizes]
    return [Unit("consistency", "iFA", one, rep) for one in at for rep in range(profile.reps)]


def consistency(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """beta, its squared error, and the cosine between informed factors and the truth."""
    s = drawn(unit, profile)
    fa = InformedFactorAnalysis(profile.k, random_state=unit.rep).fit(s.X, s.Y)
    for p, value in enumerate(fa.beta_):
        yield Row("iFA", f"beta_{p + 1}", value)
    yield Row("iFA", "beta error", float(np.mean((fa.beta_ - s.beta) ** 2)))
    yield Row("iFA", "cosine", float(np.mean(cosines(fa.factors_, s.Z, len(s.beta)))))


def cosines(factors: Array, truth: Array, p: int) -> Array:
    """Cosines between the first P columns, centred."""
    F, Z = (A[:, :p] - A[:, :p].mean(axis=0) for A in (factors, truth))
    return np.asarray(np.sum(F * Z, axis=0) / np.linalg.norm(F, axis=0) / np.linalg.norm(Z, axis=0))


# -- the paper's inference and ours -----------------------------------------------------------------------------------

INFERENCES = {
    "paper": lambda k: InformedFactorAnalysis.paper(k),
    "mean field, converged": lambda k: InformedFactorAnalysis(k, posterior="mean_field"),
    "full, converged": lambda k: InformedFactorAnalysis(k),
}


def inference_units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """Each scenario, at the paper's N and at ten times it."""
    return [
        Unit("inference", name, setting(scenario=scenario, alpha=1.0, b=1.0, n=n), rep)
        for scenario in SIMULATED
        for n in profile.inference_sizes
        for name in INFERENCES
        for rep in range(profile.reps)
    ]


def inference(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """The bound reached, recovery of the informed factors (mean and weakest), sweeps and seconds."""
    s = drawn(unit, profile)
    model, seconds = face.timed(lambda: INFERENCES[unit.method](profile.k).fit(s.X, s.Y))
    found = cosines(model.factors_, s.Z, len(s.beta))
    yield Row(unit.method, "bound", model.elbo_[-1])
    yield Row(unit.method, "recovery", float(np.mean(found)))
    yield Row(unit.method, "weakest", float(np.min(found)))
    yield Row(unit.method, "sweeps", model.n_iter_)
    yield Row(unit.method, "seconds", seconds)


# -- runtime ----------------------------------------------------------------------------------------------------------


def runtime_units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """Scenario 1, all methods, one after another for any number of jobs."""
    at = setting(scenario="PN", alpha=1.0, b=1.0, n=profile.n, budget=profile.budget)
    units = []
    for rep in range(min(profile.reps, contenders.FEWER)):
        units += [Unit("runtime", name, at, rep) for name in ("iFA", "iFA, the paper's", *contenders.FAST)]
        if rep < profile.slow_reps:
            units += [Unit("runtime", name, at, rep) for name in contenders.slow((0.1,))]
    return units


def runtime(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """Seconds of one fit (the second of two, if the first is cheap), and of one further lambda."""
    s = drawn(unit, profile)
    views, Y = face.standardised_views(s.X, s.Y)
    if unit.method == "iFA":
        for _ in range(2):
            timed = list(informed_family(InformedFactorAnalysis(profile.k, random_state=unit.rep), views, Y, (0.5,)))
        yield Row("iFA", "seconds", timed[0][2])
        yield Row("iFA, a further lambda", "seconds", timed[1][2])
    elif unit.method == "iFA, the paper's":
        _, seconds = face.timed(lambda: InformedFactorAnalysis.paper(profile.k).fit(views, Y))
        yield Row(unit.method, "seconds", seconds)
    else:
        (method,) = contenders.chosen([unit.method])
        for _ in range(2 if unit.method in contenders.CLASSICAL else 1):
            seconds = face.run(method, views, Y, profile.k, unit.rep, profile.budget).seconds
        yield Row(unit.method, "seconds", seconds)
