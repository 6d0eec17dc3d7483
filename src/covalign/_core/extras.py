"""Optional packages: imported where they are used, with an error that names the extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from covalign.exceptions import MissingExtraError


def optional(module: str, extra: str, package: str = "") -> Any:
    """The module, imported now. ``package`` is its name on PyPI, if that is not the module's."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_extra(package or module.partition(".")[0], extra) from error


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """The error for a package that is not installed."""
    return MissingExtraError(
        f"This needs {package}, which is not installed. Install it with  pip install 'covalign[{extra}]'"
    )
