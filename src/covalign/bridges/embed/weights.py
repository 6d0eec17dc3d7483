"""Find the files of a model, and check that they are safe to load: safetensors, no pickle, no code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from covalign._core.extras import optional
from covalign._core.files import data_not_found, path_to_read, unreadable_data
from covalign._core.messages import listed, message
from covalign._core.paths import is_file, is_folder
from covalign.exceptions import WeightsNotFoundError

# Files that transformers and sentence-transformers read, without pickles and without other formats of the weights.
FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
OTHER_FOLDERS = ("onnx", "openvino", "coreml")
OTHER_FORMATS = [f"{folder}/*" for folder in OTHER_FOLDERS]
LONGEST_NAME = 96  # of the hub
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")


class Located(NamedTuple):
    """A model's folder, name and version."""

    folder: Path
    name: str
    revision: str  # the hub's commit, or sha256 of the weights of a local folder


def locate(model: Any, revision: str | None = None, cache: Any = None, offline: bool = False) -> Located:
    """The folder of ``model``: a folder, or a name on the hub, from the cache if it is complete there."""
    folder = path_to_read(model, "a folder with a model, or its name on the Hugging Face hub")
    if is_folder(folder):
        _refuse_unsafe(folder)
        return Located(folder, str(model), _checksum(folder))
    name = str(model)
    strange = len(name) > LONGEST_NAME or not (name.isascii() and name.isprintable())
    if folder.is_absolute() or name.startswith(".") or name.count("/") > 1 or not name or strange:
        raise data_not_found(name, "a folder with a model, or its name on the Hugging Face hub")
    snapshot = _cached(name, revision, cache) or _downloaded(name, revision, cache, offline)
    _refuse_unsafe(snapshot)
    return Located(snapshot, name, snapshot.name)


def _cached(name: str, revision: str | None, cache: Any) -> Path | None:
    """The snapshot in the cache if it is complete; the hub is not contacted."""
    hub = _hub()
    try:
        folder = Path(hub.snapshot_download(name, revision=revision, cache_dir=cache, local_files_only=True))
    except (OSError, ValueError):  # not in the cache, or an impossible name
        return None
    heart = _heart(folder)
    complete = is_file(heart / "config.json") and _weights(heart) and not _lacking_shards(heart)
    return folder if complete else None


def _downloaded(name: str, revision: str | None, cache: Any, offline: bool) -> Path:
    hub = _hub()
    where = cache if cache is not None else hub.constants.HF_HUB_CACHE
    try:
        if offline:
            raise OSError("offline=True")
        path = hub.snapshot_download(
            name, revision=revision, cache_dir=cache, allow_patterns=FILES, ignore_patterns=OTHER_FORMATS
        )
    except Exception as error:  # the hub's client and the network can raise many kinds of errors
        raise weights_not_found(name, revision, where, error) from error
    return Path(path)


def weights_not_found(name: str, revision: str | None, cache: Any, why: Any) -> WeightsNotFoundError:
    """The error that says how to bring the weights here."""
    version = f" --revision {revision}" if revision else ""
    reason = str(why).splitlines()[0] if str(why) else type(why).__name__
    return WeightsNotFoundError(
        f"The weights of {name!r} are not in the cache {str(cache)!r}, and could not be downloaded ({reason}). On a "
        "machine with internet run\n"
        f"  hf download {name}{version} --include '*.json' '*.txt' '*.model' '*.safetensors' --local-dir model\n"
        f"(or save these files from https://huggingface.co/{name}/tree/{revision or 'main'}; config.json, "
        "model.safetensors and preprocessor_config.json or tokenizer.json are the least). Copy the folder to this "
        "machine and pass it as the model. Or run the command without --local-dir, and copy the cache of that machine "
        "to the cache of this one."
    )


def _hub() -> Any:
    optional("huggingface_hub.constants", "embed", "transformers")
    return optional("huggingface_hub", "embed", "transformers")


def _weights(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _pickles(folder: Path) -> list[Path]:
    return sorted(file for pattern in PICKLES for file in folder.glob(pattern) if file.name != "training_args.bin")


def _lacking_shards(folder: Path) -> set[str]:
    """Files that an index of shards names and that are missing."""
    named: set[str] = set()
    for index in folder.glob("*.safetensors.index.json"):
        named |= set(_json(index).get("weight_map", {}).values())
    return {name for name in named if not is_file(folder / name)}


def _refuse_unsafe(folder: Path) -> None:
    """Raise an error if the folder has no model, or a model that needs a pickle or code of its own."""
    heart = _heart(folder)
    if not is_file(heart / "config.json"):
        raise _no_model(heart, "config.json")
    if not _weights(heart) and not _pickles(heart):
        raise _no_model(heart, "model.safetensors")
    if lacking := _lacking_shards(heart):
        raise _no_model(heart, min(lacking))
    for module in modules(folder):
        if not module["type"].startswith("sentence_transformers."):
            problem = f"the model in {str(folder)!r} needs code of its own ({module['type']!r}), which is not run"
            remedy = "Choose a model that transformers and sentence-transformers know"
            raise ValueError(message(problem, remedy=remedy))
    steps = [part for part in folder.rglob("*") if is_folder(part) and part.name not in OTHER_FOLDERS]
    for part in {heart, *(steps if modules(folder) else [])}:
        if _pickles(part) and not _weights(part):
            files = listed(file.name for file in _pickles(part))
            problem = f"{str(part)!r} has weights only as {files}, and loading a pickle can run any code"
            remedy = "Use a revision with .safetensors, or convert the model by model.save_pretrained(folder)"
            raise ValueError(message(problem, remedy=remedy))


def _no_model(folder: Path, file: str) -> ValueError:
    problem = f"the folder {str(folder)!r} has no {file}; a model needs config.json and its weights as .safetensors"
    return ValueError(message(problem, remedy="Pass the folder that save_pretrained wrote, or download it again"))


def _heart(folder: Path) -> Path:
    """The folder of the transformer: the first step of a sentence-transformers model may have a folder of its own."""
    steps = modules(folder)
    return folder / steps[0]["path"] if steps else folder


def modules(folder: Path) -> list[dict[str, str]]:
    """The steps of a sentence-transformers model (``modules.json``); none if it is not one."""
    file = folder / "modules.json"
    steps = _json(file) if is_file(file) else []
    return [{"type": str(step.get("type", "")), "path": str(step.get("path", ""))} for step in steps]


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise unreadable_data(file, "a JSON file of a model", error) from error


def _checksum(folder: Path) -> str:
    """sha256 of the configuration and the weights: a folder with new contents is another model."""
    digest = hashlib.sha256()
    for file in sorted([*folder.rglob("*.json"), *folder.rglob("*.safetensors")]):
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return f"sha256:{digest.hexdigest()[:40]}"
