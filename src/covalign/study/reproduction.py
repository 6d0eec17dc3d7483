"""``covalign reproduce``: run the experiments that are missing, draw the figures, write the tables and claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from covalign._core.files import replacing, write_text
from covalign._core.messages import message
from covalign.bridges import datasets
from covalign.study import paper_tables as tables
from covalign.study import runner
from covalign.study.experiments import EXPERIMENTS
from covalign.study.paper_figures import FIGURES
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Store

CLAIMS = "claims"


class Made(NamedTuple):
    """Files that were written, names that were left out and why, and the outcome of the run."""

    files: list[Path]
    skipped: dict[str, str]
    outcome: runner.Outcome


def names() -> dict[str, str]:
    """The names of all figures and tables, with a description of each."""
    figures = {name: figure.what for name, figure in FIGURES.items()}
    others = {name: table.what for name, table in tables.TABLES.items()}
    return {**figures, **others, CLAIMS: "the claims of the paper, with a verdict on each"}


def reproduce(
    wanted: Sequence[str],
    profile: Profile,
    out: Path,
    inputs: Inputs | None = None,
    jobs: int = 1,
    peers: bool = True,
    redraw: bool = False,
    claims: Path | None = None,
    dask: str | None = None,
) -> Made:
    """Make the figures and tables in ``wanted`` (all, if it is empty).

    ``redraw`` uses existing results only. ``dask`` is the address of a cluster to run on.
    """
    inputs = Inputs() if inputs is None else inputs
    wanted = list(wanted) or list(names())
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        problem = f"There is no figure or table {', '.join(unknown)}"
        remedy = f"The names are {', '.join(names())}"
        raise ValueError(message(problem, remedy=remedy, wrong=unknown, known=names()))
    check_data(inputs)
    lacking = {name: reason for name in wanted if (reason := missing_data(name, inputs))}
    made = [name for name in wanted if name not in lacking]
    store = Store(out / "results")
    needed = [name for name in EXPERIMENTS if any(name in needs(thing) for thing in made)]
    with runner.connected(None if redraw else dask) as client:
        outcome = runner.run([] if redraw else needed, profile, inputs, store, jobs, peers, client)
    files, skipped = [], dict(lacking)
    for name in made:
        try:
            files.append(make(name, store, profile, inputs, out, claims))
        except LookupError as error:
            skipped[name] = f"no results for it in {store.folder} ({error})"
    return Made(files, skipped, outcome)


def check_data(inputs: Inputs) -> None:
    """Raise an error about data that cannot be read before the work begins, and not in every unit of it."""
    if inputs.tcga is not None:
        datasets.breast_tcga(inputs.tcga)
    for path in inputs.embeddings.values():
        datasets.embedding(path)


def needs(name: str) -> tuple[str, ...]:
    """The experiments behind a figure or table."""
    if name == CLAIMS:
        return tuple(EXPERIMENTS)
    return FIGURES[name].experiments if name in FIGURES else tables.TABLES[name].experiments


def missing_data(name: str, inputs: Inputs) -> str | None:
    """Why a figure cannot be made without data from the user, or None."""
    thing: Any = FIGURES.get(name) or tables.TABLES.get(name)
    kind = None if thing is None else thing.data
    if kind == "tcga" and inputs.tcga is None:
        return (
            "it needs the breast cancer data: give the folder, or the file breast.TCGA.rda of mixOmics, with tcga=..."
        )
    if kind == "embeddings" and not inputs.embeddings:
        return "it needs a representation: give its name and file with embeddings=..."
    return None


def make(name: str, store: Store, profile: Profile, inputs: Inputs, out: Path, claims: Path | None) -> Path:
    """Draw or write one figure or table. The file appears only when it is complete."""
    if name in FIGURES:
        return save(FIGURES[name].draw(store, profile, inputs), out / "figures" / f"{name}.png")
    if name == CLAIMS:
        path, text = claims or out / "claims.md", tables.claims_page(store, profile, "covalign reproduce")
    else:
        path, text = out / "tables" / f"{name}.md", tables.TABLES[name].write(store, profile, inputs)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


def save(figure: Any, path: Path) -> Path:
    """Write a figure as PNG."""
    from covalign.study.study_style import plt

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=150)
    plt.close(figure)
    return path
