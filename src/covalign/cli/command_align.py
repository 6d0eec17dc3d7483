"""align: transform a representation so that its dimensions correspond to covariates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from covalign._core.messages import message
from covalign.cli import option_values, options, shell_line
from covalign.cli.application import app, note, reply
from covalign.cli.options import METHOD, OUTPUT, Missing, Precision, Regime, flag, option
from covalign.cli.outputs import (
    ALIGNMENT,
    NUMBERS,
    PAGES,
    alignment_lines,
    category_lines,
    check_inputs,
    check_outputs,
    regime_line,
    size_line,
    working,
    write_aligned,
)
from covalign.cli.table_options import TableOptions, flat

if TYPE_CHECKING:
    from covalign.aligner.latent import LatentAligner


@app.command()
@flat
def align(
    ctx: typer.Context,
    z: options.Representation,
    covariates: options.CovariatesArgument = None,
    covariate: options.Covariate = None,
    confounder: options.Confounder = None,
    *,
    tables: TableOptions,
    regime: Annotated[Regime, option(METHOD, "REGIME", options.REGIME)] = Regime.tunable,
    lam: options.Lam = None,
    max_coupling: options.MaxCoupling = None,
    exact: options.Exact = False,
    weight: options.Weight = None,
    uncoupled: options.Uncoupled = None,
    shrinkage: options.Shrinkage = "auto",
    keep_rest: Annotated[
        bool, flag(METHOD, "Append the dimensions that are unrelated to all covariates.", "--keep-rest")
    ] = False,
    missing: options.MissingCovariates = Missing.pairs,
    drop_first: options.DropFirst = True,
    folds: options.Folds = 5,
    precision: Annotated[
        Precision,
        option(METHOD, "CHOICE", "Precision of sums: double, or single, which is faster for large float32 data."),
    ] = Precision.double,
    out: Annotated[
        Path | None, option(OUTPUT, "PATH", f"The aligned rows ({', '.join(NUMBERS)}).", "--out", "-o")
    ] = None,
    report_file: options.ReportFile = None,
    save: Annotated[Path | None, option(OUTPUT, "PATH", "The fitted aligner, for covalign transform.")] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Align the dimensions of a representation with covariates, one dimension for each covariate.

    Rows are matched by name if both files have names, otherwise by position.

    Example: covalign align Z.npy covariates.csv -o aligned.npy --lam 0.5 --report report.html
    """
    with working(as_json):
        outputs = {"--out": (out, NUMBERS), "--report": (report_file, PAGES), "--save": (save, ())}
        files = check_outputs(outputs, [z, covariates], force=force, needed=True)
        option_values.check_setting(regime, lam, max_coupling)
        limits = option_values.limits(exact, weight, uncoupled, max_coupling)
        if exact and (lam is not None or regime is not Regime.tunable):
            raise ValueError(message("--exact excludes --lam and --regime", remedy="Leave one of them out"))
        chosen = option_values.shrinkage_of(shrinkage)
        folds = option_values.checked_folds(folds)
        reading = tables.reading()
        check_inputs(z, tables=[covariates])

        from covalign.aligner.latent import LatentAligner
        from covalign.cli.data_files import aligned_rows, counted_groups, one_view, reading_of

        aligner = LatentAligner(
            regime.value,
            0.5 if lam is None else lam,
            chosen,
            keep_rest=keep_rest,
            folds=folds,
            drop_first=drop_first,
            missing=missing.value,
            precision=precision.value,
        )
        study = tables.open(one_view(z), {}, covariates, reading, covariate, confounder)
        rows, Y, names = aligned_rows(study, tables.by_position, needed=bool(confounder or tables.groups))
        counted_groups(study, Y, tables.groups)
        aligner.fit(rows.data, Y, confounders=confounder or None, groups=tables.groups)
        if limits:
            aligner = aligner.at(**limits)
        if out is not None:
            write_aligned(aligner, rows.data, Y[confounder] if confounder else None, out, names, force=force)
        aligner._reading = reading_of(study, reading, [*study.views], index=tables.index, key=tables.key)
        if save is not None:
            aligner.save(save)
        if report_file is not None:
            from covalign.show import report

            title = f"{z.name} aligned with {Path(study.where).name}"
            report.write(aligner, report_file, title=title, command=shell_line.refit(ctx), overwrite=force)
        answer(aligner, files, as_json)
    if not as_json:
        following = shell_line.line("transform", save, "NEW", "-o", "OUT")
        note(f"next: {shell_line.again(ctx, 'frontier') if save is None else following}")


def answer(aligner: LatentAligner, files: list[str], as_json: bool) -> None:
    """Print the alignment of every covariate, and the coupling."""
    from covalign.closed_form.regimes import SCALED

    summary = aligner.summary()
    categories = summary.attrs["categories"]
    facts = {
        **{"regime": aligner.regime_, "lam": aligner.lam_, "coupling": aligner.coupling_},
        **({"gap": aligner.gap_} if aligner.regime_ == "exact" else {}),
        **{"shrinkage": aligner.shrinkage_, "scale": aligner.scale_},
        **{"rows": aligner.n_rows_, "groups": aligner.n_groups_},
        **{"dimensions": aligner.n_features_in_, "confounders": aligner.confounder_names_},
        "categories": categories,
        "alignment": summary[[*ALIGNMENT, "rows"]].to_dict("index"),
        **{"mean": aligner.mean_alignment_[list(ALIGNMENT)].to_dict(), "files": files},
    }
    setting = f"{regime_line(aligner)}, shrinkage {aligner.shrinkage_:.3g}{SCALED[aligner.scale_]}"
    size = size_line(aligner.n_rows_, aligner.n_groups_, f"{aligner.n_features_in_} dimensions")
    reply(as_json, facts, *alignment_lines(aligner, None, summary), *category_lines(categories), setting, size, *files)
