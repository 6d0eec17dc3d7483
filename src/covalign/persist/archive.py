"""One file for a fitted model: arrays and JSON in a zip archive. Nothing in it is ever executed."""

from __future__ import annotations

import json
import zipfile
from typing import Any

import numpy as np

import covalign as package
from covalign._core.files import data_not_found, replacing
from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign.exceptions import FileFormatError

FORMAT, VERSION = "covalign", 1


def write(path: Any, meta: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write a model to a file. The file appears only when it is complete."""
    head = {"format": FORMAT, "version": VERSION, "covalign": package.__version__, **meta}
    text = np.frombuffer(json.dumps(head, ensure_ascii=False).encode(), dtype=np.uint8)
    contents: dict[str, Any] = {"meta.json": text, **arrays}
    with replacing(path) as file:
        np.savez(file, **contents)


def read(path: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what ``write`` wrote. A damaged, foreign or newer file is an error that says which it is."""
    try:
        with zipfile.ZipFile(path) as zipped:  # np.load would open other formats, too
            zipped.getinfo("meta.json.npy")
        with np.load(path, allow_pickle=False) as archive:
            meta = json.loads(archive["meta.json"].tobytes())
            if meta.get("format") != FORMAT:
                raise foreign_file(path)
            if meta.get("version", 0) > VERSION:
                problem = f"{str(path)!r} has format {meta['version']}; this covalign reads formats up to {VERSION}"
                raise FileFormatError(message(problem, remedy="Update covalign"))
            return meta, {name: archive[name] for name in archive.files if name != "meta.json"}
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, AttributeError, KeyError) as error:
        if isinstance(error, FileNotFoundError):
            raise data_not_found(path, "a model file written by covalign") from None
        if isinstance(error, FileFormatError):
            raise
        raise foreign_file(path) from error


def foreign_file(path: Any) -> FileFormatError:
    """The error for a file that is no model, or a damaged one."""
    problem = f"{str(path)!r} is not a model file written by covalign, or it is damaged"
    return FileFormatError(message(problem, remedy="Save the model again"))
