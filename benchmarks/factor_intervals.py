"""Coverage of the 90 % intervals of informed factors and of beta, with default settings, on simulated data.

python benchmarks/factor_intervals.py [--seeds 12] [--scenarios PN N] [--sizes 60 1000] [--noise 0.1 3] [--gaps labels]

One line for each setting: per cent of true values in their interval (true factors: z of the simulation; beta: that of
the simulation, or 0 where covariates are drawn anew). The seeds were not used to choose anything.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np

import covalign as ca

WIDTH, FIRST = 1.6449, 70_000


def data(name: str, n: int, noise: float, seed: int, gaps: str) -> tuple[np.ndarray, np.ndarray, ca.simulate.Scenario]:
    """Features and covariates of a scenario, with gaps."""
    s = ca.simulate.scenario("PN" if name == "none" else name, n_samples=n, noise=noise, random_state=FIRST + seed)
    rng, X, Y = np.random.default_rng(seed), s.X.copy(), s.Y.copy()
    if name == "none":
        Y = rng.standard_normal(Y.shape)
    if gaps == "cells":
        X[rng.random(X.shape) < 0.2] = np.nan
    if gaps == "blocks":
        X[rng.random(n) < 0.4, : X.shape[1] // 2] = np.nan
    if gaps == "labels":
        Y[rng.random(Y.shape) < 0.5] = np.nan
    return X, Y, s


def covered(name: str, n: int, noise: float, gaps: str, seeds: int) -> tuple[float, float, float]:
    """The share of factors and of betas in their intervals, and the share of fits with a supervision above 1."""
    of_z, of_beta, supervised = [], [], []
    for seed in range(seeds):
        X, Y, s = data(name, n, noise, seed, gaps)
        fa = ca.InformedFactorAnalysis(10, folds=0).fit(X, Y)
        p = Y.shape[1]
        beta = np.zeros(p) if name == "none" else s.beta
        of_beta.append(np.abs(fa.beta_ - beta) < WIDTH * fa.beta_std_)
        of_z.append(np.abs(fa.factors_[:, :p] - s.Z[:, :p]) < WIDTH * fa.factor_std_[:, :p])
        supervised.append(fa.supervision_ > 1)
    return np.nan if name == "none" else float(np.mean(of_z)), float(np.mean(of_beta)), float(np.mean(supervised))


def lines(args: argparse.Namespace) -> Iterator[str]:
    """Rows of a table."""
    yield "| scenario | gaps | n | noise | factor_std_ | beta_std_ | supervision > 1 |\n|---|---|---|---|---|---|---|"
    for name in args.scenarios:
        for n in args.sizes:
            for noise in args.noise:
                found = covered(name, n, noise, args.gaps, args.seeds)
                yield (
                    f"| {name} | {args.gaps} | {n} | {noise:g} | " + " | ".join(f"{100 * x:.0f}" for x in found) + " |"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--scenarios", nargs="+", default=["PN", "AR", "P", "N", "none"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[60, 200, 1000, 5000])
    parser.add_argument("--noise", nargs="+", type=float, default=[0.1, 1.0, 3.0])
    parser.add_argument("--gaps", choices=["none", "cells", "blocks", "labels"], default="none")
    warnings.simplefilter("ignore")
    for line in lines(parser.parse_args()):
        print(line, flush=True)
