"""Data of the paper, and factor models of other packages, read from your files as tables.

Nothing is downloaded, and no code in a file is run.

>>> import covalign as ca
>>> data = ca.datasets.embedding("z.npz")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from covalign._core.checks import check_choice
from covalign._core.data_errors import columns_not_numeric, not_numeric, not_two_dimensional, table_without_column
from covalign._core.extras import optional
from covalign._core.files import UNREADABLE, data_not_found, path_to_read, unreadable_data
from covalign._core.messages import listed, message
from covalign._core.paths import is_file, is_folder
from covalign.tables.covariates import as_frame
from covalign.tables.join import in_order, refuse_duplicates
from covalign.tables.mofa_models import FactorModel, read_model
from covalign.tables.table_files import csv_table, npz_arrays

VIEWS = {"train": ("mrna", "mirna", "protein"), "test": ("mrna", "mirna")}
OMICS = "a folder with mrna.csv.gz, mirna.csv.gz, protein.csv.gz and subtype.csv, or mixOmics' breast.TCGA.rda"
EMBEDDING = "a folder with embeddings.npy and labels.csv, or an .npz with Z and Y or labels"


@dataclass(frozen=True, eq=False)
class MultiOmics:
    """Several views of the same samples, and their covariates, all with the same index.

    >>> import pandas as pd
    >>> from covalign.bridges.datasets import MultiOmics
    >>> data = MultiOmics({"rna": pd.DataFrame({"TP53": [0.1, 2.3]})}, pd.DataFrame({"subtype": ["LumA", "Basal"]}))
    >>> list(data.views), data.covariates.columns.tolist()
    (['rna'], ['subtype'])
    """

    views: dict[str, pd.DataFrame]
    covariates: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Embedding:
    """A representation Z (samples x dimensions, dtype as stored), its covariates, and the labels they come from.

    >>> import numpy as np, pandas as pd
    >>> from covalign.bridges.datasets import Embedding
    >>> Embedding("clip", np.zeros((2, 512)), pd.DataFrame({"cat": [1.0, 0.0]}), None).Z.shape
    (2, 512)
    """

    name: str
    Z: NDArray[np.floating[Any]]
    covariates: pd.DataFrame
    labels: pd.DataFrame | None


# -- factor models of MOFA, MOFA-FLEX and MuVI ------------------------------------------------------------------------


def mofa(path: Any) -> FactorModel:
    """Factors and loadings of a model that mofapy2, MOFA-FLEX 0.1, MuVI or covalign saved.

    ``path`` is an HDF5 file of mofapy2, of MOFA-FLEX, of MuVI's ``save_as_hdf5`` or of covalign's ``to_mofa``, or a
    folder of MuVI's ``save``. ``LatentAligner`` then names these factors, and ``LatentAligner.loadings`` gives the
    loadings of the named dimensions. MOFA stores no names of factors: they are Factor1, Factor2, ... in the order of
    the file.

    >>> import pathlib, tempfile, covalign as ca
    >>> s = ca.simulate.scenario("PN", n_samples=100, n_features={"rna": 30, "protein": 20})
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.hdf5"
    >>> ca.InformedFactorAnalysis(7).fit(s.X, s.Y).to_mofa(file)
    >>> m = ca.datasets.mofa(file)
    >>> al = ca.LatentAligner(keep_rest=True).fit(m.Z, s.Y)
    >>> al.loadings(m.loadings)["rna"].columns.tolist()
    ['y0', 'y1', 'y2', 'y3', 'y4', 'rest0', 'rest1']
    """
    return read_model(path)


# -- breast cancer: mRNA, miRNA and proteins of the same tumours ------------------------------------------------------


def breast_tcga(path: Any, part: str = "train") -> MultiOmics:
    """The views mrna, mirna and protein of breast tumours, and their ``subtype`` (a category).

    ``path`` is a folder with mrna.csv.gz, mirna.csv.gz, protein.csv.gz and subtype.csv (the training part; .csv and
    .csv.gz are both read; the first column names the samples), or mixOmics' own breast.TCGA.rda, which also has
    ``part="test"``, without proteins. Samples are matched by name, in the order of mrna.

    >>> import covalign as ca
    >>> data = ca.datasets.breast_tcga("breast.TCGA.rda")  # doctest: +SKIP
    >>> fa = ca.InformedFactorAnalysis(20).fit(data.views, data.covariates)  # doctest: +SKIP
    """
    path = path_to_read(path, "breast.TCGA.rda, or a folder of its tables")
    check_choice("part", part, tuple(VIEWS))
    if is_folder(path):
        if part != "train":
            problem = f"the folder {str(path)!r} has the training part only"
            raise ValueError(message(problem, remedy="Pass the path of mixOmics' breast.TCGA.rda, or part='train'"))
        tables = _from_folder(path)
    elif is_file(path):
        tables = _from_rda(path, part)
    else:
        raise data_not_found(path, OMICS)
    tables = _joined(tables)
    return MultiOmics({name: tables[name] for name in VIEWS[part]}, tables["subtype"])


def _from_folder(folder: Path) -> dict[str, pd.DataFrame]:
    files = {name: _csv_in(folder, name) for name in (*VIEWS["train"], "subtype")}
    tables = {name: _named_rows(csv_table(file)) for name, file in files.items()}
    if "subtype" not in tables["subtype"].columns:
        raise table_without_column(files["subtype"].name, "subtype", tables["subtype"].columns)
    subtype = tables.pop("subtype")[["subtype"]].astype("category")
    return {**{name: _numbers(table, files[name].name) for name, table in tables.items()}, "subtype": subtype}


def _csv_in(folder: Path, name: str) -> Path:
    for file in (folder / f"{name}.csv.gz", folder / f"{name}.csv"):
        if is_file(file):
            return file
    raise data_not_found(folder / f"{name}.csv", OMICS)


def _named_rows(table: pd.DataFrame) -> pd.DataFrame:
    return table.set_index(table.columns[0]).rename_axis("sample")


def _numbers(table: pd.DataFrame, name: str) -> pd.DataFrame:
    wrong = [column for column, dtype in table.dtypes.items() if not types.is_numeric_dtype(dtype)]
    if wrong:
        raise columns_not_numeric(name, wrong)
    return table.astype(np.float64)


def _joined(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """All tables with the samples of the first, in its order: by name; a table without names by position.

    Positions can be trusted only where all named tables have the same order.
    """
    named = [name for name, table in tables.items() if not isinstance(table.index, pd.RangeIndex)]
    first = named[0] if named else next(iter(tables))
    samples = tables[first].index
    refuse_duplicates(samples, first)
    ordered = {name: in_order(tables[name], samples, called=(name, first)) for name in named}
    moved = [name for name in named if not tables[name].index.equals(samples)]
    joined = {}
    for name, table in tables.items():
        if name not in named and len(table) != len(samples):
            raise _sample_counts_differ(first, name, len(samples), len(table))
        if name not in named and moved:
            problem = f"{name} has no sample names, and {first} and {moved[0]} differ in their order"
            remedy = f"Name the samples of {name}, or bring {first} and {moved[0]} into the same order"
            raise ValueError(message(problem, remedy=remedy))
        joined[name] = ordered[name] if name in named else table.set_axis(samples, axis=0)
    return joined


def _sample_counts_differ(first: str, second: str, n_first: int, n_second: int) -> ValueError:
    """The error for tables that are joined by position and have different numbers of rows."""
    problem = f"{first} and {second} need the same number of rows (samples)"
    got = f"{n_first} and {n_second}"
    return ValueError(message(problem, got=got, remedy="one row of each belongs to one sample"))


# -- R's serialized objects -------------------------------------------------------------------------------------------


def _from_rda(path: Path, part: str) -> dict[str, pd.DataFrame]:
    """The tables of ``breast.TCGA$data.train`` or ``$data.test``; those without row names have a RangeIndex."""
    contents = _objects(path)
    data = contents.get("breast.TCGA")
    if not isinstance(data, Mapping):
        raise _foreign_rda(path, "an R list 'breast.TCGA'", contents)
    members = data.get(f"data.{part}")
    if not isinstance(members, Mapping):
        raise _foreign_rda(path, f"a list 'data.{part}'", data)
    absent = [name for name in (*VIEWS[part], "subtype") if name not in members]
    if absent:
        raise _foreign_rda(path, f"{listed(absent)} in 'data.{part}'", members)
    tables = {name: _matrix(members[name], name, path) for name in VIEWS[part]}
    return {**tables, "subtype": _subtype(members["subtype"], path)}


def _foreign_rda(path: Path, need: str, got: Iterable[Any]) -> ValueError:
    """The error for an .rda file that is not mixOmics' data set."""
    problem = f"{str(path)!r} needs {need}, got {listed(got) or 'nothing of the kind'}"
    remedy = "data(breast.TCGA, package = 'mixOmics'); save(breast.TCGA, file = 'breast.TCGA.rda')"
    return ValueError(f"{problem}: save the data set in R with  {remedy}")


def _objects(path: Path) -> dict[str, Any]:
    """What an .rda file holds, by name."""
    rdata = optional("rdata", "rdata")
    constructors = {**rdata.conversion.DEFAULT_CLASS_MAP, "factor": _factor}
    try:
        # Old files do not name their encoding; it is ASCII, which is valid UTF-8.
        contents = rdata.read_rda(path, constructor_dict=constructors, default_encoding="utf-8")
    except Exception as error:  # foreign bytes can raise any error in a parser, and all mean the same
        raise unreadable_data(path, OMICS, error or type(error).__name__) from error
    return contents if isinstance(contents, dict) else {}


def _factor(codes: Any, attributes: Mapping[str, Any]) -> Any:
    """An R factor as a Categorical, or as a Series if its elements have names (which rdata would drop)."""
    # Codes count from 1. A missing code is masked, NaN or R's most negative integer.
    numbers = pd.Series(codes if isinstance(codes, np.ndarray) else codes.values, dtype=np.float64)
    from_zero = numbers.fillna(0).clip(lower=0).to_numpy(dtype=np.intp) - 1
    values = pd.Categorical.from_codes(from_zero, categories=pd.Index(attributes["levels"]))
    names = attributes.get("names")
    return values if names is None else pd.Series(values, index=pd.Index(names).astype(str))


def _matrix(value: Any, name: str, path: Path) -> pd.DataFrame:
    """An R matrix, with its dimnames if it has any."""
    if np.ndim(value) != 2:
        raise _foreign_rda(path, f"a matrix {name!r}", [type(value).__name__])
    table: pd.DataFrame = value.to_pandas() if hasattr(value, "to_pandas") else pd.DataFrame(value)
    return _numbers(table.rename_axis(index="sample", columns=None), name)


def _subtype(value: Any, path: Path) -> pd.DataFrame:
    if np.ndim(value) != 1:
        raise _foreign_rda(path, "a factor 'subtype'", [type(value).__name__])
    index = value.index.rename("sample") if isinstance(value, pd.Series) else None
    return pd.DataFrame({"subtype": pd.Categorical(value)}, index=index)


# -- embeddings of labelled images ------------------------------------------------------------------------------------


def embedding(path: Any) -> Embedding:
    """A representation and its covariates in the paper's image design: one 0/1 dummy per labelled class.

    ``path`` is a folder with embeddings.npy and labels.csv (column ``name``: the class of a row; optional column
    ``labelled``: classes with 1 become dummies, in order of appearance, and rows with 0 are zero in all of them;
    without it every class becomes one), or an .npz with the array ``Z`` and either ``labels`` (text; optional
    ``labelled``) or ``Y`` (columns taken as they are; optional ``names``). Rows of Z and of the labels belong together
    by position. From a folder, Z stays on disk until it is used (a read-only memory map).

    >>> import numpy as np, pathlib, tempfile, covalign as ca
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "z.npz"
    >>> np.savez(file, Z=np.eye(4), labels=["cat", "dog", "cat", "newt"])
    >>> ca.datasets.embedding(file).covariates.columns.tolist()
    ['cat', 'dog', 'newt']
    """
    path = path_to_read(path, "embeddings")
    file, name = (path / "embeddings.npy", path.resolve().name) if is_folder(path) else (path, path.stem)
    if not is_file(file):
        raise data_not_found(file, EMBEDDING)
    Z, covariates, labels = _from_archive(file) if file.suffix == ".npz" else _from_array(file)
    Z = _floats("Z", Z)
    if len(Z) != len(covariates):
        raise _sample_counts_differ("Z", "its labels" if labels is not None else "Y", len(Z), len(covariates))
    return Embedding(name, Z, covariates, labels)


def _from_array(file: Path) -> tuple[NDArray[Any], pd.DataFrame, pd.DataFrame]:
    """Z as a memory map, the covariates, and the labels in the file beside it."""
    try:
        Z = np.lib.format.open_memmap(file, mode="r")
    except UNREADABLE as error:
        raise unreadable_data(file, "an .npy file with an array of numbers", error) from error
    table = file.with_name("labels.csv")
    if not is_file(table):
        raise data_not_found(table, EMBEDDING)
    labels = csv_table(table, text=("file", "wnid", "name"))
    if "name" not in labels.columns:
        raise table_without_column(table.name, "name", labels.columns)
    return Z, _dummies(labels, table), labels


def _from_archive(file: Path) -> tuple[NDArray[Any], pd.DataFrame, pd.DataFrame | None]:
    """Z, the covariates, and the labels if the covariates were made from them."""
    arrays = npz_arrays(file)
    if "Z" not in arrays or ("Y" in arrays) == ("labels" in arrays):
        problem = f"{str(file)!r} needs an array Z and either Y or labels, got {listed(arrays) or 'none'}"
        how = "numpy.savez(path, Z=Z, labels=labels)  or  numpy.savez(path, Z=Z, Y=Y, names=names)"
        raise ValueError(f"{problem}: save it with  {how}")
    if "Y" in arrays:
        return arrays["Z"], _named_columns(arrays["Y"], arrays.get("names")), None
    names = arrays["labels"]
    if names.dtype.kind != "U" or names.ndim != 1:
        problem = "labels needs one name (text) per row of Z"
        remedy = "save labels.astype(str) of one dimension, or 0/1 columns as Y"
        raise ValueError(message(problem, got=f"values of type {names.dtype} and shape {names.shape}", remedy=remedy))
    labels = pd.DataFrame({"name": names})
    if "labelled" in arrays:
        if arrays["labelled"].shape != names.shape:
            raise _sample_counts_differ("labels", "labelled", names.size, arrays["labelled"].size)
        labels["labelled"] = arrays["labelled"]
    return arrays["Z"], _dummies(labels, file), labels


def _named_columns(Y: NDArray[Any], names: NDArray[Any] | None) -> pd.DataFrame:
    Y = _floats("Y", Y[:, None] if Y.ndim == 1 else Y).astype(np.float64)
    if names is None:
        return as_frame(Y)
    if names.shape != Y.shape[1:]:
        problem = f"names needs {Y.shape[1]} names, one per column of Y"
        raise ValueError(message(problem, got=f"shape {names.shape}", remedy="save as many names as Y has columns"))
    return as_frame(pd.DataFrame(Y, columns=names.astype(str)))


def _dummies(labels: pd.DataFrame, source: Path) -> pd.DataFrame:
    """One column per class that is labelled somewhere: 1 where a row is of that class and labelled."""
    labelled = labels.get("labelled", pd.Series(1, index=labels.index))
    binary = labelled.isin([0, 1])
    if not binary.all():
        problem = f"labelled of {str(source)!r} needs 1 (the class is known) or 0 (it is hidden) in every row"
        got = listed(labelled[~binary].unique())
        raise ValueError(message(problem, got=got, remedy="recode it, or leave it out to use all classes"))
    shown = labels[labelled == 1]
    if (shown["name"] == "").any():
        rows = list(shown.index[shown["name"] == ""])
        problem = f"{len(rows)} labelled row(s) of {str(source)!r} have no class name, first at row {listed(rows, 3)}"
        raise ValueError(message(problem, remedy="Fill in the name, or set labelled = 0 there"))
    if "wnid" in shown:
        classes = shown[["wnid", "name"]].drop_duplicates()
        if classes["name"].duplicated().any():
            shared = listed(classes["name"][classes["name"].duplicated()].unique())
            problem = f"labelled classes need distinct names, got {shared} for more than one wnid in {str(source)!r}"
            raise ValueError(message(problem, remedy="Rename one of them"))
    names = shown["name"].unique()
    if len(names) == 0:
        raise ValueError(message(f"{str(source)!r} has no labelled class", remedy="Set labelled = 1 in some rows"))
    of_class = labels["name"].to_numpy(dtype=object)[:, None] == np.asarray(names, dtype=object)
    dummies = of_class & (labelled == 1).to_numpy()[:, None]
    return pd.DataFrame(dummies.astype(np.float64), columns=pd.Index(names))


def _floats(what: str, values: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """A matrix of floats as they are stored; whole numbers and flags as float64."""
    if values.ndim != 2:
        raise not_two_dimensional(what, values.shape)
    if values.dtype.kind not in "fiub":
        raise not_numeric(what, values.dtype)
    return values if values.dtype.kind == "f" else values.astype(np.float64)
