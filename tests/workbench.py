"""A folder with everything that the examples of the documentation name, small: what they say is run there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import covalign as ca
from covalign.stream.h5ad import pulling
from tests import encoders

N, NEW, K = 60, 30, 12
REVIEWS = ["good film", "bad film", "good book", "bad book", "long book", "long film"] * 2

# Models by their names on the hub, with random weights: a folder of that name is found before the hub is asked.
MODELS: dict[str, Callable[[Path], Path]] = {
    "openai/clip-vit-large-patch14": encoders.clip,
    "facebook/dinov2-base": encoders.dinov2,
    "google/vit-base-patch16-224": encoders.vit,
    "sentence-transformers/all-MiniLM-L6-v2": lambda folder: encoders.bert(folder, words=" ".join(REVIEWS)),
}


def furnish(folder: Path) -> Path:
    """Fill a folder with data and saved models."""
    s = ca.simulate.scenario("PN", n_samples=N, n_features={"rna": 14, "protein": 10}, n_covariates=3, n_factors=K)
    clinic = _covariates(s.Y)
    _representations(folder, s.Z, clinic)
    names = pd.Index([f"patient{i}" for i in range(N)], name="sample")
    clinic, tables = clinic.set_index(names), {name: _named(X, name, names) for name, X in s.X.items()}
    _tables(folder, tables, clinic)
    _annotated(folder, s.Z, tables, clinic)
    sets = {"STRESS": tables["rna"].columns[:6], "GROWTH": tables["rna"].columns[6:12]}
    lines = ["\t".join([name, "simulated", *genes]) for name, genes in sets.items()]
    (folder / "h.gmt").write_text("\n".join(lines) + "\n")
    for name in ("cat", "dog"):
        (folder / "images" / name).mkdir(parents=True)
        for i in range(4):
            encoders.picture(i + 10 * (name == "cat")).save(folder / "images" / name / f"{i}.png")
    pd.DataFrame({"review": REVIEWS, "stars": np.arange(len(REVIEWS)) % 5}).to_csv(folder / "reviews.csv", index=False)
    return folder


def _covariates(Y: np.ndarray) -> pd.DataFrame:
    sex, batch = np.where(Y[:, 1] > 0, "female", "male"), np.tile(["a", "b", "c"], N // 3)
    clinic = pd.DataFrame({"age": 60 + 10 * Y[:, 0], "sex": sex, "dose": Y[:, 2], "batch": batch})
    clinic.loc[7, "dose"] = np.nan
    return clinic


def _representations(folder: Path, Z: np.ndarray, clinic: pd.DataFrame) -> None:
    """Rows without names, a saved aligner, and PATH, as the documentation writes where a path goes."""
    np.save(folder / "Z.npy", Z.astype(np.float32))
    np.save(folder / "Z_new.npy", Z[:NEW].astype(np.float32) + 1)
    clinic.to_csv(folder / "covariates.csv", index=False)
    ca.LatentAligner().fit(folder / "Z.npy", clinic[["age", "sex", "dose"]]).save(folder / "model.covalign")
    (folder / "PATH").mkdir()
    np.save(folder / "PATH" / "embeddings.npy", Z.astype(np.float32))
    pd.DataFrame({"name": np.tile(["cat", "dog", "newt", "toad", "owl", "bee"], N // 6)}).to_csv(
        folder / "PATH" / "labels.csv", index=False
    )


def _named(X: np.ndarray, view: str, names: pd.Index) -> pd.DataFrame:
    return pd.DataFrame(X, index=names, columns=[f"{view}{i}" for i in range(X.shape[1])])


def _tables(folder: Path, tables: dict[str, pd.DataFrame], clinic: pd.DataFrame) -> None:
    """Views and covariates with names, where one view lacks some samples; and a model of them."""
    lacking = {"rna": tables["rna"], "protein": tables["protein"].iloc[6:]}
    for name, table in (lacking | {"clinic": clinic}).items():
        table.to_csv(folder / f"{name}.csv")
    model = ca.InformedFactorAnalysis(5, tol=1e-3, supervision=1.0).fit(lacking, clinic[["age", "sex", "dose"]])
    model.save(folder / "ifa.covalign")


def _annotated(folder: Path, Z: np.ndarray, tables: dict[str, pd.DataFrame], clinic: pd.DataFrame) -> None:
    """The same for those who keep AnnData and MuData, where these are installed."""
    try:
        import anndata
        import mudata
    except ImportError:
        return
    donor = np.repeat([f"donor{i}" for i in range(10)], N // 10)
    cells = anndata.AnnData(tables["rna"], obs=clinic.assign(donor=donor))
    cells.obsm["X_pca"] = Z.astype(np.float32)
    cells.write_h5ad(folder / "cells.h5ad")
    with pulling(False):
        study = mudata.MuData({name: anndata.AnnData(table) for name, table in tables.items()})
        study.obs = clinic.loc[study.obs_names]
        study.write_h5mu(folder / "study.h5mu")
