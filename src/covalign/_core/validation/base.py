"""What users are told: how lists are shown in a message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from covalign._core.checks import REGIMES as REGIMES
from covalign._core.messages import did_you_mean
from covalign._core.messages import listed as some
from covalign._core.messages import nearest as nearest

__all__ = ["REGIMES", "meant", "nearest", "some"]


def meant(wrong: Iterable[Any], known: Iterable[Any], most: int = 2) -> str:
    """A question after the names that may have been meant; empty if none is near."""
    question = did_you_mean(wrong, known, most)
    return question[:1].lower() + question[1:]
