"""The cost of missing values in informed factor analysis, and the error of imputed cells.

python benchmarks/gaps.py [--repeats 5] [--tcga FOLDER] [--peers PYTHON]

FOLDER holds the breast cancer views (see ``covalign.datasets.breast_tcga``); without it only the costs are measured.
PYTHON is an interpreter that has mofapy2, if it is not the one of  make peers.
"""

from __future__ import annotations

import argparse
import os
import warnings

import numpy as np
import pandas as pd
from timing import head, median_seconds, row

import covalign as ca
from covalign.bridges import datasets
from covalign.study.baselines.peers import MOFA

K, SEEDS = 20, (0, 1, 2)


def costs(repeats: int) -> None:
    """Whole fits with gaps against the same data without gaps."""
    for n, d, k in ((500, 100, 10), (5000, 300, 20), (50_000, 300, 20)):
        s = ca.simulate.scenario("PN", n_samples=n, n_features=d, n_factors=k, random_state=1)
        whole = {"a": s.X[:, : d // 2], "b": s.X[:, d // 2 :]}
        block = {"a": whole["a"], "b": np.where(np.arange(n)[:, None] < n // 2, np.nan, whole["b"])}
        half = np.where(np.arange(n)[:, None] < n // 2, np.nan, s.Y)
        works = {
            "whole": lambda X=whole, Y=s.Y, k=k: ca.InformedFactorAnalysis(k).fit(X, Y),
            "block": lambda X=block, Y=s.Y, k=k: ca.InformedFactorAnalysis(k).fit(X, Y),
            "labels": lambda X=whole, Y=half, k=k: ca.InformedFactorAnalysis(k).fit(X, Y),
        }
        t = median_seconds(works, repeats)
        row(f"a view missing for half, {n} x {d}", "nothing missing", t["block"], t["whole"], 4.0)
        row(f"labels missing for half, {n} x {d}", "nothing missing", t["labels"], t["whole"], 4.0)
    s = ca.simulate.scenario("PN", n_samples=1000, n_features=200, random_state=1)
    cells = np.where(np.random.default_rng(1).random(s.X.shape) < 0.2, np.nan, s.X)
    works = {"whole": lambda: ca.InformedFactorAnalysis(10).fit(s.X, s.Y)}
    works["cells"] = lambda: ca.InformedFactorAnalysis(10).fit(cells, s.Y)
    t = median_seconds(works, repeats)
    row("a fifth of the cells missing, 1000 x 200", "nothing missing", t["cells"], t["whole"], float("nan"))


def breast_cancer(folder: str) -> None:
    """Correlation of informed factors with the complete fit (realigned at lam = .75), and the error of filled cells."""
    tcga = datasets.breast_tcga(folder)
    X, Y = tcga.views, tcga.covariates
    whole = aligned(informed(X, Y))
    columns = f"{'seed':>4} {'correlation':>12} {'error / sd':>11} {'mofapy2':>9} {'means':>7}"
    print(f"\n{'breast cancer, K = 20':44} {columns}")
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        hidden = {name: rng.random(view.shape) < 0.2 for name, view in X.items()}
        cells = {name: view.mask(hidden[name]) for name, view in X.items()}
        gone = rng.permutation(len(Y))[: len(Y) // 2]
        protein = {**X, "protein": X["protein"].drop(index=X["protein"].index[gone])}
        labels = Y.copy()
        labels.iloc[gone] = np.nan
        fa = informed(cells, Y)
        filled = {name: fa.impute(name) for name in X}
        means = {name: view.fillna(view.mean()) for name, view in cells.items()}
        errors = [error(made, X, hidden) for made in (filled, by_mofa(cells, Y, seed), means)]
        line(f"20 % of the cells missing ({fa.n_iter_} sweeps)", seed, agreement(whole, fa), errors)
        line("protein missing for half", seed, agreement(whole, informed(protein, Y)))
        line("labels missing for half", seed, agreement(whole, informed(X, labels)))


def informed(X: dict[str, pd.DataFrame], Y: pd.DataFrame) -> ca.InformedFactorAnalysis:
    """A factor for every subtype, as in the paper."""
    return ca.InformedFactorAnalysis(K, drop_first=False).fit(X, Y)


def aligned(fa: ca.InformedFactorAnalysis) -> np.ndarray:
    return fa.realign(0.75).factors_[:, : len(fa.covariate_names_)]


def agreement(whole: np.ndarray, fa: ca.InformedFactorAnalysis) -> float:
    """Mean correlation of informed factors; samples are those of the first view, in its order."""
    return float(np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(whole.T, aligned(fa).T, strict=True)]))


def by_mofa(cells: dict[str, pd.DataFrame], Y: pd.DataFrame, seed: int) -> dict[str, pd.DataFrame] | None:
    """Cells predicted by mofapy2, Z W', from views standardised over observed cells."""
    if MOFA().absent() is not None:
        return None
    scaled = {name: ((view - view.mean()) / view.std(ddof=0)).to_numpy() for name, view in cells.items()}
    fitted = MOFA().fit(scaled, ca.covariates.encode(Y, drop_first=False).to_numpy(), K, seed, 1000)
    return {
        name: pd.DataFrame(
            (fitted.factors @ fitted.loadings[name].T) * view.std(ddof=0).to_numpy() + view.mean().to_numpy(),
            index=view.index,
            columns=view.columns,
        )
        for name, view in cells.items()
    }


def error(made: dict[str, pd.DataFrame] | None, X: dict[str, pd.DataFrame], hidden: dict[str, np.ndarray]) -> float:
    """Root mean square over all hidden cells, in standard deviations of their features."""
    if made is None:
        return float("nan")
    off = [((made[name] - view) / view.std(ddof=0)).to_numpy()[hidden[name]] for name, view in X.items()]
    return float(np.sqrt(np.mean(np.concatenate(off) ** 2)))


def line(what: str, seed: int, correlation: float, errors: list[float] | None = None) -> None:
    shown = "" if errors is None else f"{errors[0]:11.4f} {errors[1]:9.4f} {errors[2]:7.4f}"
    print(f"{what:44} {seed:4} {correlation:12.4f} {shown}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tcga", metavar="FOLDER")
    parser.add_argument("--peers", metavar="PYTHON")
    args = parser.parse_args()
    if args.peers:
        os.environ["COVALIGN_PEERS"] = args.peers
    head()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        costs(args.repeats)
        if args.tcga:
            breast_cancer(args.tcga)


if __name__ == "__main__":
    main()
