"""What users are told: data sets, and embedding of images and texts."""

from __future__ import annotations


def names_differ_from_columns(need: int, got: tuple[int, ...]) -> ValueError:
    return ValueError(f"names needs {need} names, one per column of Y, got shape {got}: save as many as Y has columns.")
