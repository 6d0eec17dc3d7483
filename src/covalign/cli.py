"""The command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import covalign as package
from covalign import _validation as errors

try:
    import typer
except ImportError:
    raise errors.missing_extra("typer", "cli") from None

app = typer.Typer(
    help="Latent dimensions that answer to names.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(package.__version__)
        raise typer.Exit()


@app.callback()
def covalign(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it and stop.")
    ] = False,
) -> None:
    """Latent dimensions that answer to names."""


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
) -> None:
    """Re-make the paper's figures, tables and claims.

    Interrupt it whenever you like: what is finished is kept, and the same command goes on from there.

    Example: covalign reproduce fig3 --reps 20 --jobs 2
    """
    from covalign.study import command
    from covalign.study.profiles import PROFILES, Inputs

    if list_names:
        for name, what in command.names().items():
            typer.echo(f"{name:18} {what}")
        return
    profile = PROFILES["tiny" if tiny else "quick" if quick else "full"]
    profile = profile._replace(reps=reps or profile.reps)
    profile = profile._replace(slow_reps=min(profile.slow_reps if slow_reps is None else slow_reps, profile.reps))
    pairs = [text.partition("=") for text in embeddings or []]
    try:
        if scaling_factors is not None:
            profile = profile._replace(scaling_factors=errors.check_numbers("--scaling-factors", scaling_factors))
        for name, _, path in pairs:
            if not path:
                raise errors.not_a_named_path(name)
        inputs = Inputs(tcga, {name: Path(path) for name, _, path in pairs})
        processes = jobs or os.cpu_count() or 1
        made = command.reproduce(names or [], profile, out, inputs, processes, peers, redraw, claims, dask)
    except ValueError as error:
        typer.echo(f"covalign: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("covalign: interrupted; what is finished is kept, the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    for file in made.files:
        typer.echo(file)
    for what, reasons in (("absent", made.outcome.absent), ("skipped", made.skipped), ("failed", made.outcome.failed)):
        for name, why in reasons.items():
            typer.echo(f"{what}: {name}: {why}", err=True)
    if made.outcome.failed:
        raise typer.Exit(1)


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
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """What a fit would cost: passes, bytes, memory and time, from the rates of this machine, measured now.

    Example: covalign plan --rows 1e9 --dims 768 --covariates 20 --workers 64
    """
    from covalign import planning

    try:
        job = planning.checked(rows, dims, covariates, workers, cores, dtype, folds, factors)
        read = None if read_gbs is None else 1e9 * errors.check_rate("--read-gbs", read_gbs)
        network = 1e9 * errors.check_rate("--network-gbs", network_gbs)
    except ValueError as error:
        typer.echo(f"covalign: {error}", err=True)
        raise typer.Exit(2) from None
    rates = planning.measured(job, read=read, network=network)
    typer.echo(planning.as_json(job, rates) if as_json else planning.page(job, rates), nl=False)


@app.command()
def embed(
    source: Annotated[Path, typer.Argument(help="A folder of images, Tiny-ImageNet's folder, or a CSV.")],
    model: Annotated[str, typer.Option("--model", "-m", help="A name on the Hugging Face hub, or a folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="An .npz, or an .npy for the numbers alone.")],
    text_column: Annotated[str | None, typer.Option(help="Embed the texts in this column of the CSV.")] = None,
    path_column: Annotated[str | None, typer.Option(help="Where the CSV has the images' paths (path, file).")] = None,
    label_column: Annotated[
        list[str] | None, typer.Option(help="A column of labels (all others of the CSV); may be repeated.")
    ] = None,
    root: Annotated[Path | None, typer.Option(help="What the CSV's paths are relative to (its folder).")] = None,
    pooling: Annotated[str, typer.Option(help="auto, pooler, cls or mean; for images.")] = "auto",
    batch_size: Annotated[int, typer.Option(min=1, help="Images or texts in one go.")] = 32,
    device: Annotated[str, typer.Option(help="auto, cuda, cuda:1, mps or cpu.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16; results are float32.")] = "float32",
    revision: Annotated[str | None, typer.Option(help="A branch, tag or commit of the model (main).")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where downloaded models are (Hugging Face's own).")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Download nothing.")] = False,
    skip_broken: Annotated[bool, typer.Option("--skip-broken", help="Leave out images that do not open.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads that open images (up to 4).")] = None,
) -> None:
    """Embed images or texts with a pretrained encoder.

    Interrupt it whenever you like: what is finished is kept, and the same command goes on from there.

    Example: covalign embed images/ --model openai/clip-vit-large-patch14 -o z.npz
    """
    from covalign import embed as encoders

    common: dict[str, Any] = {
        **{"label_columns": label_column, "batch_size": batch_size, "device": device, "dtype": dtype},
        **{"revision": revision, "cache": cache, "offline": offline, "overwrite": overwrite},
    }
    try:
        if text_column is not None:
            result = encoders.texts(source, model, out, text_column=text_column, **common)
        else:
            result = encoders.images(
                source,
                model,
                out,
                path_column=path_column,
                root=root,
                pooling=pooling,
                skip_broken=skip_broken,
                workers=workers,
                **common,
            )
    except (ValueError, ImportError) as error:
        typer.echo(f"covalign: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("covalign: interrupted; what is finished is kept, the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    for name, why in result.failed.items():
        typer.echo(f"skipped: {name}: {why}", err=True)
    n, k = result.Z.shape
    typer.echo(f"{out}: {n} x {k} ({result.computed} computed now), {result.model} {result.revision}, {result.pooling}")


def main() -> None:
    """Entry point."""
    app()


if __name__ == "__main__":
    main()
