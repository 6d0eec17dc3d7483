"""check: read everything that fit would read, fit nothing, and say what was understood."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covalign._core.messages import listed
from covalign._core.text_tables import plain
from covalign.cli import options, reading_options, shell_line
from covalign.cli.application import app, in_flags, note, reply
from covalign.cli.option_values import named_paths
from covalign.cli.options import Match
from covalign.cli.outputs import check_inputs, working
from covalign.cli.reading_options import Reading
from covalign.cli.table_options import TableOptions, flat

if TYPE_CHECKING:
    from covalign.tables.representations import Study

MANY_FEATURES, FACTORS = 2000, 10
WRITTEN = ("-o", "model.covalign", "--report", "report.html")  # by the suggested command


@app.command()
@flat
def check(
    ctx: typer.Context,
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="One view, or several (.h5mu), as in covalign fit; or a folder of tables."),
    ] = None,
    view: options.View = None,
    covariates: options.CovariatesFile = None,
    covariate: options.Covariate = None,
    confounder: options.Confounder = None,
    *,
    tables: TableOptions,
    top_variable: options.TopVariable = None,
    as_json: options.Json = False,
) -> None:
    """Read views and covariates, fit nothing, and say what was understood: a page and a command line for fit.

    If names of rows do not match, check tries --match prefix and --match first, too. In a folder of tables, check finds
    out which are views and which has the covariates.

    Example: covalign check --view rna=rna.csv --view protein=protein.csv --covariates clinic.csv
    """
    with working(as_json):
        paths = named_paths(view, data)
        check_inputs(data, *paths.values(), tables=[covariates])
        sets: Path | None = None
        if data is not None and data.is_dir():
            data, paths, covariates, sets = files_in(ctx, data, covariates)
        views = reading_options.views_in(data, paths)
        reading = tables.reading(views, top_variable)

        from covalign.cli.data_files import aligned_views
        from covalign.tables import overview
        from covalign.tables.groups import owners_in
        from covalign.tables.survival import likely_survival
        from covalign.tables.table_columns import with_gaps

        def opened(asked: Reading) -> Study:
            return tables.open(data, paths, covariates, asked, covariate, confounder)

        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            study, reading = marked(opened, reading)
        gaps = [
            *reading.na[len(tables.na or ()) :],
            *(text for text in overview.marks(study.table) if text not in reading.na),
        ]
        study = study._replace(table=with_gaps(study.table, gaps))
        _, Y = aligned_views(study, tables.by_position, needed=False)
        samples = None if tables.by_position or study.together else study.table.index
        found = {name: overview.of_view(one, samples) for name, one in study.views.items()}
        known = {str(name): overview.of_column(str(name), Y[name]) for name in Y.columns}
        known = {name: {**facts, "why": facts["why"] and in_flags(facts["why"])} for name, facts in known.items()}
        survival = None if covariate else likely_survival(known, Y)
        likely = None
        if tables.groups is None:
            likely = owners_in(Y) if study.likely is None else study.likely[0]
        grouped = [name for name in (tables.groups, likely) if name is not None and name not in (covariate or ())]
        chosen = usable(known, [*(confounder or []), *grouped, *(survival or ())])
        if likely in grouped and likely in known:
            ctx.params["groups"] = likely
        words = [word for text in gaps for word in ("--na", text)]
        words += suggested(found, known, chosen, reading, data is not None)
        again = shell_line.again(ctx, "fit", without=("covariate", "match"))
        tested = [] if sets is None else ["--sets", str(sets)]
        facts = {
            **{"samples": len(Y), "views": found, "covariates": known},
            "notes": [in_flags(one.message) for one in said],
            "likely_groups": likely,
            **{"marks_of_gaps": gaps, "survival": survival, "table": study.where},
            "command": " ".join([again, shell_line.line(*words, *tested, *WRITTEN).removeprefix("covalign").strip()]),
        }
        reply(as_json, facts, *page(facts))


def files_in(
    ctx: typer.Context, folder: Path, covariates: Path | None
) -> tuple[Path | None, dict[str, Path], Path | None, Path | None]:
    """Data, views, covariates and gene sets: those in a folder of tables, or the folder itself if it is a view.

    The suggested command has the files, not the folder.
    """
    from covalign.tables.study_folder import is_study_folder, study_in

    if covariates is not None or not is_study_folder(folder):
        return folder, {}, covariates, None
    found = study_in(folder)
    for name, why in found.unused.items():
        note(f"note: {name} is not used: {why}")
    views = [f"{name}={path}" for name, path in found.views.items()]
    ctx.params.update(data=None, view=views, covariates=found.covariates)
    return None, found.views, found.covariates, found.sets


def marked(opened: Any, reading: Reading) -> tuple[Study, Reading]:
    """``first_that_opens``; texts among the numbers of views that seem to mark gaps are taken for such."""
    from covalign.tables.overview import is_mark_among_numbers
    from covalign.tables.table_columns import OddCellError

    while True:
        try:
            return first_that_opens(opened, reading)
        except OddCellError as error:
            if error.text in reading.na or not is_mark_among_numbers(error.text):
                raise
            reading = reading._replace(na=[*reading.na, error.text])


def first_that_opens(opened: Any, reading: Reading) -> tuple[Study, Reading]:
    """The study with the first rule for names that works; the error is that of the rule that was asked for."""
    try:
        return opened(reading), reading
    except ValueError:
        if reading.match != Match.exact.value:
            raise
        for match in (Match.prefix, Match.first):
            other = reading._replace(match=match.value)
            try:
                return opened(other), other
            except ValueError:
                continue
        raise


def usable(known: dict[str, Any], others: list[str]) -> list[str]:
    """Names of columns that can be covariates."""
    from covalign.tables.overview import UNUSABLE

    return [name for name, facts in known.items() if facts["kind"] not in UNUSABLE and name not in others]


def suggested(
    found: dict[str, Any], known: dict[str, Any], chosen: list[str], reading: Reading, single: bool
) -> list[str]:
    """Options of fit that follow from what was found, besides those that were given."""
    words: list[str] = []
    if reading.match != Match.exact.value:
        words += ["--match", reading.match]
    for name, facts in found.items():
        view = "all" if single and len(found) == 1 else name
        if facts["counts"]:
            words += ["--log", view]
        if facts["features"] > MANY_FEATURES and not reading.top_variable:
            words += ["--top-variable", f"{MANY_FEATURES}" if view == "all" else f"{view}={MANY_FEATURES}"]
    for name in chosen:
        words += ["-c", name]
        order = known[name]["order"]
        if order is not None and name not in reading.ordered:
            words += ["--ordered", f"{name}={'<'.join(order)}"]
    columns = sum(1 if known[name]["order"] else known[name]["columns"] for name in chosen)
    return [*words, *(["--n-factors", str(columns + 5)] if columns + 2 > FACTORS else [])]


def page(facts: dict[str, Any]) -> list[str]:
    """What was understood, for readers."""
    from covalign.tables.overview import same_but_for_capitals

    lines = [f"{facts['samples']} samples", ""]
    head = ["view", "samples", "with covariates", "features", "gaps", "numbers"]
    rows = [
        [name, v["samples"], v["in_common"], v["features"], f"{v['gaps']:.1%}", "counts" if v["counts"] else "measured"]
        for name, v in facts["views"].items()
    ]
    lines += [*plain(head, rows), ""]
    columns = [
        [name, c["kind"], c["gaps"], c["why"] or ", ".join((c["levels"] or [])[:6])]
        for name, c in facts["covariates"].items()
    ]
    lines += [*plain(["column", "kind", "gaps", "levels or problem"], columns, left=2, text=True), ""]
    for name, v in facts["views"].items():
        if v["outlying"]:
            lines.append(f"{name}: samples far from all others: {listed(v['outlying'])}")
        if v["empty_features"]:
            lines.append(f"{name}: {v['empty_features']} features have no value at all: fit refuses them")
    lines += [f"note: {note}" for note in facts["notes"]]
    if facts["marks_of_gaps"]:
        lines.append(f"These texts are read as missing values: {listed(facts['marks_of_gaps'])} (--na).")
    for name, c in facts["covariates"].items():
        alike = same_but_for_capitals(c["levels"] or [])
        if alike:
            lines.append(f"{name}: the levels {listed(alike)} differ in capitals or blanks only. Are they the same?")
    if facts["survival"] is not None:
        time, event = facts["survival"]
        later = shell_line.line("associations", WRITTEN[1], facts["table"], "--survival", f"{time},{event}")
        lines.append(f"{time!r} and {event!r} look like survival, which cannot be a covariate. After fit: {later}")
    if facts["likely_groups"] is not None:
        lines.append(f"Rows may belong together: --groups {facts['likely_groups']} holds them out together.")
    return [*lines, "", "Suggested command:", facts["command"]]
