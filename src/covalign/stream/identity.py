"""Fingerprints: texts that change when the rows, or anything else that determines a result, change."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from covalign.stream.derived import Derived
from covalign.stream.source import Source, Table

BLOCKS, BLOCK_BYTES = 64, 2**14  # of the content of files


def identity(source: Source) -> str:
    """Fingerprint of the rows of a source.

    Of rows in a file or folder: path, size, inode and times of every file, and a hash of blocks spread evenly over the
    content. No program can set ``st_ctime`` back, so every write shows, even if size and modification time are as they
    were. Of rows in memory: a hash of all their bytes. Of other rows (dask, a device): a text that never repeats.
    """
    if isinstance(source, Derived):
        return fingerprint(identity(source.source), source.added)
    assert isinstance(source, Table)  # a source is one or the other
    about = [source.shape, str(source.dtype), source.names, source.key, source.layout, source.taken]
    if source.file is not None:
        source.file.flush()
    if source.origin is not None:
        return fingerprint(*about, *_content(Path(source.origin).resolve()))
    if not (source.in_memory or source.hashable):
        return uuid.uuid4().hex
    return fingerprint(*about, *map(fingerprint, source.chunks()))


def fingerprint(*parts: Any) -> str:
    """Hash of arrays, sparse matrices, texts and numbers, and of tuples and lists of these."""
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, parts)
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    if isinstance(part, tuple | list):
        digest.update(f"{len(part)} parts".encode())
        for one in part:
            _feed(digest, one)
    elif sparse.issparse(part):
        _feed(digest, (part.shape, part.indptr, part.indices, part.data))
    elif isinstance(part, np.ndarray):
        digest.update(f"{part.dtype.str} {part.shape}".encode())
        digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    else:
        digest.update(f"{part!r};".encode())


def _content(path: Path) -> list[Any]:
    """Size and time of every file, and a hash of blocks that are spread evenly over all bytes."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    stats = [file.stat() for file in files]
    known = [(str(f), s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for f, s in zip(files, stats, strict=True)]
    ends = np.cumsum([stat.st_size for stat in stats])
    digest = hashlib.blake2b(digest_size=16)
    for at in np.unique(np.linspace(0, max(0, int(ends[-1]) - BLOCK_BYTES), BLOCKS).astype(np.int64)).tolist():
        which = int(np.searchsorted(ends, at, side="right"))
        if which < len(files):
            with files[which].open("rb") as file:
                file.seek(at - int(ends[which]) + stats[which].st_size)
                digest.update(file.read(BLOCK_BYTES))
    return [known, digest.hexdigest()]
