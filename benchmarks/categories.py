"""Codings of a category: all levels, a reference level, contrasts, and the category as a block.

python benchmarks/categories.py [--tcga FOLDER] [--cll FOLDER] [--embedding FOLDER] [--out docs/categories.csv]
    [--write docs/choosing.md]

Every coding is fitted to the same rows, and all numbers are held out (5 folds). 'all levels, same' is the mean of the
fit with all levels over the levels that 'first' has a dimension for, so the two compare the same covariates. --write
puts the table of --out into a page, between the lines '<!-- categories -->' and '<!-- end of categories -->'.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import helmert
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold

import covalign as ca
from covalign._core.text_tables import markdown
from covalign.moments.moments import Moments

LAMS = (0.0, 0.5, 1.0)
COMPONENTS = 100
BEGIN, END = "<!-- categories -->", "<!-- end of categories -->"


class Case(NamedTuple):
    """A representation, a category of its rows, and covariates beside it."""

    name: str
    Z: np.ndarray
    category: pd.Series
    others: pd.DataFrame | None = None


# -- data -------------------------------------------------------------------------------------------------------------


def bundled() -> Iterator[Case]:
    """The classes of scikit-learn's data sets, with standardised features."""
    for name in ("iris", "wine", "digits"):
        data = getattr(datasets, f"load_{name}")()
        names = [str(level) for level in data.target_names]
        yield Case(name, standardised(data.data), pd.Series([names[i] for i in data.target], name="class"))


def tcga(folder: Path) -> Iterator[Case]:
    """Subtypes of breast cancer, and the principal components of every view."""
    data = ca.datasets.breast_tcga(folder)
    subtype = data.covariates["subtype"].astype(str).reset_index(drop=True)
    for view, table in data.views.items():
        yield Case(f"TCGA {view}", components(standardised(table.to_numpy())), subtype)
    whole = standardised(np.hstack([table.to_numpy() for table in data.views.values()]))
    yield Case("TCGA all views", components(whole), subtype)


def cll(folder: Path) -> Iterator[Case]:
    """Drug responses of leukaemia: clusters of patients alone, and beside sex and IGHV (which have gaps)."""
    about = pd.read_csv(folder / "metadata.csv", index_col="Sample")
    drugs = pd.read_csv(folder / "drugs.csv", index_col=0).T
    drugs = drugs.fillna(drugs.mean())
    about = about.reindex(drugs.index)
    known = about["ConsClust"].notna()
    Z = components(standardised(drugs[known].to_numpy()), 50)
    cluster = about.loc[known, "ConsClust"].rename("cluster").reset_index(drop=True)
    flags = about.loc[known, ["Gender", "IGHV"]].rename(columns={"Gender": "sex"}).reset_index(drop=True)
    yield Case("CLL cluster", Z, cluster)
    yield Case("CLL cluster, sex, IGHV", Z, cluster, ca.covariates.encode(flags, missing="pairs"))


def embedded(folder: Path) -> Iterator[Case]:
    """Classes of images, 5, 20 and all of them, and the principal components of their embeddings."""
    data = ca.datasets.embedding(folder)
    assert data.labels is not None
    names = data.labels["name"]
    Z = components(np.asarray(data.Z, dtype=np.float64))
    order = names.unique()
    for count in (5, 20, len(order)):
        rows = names.isin(order[:count]).to_numpy()
        yield Case(f"images, {count} classes", Z[rows], names[rows].rename("class").reset_index(drop=True))


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns that vary, with mean 0 and variance 1."""
    X = np.asarray(X, dtype=np.float64)[:, np.std(X, axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0)


def components(X: np.ndarray, most: int = COMPONENTS) -> np.ndarray:
    """The first principal components."""
    U, d, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return (U * d)[:, : min(most, len(X) - 1)]


# -- codings ----------------------------------------------------------------------------------------------------------


def measured(case: Case) -> Iterator[tuple[str, float, float, float]]:
    """(coding, lambda, held-out alignment, held-out coupling) of every coding."""
    dummies = pd.get_dummies(case.category, dtype=float)
    levels, frequent = list(dummies), dummies.sum().idxmax()
    every, alone = frontier(case, dummies)
    yield from rows_of("all levels", every)
    yield from (("all levels, same", lam, alone[lam][1:].mean(), np.nan) for lam in LAMS)
    left_out = {level: frontier(case, dummies.drop(columns=level))[0] for level in levels}
    yield from rows_of("first", left_out[levels[0]])
    yield from rows_of("most frequent", left_out[frequent])
    for lam in LAMS:
        ranked = sorted(levels, key=lambda level: left_out[level].loc[lam, "held_out_alignment"])
        for name, level in (("worst", ranked[0]), ("best", ranked[-1])):
            yield name, lam, *left_out[level].loc[lam, ["held_out_alignment", "held_out_coupling"]]
    contrasts = pd.DataFrame(dummies.to_numpy() @ helmert(len(levels)).T).add_prefix("contrast")
    yield from rows_of("contrasts", frontier(case, contrasts)[0])
    if case.others is None:
        yield from (("block", lam, block(case, dummies), np.nan) for lam in LAMS)


def frontier(case: Case, coded: pd.DataFrame) -> tuple[pd.DataFrame, dict[float, np.ndarray]]:
    """Held-out alignment and coupling along lambda, and the held-out alignment of every covariate."""
    Y = coded if case.others is None else pd.concat([coded, case.others], axis=1)
    al = ca.LatentAligner().fit(case.Z, Y)
    each = {lam: al.at(lam).held_out_alignment_.to_numpy() for lam in LAMS}
    return al.frontier(LAMS).query("regime != 'exclusive'").set_index("lam"), each


def rows_of(coding: str, found: pd.DataFrame) -> Iterator[tuple[str, float, float, float]]:
    for lam in LAMS:
        yield coding, lam, *found.loc[lam, ["held_out_alignment", "held_out_coupling"]]


def block(case: Case, dummies: pd.DataFrame, folds: int = 5) -> float:
    """Root of the mean squared canonical correlation of the category and Z, on left-out rows.

    Levels whitened by the training rows have covariance I, so the eigenvectors of M are the canonical directions.
    """
    Y = dummies.to_numpy()
    ridge = ca.LatentAligner().fit(case.Z, Y[:, 1:])
    predicted, known = [], []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(case.Z, case.category):
        _, d, Vt = np.linalg.svd(Y[train] - Y[train].mean(axis=0), full_matrices=False)
        white = np.sqrt(len(train)) * Vt[: Y.shape[1] - 1].T / d[: Y.shape[1] - 1]
        whitened = (Y - Y[train].mean(axis=0)) @ white
        m = Moments.from_arrays(case.Z[train], whitened[train])
        polar = ca.regimes.whitened_polar(m, ridge.shrinkage_, ridge.scale_)
        V = np.linalg.eigh(polar.M)[1][:, ::-1]
        predicted.append((case.Z[test] - m.mean_z) @ polar.T_0.T @ V)
        known.append(whitened[test] @ V)
    z, y = np.vstack(predicted), np.vstack(known)
    return float(np.sqrt(np.mean([np.corrcoef(a, b)[0, 1] ** 2 for a, b in zip(z.T, y.T, strict=True)])))


def run(cases: Iterator[Case]) -> pd.DataFrame:
    found = []
    for case in cases:
        size = (case.name, *case.Z.shape, case.category.nunique())
        found += [(*size, *row) for row in measured(case)]
        print(*size, flush=True)
    columns = ["data", "rows", "dimensions", "levels", "coding", "lam", "alignment", "coupling"]
    return pd.DataFrame(found, columns=columns).round(4)


# -- table ------------------------------------------------------------------------------------------------------------


def table(out: Path) -> str:
    """Alignment and, in brackets, coupling at lambda 0 of every coding."""
    data = pd.read_csv(out)
    codings = list(data["coding"].unique())
    shown = [coding for coding in codings if coding not in ("worst", "best")]
    rows = []
    for (name, levels), part in data.groupby(["data", "levels"], sort=False):
        at = part.set_index(["coding", "lam"])
        at = at.reindex(pd.MultiIndex.from_product([codings, LAMS]))  # NaN where a coding was not measured
        cells = [cell(*at.loc[(coding, 0.0), ["alignment", "coupling"]]) for coding in shown]
        span = " to ".join(f"{at.loc[(coding, 0.0), 'alignment']:.3f}" for coding in ("worst", "best"))
        rows.append([f"{name} ({levels})", *cells, span])
    return markdown(["data (levels)", *shown, "worst to best level"], rows)


def cell(alignment: float, coupling: float) -> str:
    return "-" if np.isnan(alignment) else f"{alignment:.3f}" + ("" if np.isnan(coupling) else f" ({coupling:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    readers = {"tcga": tcga, "cll": cll, "embedding": embedded}
    for name in readers:
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/categories.csv"))
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # all levels at lambda 1 merge dimensions: this is what is measured
    if args.write is None or not args.out.exists():
        asked = [(read, getattr(args, name)) for name, read in readers.items() if getattr(args, name) is not None]
        found = run(case for part in (bundled(), *(read(at) for read, at in asked)) for case in part)
        found.to_csv(args.out, index=False)
    made = table(args.out)
    print(made)
    if args.write is not None:
        page = args.write.read_text()
        inside = re.compile(f"(?<={re.escape(BEGIN)}\n).*?(?={re.escape(END)})", re.DOTALL)
        args.write.write_text(inside.sub(lambda _: f"\n{made}\n\n", page))


if __name__ == "__main__":
    main()
