"""Output files, which appear only when they are complete, and what every command does around its work.

Help and many errors need no data, so numpy, pandas and the estimators are imported only by functions that use them.
"""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covalign._core.extras import optional
from covalign._core.files import data_not_found, folder_in_the_way, replacing
from covalign._core.messages import message
from covalign._core.paths import exists, file_of, replaceable, suffix_of
from covalign._core.progress import close_bars
from covalign._core.text_tables import plain
from covalign.cli.application import answering, check_free, in_flags, note
from covalign.exceptions import (
    ColumnLayoutWarning,
    LeastSquaresWarning,
    NotFiniteError,
    NotHeldOutWarning,
    OwnershipWarning,
    SingularTransformWarning,
    TransposedWarning,
    UngroupedRowsWarning,
    UnmatchedNamesWarning,
)

if TYPE_CHECKING:
    import pandas as pd

    from covalign.aligner.latent import LatentAligner

KEPT = "complete files are kept, incomplete ones are removed"
TEXT = (".csv", ".tsv")  # also as .csv.gz and .tsv.gz
TABLES = (*TEXT, ".parquet")
FIGURES = (".png", ".svg", ".pdf")
PAGES = (".html", ".htm")
NUMBERS = (".npy", ".parquet", ".zarr", *TEXT)
FOLDERS = ("--loadings-out",)  # a name without a suffix is a folder
MODELS = (".hdf5", ".h5")
EXTRAS = {".parquet": ("pyarrow", "parquet"), ".zarr": ("zarr", "zarr"), **dict.fromkeys(MODELS, ("h5py", "mofa"))}
OURS = (
    *(SingularTransformWarning, LeastSquaresWarning, ColumnLayoutWarning),
    *(NotHeldOutWarning, OwnershipWarning, TransposedWarning, UngroupedRowsWarning, UnmatchedNamesWarning),
)
SHOWN_SETS = 5  # gene sets of a factor that answers name, and sets without a test that notes name
INFORMED = {"beta": "beta", "low": "90 % from", "high": "to", "held_out": "held out", "verdict": "verdict"}
ALIGNMENT = {"in_sample": "in sample", "held_out": "held out", "low": "90 % from", "high": "to"}


@contextmanager
def working(as_json: bool, kept: str = KEPT) -> Iterator[None]:
    """``answering``, with every warning as one line on standard error."""
    seen: set[str] = set()

    def show(message: Any, *_: Any, **__: Any) -> None:
        text = in_flags(message)
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
            close_bars()


def check_outputs(
    outputs: Mapping[str, tuple[Path | None, Sequence[str]]],
    inputs: Sequence[Path | None],
    *,
    force: bool,
    needed: bool = False,
) -> list[str]:
    """The output files that were asked for, after checks that precede any work.

    ``outputs`` has the path and the possible suffixes (none: any) of every flag. Refused are files that exist (unless
    ``force``), that are inputs, that two flags name, or that cannot be written. A folder may hold anything, and is
    replaced only if it is the kind of folder that would be written.
    """
    asked = {flag: (path, suffixes) for flag, (path, suffixes) in outputs.items() if path is not None}
    if needed and not asked:
        *others, last = outputs
        raise ValueError(message("Nothing to write", remedy=f"Give an output file with {', '.join(others)} or {last}"))
    for flag, (path, suffixes) in asked.items():
        if suffixes:
            check_suffix(flag, path, suffixes)
    check_free(*(path for path, _ in asked.values()), force=force)
    used = {path.resolve(): "an input" for path in inputs if path is not None}
    for flag, (path, _) in asked.items():
        if path.resolve() in used:
            remedy = "Choose another name for the output"
            raise ValueError(message(f"{str(path)!r} is also {used[path.resolve()]}", remedy=remedy))
        if not (replaceable(path) or (flag in FOLDERS and not path.suffix)):
            raise folder_in_the_way(flag, path)
        used[path.resolve()] = f"the file of {flag}"
    return [str(path) for path, _ in asked.values()]


def check_inputs(*rows: Path | None, tables: Sequence[Path | None] = (), model: Path | None = None) -> None:
    """Refuse files that do not exist before anything is imported to read them, in the words of the library."""
    needs = {**dict.fromkeys(rows, "a file or folder of rows"), **dict.fromkeys(tables, "a table of covariates")}
    for path, need in {model: "a model file written by covalign", **needs}.items():
        if path is not None and not exists(file_of(path)):
            raise data_not_found(path, need)


def check_suffix(flag: str, path: Path, known: Sequence[str]) -> None:
    """Refuse a format that cannot be written, or needs a package that is not installed."""
    kind = suffix_of(path)
    if kind not in known or (path.name.lower().endswith(".gz") and kind not in TEXT):
        every = ", ".join([*known, *(f"{suffix}.gz" for suffix in known if suffix in TEXT)])
        raise ValueError(message(f"{flag} needs a file name that ends in one of {every}", got=repr(str(path))))
    if kind in EXTRAS:
        optional(*EXTRAS[kind])


def frame_of(values: Any, index: pd.Index | None, names: Sequence[Any]) -> pd.DataFrame:
    """A result as a table with the names of its rows and columns."""
    import numpy as np
    import pandas as pd

    return pd.DataFrame(np.asarray(values), index, pd.Index([str(name) for name in names]))


def write_frame(frame: pd.DataFrame, path: Path) -> None:
    """Write a result that is in memory. Tables keep the names of rows."""
    import numpy as np
    import pandas as pd

    from covalign.stream import open_sink

    kind, named = suffix_of(path), not isinstance(frame.index, pd.RangeIndex)
    if kind == ".zarr":
        with open_sink(path, frame.shape, np.float64, list(frame.columns), overwrite=True) as sink:
            sink.write(frame.to_numpy(dtype=np.float64))
        return
    with replacing(path) as file:
        if kind == ".npy":
            np.save(file, frame.to_numpy(), allow_pickle=False)
        elif kind == ".parquet":
            file.write(frame.to_parquet(None, index=named))
        else:
            text = frame.to_csv(sep="\t" if kind == ".tsv" else ",", index=named).encode()
            file.write(gzip.compress(text, mtime=0) if path.name.lower().endswith(".gz") else text)


def write_rows(
    transform: Callable[..., Any],
    out: Path,
    names: pd.Index | None,
    columns: Sequence[Any],
    *,
    whole: bool,
    force: bool,
) -> None:
    """Write transformed rows: tables (which keep names of rows) and ``whole`` data from memory, others in chunks."""
    if whole or suffix_of(out) in TEXT:
        import numpy as np

        values = transform()
        write_frame(frame_of(np.hstack(values) if isinstance(values, tuple) else values, names, columns), out)
        return
    try:
        transform(out=out, overwrite=force)
    except NotFiniteError:  # with other data the same command cannot resume the incomplete output
        from covalign.stream.sink import part_folder

        shutil.rmtree(part_folder(out), ignore_errors=True)
        raise


def write_aligned(
    aligner: LatentAligner, rows: Any, C: pd.DataFrame | None, out: Path, names: pd.Index | None, *, force: bool
) -> None:
    """Write aligned rows. A table in memory keeps the names of rows also in a parquet file."""
    import pandas as pd

    whole = isinstance(rows, pd.DataFrame) and out.suffix.lower() == ".parquet"
    transform = partial(aligner.transform, rows, confounders=C)
    write_rows(transform, out, names, aligner.get_feature_names_out(), whole=whole, force=force)


@contextmanager
def filled_folder(out: Path, last: str = "") -> Iterator[Path]:
    """A temporary folder that becomes ``out``, or whose files move into ``out``, if no error occurs.

    The file called ``last`` moves after all others: once it exists, they do.
    """
    target = out.resolve()
    folder = target.parent / f".{target.name}.{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        yield folder
        if exists(target):  # it may have other files, or be a working directory
            for file in sorted(folder.iterdir(), key=lambda file: file.name == last):
                shutil.move(file, target / file.name)  # which may be on another disk
        else:
            os.rename(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def drawing(module: str) -> Any:
    """A module of covalign that draws. Import it before any work: matplotlib may not be installed."""
    optional("matplotlib", "plot").use("Agg")
    return import_module(f"covalign.{module}")


def save_figure(axes: Any, path: Path) -> None:
    """The figure, in the format of the suffix."""
    with replacing(path) as file:
        axes.figure.savefig(file, format=path.suffix.lower()[1:], dpi=200)


def alignment_lines(
    model: Any, names: Mapping[str, str] | None = None, summary: pd.DataFrame | None = None, /, **more: Any
) -> list[str]:
    """The alignment of every covariate and, for several, the mean, as a table; ``more`` are further columns.

    ``names`` says what a covariate is called in the table; ``summary`` is that of the model, if it is there already.
    """
    shown = (model.summary() if summary is None else summary)[list(ALIGNMENT)].assign(**more).rename(index=names or {})
    rows = list(shown.itertuples(name=None))
    mean = [("mean", *model.mean_alignment_.reindex(shown.columns))] if len(rows) > 1 else []
    return plain(["covariate", *ALIGNMENT.values(), *more], rows + mean)


def informed_lines(informed: pd.DataFrame) -> list[str]:
    """``informed_`` of a factor model as a table; nothing where no sample was left out."""
    if informed["beta"].isna().all():
        return []
    return plain(["covariate", *INFORMED.values()], informed[list(INFORMED)].itertuples(name=None))


def verdicts_by_name(informed: pd.DataFrame) -> dict[str, str]:
    """The name of each covariate, with "(not captured)" where X does not carry it."""
    from covalign.factor.verdicts import VERDICTS

    lost = informed["verdict"] == VERDICTS[-1]
    return {str(name): f"{name} ({VERDICTS[-1]})" if lost[name] else str(name) for name in informed.index}


def category_lines(categories: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A sentence for every category: which of its levels have a dimension."""
    return [in_flags(category["about"]) for category in categories.values()]


def enrichment_notes(about: dict[Any, Any]) -> None:
    """Say what was not tested, and that a correlation was not estimated."""
    if "note" in about:
        note(f"note: {about['note']}")
    for view, reasons in about["left_out"].items():
        if len(reasons) == about["sets"]:
            note(f"note: none of the gene sets can be tested in view {view!r}: its features have other names")
            continue
        names = about["unmatched"][view]
        if names:
            some = (
                "1 name of gene sets is no feature"
                if len(names) == 1
                else f"{len(names)} names of gene sets are no features"
            )
            note(f"note: {some} of view {view!r}")
        for name, why in list(reasons.items())[:SHOWN_SETS]:
            note(f"note: set {name!r} was not tested in view {view!r}: {in_flags(why)}")
        more = len(reasons) - SHOWN_SETS
        if more > 0:
            note(f"note: {more} more sets were not tested in view {view!r}; --json has the reasons")


def size_line(rows: int, n_groups: int | None, *more: str, called: str = "rows") -> str:
    """``3000 rows, 8 groups``, and what else there is to say about the size."""
    return ", ".join([f"{rows} {called}", *([] if n_groups is None else [f"{n_groups} groups"]), *more])


def regime_line(model: Any) -> str:
    """The regime of a fitted model and its coupling."""
    lam = "" if model.lam_ is None or model.lam_ != model.lam_ else f", lambda {model.lam_:.3g}"
    regime = "" if model.regime_ is None else f"{model.regime_}{lam}, "
    return f"{regime}coupling {model.coupling_:.3f}"
