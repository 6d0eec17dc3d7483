"""``images`` and ``texts``: find the model and the inputs, compute what is missing, write."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from covalign._core.checks import check_count, check_flag, check_flags
from covalign._core.files import data_not_found, hidden_name, output_path, target_exists
from covalign._core.messages import message
from covalign._core.paths import exists, is_folder
from covalign.bridges.embed import device as devices
from covalign.bridges.embed import result as files
from covalign.bridges.embed.inputs import Items, list_images, list_texts
from covalign.bridges.embed.journal import Log
from covalign.bridges.embed.language import text_encoder
from covalign.bridges.embed.loop import AHEAD, compute
from covalign.bridges.embed.result import Embedded
from covalign.bridges.embed.vision import ImageEncoder
from covalign.bridges.embed.weights import locate

FORMAT = 1  # of a row; raise it when the same image gives other numbers


class Job(NamedTuple):
    """The settings that images and texts share."""

    model: str | Path
    output: Any
    batch_size: int
    workers: int | None
    device: str
    dtype: str
    revision: str | None
    cache: Any
    offline: bool
    skip_broken: bool
    overwrite: bool


def images(
    source: Any,
    model: str | Path,
    output: Any = None,
    *,
    path_column: str | None = None,
    label_columns: Sequence[str] | None = None,
    root: Any = None,
    pooling: str = "auto",
    batch_size: int = 32,
    device: str = "auto",
    dtype: str = "float32",
    revision: str | None = None,
    cache: Any = None,
    offline: bool = False,
    skip_broken: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
) -> Embedded:
    """Z[i] = features of image i, as in the paper: projected for CLIP, pooled for DINOv2 and ViT.

    ``source`` is a folder (the class is the name of the subfolder), a CSV with a column of paths (``path_column``, by
    default ``path`` or ``file``; relative to ``root``, by default the CSV's folder; ``label_columns``, by default all
    others), Tiny-ImageNet's own folder (its validation images), or a list of paths. ``model`` is a folder, or a name on
    the Hugging Face hub: if ``cache`` (by default the user's) does not have it, it is downloaded, unless ``offline``.
    ``pooling`` may be ``"auto"``, ``"pooler"``, ``"cls"`` or ``"mean"`` (see ``embed.vision``).

    With ``output`` (``.npz``, or ``.npy`` for the numbers alone) rows are kept in a hidden folder beside it until all
    are computed: the same call resumes after an interruption, and a finished ``.npz`` is not computed again. If images
    cannot be opened, an error names them after all others are computed; with ``skip_broken`` they are left out and
    listed in ``failed``.

    >>> import covalign as ca
    >>> found = ca.embed.images("images/", "openai/clip-vit-large-patch14", "z.npz")  # doctest: +SKIP
    >>> found.Z.shape, found.labels.columns  # doctest: +SKIP
    """
    items = list_images(source, path_column, label_columns, root)
    job = Job(model, output, batch_size, workers, device, dtype, revision, cache, offline, skip_broken, overwrite)
    return _embed(items, job, partial(ImageEncoder, pooling=pooling), f"image {pooling}")


def texts(
    source: Any,
    model: str | Path,
    output: Any = None,
    *,
    text_column: str | None = None,
    label_columns: Sequence[str] | None = None,
    batch_size: int = 32,
    device: str = "auto",
    dtype: str = "float32",
    revision: str | None = None,
    cache: Any = None,
    offline: bool = False,
    overwrite: bool = False,
) -> Embedded:
    """Z[i] = features of text i: by sentence-transformers if the model's folder has a modules.json, else token means.

    ``source`` is a CSV (``text_column``, by default ``text``; ``label_columns``, by default all others) or a list of
    texts. Models with projected text features (CLIP) give those. The rest is as in ``images``.

    >>> import covalign as ca
    >>> found = ca.embed.texts(["good film", "bad film"], "sentence-transformers/all-MiniLM-L6-v2")  # doctest: +SKIP
    """
    items = list_texts(source, text_column, label_columns)
    job = Job(model, output, batch_size, 1, device, dtype, revision, cache, offline, False, overwrite)
    return _embed(items, job, text_encoder, "text")


def _embed(items: Items, job: Job, encoder: Callable[[Path, Any, Any], Any], kind: str) -> Embedded:
    """Embed images or texts. All arguments are checked before the model is loaded."""
    check_flags(offline=job.offline, skip_broken=job.skip_broken, overwrite=job.overwrite)
    batch_size = check_count("batch_size", job.batch_size)
    workers = check_count("workers", min(4, os.cpu_count() or 1) if job.workers is None else job.workers)
    output = _checked(job.output)
    where = devices.choose(job.device), devices.precision(job.dtype)
    covariates = files.covariate_arrays(items.labels)
    found = locate(job.model, job.revision, job.cache, job.offline)
    digests = items.digests()
    rows_key = _hash(FORMAT, kind, found.revision, job.dtype)
    key = _hash(rows_key, b"".join(digests), items.labels.to_csv())
    if output is not None and exists(output) and not check_flag("overwrite", job.overwrite):
        result = files.finished(output, key)
        if result is None:
            raise target_exists(output)
        return _complete(result, job.skip_broken)
    with Log(None if output is None else output.parent / hidden_name(output.name, "part"), rows_key) as log:
        ready, had = encoder(found.folder, *where), len(log)
        ahead = 0 if where[0].type == "cpu" else AHEAD
        broken = compute(items, digests, ready, log, batch_size, workers, ahead)
        kept = [name not in broken for name in items.names]
        if not any(kept):
            raise broken_images(broken)
        Z = log.gather([digest for digest, keep in zip(digests, kept, strict=True) if keep])
        about = found.name, found.revision, ready.pooling, len(log) - had
        result = _complete(Embedded(Z, items.labels.loc[kept], broken, *about), job.skip_broken)
        if output is not None:
            shown = {name: array if name == "names" else array[kept] for name, array in covariates.items()}
            files.write(output, result, shown, key)
        log.remove()
    return result


def _complete(result: Embedded, skip_broken: bool) -> Embedded:
    """The result, or an error that names the missing images."""
    if result.failed and not skip_broken:
        raise broken_images(result.failed)
    return result


def broken_images(broken: dict[str, str]) -> ValueError:
    """The error that names images which cannot be opened, and why."""
    lines = [f"\n  {name}: {why}" for name, why in list(broken.items())[:50]]
    lines += [f"\n  and {len(broken) - 50} more"] if len(broken) > 50 else []
    return ValueError(
        f"{len(broken)} image(s) cannot be opened. All others are computed and kept. Repair or remove these images, or "
        f"leave them out with skip_broken=True, and make the same call again:{''.join(lines)}"
    )


def _checked(output: Any) -> Path | None:
    """A path that can be written to."""
    if output is None:
        return None
    path = output_path(output)
    if path.suffix not in (".npz", ".npy"):
        problem = f"output needs the suffix .npz (with labels) or .npy (the numbers alone), got {str(path)!r}"
        raise ValueError(message(problem, remedy="Choose one of these"))
    if not is_folder(path.parent):
        raise data_not_found(path.parent, f"a folder for {path.name}")
    return path


def _hash(*parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()
