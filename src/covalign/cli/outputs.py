"""Results into files, whole or not at all; and what every command of this kind does around its work."""

from __future__ import annotations

import gzip
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from covalign._core import validation as errors
from covalign.cli.application import answering, check_free, note
from covalign.cli.watched import BAR
from covalign.persist import archive as store
from covalign.stream import open_sink
from covalign.stream.sink import replaceable
from covalign.stream.source import optional
from covalign.tables.files import suffix_of

KEPT = "files that are complete stay, others were not made"
TABLES = (".csv", ".tsv", ".parquet")  # the first two also as .csv.gz and .tsv.gz
FIGURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")
NUMBERS = (".npy", ".parquet", ".zarr", ".csv", ".tsv")
FOLDERS = ("--loadings-out",)  # what is written into, where its name has no suffix
EXTRAS = {".parquet": ("pyarrow", "parquet"), ".zarr": ("zarr", "zarr")}
OURS = (
    errors.SingularTransformWarning,
    errors.LeastSquaresWarning,
    errors.ColumnLayoutWarning,
    ConvergenceWarning,
)


@contextmanager
def working(as_json: bool, kept: str = KEPT) -> Iterator[None]:
    """``answering``, with warnings as one line each on standard error."""
    seen: set[str] = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in seen:
            seen.add(text)
            note(f"warning: {text}")

    with answering(kept, as_json=as_json), warnings.catch_warnings():
        for kind in OURS:
            warnings.simplefilter("always", kind)
        warnings.showwarning = show
        try:
            yield
        finally:
            BAR.close()


def check_outputs(outputs: Mapping[str, Path | None], inputs: Sequence[Path | None], *, force: bool) -> None:
    """Refuse, before any work, outputs that are there, are inputs, are the same, or cannot be written where they are.

    ``--force`` replaces files. A folder may hold anything, and is replaced only where it is what would be written.
    """
    check_free(*outputs.values(), force=force)
    used = {path.resolve(): "an input" for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        if path.resolve() in used:
            raise errors.same_file(path, used[path.resolve()])
        if not (replaceable(path) or (option in FOLDERS and not path.suffix)):
            raise errors.folder_in_the_way(option, path)
        used[path.resolve()] = option


def check_suffix(option: str, path: Path | None, known: Sequence[str]) -> None:
    """The format needs to be one that can be written, here."""
    if path is None:
        return
    kind = suffix_of(path)
    if kind not in known or (path.name.lower().endswith(".gz") and kind not in (".csv", ".tsv")):
        raise errors.unknown_output(option, path, [*known, *(f"{k}.gz" for k in known if k in (".csv", ".tsv"))])
    if kind in EXTRAS:
        optional(*EXTRAS[kind])


def is_table(path: Path) -> bool:
    """Text, which has a place for names of rows."""
    return suffix_of(path) in (".csv", ".tsv")


def frame_of(values: Any, index: pd.Index | None, names: Sequence[Any]) -> pd.DataFrame:
    """A result with its names."""
    return pd.DataFrame(np.asarray(values), index, pd.Index([str(name) for name in names]))


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """A result in memory; names of rows, where there are any, go into tables."""
    kind, named = suffix_of(path), not isinstance(frame.index, pd.RangeIndex)
    if kind == ".zarr":
        with open_sink(path, frame.shape, np.float64, list(frame.columns), overwrite=True) as sink:
            sink.write(frame.to_numpy(dtype=np.float64))
        return
    with store.replacing(path) as file:
        if kind == ".npy":
            np.save(file, frame.to_numpy(), allow_pickle=False)
        elif kind == ".parquet":
            file.write(frame.to_parquet(None, index=named))
        else:
            text = frame.to_csv(sep="\t" if kind == ".tsv" else ",", index=named).encode()
            file.write(gzip.compress(text, mtime=0) if path.name.lower().endswith(".gz") else text)


@contextmanager
def no_remains(path: Path) -> Iterator[None]:
    """Remove what was begun where the data are at fault: the same command will not go on with other data."""
    try:
        yield
    except errors.NotFiniteError:
        shutil.rmtree(path.parent / f".{path.name}.part", ignore_errors=True)
        raise


def drawing(module: str) -> Any:
    """A module of covalign that draws, without a screen. Asked for first: matplotlib may be missing."""
    optional("matplotlib", "plot").use("Agg")
    return import_module(f"covalign.{module}")


def save_figure(axes: Any, path: Path) -> None:
    """The figure, in the format of the suffix."""
    with store.replacing(path) as file:
        axes.figure.savefig(file, format=path.suffix.lower()[1:], dpi=200)


def lines_of(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """A table as text: the first column to the left, numbers to the right."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in cells]


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "-" if np.isnan(value) else f"{value + 0.0:.3f}"
    return str(value)
