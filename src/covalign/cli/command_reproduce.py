"""reproduce and plan: the figures of the paper, and the cost of a fit."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Annotated

import typer

from covalign._core.messages import message
from covalign._core.text_tables import plain
from covalign.cli import option_values, options
from covalign.cli.application import FAILED, RESUMES, answering, app, reply, reply_made
from covalign.cli.options import DATA, METHOD, OUTPUT, flag, option


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAMES", help="Figures and tables. Default: all of them.")
    ] = None,
    tcga: options.BreastCancer = None,
    embeddings: options.Embeddings = None,
    list_names: Annotated[bool, flag(METHOD, "List the figures and tables and exit.", "--list")] = False,
    reps: Annotated[
        int | None,
        option(METHOD, "INT", "Number of repetitions. Default: 20, as in the paper. MOFA and iVAE: 5 at most.", min=1),
    ] = None,
    slow_reps: Annotated[
        int | None,
        option(METHOD, "INT", "Number of repetitions of slow methods (a minute for each fit).", min=0),
    ] = None,
    scaling_factors: Annotated[
        str | None,
        option(METHOD, "NUMBERS", "Scaling factors of SOFA, separated by commas. Default: 0.01 to 0.05, and 0.1."),
    ] = None,
    quick: Annotated[bool, flag(METHOD, "Few repetitions, coarse grids and few iterations.", "--quick")] = False,
    tiny: Annotated[bool, typer.Option("--tiny", hidden=True)] = False,
    peers: options.Peers = True,
    redraw: Annotated[
        bool, flag(METHOD, "Draw from existing results, without computing anything.", "--redraw")
    ] = False,
    jobs: options.Jobs = None,
    dask: options.Dask = None,
    out: Annotated[Path, option(OUTPUT, "FOLDER", "Folder of results, figures and tables.", "--out", "-o")] = Path(
        "study"
    ),
    claims: Annotated[Path | None, option(OUTPUT, "PATH", "File of the claims. Default: OUT/claims.md.")] = None,
    as_json: options.Json = False,
) -> None:
    """Reproduce the figures, tables and claims of the paper.

    An interrupted command keeps the finished results, and the same command resumes.

    Example: covalign reproduce fig3 --reps 20 --jobs 2
    """
    from covalign.study import reproduction as command
    from covalign.study.profiles import PROFILES, Inputs
    from covalign.study.runner import Resources

    if list_names:
        return reply(as_json, command.names(), *plain([], command.names().items(), left=2))
    profile = PROFILES["tiny" if tiny else "quick" if quick else "full"]
    profile = profile._replace(reps=reps or profile.reps)
    profile = profile._replace(slow_reps=min(profile.slow_reps if slow_reps is None else slow_reps, profile.reps))
    with answering(RESUMES, as_json=as_json):
        if scaling_factors is not None:
            kind, example = "positive numbers", "0.01,0.1"
            factors = option_values.numbers("--scaling-factors", scaling_factors, kind, example, lambda f: 0 < f < inf)
            profile = profile._replace(scaling_factors=tuple(factors))
        inputs = Inputs(tcga, option_values.embedding_paths(embeddings))
        made = command.reproduce(names or [], profile, out, inputs, Resources(jobs, peers, redraw, dask), claims)
    reply_made(made, as_json)
    if made.outcome.failed:
        raise typer.Exit(FAILED)


@app.command()
def plan(
    *,
    n_samples: Annotated[float, option(DATA, "INT", "Number of rows, such as 1e9.")],
    n_features: Annotated[float, option(DATA, "INT", "Number of features, or dimensions of a representation.")],
    n_covariates: Annotated[float, option(DATA, "INT", "Number of covariates; every dummy counts.")],
    dtype: Annotated[str, option(DATA, "CHOICE", "Precision of the data: float32 or float64.")] = "float32",
    n_factors: Annotated[
        float | None, option(METHOD, "INT", "Also plan informed factor analysis with this many factors.")
    ] = None,
    folds: Annotated[
        float, option(METHOD, "INT", "Number of cross-validation folds. 1 if the shrinkage is fixed.")
    ] = 5,
    workers: Annotated[float, option(METHOD, "INT", "Number of worker processes.")] = 1,
    cores: Annotated[float, option(METHOD, "INT", "Number of cores of a worker.")] = 1,
    read_gbs: Annotated[
        float | None,
        option(
            METHOD,
            "NUMBER",
            "Gigabytes that a worker reads in a second; inf if the data are in memory. Default: measured here.",
        ),
    ] = None,
    network_gbs: Annotated[float, option(METHOD, "NUMBER", "Gigabytes in a second between two workers.")] = 1.0,
    as_json: options.Json = False,
) -> None:
    """Estimate passes, bytes, memory and time of a fit, from rates that are measured on this machine.

    Example: covalign plan --n-samples 1e9 --n-features 768 --n-covariates 20 --workers 64
    """
    with answering(as_json=as_json):
        from covalign.study import costs as planning

        job = planning.checked(n_samples, n_features, n_covariates, workers, cores, dtype, folds, n_factors)
        rates = {"read": read_gbs, "network": network_gbs}
        for name, rate in rates.items():
            if rate is not None and not rate > 0:
                problem = f"--{name}-gbs needs a positive number of gigabytes in a second"
                raise ValueError(message(problem, got=rate, remedy="write for example 1.5"))
    known = planning.measured(job, read=None if read_gbs is None else 1e9 * read_gbs, network=1e9 * network_gbs)
    reply(as_json, planning.facts(job, known), planning.page(job, known))
