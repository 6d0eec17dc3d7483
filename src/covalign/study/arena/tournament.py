"""``covalign arena``: run the units that are missing, then write the page and draw the figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from covalign._core.files import write_text
from covalign._core.messages import listed, message
from covalign.study.arena import arena_page, collection, entrants, standings
from covalign.study.profiles import Inputs, Profile
from covalign.study.reproduction import save
from covalign.study.results_store import Store
from covalign.study.runner import Made, Resources, run_with


def arena(
    data: Sequence[str],
    profile: Profile,
    out: Path,
    inputs: Inputs,
    resources: Resources,
    page: Path | None = None,
) -> Made:
    """Run all methods on these data sets (all, if there are none), and write results, page and figure."""
    known = collection.sources(inputs)
    unknown = [name for name in data if name not in known]
    if unknown:
        problem, remedy = f"There is no data set {listed(unknown)}", f"The data sets are {', '.join(known)}"
        raise ValueError(message(problem, remedy=remedy, wrong=unknown, known=known))
    entrants.chosen(profile.methods)
    missing = {name: why for name, why in collection.missing(inputs).items() if name in (data or known)}
    if {*data} and {*data} <= {*missing}:
        raise ValueError(
            message("None of these data sets is here", got="; ".join(f"{n}: {w}" for n, w in missing.items()))
        )
    profile, store = profile._replace(data=tuple(data)), Store(out)
    if not resources.redraw:
        describe(store, [name for name in data or known if name not in missing], inputs)
    outcome = run_with(resources, ["arena"], profile, inputs, store)
    files = [] if resources.redraw else [store.path("arena")]
    return Made(files + written(store, profile, page or out / "arena.md"), missing, outcome)


def describe(store: Store, names: Sequence[str], inputs: Inputs) -> None:
    """Write the sizes of data sets beside the results; those of other data sets stay."""
    path = store.folder / "data.csv"
    before = pd.read_csv(path, keep_default_na=False).to_dict("records") if path.exists() else []
    lines = {line["data"]: line for line in before}
    for name in names:
        found = collection.case(name, inputs)
        groups = 0 if found.groups is None else len(set(found.groups.tolist()))
        lines[name] = {
            "data": name,
            "what": collection.sources(inputs)[name].what,
            "samples": len(found.Y),
            "features": sum(view.shape[1] for view in found.views.values()),
            "views": len(found.views),
            "covariates": found.Y.shape[1],
            "factors": found.n_factors,
            "groups": groups,
        }
    store.folder.mkdir(parents=True, exist_ok=True)
    write_text(path, pd.DataFrame(list(lines.values())).to_csv(index=False, lineterminator="\n"))


def written(store: Store, profile: Profile, page: Path) -> list[Path]:
    """The page and the figure, from the results."""
    from covalign.study.arena.arena_figure import arena_figure

    found = standings.results(store)
    figure = save(lambda: arena_figure(found.areas, found.ranks)[0].figure, store.folder / "arena.png")
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, arena_page.page(store, settings(profile), relative(figure, page)))
    return [page, figure]


def settings(profile: Profile) -> dict[str, object]:
    """The rules that the page states."""
    return {"folds": profile.folds, "budget": profile.budget, "limit": f"{profile.cpu_limit:g}"}


def relative(figure: Path, page: Path) -> str:
    """The path of the figure as the page writes it."""
    try:
        return figure.resolve().relative_to(page.resolve().parent).as_posix()
    except ValueError:
        return figure.resolve().as_posix()
