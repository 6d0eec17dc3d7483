"""Tools of all benchmarks: interleaved measurements, medians, a table of ratios and limits, peak memory."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

Work = Callable[[], object]


def median_seconds(
    works: dict[str, Work],
    repeats: int,
    *,
    before: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of every work. The works are interleaved, so that other load on the machine affects all alike."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            before()
            begun = clock()
            work()
            taken[name].append(clock() - begun)
    return {name: statistics.median(times) for name, times in taken.items()}


def head() -> None:
    print(f"{'what':44} {'relative to':34} {'seconds':>9} {'reference':>9} {'ratio':>8} {'allowed':>8}", flush=True)


def row(what: str, reference: str, ours: float, theirs: float, allowed: float | None = None) -> None:
    limit = "" if allowed is None else allowed
    print(f"{what:44} {reference:34} {ours:9.4f} {theirs:9.4f} {ours / theirs:8.4f} {limit:>8}", flush=True)


def memory_row(what: str, megabytes: float, allowed: float) -> None:
    print(f"{'peak extra memory, ' + what:44} {'MB':34} {megabytes:9.0f} {'':9} {'':8} {allowed:>8}", flush=True)


def peak_megabytes() -> float:
    """The peak memory of this process alone (getrusage would include that of the process that started it)."""
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024
