"""Ratios of informed factor analysis to plain factor analysis, to its peers, and to one matrix product.

python benchmarks/factor.py [--repeats 5] [--peers PYTHON]

PYTHON is an interpreter that has the peers, if it is not the one of  make peers; they are timed there, in separate
processes and without their imports.
"""

from __future__ import annotations

import argparse
import os
import statistics
import warnings

from sklearn.decomposition import FactorAnalysis
from timing import head, median_seconds, row

import covalign as ca
from covalign.factor.inference import sweeps as fitting
from covalign.factor.inference.start import start
from covalign.study.baselines import run
from covalign.study.baselines.peers import MOFA, SOFA


def against_plain_factor_analysis(repeats: int) -> None:
    for n, d, k in ((500, 100, 10), (5000, 500, 20), (150, 2000, 20)):
        s = ca.simulate.scenario("PN", n_samples=n, n_features=d, n_factors=k, random_state=1)
        X = (s.X - s.X.mean(axis=0)) / s.X.std(axis=0)
        t = median_seconds(
            {
                "fa": lambda X=X, k=k: FactorAnalysis(k).fit(X),
                "ifa": lambda s=s, k=k: ca.InformedFactorAnalysis(k).fit(s.X, s.Y),
            },
            repeats,
        )
        row(f"full fit, {n} x {d}, K = {k}", "sklearn FactorAnalysis", t["ifa"], t["fa"], 1.0)


def sweeps_free_of_n(repeats: int) -> None:
    """Plain sweeps show the cost of the data; default (accelerated) sweeps add Newton steps, more at larger N."""
    problems = {}
    for n in (10_000, 100_000):
        s = ca.simulate.scenario("PN", n_samples=n, n_features=200, random_state=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problems[n] = ca.InformedFactorAnalysis(10, max_iter=1).fit(s.X, s.Y)._problem

    def six_sweeps(n: int, accelerate: bool) -> None:
        state = start(problems[n])
        for _ in range(6):
            state = fitting.sweep(problems[n], state, accelerate)

    for name, accelerate in (("accelerated", True), ("plain", False)):
        works = {str(n): lambda n=n, accelerate=accelerate: six_sweeps(n, accelerate) for n in problems}
        t = median_seconds(works, 2 * repeats)
        row(f"6 {name} sweeps from the start, 100,000 rows", "at 10,000 rows", t["100000"], t["10000"], 1.3)


def further_lambda(repeats: int) -> None:
    s = ca.simulate.scenario("PN", random_state=1)
    fa = ca.InformedFactorAnalysis(10).fit(s.X, s.Y)
    works = {"stage 1": lambda: ca.InformedFactorAnalysis(10).fit(s.X, s.Y), "realign": lambda: fa.realign(0.5)}
    t = median_seconds(works, 3 * repeats)
    row("a further lambda, paper setting", "stage 1", t["realign"], t["stage 1"], 0.25)


def large(repeats: int) -> None:
    s = ca.simulate.scenario("PN", n_samples=200_000, n_features=500, random_state=1)
    X, Y = s.X, s.Y
    t = median_seconds({"gram": lambda: X.T @ X, "fit": lambda: ca.InformedFactorAnalysis(10).fit(X, Y)}, repeats)
    row("whole fit, 200,000 x 500", "X.T @ X", t["fit"], t["gram"], 2.0)


def against_peers(repeats: int) -> None:
    s = ca.simulate.scenario("PN", random_state=1)
    t = median_seconds({"ifa": lambda: ca.InformedFactorAnalysis(10).fit(s.X, s.Y)}, repeats)["ifa"]
    for peer, times, allowed in ((MOFA(), 3, 1.0), (SOFA(), 1, 0.01)):
        why = peer.absent()
        if why is not None:
            print(f"{peer.name} is not timed: {why}")
            continue
        theirs = statistics.median(run(peer, s.X, s.Y, n_factors=10).seconds for _ in range(times))
        row("full fit, 500 x 100, K = 10", peer.name, t, theirs, allowed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--peers", metavar="PYTHON")
    args = parser.parse_args()
    if args.peers:
        os.environ["COVALIGN_PEERS"] = args.peers
    head()
    against_plain_factor_analysis(args.repeats)
    sweeps_free_of_n(args.repeats)
    further_lambda(args.repeats)
    large(min(args.repeats, 3))
    against_peers(args.repeats)


if __name__ == "__main__":
    main()
