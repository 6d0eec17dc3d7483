"""arena: all methods on real data, held out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from covalign._core.text_tables import plain
from covalign.cli import option_values, options
from covalign.cli.application import RESUMES, answering, app, reply, reply_made
from covalign.cli.options import DATA, METHOD, OUTPUT, flag, option


@app.command()
def arena(
    data: Annotated[
        list[str] | None, typer.Argument(metavar="DATA", help="Names of data sets. Default: all that are here.")
    ] = None,
    tcga: options.BreastCancer = None,
    cll: Annotated[
        Path | None, option(DATA, "FOLDER", "Folder with drugs.csv, mutations.csv and metadata.csv (leukaemia).")
    ] = None,
    cases: Annotated[
        Path | None, option(DATA, "FILE", "Table of summaries of law cases: case_summaries, source.")
    ] = None,
    cities: Annotated[Path | None, option(DATA, "FOLDER", "Folder with ravel_city_entity_attributes.json.")] = None,
    embeddings: options.Embeddings = None,
    method: Annotated[
        list[str] | None,
        option(METHOD, "NAME", "Method. Repeat the option for several. Default: all methods.", "--method", "-m"),
    ] = None,
    list_names: Annotated[bool, flag(METHOD, "List the data sets and methods and exit.", "--list")] = False,
    reps: Annotated[int | None, option(METHOD, "INT", "Number of repetitions. Default: 3.", min=1)] = None,
    slow_reps: Annotated[
        int | None, option(METHOD, "INT", "Number of repetitions of slow methods. Default: 1.", min=0)
    ] = None,
    cpu_limit: Annotated[
        float | None, option(METHOD, "SECONDS", "Limit of a fit, in seconds of computation. Default: 300.", min=1)
    ] = None,
    peers: options.Peers = True,
    redraw: Annotated[
        bool, flag(METHOD, "Write page and figure from existing results, without computing anything.", "--redraw")
    ] = False,
    jobs: options.Jobs = None,
    dask: options.Dask = None,
    out: Annotated[Path, option(OUTPUT, "FOLDER", "Folder of results and figure.", "--out", "-o")] = Path("arena"),
    page: Annotated[Path | None, option(OUTPUT, "PATH", "File of the page. Default: OUT/arena.md.")] = None,
    as_json: options.Json = False,
) -> None:
    """Run all methods on real data and rank them by the alignment of left-out samples.

    Data come from installed packages and from the folders that you give; nothing is downloaded.

    An interrupted command keeps the finished results, and the same command resumes.

    Example: covalign arena iris linnerud --method PCA --reps 1 -o arena
    """
    with answering(RESUMES, as_json=as_json):
        from covalign.study.arena import collection, entrants
        from covalign.study.arena import tournament as command
        from covalign.study.profiles import ARENA, Inputs
        from covalign.study.runner import Resources

        inputs = Inputs(tcga, option_values.embedding_paths(embeddings), cll, cases, cities)
        if list_names:
            whats = {name: source.what for name, source in collection.sources(inputs).items()}
            facts = {"data": whats, "methods": [*entrants.NAMES], "missing": collection.missing(inputs)}
            return reply(as_json, facts, *plain([], whats.items(), left=2), "", *entrants.NAMES)
        profile = ARENA._replace(
            reps=reps or ARENA.reps,
            slow_reps=ARENA.slow_reps if slow_reps is None else slow_reps,
            cpu_limit=cpu_limit or ARENA.cpu_limit,
            methods=tuple(method or ()),
        )
        made = command.arena(data or [], profile, out, inputs, Resources(jobs, peers, redraw, dask), page)
    return reply_made(made, as_json)
