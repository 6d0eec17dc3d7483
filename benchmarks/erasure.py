"""Erasing a covariate: what linear probes still find on held-out rows, and how much these rows change.

python benchmarks/erasure.py [--embeddings FOLDER] [--concept-erasure FOLDER] [--splits 5] [--write docs/erasure.md]

The peer is LEACE as published: ``pip install --no-deps --target FOLDER concept-erasure`` does not change the torch of
this environment. Without --embeddings only the simulated part is measured.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata

import covalign as ca
from covalign._core.text_tables import markdown
from covalign.bridges import datasets
from covalign.study.intervals import over_splits

Eraser = Callable[[np.ndarray], np.ndarray]
PERMUTATIONS = 20


def erasers(Z: np.ndarray, Y: pd.DataFrame, names: list[str], fits: list[ca.LatentAligner]) -> dict[str, Eraser]:
    """Rows in, rows without these covariates out; everything fitted to (Z, Y)."""
    import torch
    from concept_erasure import LeaceFitter

    published = LeaceFitter.fit(torch.from_numpy(Z), torch.from_numpy(Y[names].to_numpy())).eraser
    ours, exact = fits
    return {
        "nothing erased": lambda rows: rows,
        "LEACE": lambda rows: published(torch.from_numpy(rows)).numpy(),
        "covalign": lambda rows: ours.erase(rows, names),
        "covalign, unshrunk": lambda rows: exact.erase(rows, names),
    }


def scores(train: np.ndarray, y: np.ndarray, test: np.ndarray, rho: float = 0.5) -> np.ndarray:
    """A ridge probe's predictions; y may have many columns (labels and their permutations), one probe for each."""
    mean = train.mean(0)
    centred, target = train - mean, y - y.mean(0)
    few_rows = len(train) < train.shape[1]
    gram = (centred @ centred.T if few_rows else centred.T @ centred) / len(train)
    ridged = (1 - rho) * gram + rho * np.trace(gram) / train.shape[1] * np.eye(len(gram))
    if few_rows:
        return (test - mean) @ (centred.T @ np.linalg.solve(ridged, target)) / len(train)
    return (test - mean) @ np.linalg.solve(ridged, centred.T @ target) / len(train)


def auc(found: np.ndarray, label: np.ndarray) -> float:
    """Area under the curve, averaged over columns; it is one half for a constant prediction."""
    values = []
    for column, truth in zip(found.T, label.T, strict=True):
        ranks = np.full(len(column), (len(column) + 1) / 2) if np.ptp(column) < 1e-9 else rankdata(column)
        ones = truth > 0.5
        values.append((ranks[ones].sum() - ones.sum() * (ones.sum() + 1) / 2) / (ones.sum() * (~ones).sum()))
    return float(np.mean(values))


def fresh(rows: np.ndarray, label: np.ndarray, seed: int) -> tuple[float, float]:
    """Area under the curve of probes trained on four fifths of these rows, on the other rows; and by chance."""
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, 5, len(rows))
    wanted = np.hstack([label, *(rng.permutation(label) for _ in range(PERMUTATIONS))])
    found = np.empty(wanted.shape)
    for k in range(5):
        found[fold == k] = scores(rows[fold != k], wanted[fold != k], rows[fold == k])
    p = label.shape[1]
    return auc(found[:, :p], label), auc(found[:, p:], wanted[:, p:])


def measured(Z: np.ndarray, Y: pd.DataFrame, concepts: list[list[str]], split: int) -> Iterator[tuple]:
    """(eraser, what, value) for one division into halves, averaged over what is erased."""
    half = np.random.default_rng(split).permutation(len(Z))
    fitted, unseen = half[: len(Z) // 2], half[len(Z) // 2 :]
    fits = [ca.LatentAligner(shrinkage=rho).fit(Z[fitted], Y.iloc[fitted]) for rho in ("auto", 0.0)]
    rows = []
    for names in concepts:
        seen, label = (Y[names].to_numpy()[part] for part in (fitted, unseen))
        for eraser, erase in erasers(Z[fitted], Y.iloc[fitted], names, fits).items():
            before, after = erase(Z[fitted]), erase(Z[unseen])
            of_new, by_chance = fresh(after, label, split)
            rows += [
                (eraser, "probe from the fitted rows", auc(scores(before, seen, after), label)),
                (eraser, "probe from new rows", of_new),
                (eraser, "by chance", by_chance),
                (eraser, "change of new rows", np.sum((after - Z[unseen]) ** 2) / len(unseen)),
                (eraser, "change of fitted rows", np.sum((before - Z[fitted]) ** 2) / len(fitted)),
            ]
    frame = pd.DataFrame(rows, columns=["eraser", "what", "value"])
    for (eraser, what), value in frame.groupby(["eraser", "what"], sort=False)["value"].mean().items():
        yield eraser, what, float(value), split


def simulated(n: int, k: int, classes: int = 6, seed: int = 0) -> tuple[np.ndarray, pd.DataFrame]:
    """Correlated dimensions with class means; half of the rows belong to no class."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 2 * classes, n)
    mixing = rng.standard_normal((k, k)) * (1 + np.arange(k)) ** -0.5
    means = rng.standard_normal((2 * classes, k)) @ mixing.T
    Z = rng.standard_normal((n, k)) @ mixing.T + means[level]
    return Z, pd.DataFrame(np.eye(2 * classes)[level][:, :classes], columns=[f"c{i}" for i in range(classes)])


def table(title: str, Z: np.ndarray, Y: pd.DataFrame, concepts: list[list[str]], splits: int) -> str:
    """Mean over splits; the last two columns against LEACE on the same split, with 90 % intervals."""
    rows = [row for split in range(splits) for row in measured(Z, Y, concepts, split)]
    wide = pd.DataFrame(rows, columns=["eraser", "what", "value", "split"])
    wide = wide.pivot_table(index="split", columns=["eraser", "what"], values="value")
    lines = []
    for eraser in ("nothing erased", "LEACE", "covalign", "covalign, unshrunk"):
        one, peer = wide[eraser], wide["LEACE"]
        cells = [
            f"{one[what].mean():.3f}" for what in ("probe from the fitted rows", "probe from new rows", "by chance")
        ]
        if eraser in ("nothing erased", "LEACE"):
            cells += ["", ""] if eraser == "nothing erased" else ["0", "1 / 1"]
        else:
            cells.append(str(over_splits(one["probe from new rows"] - peer["probe from new rows"])))
            ratios = [over_splits(one[w] / peer[w]) for w in ("change of new rows", "change of fitted rows")]
            cells.append(f"{ratios[0]:.3f} / {ratios[1].mean:.3f}")
        lines.append([eraser, *cells])
    header = ["", "probe from the fitted rows", "probe from new rows", "by chance", "new rows' probe less LEACE's"]
    made = f"{title}\n\n" + markdown([*header, "change of new / fitted rows over LEACE's"], lines)
    print(made, flush=True)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embeddings", metavar="FOLDER")
    parser.add_argument("--concept-erasure", metavar="FOLDER")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--write", metavar="PAGE", type=Path, help="Put the tables after the line '<!-- measured -->'.")
    args = parser.parse_args()
    if args.concept_erasure:
        sys.path.append(args.concept_erasure)
    warnings.simplefilter("ignore")
    made = []
    if args.embeddings:
        data = datasets.embedding(args.embeddings)
        Z, Y = np.asarray(data.Z, dtype=np.float64), data.covariates
        names, shape = list(Y.columns), f"{len(data.Z) // 2} rows fitted, K = {data.Z.shape[1]}"
        each = [[name] for name in names[::4]]
        made.append(
            table(f"**{data.name}**, one class at a time ({len(each)} classes; {shape})", Z, Y, each, args.splits)
        )
        made.append(table(f"**{data.name}**, all {len(names)} classes at once", Z, Y, [names], args.splits))
    for n, k in ((400, 300), (1000, 20), (20_000, 20)):
        Z, Y = simulated(n, k)
        each = [[name] for name in Y.columns[:3]]
        made.append(table(f"**Simulated classes**, {n // 2} rows fitted, K = {k}", Z, Y, each, args.splits))
    if args.write:
        head = args.write.read_text().partition("<!-- measured -->")[0]
        args.write.write_text(head + "<!-- measured -->\n\n" + "\n".join(made))


if __name__ == "__main__":
    main()
