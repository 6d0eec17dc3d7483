"""Views of the same samples: files by name, or a study in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from covalign._core import validation as errors
from covalign._core.extras import optional
from covalign.cli import table_files as tables
from covalign.cli.representations import Rows, open_pair, open_representation
from covalign.stream import open_rows
from covalign.stream.h5ad import pulling

ALONE = "X"  # what the model calls a view that has no name


class Study(NamedTuple):
    """Views, and the table of covariates and confounders, not yet in the same order."""

    views: dict[str, Rows]
    table: pd.DataFrame
    where: str
    together: bool


def named_paths(texts: Sequence[str]) -> dict[str, Path]:
    """NAME=PATH, as often as it was said."""
    found: dict[str, Path] = {}
    for text in texts:
        name, sign, path = text.partition("=")
        if not (name and sign and path):
            raise errors.not_a_view(text)
        if name in found:
            raise errors.repeated_view(name)
        found[name] = Path(path)
    return found


def check_given(data: Path | None, views: dict[str, Path]) -> None:
    """One file, or views."""
    if (data is None) == (not views):
        raise errors.one_way_to_data("neither" if data is None else "both")


def is_study(path: Path | None) -> bool:
    """A file of several views."""
    return path is not None and tables.suffix_of(path) == ".h5mu"


def open_study(
    data: Path | None,
    paths: dict[str, Path],
    table: Path | None,
    covariates: Sequence[str] | None,
    confounders: Sequence[str] | None,
    index: str | None,
    key: str | None,
) -> Study:
    """What ``fit`` is given. Covariates come from the table; else from obs, or from columns of the only file."""
    if data is not None and not is_study(data):
        pair = open_pair(data, table, covariates, confounders, index, key)
        return Study({ALONE: pair.rows}, pair.table, pair.where, pair.together)
    source = table or data
    if source is None:
        raise errors.covariates_needed(" and ".join(map(str, paths.values())))
    files = [*paths.values(), source]
    tables.check_index(index, {file: tables.columns_in(file) for file in files if index is not None})
    known = tables.chosen(tables.read_table(source, index), covariates, confounders, source)
    views = open_views(paths, key, index) if data is None else modalities(data, key)
    return Study(views, known, str(source), False)


def open_views(
    paths: dict[str, Path], key: str | None, index: str | None, only: dict[str, list[str]] | None = None
) -> dict[str, Rows]:
    """Views from files; ``key`` is for those that hold several arrays, ``only`` the features a model knows."""
    several = [name for name, path in paths.items() if tables.suffix_of(path) in (".h5ad", ".h5", ".npz", ".zarr")]
    return {
        name: open_representation(
            path, key if name in several or not several else None, index, only=(only or {}).get(name)
        )
        for name, path in paths.items()
    }


def modalities(path: Path, key: str | None, wanted: Sequence[str] | None = None) -> dict[str, Rows]:
    """The views of an ``.h5mu``: X of each modality, or ``key``; those that are wanted, if any of them is there."""
    if not path.exists():
        raise errors.data_not_found(path, "a file of several views (.h5mu)")
    mudata = optional("mudata", "scverse")
    try:
        with pulling(False):
            data = mudata.read_h5mu(path)
    except (OSError, KeyError, ValueError) as error:
        raise errors.unreadable_data(path, "an .h5mu file written by mudata", error) from error
    names = [name for name in data.mod if wanted is None or name in wanted] or list(data.mod)
    return {str(name): _rows(data.mod[name], f"{path}[{name}]", key) for name in names}


def _rows(data: Any, where: str, key: str | None) -> Rows:
    source = open_rows(data, key=key, name=where)
    return Rows(source, data.obs_names, where)
