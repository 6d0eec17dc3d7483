"""The time to import the core, relative to that of its dependencies scikit-learn and pandas.

python benchmarks/importing.py   (a new process each time, interleaved, medians)
"""

from __future__ import annotations

import statistics
import subprocess
import sys

CODE = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
STATEMENTS = {"scikit-learn and pandas": "import sklearn.utils, sklearn.base, pandas", "covalign": "import covalign"}


def seconds(statement: str) -> float:
    done = subprocess.run([sys.executable, "-c", CODE.format(statement)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(9):
        for name, statement in STATEMENTS.items():
            taken[name].append(seconds(statement))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    for name, value in medians.items():
        print(f"{name:24} {value:.2f} s")
    print(f"{'ratio':24} {medians['covalign'] / medians['scikit-learn and pandas']:.2f}  (allowed 1.3)")


if __name__ == "__main__":
    main()
