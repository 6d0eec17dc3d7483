"""embed: representations from pictures and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from covalign.cli.application import RESUMES, Json, answering, app, note, say, say_json


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
    overwrite: Annotated[bool, typer.Option("--force", "-f", "--overwrite", help="Replace OUT if it exists.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads that open images (up to 4).")] = None,
    as_json: Json = False,
) -> None:
    """Embed images or texts with a pretrained encoder.

    Interrupt it whenever you like: what is finished is kept, and the same command goes on from there.

    Example: covalign embed images/ --model openai/clip-vit-large-patch14 -o z.npz
    """
    from covalign.bridges import embed as encoders

    common: dict[str, Any] = {
        **{"label_columns": label_column, "batch_size": batch_size, "device": device, "dtype": dtype},
        **{"revision": revision, "cache": cache, "offline": offline, "overwrite": overwrite},
    }
    with answering(RESUMES, as_json=as_json):
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
    for name, why in result.failed.items():
        note(f"skipped: {name}: {why}")
    n, k = result.Z.shape
    if as_json:
        kept = {"model": result.model, "revision": result.revision, "pooling": result.pooling}
        say_json(
            {
                "file": str(out),
                "rows": n,
                "dimensions": k,
                "computed": result.computed,
                **kept,
                "skipped": result.failed,
            }
        )
        return
    say(f"{out}: {n} x {k} ({result.computed} computed now), {result.model} {result.revision}, {result.pooling}")
