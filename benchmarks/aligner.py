"""Ratios of the aligner to the hardware's limit, in one run: every row is measured next to its reference.

python benchmarks/aligner.py [--rows 200000] [--dims 768] [--covariates 20] [--repeats 5]
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import covalign as ca


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def make(rows: int, dims: int, covariates: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    Z = np.empty((rows, dims), dtype=dtype)
    rng.standard_normal(out=Z, dtype=dtype)
    Y = Z[:, :covariates] + rng.standard_normal((rows, covariates))
    return Z, Y


def ratios(args: argparse.Namespace) -> list[tuple[str, str, float, float, float | None]]:
    """(what, relative to, seconds, ratio, allowed). References and ours are interleaved; medians are compared."""
    Z, Y = make(args.rows, args.dims, args.covariates, np.float64)
    Z32 = Z.astype(np.float32)
    fixed, auto = ca.LatentAligner(shrinkage=0.1), ca.LatentAligner()
    works: dict[str, Callable[[], object]] = {
        "Z.T @ Z": lambda: Z.T @ Z,
        "fit, shrinkage=0.1": lambda: fixed.fit(Z, Y),
        "fit, shrinkage='auto'": lambda: auto.fit(Z, Y),
        "fit float32, shrinkage=0.1": lambda: ca.LatentAligner(shrinkage=0.1).fit(Z32, Y),
        "at(lam=0.9)": lambda: fixed.at(lam=0.9).transform_,
        "at(max_coupling=0.5)": lambda: fixed.at(max_coupling=0.5).transform_,
        "transform": lambda: fixed.transform(Z),
        "cross_validated_frontier, 21 lambdas": lambda: ca.cross_validated_frontier(Z, Y),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(args.repeats):
        for name, work in works.items():
            times[name].append(seconds(work))
    median = {name: statistics.median(values) for name, values in times.items()}
    table: list[tuple[str, str, float | None]] = [
        ("fit, shrinkage=0.1", "Z.T @ Z", 1.3),
        ("fit, shrinkage='auto'", "Z.T @ Z", 2.0),
        ("fit float32, shrinkage=0.1", "fit, shrinkage=0.1", 1.5),
        ("at(lam=0.9)", "fit, shrinkage=0.1", 0.01),
        ("at(max_coupling=0.5)", "fit, shrinkage=0.1", 0.01),
        ("transform", "Z.T @ Z", None),
        ("cross_validated_frontier, 21 lambdas", "Z.T @ Z", None),
    ]
    rows = [("Z.T @ Z", "itself", median["Z.T @ Z"], 1.0, None)]
    return rows + [(a, b, median[a], median[a] / median[b], allowed) for a, b, allowed in table]


def peak_extra_megabytes(args: argparse.Namespace, shrinkage: str) -> float:
    """Growth of the peak resident size during fit, in a process of its own."""
    command = [sys.executable, __file__, "--peak", shrinkage, "--rows", str(args.rows), "--dims", str(args.dims)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(args: argparse.Namespace) -> None:
    Z, Y = make(args.rows, args.dims, args.covariates, np.float64)
    small = ca.LatentAligner().fit(Z[:2000], Y[:2000])  # loads every library first
    before = peak_resident_megabytes()
    small.set_params(shrinkage=args.peak if args.peak == "auto" else float(args.peak)).fit(Z, Y)
    print(peak_resident_megabytes() - before)


def peak_resident_megabytes() -> float:
    """The high-water mark of this process alone (getrusage would carry over that of the process which started it)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--dims", type=int, default=768)
    parser.add_argument("--covariates", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak:
        return print_peak(args)
    print(
        f"{args.rows} x {args.dims} float64, {args.covariates} covariates, median of {args.repeats} interleaved runs\n"
    )
    print(f"{'what':40} {'relative to':22} {'seconds':>9} {'ratio':>8} {'allowed':>8}")
    for what, reference, time_taken, ratio, allowed in ratios(args):
        print(f"{what:40} {reference:22} {time_taken:9.4f} {ratio:8.4f} {'' if allowed is None else allowed:>8}")
    for shrinkage in ("0.1", "auto"):
        extra = peak_extra_megabytes(args, shrinkage)
        print(f"{f'peak extra memory, shrinkage={shrinkage}':40} {'MB':22} {extra:9.0f} {'':8} {300:>8}")
    return None


if __name__ == "__main__":
    main()
