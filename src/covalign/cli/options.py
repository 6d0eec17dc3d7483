"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from covalign.cli.outputs import FIGURES, TABLES

DATA, METHOD, OUTPUT = "Input", "Method", "Output"
ALL, NONE = "all", "none"  # every view, no view


class Regime(StrEnum):
    """The relation of the dimensions to the covariates and to each other."""

    exclusive = "exclusive"
    independent = "independent"
    tunable = "tunable"
    strongest = "strongest"


class Missing(StrEnum):
    """What to do with missing covariates."""

    pairs = "pairs"
    drop = "drop"
    error = "raise"


class Match(StrEnum):
    """How names of rows are compared."""

    exact = "exact"
    prefix = "prefix"
    first = "first"


class Precision(StrEnum):
    """The precision of sums."""

    double = "double"
    single = "single"


class Posterior(StrEnum):
    """The family of the posterior."""

    full = "full"
    mean_field = "mean_field"
    coordinates = "coordinates"


class Noise(StrEnum):
    """The noise of the features."""

    gaussian = "gaussian"
    student = "student"


def option(panel: str, metavar: str, help: str, *names: str, **more: Any) -> Any:
    """An option with a value, in a panel of the help. Its name is that of the parameter, unless others are given."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel, **more)


def flag(panel: str, help: str, *names: str) -> Any:
    """An option without a value, in a panel of the help."""
    return typer.Option(*names, help=help, metavar="", rich_help_panel=panel)


# -- input ------------------------------------------------------------------------------------------------------------

Representation = Annotated[
    Path,
    typer.Argument(
        metavar="Z",
        help="The representation (.npy, .npz, .zarr, .parquet, .h5ad, .mtx, .csv or .tsv), or a model of MOFA (.hdf5).",
        show_default=False,
    ),
]
CovariatesArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="COVARIATES",
        help="Table of covariates (.csv, .tsv, .parquet, .h5ad, .h5mu, .npy or .npz). Default: obs of an .h5ad file, "
        "or columns of Z named with -c.",
    ),
]
View = Annotated[
    list[str] | None, option(DATA, "NAME=PATH", "One view and its file. Repeat the option for several views.")
]
CovariatesFile = Annotated[
    Path | None,
    option(
        DATA,
        "PATH",
        "Table of covariates. Default: obs of an .h5ad or .h5mu file, or columns of the data named with -c.",
    ),
]
Covariate = Annotated[
    list[str] | None,
    option(
        DATA,
        "NAME",
        "Column to use as a covariate. Repeat the option for several. Default: all columns.",
        "--covariate",
        "-c",
    ),
]
Confounder = Annotated[
    list[str] | None, option(DATA, "NAME", "Column to regress out. Repeat the option for several columns.")
]
Groups = Annotated[
    str | None,
    option(
        DATA,
        "NAME",
        "Column that says which rows belong together, such as donor. Groups are fitted or held out as a whole.",
    ),
]
Index = Annotated[
    str | None,
    option(
        DATA,
        "NAME",
        "Column with the names of rows. Default: the first column, if it has no header or holds distinct text.",
    ),
]
ByPosition = Annotated[bool, flag(DATA, "Match rows by position instead of by name.", "--by-position")]
Key = Annotated[
    str | None, option(DATA, "NAME", "Array to read from an .h5ad, .npz or .zarr file, such as obsm/X_pca.")
]

Transpose = Annotated[
    list[str] | None,
    option(DATA, "VIEW", "View whose file has samples as columns, or all. Default: found from the names of samples."),
]
MatchNames = Annotated[
    Match,
    option(
        DATA,
        "CHOICE",
        "Match names of rows that are the same (exact), or one of which begins with the other (prefix), such as a "
        "barcode and its patient. first: like prefix; if a patient has several samples, the first one is used.",
        "--match",
    ),
]
Strip = Annotated[
    str | None, option(DATA, "REGEX", "Remove what matches this regular expression from all names of rows.")
]
Na = Annotated[
    list[str] | None,
    option(
        DATA, "TEXT", "Text that marks a missing value, such as -. Empty cells, NA and NaN always count as missing."
    ),
]
Log = Annotated[list[str] | None, option(DATA, "VIEW", "Use log(1 + x) of this view, or of all. Meant for counts.")]
TopVariable = Annotated[
    list[str] | None,
    option(DATA, "INT", "Use the INT features of highest variance in every view (or VIEW=INT), after --log."),
]
AS_FITTED = "Default: as in the fit"
TransposeNew = Annotated[
    list[str] | None,
    option(DATA, "VIEW", f"View whose file has samples as columns, all or none. {AS_FITTED}.", "--transpose"),
]
MatchNew = Annotated[
    Match | None,
    option(
        DATA,
        "CHOICE",
        "Match names of rows that are the same (exact), or one of which begins with the other (prefix). first: as "
        f"prefix, and of several samples of a patient the first is used. {AS_FITTED}.",
        "--match",
    ),
]
StripNew = Annotated[
    str | None,
    option(DATA, "REGEX", f"Remove what matches this regular expression from all names of rows. {AS_FITTED}."),
]
NaNew = Annotated[
    list[str] | None,
    option(DATA, "TEXT", f"Text that marks a missing value besides empty cells, NA and NaN. {AS_FITTED}."),
]
LogNew = Annotated[
    list[str] | None, option(DATA, "VIEW", f"Use log(1 + x) of this view, of all or of none. {AS_FITTED}.", "--log")
]
Ordered = Annotated[
    list[str] | None,
    option(DATA, "NAME=A<B<C", "Covariate whose levels have this order, such as 'stage=i<ii<iii<iv': 0, 1, 2, 3."),
]

# -- method -----------------------------------------------------------------------------------------------------------

REGIME = "Regime of the dimensions: independent, tunable, strongest or exclusive."
Lam = Annotated[
    float | None,
    option(METHOD, "NUMBER", "Lambda of the tunable regime, from 0 (independent) to 1 (strongest). Default: 0.5."),
]
MaxCoupling = Annotated[
    float | None, option(METHOD, "NUMBER", "Use the largest lambda whose coupling is at most this number.")
]
Exact = Annotated[
    bool,
    flag(
        METHOD, "Use the best linear map within --max-coupling and --uncoupled, instead of the best lambda.", "--exact"
    ),
]
Weight = Annotated[
    list[str] | None,
    option(METHOD, "NAME=NUMBER", "Weight of a covariate for --exact. Default: 1. Repeat the option for several."),
]
Uncoupled = Annotated[
    list[str] | None,
    option(
        METHOD,
        "NAME,NAME",
        "Two covariates whose dimensions stay uncorrelated, for --exact. Repeat the option for several pairs.",
    ),
]
Shrinkage = Annotated[str, option(METHOD, "NUMBER", "Shrinkage from 0 to 1, or auto to choose it by cross-validation.")]
MissingCovariates = Annotated[
    Missing,
    option(
        METHOD,
        "CHOICE",
        "Missing covariates: use all available pairs (pairs), leave out incomplete rows (drop) or stop (raise).",
    ),
]
DropFirst = Annotated[
    bool,
    flag(
        METHOD,
        "Leave out the first level of every category (the reference level), or give every level a dimension.",
        "--drop-first/--all-levels",
    ),
]
Folds = Annotated[int, option(METHOD, "INT", "Number of cross-validation folds.")]
FoldsOrNone = Annotated[
    int, option(METHOD, "INT", "Number of cross-validation folds. 0 skips cross-validation.", min=0)
]
RandomState = Annotated[int, option(METHOD, "INT", "Seed. The same seed gives the same result.", min=0)]

# -- runs of many fits ------------------------------------------------------------------------------------------------

BreastCancer = Annotated[
    Path | None, option(DATA, "PATH", "Folder of the breast cancer data, or the file breast.TCGA.rda.")
]
Embeddings = Annotated[
    list[str] | None, option(DATA, "NAME=PATH", "A representation and its file. Repeat the option for several.")
]
Peers = Annotated[bool, flag(METHOD, "Run MOFA, SOFA and other packages that are installed.", "--peers/--no-peers")]
Jobs = Annotated[int | None, option(METHOD, "INT", "Number of processes. Default: the number of cores.", min=1)]
Dask = Annotated[str | None, option(METHOD, "ADDRESS", "Run on the dask cluster at this address (tcp://host:8786).")]

# -- output -----------------------------------------------------------------------------------------------------------

TableFile = Annotated[Path | None, option(OUTPUT, "PATH", f"The whole table ({', '.join(TABLES)}).", "--out", "-o")]
FigureFile = Annotated[
    Path | None, option(OUTPUT, "PATH", f"Alignment against coupling ({', '.join(FIGURES)}).", "--figure")
]
ReportFile = Annotated[Path | None, option(OUTPUT, "PATH", "Interactive report (.html).", "--report")]
Force = Annotated[bool, flag(OUTPUT, "Replace existing files.", "--force", "-f")]
Json = Annotated[bool, flag(OUTPUT, "Print the answer as JSON.", "--json")]
