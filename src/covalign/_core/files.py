"""Files that appear only when they are complete, locks between processes, and the errors of files."""

from __future__ import annotations

import errno
import hashlib
import lzma
import math
import os
import re
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from covalign._core.messages import message
from covalign._core.zip_archives import check_zip
from covalign.exceptions import (
    CannotWriteError,
    DataNotFoundError,
    DiskFullError,
    FileFormatError,
    TargetExistsError,
)

NO_ROOM = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
# What decoders raise on damaged bytes; zipfile says RuntimeError of encryption, NotImplementedError of unknown methods.
DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, struct.error, MemoryError),
    *(ValueError, LookupError),
)
UNREADABLE = (Exception,)  # readers of foreign formats raise whatever their bytes lead them to
CLAIM_BYTES, CLAIM_RATIO = 2**30, 10_000  # compressed data that claim more than both are no data
TEMPORARY = ".covalign-tmp"  # ends the names of files that are being written
NAME_BYTES = 255  # of a file, on nearly all file systems
REFUSALS = {  # number of the system's error -> what is wrong, what to do
    errno.EACCES: ("cannot be written: permission is denied", "Choose another folder, or change its permissions"),
    errno.EPERM: ("cannot be written: permission is denied", "Choose another folder, or change its permissions"),
    errno.EROFS: ("is on a disk that is read-only", "Choose a folder on another disk"),
    errno.ENAMETOOLONG: ("is too long for this file system", "Choose a shorter name (a file name has 255 bytes)"),
    errno.ELOOP: ("is a symbolic link that leads to itself", "Remove the link, or choose another path"),
    errno.ENOTDIR: ("is in a folder that is a file", "Choose another path"),
    errno.ENOENT: ("is in a folder that does not exist", "Make the folder first, or choose another path"),
    errno.EMFILE: ("cannot be opened: too many files are open", "Close some, or raise the limit (ulimit -n)"),
}
SPECIAL = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


@contextmanager
def replacing(path: Any, size: int | None = None) -> Iterator[BinaryIO]:
    """A file to write to. It takes the name ``path`` when the block ends without an error, else it is removed.

    Until then it has a temporary name in the same folder, so readers see the old file or the new one, never a part.
    Temporary files of the same path whose writer was killed are removed. ``size`` is what the file needs, if known.
    """
    path, temporary = output_path(path), None
    try:
        with writing(path, size):
            _remove_leftovers(path)
            file, temporary = _temporary(path)
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.chmod(temporary, 0o666 & ~_umask())  # mkstemp lets only the owner read the file
                if os.name != "nt":  # before the lock ends: others remove files that no one holds
                    os.replace(temporary, path)
            if os.name == "nt":  # Windows renames no open file
                os.replace(temporary, path)
    except BaseException:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


def write_text(path: Any, text: str) -> None:
    """Write a whole text file (UTF-8) by ``replacing`` the old one."""
    data = text.encode()
    with replacing(path, len(data)) as file:
        file.write(data)


def output_path(path: Any) -> Path:
    """``given_path``, where no folder may be."""
    made = given_path(path)
    if made.is_dir():
        raise folder_in_the_way("A file", made)
    return made


def path_to_read(path: Any, need: str) -> Path:
    """The path, if it is one; ``need`` says what it should lead to."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise ValueError(message(f"The path of {need} is needed", got=_no_path(path), remedy="give a file name"))
    return Path(path)


def _no_path(path: Any) -> str:
    empty = isinstance(path, str) and path == ""
    return "None" if path is None else "an empty text" if empty else f"a {type(path).__name__}"


def given_path(path: Any) -> Path:
    """The path, after checks that precede any work: it is a path that the system takes, and no device has this name."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise ValueError(message("A path to write to is needed", got=_no_path(path), remedy="give a file name"))
    made = Path(path)
    try:
        os.fsencode(made)
        with writing(made):
            found = _status(made)
    except ValueError as error:
        if isinstance(error, OSError):
            raise
        problem = f"{shown(made)} has characters that no file name can have"  # a null, or half a surrogate pair
        raise ValueError(message(problem, remedy="Choose another name")) from None
    if found is None and not made.parent.is_dir():
        raise data_not_found(made.parent, f"a folder for {made.name}")
    if found is not None and not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        problem = f"{shown(made)} is {_kind(found)}, and only regular files are replaced"
        raise CannotWriteError(message(problem, remedy="Choose another path"))
    return made


def _status(path: Path) -> os.stat_result | None:
    """What is at the path; None if nothing is, or a link to nothing."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _kind(found: os.stat_result) -> str:
    return SPECIAL.get(stat.S_IFMT(found.st_mode), "no regular file")


def hidden_name(name: str, ending: str) -> str:
    """``.NAME.ENDING``, the name shortened (and made unique by its hash) where the system allows no such length."""
    if len(os.fsencode(name)) + len(ending) + 2 > NAME_BYTES:
        name = f"{name[:40]}~{hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()}"
    return f".{name}.{ending}"


def _temporary(path: Path) -> tuple[BinaryIO, Path]:
    """A new file beside ``path``, locked, so that others see that its writer lives."""
    prefix = hidden_name(path.name, "x" * 8 + TEMPORARY)[: -len("x" * 8 + TEMPORARY)]
    while True:
        handle, name = tempfile.mkstemp(TEMPORARY, prefix, path.parent)
        file = os.fdopen(handle, "wb")
        # Another writer may take the file for a leftover before it is locked; it holds the lock until it has removed it
        if _lock(file, wait=True) and not _is_at(file, Path(name)):
            file.close()
            continue
        return file, Path(name)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of ``path`` that no living writer holds; where there are no locks, none."""
    start = hidden_name(path.name, "x" * 8 + TEMPORARY)[: -len("x" * 8 + TEMPORARY)]
    pattern = re.compile(re.escape(start) + r"[a-z0-9_]{8}" + re.escape(TEMPORARY))
    with suppress(OSError):  # tidying up is no reason to fail
        for left in [entry for entry in os.scandir(path.parent) if pattern.fullmatch(entry.name)]:
            with suppress(OSError), open(left.path, "r+b") as file:
                if _lock(file):
                    os.unlink(left.path)


def _lock(file: Any, wait: bool = False) -> bool:
    """Lock an open file until it is closed; False where files cannot be locked, BlockingIOError if another holds it."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except (ImportError, OSError):  # Windows, and some file systems
        return False
    return True


def _is_at(file: Any, path: Path) -> bool:
    """Whether the path still names this open file."""
    found = _status(path)
    return found is not None and os.path.samestat(os.fstat(file.fileno()), found)


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
    Windows and some file systems have no locks: there the file is only opened. Another run may remove the file after
    this one has opened it; a lock of a file without its name locks nothing, so it is opened again.
    """
    while True:
        file = path.open("a+b")
        try:
            if not _lock(file, wait=target is None) or _is_at(file, path):
                return file
        except BlockingIOError:
            file.close()
            problem = f"Another run is writing {shown(target)}"
            raise ValueError(message(problem, remedy="Wait until it has finished, or choose another path")) from None
        file.close()


@contextmanager
def writing(path: Path, need: int | None = None) -> Iterator[None]:
    """A block that writes to ``path``: errors of the system become errors that say what to do.

    ``need`` is the number of bytes to write, for the message on a full disk.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, ValueError):  # one of ours
            raise
        raise cannot_write(path, error, need) from error


def cannot_write(path: Path, error: OSError, need: int | None = None) -> Exception:
    """The error for a path that cannot be written, from the error of the system."""
    if error.errno in NO_ROOM:
        return disk_full(path, need)
    if error.errno == errno.EISDIR:
        return folder_in_the_way("A file", path)
    why = error.strerror or str(error).partition("\n")[0] or type(error).__name__
    problem, remedy = REFUSALS.get(error.errno or 0, (f"cannot be written ({why})", "Choose another path"))
    made = CannotWriteError(message(f"{shown(path)} {problem}", remedy=remedy))
    made.errno = error.errno
    return made


def disk_full(path: Any, need: int | None, done: int | None = None) -> DiskFullError:
    """The error for ``need`` more bytes at ``path``, after ``done`` rows were written (None: no part is kept)."""
    free = free_bytes(Path(path).parent)
    known = f", {free} are free" if free < math.inf else ""
    much = "more space" if need is None else f"about {need} bytes more"
    cause = "The disk is full or a size limit was reached."
    remedy = f"{cause} Make room and make the same call again: it resumes at row {done}"
    if done is None:
        remedy = f"{cause} Nothing is lost: what was there is unchanged. Make room and write again"
    return DiskFullError(message(f"{shown(path)} needs {much} on its disk{known}", remedy=remedy))


def shown(path: Any) -> str:
    """A path in quotes, shortened where it is very long."""
    text = str(path)
    return repr(text) if len(text) <= 300 else f"{text[:140]!r}...{text[-140:]!r}"


def free_bytes(folder: Path) -> float:
    """Free space on the disk of a folder; infinity where it is unknown."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return math.inf


def data_not_found(path: Any, need: str) -> DataNotFoundError:
    """The error for a path where nothing is."""
    return DataNotFoundError(message(f"There is no {shown(path)}", remedy=f"Give {need}"))


def check_readable(path: Any, need: str) -> None:
    """Refuse, before anything is opened, devices and FIFOs (which may block for ever) and hostile zip archives."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise data_not_found(path, need) from None
    except (OSError, ValueError) as error:
        raise _told(path, need, error) from None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        problem = f"{shown(path)} is {_kind(found)}, and only regular files are read"
        raise FileFormatError(message(problem, remedy="Copy the data to a file first"))
    if stat.S_ISREG(found.st_mode):
        try:
            check_zip(path)
        except OSError as error:
            raise _told(path, need, error) from error


def check_claim(path: Any, claimed: int, stored: int) -> None:
    """Refuse data whose header claims far more bytes than ``stored`` ones can stand for, before any is allocated."""
    if claimed < 0 or claimed > max(CLAIM_BYTES, CLAIM_RATIO * stored):
        problem = f"{shown(path)} claims {claimed} bytes of numbers and has {stored} bytes"
        raise FileFormatError(message(problem, remedy="The file is damaged or incomplete. Copy or write it again"))


def unreadable_data(path: Any, need: str, why: Any) -> FileFormatError:
    """The error for a file that is damaged or something else."""
    problem = f"{shown(path)} cannot be read as {need} ({why})"
    return FileFormatError(message(problem, remedy="Download or export it again"))


@contextmanager
def reading(path: Any, need: str, errors: tuple[type[Exception], ...] = UNREADABLE) -> Iterator[None]:
    """A block that reads a file, after ``check_readable``: its errors become ``unreadable_data``."""
    check_readable(path, need)
    with explaining(path, need, errors):
        yield


@contextmanager
def explaining(path: Any, need: str, errors: tuple[type[Exception], ...] = UNREADABLE) -> Iterator[None]:
    """A block that reads an open file: its errors become ``unreadable_data``, with their first line."""
    try:
        yield
    except errors as error:
        if isinstance(error, FileFormatError | ImportError):  # which say more
            raise
        raise _told(path, need, error) from error


def _told(path: Any, need: str, error: Exception) -> FileFormatError:
    if isinstance(error, PermissionError):
        problem = f"{shown(path)} cannot be read: permission is denied"
        return FileFormatError(message(problem, remedy="Change its permissions, or copy it"))
    return unreadable_data(path, need, _first_line(error))


def _first_line(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return "its header declares more numbers than fit into memory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).partition("\n")[0][:300] or "empty"


def target_exists(path: Any, remedy: str = "pass overwrite=True") -> TargetExistsError:
    """The error for a file that would be replaced."""
    return TargetExistsError(message(f"{shown(path)} exists already", remedy=f"Choose another path, or {remedy}"))


def folder_in_the_way(what: str, path: Any) -> ValueError:
    """The error for a result that would replace a folder."""
    problem = f"{what} needs the name of a file"
    remedy = "choose another name, or remove the folder yourself (only files are replaced)"
    return ValueError(message(problem, got=f"the folder {shown(path)}", remedy=remedy))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
