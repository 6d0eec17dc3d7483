"""What a path says, and what is there. Nothing is read, and nothing slow is imported."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def exists(path: Path) -> bool:
    """Whether something is there. A name that no file can have is not; what may not be looked at is."""
    return _mode(path) is not None


def is_folder(path: Path) -> bool:
    """Whether a folder is there, as ``exists``."""
    return stat.S_ISDIR(_mode(path) or 0)


def is_file(path: Path) -> bool:
    """Whether a regular file is there, as ``exists``."""
    return stat.S_ISREG(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    try:
        return os.stat(path).st_mode
    except PermissionError:
        return 0
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return None


def suffix_of(path: Path) -> str:
    """The suffix in lower case: before ``.gz`` of a compressed file, and that of the file of a sheet."""
    return Path(file_of(path).name.lower().removesuffix(".gz")).suffix


def file_of(path: Path) -> Path:
    """The file; ``book.xlsx::Sheet`` is a sheet of it, ``folder::Gene Expression`` has features of one type."""
    name, sign, sheet = str(path).rpartition("::")
    parts = name.lower().endswith((".xlsx", ".xlsm", ".ods", ".mtx", ".mtx.gz", ".h5"))
    return Path(name) if sign and sheet and (parts or is_folder(Path(name))) else path


def sheet_of(path: Path) -> str | None:
    """The name of the sheet, or the type of features, after ``::``, if there is one."""
    return None if file_of(path) == path else str(path).rpartition("::")[2]


def is_zarr(path: Path) -> bool:
    """Whether this is a zarr array or group, of any version."""
    return any(exists(path / mark) for mark in ("zarr.json", ".zarray", ".zgroup"))


def replaceable(path: Path) -> bool:
    """Whether a result may replace what is at ``path``: a file, or a folder that zarr has made, no other folder."""
    return not is_folder(path) or (path.suffix.lower() == ".zarr" and is_zarr(path))
