"""What a path says, and what is there. Nothing is read, and nothing slow is imported."""

from __future__ import annotations

from pathlib import Path


def suffix_of(path: Path) -> str:
    """The suffix in lower case: before ``.gz`` of a compressed file, and that of the file of a sheet."""
    return Path(file_of(path).name.lower().removesuffix(".gz")).suffix


def file_of(path: Path) -> Path:
    """The file; ``book.xlsx::Sheet`` is a sheet of it, ``folder::Gene Expression`` has features of one type."""
    name, sign, sheet = str(path).rpartition("::")
    parts = name.lower().endswith((".xlsx", ".xlsm", ".ods", ".mtx", ".mtx.gz", ".h5"))
    return Path(name) if sign and sheet and (parts or Path(name).is_dir()) else path


def sheet_of(path: Path) -> str | None:
    """The name of the sheet, or the type of features, after ``::``, if there is one."""
    return None if file_of(path) == path else str(path).rpartition("::")[2]


def is_zarr(path: Path) -> bool:
    """Whether this is a zarr array or group, of any version."""
    return any((path / mark).exists() for mark in ("zarr.json", ".zarray", ".zgroup"))


def replaceable(path: Path) -> bool:
    """Whether a result may replace what is at ``path``: a file, or a folder that zarr has made, no other folder."""
    return not path.is_dir() or (path.suffix.lower() == ".zarr" and is_zarr(path))
