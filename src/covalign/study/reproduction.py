"""``covalign reproduce``: run what is missing, draw what was asked, write the claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from covalign._core import validation as errors
from covalign._core.files import replacing, write_text
from covalign.bridges import datasets
from covalign.study import paper_tables as tables
from covalign.study import runner
from covalign.study.experiments import EXPERIMENTS
from covalign.study.paper_figures import FIGURES
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Store

CLAIMS = "claims"


class Made(NamedTuple):
    """Files written, things left out and why, and what the run did."""

    files: list[Path]
    skipped: dict[str, str]
    outcome: runner.Outcome


def names() -> dict[str, str]:
    """Everything that can be asked for, and what it is."""
    figures = {name: figure.what for name, figure in FIGURES.items()}
    others = {name: table.what for name, table in tables.TABLES.items()}
    return {**figures, **others, CLAIMS: "the paper's claims with a verdict each"}


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
    """Make the figures and tables named (all, if none are). ``redraw`` uses only what the store already has.

    ``dask`` is the address of a cluster to run on.
    """
    inputs = Inputs() if inputs is None else inputs
    wanted = list(wanted) or list(names())
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        raise errors.unknown_figures(unknown, list(names()))
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
    """Data that cannot be read is said once, before the work begins, and not by every unit of it."""
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
    """Why a figure cannot be made without something from the user, or None."""
    thing: Any = FIGURES.get(name) or tables.TABLES.get(name)
    kind = None if thing is None else thing.data
    if kind == "tcga" and inputs.tcga is None:
        return "it needs the breast cancer data: pass --tcga FOLDER (or mixOmics' breast.TCGA.rda)"
    if kind == "embeddings" and not inputs.embeddings:
        return "it needs a representation: pass --embeddings NAME=PATH"
    return None


def make(name: str, store: Store, profile: Profile, inputs: Inputs, out: Path, claims: Path | None) -> Path:
    """Draw or write one thing; the file appears whole or not at all."""
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
    """A figure as PNG."""
    from covalign.study.study_style import plt

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        figure.savefig(file, format="png", dpi=150)
    plt.close(figure)
    return path
