"""The cost of a fit before it is run: passes, bytes, memory and time, from sizes and the rates of a machine.

With n rows, K dimensions and P covariates, q = K + P; F folds; W workers of c cores each; b bytes a number:

    read      n K b / (W r)                every row once
    centre    n q / (W c g)                rows to float64, sorted by fold, centred: bound by memory
    gram      n q (q + 1) / (W c s)        the symmetric product, multiplications and additions
    merge     ceil(t / W) F q^2 / m        t tasks, each of which makes and merges the sums of F folds
    travel    8 F q^2 (4 L) / w            L = ceil(log_4 t) levels of the tree, four sums to a place; none if W = 1
    dask      .45 (centre + gram)          the overhead of dask on busy cores (benchmarks/cluster.py); none if W = 1
    solve     (ceil(F / c) + 1) K^3 / e    decompositions of all folds, c at a time, in one place

A worker reads, then computes. Where reading and computing overlap (files, on one machine) this is an upper bound.
Informed factor analysis takes the product of [X Y] instead, F = 1, and its sweeps do not depend on n.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from covalign._core.checks import MOST_FOLDS, too_many_folds
from covalign._core.data_errors import too_many_covariates
from covalign._core.linalg import add_gram
from covalign._core.messages import message
from covalign._core.text_tables import plain
from covalign._core.threads import limited
from covalign.moments.accumulator import Accumulator
from covalign.moments.moments import Moments
from covalign.stream.dask_reduction import FAN_IN, LEAST_BYTES, MOST_BYTES, TASKS
from covalign.stream.folds import FoldSorter
from covalign.stream.reduction import BLOCK_BYTES

SWEEPS = 30  # of informed factor analysis until convergence
DASK = 0.45  # of the work: scheduler, worker threads, new chunks; measured with two workers on two cores
CHUNK_BYTES = 2**27  # the size of a chunk that dask recommends


class Job(NamedTuple):
    """The sizes of a fit. With ``n_factors`` the cost of informed factor analysis is estimated, too."""

    n_samples: int
    n_features: int
    n_covariates: int
    workers: int = 1
    cores: int = 1  # of a worker
    itemsize: int = 4
    folds: int = 5
    n_factors: int | None = None

    @property
    def q(self) -> int:
        """K + P."""
        return self.n_features + self.n_covariates

    @property
    def data_bytes(self) -> int:
        """n K b."""
        return self.n_samples * self.n_features * self.itemsize


class Rates(NamedTuple):
    """The work of a core, the disk or the network in a second."""

    gram: float  # flops of the symmetric product in float64
    centre: float  # numbers converted to float64, sorted by fold and centred
    merge: float  # entries of a covariance matrix that is allocated and merged into another one
    solve: float  # K^3 of a symmetric eigendecomposition
    read: float  # bytes that a worker reads; infinite if the data are in memory
    network: float = 1e9  # bytes between two workers


class Term(NamedTuple):
    """A row of the table of costs."""

    name: str
    formula: str
    value: float
    unit: str


def checked(
    n_samples: float,
    n_features: float,
    n_covariates: float,
    workers: float = 1,
    cores: float = 1,
    dtype: str = "float32",
    folds: float = 5,
    n_factors: float | None = None,
) -> Job:
    """The job, if its numbers are whole, positive and consistent."""
    numbers = {"n_samples": n_samples, "n_features": n_features, "n_covariates": n_covariates}
    numbers |= {"workers": workers, "cores": cores, "folds": folds}
    numbers |= {} if n_factors is None else {"n_factors": n_factors}
    for name, value in numbers.items():
        if not (isinstance(value, int | float) and 1 <= value <= 1e18 and float(value).is_integer()):
            remedy = "write for example 1000 or 1e9"
            raise ValueError(message(f"{name} needs a whole number of at least 1", got=value, remedy=remedy))
    if folds > MOST_FOLDS:
        raise too_many_folds(int(folds), f"at most {MOST_FOLDS}")
    if dtype not in ("float32", "float64"):
        raise ValueError(message("dtype needs float32 or float64, the precision of the stored data", got=repr(dtype)))
    if n_factors is not None and n_covariates > n_features:  # the strongest regime of an aligner takes any number
        raise too_many_covariates(int(n_covariates), int(n_features))
    return Job(**{name: int(value) for name, value in numbers.items()}, itemsize=np.dtype(dtype).itemsize)


def tasks(job: Job) -> int:
    """The number of sums to merge: those of the tasks of a cluster, or of the threads of a process."""
    if job.workers == 1:
        return job.cores
    return max(1, math.ceil(job.data_bytes / min(max(job.data_bytes / TASKS, LEAST_BYTES), MOST_BYTES)))


def aligner(job: Job, rates: Rates) -> list[Term]:
    """Seconds of every step of ``LatentAligner.fit``, by the formulas at the top of this file."""
    solve = (math.ceil(job.folds / job.cores) + 1) * job.n_features**3 / rates.solve
    return [*_one_pass(job, rates, job.folds), Term("solve", "(ceil(F / c) + 1) K^3 / e", solve, "s")]


def factor_analysis(job: Job, rates: Rates) -> list[Term]:
    """Seconds of every step of ``InformedFactorAnalysis.fit`` with more rows than features."""
    D, K = job.n_features, job.n_factors or 0
    sweeps = SWEEPS * 4 * D * D * K / (job.cores * rates.gram)
    return [*_one_pass(job, rates, 1), Term("sweeps", f"{SWEEPS} 4 D^2 K / (c s)", sweeps, "s")]


def _one_pass(job: Job, rates: Rates, folds: int) -> list[Term]:
    n, q, W, c, t = job.n_samples, job.q, job.workers, job.cores, tasks(job)
    levels = math.ceil(math.log(t, FAN_IN)) if t > 1 else 0
    merge = math.ceil(t / W) * folds * q * q / rates.merge
    travel = 0.0 if W == 1 else 8 * folds * q * q * FAN_IN * levels / rates.network
    centre, gram = n * q / (W * c * rates.centre), n * q * (q + 1) / (W * c * rates.gram)
    return [
        Term("read", "n K b / (W r)", job.data_bytes / (W * rates.read), "s"),
        Term("centre", "n q / (W c g)", centre, "s"),
        Term("gram", "n q (q + 1) / (W c s)", gram, "s"),
        Term("merge", f"ceil(t / W) F q^2 / m, F = {folds}, t = {t}", merge, "s"),
        Term("travel", f"8 F q^2 {FAN_IN} L / w, L = {levels}", travel, "s"),
        Term("dask", f"{DASK:g} (centre + gram)", DASK * (centre + gram) if W > 1 else 0.0, "s"),
    ]


def sizes(job: Job) -> list[Term]:
    """Passes over the data, bytes read, bytes between workers, memory of a worker."""
    sums, several = 8 * job.folds * job.q**2, job.workers > 1
    chunk = min(CHUNK_BYTES, job.data_bytes)
    memory = job.cores * (chunk + 2 * sums + job.folds * BLOCK_BYTES) + (FAN_IN * sums if several else 0)
    return [
        Term("passes", "fit: 1, transform: 1", 1.0, ""),
        Term("bytes read", "n K b", job.data_bytes, "B"),
        Term("bytes between workers", "at most 8 F q^2 (t - 1)", sums * (tasks(job) - 1) if several else 0.0, "B"),
        Term("memory of a worker", "c (chunk + 16 F q^2 + 8 MB F) + 32 F q^2", memory, "B"),
    ]


def total(terms: list[Term]) -> float:
    """Seconds of all steps."""
    return sum(term.value for term in terms if term.unit == "s")


# -- for readers ------------------------------------------------------------------------------------------------------


def parts(job: Job, rates: Rates) -> dict[str, list[Term]]:
    """The tables: sizes, then the steps of every estimator."""
    fits = {"LatentAligner": aligner(job, rates)}
    if job.n_factors is not None:
        fits["InformedFactorAnalysis"] = factor_analysis(job, rates)
    return {"sizes": sizes(job), **fits}


def page(job: Job, rates: Rates) -> str:
    """Sizes and rates, then the tables (step, formula, value), with the sum of seconds."""
    core = f"{rates.gram / 1e9:.1f} GFLOP/s (s), {rates.centre / 1e6:.0f} M numbers/s centred (g)"
    once = f"{rates.merge / 1e6:.0f} M entries/s merged (m), K^3 = {rates.solve / 1e9:.1f}e9/s solved (e)"
    links = f"{rates.read / 1e9:.2f} GB/s read (r), {rates.network / 1e9:.2f} GB/s between workers (w)"
    lines = [
        f"n = {job.n_samples:,}, K = {job.n_features}, P = {job.n_covariates}, "
        f"q = K + P = {job.q}, "
        f"b = {job.itemsize}, F = {job.folds}, W = {job.workers} workers with c = {job.cores} core(s)",
        f"a core: {core}",
        f"        {once}",
        f"links:  {links}",
    ]
    for title, terms in parts(job, rates).items():
        rows = [(term.name, term.formula, readable(term.value, term.unit)) for term in terms]
        rows += [("expected time", "sum", readable(total(terms), "s"))] if title != "sizes" else []
        lines += ["", title, *plain([], rows, left=2)]
    return "\n".join(lines)


def facts(job: Job, rates: Rates) -> dict[str, Any]:
    """The same as a dict."""
    found = parts(job, rates)
    return {
        "job": job._asdict(),
        "rates": rates._asdict(),
        "terms": {title: [term._asdict() for term in terms] for title, terms in found.items()},
        "seconds": {title: total(terms) for title, terms in found.items() if title != "sizes"},
    }


def readable(value: float, unit: str) -> str:
    """A number with the unit that suits its size."""
    if unit == "B":
        power = min(4, max(0, int(math.log10(max(value, 1)) // 3)))
        return f"{value / 1000**power:.3g} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"
    if unit == "s":
        for size, name in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
            if value >= 2 * size:
                return f"{value / size:.3g} {name}"
        return f"{value:.3g} s"
    return f"{value:g}"


# -- this machine -----------------------------------------------------------------------------------------------------


def measured(job: Job, *, read: float | None = None, network: float = 1e9) -> Rates:
    """Measure the rates of this machine at the sizes of the job, with all cores busy, in a few seconds.

    ``read`` in bytes a second replaces the measurement of the disk for temporary files.
    """
    cores, q = os.cpu_count() or 1, min(job.q, 2048)
    rows = int(np.clip(BLOCK_BYTES // (8 * q), 64, 8192))
    with limited():
        gram = _per_core(lambda: _gram_work(rows, q), cores) * rows * q * (q + 1)
        centre = _per_core(lambda: _centre_work(rows, q, job), cores) * rows * q
        solve = _solve_rate(min(job.n_features, 768))
    return Rates(gram, centre, _merge_rate(min(q, 1024)), solve, read or _disk(), network)


def _per_core(make: Callable[[], Callable[[], object]], cores: int, seconds: float = 0.3) -> float:
    """How often a core does the work in a second while all cores do it; the first time does not count."""
    works = [make() for _ in range(cores)]

    def often(work: Callable[[], object]) -> float:
        work()
        took: list[float] = []
        begin = time.perf_counter()
        while len(took) < 3 or time.perf_counter() - begin < seconds:
            start = time.perf_counter()
            work()
            took.append(time.perf_counter() - start)
        return 1 / float(np.median(took))

    with ThreadPoolExecutor(cores) as pool:
        return float(np.mean(list(pool.map(often, works))))


def _gram_work(rows: int, q: int) -> Callable[[], object]:
    B, C = np.random.default_rng(0).standard_normal((rows, q)), np.zeros((q, q))
    return lambda: add_gram(C, B)


def _centre_work(rows: int, q: int, job: Job) -> Callable[[], object]:
    """The work on rows before the product: sort them by fold, convert them to float64, centre them."""
    Z = np.ones((8 * rows, max(1, q - job.n_covariates)), dtype=np.float32 if job.itemsize == 4 else np.float64)
    Z += np.arange(len(Z), dtype=Z.dtype)[:, None]
    Y = np.ones((len(Z), q - Z.shape[1]))
    block, sorter, at = np.empty((rows, Z.shape[1])), FoldSorter(job.folds), [0]

    def work() -> None:
        at[0] = (at[0] + rows) % len(Z)
        some, labels = Z[at[0] : at[0] + rows], Y[at[0] : at[0] + rows]
        for _, z, _ in sorter.sorted(some, labels):
            np.subtract(z, Z[0], out=block[: len(z)])
            block[: len(z)] -= block[: len(z)].mean(axis=0)

    return work


def _merge_rate(q: int) -> float:
    m = Moments.from_covariances(np.eye(q), np.ones((q, 1)) / q, np.eye(1), n=10)

    def work() -> None:
        Accumulator(q, 1).add(np.zeros((1, q)), np.zeros((1, 1)))
        m + m  # the sum is measured

    return q * q * _per_core(lambda: work, 1, 0.2)


def _solve_rate(k: int) -> float:
    S = np.cov(np.random.default_rng(0).standard_normal((k, 2 * k)))
    return k**3 * _per_core(lambda: lambda: np.linalg.eigh(S), 1, 0.3)


def _disk(size: int = 2**27) -> float:
    """Bytes in a second from a file that is not in the cache of the system."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(os.urandom(2**20) * (size >> 20))
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        start = time.perf_counter()
        while file.read(2**24):
            pass
        return size / (time.perf_counter() - start)
