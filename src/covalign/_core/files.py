"""Files that appear only when they are complete, locks between processes, and the errors of files."""

from __future__ import annotations

import csv
import errno
import math
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from covalign._core.messages import message
from covalign.exceptions import DataNotFoundError, DiskFullError, TargetExistsError

NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
UNREADABLE = (ValueError, OSError, KeyError, csv.Error, *DAMAGED)


@contextmanager
def replacing(path: Any) -> Iterator[BinaryIO]:
    """A file to write to. It takes the name ``path`` when the block ends without an error, else it is removed.

    Until then it has a temporary name in the same folder, so readers see the old file or the new one, never a part.
    """
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp lets only the owner read the file
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Any, text: str) -> None:
    """Write a whole text file (UTF-8) by ``replacing`` the old one."""
    with replacing(path) as file:
        file.write(text.encode())


def sync(path: Path, mode: int = os.O_RDONLY) -> None:
    """Wait until a file or folder is on the disk; Windows needs a ``mode`` that can write."""
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def locked(path: Path, *, target: Any = None) -> BinaryIO:
    """The file, open for reading and appending, and locked until it is closed or the process ends.

    If another run holds the lock, wait for it; with a ``target``, raise an error that names the target instead.
    Windows and some file systems have no locks: there the file is only opened.
    """
    file = path.open("a+b")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if target is None else fcntl.LOCK_NB))
    except BlockingIOError:
        file.close()
        problem = f"Another run is writing {str(target)!r}"
        raise ValueError(message(problem, remedy="Wait until it has finished, or choose another path")) from None
    except (ImportError, OSError):
        pass
    return file


def disk_full(path: Any, need: int, done: int) -> DiskFullError:
    """The error for ``need`` more bytes at ``path``, after ``done`` rows were written."""
    free = free_bytes(Path(path).parent)
    known = f", {free} are free" if free < math.inf else ""
    remedy = "The disk is full or a size limit was reached. Make room and make the same call again: it resumes at row"
    return DiskFullError(
        message(f"{str(path)!r} needs about {need} bytes more on its disk{known}", remedy=f"{remedy} {done}")
    )


def free_bytes(folder: Path) -> float:
    """Free space on the disk of a folder; infinity where it is unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return math.inf


def data_not_found(path: Any, need: str) -> DataNotFoundError:
    """The error for a path where nothing is."""
    return DataNotFoundError(message(f"There is no {str(path)!r}", remedy=f"Give {need}"))


def unreadable_data(path: Any, need: str, why: Any) -> ValueError:
    """The error for a file that is damaged or something else."""
    return ValueError(message(f"{str(path)!r} cannot be read as {need} ({why})", remedy="Download or export it again"))


@contextmanager
def reading(path: Any, need: str, errors: tuple[type[Exception], ...] = UNREADABLE) -> Iterator[None]:
    """A block that reads a file: its errors become ``unreadable_data``, with their first line."""
    try:
        yield
    except errors as error:
        raise unreadable_data(path, need, str(error).partition("\n")[0] or "empty") from error


def target_exists(path: Any, remedy: str = "pass overwrite=True") -> TargetExistsError:
    """The error for a file that would be replaced."""
    return TargetExistsError(message(f"{str(path)!r} exists already", remedy=f"Choose another path, or {remedy}"))


def folder_in_the_way(what: str, path: Any) -> ValueError:
    """The error for a result that would replace a folder."""
    problem = f"{what} needs a name that no folder has"
    remedy = "choose another name, or remove the folder yourself (only files are replaced)"
    return ValueError(message(problem, got=f"the folder {str(path)!r}", remedy=remedy))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
