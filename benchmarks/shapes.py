"""Shapes of real work: every row next to its reference and the ratio that is wanted, in one run.

python benchmarks/shapes.py [--repeats 3] [--only wide] [--write docs]

A row is a line of a function in SHAPES. Each function runs in a process of its own, which has a time limit; times are
medians of interleaved runs; the clock is that of the processor (all threads), or with --wall that of the wall. --write
puts the table into shapes.csv and benchmarks.md of a folder.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from timing import Work, median_seconds, peak_megabytes

import covalign as ca
from covalign.stream.memory import SparseRows


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


def of_all_processes() -> float:
    """Processor time of this process and of those that it started and that ended."""
    return sum(os.times()[:4])


def command(measure: Measure) -> Iterator[Row]:
    """``covalign align`` of the same features, next to the fit and a second; processor time of all processes."""
    Z, Y = features(1600, 2048, 40)
    with tempfile.TemporaryDirectory() as folder:
        z, y, out = Path(folder, "Z.npy"), Path(folder, "Y.csv"), Path(folder, "out.csv")
        np.save(z, Z)
        Y.to_csv(y, index=False)
        words = [sys.executable, "-m", "covalign", "align", str(z), str(y), "-o", str(out), "--force"]
        took = measure._replace(clock=of_all_processes)(
            {
                "fit": lambda: ca.LatentAligner().fit(Z, Y),
                "command": lambda: subprocess.run(words, check=True, capture_output=True),
            }
        )
    yield Row("wide: covalign align, whole command", "1.5 x fit + 1 s", took["command"], 1.5 * took["fit"] + 1, 1)


def many_classes(measure: Measure) -> Iterator[Row]:
    """100,000 x 768 features of 700 classes, and of 1,000, which have the strongest regime; next to Z.T @ Z."""
    for classes, regime in ((700, "tunable"), (1000, "strongest")):
        Z, Y = features(100_000, 768, classes + 1)
        exact, fitted = Z.astype(np.float64), [ca.LatentAligner()]

        def fit(Z: Any = Z, Y: Any = Y, regime: str = regime, fitted: list[ca.LatentAligner] = fitted) -> None:
            fitted[0] = ca.LatentAligner(regime).fit(Z, Y)

        def summary(fitted: list[ca.LatentAligner] = fitted) -> None:
            fitted[0].summary()

        took = measure({"product": lambda exact=exact: exact.T @ exact, "fit": fit, "summary": summary})
        yield Row(f"{classes:,} classes: fit", "Z.T @ Z in float64", took["fit"], took["product"], 2)
        yield Row(f"{classes:,} classes: summary()", "fit", took["summary"], took["fit"], 0.1)


def single(measure: Measure) -> Iterator[Row]:
    """200,000 x 768 in float32, 20 covariates: sums of all folds in float32, next to the bare product of chunks."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200_000, 768), dtype=np.float32)
    Y = pd.DataFrame(Z[:, :20] + rng.standard_normal((len(Z), 20)))

    def bare() -> None:
        G = np.zeros((768, 768))
        for i in range(0, len(Z), 2048):
            G += Z[i : i + 2048].T @ Z[i : i + 2048]

    took = measure({"bare": bare, "fit": lambda: ca.LatentAligner(precision="single", shrinkage=0.1).fit(Z, Y)})
    yield Row("200,000 x 768, precision='single'", "Z.T @ Z in float32", took["fit"], took["bare"], 1.2)


def blocks(measure: Measure) -> Iterator[Row]:
    """92 samples, 5 views of 33 to 471 features, a third of the blocks missing, next to seconds that are wanted."""
    s = ca.simulate.scenario("PN", n_samples=92, n_features=1200, n_factors=10, random_state=1)
    rng, sizes = np.random.default_rng(0), (33, 120, 200, 376, 471)
    ends = np.cumsum((0, *sizes))
    views = {f"v{i}": s.X[:, a:b].copy() for i, (a, b) in enumerate(pairwise(ends))}
    for name in list(views)[1:]:
        views[name][rng.random(92) < 0.33] = np.nan
    took = measure({"fit": lambda: ca.InformedFactorAnalysis(10).fit(views, s.Y)})
    yield Row("iFA, 92 samples, 5 views, blocks missing", "1 s", took["fit"], 1.0, 1)


def cells(measure: Measure) -> Iterator[Row]:
    """150 x 526, a fifth of the cells missing at random; summary() next to the fit."""
    s = ca.simulate.scenario("PN", n_samples=150, n_features=526, n_factors=10, random_state=1)
    X = np.where(np.random.default_rng(1).random(s.X.shape) < 0.2, np.nan, s.X)
    took = measure({"fit": lambda: ca.InformedFactorAnalysis(10).fit(X, s.Y)})
    yield Row("iFA, 150 x 526, a fifth of cells missing", "1 s", took["fit"], 1.0, 3)


def complete(measure: Measure) -> Iterator[Row]:
    """500 x 100, complete, next to scikit-learn; summary() next to the fit."""
    from sklearn.decomposition import PCA, FactorAnalysis

    s = ca.simulate.scenario("PN", n_samples=500, n_features=100, n_factors=10, random_state=1)
    fitted = [ca.InformedFactorAnalysis(10)]

    def fit() -> None:
        fitted[0] = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)

    took = measure(
        {
            "fa": lambda: FactorAnalysis(10).fit(s.X),
            "pca": lambda: PCA(10).fit(s.X),
            "fit": fit,
            "summary": lambda: fitted[0].summary(),
        }
    )
    yield Row("iFA, 500 x 100, 10 factors", "FactorAnalysis of scikit-learn", took["fit"], took["fa"], 1)
    yield Row("iFA, 500 x 100, 10 factors", "PCA of scikit-learn", took["fit"], took["pca"], 3)
    yield Row("iFA, 500 x 100: summary()", "fit", took["summary"], took["fit"], 1.5)


def counts(n: int, d: int, seed: int = 0) -> tuple[dict[str, Any], np.ndarray]:
    """Logarithms of sparse counts in two views, 5 % of them not zero, with 15 components, and three covariates."""
    from scipy import sparse

    rng = np.random.default_rng(seed)
    H = rng.gamma(2.0, 0.5, (n, 15))
    W = rng.gamma(0.3, 1.0, (15, d))
    rate = 0.055 / (H[:500] @ W).mean()
    parts = [sparse.csr_matrix(np.log1p(rng.poisson(rate * H[i : i + 500] @ W))) for i in range(0, n, 500)]
    X, cut = sparse.vstack(parts, format="csr"), 2 * d // 5
    return {"rna": X[:, :cut], "atac": X[:, cut:]}, H[:, :3] + 0.5 * rng.normal(size=(n, 3))


def sparse_features(measure: Measure) -> Iterator[Row]:
    """1,000 x 50,000 sparse features in two views, next to a truncated SVD of the same rank."""
    from scipy import sparse
    from sklearn.utils.extmath import randomized_svd

    views, Y = counts(1000, 50_000)
    X = sparse.hstack(list(views.values()), format="csr")
    took = measure(
        {
            "svd": lambda: randomized_svd(X, 20, random_state=0),
            "fit": lambda: ca.InformedFactorAnalysis(20).fit(views, Y),
        }
    )
    yield Row("iFA, 1,000 x 50,000 sparse, 20 factors", "randomised SVD, rank 20", took["fit"], took["svd"], 3)


def sparse_views(measure: Measure) -> Iterator[Row]:
    """8,000 x 20,000 sparse features; a third of the samples lack a view, and there are confounders: time, memory."""
    from scipy import sparse
    from sklearn.utils.extmath import randomized_svd

    views, Y = counts(8000, 20_000)
    X, C = sparse.hstack(list(views.values()), format="csr"), np.random.default_rng(1).normal(size=(8000, 2))
    there = np.random.default_rng(2).random(8000) > 0.33
    names = pd.Index([f"cell{i}" for i in range(8000)])
    tables = {
        "rna": SparseRows(views["rna"], "rna", index=names),
        "atac": SparseRows(views["atac"][there], "atac", index=names[there]),
    }
    del views
    held = [table.stored for table in tables.values()]
    stored = sum(S.data.nbytes + S.indices.nbytes + S.indptr.nbytes for S in held)
    frame = pd.DataFrame(Y, index=names)

    def fit() -> None:
        ca.InformedFactorAnalysis(20).fit(tables, frame, confounders=pd.DataFrame(C, index=names))

    once = measure._replace(repeats=1)
    before = memory_now()
    took = once({"fit": fit})
    grown = peak_megabytes() - before
    took |= once({"svd": lambda: randomized_svd(X, 20, random_state=0)})
    yield Row("iFA, 8,000 x 20,000 sparse, views missing", "randomised SVD, rank 20", took["fit"], took["svd"], 3)
    yield Row("the same, MB with the data", "MB of the data", grown + stored / 1e6, stored / 1e6, 2)


def memory_now() -> float:
    """Megabytes of this process; what it freed goes back to the system, and the peak is counted from here."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak_megabytes()


def columns(measure: Measure) -> Iterator[Row]:
    """2,000 x 20,000 dense features: principal components of rank 50, next to the randomised SVD of the same rank."""
    from sklearn.utils.extmath import randomized_svd

    rng = np.random.default_rng(0)
    Z = (rng.normal(size=(2000, 100)) / np.arange(1, 101)) @ rng.normal(size=(100, 20_000))
    Z += 0.01 * rng.standard_normal(Z.shape)
    took = measure(
        {
            "svd": lambda: randomized_svd(Z - Z.mean(axis=0), 50, n_iter=1, random_state=0),
            "components": lambda: ca.principal_components(Z, rank=50),
        }
    )
    yield Row("principal components, 2,000 x 20,000", "randomised SVD, rank 50", took["components"], took["svd"], 3)


def start(measure: Measure) -> Iterator[Row]:
    """Starting the program, next to importing scikit-learn and pandas; processor time of the processes."""

    def process(*words: str) -> Work:
        return lambda: subprocess.run([sys.executable, *words], capture_output=True, check=False)

    took = measure._replace(clock=of_all_processes)(
        {
            "libraries": process("-c", "import sklearn.utils, sklearn.base, pandas"),
            "nothing": process("-c", ""),
            "import": process("-c", "import covalign"),
            "help": process("-m", "covalign", "--help"),
        }
    )
    yield Row("covalign --help", "import of scikit-learn and pandas", took["help"], took["libraries"], 0.3)
    yield Row("import covalign, less Python itself", "0.2 s", took["import"] - took["nothing"], 0.2, 1)


SHAPES: dict[str, Callable[[Measure], Iterator[Row]]] = {
    "wide": wide,
    "command": command,
    "many_classes": many_classes,
    "single": single,
    "complete": complete,
    "blocks": blocks,
    "cells": cells,
    "sparse_features": sparse_features,
    "sparse_views": sparse_views,
    "columns": columns,
    "start": start,
}
COLUMNS = ("what", "relative to", "seconds", "reference", "ratio", "wanted")
HEAD, END = "<!-- shapes -->\n", "<!-- end of shapes -->"


def measured(name: str, words: list[str], limit: float) -> list[dict[str, object]]:
    """The rows of one function, from a process of its own; one row without numbers if it takes too long."""
    command = [sys.executable, __file__, "--rows", name, *words]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return [dict(zip(COLUMNS, (f"{name}: more than {limit:g} s", "", "", "", "", ""), strict=True))]
    return [json.loads(line) for line in done.stdout.splitlines()]


def as_cells(found: Row) -> dict[str, object]:
    numbers = (f"{found.ours:.3g}", f"{found.theirs:.3g}", f"{found.ours / found.theirs:.2f}", f"{found.wanted:g}")
    return dict(zip(COLUMNS, (found.what, found.reference, *numbers), strict=True))


def table(rows: pd.DataFrame) -> str:
    """The rows as a table of a page."""
    lines = ["| " + " | ".join(rows.columns) + " |", "|---" * len(rows.columns) + "|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows.astype(str).to_numpy()]
    return "\n".join(lines) + "\n"


def write(rows: pd.DataFrame, folder: Path) -> None:
    """shapes.csv, and the table in benchmarks.md."""
    rows.to_csv(folder / "shapes.csv", index=False)
    page = folder / "benchmarks.md"
    before, _, rest = page.read_text().partition(HEAD)
    page.write_text(before + HEAD + table(rows) + END + rest.partition(END)[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--wall", action="store_true", help="Measure the time of the wall.")
    parser.add_argument("--limit", type=float, default=180, help="Seconds for each function.")
    parser.add_argument("--write", type=Path, help="The folder of the page and of the table.")
    parser.add_argument("--rows", choices=SHAPES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rows:
        warnings.simplefilter("ignore")  # fits that do not converge are timed as they are
        measure = Measure(args.repeats, time.perf_counter if args.wall else time.process_time)
        _ = ca.LatentAligner, ca.InformedFactorAnalysis  # imported before anything is timed
        for found in SHAPES[args.rows](measure):
            print(json.dumps(as_cells(found)), flush=True)
        return
    words, rows = ["--repeats", str(args.repeats), *(["--wall"] if args.wall else [])], []
    print(
        f"{COLUMNS[0]:44} {COLUMNS[1]:34} {COLUMNS[2]:>9} {COLUMNS[3]:>9} {COLUMNS[4]:>8} {COLUMNS[5]:>8}", flush=True
    )
    for name in args.only:
        for found in measured(name, words, args.limit):
            what, reference, *numbers = found.values()
            print(
                f"{what:44} {reference:34} {numbers[0]:>9} {numbers[1]:>9} {numbers[2]:>8} {numbers[3]:>8}", flush=True
            )
            rows.append(found)
    if args.write:
        write(pd.DataFrame(rows), args.write)


if __name__ == "__main__":
    main()
