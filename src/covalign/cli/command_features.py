"""features: the top features of all factors, as one table."""

from __future__ import annotations

from typing import Annotated

from covalign._core.text_tables import plain
from covalign.cli import options
from covalign.cli.application import app, reply
from covalign.cli.model_files import FactorModelFile, factor_model
from covalign.cli.options import METHOD, option
from covalign.cli.outputs import TABLES, check_outputs, working, write_frame

SHOWN = 5  # features that the answer names for each view and factor


@app.command()
def features(
    model_file: FactorModelFile,
    n: Annotated[int, option(METHOD, "INT", "Number of features of each view and factor.", "--n", "-n", min=1)] = 20,
    view: Annotated[
        list[str] | None, option(METHOD, "NAME", "View. Repeat the option for several. Default: all.")
    ] = None,
    factor: Annotated[
        list[str] | None, option(METHOD, "NAME", "Factor. Repeat the option for several. Default: all.")
    ] = None,
    out: options.TableFile = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """List the features with the largest loadings on every factor of a model.

    The table has the columns view, factor, rank, feature, loading and std. The answer shows the first five features of
    every view and active factor.

    Example: covalign features ifa.covalign -n 20 -o features.csv
    """
    with working(as_json):
        files = check_outputs({"--out": (out, TABLES)}, [model_file], force=force)
        model = factor_model(model_file)
        frame = model.features_frame(n, factor or None, view or None)
        if out is not None:
            write_frame(frame, out)
    active = zip(model.factor_names_, model.active_factors_, strict=True)
    idle = [name for name, on in active if not on and not factor]
    first = frame[(frame["rank"] <= SHOWN) & ~frame["factor"].isin(idle)]
    named = first["feature"].astype(str) + [f" ({loading:+.2f})" for loading in first["loading"]]
    by_factor = named.groupby([first["view"], first["factor"]], sort=False).agg(", ".join)
    rows = [(view, factor, text) for (view, factor), text in by_factor.items()]
    answer = {"features": frame.to_dict("records"), "files": files}
    absent = [f"Inactive, and not shown: {', '.join(idle)}."] if idle else []
    reply(as_json, answer, *plain(["view", "factor", "features (loading)"], rows, left=3), *absent, *files)
