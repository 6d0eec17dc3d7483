"""The aligner on a large file: ratios to the bare product of the same chunks, and memory.

The file is 1,000,000 x 768 float32 (2.9 GB), made once in a temporary folder, with 20 covariates in memory. References
read the same memmap in the same chunks, one after the other, with numpy's own threads:

    float32:  for chunk in file: G += chunk.T @ chunk                       (single precision throughout)
    float64:  for chunk in file: c = chunk.astype(float64); G += c.T @ c    (the precision the aligner sums in)

numpy recognises ``A.T @ A`` and calls a symmetric rank-k update, so both need the least possible number of operations.
All measurements are interleaved and medians compared; the file is in the cache of the system, so that the disk does not
affect the ratios.

python benchmarks/scale.py [--rows 1000000] [--dims 768] [--covariates 20] [--repeats 3] [--folder somewhere/with/room]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from timing import Work, head, median_seconds, memory_row, peak_megabytes, row

import covalign as ca
from covalign.stream import open_rows, open_sink


def make(path: Path, rows: int, dims: int, covariates: int) -> None:
    """Rows of noise, dimensions of different scales; the first ones carry the covariates."""
    rng = np.random.default_rng(0)
    scale = np.geomspace(3, 0.1, dims).astype(np.float32)
    Y = np.empty((rows, covariates))
    with open_sink(path, (rows, dims), np.float32) as sink:
        for start in range(0, rows, 10_000):
            Z = rng.standard_normal((min(10_000, rows - start), dims), dtype=np.float32) * scale + 1
            Y[start : start + len(Z)] = Z[:, :covariates] + rng.standard_normal((len(Z), covariates))
            sink.write(Z)
    np.save(path.with_name("covariates.npy"), Y)


def bare(path: Path, dtype: type) -> np.ndarray:
    """Sum of chunk.T @ chunk over the file, in the precision given."""
    Z = np.load(path, mmap_mode="r").view(np.ndarray)
    step, G = open_rows(path).chunk_rows, np.zeros((Z.shape[1], Z.shape[1]), dtype=dtype)
    for i in range(0, len(Z), step):
        chunk = Z[i : i + step].astype(dtype, copy=False)
        G += chunk.T @ chunk
    return G


def fit(Z: object, Y: object, shrinkage: object) -> ca.LatentAligner:
    return ca.LatentAligner(shrinkage=shrinkage).fit(Z, Y)


def from_file(path: Path, repeats: int) -> None:
    """The whole file."""
    mapped, Y = np.load(path, mmap_mode="r"), np.load(path.with_name("covariates.npy"))
    al, out = fit(mapped[:20_000], Y[:20_000], 0.1), path.with_name("out.npy")
    works: dict[str, Work] = {
        "bare product, float32": lambda: bare(path, np.float32),
        "bare product, float64": lambda: bare(path, np.float64),
        "fit of the memmap, shrinkage=0.1": lambda: fit(mapped, Y, 0.1),
        "fit of the memmap, shrinkage='auto'": lambda: fit(mapped, Y, "auto"),
        "fit of the path, shrinkage=0.1": lambda: fit(path, Y, 0.1),
        "transform to a path": lambda: al.transform(path, out=out, overwrite=True),
    }
    took = median_seconds(works, repeats)
    for name in works:
        allowed = 1.3 if name == "fit of the memmap, shrinkage=0.1" else None
        for reference in ("bare product, float32", "bare product, float64"):
            if name != reference:
                row(name, reference, took[name], took[reference], allowed)


def in_memory(path: Path, rows: int, repeats: int) -> None:
    """The first rows: in memory, from the file, and in double precision."""
    Y = np.load(path.with_name("covariates.npy"))[:rows]
    mapped = np.load(path, mmap_mode="r")[:rows]
    Z = np.array(mapped)
    Z64 = Z.astype(np.float64)
    print(f"\nthe first {rows} rows")
    for shrinkage in (0.1, "auto"):
        works: dict[str, Work] = {
            "float32 in memory": lambda shrinkage=shrinkage: fit(Z, Y, shrinkage),
            "float32 from the file": lambda shrinkage=shrinkage: fit(mapped, Y, shrinkage),
            "float64 in memory": lambda shrinkage=shrinkage: fit(Z64, Y, shrinkage),
        }
        took = median_seconds(works, repeats)
        of = f", shrinkage={shrinkage}"
        for name, reference, limit in (
            ("float32 from the file", "float32 in memory", 1.2),
            ("float32 in memory", "float64 in memory", None),
        ):
            row(name + of, reference, took[name], took[reference], limit)


def peaks(path: Path) -> None:
    """Growth of the peak resident size, each in a separate process."""
    for what in ("fit 0.1", "fit auto", "transform"):
        command = [sys.executable, __file__, "--peak", what, "--file", str(path)]
        extra = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        memory_row(what, extra, 400)


def print_peak(what: str, path: Path) -> None:
    mapped, Y = np.load(path, mmap_mode="r"), np.load(path.with_name("covariates.npy"))
    al = fit(np.array(mapped[:2000]), Y[:2000], "auto")  # loads every library first
    before = peak_megabytes()
    if what == "transform":
        al.transform(mapped, out=path.with_name("peak.npy"), overwrite=True)
    else:
        fit(mapped, Y, "auto" if what.endswith("auto") else 0.1)
    print(peak_megabytes() - before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dims", type=int, default=768)
    parser.add_argument("--covariates", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak:
        return print_peak(args.peak, args.file)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / "rows.npy"
        make(path, args.rows, args.dims, args.covariates)
        print(
            f"{args.rows} x {args.dims} float32 in a memmap, {args.covariates} covariates, medians of {args.repeats}\n"
        )
        head()
        from_file(path, args.repeats)
        in_memory(path, min(args.rows, 200_000), args.repeats)
        print()
        peaks(path)
    return None


if __name__ == "__main__":
    main()
