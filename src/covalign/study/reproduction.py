"""``covalign reproduce``: run the experiments that are missing, draw the figures, write the tables and claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from covalign._core.files import replacing, write_text
from covalign._core.messages import message
from covalign.bridges import datasets
from covalign.study import paper_tables as tables
from covalign.study.experiments import EXPERIMENTS
from covalign.study.paper_figures import FIGURES
from covalign.study.profiles import Inputs, Profile
from covalign.study.results_store import Store
from covalign.study.runner import Made, Resources, run_with

OUTPUTS = {**FIGURES, **tables.TABLES, "claims": tables.CLAIMS}
TALL = 10  # inches; taller figures have fewer dots, which keeps files small
NO_DATA = {
    "tcga": "it needs the breast cancer data: give the folder, or the file breast.TCGA.rda of mixOmics, with tcga=...",
    "embeddings": "it needs a representation: give its name and file with embeddings=...",
}


def names() -> dict[str, str]:
    """The names of all figures and tables, with a description of each."""
    return {name: output.what for name, output in OUTPUTS.items()}


def reproduce(
    wanted: Sequence[str],
    profile: Profile,
    out: Path,
    inputs: Inputs,
    resources: Resources,
    claims: Path | None = None,
) -> Made:
    """Make the figures and tables in ``wanted`` (all, if it is empty)."""
    wanted = list(wanted) or list(OUTPUTS)
    unknown = [name for name in wanted if name not in OUTPUTS]
    if unknown:
        problem = f"There is no figure or table {', '.join(unknown)}"
        remedy = f"The names are {', '.join(OUTPUTS)}"
        raise ValueError(message(problem, remedy=remedy, wrong=unknown, known=OUTPUTS))
    check_data(inputs)
    skipped = {name: NO_DATA[kind] for name in wanted if (kind := OUTPUTS[name].data) and not getattr(inputs, kind)}
    made = [name for name in wanted if name not in skipped]
    store = Store(out / "results")
    needed = [name for name in EXPERIMENTS if any(name in OUTPUTS[thing].experiments for thing in made)]
    outcome = run_with(resources, needed, profile, inputs, store)
    files = []
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


def make(name: str, store: Store, profile: Profile, inputs: Inputs, out: Path, claims: Path | None) -> Path:
    """Draw or write one figure or table. The file appears only when it is complete."""
    if name in FIGURES:
        return save(lambda: OUTPUTS[name].make(store, profile, inputs), out / "figures" / f"{name}.png")
    made = OUTPUTS[name].make(store, profile, inputs)
    path = (claims or out / "claims.md") if name == "claims" else out / "tables" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, made)
    return path


def save(draw: Callable[[], Any], path: Path) -> Path:
    """Draw a figure in the common style and write it as PNG and, beside it, as SVG."""
    from covalign.study.study_style import STYLE, plt

    path.parent.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        figure = draw()
        dpi = 150 if figure.get_figheight() <= TALL else 120
        formats: dict[str, dict[str, Any]] = {"png": {"dpi": dpi}, "svg": {"metadata": {"Date": None}}}
        for kind, settings in formats.items():
            with replacing(path.with_suffix(f".{kind}")) as file:
                figure.savefig(file, format=kind, **settings)
    plt.close(figure)
    return path
