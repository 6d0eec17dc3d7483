"""Informed factor analysis against simpler ways to named dimensions: alignment on new samples, at coupling budgets.

python benchmarks/factor_frontier.py [--tcga FOLDER] [--cll FOLDER] [--embedding FOLDER] [--repeats 1]
    [--out docs/factor_frontier.csv]

Every method fits four fifths of the samples and places the others without their covariates, for every lambda. The
left-out samples of all folds together give one alignment and one coupling (less what chance adds) for every lambda, and
from these the alignment at a coupling of .1, .5 and 1. Rivals get missing cells at the mean of their feature.
Conditions: the data as they are, a third of the cells missing, and, where there are several views, each view but the
first missing for half of the samples. ``covalign arena`` compares more methods on more data; this is the comparison at
several numbers of factors.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.model_selection import KFold

import covalign as ca
from covalign.study.arena.bouts import BUDGETS, within
from covalign.study.arena.entrants import LAMS

Views = dict[str, np.ndarray]


class Case(NamedTuple):
    """Views, covariates (NaN where missing), and the number of factors for all methods."""

    name: str
    views: Views
    Y: np.ndarray
    n_factors: int


# -- data -------------------------------------------------------------------------------------------------------------


def bundled() -> Iterator[Case]:
    """scikit-learn's five; the first features of breast_cancer and diabetes are covariates."""
    for name, k in (("iris", 4), ("wine", 5), ("digits", 20)):
        data = getattr(datasets, f"load_{name}")()
        yield Case(name, {"X": data.data[:, data.data.std(axis=0) > 0]}, levels(data.target), k)
    data = datasets.load_breast_cancer()
    yield Case("breast_cancer", {"X": data.data[:, 2:]}, np.column_stack([data.target, data.data[:, :2]]), 10)
    data = datasets.load_diabetes()
    yield Case("diabetes", {"X": data.data[:, 3:]}, np.column_stack([data.data[:, :3], data.target]), 6)


def tcga(folder: Path) -> Iterator[Case]:
    """Breast cancer: all views, and each alone."""
    data = ca.datasets.breast_tcga(folder)
    Y, views = levels(data.covariates["subtype"]), {name: table.to_numpy() for name, table in data.views.items()}
    for k in (5, 10, 20):
        yield Case(f"TCGA, K = {k}", views, Y, k)
    for name, table in views.items():
        yield Case(f"TCGA {name}", {name: table}, Y, 10)


def cll(folder: Path) -> Iterator[Case]:
    """Leukaemia: responses to drugs and mutations; IGHV, trisomy 12, sex and age are covariates."""
    drugs = pd.read_csv(folder / "drugs.csv", index_col=0).T
    mutations = pd.read_csv(folder / "mutations.csv", index_col=0).T.reindex(drugs.index)
    about = pd.read_csv(folder / "metadata.csv", index_col=0).reindex(drugs.index)
    Y = np.column_stack(
        [
            about["IGHV"].map({"M": 1.0, "U": 0.0}),
            mutations["trisomy12"],
            about["Gender"].map({"m": 1.0, "f": 0.0}),
            about["Age4Main"],
        ]
    ).astype(np.float64)
    rest = mutations.drop(columns=["trisomy12", "IGHV"], errors="ignore")
    rest = rest.loc[:, (rest.notna().sum() > 60) & (rest.std() > 0)]
    yield Case("CLL", {"drugs": drugs.to_numpy(np.float64), "mutations": rest.to_numpy(np.float64)}, Y, 15)
    yield Case("CLL drugs", {"drugs": drugs.to_numpy(np.float64)}, Y, 15)


def embedding(folder: Path) -> Iterator[Case]:
    """The first 200 principal components of an image embedding, and 20 classes."""
    Z, labels = np.load(folder / "embeddings.npy").astype(np.float64), pd.read_csv(folder / "labels.csv")
    components = PCA(200, random_state=0).fit_transform(Z)
    named = sorted(labels.loc[labels["labelled"] == 1, "wnid"].unique())
    yield Case("images", {"X": components}, np.column_stack([labels["wnid"] == n for n in named]).astype(float), 60)


def levels(column: object) -> np.ndarray:
    """Dummies without the first."""
    return pd.get_dummies(pd.Series(column), drop_first=True).to_numpy(np.float64)


def conditions(case: Case) -> Iterator[tuple[str, Case]]:
    """The data as they are, and with more cells missing."""
    yield "as they are", case
    rng = np.random.default_rng(0)
    fewer = {name: np.where(rng.random(view.shape) < 1 / 3, np.nan, view) for name, view in case.views.items()}
    yield "a third of the cells missing", case._replace(views=fewer)
    if len(case.views) > 1:
        (first, kept), *others = case.views.items()
        absent = {name: np.where(rng.random(len(view))[:, None] < 0.5, np.nan, view) for name, view in others}
        yield "views missing for half of the samples", case._replace(views={first: kept, **absent})


# -- methods ----------------------------------------------------------------------------------------------------------


def filled(train: Views, test: Views) -> tuple[np.ndarray, np.ndarray]:
    """Standardised features, missing cells at the mean."""
    X, new = np.hstack(list(train.values())), np.hstack(list(test.values()))
    mean, sd = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return np.nan_to_num((X - mean) / sd), np.nan_to_num((new - mean) / sd)


def aligned(represent: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Callable[..., np.ndarray]:
    """A representation, then ``LatentAligner`` on it, in every regime (lambdas x n x P)."""

    def place(train: Views, Y: np.ndarray, test: Views, k: int) -> np.ndarray:
        Z, new = represent(*filled(train, test), Y, k)
        al = ca.LatentAligner(missing="pairs" if np.isnan(Y).any() else "drop").fit(Z, Y)
        return np.stack([al.at(lam).transform(new) for lam in LAMS])

    return place


def features(X: np.ndarray, new: np.ndarray, Y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The features themselves."""
    return X, new


def by(make: Callable[[int], object], supervised: bool = False) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Components of a scikit-learn model."""

    def represent(X: np.ndarray, new: np.ndarray, Y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        model = make(min(k, *X.shape))
        model.fit(X, np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)) if supervised else model.fit(X)
        return model.transform(X), model.transform(new)

    return represent


def ifa(train: Views, Y: np.ndarray, test: Views, k: int) -> np.ndarray:
    """Informed factor analysis with its defaults."""
    model = ca.InformedFactorAnalysis(max(k, Y.shape[1]), folds=0).fit(train, Y)
    return np.stack([model.at(lam).transform(test)[:, : Y.shape[1]] for lam in LAMS])


METHODS = {
    "aligner on the features": aligned(features),
    "PCA, then T": aligned(by(PCA)),
    "FA, then T": aligned(by(FactorAnalysis)),
    "PLS, then T": aligned(by(lambda k: PLSRegression(k, scale=False), supervised=True)),
    "iFA": ifa,
}

# -- measuring --------------------------------------------------------------------------------------------------------


def judged(place: Callable[..., np.ndarray], case: Case, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean alignment and coupling of left-out samples for every lambda."""
    n, p = case.Y.shape
    placed = np.empty((len(LAMS), n, p))
    for train, test in KFold(5, shuffle=True, random_state=seed).split(case.Y):
        varies = {name: np.nanstd(view[train], axis=0) > 0 for name, view in case.views.items()}
        fitted = {name: view[train][:, varies[name]] for name, view in case.views.items()}
        new = {name: view[test][:, varies[name]] for name, view in case.views.items()}
        placed[:, test] = place(fitted, case.Y[train], new, case.n_factors)
    has = ~np.isnan(case.Y)
    alignment = [np.mean([np.corrcoef(z[has[:, j], j], case.Y[has[:, j], j])[0, 1] for j in range(p)]) for z in placed]
    coupling = [np.sum((np.corrcoef(z.T) - np.eye(p)) ** 2) - p * (p - 1) / n for z in placed]
    return np.array(alignment), np.array(coupling)


def main() -> None:
    """Measure, print as we go, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("tcga", "cll", "embedding", "out"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="names of data sets")
    asked = parser.parse_args()
    cases = [*bundled()]
    for name, load in (("tcga", tcga), ("cll", cll), ("embedding", embedding)):
        if getattr(asked, name) is not None:
            cases += load(getattr(asked, name))
    warnings.simplefilter("ignore")
    rows = []
    for case in cases:
        for condition, data in conditions(case) if not asked.only or case.name in asked.only else ():
            for method, place in METHODS.items():
                start = time.process_time()
                runs = [judged(place, data, seed) for seed in range(asked.repeats)]
                alignment, coupling = (np.mean(part, axis=0) for part in zip(*runs, strict=True))
                at = {f"alignment at {budget:g}": within(alignment, coupling, budget) for budget in BUDGETS}
                seconds = (time.process_time() - start) / (5 * asked.repeats)
                row = {"data": case.name, "condition": condition, "method": method, **at, "coupling at 0": coupling[0]}
                rows.append({**row, "seconds a fit": seconds})
                print(pd.DataFrame([rows[-1]]).round(3).to_string(header=len(rows) == 1, index=False), flush=True)
                if asked.out is not None:
                    pd.DataFrame(rows).round(4).to_csv(asked.out, index=False)


if __name__ == "__main__":
    main()
