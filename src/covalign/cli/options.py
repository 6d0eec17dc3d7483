"""Options that several commands share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

DATA, METHOD, RESULTS = "What goes in", "How", "What comes out"


class Regime(StrEnum):
    """What is asked of the dimensions."""

    exclusive = "exclusive"
    independent = "independent"
    tunable = "tunable"
    strongest = "strongest"


class Missing(StrEnum):
    """What to do with gaps in covariates."""

    pairs = "pairs"
    drop = "drop"
    error = "raise"


class Posterior(StrEnum):
    """The family of the posterior."""

    full = "full"
    mean_field = "mean_field"


Covariate = Annotated[
    list[str] | None,
    typer.Option(
        "--covariate", "-c", help="A column to align with; may be repeated (all columns).", rich_help_panel=DATA
    ),
]
Confounder = Annotated[
    list[str] | None,
    typer.Option("--confounder", help="A column to regress out; may be repeated.", rich_help_panel=DATA),
]
Index = Annotated[
    str | None,
    typer.Option(
        "--index",
        help="The column with row names (the first, if its header is empty or it is text that never repeats).",
        rich_help_panel=DATA,
    ),
]
Key = Annotated[
    str | None,
    typer.Option("--key", help="The array within .h5ad, .npz or .zarr (obsm/X_pca).", rich_help_panel=DATA),
]
ByPosition = Annotated[
    bool, typer.Option("--by-position", help="Match rows by position, not by name.", rich_help_panel=DATA)
]
Lam = Annotated[
    float | None,
    typer.Option("--lam", help="0 is independent, 1 is strongest; makes the regime tunable.", rich_help_panel=METHOD),
]
Shrinkage = Annotated[
    str, typer.Option("--shrinkage", help="auto (held out), or a number in [0, 1].", rich_help_panel=METHOD)
]
Folds = Annotated[int, typer.Option("--folds", help="Folds of the cross-validation.", rich_help_panel=METHOD)]
Gaps = Annotated[
    Missing,
    typer.Option(
        "--missing",
        help="Rows with gaps in covariates: use every pair there is, drop them, or raise an error.",
        rich_help_panel=METHOD,
    ),
]
ReportFile = Annotated[
    Path | None, typer.Option("--report", help="An interactive page, .html.", rich_help_panel=RESULTS)
]


USUAL = {"--missing": "pairs", "--folds": 5, "--shrinkage": "auto"}


def command(name: str, arguments: Sequence[Any], given: Mapping[str, Any]) -> str:
    """The line that asks for the same again: arguments, and options that were given and are not the usual ones."""
    words = [str(argument) for argument in arguments if argument is not None]
    for option, value in given.items():
        several = value if isinstance(value, list) else [value]
        for one in several:
            if one not in (None, False) and one != USUAL.get(option):
                words += [option] if one is True else [option, str(one)]
    return shlex.join(["covalign", name, *words])
