"""The memory of the machine, and the refusal of work that cannot fit into it."""

from __future__ import annotations

import math
import os

from covalign._core.messages import message


def machine_bytes() -> float:
    """The memory of this machine in bytes; infinity where it is unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows
        return math.inf


def check_memory(what: str, need: float, remedy: str) -> None:
    """Refuse work that needs more bytes than the machine has, before anything is allocated."""
    have = machine_bytes()
    if need > have:
        problem = f"{what} needs about {min(need, 10**30) / 1e9:.3g} GB of memory"
        raise ValueError(message(problem, got=f"a machine with {have / 1e9:.3g} GB", remedy=remedy))
