"""Zip archives that others made: their table of contents is checked before anything is read or allocated."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from covalign._core.messages import message
from covalign.exceptions import FileFormatError

MAGIC = b"PK\x03\x04"
MOST_MEMBERS = 100_000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
EXPANSION = 1032  # what deflate reaches at most; more is a bomb or a false claim
SMALL = 2**20  # bytes of a member that no limit of expansion concerns


def check_zip(path: Any) -> None:
    """Refuse a zip archive that is encrypted, or makes false or enormous claims; pass other files."""
    with open(path, "rb") as file:
        if file.read(4) != MAGIC:
            return
        try:
            with zipfile.ZipFile(file) as archive:
                found = archive.infolist()
        except Exception:  # damaged: whoever reads it says so, and what it should have been
            return
        size = os.fstat(file.fileno()).st_size
    if len(found) > MOST_MEMBERS:
        raise refused(path, None, f"it has {len(found)} members, more than {MOST_MEMBERS}")
    if sum(info.compress_size for info in found) > size:
        raise refused(path, None, "its members are larger than the file")
    names = set[str]()
    for info in found:
        if info.filename in names:
            raise refused(path, info.filename, "it is in the archive twice")
        names.add(info.filename)
        _check_member(path, info)


def _check_member(path: Any, info: zipfile.ZipInfo) -> None:
    if info.flag_bits & 1:
        raise refused(path, info.filename, "it is encrypted")
    if info.compress_type not in METHODS:
        raise refused(path, info.filename, f"its compression ({info.compress_type}) is unknown")
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        raise refused(path, info.filename, f"it has {info.compress_size} bytes and claims {info.file_size}")
    if info.file_size > max(SMALL, EXPANSION * info.compress_size):
        raise refused(path, info.filename, f"it claims {info.file_size} bytes from {info.compress_size}")


def refused(path: Any, member: str | None, why: str) -> FileFormatError:
    """The error for an archive, or for one of its members."""
    which = "" if member is None else f", member {member[:100]!r}"
    remedy = "Download or export it again"
    return FileFormatError(message(f"{str(path)!r}{which} cannot be read: {why}", remedy=remedy))
