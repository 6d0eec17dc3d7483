"""info: describe a saved model."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covalign._core.text_tables import plain
from covalign.cli import options, reading_options
from covalign.cli.application import answering, app, reply
from covalign.cli.outputs import INFORMED, check_inputs

if TYPE_CHECKING:
    from covalign.aligner.latent import LatentAligner
    from covalign.factor import InformedFactorAnalysis
    from covalign.tables.covariates import Encoding


@app.command()
def info(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that align --save, fit -o or save() wrote.")],
    as_json: options.Json = False,
) -> None:
    """Describe a saved model: its data, parameters and regime, and its alignment in sample and held out.

    Example: covalign info model.covalign
    """
    with answering("nothing was changed", as_json=as_json):
        check_inputs(model=model)
        found = facts(model)
        reply(as_json, found, page(found))


# -- facts ------------------------------------------------------------------------------------------------------------


def facts(path: Path) -> dict[str, Any]:
    """The facts about the file of a model."""
    from covalign.aligner.latent import LatentAligner
    from covalign.persist.reader import opened

    meta, model = opened(path)
    head = {
        "file": str(path),
        "kind": meta["kind"],
        "bytes": path.stat().st_size,
        "covalign": meta.get("covalign"),
        "parameters": model.get_params(),
        "reading": model._reading or None,
    }
    return head | (_of_aligner(model) if isinstance(model, LatentAligner) else _of_factors(model, meta))


def _of_aligner(model: LatentAligner) -> dict[str, Any]:
    coding = model._coding
    known = {
        "rows": model.n_rows_,
        "groups": model.n_groups_,
        "dimensions": model.n_features_in_,
        "named_dimensions": hasattr(model, "feature_names_in_"),
        "covariates": _coded(coding.covariates),
        "confounders": _coded(coding.confounders),
    }
    try:
        solution = model._solution
    except ValueError as why:  # partial_fit may not have had enough rows yet
        return {**known, "unsolved": str(why)}
    return {
        **known,
        "regime": solution.regime,
        "lam": solution.lam if solution.regime == "tunable" else None,
        "shrinkage": solution.shrinkage,
        "scale": solution.scale,
        "shrinkage_was": "fixed" if solution.path is None else "cross-validated",
        "rest_dimensions": len(solution.rest),
        "coupling": model.coupling_,
        "alignment": model.summary().reset_index(names="covariate").to_dict("records"),
        "mean_alignment": model.mean_alignment_.to_dict(),
    }


def _of_factors(model: InformedFactorAnalysis, meta: dict[str, Any]) -> dict[str, Any]:
    import numpy as np
    import pandas as pd

    table = model._table
    explained = model.total_variance_explained()
    beta = dict(zip(model.covariate_names_, model.beta_, strict=True))
    known = model if model._shows_held_out() else copy(model).set_params(folds=0)  # nothing is fitted here
    measured: dict[str, Any] = {"alignment": [{"covariate": name, "beta": float(beta[name])} for name in beta]}
    # With missing values, alignment needs the rows, and rows that were read in chunks are not in the file.
    with suppress(ValueError):
        summary = known.summary().rename(columns={"in_sample": "alignment"})
        summary.insert(0, "beta", pd.Series(beta))
        measured = {
            "coupling": known.coupling_,
            "alignment": summary.reset_index(names="covariate").to_dict("records"),
            "mean_alignment": known.mean_alignment_.rename({"in_sample": "alignment"}).to_dict(),
        }
    return {
        "rows": model._problem.n,
        "groups": model.n_groups_,
        "views": {
            name: {"features": len(view.mean), "variance_explained": float(explained[name])}
            for name, view in table.views.items()
        },
        "covariates": _coded(table.encoding),
        "confounders": _coded(table.nuisance.coding.confounders),
        "regime": model.regime_,
        "lam": model.lam_,
        "supervision": model.supervision_,
        "regression_share": model.regression_share_,
        "factors": model.n_factors_,
        "active_factors": np.array(model.factor_names_)[model.active_factors_].tolist(),
        "bound": float(model.elbo_[-1]),
        "sweeps": model.n_iter_,
        "converged": bool(model.converged_),
        **measured,
        "informed": meta.get("informed"),
    }


def _coded(encoding: Encoding) -> list[dict[str, Any]]:
    return [
        {"name": c.source, "kind": c.kind, "levels": [str(level) for level in c.levels], "columns": list(c.names)}
        for c in encoding.columns
    ]


# -- for readers ------------------------------------------------------------------------------------------------------


def page(found: dict[str, Any]) -> str:
    """The facts as text: a line for every fact, then the alignment as a table."""
    from covalign.study import costs as planning

    by = f"covalign {found['covalign']}" if found["covalign"] else "an unknown version of covalign"
    size = planning.readable(found["bytes"], "B")
    lines = [f"{found['file']}: {found['kind']}, {size}, written by {by}", ""]
    for name, text in _lines(found):
        lines.append(f"{name:12} {text}".rstrip())
    if "unsolved" in found:
        return "\n".join([*lines, "", f"The aligner cannot be solved yet: {found['unsolved']}"])
    lines += ["", *_table(_named(found), found.get("mean_alignment"))]
    if found.get("informed"):
        lines += [
            "",
            *plain(
                ["covariate", *INFORMED.values()],
                [[row[c] for c in ("covariate", *INFORMED)] for row in found["informed"]],
            ),
        ]
    elif "informed" in found:
        lines += [
            "",
            "The file does not say which covariates are captured: informed_ was not computed before it was saved.",
        ]
    return "\n".join(lines)


def _named(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The alignments, with the covariates that X does not carry marked."""
    from covalign.factor.verdicts import VERDICTS

    lost = {row["covariate"] for row in found.get("informed") or [] if row["verdict"] == VERDICTS[-1]}
    return [
        {**row, "covariate": f"{row['covariate']} ({VERDICTS[-1]})"} if row["covariate"] in lost else row
        for row in found["alignment"]
    ]


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    from covalign.closed_form.regimes import SCALED

    known = [("rows", f"{found['rows']:,}")]
    known += [] if found["groups"] is None else [("groups", f"{found['groups']:,}")]
    if "views" in found:
        for name, view in found["views"].items():
            shown = f"{view['features']:,} features, {100 * view['variance_explained']:.1f} % of variance explained"
            known.append(("view", f"{name}: {shown}" if name else shown))
        on, off = found["active_factors"], found["factors"] - len(found["active_factors"])
        known.append(("factors", f"{found['factors']}, of which {off} inactive; active: {', '.join(on)}"))
        known.append(("supervision", f"{found['supervision']:g}"))
        known.append(("regression share", f"{found['regression_share']:g}"))
        ended = "converged" if found["converged"] else "not converged"
        known.append(("bound", f"{found['bound']:.6g} after {found['sweeps']} sweeps, {ended}"))
    else:
        known.append(("dimensions", f"{found['dimensions']:,}{', with names' if found['named_dimensions'] else ''}"))
    known += [("covariates" if i == 0 else "", _coding(c)) for i, c in enumerate(found["covariates"])]
    known += [("confounders" if i == 0 else "", _coding(c)) for i, c in enumerate(found["confounders"])]
    if found.get("regime"):
        lam = found["lam"]
        known.append(("regime", found["regime"] + (f", lam = {lam:g}" if lam is not None and lam == lam else "")))
    if "shrinkage" in found:
        known.append(("shrinkage", f"{found['shrinkage']:.4g}, {found['shrinkage_was']}{SCALED[found['scale']]}"))
        rest = found["rest_dimensions"]
        known += [("rest", f"{rest} dimensions")] if rest else []
    if "coupling" in found:
        known.append(("coupling", f"{found['coupling']:.4g}"))
    if found["reading"]:
        known.append(("tables", f"read with {reading_options.said_of(found['reading'])}"))
    given = ", ".join(f"{name}={value!r}" for name, value in found["parameters"].items())
    return [*known, ("parameters", given)]


def _coding(column: dict[str, Any]) -> str:
    levels, columns = column["levels"], column["columns"]
    if column["kind"] == "binary":
        return f"{columns[0]}: 1 where {levels[1]}, 0 where {levels[0]}"
    if column["kind"] == "ordered":
        return f"{column['name']}: ranks of {' < '.join(levels)}"
    if column["kind"] == "number":
        return f"{column['name']}: a number"
    reference = f"; reference level {levels[0]}" if len(columns) < len(levels) else ""
    return f"{column['name']}: dummies {', '.join(columns)}{reference}"


def _table(rows: list[dict[str, Any]], mean: dict[str, float] | None) -> list[str]:
    """A row for every covariate, and their mean; columns without any number are left out."""
    import pandas as pd

    rows = [*rows, {"covariate": "mean", **mean}] if mean is not None and len(rows) > 1 else rows
    columns = [column for column in rows[0] if pd.notna([row.get(column) for row in rows]).any()]
    called = ["fitted beta" if column == "beta" else column for column in columns]
    return plain(called, [[row.get(column) for column in columns] for row in rows])
