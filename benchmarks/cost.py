"""Cost against size: processor seconds of fits for growing rows, dimensions, covariates and shares of missing cells.

python benchmarks/cost.py [--repeats 3] [--write docs]

Every size is fitted by all methods in turn; --write puts cost.csv and img/cost.png into a folder.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from timing import Work, median_seconds

import covalign as ca

ALIGNED = ("LatentAligner, auto", "LatentAligner, shrinkage=0.1", "Ridge (scikit-learn)")
FACTORS = ("InformedFactorAnalysis", "FactorAnalysis (scikit-learn)", "PCA (scikit-learn)")
PANELS = {  # what grows: its sizes, and the size (rows, dimensions, covariates) of a fit
    "rows": ((1000, 3000, 10_000, 30_000, 100_000), lambda size: (size, 256, 10)),
    "dimensions": ((32, 64, 128, 256, 512, 1024), lambda size: (10_000, size, 10)),
    "covariates": ((1, 3, 10, 30, 100, 200), lambda size: (10_000, 256, size)),
}
SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)


def aligned(rows: int, dims: int, covariates: int) -> dict[str, Work]:
    """Fits of the same Z and Y by the aligner and by ridge regression."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    Z = rng.standard_normal((rows, dims))
    Y = Z[:, : min(covariates, dims)] + rng.standard_normal((rows, covariates))
    works = (
        lambda: ca.LatentAligner().fit(Z, Y),
        lambda: ca.LatentAligner(shrinkage=0.1).fit(Z, Y),
        lambda: Ridge().fit(Z, Y),
    )
    return dict(zip(ALIGNED, works, strict=True))


def factors(share: float) -> dict[str, Work]:
    """Fits of 300 x 200 with so many cells missing; scikit-learn takes complete data only."""
    from sklearn.decomposition import PCA, FactorAnalysis

    s = ca.simulate.scenario("PN", n_samples=300, n_features=200, n_factors=10, random_state=1)
    X = np.where(np.random.default_rng(1).random(s.X.shape) < share, np.nan, s.X)
    works: dict[str, Work] = {FACTORS[0]: lambda: ca.InformedFactorAnalysis(10).fit(X, s.Y)}
    if share == 0:
        works |= {FACTORS[1]: lambda: FactorAnalysis(10).fit(X), FACTORS[2]: lambda: PCA(10).fit(X)}
    return works


def measured(repeats: int) -> Iterator[dict[str, object]]:
    """One row for each fit: panel, size, method, seconds."""
    cases = ((panel, size, aligned(*of(size))) for panel, (sizes, of) in PANELS.items() for size in sizes)
    for panel, size, works in chain(cases, (("missing share", share, factors(share)) for share in SHARES)):
        for method, seconds in median_seconds(works, repeats, clock=time.process_time).items():
            yield {"panel": panel, "size": size, "method": method, "seconds": float(f"{seconds:.3g}")}


def draw(frame: pd.DataFrame, path: Path) -> None:
    """A panel for everything that grows."""
    import matplotlib.pyplot as plt

    from covalign import plot

    with plt.style.context(plot.STYLE):
        figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
        for ax, (panel, rows) in zip(axes.flat, frame.groupby("panel", sort=False), strict=True):
            for method, line in rows.groupby("method", sort=False):
                ax.plot(line["size"], line["seconds"], marker="o", markersize=3.5, label=method)
            ax.set_yscale("log")
            if panel != "missing share":
                ax.set_xscale("log")
            ax.set_xlabel({"missing share": "share of missing cells"}.get(panel, panel))
            ax.set_ylabel("processor seconds of a fit")
        axes[0, 0].legend()
        axes[1, 1].legend()
        axes[0, 0].set_title("256 dimensions, 10 covariates")
        axes[0, 1].set_title("10,000 rows, 10 covariates")
        axes[1, 0].set_title("10,000 rows, 256 dimensions")
        axes[1, 1].set_title("300 samples, 200 features, 10 factors")
        figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", type=Path, help="The folder of the table and of the picture.")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # fits that do not converge are timed as they are
    frame = pd.DataFrame(measured(args.repeats))
    print(frame.pivot_table(index=["panel", "size"], columns="method", values="seconds", sort=False).to_string())
    if args.write:
        frame.to_csv(args.write / "cost.csv", index=False)
        draw(frame, args.write / "img" / "cost.png")


if __name__ == "__main__":
    main()
