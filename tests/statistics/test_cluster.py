"""Cluster: statements that need many repetitions, much memory or real data."""

# ruff: noqa: F811  (fixtures are imported by name)

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from covalign.moments import cluster, incomplete
from tests.conftest import correlated
from tests.system.test_cluster import (
    assert_same,
    chunk_that_waits,
    client,  # noqa: F401
    da,
)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("kills", [1, 2])
def test_workers_killed_in_the_middle_leave_no_trace(client, tmp_path, kills):
    Z, Y = correlated(16, n=1000, k=12)
    rows = da.map_blocks(chunk_that_waits, str(tmp_path), chunks=((100,) * 10, (12,)), dtype=float)
    found = []
    work = threading.Thread(target=lambda: found.append(cluster.fold_moments(rows, Y, 3, client=client)))
    work.start()
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("waits *"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    waiting = [tuple(map(int, path.name.split()[1:])) for path in tmp_path.glob("waits *")]
    known = [path.name.split()[1] for path in tmp_path.glob("done *")]
    assert len(waiting) == len(known) == 2
    assert work.is_alive()
    for start, pid in waiting[:kills]:
        assert pid != os.getpid()
        os.kill(pid, signal.SIGKILL)
        assert not (tmp_path / f"done {start} {pid}").exists()
    (tmp_path / "go").touch()
    work.join(120)
    assert_same(found[0], incomplete.fold_moments(Z, Y, 3))
    for start, pid in waiting[:kills]:  # what they were at was done by somebody else
        assert list(tmp_path.glob(f"done {start} *"))
        assert not (tmp_path / f"done {start} {pid}").exists()
    if kills == 2:  # and what only they knew was computed again; one alone may have sent its share to the other before
        assert all(len(list(tmp_path.glob(f"done {start} *"))) == 2 for start in known)
