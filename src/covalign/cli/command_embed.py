"""embed: representations of images and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from covalign.cli import options
from covalign.cli.application import RESUMES, answering, app, note_reasons, reply
from covalign.cli.options import DATA, METHOD, OUTPUT, flag, option


@app.command()
def embed(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="Folder of images, folder of Tiny-ImageNet, or .csv file.")
    ],
    *,
    text_column: Annotated[str | None, option(DATA, "NAME", "Column of the .csv file with texts to embed.")] = None,
    path_column: Annotated[
        str | None, option(DATA, "NAME", "Column of the .csv file with paths of images. Default: path or file.")
    ] = None,
    label_column: Annotated[
        list[str] | None,
        option(
            DATA,
            "NAME",
            "Column of the .csv file to keep as a covariate. Repeat the option for several. Default: all others.",
        ),
    ] = None,
    root: Annotated[
        Path | None, option(DATA, "FOLDER", "Folder of relative paths. Default: the folder of the .csv file.")
    ] = None,
    skip_broken: Annotated[
        bool, flag(DATA, "Leave out images that cannot be opened, instead of stopping.", "--skip-broken")
    ] = False,
    model: Annotated[
        str, option(METHOD, "NAME", "Name of a model on the Hugging Face hub, or a folder.", "--model", "-m")
    ],
    revision: Annotated[
        str | None, option(METHOD, "NAME", "Branch, tag or commit of the model. Default: main.")
    ] = None,
    cache: Annotated[
        Path | None, option(METHOD, "FOLDER", "Folder of downloaded models. Default: that of Hugging Face.")
    ] = None,
    offline: Annotated[bool, flag(METHOD, "Do not download anything.", "--offline")] = False,
    pooling: Annotated[str, option(METHOD, "CHOICE", "Features of an image: auto, pooler, cls or mean.")] = "auto",
    batch_size: Annotated[int, option(METHOD, "INT", "Number of images or texts in a batch.", min=1)] = 32,
    device: Annotated[str, option(METHOD, "NAME", "Device: auto, cpu, cuda, cuda:1 or mps.")] = "auto",
    dtype: Annotated[
        str, option(METHOD, "CHOICE", "Precision of the model: float32, float16 or bfloat16. Results are float32.")
    ] = "float32",
    workers: Annotated[
        int | None, option(METHOD, "INT", "Number of threads that open images. Default: up to 4.", min=1)
    ] = None,
    out: Annotated[
        Path, option(OUTPUT, "PATH", "The representation: .npz with names and labels, or .npy.", "--out", "-o")
    ],
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Embed images or texts with a pretrained encoder.

    An interrupted command keeps the finished images or texts, and the same command resumes.

    Example: covalign embed images/ --model openai/clip-vit-large-patch14 -o z.npz
    """
    common: dict[str, Any] = {
        **{"label_columns": label_column, "batch_size": batch_size, "device": device, "dtype": dtype},
        **{"revision": revision, "cache": cache, "offline": offline, "overwrite": force},
    }
    with answering(RESUMES, as_json=as_json):
        from covalign.bridges import embed as encoders

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
    note_reasons({"skipped": result.failed})
    n, k = result.Z.shape
    made = {"model": result.model, "revision": result.revision, "pooling": result.pooling}
    size = {"file": str(out), "rows": n, "dimensions": k, "computed": result.computed}
    line = f"{out}: {n} x {k} ({result.computed} computed now), {result.model} {result.revision}, {result.pooling}"
    reply(as_json, {**size, **made, "skipped": result.failed}, line)
