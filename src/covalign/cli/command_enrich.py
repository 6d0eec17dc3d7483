"""enrich: gene sets of the factors of a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from covalign._core.text_tables import plain
from covalign.cli import options
from covalign.cli.application import app, reply
from covalign.cli.model_files import FactorModelFile, factor_model
from covalign.cli.options import DATA, METHOD, OUTPUT, option
from covalign.cli.outputs import (
    FIGURES,
    SHOWN_SETS,
    TABLES,
    check_outputs,
    drawing,
    enrichment_notes,
    save_figure,
    working,
    write_frame,
)

if TYPE_CHECKING:
    import pandas as pd

BELOW = 0.05  # the q of what the answer calls found
HEAD = ["factor", "view", "set", "size", "direction", "statistic", "p", "q"]


class Method(StrEnum):
    """The test of a set."""

    camera = "camera"
    rank = "rank"


class Statistic(StrEnum):
    """The number that every gene has."""

    loading = "loading"
    ratio = "ratio"


@app.command()
def enrich(
    model_file: FactorModelFile,
    *,
    sets: Annotated[Path, option(DATA, "PATH", "File of gene sets (.gmt or .gmt.gz).", "--sets")],
    view: Annotated[str | None, option(METHOD, "NAME", "View whose features are tested. Default: all views.")] = None,
    factor: Annotated[
        list[str] | None, option(METHOD, "NAME", "Factor. Repeat the option for several. Default: all active factors.")
    ] = None,
    method: Annotated[
        Method,
        option(METHOD, "CHOICE", "Test of mean loadings (camera) or of ranks (rank)."),
    ] = Method.camera,
    statistic: Annotated[
        Statistic, option(METHOD, "CHOICE", "Loadings, or loadings divided by their standard deviations (ratio).")
    ] = Statistic.loading,
    correlation: Annotated[
        float | None,
        option(METHOD, "NUMBER", "Correlation of genes in a set. Default: that of the residuals of the model."),
    ] = None,
    min_size: Annotated[int, option(METHOD, "INT", "Fewest features of a set.", min=1)] = 5,
    max_size: Annotated[int, option(METHOD, "INT", "Most features of a set.", min=1)] = 500,
    out: options.TableFile = None,
    figure: Annotated[Path | None, option(OUTPUT, "PATH", f"Dot plot of the best sets ({', '.join(FIGURES)}).")] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Test which gene sets have larger or smaller loadings than other genes, for every factor of a model.

    Genes of a set are correlated; the tests allow for it. q is the false discovery rate of Benjamini and Hochberg over
    all sets of a factor. A note says which names of the sets are no features.

    Example: covalign enrich ifa.covalign --sets h.gmt -o enrichment.csv
    """
    with working(as_json):
        outputs = {"--out": (out, TABLES), "--figure": (figure, FIGURES)}
        files = check_outputs(outputs, [model_file, sets], force=force)
        draw = None if figure is None else drawing("show.plot").enrichment
        asked = {"method": method.value, "statistic": statistic.value, "correlation": correlation}
        model = factor_model(model_file)
        frame = model.enrichment(sets, view, factor or None, **asked, min_size=min_size, max_size=max_size)
        about: dict[Any, Any] = frame.attrs
        frame.attrs = {}
        if out is not None:
            write_frame(frame, out)
        if draw is not None and figure is not None:
            save_figure(draw(frame), figure)
    enrichment_notes(about)
    answer(frame, about, files, as_json)


def answer(frame: pd.DataFrame, about: dict[Any, Any], files: list[str], as_json: bool) -> None:
    """Print the best sets of every factor."""
    found = int((frame["q"] < BELOW).sum())
    best = frame.sort_values("p", kind="stable").groupby("factor", sort=False).head(SHOWN_SETS)
    order = {name: i for i, name in enumerate(dict.fromkeys(frame["factor"]))}
    best = best.sort_values("factor", key=lambda names: names.map(order), kind="stable")
    best = best.assign(p=[f"{p:.1e}" for p in best["p"]], q=[f"{q:.1e}" for q in best["q"]])
    reply(
        as_json,
        {**about, "tests": len(frame), "found": found, "enrichment": frame.to_dict("records"), "files": files},
        *plain(HEAD, best[HEAD].itertuples(index=False, name=None), left=3),
        f"{found} of {len(frame)} tests have q < {BELOW}; the {SHOWN_SETS} smallest p of every factor are shown.",
        *files,
    )
