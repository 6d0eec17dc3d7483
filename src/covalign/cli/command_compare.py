"""compare: all methods on the user's data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from covalign._core.messages import listed, message
from covalign._core.text_tables import plain
from covalign.cli import options, reading_options
from covalign.cli.application import FAILED, RESUMES, app, in_flags, note_reasons, reply
from covalign.cli.option_values import named_paths
from covalign.cli.options import METHOD, flag, option
from covalign.cli.outputs import (
    FIGURES,
    TABLES,
    category_lines,
    check_inputs,
    check_outputs,
    drawing,
    save_figure,
    size_line,
    working,
    write_frame,
)
from covalign.cli.table_options import TableOptions, flat

NOT_KEPT = "nothing was written (with -o, finished methods would be kept)"
HEADS = {
    "held_out_alignment": "held out",
    "alignment": "in sample",
    "coupling": "coupling",
    "variance": "variance",
    "total_variance": "total",
    "disentanglement": "D",
    "completeness": "C",
    "informativeness": "I",
    "sap": "SAP",
    "nsap": "nSAP",
    "seconds": "seconds",
}


@app.command()
@flat
def compare(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DATA COVARIATES", help="One table of features (.h5mu: all its views), and its covariates."
        ),
    ] = None,
    view: options.View = None,
    covariates: options.CovariatesFile = None,
    covariate: options.Covariate = None,
    *,
    tables: TableOptions,
    top_variable: options.TopVariable = None,
    n_factors: Annotated[
        int, option(METHOD, "INT", "Number of factors of every method.", "--n-factors", "-k", min=1)
    ] = 10,
    method: Annotated[
        list[str] | None,
        option(
            METHOD,
            "NAME",
            "Method or family of methods (iFA). Repeat the option for several. Default: all methods.",
            "--method",
            "-m",
        ),
    ] = None,
    list_methods: Annotated[bool, flag(METHOD, "List the methods and exit.", "--list")] = False,
    budget: Annotated[int, option(METHOD, "INT", "Maximum number of iterations of every method.", min=1)] = 2000,
    random_state: options.RandomState = 0,
    missing: Annotated[
        str | None,
        option(
            METHOD,
            "CHOICE",
            "Missing values: leave out incomplete samples (drop) or fill in means of features (mean). Default: stop.",
        ),
    ] = None,
    drop_first: options.DropFirst = True,
    folds: options.FoldsOrNone = 5,
    slow_folds: Annotated[int, option(METHOD, "INT", "Number of folds for SOFA, MOFA-FLEX and MuVI.", min=0)] = 0,
    skip_slow: Annotated[bool, flag(METHOD, "Leave out SOFA, MOFA-FLEX and MuVI.", "--skip-slow")] = False,
    timeout: Annotated[
        float | None,
        option(METHOD, "SECONDS", "Time limit of a fit by MOFA, SOFA, MOFA-FLEX or MuVI. Default: none.", min=0),
    ] = None,
    out: options.TableFile = None,
    figure: options.FigureFile = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Run all installed methods on your data: one table and one figure.

    The table is sorted by held-out alignment: corr(z_p, y_p) on samples left out of the fit, from features alone.

    With -o, finished methods are kept in the folder OUT.kept, and an interrupted command resumes from there.

    Other methods or other numbers of folds use that folder, too. Delete the folder to start again.

    Example: covalign compare --view rna=rna.csv --view protein=protein.csv --covariates clinic.csv --n-factors 10 --missing drop -o comparison.csv --figure comparison.png
    """  # noqa: E501  (a line to copy)
    if list_methods:
        return _list(as_json)
    with working(as_json, NOT_KEPT if out is None else RESUMES):
        data, table_file = _data_and_covariates(files or [], covariates)
        paths = named_paths(view, data)
        outputs = {"--out": (out, TABLES), "--figure": (figure, FIGURES)}
        check_outputs(outputs, [data, table_file, *paths.values()], force=force)
        views = reading_options.views_in(data, paths)
        reading = tables.reading(views, top_variable)
        check_inputs(data, *paths.values(), tables=[table_file])

        from covalign.cli.data_files import aligned_views, counted_groups
        from covalign.study import comparison as study
        from covalign.study import complete_cases as filling
        from covalign.study import contenders
        from covalign.tables.named_rows import Representation, loaded
        from covalign.tables.representations import SINGLE

        draw = None if figure is None else drawing("study.comparison_figure").comparison
        contenders.chosen(method, representation=True)  # a wrong name is found before any data are read
        opened = tables.open(data, paths, table_file, reading, covariate)
        X, Y = aligned_views(opened, tables.by_position, needed=False)
        held = {name: loaded(Representation(view, name), view.index) for name, view in X.items()}
        ready = filling.complete(held[SINGLE] if [*held] == [SINGLE] else held, Y, missing)
        n_groups = counted_groups(opened, ready.Y, tables.groups, held_out=folds + slow_folds > 0)
        table = study.compare(
            ready.views,
            ready.Y,
            n_factors,
            method,
            random_state=random_state,
            budget=budget,
            folds=folds,
            slow_folds=slow_folds,
            skip_slow=skip_slow,
            timeout=timeout,
            groups=tables.groups,
            drop_first=drop_first,
            keep=None if out is None else out.with_name(f"{out.name}.kept"),
        )
        categories, table.attrs = table.attrs["categories"], {}
        table["note"] = [in_flags(why) for why in table["note"]]
        made = _written(table, out, figure, draw)
    _answer(table, made, (len(ready.Y), n_groups), ready.said, categories, as_json)
    if (table["status"] == "failed").any():
        raise typer.Exit(FAILED)


def _list(as_json: bool) -> None:
    from covalign.study import contenders

    absent = {method.name: method.absent() for method in contenders.everything(representation=True)}
    facts = [{"method": name, "present": why is None, "reason": why} for name, why in absent.items()]
    rows = [(name, "present" if why is None else f"absent: {why}") for name, why in absent.items()]
    reply(as_json, facts, *plain([], rows, left=2))


def _data_and_covariates(files: list[Path], covariates: Path | None) -> tuple[Path | None, Path | None]:
    """The file of data and that of covariates; the second argument stands for --covariates."""
    if len(files) > 2 or (len(files) == 2 and covariates is not None):
        remedy = "write for example covalign compare Z.npy covariates.csv, or name several views with --view NAME=PATH"
        raise ValueError(message("One table and one file of covariates are needed", got=listed(files), remedy=remedy))
    return files[0] if files else None, files[1] if len(files) == 2 else covariates


def _written(table: Any, out: Path | None, figure: Path | None, draw: Any) -> list[str]:
    """Write the table and, if a method has numbers, the figure; the names of these files."""
    made = []
    if out is not None:
        write_frame(table, out)
        made.append(str(out))
    if draw is not None and figure is not None and table["alignment"].notna().any():
        save_figure(draw(table)[0], figure)
        made.append(str(figure))
    return made


def _answer(
    table: Any,
    files: list[str],
    size: tuple[int, int | None],
    said: str | None,
    categories: dict[str, Any],
    as_json: bool,
) -> None:
    """Print the table and its notes; print the methods without numbers, and why, to standard error."""
    shown = table[table["alignment"].notna()]
    missing = {
        status: dict(table.loc[table["status"] == status, ["method", "note"]].itertuples(index=False))
        for status in ("absent", "failed")
    }
    facts = {"samples": size[0], "groups": size[1], "gaps": said, "categories": categories}
    facts |= {"methods": shown.to_dict("records"), **missing}
    rounded = shown.assign(seconds=[f"{seconds:.3g}" if seconds == seconds else "-" for seconds in shown["seconds"]])
    lines = plain(["method", *HEADS.values()], rounded[["method", *HEADS]].to_numpy().tolist())
    done = shown[(shown["status"] == "done") & (shown["note"] != "")]
    reasons = done.groupby("note", sort=False)["method"].agg(", ".join)  # every reason once, with its methods
    lines += [f"{names}: {why}" for why, names in reasons.items()]
    lines += category_lines(categories)
    lines += [size_line(*size, called="samples")] if size[1] is not None else []
    reply(as_json, {**facts, "files": files}, *([said] if said else []), *lines)
    note_reasons(missing)
