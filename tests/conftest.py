"""Shared makers of data, and where the real data are if they are here."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

matplotlib.use("Agg")

# Jobs that a shell runs in the background ignore Ctrl-C, and so would tests of it and the processes that they start.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A runner of typer builds all commands for every call, which takes longer than most calls.
with suppress(ImportError, AttributeError):
    from typer import testing

    testing._get_command = cache(testing._get_command)

# Random inputs come from a seed drawn by hypothesis; the same seeds every run, so a failure is everyone's failure.
# ``make test-all`` draws more of them, with ``--hypothesis-profile thorough``.
same_for_all = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("covalign", same_for_all, max_examples=5)
settings.register_profile("thorough", same_for_all, max_examples=100)
settings.load_profile("covalign")

# Long files run first: otherwise one process may still be busy with one of them when the others are done.
LONGEST = [
    "test_study.py",
    "test_intervals.py",
    "test_real_data.py",
    "test_study_cluster.py",
    "test_report_browser.py",
    "test_report_access.py",
    "test_pages_browser.py",
    "test_commands.py",
    "test_embed.py",
    "test_cluster_estimators.py",
    "test_cluster.py",
    "test_compare.py",
    "test_factor_model.py",
    "test_cli.py",
    "test_aligner_confounders.py",
    "test_aligner_storage.py",
    "test_cli_fit.py",
    "test_plot_factors.py",
    "test_factor_gaps.py",
    "test_tutorials.py",
    "test_rows.py",
    "test_rows_sink.py",
    "test_groups.py",
    "test_aligner_scale.py",
    "test_scverse.py",
    "test_aligner.py",
    "test_factor_kernel.py",
    "test_packaging.py",
    "test_peers.py",
    "test_resume.py",
    "test_gallery.py",
]

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The order of ``LONGEST``, then that of collection; pytest-xdist keeps it with ``--no-loadscope-reorder``.

    Tests and cases with the mark ``thorough`` run only in ``make test-all``.
    """
    if not is_thorough(config):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("thorough")])
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


def is_thorough(config: pytest.Config) -> bool:
    """Whether every case is wanted, as in ``make test-all``."""
    return config.getoption("--hypothesis-profile") == "thorough"


def thorough(*cases: object) -> list[object]:
    """Cases of a parametrised test that only ``make test-all`` needs: they cost much, and others are like them."""
    return [pytest.param(case, marks=pytest.mark.thorough) for case in cases]


@pytest.fixture(scope="session")
def shared_data():
    """A function giving the folder of a real data set, or skipping the test."""

    def folder(name: str) -> Path:
        if not (SHARED / name).is_dir():
            pytest.skip(f"the real data set {name} is not at {SHARED / name}")
        return SHARED / name

    return folder


@pytest.fixture(scope="module")  # while it is open, no other event loop can run in this thread
def browser():
    """Tabs of Chromium."""
    from tests.browser import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")  # its threads allocate, which tests of memory would count
def two_workers():
    """A dask cluster of two worker processes on this machine."""
    with workers(processes=True) as local:
        yield local


def workers(*, processes: bool):
    """A dask cluster of two workers."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    where = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1"} if processes else {"dashboard_address": None}
    options = {"memory_limit": "1GB", "silence_logs": 60, "processes": processes, **where}
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options)


@pytest.fixture(scope="module")
def default_client(pytestconfig):
    """Two workers, used by whatever dask computes in a module: processes in ``make test-all``, otherwise threads."""
    from distributed import Client

    with workers(processes=is_thorough(pytestconfig)) as local, Client(local) as client:
        yield client


def correlated(seed: int, n: int = 200, k: int = 6, p: int = 3, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Z (n x k) and Y (n x p): correlated columns on both sides, and a dependence between them."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, p))
    Y = shared @ rng.standard_normal((p, p)) + 0.3 * rng.standard_normal((n, p))
    Z = rng.standard_normal((n, k)) @ rng.standard_normal((k, k)) + shared @ rng.standard_normal((p, k))
    return Z + offset, Y + offset


def embedding(seed: int, n: int, k: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Many dimensions, each with a little of the covariates and much of its own, as in pretrained embeddings."""
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((n, p))
    directions = np.random.default_rng(0).standard_normal((p, k))  # the same for every seed: new rows, same encoder
    return Y @ directions / np.sqrt(k / 8) + rng.standard_normal((n, k)), Y


def folds_of_rows(Z, Y, folds: int = 5, n_confounders: int = 0):
    """The fold of every row, packed of buckets as the library does it."""
    from covalign.closed_form.fold_packing import packed
    from covalign.moments import gap_accumulator
    from covalign.moments.block_sizes import bucket_count
    from covalign.stream.folds import fold_of_rows

    bucket = fold_of_rows(Z, Y, bucket_count(folds, Z.shape[1] + Y.shape[1] + n_confounders))
    parts = [
        None if not (bucket == b).any() else gap_accumulator.fold_moments(Z[bucket == b], Y[bucket == b], 1)[0]
        for b in range(bucket.max() + 1)
    ]
    fold = np.empty(len(Z), dtype=int)
    for f, pack in enumerate(packed(parts, folds)):
        fold[np.isin(bucket, pack)] = f
    return fold
