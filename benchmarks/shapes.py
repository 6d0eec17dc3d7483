"""Shapes of real work: every row next to its reference and the ratio that is wanted, in one run.

python benchmarks/shapes.py [--repeats 3] [--only wide]

A row is a function in SHAPES. Times are medians of interleaved runs; the clock is that of the processor (all threads),
or with --wall that of the wall.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from timing import Work, head, median_seconds, row

import covalign as ca


class Measure(NamedTuple):
    """Median seconds of works, by the settings of the run."""

    repeats: int
    clock: Callable[[], float]

    def __call__(self, works: dict[str, Work]) -> dict[str, float]:
        return median_seconds(works, self.repeats, clock=self.clock)


class Row(NamedTuple):
    """What was measured, its reference, and the ratio that is wanted."""

    what: str
    reference: str
    ours: float
    theirs: float
    wanted: float


def features(rows: int, dims: int, classes: int, seed: int = 0) -> tuple[np.ndarray, pd.DataFrame]:
    """Float32 features whose variances fall like 1 / i, in several units, and their class."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(rows) % classes)
    H = (0.7 * rng.normal(size=(classes, dims))[label] + rng.normal(size=(rows, dims))) / np.sqrt(
        np.arange(1, dims + 1)
    )
    Z = H @ np.linalg.qr(rng.normal(size=(dims, dims)))[0] * np.exp(0.5 * rng.normal(size=dims)) + 1
    return Z.astype(np.float32), pd.DataFrame({"class": [f"c{i:04d}" for i in label]})


def wide(measure: Measure) -> Iterator[Row]:
    """1,600 x 2,048 features of 40 classes, next to an SVD of Z."""
    Z, Y = features(1600, 2048, 40)
    exact, fitted = Z.astype(np.float64), [ca.LatentAligner()]

    def fit() -> None:
        fitted[0] = ca.LatentAligner().fit(Z, Y)

    took = measure(
        {
            "svd": lambda: np.linalg.svd(exact, full_matrices=False),
            "fixed": lambda: ca.LatentAligner(shrinkage=0.1).fit(Z, Y),
            "auto": fit,
            "summary": lambda: fitted[0].summary(),
            "frontier": lambda: ca.cross_validated_frontier(Z, Y),
        }
    )
    yield Row("wide: fit, shrinkage=0.1", "SVD of Z", took["fixed"], took["svd"], 0.5)
    yield Row("wide: fit, shrinkage='auto'", "SVD of Z", took["auto"], took["svd"], 1.2)
    yield Row("wide: summary()", "fit", took["summary"], took["auto"], 0.1)
    yield Row("wide: cross_validated_frontier", "SVD of Z", took["frontier"], took["svd"], 3)


def command(measure: Measure) -> Iterator[Row]:
    """``covalign align`` of the same features, next to the fit and a second; times are those of the wall."""
    Z, Y = features(1600, 2048, 40)
    with tempfile.TemporaryDirectory() as folder:
        z, y, out = Path(folder, "Z.npy"), Path(folder, "Y.csv"), Path(folder, "out.csv")
        np.save(z, Z)
        Y.to_csv(y, index=False)
        words = [sys.executable, "-m", "covalign", "align", str(z), str(y), "-o", str(out), "--force"]
        took = measure._replace(clock=time.perf_counter)(
            {
                "fit": lambda: ca.LatentAligner().fit(Z, Y),
                "command": lambda: subprocess.run(words, check=True, capture_output=True),
            }
        )
    yield Row("wide: covalign align, whole command", "1.5 x fit + 1 s", took["command"], 1.5 * took["fit"] + 1, 1)


def many_classes(measure: Measure) -> Iterator[Row]:
    """100,000 x 768 features of 700 classes (there can be no more covariates than columns), next to Z.T @ Z."""
    Z, Y = features(100_000, 768, 701)
    fitted = [ca.LatentAligner()]

    def fit() -> None:
        fitted[0] = ca.LatentAligner().fit(Z, Y)

    took = measure(
        {"product": lambda: Z.T.astype(float) @ Z.astype(float), "fit": fit, "summary": lambda: fitted[0].summary()}
    )
    yield Row("700 classes: fit", "Z.T @ Z in float64", took["fit"], took["product"], 2)
    yield Row("700 classes: summary()", "fit", took["summary"], took["fit"], 0.1)


SHAPES: dict[str, Callable[[Measure], Iterator[Row]]] = {
    "wide": wide,
    "command": command,
    "many_classes": many_classes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--wall", action="store_true", help="Measure the time of the wall.")
    args = parser.parse_args()
    head()
    measure = Measure(args.repeats, time.perf_counter if args.wall else time.process_time)
    for name in args.only:
        for found in SHAPES[name](measure):
            row(*found)


if __name__ == "__main__":
    main()
