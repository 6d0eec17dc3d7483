"""The study on a dask cluster: the numbers of this machine, a lost worker, an interruption."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from covalign.study import runner
from covalign.study.experiments import EXPERIMENTS
from covalign.study.profiles import TINY, Inputs
from covalign.study.results_store import Row, Store, Unit

EXPERIMENTS_RUN = ["theorems", "consistency"]
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
typer_testing = pytest.importorskip("typer.testing")


def reproduce(*arguments: str):
    from covalign.cli import app

    return typer_testing.CliRunner().invoke(app, ["reproduce", *arguments])


def test_a_cluster_gives_the_same_numbers_and_goes_on(two_workers, tmp_path):
    here, there = (Store(tmp_path / name / "results") for name in ("here", "there"))
    assert runner.run(EXPERIMENTS_RUN, TINY, Inputs(), here).failed == {}
    with runner.connected(two_workers.scheduler_address) as client:
        outcome = runner.run(EXPERIMENTS_RUN, TINY, Inputs(), there, client=client)
        assert outcome.failed == {}
        assert outcome.done == 3
        assert runner.run(EXPERIMENTS_RUN, TINY, Inputs(), there, client=client).done == 0
    for name in EXPERIMENTS_RUN:
        a, b = (store.frame(name).sort_values(["method", "setting", "rep", "metric"]) for store in (here, there))
        assert len(a) > 0
        np.testing.assert_allclose(a["value"], b["value"], rtol=1e-9)


def test_the_command_runs_there(two_workers, tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("measured here")

    monkeypatch.setattr(runner, "measure", refuse)  # the workers have their own
    result = reproduce("sup_consistency", "--tiny", "--dask", two_workers.scheduler_address, "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    units = Store(tmp_path / "results").units("consistency")
    assert units == set(EXPERIMENTS["consistency"].units(TINY, Inputs()))


def test_nobody_there(tmp_path):
    wrong = reproduce("sup_scenarios", "--tiny", "--dask", "nonsense://x", "--out", str(tmp_path))
    assert wrong.exit_code == 2
    assert "dask scheduler" in wrong.stderr


def waiting(unit, profile, inputs):
    """A unit that leaves word of who runs it; the first waits for permission to finish."""
    folder = Path(unit.setting)
    (folder / f"unit {unit.rep} {os.getpid()}").touch()
    while unit.rep == 0 and not (folder / "go").exists():
        time.sleep(0.02)
    return [Row(unit.method, "pid", float(os.getpid()))]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_the_unit_of_a_killed_worker_is_run_again(two_workers, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "measure_alone", waiting)
    units = [Unit("population", "T", str(tmp_path), rep) for rep in range(6)]
    done = []

    with distributed.Client(two_workers, set_as_default=False) as client:
        thread = threading.Thread(target=lambda: done.extend(runner.sent(units, TINY, Inputs(), client)))
        thread.start()
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("unit 0 *")) and time.monotonic() < deadline:
            time.sleep(0.02)
        (first,) = tmp_path.glob("unit 0 *")
        pid = int(first.name.split()[-1])
        assert pid != os.getpid()
        os.kill(pid, signal.SIGKILL)
        (tmp_path / "go").touch()
        thread.join(60)
    assert {unit.rep for unit, _ in done} == set(range(6))
    assert all(isinstance(rows, list) for _, rows in done)
    assert len(list(tmp_path.glob("unit 0 *"))) == 2


def test_an_interruption_leaves_nothing_running(two_workers, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "measure_alone", waiting)
    units = [Unit("population", "T", str(tmp_path), rep) for rep in (1, 0, 0, 0, 0)]
    with runner.connected(two_workers.scheduler_address) as client:
        results = runner.sent(units, TINY, Inputs(), client)
        assert next(results)[0].rep == 1
        results.close()
        (tmp_path / "go").touch()
        deadline = time.monotonic() + 10
        while any(client.processing().values()) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not any(client.processing().values())
        assert len(list(tmp_path.glob("unit 0 *"))) <= 2  # those that had begun
