"""Run the units that are not finished: in several processes, with a progress bar. It can be stopped at any time."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from itertools import count
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning

from covalign._core.extras import optional
from covalign._core.files import write_text
from covalign._core.interrupts import handled
from covalign._core.messages import message
from covalign._core.progress import Progress
from covalign._core.threads import limited
from covalign.study.baselines import peers
from covalign.study.baselines.method import versions_of
from covalign.study.contenders import expected_seconds
from covalign.study.experiments import EXPERIMENTS
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Row, Store, Unit

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Outcome(NamedTuple):
    """The outcome of a run: units done, units that failed (with the last line of the error), methods not installed."""

    done: int
    failed: dict[str, str]
    absent: dict[str, str]


class Made(NamedTuple):
    """What a command made: the files, the names that were left out and why, and the outcome of the run."""

    files: list[Path]
    skipped: dict[str, str]
    outcome: Outcome


class Resources(NamedTuple):
    """How a study is run: processes (all cores without a number), other packages, the address of a dask cluster.

    ``redraw`` runs nothing: it uses existing results only.
    """

    jobs: int | None = None
    peers: bool = True
    redraw: bool = False
    dask: str | None = None


def run_with(
    resources: Resources, experiments: Sequence[str], profile: Profile, inputs: Inputs, store: Store
) -> Outcome:
    """Run what the store does not have, by these resources."""
    if resources.redraw:
        return Outcome(0, {}, {})
    with connected(resources.dask) as client:
        jobs = resources.jobs or os.cpu_count() or 1
        return run(experiments, profile, inputs, store, jobs, resources.peers, client)


def run(
    experiments: Sequence[str],
    profile: Profile,
    inputs: Inputs,
    store: Store,
    jobs: int = 1,
    with_peers: bool = True,
    client: Any = None,
) -> Outcome:
    """Run every unit of these experiments that the store does not have. Ctrl-C keeps the store intact.

    With the client of a dask cluster, units run there, except timed ones, which run here. Results are written here, so
    workers need no common disk, only covalign and the data at the paths of the inputs.
    """
    wanted = [unit for name in experiments for unit in EXPERIMENTS[name].units(profile, inputs)]
    absent = absentees(wanted, with_peers)
    finished = set().union(*(store.units(name) for name in experiments)) if experiments else set()
    left = [unit for unit in wanted if unit.method not in absent and unit not in finished]
    failed: dict[str, str] = {}
    if left:
        remember_environment(store.folder)
    together = [unit for unit in left if not EXPERIMENTS[unit.experiment].alone]
    alone = [unit for unit in left if EXPERIMENTS[unit.experiment].alone]
    with single_threaded(), ended_properly(), progress(left) as tick:
        here = measured(alone, profile, inputs, 1)
        many = measured(together, profile, inputs, jobs) if client is None else sent(together, profile, inputs, client)
        for generator in (many, here):
            with closing(generator) as results:
                for unit, result in results:
                    if isinstance(result, str):
                        failed[f"{unit.experiment}: {unit.method}, {unit.setting}, repetition {unit.rep}"] = result
                    else:
                        store.append(unit, result)
                    tick(unit)
    return Outcome(len(left) - len(failed), failed, absent)


def absentees(units: Sequence[Unit], with_peers: bool) -> dict[str, str]:
    """Methods among the units that cannot run here, and why."""
    names: dict[str, set[str]] = {}
    for unit in units:
        names.setdefault(unit.experiment, set()).add(unit.method)
    found = {}
    for method in (one for experiment, some in names.items() for one in EXPERIMENTS[experiment].methods(sorted(some))):
        why = "left out on request" if not with_peers and isinstance(method, peers.Peer) else method.absent()
        if why is not None:
            found[method.name] = why
    return found


def measure(unit: Unit, profile: Profile, inputs: Inputs) -> list[Row] | str:
    """The rows of a unit, or the last line of its error."""
    result = attempted(EXPERIMENTS[unit.experiment].measure(unit, profile, inputs))
    return last_line(result) if isinstance(result, Exception) else result


def attempted(rows: Iterator[Row]) -> list[Row] | Exception:
    """All rows of a generator, or its error: one failure must not end the whole run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # budgets are part of the comparison
            return list(rows)
    except Exception as error:
        return error


def last_line(error: Exception) -> str:
    """The last line of a traceback."""
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]


def measured(
    units: Sequence[Unit], profile: Profile, inputs: Inputs, jobs: int
) -> Generator[tuple[Unit, list[Row] | str], None, None]:
    """Units with their results, as they finish."""
    if jobs <= 1 or len(units) <= 1:
        for unit in units:
            yield unit, measure(unit, profile, inputs)
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=leave_interrupts_to_the_parent)
    try:
        running = {pool.submit(measure, unit, profile, inputs): unit for unit in slowest_first(units)}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in active_children():
            child.terminate()
        raise
    pool.shutdown()


def sent(
    units: Sequence[Unit], profile: Profile, inputs: Inputs, client: Any
) -> Generator[tuple[Unit, list[Row] | str], None, None]:
    """Units with their results, as a dask cluster finishes them. If a worker is lost, its unit runs again."""
    as_completed = optional("distributed", "dask").as_completed
    options = {"pure": False, "priority": 0, "retries": 3}
    running = {client.submit(measure_alone, unit, profile, inputs, **options): unit for unit in slowest_first(units)}
    try:
        with client.as_current():
            finished = as_completed(list(running))
        for future in finished:
            error = future.exception()
            yield running.pop(future), future.result() if error is None else f"{type(error).__name__}: {error}"
    finally:  # in any case: the cluster belongs to others, and no one waits for these results
        client.cancel(list(running))


def slowest_first(units: Sequence[Unit]) -> list[Unit]:
    """Units in the order in which they start, so that no slow one starts last."""
    return sorted(units, key=lambda unit: -expected_seconds(unit.method))


def measure_alone(unit: Unit, profile: Profile, inputs: Inputs) -> list[Row] | str:
    """``measure`` in a worker of a cluster, on one thread."""
    with single_threaded():
        return measure(unit, profile, inputs)


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """The client of the dask cluster at this address, closed afterwards; None without one."""
    if address is None:
        yield None
        return
    Client = optional("distributed", "dask").Client
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        remedy = "Start one with  dask scheduler  and give its address, tcp://host:8786"
        raise ValueError(message(f"no dask scheduler answers at {address!r} ({error})", remedy=remedy)) from None
    with client:
        if not client.scheduler_info()["workers"]:
            problem = f"the dask scheduler at {address!r} has no workers"
            raise ValueError(message(problem, remedy=f"Start some with  dask worker {address}"))
        yield client


@contextmanager
def ended_properly() -> Iterator[None]:
    """SIGTERM is handled like Ctrl-C, so that the processes started here end, too."""

    def end(*_: object) -> None:
        sys.exit(143)

    with handled(signal.SIGTERM, end):
        yield


def leave_interrupts_to_the_parent() -> None:
    """In a worker: ignore Ctrl-C; the parent handles it and ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def single_threaded() -> Iterator[None]:
    """One thread per process, here and in processes started here: repetitions run in parallel."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        with limited():
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@contextmanager
def progress(units: Sequence[Unit]) -> Iterator[Callable[[Unit], None]]:
    """A function to call after each unit. The bar counts expected seconds of work: units differ a lot."""
    with Progress(sum(expected_seconds(unit.method) for unit in units)) as bar:
        numbers = count(1)

        def tick(unit: Unit) -> None:
            text = f"{next(numbers)}/{len(units)}  {unit.experiment}: {unit.method}"
            bar.advance(expected_seconds(unit.method), text)

        yield tick


def remember_environment(folder: Path) -> None:
    """Write the versions of packages beside the results."""
    versions = versions_of("covalign", "numpy", "scipy", "scikit-learn", "pandas", "torch")
    python = peers.interpreter()
    for packages in peers.ask(python)[0].values() if python else ():
        versions |= {f"{name} (peers)": version for name, version in packages.items() if version is not None}
    folder.mkdir(parents=True, exist_ok=True)
    versions["cores"] = str(os.cpu_count())
    write_text(folder / "environment.json", json.dumps(versions, indent=1) + "\n")
