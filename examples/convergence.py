"""Plot the distance to the best known bound after each sweep, plain and accelerated, in the setting of the paper.

python examples/convergence.py --out docs/img [--sweeps 20000]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import covalign as ca

COLOURS = {"full": "#0072B2", "mean_field": "#D55E00"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/img"))
    parser.add_argument("--sweeps", type=int, default=20_000)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # plain sweeps do not converge here
    s = ca.simulate.scenario("PN", n_samples=500, random_state=0)
    _, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True, layout="constrained")
    for ax, (posterior, colour) in zip(axes, COLOURS.items(), strict=True):
        curves = {
            "accelerated": ca.InformedFactorAnalysis(10, posterior, tol=1e-13, max_iter=500).fit(s.X, s.Y).elbo_,
            "plain sweeps": ca.InformedFactorAnalysis(10, posterior, False, args.sweeps, tol=0.0).fit(s.X, s.Y).elbo_,
        }
        best = max(curve.max() for curve in curves.values())
        for name, curve in curves.items():
            gap = np.maximum(best - curve, 1e-4)
            ax.loglog(np.arange(1, len(gap) + 1), gap, color=colour, ls="-" if name == "accelerated" else (0, (4, 2)))
            end = np.flatnonzero(gap < 1)
            where = f"within 1 nat at sweep {end[0] + 1:,}" if len(end) else f"{gap[-1]:.1f} nats short at {len(gap):,}"
            print(f"{posterior:10} {name:13} {where}")
            at = 1 if name == "accelerated" else len(gap) // 120
            ax.annotate(f"{name}\n{where}", (at, gap[at]), xytext=(6, 4), textcoords="offset points", fontsize=8)
        ax.axhline(1, color="#AAAAAA", lw=0.8, zorder=0)
        ax.set_title(f"posterior = {posterior!r}", loc="left", fontsize=10)
        ax.set_xlabel("sweeps")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("nats below the best bound")
    args.out.mkdir(parents=True, exist_ok=True)
    axes[0].figure.savefig(args.out / "convergence.png", dpi=200)
    print(args.out / "convergence.png")


if __name__ == "__main__":
    plt.style.use(ca.plot.STYLE)
    main()
