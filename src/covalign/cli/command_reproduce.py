"""reproduce and plan: the paper's figures, and what a fit would cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from covalign._core import validation as errors
from covalign.cli.application import FAILED, RESUMES, Json, answering, app, note, say, say_json


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Figures and tables; all if none is named.")] = None,
    list_names: Annotated[bool, typer.Option("--list", help="Name them all and stop.")] = False,
    reps: Annotated[int | None, typer.Option(min=1, help="Repetitions (the paper's 20).")] = None,
    slow_reps: Annotated[
        int | None, typer.Option(min=0, help="Repetitions of methods that take a minute a fit.")
    ] = None,
    scaling_factors: Annotated[str | None, typer.Option(help="SOFA's, comma-separated (0.01,...,0.05,0.1).")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes (as many as there are cores).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few repetitions, coarse grids, short budgets.")] = False,
    tiny: Annotated[bool, typer.Option("--tiny", hidden=True)] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where results, figures and tables go.")] = Path("study"),
    claims: Annotated[Path | None, typer.Option(help="Where the claims go (OUT/claims.md).")] = None,
    tcga: Annotated[Path | None, typer.Option(help="Folder of the breast cancer data, or breast.TCGA.rda.")] = None,
    embeddings: Annotated[
        list[str] | None, typer.Option(help="NAME=PATH of a representation; may be repeated.")
    ] = None,
    peers: Annotated[bool, typer.Option("--peers/--no-peers", help="Run MOFA, SOFA and others, if installed.")] = True,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on the dask cluster there (tcp://host:8786).")
    ] = None,
    redraw: Annotated[bool, typer.Option("--redraw", help="Draw from the results there are; compute nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Re-make the paper's figures, tables and claims.

    Interrupt it whenever you like: what is finished is kept, and the same command goes on from there.

    Example: covalign reproduce fig3 --reps 20 --jobs 2
    """
    from covalign.study import reproduction as command
    from covalign.study.profiles import PROFILES, Inputs

    if list_names:
        if as_json:
            say_json(command.names())
        for name, what in {} if as_json else command.names().items():
            say(f"{name:18} {what}")
        return
    profile = PROFILES["tiny" if tiny else "quick" if quick else "full"]
    profile = profile._replace(reps=reps or profile.reps)
    profile = profile._replace(slow_reps=min(profile.slow_reps if slow_reps is None else slow_reps, profile.reps))
    pairs = [text.partition("=") for text in embeddings or []]
    with answering(RESUMES, as_json=as_json):
        if scaling_factors is not None:
            profile = profile._replace(scaling_factors=errors.check_numbers("--scaling-factors", scaling_factors))
        for name, _, path in pairs:
            if not path:
                raise errors.not_a_named_path(name)
        inputs = Inputs(tcga, {name: Path(path) for name, _, path in pairs})
        processes = jobs or os.cpu_count() or 1
        made = command.reproduce(names or [], profile, out, inputs, processes, peers, redraw, claims, dask)
    missing = {"absent": made.outcome.absent, "skipped": made.skipped, "failed": made.outcome.failed}
    if as_json:
        say_json({"files": [str(file) for file in made.files], **missing})
    for file in [] if as_json else made.files:
        say(file)
    for what, reasons in missing.items():
        for name, why in reasons.items():
            note(f"{what}: {name}: {why}")
    if made.outcome.failed:
        raise typer.Exit(FAILED)


@app.command()
def plan(
    rows: Annotated[float, typer.Option(help="Rows (1e9).")],
    dims: Annotated[float, typer.Option(help="Dimensions of the representation, or features.")],
    covariates: Annotated[float, typer.Option(help="Covariates, dummies counted one by one.")],
    workers: Annotated[float, typer.Option(help="Worker processes.")] = 1,
    cores: Annotated[float, typer.Option(help="Cores of a worker.")] = 1,
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    folds: Annotated[float, typer.Option(help="Folds behind the shrinkage (1 if it is given).")] = 5,
    factors: Annotated[float | None, typer.Option(help="Plan informed factor analysis, too, with so many.")] = None,
    read_gbs: Annotated[
        float | None, typer.Option(help="GB/s each worker reads (else this disk's); inf if in memory.")
    ] = None,
    network_gbs: Annotated[float, typer.Option(help="GB/s between two workers.")] = 1.0,
    as_json: Json = False,
) -> None:
    """What a fit would cost: passes, bytes, memory and time, from the rates of this machine, measured now.

    Example: covalign plan --rows 1e9 --dims 768 --covariates 20 --workers 64
    """
    from covalign.study import costs as planning

    with answering(as_json=as_json):
        job = planning.checked(rows, dims, covariates, workers, cores, dtype, folds, factors)
        read = None if read_gbs is None else 1e9 * errors.check_rate("--read-gbs", read_gbs)
        network = 1e9 * errors.check_rate("--network-gbs", network_gbs)
    rates = planning.measured(job, read=read, network=network)
    typer.echo(planning.as_json(job, rates) if as_json else planning.page(job, rates), nl=False)
