"""What users are told: figures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from covalign._core.validation.base import some


def not_the_frame(figure: str, columns: Iterable[str], source: str, got: Any) -> ValueError:
    found = f"one with {some(got.columns, 8)}" if hasattr(got, "columns") else f"a {type(got).__name__}"
    need = f" with the columns {some(columns, 8)}" if columns else ""
    return ValueError(f"plot.{figure} needs a DataFrame{need}, got {found}: pass what {source} returns.")


def nothing_to_draw(figure: str, source: str) -> ValueError:
    return ValueError(f"plot.{figure} needs at least one row and column, got none: pass what {source} returns.")


def not_axes(got: Any) -> ValueError:
    return ValueError(
        f"ax needs matplotlib Axes, got a {type(got).__name__}: pass those of plt.subplots(), or none for a new figure."
    )


def not_axes_in_rows(shape: tuple[int, int], got: Any) -> ValueError:
    found = f"{got.shape[0]} x {got.shape[1]}" if getattr(got, "ndim", 0) == 2 else f"a {type(got).__name__}"
    return ValueError(
        f"plot.matrices needs {shape[0]} x {shape[1]} matplotlib Axes, got {found}: pass those of "
        f"plt.subplots({shape[0]}, {shape[1]}), or none for a new figure."
    )


def no_such_factor(figure: str, argument: str, name: Any, known: Iterable[Any]) -> ValueError:
    return ValueError(
        f"plot.{figure} needs {argument} to be a column of its frame ({some(known, 8)}), got {name!r}: choose one."
    )


def several_factors(figure: str, names: Iterable[Any]) -> ValueError:
    return ValueError(
        f"plot.{figure} needs the loadings of one factor, got those of {some(names)}: choose one, as in "
        "loadings_frame('age', n=10), or draw plot.loadings."
    )


def values_do_not_match(figure: str, argument: str, need: int, got: tuple[int, ...]) -> ValueError:
    shape = " x ".join(map(str, got)) or "1"
    return ValueError(
        f"plot.{figure} needs {argument} for its {need} samples, got {shape} values without their names: pass a Series "
        "with the samples as index, or as many values as samples."
    )


def values_of_others(figure: str, argument: str, need: Any, got: Any) -> ValueError:
    return ValueError(
        f"plot.{figure} needs {argument} with an index that names its samples ({some(need, 3)}), got {some(got, 3)}: "
        "give both the same index, every sample once."
    )


def category_of_numbers(figure: str, name: Any) -> ValueError:
    return ValueError(
        f"plot.{figure} needs a category, got numbers in {str(name)!r}: use .astype('category') if these are levels, "
        "or plot.factors with colour= for a number."
    )


def totals_without(names: Iterable[Any]) -> ValueError:
    return ValueError(
        f"plot.variance_explained needs a total for every view, got none for {some(names)}: pass what "
        "total_variance_explained() returns."
    )
