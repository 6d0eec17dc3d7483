"""n_factors="auto": its cost against one fit, and whether left-out cells agree with its choice.

python benchmarks/number_of_factors.py [--tcga FOLDER] [--cll FOLDER]

Cost is CPU time of ``fit`` with "auto" over that of ``fit`` with the number it chose. For left-out cells, rows and
features are put into ten groups at random, and each group of rows loses its group of features: a tenth of the cells, in
ten patterns only. 'gain' is the mean log predictive density of a left-out cell with the number that is best there, less
that with the number "auto" chose, over all numbers tried; 'error' is its standard error over rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import covalign as ca
from covalign._core.text_tables import markdown

GROUPS, SWEEPS = 10, 100
SETTINGS: dict[str, Any] = {"supervision": 1, "folds": 0}
SHARES = (0.5, 0.7, 0.85, 0.95, 1.0, 1.05, 1.15, 1.3)  # of the number chosen


def cases(tcga: Path | None, cll: Path | None) -> Iterator[tuple[str, dict[str, pd.DataFrame], Any]]:
    """Scenarios of the paper, tumours with three complete views, and leukaemias with gaps."""
    for name in ("PN", "AR", "P", "N"):
        s = ca.simulate.scenario(name, n_samples=500, random_state=0)
        yield f"scenario {name}", {"X": pd.DataFrame(s.X)}, s.Y
    if tcga is not None:
        data = ca.datasets.breast_tcga(tcga)
        yield "breast cancer", data.views, data.covariates
    if cll is not None:
        drugs, mutations = (pd.read_csv(cll / f"{view}.csv", index_col=0).T for view in ("drugs", "mutations"))
        clinic = pd.read_csv(cll / "metadata.csv", index_col="Sample").loc[drugs.index]
        y = pd.DataFrame({"IGHV": clinic["IGHV"].map({"U": 0.0, "M": 1.0}), "age": clinic["Age4Main"].astype(float)})
        varying = mutations.loc[:, mutations.std() > 0].drop(columns="IGHV", errors="ignore")
        yield "leukaemia", {"drugs": drugs, "mutations": varying}, y


def timed(n_factors: Any, X: Any, y: Any) -> tuple[Any, float]:
    """A fit and its CPU time."""
    begun = time.process_time()
    fa = ca.InformedFactorAnalysis(n_factors, **SETTINGS).fit(X, y)
    return fa, time.process_time() - begun


def masks(X: dict[str, pd.DataFrame], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The cells of each view that are left out."""
    rows = rng.permutation(len(next(iter(X.values())))) % GROUPS
    return {
        view: (rows[:, None] == rng.permutation(table.shape[1]) % GROUPS) & table.notna().to_numpy()
        for view, table in X.items()
    }


def density(k: int, X: dict[str, pd.DataFrame], y: Any, left_out: dict[str, np.ndarray]) -> np.ndarray:
    """The mean log predictive density of the left-out cells of every row, in units of each feature."""
    kept = {view: table.mask(left_out[view]) for view, table in X.items()}
    fa = ca.InformedFactorAnalysis(k, max_iter=SWEEPS, **SETTINGS).fit(kept, y)
    total, cells = 0.0, 0
    for view, table in X.items():
        mean, std = (part.to_numpy() for part in fa.impute(view, return_std=True))
        scale = np.where(left_out[view], std, 1.0)
        logs = -0.5 * ((table.to_numpy() - mean) / scale) ** 2 - np.log(scale / table.std().to_numpy())
        total = total + np.where(left_out[view], logs, 0.0).sum(axis=1)
        cells = cells + left_out[view].sum(axis=1)
    return np.asarray(total / np.maximum(cells, 1))


def row_of(name: str, X: dict[str, pd.DataFrame], y: Any) -> dict[str, Any]:
    """The line of one data set."""
    timed(2 if np.ndim(y) == 2 and np.shape(y)[1] <= 2 else 5, X, y)  # what the first fit imports is no cost of it
    auto, cost = timed("auto", X, y)
    chosen = auto.n_factors_
    _, single = timed(chosen, X, y)
    numbers = sorted({max(auto._problem.p, round(share * chosen)) for share in SHARES} | {chosen})
    left_out = masks(X, np.random.default_rng(0))
    found = {k: density(k, X, y, left_out) for k in numbers}
    best = max(found, key=lambda k: found[k].mean())
    gain = found[best] - found[chosen]
    return {
        "data": name,
        "chosen": chosen,
        "CPU s": round(cost, 2),
        "one fit": round(single, 2),
        "ratio": round(cost / single, 1),
        "best on cells": best,
        "gain": round(float(gain.mean()), 4),
        "error": round(float(gain.std() / np.sqrt(len(gain))), 4),
        "densities": ", ".join(f"{k}: {value.mean() - found[best].mean():.3f}" for k, value in found.items()),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tcga", type=Path)
    parser.add_argument("--cll", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for case in cases(asked.tcga, asked.cll):
        rows.append(row_of(*case))
        print(rows[-1], flush=True)
    print(markdown(list(rows[0]), [row.values() for row in rows]))


if __name__ == "__main__":
    main()
