"""Options that several commands share, and the command line that repeats them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from covalign._core.messages import listed, message
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
        "barcode and its patient. first: as prefix, and of several samples of a patient the first is used.",
        "--match",
    ),
]
Strip = Annotated[
    str | None, option(DATA, "REGEX", "Remove what matches this regular expression from all names of rows.")
]
Na = Annotated[
    list[str] | None,
    option(DATA, "TEXT", "Text that marks a missing value, such as -. Empty cells, NA and NaN always do."),
]
Log = Annotated[list[str] | None, option(DATA, "VIEW", "Use log(1 + x) of this view, or of all. Meant for counts.")]
TopVariable = Annotated[
    list[str] | None,
    option(DATA, "INT", "Use the INT features of highest variance in every view (or VIEW=INT), after --log."),
]
AS_FITTED = "Default: as for the tables of the fit"
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


# -- values -----------------------------------------------------------------------------------------------------------


def auto_or(number: type[int] | type[float], name: str, text: str) -> Any:
    """``"auto"``, or a number; the estimator checks its range."""
    if text == "auto":
        return text
    try:
        return number(text)
    except ValueError:
        kind = "a whole number" if number is int else "a number"
        raise ValueError(message(f"{name} needs 'auto' or {kind}", got=repr(text))) from None


def numbers(name: str, text: str, kind: str, example: str, fits: Callable[[float], bool]) -> list[float]:
    """Numbers, all of which fit, separated by commas."""
    with suppress(ValueError):
        found = [float(part) for part in text.split(",")]
        if all(map(fits, found)):
            return found
    remedy = f"write for example {example}"
    raise ValueError(message(f"{name} needs {kind}, separated by commas", got=repr(text), remedy=remedy))


def named_paths(texts: Sequence[str] | None, data: Path | None) -> dict[str, Path]:
    """The paths of ``--view NAME=PATH`` by name. Data are one file, or views."""
    found: dict[str, Path] = {}
    for text in texts or ():
        name, sign, path = text.partition("=")
        if not (name and sign and path):
            remedy = f"write for example rna={text or 'rna.csv'}"
            raise ValueError(message("--view needs NAME=PATH", got=repr(text), remedy=remedy))
        if name in found:
            raise ValueError(message("views need distinct names", got=f"{name!r} more than once", remedy="rename one"))
        found[name] = Path(path)
    if (data is None) == (not found):
        need = "data are needed once, as one file or as --view NAME=PATH (which may be repeated)"
        raise ValueError(message(need, got="neither" if data is None else "both", remedy="choose one"))
    return found


def embedding_paths(texts: Sequence[str] | None) -> dict[str, Path]:
    """The paths of ``--embeddings NAME=PATH`` by name."""
    found: dict[str, Path] = {}
    for text in texts or ():
        name, _, path = text.partition("=")
        if not path:
            remedy = f"write for example clip={name}"
            raise ValueError(message("--embeddings needs NAME=PATH", got=repr(name), remedy=remedy))
        found[name] = Path(path)
    return found


class Reading(NamedTuple):
    """How tables are read, besides their paths: checked before any of them is opened."""

    transpose: list[str]
    match: str
    strip: str | None
    log: list[str]
    top_variable: dict[str, int]
    ordered: dict[str, list[str]]
    by_position: bool
    na: list[str]

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of ``open_study``."""
        from covalign.tables.name_rules import NameRule
        from covalign.tables.view_layout import Layout

        rule = NameRule(self.match, self.strip)
        layout = Layout(self.transpose, rule, self.log, self.top_variable, not self.by_position)
        return {"layout": layout, "ordered": self.ordered, "na": self.na}

    def for_later(self, views: Sequence[str], **more: Any) -> dict[str, Any]:
        """What a model file says of the reading, so that new rows of these views are read in the same way.

        ``more`` are facts beside the options of tables. What has its default is left out.
        """
        asked = {"transpose": self.transpose, "log": self.log}
        named = {flag: [view for view in views if view in some or ALL in some] for flag, some in asked.items()}
        match = None if self.match == Match.exact.value else self.match
        every = {**named, "match": match, "strip": self.strip, "na": self.na, **more}
        return {name: value for name, value in every.items() if value}

    def recalled(self, saved: Mapping[str, Any]) -> Reading:
        """The reading with what a model file says."""
        return self._replace(**{name: value for name, value in saved.items() if name in self._fields})


def reading(
    transpose: Sequence[str] | None,
    match: Match,
    strip: str | None,
    log: Sequence[str] | None,
    top_variable: Sequence[str] | None,
    ordered: Sequence[str] | None,
    by_position: bool,
    views: Sequence[str] | None = (),
    na: Sequence[str] | None = None,
) -> Reading:
    """The options of tables. Without names of ``views`` there is one view, which only ``all`` can mean.

    None means that the names are in the file.
    """
    for flag, names in (("--transpose", transpose), ("--log", log)):
        check_views(flag, names or (), views)
    if strip is not None:
        try:
            re.compile(strip)
        except re.error as error:
            got, remedy = f"{strip!r} ({error})", "write for example '-01A$'"
            raise ValueError(message("--strip needs a regular expression", got=got, remedy=remedy)) from None
    most = dict(_most(text) for text in top_variable or ())
    check_views("--top-variable", [*most], views)
    levels = dict(_levels(text) for text in ordered or ())
    return Reading([*(transpose or ())], match.value, strip, [*(log or ())], most, levels, by_position, [*(na or ())])


def some_or_none(names: Sequence[str] | None, views: Sequence[str] | None) -> list[str]:
    """The names of views; ``none`` means that there are none, unless a view is called so."""
    given = [*(names or ())]
    return [] if given == [NONE] and NONE not in (views or ()) else given


def said_of(saved: Mapping[str, Any]) -> str:
    """What a model file says of the reading, as flags."""
    from covalign.tables.representations import SINGLE

    named = {name: value if isinstance(value, list) else [value] for name, value in saved.items() if name != "columns"}
    named |= {name: [ALL] for name in ("transpose", "log") if named.get(name) == [SINGLE]}
    return shlex.join(word for name, values in named.items() for one in values for word in (f"--{name}", one))


def check_views(flag: str, names: Sequence[str], views: Sequence[str] | None) -> None:
    """Refuse names of views that are not there; ``all`` means every view."""
    wrong = [] if views is None else [name for name in names if name not in (*views, ALL)]
    if wrong and views is not None:
        need = f"{flag} needs the name of a view or all" if views else f"{flag} needs all where the data are one file"
        remedy = f"The views are {listed(views)}" if views else f"Write {flag} all"
        problem = f"{need}, got {listed(wrong)}"
        raise ValueError(message(problem, remedy=remedy, wrong=wrong, known=views))


def _most(text: str) -> tuple[str, int]:
    name, sign, number = text.rpartition("=")
    if not (number.isdecimal() and int(number) > 0 and bool(name) == bool(sign)):
        remedy = "write for example 2000, or rna=2000"
        raise ValueError(message("--top-variable needs a number of features", got=repr(text), remedy=remedy))
    return name or ALL, int(number)


def _levels(text: str) -> tuple[str, list[str]]:
    name, _, order = text.partition("=")
    levels = [level.strip() for level in order.split("<")]
    if not name or len(levels) < 2 or not all(levels) or len({*levels}) < len(levels):
        got, remedy = repr(text), "write for example 'stage=i<ii<iii<iv', in quotes"
        raise ValueError(message("--ordered needs NAME=A<B<C with distinct levels", got=got, remedy=remedy))
    return name.strip(), levels


def views_in(data: Path | None, paths: dict[str, Path]) -> list[str] | None:
    """The names of the views; none for one file of rows, None for a file of several views."""
    return None if data is not None and data.suffix.lower() == ".h5mu" else [*paths]


def shrinkage_of(text: str) -> Any:
    """``"auto"``, or a number from 0 to 1."""
    value = auto_or(float, "--shrinkage", text)

    from covalign._core.checks import check_shrinkage

    return value if value == "auto" else check_shrinkage(value)


def supervision_of(text: str) -> Any:
    """``"auto"``, or a number from 1."""
    value = auto_or(float, "--supervision", text)

    from covalign._core.parameters import check_supervision

    check_supervision(value)
    return value


def checked_folds(folds: int) -> int:
    """A number of folds that makes sense; the estimators say where 0 does."""
    from covalign._core.checks import check_folds

    return folds and check_folds(folds)


def check_setting(regime: Regime | None, lam: float | None, max_coupling: float | None) -> None:
    """Refuse, before any data are read, settings that are out of range or contradict each other."""
    from covalign._core.checks import check_lam, check_max_coupling

    if lam is not None and max_coupling is not None:
        raise ValueError(message("--lam and --max-coupling exclude each other", remedy="Leave one of them out"))
    for name, value, check in (("--lam", lam, check_lam), ("--max-coupling", max_coupling, check_max_coupling)):
        if value is None:
            continue
        check(value)
        if regime not in (None, Regime.tunable):
            remedy = "leave one of the two out (--lam alone means tunable)"
            raise ValueError(message(f"{name} needs the tunable regime", got=f"--regime {regime}", remedy=remedy))


def limits(
    exact: bool, weight: Sequence[str] | None, uncoupled: Sequence[str] | None, max_coupling: float | None
) -> dict[str, Any]:
    """The arguments of ``at`` for --max-coupling, --exact, --weight and --uncoupled; empty without any of them."""
    if not exact:
        if weight or uncoupled:
            raise ValueError(message("--weight and --uncoupled need --exact", remedy="Add --exact"))
        return {} if max_coupling is None else {"max_coupling": max_coupling}
    if max_coupling is None and not uncoupled:
        raise ValueError(message("--exact needs --max-coupling or --uncoupled", remedy="Add one of them"))
    weights = dict(_weight(text) for text in weight) if weight else None
    pairs = [_pair(text) for text in uncoupled] if uncoupled else None
    return {"max_coupling": max_coupling, "exact": True, "weights": weights, "uncoupled": pairs}


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, float(number)
    except ValueError:
        remedy = "write for example dose=3"
        raise ValueError(message("--weight needs NAME=NUMBER", got=repr(text), remedy=remedy)) from None


def _pair(text: str) -> tuple[str, str]:
    first, _, second = text.partition(",")
    if not (first and second):
        raise ValueError(message("--uncoupled needs NAME,NAME", got=repr(text), remedy="write for example age,sex"))
    return first, second


# -- command lines ----------------------------------------------------------------------------------------------------


def again(ctx: typer.Context, name: str, panels: Sequence[str] = (DATA,), without: Sequence[str] = ()) -> str:
    """The command line ``covalign name`` with the same arguments, and the same options of some panels."""
    words: list[str] = []
    for param in ctx.command.params:
        value: Any = ctx.params.get(str(param.name))
        is_option = param.param_type_name == "option"
        if is_option and (getattr(param, "rich_help_panel", None) not in panels or param.name in without):
            continue
        if is_option and _plain(value) == _plain(param.default):
            continue
        if value is False and param.secondary_opts:  # --all-levels is the opposite of --drop-first
            words.append(param.secondary_opts[0])
        if value in (None, False, [], ()):
            continue
        first = [max(param.opts, key=len)] if is_option else []
        for one in value if isinstance(value, list | tuple) else [value]:
            words += first if one is True else [*first, _plain(one)]
    return line(name, *words)


def line(*words: Any) -> str:
    """A command line to copy."""
    return shlex.join(["covalign", *map(str, words)])


def refit(ctx: typer.Context) -> str:
    """The command line that fits the same model, without its regime: the report shows one for every regime."""
    return again(ctx, str(ctx.info_name), (DATA, METHOD), ("regime", "lam", "max_coupling"))


def _plain(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)
