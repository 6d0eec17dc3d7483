"""Predictions of ``covalign plan`` beside measured times of the aligner, at small sizes: the table of docs/scaling.md.

Run: python benchmarks/plan.py [--repeats 3] [--write docs/scaling.md]
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from pathlib import Path

import numpy as np

import covalign as ca
from covalign.study import costs as planning

SIZES = [(n, k) for k in (256, 768) for n in (20_000, 100_000, 400_000)]
COVARIATES = 20
HEAD, END = "<!-- table -->\n", "<!-- end -->\n"


def measured(n: int, k: int, repeats: int) -> tuple[float, float]:
    """Predicted and measured seconds, interleaved, medians."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n, k), dtype=np.float32)
    Y = Z[:, :COVARIATES] + rng.standard_normal((n, COVARIATES))
    job = planning.Job(n, k, COVARIATES, workers=1, cores=os.cpu_count() or 1)
    predicted, taken = [], []
    for _ in range(repeats):
        predicted.append(planning.total(planning.aligner(job, planning.measured(job, read=math.inf))))
        start = time.perf_counter()
        ca.LatentAligner().fit(Z, Y)
        taken.append(time.perf_counter() - start)
    return statistics.median(predicted), statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", type=Path, default=None, help="the page whose table is to be replaced")
    args = parser.parse_args()
    lines = ["| rows | dimensions | predicted, s | measured, s | ratio |", "|---|---|---|---|---|"]
    for n, k in SIZES:
        predicted, taken = measured(n, k, args.repeats)
        lines.append(f"| {n:,} | {k} | {predicted:.2f} | {taken:.2f} | {predicted / taken:.2f} |")
        print(lines[-1], flush=True)
    if args.write:
        before, _, rest = args.write.read_text().partition(HEAD)
        args.write.write_text(before + HEAD + "\n".join(lines) + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
