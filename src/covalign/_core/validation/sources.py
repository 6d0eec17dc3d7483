"""What users are told: rows in files, streams and clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from covalign._core.validation.base import some


def source_without_rows(where: str, shape: Sequence[Any]) -> ValueError:
    return ValueError(
        f"{where} needs at least one row and one column, got shape {tuple(shape)}: check that the data were written."
    )


def repeated_columns(where: str, names: Iterable[Any]) -> ValueError:
    return ValueError(f"{where} needs distinct column names, got {some(names)} more than once: rename or drop them.")


def check_chunk_rows(rows: Any) -> int:
    """A number of rows in a chunk."""
    if isinstance(rows, Integral) and not isinstance(rows, bool) and int(rows) >= 1:
        return int(rows)
    raise ValueError(f"chunk_rows needs a whole number of at least 1, got {rows!r}: leave it out to have it chosen.")


def folder_in_the_way(option: str, path: Any) -> ValueError:
    return ValueError(
        f"{option} needs a name that no folder has, got {str(path)!r}, which is one: choose another, or remove the "
        "folder yourself (only files are replaced)."
    )
