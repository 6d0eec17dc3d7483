"""Heavy packages, imported by the first test that uses them: each process collects all files but runs only some."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class Late:
    """A module that is imported when the first of its attributes is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("_", "pytest_")):  # pytest asks every name in a file for these when it collects
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def importorskip(name: str, reason: str) -> Any:
    """``pytest.importorskip`` that finds the package now and imports it later."""
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip(reason, allow_module_level=True)
    return Late(name)
