"""The page of the arena, written from its results alone: every number and every name of a winner is computed."""

from __future__ import annotations

from typing import Any

import pandas as pd

from covalign._core.text_tables import markdown
from covalign.study.arena import entrants
from covalign.study.arena.arena_advice import advice, number
from covalign.study.arena.bouts import BUDGETS
from covalign.study.arena.collection import CONDITIONS
from covalign.study.arena.standings import TIE, Results, results, standings, table_of
from covalign.study.results_store import Store

INTRODUCTION = """# The arena

Every method on real data, judged on samples that were left out of the fit. `covalign arena` makes the numbers, this
page and its figure; `docs/arena/arena.csv` has one line for each number. A test checks that the page equals the file,
and another one runs some rows again.

"""
RULES = """## Rules

- **Same for all:** folds ({folds}; whole groups are left out where there are groups), numbers of factors, at most
  {budget} iterations, {limit} seconds of computation for a fit, one thread, defaults. No method is tuned on the
  left-out samples. Repetitions have different folds and hidden cells; only those that all methods of a data set have
  are compared.
- **K** is 10, or five more than the covariates, but not more than the features.
- **Left-out samples** are placed from their features alone, for every lambda from 0 to 1. Their mean alignment and
  their coupling (less what chance adds) give a frontier. *Area* is the mean of the alignment at couplings from 0 to 1.
  A method whose least coupling *c* is above a budget *b* counts with the share sqrt(*b* / *c*) of its alignment, as if
  it kept only that share of its dimensions.
- **Alone** means that the factors of a method are matched with covariates on the training samples. **Then T** means
  that `LatentAligner` is fitted to the factors of the training samples.
- **Sparse PLS** is the penalised matrix decomposition of cca-zoo, for all features and the covariates; it has no more
  factors than covariates. DIABLO itself exists in R only, and the fit of the Python package sparse_pls 0.1.3 fails with
  scikit-learn 1.9.
- PCA, PLS, sparse PLS, both supervised PCAs and scikit-learn's FactorAnalysis have a linear map for new samples. MOFA,
  SOFA, MOFA-FLEX and MuVI have none: new samples get the posterior mean under their loadings and noise. The encoder of
  the iVAE needs covariates: new samples get their mean.
- **Missing cells** are the mean of the training samples for methods that cannot take them: all but iFA, MOFA, MOFA-FLEX
  and MuVI. SOFA takes samples that lack a view. The paper's inference takes complete data only; with gaps it is
  `posterior="mean_field"`.
- **Seconds** are seconds of computation of one fit. Memory is the most that the process had, with its packages loaded.

"""
COSTS = """## Calibration, imputation, time and memory

- *Coverage*: how often the mean alignment of a left-out fold lies in the 90 % interval that `LatentAligner` announced.
  `LatentAligner` cannot know that PLS or a supervised PCA saw the covariates before.
- *Cell coverage*: the share of hidden cells of training samples in the 90 % intervals of `impute`.
- *Imputation error*: root mean squared error of hidden cells of left-out samples, with a third of the cells missing or
  with missing views. The mean of the feature has an error of 1.
- Seconds and memory (megabytes) are medians over complete data sets.

"""


def page(store: Store, settings: dict[str, Any], figure: str = "arena/arena.png") -> str:
    """The page as Markdown."""
    found = results(store)
    parts = [INTRODUCTION, advice(found), ranking(found, figure), gaps(found), RULES.format(**settings)]
    return (
        "".join([*parts, sizes(found), every_area(found), budgets(found), costs(found), failed(found)]).rstrip() + "\n"
    )


# -- tables -----------------------------------------------------------------------------------------------------------


def ranking(found: Results, figure: str) -> str:
    """Expected wins with intervals, and the figure."""
    return f"""## Ranks

![Expected wins of every method, and its distance to the best on every data set]({figure})

*Wins* is the expected share of games that a method wins against all others (Bradley-Terry; a data set is a game, areas
within {TIE:g} are a tie), with a 90 % interval over data sets. *Behind* is the mean distance of the area to the best.
Complete data.

**Reduced sets are marked with a star:** these methods were not run on all data sets, or failed on some. Their wins
rest on fewer games. Methods with less than half of the data sets are marked with two stars and come last, whatever
their wins.

{ranked(found.ranks, repetitions(found.wide, "complete"))}
"""


def gaps(found: Results) -> str:
    """Ranks with missing values."""
    text = ""
    for condition in ("cells", "views"):
        areas = table_of(found.wide, condition)
        if not areas.empty:
            table = ranked(standings(areas), repetitions(found.wide, condition))
            text += f"## Ranks, {CONDITIONS[condition]}\n\n{table}\n"
    return text


def repetitions(wide: pd.DataFrame, condition: str) -> pd.Series:
    """The largest number of repetitions of every method."""
    return wide[wide["condition"] == condition].groupby("method")["reps"].max()


def ranked(ranks: pd.DataFrame, reps: pd.Series) -> str:
    """A table of ranks; stars mark methods with fewer data sets than others."""
    rows = []
    for _, row in ranks.iterrows():
        stars = 2 if row["few"] else int(row["data"] < ranks["data"].max())
        name = row["method"] + (" " + stars * "\\*" if stars else "")
        wins = f"{row['wins']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        rows.append([name, wins, number(row["behind"]), row["best"], row["data"], reps[row["method"]]])
    return markdown(["method", "wins", "behind", "times best", "data sets", "repetitions"], rows)


def sizes(found: Results) -> str:
    """The data sets."""
    columns = ["what", "samples", "features", "views", "covariates", "factors", "groups"]
    rows = [[name, *row[columns]] for name, row in found.data.loc[found.areas.index].iterrows()]
    header = ["data", "content and source", "samples", "features", "views", "covariates", "K", "groups"]
    text = "## Data sets\n\nFiles of installed packages, and folders given by path. Nothing was downloaded.\n\n"
    return text + markdown(header, rows) + "\n"


def every_area(found: Results) -> str:
    """Area of every method on every data set."""
    rows = [[name, *map(number, found.areas[name])] for name in found.ranks["method"]]
    return "## Area under the frontier, complete data\n\n" + markdown(["method", *found.areas.index], rows) + "\n"


def budgets(found: Results) -> str:
    """Mean alignment at the budgets."""
    names = [f"alignment at {budget:g}" for budget in BUDGETS]
    tables = [table_of(found.wide, "complete", name) for name in names]
    counts = found.areas.notna().sum()
    rows = [[name, *(number(table[name].mean()) for table in tables), counts[name]] for name in found.ranks["method"]]
    text = "## Alignment at coupling budgets\n\nMeans over the data sets of each method, complete data.\n\n"
    return text + markdown(["method", *names, "data sets"], rows) + "\n"


def costs(found: Results) -> str:
    """Coverage, imputation error, seconds and memory."""
    complete = found.wide[found.wide["condition"] == "complete"].groupby("method")
    every = found.wide.groupby("method")
    columns = {
        **{name: complete[name].mean() for name in ("coverage",) if name in found.wide},
        **{name: every[name].mean() for name in ("cell coverage", "imputation error") if name in found.wide},
        **{name: complete[name].median() for name in ("seconds", "memory")},
    }
    table = pd.DataFrame(columns).dropna(how="all")
    rows = [
        [name, *(number(value, 2) for value in row)] for name, row in zip(table.index, table.to_numpy(), strict=True)
    ]
    return COSTS + markdown(["method", *columns], rows) + "\n"


def failed(found: Results) -> str:
    """Every failure with its reason, equal ones together, and the methods that were not run."""
    rows = []
    for (method, why), some in found.failed.groupby(["method", "reason"], sort=True):
        data, conditions = (", ".join(dict.fromkeys(some[name])) for name in ("data", "condition"))
        rows.append([method, data, conditions, why])
    text = "## Failures\n\nA failure is a result. T needs as many independent factors as covariates.\n\n"
    text += markdown(["method", "data", "conditions", "reason"], rows)
    met = {*found.wide["method"], *found.failed["method"]}
    absent = [name for name in entrants.NAMES if name not in met]
    if absent:
        text += f"\nNot run: {', '.join(absent)}. `covalign arena` resumes where it stopped.\n"
    return text
