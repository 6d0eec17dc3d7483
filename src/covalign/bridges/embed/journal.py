"""Rows that are already computed, each with the digest of its item, so that a later run resumes an interrupted one.

Rows are found by digest, not by position: images may be repaired, added or removed between runs, and only the new ones
are computed.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covalign._core.files import NO_ROOM, disk_full, locked, write_text

DIGEST = 16
PAUSE = 1.0  # seconds between records: so much work is repeated if the process is killed


class Log:
    """Rows by digest, in a folder (kept until ``remove``) or, without one, in memory.

    ``key`` identifies all that decides a row besides its item; rows with another key are discarded.
    """

    def __init__(self, folder: Path | None = None, key: str = "") -> None:
        self.folder = folder
        self._place: dict[bytes, int] = {}
        self._fresh: list[bytes] = []
        self._had = time.monotonic()
        self.width: int | None = None
        self._rows: Any = io.BytesIO()
        self._marks: Any = io.BytesIO()
        self._lock: Any = None
        self._key = key
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = locked(folder / "lock", target=folder)
            self._open(folder)

    def _open(self, folder: Path) -> None:
        """Read the rows of an earlier run: as many as both files have."""
        try:
            head = json.loads((folder / "head.json").read_text())
            self.width = int(head["width"]) if head["key"] == self._key else None
        except (OSError, ValueError, KeyError, TypeError):
            self.width = None
        self._rows = (folder / "rows.f32").open("a+b")
        self._marks = (folder / "digests").open("a+b")
        size = 0 if self.width is None else 4 * self.width
        n = min(_size(self._rows) // size, _size(self._marks) // DIGEST) if size else 0
        self._rows.truncate(n * size)
        self._marks.truncate(n * DIGEST)
        self._marks.seek(0)
        known = self._marks.read(n * DIGEST)
        self._place = {known[i * DIGEST : (i + 1) * DIGEST]: i for i in range(n)}

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._place

    def __len__(self) -> int:
        return len(self._place)

    def append(self, digests: list[bytes], rows: NDArray[np.float32], still: int = 0) -> None:
        """Add rows; ``still`` more will follow."""
        if self.width is None:
            self._begin(rows.shape[1], still + len(rows))
        try:
            self._rows.write(np.ascontiguousarray(rows, dtype=np.float32).tobytes())
        except OSError as error:
            raise self._refused(error, still + len(rows)) from error
        for digest in digests:
            self._place[digest] = len(self._place)
        self._fresh += digests
        if time.monotonic() - self._had >= PAUSE:
            self.record()

    def _begin(self, width: int, need: int) -> None:
        self.width = width
        if self.folder is None:
            return
        if 4 * width * need > shutil.disk_usage(self.folder).free:  # better now than after hours of work
            raise self._refused(OSError(next(iter(NO_ROOM)), ""), need)
        write_text(self.folder / "head.json", json.dumps({"key": self._key, "width": width}))

    def record(self) -> None:
        """Write the rows to the disk first, then their digests."""
        try:
            _sync(self._rows)
            self._marks.write(b"".join(self._fresh))
            _sync(self._marks)
        except OSError as error:
            raise self._refused(error, 0) from error
        self._fresh = []
        self._had = time.monotonic()

    def _refused(self, error: OSError, need: int) -> Exception:
        if error.errno not in NO_ROOM or self.folder is None:
            return error
        return disk_full(self.folder, 4 * (self.width or 0) * need, len(self._place))

    def gather(self, digests: list[bytes]) -> NDArray[np.float32]:
        """The rows of these items, in this order."""
        self._rows.flush()
        self._rows.seek(0)
        stored = np.frombuffer(self._rows.getbuffer(), np.float32) if self.folder is None else self._mapped()
        order = np.array([self._place[digest] for digest in digests], dtype=np.intp)
        return np.array(stored.reshape(-1, self.width or 1)[order])

    def _mapped(self) -> Any:
        return np.memmap(self._rows, np.float32, mode="r", shape=(len(self._place) * (self.width or 1),))

    def close(self) -> None:
        """Record the rows, and release the folder."""
        if self._rows.closed:
            return
        try:
            self.record()
        finally:
            for file in (self._rows, self._marks, self._lock):
                if file is not None:
                    file.close()

    def remove(self) -> None:
        """Remove the folder: the result is complete."""
        self.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _size(file: Any) -> int:
    return int(os.fstat(file.fileno()).st_size)


def _sync(file: Any) -> None:
    file.flush()
    if not isinstance(file, io.BytesIO):
        os.fsync(file.fileno())
