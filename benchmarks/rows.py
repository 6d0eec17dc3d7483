"""The speed of reading rows, with and without reading ahead, and the cost of the check for NaN.

Every line is a ratio within one run, variants interleaved, medians. "cold" asks the system to drop the file from its
cache before each pass. Run: python benchmarks/rows.py [--gigabytes 1] [--folder somewhere/with/room]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from timing import median_seconds

from covalign.moments.accumulator import Accumulator
from covalign.stream import Source, ahead, open_rows, open_sink, read, write_rows

K = 256


def forget(path: Path) -> None:
    """Ask the system to drop the file from its cache."""
    for file in [path] if path.is_file() else path.rglob("*"):
        if file.is_file():
            handle = os.open(file, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def total(chunks) -> float:
    """A light computation: as fast as memory allows."""
    return sum(float(chunk.sum()) for chunk in chunks)


def moments(chunks) -> float:
    """The computation of the aligner."""
    rows = Accumulator(K, 1)
    for chunk in chunks:
        rows.add(chunk, chunk[:, :1])
    return float(rows.moments().cov_z[0, 0])


def variants(source: Source, compute: Callable[..., float]) -> dict[str, Callable[[], object]]:
    return {
        "bare": lambda: compute(source.chunks()),
        "ahead": lambda: compute(ahead(source.chunks())),
        "checked": lambda: compute(read(source, finite=True)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    n = int(arguments.gigabytes * 1e9 / (4 * K))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        rng = np.random.default_rng(0)
        first = Path(folder) / "rows.npy"
        with open_sink(first, (n, K), np.float32) as sink:
            for start in range(0, n, 10_000):
                sink.write(rng.standard_normal((min(10_000, n - start), K), dtype=np.float32))
        print(f"{n} x {K} float32, {n * K * 4 / 1e9:.2f} GB; GB/s, and times the bare loop in brackets")
        for suffix in (".npy", ".zarr", ".parquet"):
            path = first.with_suffix(suffix)
            if path != first:
                start = time.perf_counter()
                with open_sink(path, (n, K), np.float32) as sink:
                    write_rows(lambda start, chunk: chunk, [open_rows(first)], sink)
                print(f"{suffix:9} written at {n * K * 4 / 1e9 / (time.perf_counter() - start):.2f} GB/s")
            for state, before in (("warm", lambda: None), ("cold", lambda path=path: forget(path))):
                for compute in (total, moments):
                    took = median_seconds(variants(open_rows(path), compute), arguments.repeats, before=before)
                    line = "  ".join(
                        f"{name} {n * K * 4 / 1e9 / t:6.2f} ({took['bare'] / t:4.2f})" for name, t in took.items()
                    )
                    print(f"{suffix:9} {state}  {compute.__name__:8} {line}", flush=True)


if __name__ == "__main__":
    main()
