"""Files appear whole or not at all; a lock keeps a second writer out, or makes it wait."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from covalign._core.files import locked, replacing, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old, größer")
    with pytest.raises(RuntimeError, match="stop"):
        interrupted_write(path)
    assert path.read_text(encoding="utf-8") == "old, größer"
    assert list(tmp_path.iterdir()) == [path]


def interrupted_write(path):
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_text(encoding="utf-8") == "old, größer"
        raise RuntimeError("stop")


def test_the_umask_decides_who_may_read(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_second_writer_is_told_which_target(tmp_path):
    held = locked(tmp_path / "lock", target=tmp_path / "out.npy")
    with pytest.raises(ValueError, match=r"Another run is writing '.*out\.npy'\. Wait"):
        locked(tmp_path / "lock", target=tmp_path / "out.npy")
    held.close()
    locked(tmp_path / "lock", target=tmp_path / "out.npy").close()


def test_without_a_target_the_second_writer_waits(tmp_path):
    held = locked(tmp_path / "log")
    held.write(b"first ")
    second = threading.Thread(target=lambda: append(tmp_path / "log", b"second"))
    second.start()
    second.join(0.2)
    assert second.is_alive()
    held.close()
    second.join(10)
    assert (tmp_path / "log").read_bytes() == b"first second"


def append(path, text):
    with locked(path) as file:
        file.write(text)


def test_the_lock_ends_with_its_process(tmp_path):
    code = "import os, pathlib, sys; from covalign._core.files import locked; f = locked(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", f"{code}; os._exit(1)", str(tmp_path / "l")], check=False)
    locked(tmp_path / "l", target="l").close()
