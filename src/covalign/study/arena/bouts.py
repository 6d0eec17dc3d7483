"""One unit of the arena: a method on a data set under a condition, held out, with its numbers or its failure."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from covalign._core.interrupts import handled
from covalign._core.linalg import Array
from covalign.exceptions import PeerError
from covalign.study.arena import collection, entrants
from covalign.study.arena.collection import Case
from covalign.study.arena.entrants import LEVEL, Announced, Rules, Trained
from covalign.study.baselines.method import Views
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Row, Unit, setting
from covalign.study.scores import divisions

BUDGETS = (0.1, 0.5, 1.0)
GRID = np.linspace(0.05, 1.0, 20)  # couplings over which the frontier is averaged: the area under it up to 1
FAILURE = "failure: "
DIGITS = 4
LONGEST = 160  # letters of a failure
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def units(profile: Profile, inputs: Inputs) -> list[Unit]:
    """All units, those first that tell most in the least time: an interrupted run then has numbers for every method.

    Quick methods come first, then one repetition of iFA and MOFA, then slow methods, then further repetitions; within
    these, small data come first.
    """
    names = entrants.chosen(profile.methods)
    absent = collection.missing(inputs)
    wanted = profile.data or tuple(collection.sources(inputs))
    cases = {name: collection.case(name, inputs) for name in wanted if name not in absent}
    cases = dict(sorted(cases.items(), key=lambda item: cells(item[1])))

    def of(methods: Iterable[str], reps: range, only: str | None = None) -> list[Unit]:
        return [
            unit(name, data, condition, rep, profile)
            for rep in reps
            for data, found in cases.items()
            for condition in collection.conditions(found)
            for name in methods
            if name in names and only in (None, condition)
        ]

    first, every = range(min(profile.slow_reps, profile.reps)), range(profile.reps)
    quick = [name for name in names if name not in (*entrants.STEADY, *entrants.SLOW)]
    made = of(quick, every) + of(entrants.STEADY, first)
    return made + of(entrants.SLOW, first, "complete") + of(entrants.STEADY, every[len(first) :])


def cells(found: Case) -> int:
    """The number of cells of all views."""
    return sum(view.size for view in found.views.values())


def unit(method: str, data: str, condition: str, rep: int, profile: Profile) -> Unit:
    """The unit with its settings."""
    at = setting(data=data, condition=condition, folds=profile.folds, budget=profile.budget)
    return Unit("arena", method, at, rep)


def measure(unit: Unit, profile: Profile, inputs: Inputs) -> Iterator[Row]:
    """The rows of a unit; an error is a row, too."""
    whole = collection.case(unit.at["data"], inputs)
    seen = collection.hidden(whole, unit.at["condition"], unit.rep)
    rules = Rules(whole.n_factors, unit.rep, profile.budget, profile.cpu_limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about few samples and unfinished fits: both are part of the comparison
            made = list(judged(unit.method, whole, seen, rules, profile.folds))
    except Exception as error:
        yield failure(unit.method, error)
        return
    yield from (row._replace(value=round(float(row.value), DIGITS)) for row in made)


def failure(name: str, error: Exception) -> Row:
    """An error as a row: its first sentence, or the last line of a package, which prints warnings before the reason."""
    text = str(error).strip().splitlines()[-1] if isinstance(error, PeerError) else str(error).partition(". ")[0]
    return Row(name, f"{FAILURE}{type(error).__name__}: {' '.join(text.split())[:LONGEST]}", 1.0)


# -- one method, all folds --------------------------------------------------------------------------------------------


def judged(method: str, whole: Case, seen: Case, rules: Rules, folds: int) -> Iterator[Row]:
    """Frontiers of left-out rows, imputation error, coverage, seconds and memory."""
    placed: dict[str, list[tuple[Array, Any]]] = {}
    failed: dict[str, Exception] = {}
    covered: dict[str, list[bool]] = {}
    seconds, errors, cell_coverage, memory = [], [], [], []
    for train, test in divisions(whole.Y, folds, rules.seed, whole.groups):
        kept = {name: varying(view[train]) for name, view in seen.views.items()}
        old, new, truth = (
            with_columns(data.rows(rows), kept) for data, rows in ((seen, train), (seen, test), (whole, test))
        )
        reset_peak()
        with limited(rules.cpu_limit):
            fit = entrants.trained(method, old, rules)
        memory.append(peak() if fit.memory is None else fit.memory)
        seconds.append(fit.seconds)
        failed |= fit.failures
        for name, place in fit.placings.items():
            z = standardised(place(old.views), place(new.views))
            placed.setdefault(name, []).append((z, test))
            if fit.announced is not None and name in fit.announced:
                covered.setdefault(name, []).append(is_covered(fit.announced[name], z, new.Y, len(train)))
        errors.append(imputation_error(fit, old.views, new.views, truth.views))
        if fit.coverage is not None:
            cell_coverage.append(fit.coverage(with_columns(whole.rows(train), kept).views))
    yield from (failure(name, error) for name, error in failed.items())
    for name, parts in placed.items():
        if name in failed:
            continue
        yield from frontier_rows(name, joined(parts, len(whole.Y)), whole.Y)
        if name in covered:
            yield Row(name, "coverage", float(np.mean(covered[name])))
    more = {"imputation error": errors, "cell coverage": cell_coverage, "seconds": seconds, "memory": memory}
    for metric, values in more.items():
        if values and np.isfinite(values).all():
            yield Row(method, metric, float(np.max(values) if metric == "memory" else np.mean(values)))


def varying(view: Array) -> Array:
    """True for columns with at least two different values."""
    return np.asarray(np.nanmax(view, axis=0) > np.nanmin(view, axis=0))


def with_columns(data: Case, kept: dict[str, Array]) -> Case:
    """The case with some of the columns of every view."""
    return data._replace(views={name: view[:, kept[name]] for name, view in data.views.items()})


def standardised(old: Array, new: Array) -> Array:
    """New rows (settings x n x P) in the units of the old ones, so that folds can be put together."""
    mean, sd = old.mean(axis=1, keepdims=True), old.std(axis=1, keepdims=True)
    return np.asarray((new - mean) / np.where(sd > 0, sd, 1.0))


def joined(parts: list[tuple[Array, Any]], n: int) -> Array:
    """The left-out rows of all folds, in the order of the data."""
    first = parts[0][0]
    every = np.empty((len(first), n, first.shape[2]))
    for z, rows in parts:
        every[:, rows] = z
    return every


# -- the frontier -----------------------------------------------------------------------------------------------------


def frontier_rows(name: str, placed: Array, Y: Array) -> Iterator[Row]:
    """Alignment at the budgets, and the area under the frontier up to a coupling of 1."""
    alignment, coupling = frontier(placed, Y)
    for budget in BUDGETS:
        yield Row(name, f"alignment at {budget:g}", within(alignment, coupling, budget))
    yield Row(name, "area", float(np.mean([within(alignment, coupling, budget) for budget in GRID])))


def frontier(placed: Array, Y: Array) -> tuple[Array, Array]:
    """Mean alignment, and coupling less what chance adds, of left-out rows in every setting."""
    n, p = Y.shape
    chance = p * (p - 1) / n
    alignment = [np.mean([correlation(z[:, j], Y[:, j]) for j in range(p)]) for z in placed]
    coupling = [sum(2 * correlation(z[:, i], z[:, j]) ** 2 for i in range(p) for j in range(i)) for z in placed]
    return np.array(alignment), np.array(coupling) - chance


def correlation(a: Array, b: Array) -> float:
    """corr(a, b), and 0 if one of them is constant."""
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / scale if scale > 0 else 0.0


def within(alignment: Array, coupling: Array, budget: float) -> float:
    """The largest alignment within a coupling budget, between two settings on the line that joins them.

    A method whose least coupling c is above the budget can keep a share s of its dimensions and set the others to a
    constant. That leaves s of its alignment and s^2 of its coupling, so it counts with sqrt(budget / c).
    """
    kept = np.flatnonzero(coupling <= budget)
    if not len(kept):
        least = int(np.argmin(coupling))
        return float(alignment[least] * np.sqrt(budget / coupling[least]))
    best, last = alignment[kept].max(), kept.max()
    if last + 1 < len(coupling):
        share = (budget - coupling[last]) / (coupling[last + 1] - coupling[last])
        best = max(best, alignment[last] + share * (alignment[last + 1] - alignment[last]))
    return float(best)


# -- other measures ---------------------------------------------------------------------------------------------------


def is_covered(said: Announced, z: Array, Y: Array, n_train: int) -> bool:
    """Whether the mean alignment of a left-out fold lies in the 90 % interval that the fit announced.

    The interval has the error of the announcement, s, and that of the fold, s sqrt(n_train / n_test).
    """
    own = z[entrants.LAMS.index(0.5)] if len(z) > 1 else z[0]  # the lambda of the default
    measured = np.mean([correlation(own[:, j], Y[:, j]) for j in range(Y.shape[1])])
    reach = norm.ppf((1 + LEVEL) / 2) * said.se * np.sqrt(1 + n_train / len(Y))
    return bool(abs(measured - said.alignment) <= reach)


def imputation_error(fit: Trained, old: Views, new: Views, truth: Views) -> float:
    """Root mean squared error of hidden cells of left-out rows, in standard deviations of the training rows."""
    gaps = {name: np.isnan(view) & ~np.isnan(truth[name]) for name, view in new.items()}
    if fit.rebuild is None or not any(gap.any() for gap in gaps.values()):
        return float("nan")
    rebuilt, squares = fit.rebuild(new), []
    for name, gap in gaps.items():
        sd = entrants.scale_of(old[name]).sd
        squares.append((((rebuilt[name] - truth[name]) / sd) ** 2)[gap])
    return float(np.sqrt(np.mean(np.concatenate(squares))))


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """TimeoutError after so many seconds of computation, in the main thread of systems that can count them."""

    def end(*_: object) -> None:
        raise TimeoutError(f"stopped after {seconds:g} seconds of computation")

    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return
    with handled(signal.SIGPROF, end):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def reset_peak() -> None:
    """Forget the peak of memory so far, on Linux."""
    with suppress(OSError):
        RESET.write_text("5")


def peak() -> float:
    """The most memory that this process had since, in megabytes; NaN where the system does not say."""
    with suppress(OSError):
        lines = STATUS.read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    return float("nan")
