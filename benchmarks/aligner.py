"""Ratios of the aligner to the limit of the hardware, in one run: every row is measured next to its reference.

python benchmarks/aligner.py [--rows 200000] [--dims 768] [--covariates 20] [--repeats 5]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import numpy as np
from timing import Work, head, median_seconds, memory_row, peak_megabytes, row

import covalign as ca


def make(rows: int, dims: int, covariates: int, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    Z = np.empty((rows, dims), dtype=dtype)
    rng.standard_normal(out=Z, dtype=dtype)
    Y = Z[:, :covariates] + rng.standard_normal((rows, covariates))
    return Z, Y


def in_chunks(Z: np.ndarray, rows: int = 2048) -> np.ndarray:
    """Z.T @ Z, the sum of the products of chunks."""
    total = np.zeros((Z.shape[1], Z.shape[1]), dtype=Z.dtype)
    for i in range(0, len(Z), rows):
        total += Z[i : i + rows].T @ Z[i : i + rows]
    return total


def ratios(args: argparse.Namespace) -> None:
    """References and ours are interleaved; medians are compared."""
    Z, Y = make(args.rows, args.dims, args.covariates, np.float64)
    Z32 = Z.astype(np.float32)
    fixed, auto = ca.LatentAligner(shrinkage=0.1), ca.LatentAligner()
    works: dict[str, Work] = {
        "Z.T @ Z": lambda: Z.T @ Z,
        "fit, shrinkage=0.1": lambda: fixed.fit(Z, Y),
        "fit, shrinkage='auto'": lambda: auto.fit(Z, Y),
        "fit float32, shrinkage=0.1": lambda: ca.LatentAligner(shrinkage=0.1).fit(Z32, Y),
        "Z.T @ Z, float32, chunks": lambda: in_chunks(Z32),
        "fit float32, shrinkage=0.1, single": lambda: ca.LatentAligner(shrinkage=0.1, precision="single").fit(Z32, Y),
        "fit float32, shrinkage='auto', single": lambda: ca.LatentAligner(precision="single").fit(Z32, Y),
        "at(lam=0.9)": lambda: fixed.at(lam=0.9).transform_,
        "at(max_coupling=0.5)": lambda: fixed.at(max_coupling=0.5).transform_,
        "transform": lambda: fixed.transform(Z),
        "cross_validated_frontier, 21 lambdas": lambda: ca.cross_validated_frontier(Z, Y),
    }
    median = median_seconds(works, args.repeats)
    table: list[tuple[str, str, float | None]] = [
        ("fit, shrinkage=0.1", "Z.T @ Z", 1.3),
        ("fit, shrinkage='auto'", "Z.T @ Z", 2.0),
        ("fit float32, shrinkage=0.1", "fit, shrinkage=0.1", 1.5),
        ("fit float32, shrinkage=0.1, single", "Z.T @ Z, float32, chunks", 1.2),
        ("fit float32, shrinkage='auto', single", "Z.T @ Z, float32, chunks", None),
        ("at(lam=0.9)", "fit, shrinkage=0.1", 0.01),
        ("at(max_coupling=0.5)", "fit, shrinkage=0.1", 0.01),
        ("transform", "Z.T @ Z", None),
        ("cross_validated_frontier, 21 lambdas", "Z.T @ Z", None),
    ]
    for what, reference, allowed in table:
        row(what, reference, median[what], median[reference], allowed)


def peak_extra_megabytes(args: argparse.Namespace, shrinkage: str) -> float:
    """Growth of the peak resident size during fit, in a separate process."""
    command = [sys.executable, __file__, "--peak", shrinkage, "--rows", str(args.rows), "--dims", str(args.dims)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(args: argparse.Namespace) -> None:
    Z, Y = make(args.rows, args.dims, args.covariates, np.float64)
    small = ca.LatentAligner().fit(Z[:2000], Y[:2000])  # loads every library first
    before = peak_megabytes()
    small.set_params(shrinkage=args.peak if args.peak == "auto" else float(args.peak)).fit(Z, Y)
    print(peak_megabytes() - before)


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
    head()
    ratios(args)
    for shrinkage in ("0.1", "auto"):
        memory_row(f"shrinkage={shrinkage}", peak_extra_megabytes(args, shrinkage), 300)
    return None


if __name__ == "__main__":
    main()
