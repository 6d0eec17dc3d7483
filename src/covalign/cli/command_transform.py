"""transform: apply a saved model to new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from covalign._core.column_names import with_deviations
from covalign._core.messages import listed, message
from covalign._core.paths import suffix_of
from covalign.cli import options, reading_options
from covalign.cli.application import app, note, reply
from covalign.cli.option_values import named_paths
from covalign.cli.options import DATA, OUTPUT, flag, option
from covalign.cli.outputs import NUMBERS, check_inputs, check_outputs, working, write_aligned, write_rows
from covalign.cli.table_options import TableOptions

if TYPE_CHECKING:
    import pandas as pd

    from covalign.aligner.latent import LatentAligner
    from covalign.factor.informed import InformedFactorAnalysis
    from covalign.tables.covariates import Encoding
    from covalign.tables.named_rows import Representation

VIEWS = ("transpose", "log")  # options that name views


@app.command()
def transform(
    model_file: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A file that align --save or fit -o wrote.", show_default=False)
    ],
    new: Annotated[
        Path | None, typer.Argument(metavar="NEW", help="The new rows, in any format that align or fit can read.")
    ] = None,
    *,
    view: options.View = None,
    covariates: Annotated[
        Path | None,
        option(DATA, "PATH", "Table with known covariates of the new samples, for a model of covalign fit."),
    ] = None,
    confounders: Annotated[
        Path | None,
        option(
            DATA,
            "PATH",
            "Table with the confounders of the new rows. Default: the table of covariates, or obs of an .h5ad or "
            ".h5mu file.",
        ),
    ] = None,
    index: options.Index = None,
    by_position: options.ByPosition = False,
    transpose: options.TransposeNew = None,
    match: options.MatchNew = None,
    strip: options.StripNew = None,
    na: options.NaNew = None,
    log: options.LogNew = None,
    key: options.Key = None,
    out: Annotated[Path, option(OUTPUT, "PATH", f"The transformed rows ({', '.join(NUMBERS)}).", "--out", "-o")],
    return_std: Annotated[
        bool, flag(OUTPUT, "Append standard deviations of the factors, for a model of covalign fit.", "--return-std")
    ] = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Apply a saved model to new rows.

    Tables are read as those of the fit were: the same views are logged, the same features are used. A note says so.

    Example: covalign transform model.covalign Z_new.npy -o aligned_new.npy
    """
    with working(as_json):
        paths = named_paths(view, new)
        inputs = [model_file, new, covariates, confounders, *paths.values()]
        check_outputs({"--out": (out, NUMBERS)}, inputs, force=force)
        views_named = reading_options.views_in(new, paths)
        flags = {"transpose": transpose, "match": match, "strip": strip, "na": na, "log": log}
        given = [name for name, value in {**flags, "index": index, "key": key}.items() if value not in (None, [])]
        turned, logged = (reading_options.some_or_none(names, views_named) for names in (transpose, log))
        rule = options.Match.exact if match is None else match
        asked = TableOptions(None, index, by_position, turned, rule, strip, na, logged)
        reading = asked.reading(views_named)
        files = [path for path in (new, *paths.values(), confounders, covariates) if path is not None]
        check_inputs(new, *paths.values(), tables=[confounders, covariates], model=model_file)

        from covalign.aligner.latent import LatentAligner
        from covalign.persist.reader import load
        from covalign.tables import table_columns
        from covalign.tables import table_files as tables

        table_columns.check_index(index, {path: tables.columns_in(path) for path in files if index is not None})
        model: Any = load(model_file)
        saved = as_fitted(model._reading or {}, given, files, [*paths])
        index, key = saved.get("index", index), saved.get("key", key)
        known = Known(covariates, confounders, index, reading, reading.recalled(saved), saved.get("columns", {}))
        if isinstance(model, LatentAligner):
            refuse_for_aligner({"--view": view, "--return-std": return_std}, model, covariates)
            assert new is not None  # there is no view
            n, columns = of_aligner(model, new, key, known, out, force)
        else:
            views = opened_views(model, new, paths, key, known)
            n, columns = of_factors(model, views, known, new, out, return_std, force)
    facts = {"model": type(model).__name__, "rows": n, "columns": columns, "as_fitted": saved, "files": [str(out)]}
    shown = f"{', '.join(columns[:5])}{', ...' if len(columns) > 5 else ''}"
    reply(as_json, facts, f"{out}: {n} x {len(columns)} ({shown})")


def as_fitted(
    saved: Mapping[str, Any], given: Sequence[str], files: Sequence[Path], views: Sequence[str]
) -> dict[str, Any]:
    """What applies here of the reading that a model file has, and a note that says so.

    Options that were given replace their own. Names of arrays, columns and views apply to what is there.
    """
    from covalign.tables.representations import has_arrays
    from covalign.tables.table_files import columns_in

    applies = {name: value for name, value in saved.items() if name not in given}
    applies |= {name: [v for v in applies[name] if v in views or not views] for name in VIEWS if name in applies}
    there = {"key": any(map(has_arrays, files))}
    if "index" in applies:
        there["index"] = any(applies["index"] in columns_in(file) for file in files)
    applies = {name: value for name, value in applies.items() if value and there.get(name, True)}
    said = reading_options.said_of(applies)
    if said:
        note(f"note: tables are read as those of the fit: {said}")
    return applies


class Known(NamedTuple):
    """Tables that belong to the new rows."""

    covariates: Path | None
    confounders: Path | None
    index_column: str | None
    asked: reading_options.Reading  # by options
    reading: reading_options.Reading  # by options and the file of the model
    columns: Mapping[str, Sequence[int]]  # positions of features without names, by view

    def arranged(
        self, views: dict[str, Representation], encoding: Encoding, new: Path | None
    ) -> tuple[dict[str, Representation], dict[str, pd.DataFrame]]:
        """Views with logarithms where these were asked for, and the tables by path, with names of rows that match.

        ``encoding`` is that of the confounders of the model: if there are any, obs of the new rows is a table, too.
        """
        from covalign.cli.data_files import notes
        from covalign.tables import confounders as nuisance
        from covalign.tables.table_files import read_table
        from covalign.tables.view_layout import check_layout, columns_at, named_alike, numbers

        if not encoding.columns and self.confounders is not None:
            raise nuisance.none_fitted()
        check_layout(self.asked.settings["layout"], [*views])
        layout = self.reading.settings["layout"]
        views = {n: columns_at(view, self.columns[n]) if n in self.columns else view for n, view in views.items()}
        obs = new if new is not None and suffix_of(new) in (".h5ad", ".h5mu") and encoding.columns else None
        paths = [str(path) for path in (self.confounders, self.covariates, obs) if path is not None]
        tables = {path: read_table(path, self.index_column, self.reading.na) for path in paths}
        if layout.by_name:
            views, tables, said = named_alike(views, tables, layout.names)
            notes(said)
        return numbers(views, layout), tables

    def matched(self, path: str, frame: pd.DataFrame, rows: Representation, needed: bool = False) -> pd.DataFrame:
        """The table in the order of the rows."""
        from covalign.cli.data_files import matched

        return matched(rows, frame, path, by_position=self.reading.by_position, needed=needed)

    def confounders_of(
        self, encoding: Encoding, rows: Representation, tables: dict[str, pd.DataFrame]
    ) -> pd.DataFrame | None:
        """The confounders of a model, from the first table that has them; None if the model has none."""
        from covalign.tables import confounders as nuisance

        wanted = [column.source for column in encoding.columns]
        if not wanted:
            return None
        for path, frame in tables.items():
            if {*wanted} <= {*frame.columns}:
                return self.matched(path, frame[wanted], rows, needed=True)
        raise nuisance.needed(wanted)


def refuse_for_aligner(asked: dict[str, Any], model: LatentAligner, covariates: Path | None) -> None:
    """Refuse what only a factor model can use. An aligner uses a table of covariates for its confounders only."""
    for name, value in {**asked, "--covariates": covariates is not None and not model.confounder_names_}.items():
        if value:
            needs = f"{name} needs a model of informed factor analysis (covalign fit)"
            raise ValueError(message(needs, got="an aligner", remedy="leave the option out"))


def of_aligner(
    model: LatentAligner, new: Path, key: str | None, known: Known, out: Path, force: bool
) -> tuple[int, list[str]]:
    """Write the aligned rows; return the number of rows and the names of columns."""
    import pandas as pd

    from covalign.cli.data_files import names_for, watched
    from covalign.tables.representations import SINGLE, open_views

    features, encoding = getattr(model, "feature_names_in_", None), model._coding.confounders
    only = None if features is None else {SINGLE: list(features)}
    opened = open_views({SINGLE: new}, key, known.index_column, only, known.reading.na, known.reading.transpose)
    views, tables = known.arranged(opened, encoding, new)
    rows = watched(views[SINGLE])
    check_features(rows, features)
    if features is None and isinstance(rows.data, pd.DataFrame):  # the model knows positions only
        rows = replace(rows, data=rows.data.set_axis(range(rows.data.shape[1]), axis=1))
    C = known.confounders_of(encoding, rows, tables)
    write_aligned(model, rows.data, C, out, names_for(rows, C), force=force)
    return rows.n, [str(name) for name in model.get_feature_names_out()]


def check_features(rows: Representation, features: Any) -> None:
    """Refuse rows without the columns of the model, if both have names of columns; otherwise columns go by position."""
    import pandas as pd

    from covalign.tables.table_columns import unknown_columns

    have = rows.data.columns if isinstance(rows.data, pd.DataFrame) else rows.data.names
    wrong = [] if features is None or have is None else [name for name in features if name not in set(have)]
    if wrong:
        raise unknown_columns(rows.where, wrong, list(have))


def opened_views(
    model: InformedFactorAnalysis, new: Path | None, paths: dict[str, Path], key: str | None, tables: Known
) -> dict[str, Representation]:
    """Views of the new samples, under the names that they have in the model."""
    from covalign._core.data_errors import unknown_views
    from covalign.tables.representations import is_study, modalities, open_views, turned_for
    from covalign.tables.view_layout import asked

    known, reading = {name: scale.names for name, scale in model._table.views.items()}, tables.reading
    if new is not None and is_study(new):
        views = modalities(new, key, list(known))
        turned = reading.transpose
        return {name: turned_for(view, known[name]) if asked(turned, name) else view for name, view in views.items()}
    if new is not None and len(known) > 1:
        remedy = f"Name it with --view NAME=PATH, where NAME is one of {listed(known)}"
        raise ValueError(message(f"The model has several views and {str(new)!r} could be any of them", remedy=remedy))
    if new is not None:
        paths = {next(iter(known)): new}
    unknown = [name for name in paths if name not in known]
    if unknown:  # before anything is read
        raise unknown_views(unknown, list(known))
    return open_views(paths, key, tables.index_column, known, reading.na, reading.transpose)


def of_factors(
    model: InformedFactorAnalysis,
    views: dict[str, Representation],
    known: Known,
    new: Path | None,
    out: Path,
    std: bool,
    force: bool,
) -> tuple[int, list[str]]:
    """Write factors, then their standard deviations; return the number of rows and the names of columns."""
    import pandas as pd

    from covalign.cli.data_files import joined, names_for

    encoding = model._table.nuisance.coding.confounders
    views, tables = known.arranged(views, encoding, new)
    X, rows = joined(views, known.reading.by_position)
    C = known.confounders_of(encoding, rows, tables)
    y = None
    if known.covariates is not None:
        y = known.matched(str(known.covariates), tables[str(known.covariates)], rows)
    columns = with_deviations(model.factor_names_) if std else list(model.factor_names_)
    place = partial(model.transform, X, y, confounders=C, return_std=std)
    whole = all(isinstance(part, pd.DataFrame) for part in X.values())
    write_rows(place, out, names_for(rows, C if y is None else y), columns, whole=whole, force=force)
    return rows.n, columns
