"""What users are told: informed factor analysis, and its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covalign._core.validation.base import some


def unknown_engine(engine: Any) -> ValueError:
    return ValueError(f"engine needs 'auto', 'gram' or 'dense', got {engine!r}: 'auto' takes the cheaper one.")


def unknown_views(names: Iterable[str], known: Sequence[str]) -> ValueError:
    return ValueError(f"views need to be among those fitted ({some(known)}), got {some(names)}: check the names.")


def features_missing(view: str, names: Sequence[str]) -> ValueError:
    return ValueError(f"view {view!r} needs the features of the fit, got a table without {some(names)}: add them.")


def rows_not_kept() -> ValueError:
    return ValueError(
        "this needs the rows of the fit, which came as a stream, or were read from a source when the model was fitted "
        "and not saved with it: transform(X, y) gives the factors of any rows."
    )
