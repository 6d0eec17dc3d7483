"""Demonstrate covalign on a simulated scenario, on the hidden layer of a digit classifier, and on a simulated clinic.

python examples/demo.py --out demo_output
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import covalign as ca


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo_output"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    print("1. A simulated scenario: five correlated covariates, ten latent dimensions, 500 samples (PN)\n")
    scenario = ca.simulate.scenario("PN", n_samples=500, random_state=0)
    simulated = ca.LatentAligner().fit(scenario.Z, scenario.Y)
    print(regime_table(simulated), "\n")

    print("2. A real representation: the hidden layer of a network that classifies handwritten digits (1,797 x 48)\n")
    Z, Y = digits()
    aligner = ca.LatentAligner(lam=0.5).fit(Z, Y)
    print(regime_table(aligner))
    print(f"\n   shrinkage chosen by cross-validation: {aligner.shrinkage_:.3g}")
    print("   per covariate at lam = 0.5:\n")
    print(aligner.summary().round(3).to_string(), "\n")
    budget = aligner.at(max_coupling=0.1)
    print(f"   strongest alignment with coupling <= 0.1: {budget.alignment_.mean():.3f} at lam = {budget.lam:.3f}")
    erased = aligner.erase(Z, "ink")
    before, after = r_squared(Z, Y["ink"]), r_squared(erased, Y["ink"])
    print(f"   R2 of ink predicted from Z: {before:.3f}; after erase(Z, 'ink'): {after:.3f}\n")

    print("Figures:")
    _, (left, right) = plt.subplots(1, 2, figsize=(8.8, 3.4), layout="constrained")
    ca.plot.frontier(simulated.frontier(), left, title="Simulated, five correlated covariates (PN)")
    ca.plot.frontier(aligner.frontier(), right, title="Digits: hidden layer of a network")
    save(left, out / "frontier.png")
    moments = aligner.moments_.with_names(aligner.covariate_names_)
    tidy = ca.regimes.matrices(moments, shrinkage=aligner.shrinkage_)
    save(ca.plot.matrices(tidy)[0, 0], out / "matrices.png")
    save(ca.plot.alignment(aligner.summary(), title="Digits, λ = 0.5"), out / "alignment.png")

    print("\nReports (open them in a browser; a slider sets lambda):")
    pages = {"report.html": (aligner, "Handwritten digits"), "factors.html": (clinic(), "A clinic, simulated")}
    for name, (model, title) in pages.items():
        print(f"   {ca.report.write(model, out / name, title=title, overwrite=True)}")
    print(f"\nOpen {(out / 'report.html').absolute().as_uri()} and move the slider.")


def digits() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Hidden activations of a small network that classifies digits, and measurements of the images."""
    data = load_digits()
    images = data.images / 16
    network = MLPClassifier((48,), max_iter=60, random_state=0, early_stopping=True).fit(data.data / 16, data.target)
    hidden = np.maximum(data.data / 16 @ network.coefs_[0] + network.intercepts_[0], 0)
    ink = images.sum(axis=(1, 2))
    x, y = np.meshgrid(np.linspace(-1, 1, 8), np.linspace(1, -1, 8))
    mean_x, mean_y = ((images * at).sum(axis=(1, 2)) / ink for at in (x, y))
    dx, dy = x - mean_x[:, None, None], y - mean_y[:, None, None]
    width, height = (np.sqrt((images * d**2).sum(axis=(1, 2)) / ink) for d in (dx, dy))
    slant = (images * dx * dy).sum(axis=(1, 2)) / ink / (width * height)
    Y = pd.DataFrame(
        {"ink": ink, "width": width, "top-heavy": mean_y, "slant": slant, "loop": np.isin(data.target, [0, 6, 8, 9])}
    )
    return pd.DataFrame(hidden, columns=[f"unit{i}" for i in range(48)]), Y


def clinic() -> ca.InformedFactorAnalysis:
    """Two views, one of them missing for some patients, and clinical covariates."""
    data = ca.simulate.scenario(
        "PN", n_samples=300, n_features={"rna": 60, "protein": 40}, n_covariates=3, random_state=1
    )
    patients = pd.Index([f"patient {i}" for i in range(1, 301)])
    views = {
        name: pd.DataFrame(X, index=patients, columns=[f"{name} {d}" for d in range(X.shape[1])])
        for name, X in data.X.items()
    }
    views["protein"] = views["protein"].iloc[:210]
    Y = pd.DataFrame({"age": 55 + 10 * data.Y[:, 0], "dose": data.Y[:, 1], "sex": data.Y[:, 2] > 0}, index=patients)
    Y.loc[patients[7:20], "dose"] = np.nan
    return ca.InformedFactorAnalysis(n_factors=8).fit(views, Y).realign(lam=0.5)


def regime_table(aligner: ca.LatentAligner) -> str:
    """The four regimes, in sample and held out."""
    frame = aligner.frontier([0, 0.5, 1])
    names = {"lam": "lambda", "held_out_alignment": "held-out align.", "held_out_coupling": "held-out coupl."}
    columns = ["regime", "lam", "alignment", "coupling", "held_out_alignment", "held_out_coupling"]
    order = frame["regime"].map({"exclusive": 0, "independent": 1, "tunable": 2, "strongest": 3}).sort_values().index
    table = frame.loc[order, columns].rename(columns=names)
    return table.to_string(index=False, float_format=lambda value: f"{value:.3f}", na_rep="-")


def r_squared(Z: pd.DataFrame, y: pd.Series) -> float:
    """In-sample R^2 of y on Z."""
    centred = Z.to_numpy() - Z.to_numpy().mean(axis=0)
    target = y.to_numpy() - y.mean()
    fitted = centred @ np.linalg.lstsq(centred, target, rcond=None)[0]
    return float(fitted @ fitted / (target @ target))


def save(ax: matplotlib.axes.Axes, path: Path) -> None:
    """Write the figure."""
    ax.figure.savefig(path, dpi=200)
    plt.close(ax.figure)
    print(f"   {path}")


if __name__ == "__main__":
    plt.style.use(ca.plot.STYLE)
    main()
