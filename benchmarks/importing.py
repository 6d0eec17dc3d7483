"""The time to import covalign and to start its commands, relative to the import of scikit-learn and pandas.

python benchmarks/importing.py   (processor time of a new process each time, interleaved, medians)
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile

REFERENCE = "scikit-learn and pandas"
ALLOWED = 0.3
COMMANDS = {
    REFERENCE: ["-c", "import sklearn.utils, sklearn.base, pandas"],
    "import covalign": ["-c", "import covalign"],
    "covalign --version": ["-m", "covalign", "--version"],
    "covalign --help": ["-m", "covalign", "--help"],
    "covalign align --help": ["-m", "covalign", "align", "--help"],
    "an unknown flag": ["-m", "covalign", "align", "--nonsense"],
    "a missing file": ["-m", "covalign", "align", "no.npy", "no.csv", "-o", "out.npy"],
    "a missing model": ["-m", "covalign", "transform", "no.covalign", "no.npy", "-o", "out.npy"],
}


def seconds(words: list[str], folder: str) -> float:
    """Processor time of a process, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], capture_output=True, cwd=folder, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(9):
            for name, words in COMMANDS.items():
                taken[name].append(seconds(words, folder))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    for name, value in medians.items():
        print(f"{name:24} {value:.2f} s  {value / medians[REFERENCE]:.2f}  (allowed {ALLOWED})")


if __name__ == "__main__":
    main()
