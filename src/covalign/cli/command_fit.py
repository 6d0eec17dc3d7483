"""fit: informed factor analysis of one view or several."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from covalign._core.column_names import apart
from covalign._core.messages import listed, message
from covalign._core.text_tables import plain
from covalign.cli import option_values, options, reading_options, shell_line
from covalign.cli.application import app, in_flags, note, reply
from covalign.cli.option_values import named_paths
from covalign.cli.options import DATA, METHOD, OUTPUT, Noise, Posterior, Regime, option
from covalign.cli.outputs import (
    ALIGNMENT,
    MODELS,
    NUMBERS,
    PAGES,
    TABLES,
    alignment_lines,
    category_lines,
    check_inputs,
    check_outputs,
    enrichment_notes,
    filled_folder,
    frame_of,
    informed_lines,
    regime_line,
    size_line,
    verdicts_by_name,
    working,
    write_frame,
)
from covalign.cli.table_options import TableOptions, flat
from covalign.exceptions import CannotHoldOutError

if TYPE_CHECKING:
    import pandas as pd

    from covalign.factor.informed import InformedFactorAnalysis
    from covalign.tables.named_rows import Representation


class Outputs(NamedTuple):
    """The files that the command writes; None where one is not wanted."""

    model: Path | None
    factors: Path | None
    loadings: Path | None
    mofa: Path | None
    sets: Path | None
    report: Path | None

    def by_flag(self) -> dict[str, tuple[Path | None, Sequence[str]]]:
        """Flag -> its file, and the suffixes that the file may have."""
        tables = TABLES if self.loadings is not None and self.loadings.suffix else ()
        return {
            "--out": (self.model, ()),
            "--factors-out": (self.factors, NUMBERS),
            "--loadings-out": (self.loadings, tables),
            "--mofa-out": (self.mofa, MODELS),
            "--sets-out": (self.sets, TABLES),
            "--report": (self.report, PAGES),
        }

    def write(self, model: InformedFactorAnalysis, samples: pd.Index) -> None:
        """Write all but gene sets and report, the model last: once the model exists, the others do."""
        import pandas as pd

        if self.factors is not None:
            index = None if isinstance(samples, pd.RangeIndex) else samples
            write_frame(frame_of(model.factors_, index, model.factor_names_), self.factors)
        if self.loadings is not None:
            write_loadings(loading_frames(model), self.loadings)
        if self.mofa is not None:
            model.to_mofa(self.mofa)
        if self.model is not None:
            model.save(self.model)


@app.command()
@flat
def fit(
    ctx: typer.Context,
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="One view (.csv, .tsv, .parquet, .npy, .npz, .zarr, .h5ad, .mtx, a folder or .h5 of Cell "
            "Ranger), or several (.h5mu).",
        ),
    ] = None,
    view: options.View = None,
    covariates: options.CovariatesFile = None,
    covariate: options.Covariate = None,
    confounder: options.Confounder = None,
    *,
    tables: TableOptions,
    top_variable: options.TopVariable = None,
    no_scale: Annotated[
        list[str] | None,
        option(DATA, "VIEW", "View whose features keep their scale, or all. Default: every feature has variance 1."),
    ] = None,
    sets: Annotated[
        Path | None,
        option(DATA, "PATH", "File of gene sets (.gmt or .gmt.gz) to test on the factors, for the report.", "--sets"),
    ] = None,
    n_factors: Annotated[str, option(METHOD, "INT", "Number of factors, informed and free, or auto.")] = "10",
    regime: Annotated[
        Regime | None, option(METHOD, "REGIME", f"{options.REGIME} Default: the factors stay as fitted.")
    ] = None,
    lam: options.Lam = None,
    max_coupling: options.MaxCoupling = None,
    supervision: Annotated[
        str,
        option(
            METHOD,
            "NUMBER",
            "How often covariates count against features: 1 (the paper's model) or more. auto: left-out rows decide.",
        ),
    ] = "auto",
    regression_share: Annotated[
        str,
        option(
            METHOD,
            "NUMBER",
            "Share of ridge regression on all features in the factors of samples without covariates, 0 to 1. 0: the "
            "model alone. auto: left-out rows decide.",
        ),
    ] = "auto",
    noise: Annotated[
        Noise,
        option(
            METHOD,
            "CHOICE",
            "Noise of features: gaussian, or student, which gives less weight to samples far from all others.",
        ),
    ] = Noise.gaussian,
    posterior: Annotated[
        Posterior, option(METHOD, "CHOICE", "Family of the posterior: full, mean_field, or coordinates.")
    ] = Posterior.full,
    max_iter: Annotated[int, option(METHOD, "INT", "Maximum number of sweeps.")] = 2000,
    n_init: Annotated[
        int, option(METHOD, "INT", "Number of starts. The first is deterministic, the others are random.")
    ] = 1,
    random_state: options.RandomState = 0,
    drop_first: options.DropFirst = True,
    folds: options.FoldsOrNone = 5,
    out: Annotated[
        Path | None, option(OUTPUT, "PATH", "The fitted model, for covalign transform.", "--out", "-o")
    ] = None,
    factors_out: Annotated[
        Path | None, option(OUTPUT, "PATH", f"The factors of the samples ({', '.join(NUMBERS)}).")
    ] = None,
    loadings_out: Annotated[
        Path | None,
        option(
            OUTPUT,
            "PATH",
            f"The loadings: one file ({', '.join(TABLES)}), or a folder with a .csv file for every view.",
        ),
    ] = None,
    mofa_out: Annotated[
        Path | None, option(OUTPUT, "PATH", f"The model as a file of MOFA2, for mofax and R ({', '.join(MODELS)}).")
    ] = None,
    sets_out: Annotated[
        Path | None,
        option(OUTPUT, "PATH", f"The tests of --sets ({', '.join(TABLES)}). Default: REPORT_sets.csv."),
    ] = None,
    report_file: options.ReportFile = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Fit informed factor analysis: the first factors correspond to covariates, the others are free.

    Samples are matched by name across views and covariates. Views, features and covariates may be missing.

    Example: covalign fit --view rna=rna.csv --view protein=protein.csv --covariates clinic.csv -o ifa.covalign
    """
    with working(as_json):
        sets_out = sets_file(sets, sets_out, report_file)
        made = Outputs(out, factors_out, loadings_out, mofa_out, sets_out, report_file)
        paths = named_paths(view, data)
        files = check_outputs(made.by_flag(), [data, covariates, sets, *paths.values()], force=force, needed=True)
        option_values.check_setting(regime, lam, max_coupling)
        views = reading_options.views_in(data, paths)
        reading = tables.reading(views, top_variable)
        reading_options.check_views("--no-scale", no_scale or (), views)
        folds, strength = option_values.checked_folds(folds), option_values.supervision_of(supervision)
        share = option_values.regression_share_of(regression_share)
        number = option_values.auto_or(int, "--n-factors", n_factors)
        check_inputs(data, *paths.values(), tables=[covariates])

        from sklearn.exceptions import ConvergenceWarning

        from covalign.cli.data_files import aligned_views, counted_groups, reading_of
        from covalign.factor.informed import InformedFactorAnalysis
        from covalign.tables.representations import SINGLE

        warnings.simplefilter("always", ConvergenceWarning)
        model = InformedFactorAnalysis(
            number,
            posterior.value,
            max_iter=max_iter,
            random_state=random_state,
            n_init=n_init,
            folds=folds,
            drop_first=drop_first,
            supervision=strength,
            regression_share=share,
            noise=noise.value,
        )
        model._check_parameters()
        study = tables.open(data, paths, covariates, reading, covariate, confounder)
        X, Y = aligned_views(study, tables.by_position, needed=bool(confounder or tables.groups))
        genes = None if sets is None else checked_sets(sets, study.views)
        model.set_params(scale=scales([*X], no_scale or ()))
        counted_groups(study, Y, tables.groups, held_out=folds > 0)
        model.fit(X[SINGLE] if [*X] == [SINGLE] else X, Y, confounders=confounder or None, groups=tables.groups)
        model._reading = reading_of(study, reading, [*X], index=tables.index, key=tables.key)
        converged, model = bool(model.converged_), moved(model, regime, lam, max_coupling)
        judged = checked_folds(model)  # the file has its verdicts
        if genes is not None and sets_out is not None:
            write_sets(model, genes, sets_out)
        made.write(model, Y.index)
        if report_file is not None:
            source = ", ".join(paths) if data is None else data.name
            write_report(judged, report_file, source, shell_line.refit(ctx), genes, force)
        answer(judged, converged and bool(model.converged_), len(Y), files, as_json)
    if not as_json and out is not None:
        following(out, [*paths], report_file is None or sets is None)


def following(model: Path, views: Sequence[str], findings: bool) -> None:
    """Say what can be done with the file of the model; ``findings`` says that it has no report with gene sets yet."""
    if findings:
        note(f"next: {shell_line.line('report', model, '--sets', 'GENE_SETS.gmt', '-o', 'findings.html')}")
    note(f"next: {shell_line.line('features', model, '-o', 'features.csv')}")
    new = ["NEW"] if not views else ["--view", f"{views[0]}=NEW"]
    note(f"next: {shell_line.line('transform', model, *new, '-o', 'OUT')}")


def sets_file(sets: Path | None, out: Path | None, report: Path | None) -> Path | None:
    """Where the tests of gene sets go: by default beside the report."""
    if sets is None:
        if out is not None:
            raise ValueError(message("--sets-out needs gene sets", remedy="Name a GMT file with --sets"))
        return None
    if out is None and report is None:
        raise ValueError(message("--sets needs an output", remedy="Give one with --report or --sets-out"))
    return report.with_name(f"{report.stem}_sets.csv") if out is None and report is not None else out


def checked_sets(path: Path, views: Mapping[str, Representation]) -> dict[str, list[str]]:
    """The gene sets of a file, if some of them can be tested on the features of the views."""
    from covalign.factor.enrichment import usable_sets
    from covalign.tables.gene_sets import gene_sets

    sets = gene_sets(path)
    features = {name: view.features for name, view in views.items()}
    usable_sets(sets, {name: [] if names is None else list(names) for name, names in features.items()})
    return sets


def scales(views: Iterable[str], unscaled: Sequence[str]) -> bool | dict[str, bool]:
    """``scale`` of the model: whether the features of a view, or of all, are scaled."""
    if not unscaled or "all" in unscaled:
        return not unscaled
    return {name: name not in unscaled for name in views}


def moved(
    model: InformedFactorAnalysis, regime: Regime | None, lam: float | None, max_coupling: float | None
) -> InformedFactorAnalysis:
    """The model in the regime that was asked for, if any; lambda alone means tunable, tunable alone means 0.5."""
    if regime is None and lam is None and max_coupling is None:
        return model
    if max_coupling is not None:
        return model.at(max_coupling=max_coupling)
    return model.at(0.5 if lam is None else lam) if regime in (None, Regime.tunable) else model.at(regime=str(regime))


def checked_folds(model: InformedFactorAnalysis) -> InformedFactorAnalysis:
    """The model; without folds, and with a note, if nothing can be held out."""
    try:
        model._judged()
    except CannotHoldOutError as why:
        note(f"nothing is held out: {in_flags(why)}")
        without: InformedFactorAnalysis = copy(model).set_params(folds=0)
        return without
    return model


def write_sets(model: InformedFactorAnalysis, genes: Mapping[str, Sequence[str]], path: Path) -> None:
    """Write the tests of gene sets, and say what was left out."""
    tested = model.enrichment(genes)
    enrichment_notes(tested.attrs)
    tested.attrs = {}
    write_frame(tested, path)


def write_report(
    model: InformedFactorAnalysis,
    path: Path,
    source: str,
    command: str,
    genes: Mapping[str, Sequence[str]] | None,
    force: bool,
) -> None:
    """Write the interactive report."""
    from covalign.show import report

    title = f"Informed factors of {source}"
    report.write(model, path, title=title, command=command, gene_sets=genes, overwrite=force)


def loading_frames(model: InformedFactorAnalysis) -> dict[str, pd.DataFrame]:
    """Loadings (features x factors) of every view."""
    import pandas as pd

    return {
        name: frame_of(values, pd.Index(model._table.views[name].names, name="feature"), model.factor_names_)
        for name, values in model.loadings_.items()
    }


def write_loadings(frames: dict[str, pd.DataFrame], path: Path) -> None:
    """Write one table whose first columns are view and feature, or a folder with a table for every view."""
    if path.suffix:
        import pandas as pd

        factors = next(iter(frames.values())).columns
        keys = [apart(key, factors) for key in ("view", "feature")]
        parts = [frame.rename_axis(keys[1]).reset_index() for frame in frames.values()]
        for name, part in zip(frames, parts, strict=True):
            part.insert(0, keys[0], name)
        write_frame(pd.concat(parts, ignore_index=True), path)
        return
    files: dict[str, list[str]] = {}
    for name in frames:
        files.setdefault(re.sub(r"[^\w.-]+", "_", name).lstrip(".") + ".csv", []).append(name)
    for file, names in files.items():
        if len(names) > 1:
            remedy = "Rename one of them, or give --loadings-out the name of one file"
            raise ValueError(message(f"The views {listed(names)} would share the file {file!r}", remedy=remedy))
    with filled_folder(path) as folder:
        for file, (name,) in files.items():
            write_frame(frames[name], folder / file)


def supervision_line(model: InformedFactorAnalysis) -> str:
    """The supervision and the share of the regression in use, and who chose them."""
    weight = f"supervision {model.supervision_:g}{' (auto)' if model.supervision == 'auto' else ''}"
    chosen = " (auto)" if model.regression_share == "auto" else ""
    return f"{weight}, share of the regression on all features {model.regression_share_:g}{chosen}"


def answer(model: InformedFactorAnalysis, converged: bool, samples: int, files: list[str], as_json: bool) -> None:
    """Print the alignment of every covariate, the variance explained, and whether the fit converged."""
    import numpy as np

    summary, shares, total = model.summary(), model.variance_explained(), model.total_variance_explained()
    informed = model.informed_
    active = int(model.active_factors_.sum())
    facts = {
        **{"regime": model.regime_, "lam": model.lam_, "coupling": model.coupling_},
        "alignment": summary["in_sample"].to_dict(),
        "mean": model.mean_alignment_[list(ALIGNMENT)].to_dict(),
        "categories": summary.attrs["categories"],
        "held_out": summary[["held_out", "low", "high"]].to_dict("index"),
        "beta": dict(zip(summary.index, model.beta_, strict=True)),
        "informed": informed.to_dict("index"),
        **{"supervision": model.supervision_, "regression_share": model.regression_share_},
        "variance_explained": {n: {"total": total[n], "factors": shares.loc[n].to_dict()} for n in shares.index},
        **{"factors": model.n_factors_, "factor_names": model.factor_names_},
        "active": np.array(model.factor_names_)[model.active_factors_],
        **{"confounders": model.confounder_names_, "samples": samples, "groups": model.n_groups_},
        **{"converged": converged, "sweeps": model.n_iter_, "bound": model.elbo_[-1], "files": files},
    }
    reply(
        as_json,
        facts,
        *alignment_lines(model, verdicts_by_name(informed), **{"fitted beta": model.beta_}),
        *informed_lines(informed),
        *category_lines(summary.attrs["categories"]),
        *plain(["view", "variance explained"], total.items()),
        regime_line(model),
        size_line(samples, model.n_groups_, f"{model.n_factors_} factors ({active} active)", called="samples"),
        supervision_line(model),
        f"{'converged' if converged else 'not converged'} after {model.n_iter_} sweeps, bound {model.elbo_[-1]:.2f}",
        *files,
    )
