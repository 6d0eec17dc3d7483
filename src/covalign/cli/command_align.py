"""align: a representation whose dimensions stand for covariates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from covalign._core import validation as errors
from covalign.aligner.latent import LatentAligner
from covalign.cli import options
from covalign.cli.application import Force, Json, app, note, say, say_json
from covalign.cli.data_files import Representation, matched, names_for, open_pair
from covalign.cli.options import METHOD, RESULTS, Missing, Regime
from covalign.cli.outputs import (
    NUMBERS,
    PAGES,
    check_outputs,
    check_suffix,
    frame_of,
    is_table,
    lines_of,
    no_remains,
    working,
    write_frame,
)
from covalign.closed_form import regimes
from covalign.show import report


@app.command()
def align(
    z: Annotated[
        Path,
        typer.Argument(
            metavar="Z",
            help="The representation: .npy, .npz, .zarr, .parquet, .h5ad, .csv or .tsv.",
            show_default=False,
        ),
    ],
    covariates: Annotated[
        Path | None,
        typer.Argument(
            metavar="COVARIATES",
            help="A table: .csv, .tsv, .parquet, .h5ad, .h5mu, .npy, .npz (columns of Z; obs of an .h5ad).",
        ),
    ] = None,
    covariate: options.Covariate = None,
    confounder: options.Confounder = None,
    index: options.Index = None,
    by_position: options.ByPosition = False,
    key: options.Key = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help=f"The aligned rows: {', '.join(NUMBERS)}.", rich_help_panel=RESULTS),
    ] = None,
    report_file: options.ReportFile = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="The fitted aligner, for transform.", rich_help_panel=RESULTS)
    ] = None,
    regime: Annotated[
        Regime | None, typer.Option("--regime", help="What is asked of dimensions (tunable).", rich_help_panel=METHOD)
    ] = None,
    lam: options.Lam = None,
    max_coupling: Annotated[
        float | None,
        typer.Option(
            "--max-coupling", help="The largest lambda whose coupling stays within this.", rich_help_panel=METHOD
        ),
    ] = None,
    shrinkage: options.Shrinkage = "auto",
    keep_rest: Annotated[
        bool, typer.Option("--keep-rest", help="Append the rest of the space.", rich_help_panel=METHOD)
    ] = False,
    missing: options.Gaps = Missing.pairs,
    folds: options.Folds = 5,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Turn a representation so that each dimension stands for one covariate.

    Rows are matched by name where both files have names, else by position.

    Example: covalign align Z.npy covariates.csv -o aligned.npy --lam 0.5 --report report.html
    """
    with working(as_json):
        outputs = {"--out": out, "--report": report_file, "--save": save}
        if not any(outputs.values()):
            raise errors.nothing_asked(list(outputs))
        check_suffix("--out", out, NUMBERS)
        check_suffix("--report", report_file, PAGES)
        check_outputs(outputs, [z, covariates], force=force)
        chosen = check_setting(regime, lam, max_coupling)
        weight = errors.check_auto("--shrinkage", shrinkage, float)
        aligner = LatentAligner(chosen, 0.5 if lam is None else lam, weight, keep_rest=keep_rest, folds=folds)
        aligner.set_params(missing=missing.value)
        given: dict[str, Any] = {"-c": covariate, "--confounder": confounder, "--index": index}
        given |= {"--by-position": by_position, "--key": key}
        settings = {"--missing": missing.value, "--folds": folds, "--shrinkage": shrinkage}
        rows, table, where, together = open_pair(z, covariates, covariate, confounder, index, key)
        positions = by_position or together
        Y = matched(rows, table, where, by_position=positions, needed=bool(confounder))
        aligner.fit(rows.data, Y, confounders=confounder or None)
        if max_coupling is not None:
            aligner = aligner.at(max_coupling=max_coupling)
        if out is not None:
            C = Y[confounder] if confounder else None
            write_transformed(aligner, rows, C, out, names_for(rows, table), force)
        if save is not None:
            aligner.save(save)
        if report_file is not None:
            again = options.command("align", [z, covariates], {**given, **settings})
            title = f"{z.name} aligned with {Path(where).name}"
            report.write(aligner, report_file, title=title, command=again, overwrite=force)
        answer(aligner, [str(path) for path in outputs.values() if path is not None], as_json)
    if not as_json and save is not None:
        note(f"next: {options.command('transform', [save, 'NEW'], {'-o': 'OUT'})}")
    elif not as_json:
        note(f"next: {options.command('frontier', [z, covariates], given)}")


def check_setting(regime: Regime | None, lam: float | None, max_coupling: float | None) -> str:
    """The regime; lambda belongs to the tunable one. What is out of range is refused before anything is read."""
    if lam is not None and max_coupling is not None:
        raise errors.lam_and_coupling()
    if lam is not None:
        errors.check_lam(lam)
    if max_coupling is not None:
        errors.check_max_coupling(max_coupling)
    for option, value in (("--lam", lam), ("--max-coupling", max_coupling)):
        if value is not None and regime not in (None, Regime.tunable):
            raise errors.regime_and(option, str(regime))
    return "tunable" if regime is None else regime.value


def write_transformed(
    aligner: LatentAligner, rows: Representation, C: pd.DataFrame | None, out: Path, names: pd.Index | None, force: bool
) -> None:
    """Streamed into arrays; tables, which have a place for names of rows, are made in memory."""
    if is_table(out) or (isinstance(rows.data, pd.DataFrame) and out.suffix.lower() == ".parquet"):
        values = aligner.transform(rows.data, confounders=C)
        write_frame(frame_of(values, names, aligner.get_feature_names_out()), out)
    else:
        with no_remains(out):
            aligner.transform(rows.data, confounders=C, out=out, overwrite=force)


def answer(aligner: LatentAligner, files: list[str], as_json: bool) -> None:
    """How well each covariate is aligned, at which price."""
    summary, mean, setting = aligner.summary(), aligner.mean_alignment_, described(aligner)
    shown = ["in_sample", "held_out", "low", "high"]
    if as_json:
        per_covariate = {name: {**row[shown].to_dict(), "rows": int(row["rows"])} for name, row in summary.iterrows()}
        say_json({**setting, "alignment": per_covariate, "mean": mean[shown].to_dict(), "files": files})
        return
    lines = [(str(name), *row[shown]) for name, row in summary.iterrows()]
    lines += [("mean", *mean[shown])] if len(lines) > 1 else []
    header = ["covariate", "in sample", "held out", "90 % from", "to"]
    for line in lines_of(header, lines):
        say(line)
    lam = "" if setting["lam"] is None else f", lambda {setting['lam']:.3g}"
    say(f"{setting['regime']}{lam}, coupling {setting['coupling']:.3f}, shrinkage {setting['shrinkage']:.3g}")
    say(f"{setting['rows']} rows, {setting['dimensions']} dimensions")
    for file in files:
        say(file)


def described(aligner: LatentAligner) -> dict[str, Any]:
    """The setting and what it costs."""
    lam = None if aligner.regime == "exclusive" else float(regimes.ENDS.get(aligner.regime, aligner.lam))
    return {
        **{"regime": aligner.regime, "lam": lam, "coupling": float(aligner.coupling_)},
        **{"shrinkage": float(aligner.shrinkage_), "rows": aligner.n_rows_, "dimensions": aligner.n_features_in_},
        "confounders": list(aligner.confounder_names_),
    }
