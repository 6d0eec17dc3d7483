"""Fingerprints: texts that change when the rows, or anything else that determines a result, change."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from covalign.stream.derived import Derived
from covalign.stream.source import Source, Table

BLOCKS, BLOCK_BYTES = 64, 2**20  # of the content of files


def identity(source: Source) -> str:
    """Fingerprint of the rows of a source.

    Of rows in a file or folder: path, size, inode and times of every file, and a hash of all bytes up to 64 MB, of 64
    blocks spread evenly over more. No program can set ``st_ctime`` back, so every write shows, even if size and
    modification time are as they were. A memory map of another program may write without a time, and Windows keeps no
    such time: there a write to more than 64 MB shows only in the blocks. Of rows in memory: a hash of all their bytes.
    Of other rows (dask, a device): a text that never repeats.
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
    files = sorted(_files_of(path)) if path.is_dir() else [path]
    stats = [file.stat() for file in files]
    known = [(str(f), s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for f, s in zip(files, stats, strict=True)]
    ends = np.cumsum([stat.st_size for stat in stats], dtype=np.int64)
    total = int(ends[-1]) if files else 0
    count = min(BLOCKS, -(-total // BLOCK_BYTES))
    digest = hashlib.blake2b(digest_size=16)
    for start in np.linspace(0, max(0, total - BLOCK_BYTES), count).astype(np.int64).tolist():
        at, stop = start, min(total, start + BLOCK_BYTES)
        which = int(np.searchsorted(ends, at, side="right"))
        while at < stop:  # a block may reach over several files
            with files[which].open("rb") as file:
                file.seek(at - int(ends[which]) + stats[which].st_size)
                digest.update(file.read(min(stop, int(ends[which])) - at))
            at, which = int(ends[which]), which + 1
    return [known, digest.hexdigest()]


def _files_of(folder: Path) -> Iterator[Path]:
    """All files below a folder, also in folders that are links, each folder once: links may form circles."""
    seen = set[tuple[int, int]]()
    for root, folders, names in os.walk(folder, followlinks=True):
        found = os.stat(root)
        if (found.st_dev, found.st_ino) in seen:
            folders.clear()
            continue
        seen.add((found.st_dev, found.st_ino))
        yield from (Path(root, name) for name in names if Path(root, name).is_file())
