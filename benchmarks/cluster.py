"""dask with two worker processes against one process on the same two cores, and many small chunks against few.

Ratios within one run, variants interleaved, medians. All variants read the same file.
Run: python benchmarks/cluster.py [--rows 1000000] [--dims 768] [--repeats 3] [--folder somewhere/with/room]
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from timing import head, median_seconds, row

from covalign.moments import cluster, gap_accumulator
from covalign.study import costs as planning

COVARIATES, FOLDS = 20, 5


def chunk(path: str, header: int, dims: int, block_info: Any = None) -> np.ndarray:
    """Rows of the file, read as cheaply as possible: this does not measure readers."""
    (start, stop), _ = block_info[None]["array-location"]
    size = (stop - start) * dims
    return np.fromfile(path, np.float32, count=size, offset=header + 4 * dims * start).reshape(-1, dims)


def in_chunks(path: Path, rows: int, dims: int, count: int) -> Any:
    header = path.stat().st_size - 4 * rows * dims
    return da.map_blocks(chunk, str(path), header, dims, chunks=((rows // count,) * count, (dims,)), dtype=np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dims", type=int, default=768)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    args = parser.parse_args()
    n, k = args.rows - args.rows % 1000, args.dims
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path, rng = Path(folder) / "rows.npy", np.random.default_rng(0)
        Z = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, k))
        for i in range(0, n, 10_000):
            Z[i : i + 10_000] = rng.standard_normal((min(10_000, n - i), k), dtype=np.float32)
        Y = Z[:, :COVARIATES] + rng.standard_normal((n, COVARIATES))
        options = {"processes": True, "dashboard_address": None, "memory_limit": "4GB"}
        with LocalCluster(n_workers=2, threads_per_worker=1, **options) as local, Client(local) as client:

            def on_dask(count: int) -> Callable[[], object]:
                return lambda: cluster.fold_moments(in_chunks(path, n, k, count), Y, FOLDS, client=client)

            cluster.fold_moments(in_chunks(path, n, k, 1000)[: n // 10], Y[: n // 10], FOLDS, client=client)  # warm
            works = {
                "one process": lambda: gap_accumulator.fold_moments(np.load(path, mmap_mode="r"), Y, FOLDS),
                "dask, 50 chunks": on_dask(50),
                "dask, 1000 chunks": on_dask(1000),
            }
            took = median_seconds(works, args.repeats)
    print(f"{n} x {k} float32, {COVARIATES} covariates, {FOLDS} folds, median of {args.repeats} interleaved runs\n")
    head()
    row("dask, 50 chunks", "one process", took["dask, 50 chunks"], took["one process"], 1.5)
    row("dask, 1000 chunks", "dask, 50 chunks", took["dask, 1000 chunks"], took["dask, 50 chunks"], 1.2)
    row("dask, 50 chunks", "as planned", took["dask, 50 chunks"], planned(n, k))


def planned(rows: int, dims: int) -> float:
    """The prediction of ``covalign plan`` for the sums, for data in the cache of the system."""
    job = planning.Job(rows, dims, COVARIATES, workers=2, folds=FOLDS)
    terms = planning.aligner(job, planning.measured(job, read=math.inf))
    return planning.total([term for term in terms if term.name != "solve"])


if __name__ == "__main__":
    main()
