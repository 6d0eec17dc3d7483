"""Informed factor analysis of data larger than cache or memory: ratios in one run, each beside its limit.

python benchmarks/scale_factor.py [--rows 1000000] [--features 500] [--factors 20] [--repeats 3] [--folder DIR]
python benchmarks/scale_factor.py --peers [PYTHON]     mofapy2 and biosofa beside us; writes docs/scale.csv, docs/img/

The rows are float32 in an .npy in a temporary folder (2 GB for 1,000,000 x 500), in the system's cache after the first
pass. "Its Gram matrix alone" is  for each chunk of 16 MB:  B = chunk.astype(float64);  G += B.T @ B  over the mapped
file, with all BLAS threads, no centring, no check, no covariates: numpy calls syrk for it, half the multiplications.
The same in float32 is printed for information; its sums are too coarse for a million rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from timing import head, median_seconds, row

import covalign as ca
from covalign.factor.inference import sweeps as fitting
from covalign.factor.inference.start import start
from covalign.stream import CHUNK_BYTES
from covalign.study.baselines import IFA, MOFA, SOFA, run

P = 5  # covariates
DOCS = Path(__file__).parents[1] / "docs"
SECONDS, BYTES = 600, 20 * 10**9  # the limits of a peer
SIZES = (1_000, 10_000, 100_000)


def write_rows(path: Path, n: int, d: int, k: int) -> np.ndarray:
    """A factor model in float32, written as it is drawn; returns Y (n x P)."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(d, k)).astype(np.float32)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    Y = np.empty((n, P))
    for i in range(0, n, 10_000):
        here = slice(i, min(i + 10_000, n))
        Z = rng.standard_normal((here.stop - i, k), dtype=np.float32)
        X[here] = Z @ W.T + 2 * rng.standard_normal((here.stop - i, d), dtype=np.float32) + 3
        Y[here] = 0.8 * Z[:, :P] + 0.6 * rng.standard_normal((here.stop - i, P))
    X.flush()
    return Y


def chunks(X: np.ndarray) -> Iterator[np.ndarray]:
    """Rows of a memmap, 16 MB at a time."""
    rows = max(1, CHUNK_BYTES // (X.shape[1] * X.itemsize))
    return (X[i : i + rows] for i in range(0, len(X), rows))


def gram_alone(X: np.ndarray, dtype: type) -> np.ndarray:
    """X'X in float64 sums, each chunk multiplied in ``dtype``."""
    G = np.zeros((X.shape[1], X.shape[1]))
    for chunk in chunks(X):
        B = chunk.astype(dtype, copy=False)
        G += B.T @ B
    return G


def whole_fit(arguments: argparse.Namespace, folder: Path) -> None:
    n, d, k = arguments.rows, arguments.features, arguments.factors
    path = folder / "X.npy"
    Y = write_rows(path, n, d, k)
    mapped, loaded = np.load(path, mmap_mode="r"), np.load(path)

    def fit(X: object) -> ca.InformedFactorAnalysis:
        return ca.InformedFactorAnalysis(k).fit(X, Y)

    works = {
        "gram": lambda: gram_alone(mapped.view(np.ndarray), np.float64),
        "gram32": lambda: gram_alone(mapped.view(np.ndarray), np.float32),
        "memmap": lambda: fit(mapped),
        "path": lambda: fit(path),
        "memory": lambda: fit(loaded),
    }
    t = median_seconds(works, arguments.repeats)
    what = f"{n:,} x {d}, K = {k}"
    row(f"fit from a memmap, {what}", "its Gram matrix alone (float64)", t["memmap"], t["gram"], 1.5)
    row("fit from a path", "its Gram matrix alone (float64)", t["path"], t["gram"], 1.5)
    row("fit from a memmap", "its Gram matrix alone (float32)", t["memmap"], t["gram32"])
    row("fit from a memmap", "fit in memory", t["memmap"], t["memory"], 1.2)
    row("fit from a path", "fit in memory", t["path"], t["memory"], 1.2)
    fa = fit(path)
    small = ca.InformedFactorAnalysis(k).fit(loaded[:10_000], Y[:10_000])
    sweeps(fa, small, arguments.repeats)
    out = {"factors_": lambda: fa._means(fa._state), "read": lambda: sum(float(c[:, 0].sum()) for c in chunks(loaded))}
    out |= {"transform": lambda: fa.transform(path, Y), "to a file": lambda: write_out(fa, path, Y, folder)}
    t |= median_seconds(out, arguments.repeats)
    row("factors_ when first asked for", "fit from a path", t["factors_"], t["path"])
    row("transform of all rows", "fit from a path", t["transform"], t["path"])
    row("transform of all rows to a file", "in memory", t["to a file"], t["transform"])
    t = median_seconds({"path": lambda: fa.path([0.25, 0.5, 0.75])}, arguments.repeats)
    print(f"three further lambda: {t['path']:.3f} s, no row read")


def write_out(fa: ca.InformedFactorAnalysis, path: Path, Y: np.ndarray, folder: Path) -> None:
    """All factors to a file."""
    fa.transform(path, Y, out=folder / "Z.npy", overwrite=True)


def sweeps(large: ca.InformedFactorAnalysis, small: ca.InformedFactorAnalysis, repeats: int) -> None:
    """Ten plain sweeps from the start of each problem."""

    def ten(fa: ca.InformedFactorAnalysis) -> None:
        state = begun[id(fa)]
        for _ in range(10):
            state = fitting.sweep(fa._problem, state, False)

    begun = {id(fa): start(fa._problem) for fa in (large, small)}
    t = median_seconds({"large": lambda: ten(large), "small": lambda: ten(small)}, 5 * repeats)
    row(f"10 sweeps, {large._problem.n:,} rows", "10 sweeps, 10,000 rows", t["large"], t["small"], 1.1)


# -- peers ------------------------------------------------------------------------------------------------------------

METHODS = {"iFA": IFA(), "MOFA": MOFA(timeout=SECONDS), "SOFA": SOFA(timeout=SECONDS)}
COLUMNS = ("method", "rows", "features", "factors", "seconds", "cpu_seconds", "peak_mb", "outcome", "versions")


def one(name: str, n: int) -> None:
    """Fit one method to n rows and print a line of JSON: seconds of the fit alone, peak memory of its process."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    s = ca.simulate.scenario("PN", n_samples=n, n_features=100, n_factors=10, random_state=1)
    who = resource.RUSAGE_SELF if name == "iFA" else resource.RUSAGE_CHILDREN
    begun = cpu_seconds(who)
    try:
        result = run(METHODS[name], s.X, s.Y, n_factors=10)
    except (ValueError, RuntimeError, MemoryError) as error:
        print(json.dumps({"outcome": outcome(str(error))}))
        return
    used = {"cpu_seconds": cpu_seconds(who) - begun, "peak_mb": resource.getrusage(who).ru_maxrss / 1024}
    versions = " ".join(f"{package}={version}" for package, version in result.versions.items())
    print(json.dumps({"seconds": result.seconds, **used, "outcome": "done", "versions": versions}))


def cpu_seconds(who: int) -> float:
    """Times of a process or of its children, including imports: they show whether the machine was busy."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def outcome(said: str) -> str:
    """Why there is no time."""
    if "stopped after" in said:
        return f"did not finish in {SECONDS} s"
    low = said.lower()
    if "memory" in low or "alloc" in low or not said:
        return f"out of {BYTES // 10**9} GB"
    return " ".join(said.split())[-120:]


def against_peers(sizes: tuple[int, ...]) -> None:
    """A line for every method and size in docs/scale.csv; a method that failed is not run on more rows."""
    given_up: set[str] = set()
    for n in (*sizes, 10 * sizes[-1]):
        for name in METHODS:
            if name in given_up or (n > sizes[-1] and name != "iFA"):
                continue
            command = [sys.executable, __file__, "--one", name, str(n)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            line = json.loads(lines[-1]) if lines else {"outcome": outcome(done.stderr)}
            line |= {"method": name, "rows": n, "features": 100, "factors": 10}
            print(line, flush=True)
            append(line)
            if line["outcome"] != "done":
                given_up.add(name)
    draw()


def append(line: dict[str, object]) -> None:
    """Add a line; it replaces an older one for the same method and size."""
    path = DOCS / "scale.csv"
    old = list(csv.DictReader(path.open())) if path.exists() else []
    same = (str(line["method"]), str(line["rows"]))
    kept = [each for each in old if (each["method"], each["rows"]) != same]
    shown = {name: f"{value:.3g}" if isinstance(value, float) else value for name, value in line.items()}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*kept, shown], key=lambda each: (str(each["method"]), int(str(each["rows"])))))


def draw() -> None:
    """Seconds and memory against rows, both on logarithmic axes; a cross where a method did not finish."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.style.use(ca.plot.STYLE)

    lines = list(csv.DictReader((DOCS / "scale.csv").open()))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    shown = {
        "iFA": ("iFA (covalign)", "#0072b2"),
        "MOFA": ("MOFA (mofapy2)", "#d55e00"),
        "SOFA": ("SOFA (biosofa)", "#009e73"),
    }
    for ax, column, limit, label in zip(
        axes, ("seconds", "peak_mb"), (SECONDS, BYTES / 2**20), ("seconds of the fit", "peak memory (MB)"), strict=True
    ):
        for method, (title, colour) in shown.items():
            done = [each for each in lines if each["method"] == method and each["outcome"] == "done"]
            failed = [each for each in lines if each["method"] == method and each["outcome"] != "done"]
            ax.plot([int(e["rows"]) for e in done], [float(e[column]) for e in done], "o-", color=colour, label=title)
            if column == "seconds":
                ax.plot([int(e["rows"]) for e in failed], [limit] * len(failed), "x", color=colour, ms=9, mew=2)
        ax.axhline(limit, color="0.6", lw=0.8, ls="--")
        ax.set(xscale="log", yscale="log", xlabel="rows", ylabel=label)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].text(1e3, SECONDS * 1.1, "limit (x: did not finish)", color="0.4", fontsize=8, va="bottom")
    axes[1].text(1e3, BYTES / 2**20 * 1.1, "limit", color="0.4", fontsize=8, va="bottom")
    axes[1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, 0.92))
    figure.suptitle("100 features, 10 factors, 5 covariates; 2 cores", fontsize=10)
    figure.savefig(DOCS / "img" / "scale.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--factors", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", help="where there is room for the rows")
    parser.add_argument("--peers", nargs="?", const="", metavar="PYTHON", help="only the peers")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.one:
        one(arguments.one[0], int(arguments.one[1]))
        return
    if arguments.peers is not None:
        if arguments.peers:
            os.environ["COVALIGN_PEERS"] = arguments.peers
        against_peers(SIZES)
        return
    head()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        whole_fit(arguments, Path(folder))


if __name__ == "__main__":
    main()
