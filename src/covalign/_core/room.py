"""The memory of the machine, and the refusal of work that cannot fit into it."""

from __future__ import annotations

import math
import os
from pathlib import Path

from covalign._core.messages import message

SMALL = 2**26  # bytes that every machine has: a small fit reads no file of the system


def machine_bytes() -> float:
    """The memory of this machine in bytes; infinity where it is unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows
        return math.inf


def free_bytes() -> float:
    """The memory that processes can still take, caches of the system included; infinity where it is unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):  # not Linux
        return math.inf


def check_memory(what: str, need: float, remedy: str) -> None:
    """Refuse work that needs more bytes than the machine has left, before anything is allocated."""
    if need <= SMALL:
        return
    have = machine_bytes()
    if need > min(have, free_bytes()):
        problem = f"{what} needs about {min(need, 10**30) / 1e9:.3g} GB of memory"
        got = f"a machine with {have / 1e9:.3g} GB"
        got += f", of which {free_bytes() / 1e9:.3g} are free" if need <= have else ""
        raise ValueError(message(problem, got=got, remedy=remedy))
