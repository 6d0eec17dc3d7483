"""One file for a fitted model: arrays and JSON in a zip archive. Nothing in it is ever executed."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import covalign as package
from covalign._core.files import check_readable, explaining, path_to_read, replacing, shown
from covalign._core.linalg import Array
from covalign._core.messages import message
from covalign._core.paths import is_folder
from covalign._core.zip_archives import refused
from covalign.exceptions import FileFormatError
from covalign.stream.npy import read_archive

FORMAT, VERSION = "covalign", 1
NEED = "a model file written by covalign"
META = "meta.json"
SMALL, EXPANSION = 2**26, 20  # bytes that a file may always become, and how many times its size beyond that


def write(path: Any, meta: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write a model to a file. The file appears only when it is complete."""
    head = {"format": FORMAT, "version": VERSION, "covalign": package.__version__, **meta}
    text = np.frombuffer(json.dumps(head, ensure_ascii=False).encode(errors="surrogatepass"), dtype=np.uint8)
    contents: dict[str, Any] = {META: text, **arrays}
    with replacing(path, sum(array.nbytes for array in contents.values())) as file:
        np.savez(file, **contents)


def read(path: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what ``write`` wrote. A damaged, foreign or newer file is an error that says which it is."""
    path = _given(path)
    check_readable(path, NEED)
    if is_folder(path):
        raise refused(path, None, "it is a folder")
    with explaining(path, NEED):
        if not zipfile.is_zipfile(path):
            raise foreign_file(path)
        _check_size(path)
        arrays = read_archive(path)
        if META not in arrays:
            raise foreign_file(path)
        text = arrays.pop(META)
        if text.dtype != np.uint8 or text.ndim != 1:
            raise refused(path, META, "it is no text")
        with explaining(path, f"{NEED}, member {META!r}"):
            meta = json.loads(text.tobytes().decode(errors="surrogatepass"))
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise foreign_file(path)
    version = meta.get("version")
    if type(version) is not int or version < 1:
        raise refused(path, META, f"its version is {str(version)[:50]!r}, which is no number of a version")
    if version > VERSION:
        problem = f"{shown(path)} has format {version}; this covalign reads formats up to {VERSION}"
        raise FileFormatError(message(problem, remedy="Update covalign"))
    return meta, arrays


def _given(path: Any) -> Path:
    return path_to_read(path, "a model file")


def _check_size(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        total = sum(info.file_size for info in archive.infolist())
    if total > SMALL + EXPANSION * path.stat().st_size:
        raise refused(path, None, f"its members claim {total} bytes")


def foreign_file(path: Any) -> FileFormatError:
    """The error for a file that is no model, or a damaged one."""
    problem = f"{shown(path)} is not a model file written by covalign, or it is damaged"
    return FileFormatError(message(problem, remedy="Save the model again"))


def wrong_field(path: Any, field: str, why: str) -> FileFormatError:
    """The error for a model file with a field that cannot be."""
    problem = f"{shown(path)} is not a model file written by covalign, or it is damaged: {field} {why}"
    return FileFormatError(message(problem, remedy="Save the model again"))
