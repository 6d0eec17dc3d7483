"""Factor scale: statements that need many repetitions, much memory or real data."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.system.test_factor_scale import MEASURE


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in other units elsewhere")
def test_peak_memory_is_some_chunks(tmp_path):
    """240 MB of float32, chunks of 16 MB; in memory no copy in float64 (480 MB) is made."""
    n, d = 1_200_000, 50
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(n, d))
    rng = np.random.default_rng(0)
    for i in range(0, n, 100_000):
        X[i : i + 100_000] = rng.standard_normal((100_000, d), dtype=np.float32)
    np.save(tmp_path / "Y.npy", X[:, :1].astype(np.float64))
    X.flush()

    def peak(kind: str) -> float:
        command = [sys.executable, "-c", MEASURE, kind, str(tmp_path / "X.npy"), str(tmp_path / "Y.npy")]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024

    factors, chunks = n * 5 * 8 / 2**20, 8 * 16
    assert peak("path") < factors + chunks
    assert peak("memory") < chunks
    assert peak("memmap") < factors + chunks + 240  # the pages of a map count as memory while they are touched
