"""What a path says, and what is there. Nothing is read, and nothing slow is imported."""

from __future__ import annotations

from pathlib import Path


def suffix_of(path: Path) -> str:
    """The suffix in lower case; of a file compressed by gzip, the suffix before ``.gz``."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_zarr(path: Path) -> bool:
    """Whether this is a zarr array or group, of any version."""
    return any((path / mark).exists() for mark in ("zarr.json", ".zarray", ".zgroup"))


def replaceable(path: Path) -> bool:
    """Whether a result may replace what is at ``path``: a file, or a folder that zarr has made, no other folder."""
    return not path.is_dir() or (path.suffix.lower() == ".zarr" and is_zarr(path))
