"""report: the report of a saved model, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from covalign.cli import options
from covalign.cli.application import app, in_flags, reply
from covalign.cli.model_files import factor_model
from covalign.cli.options import DATA, OUTPUT, option
from covalign.cli.outputs import PAGES, check_inputs, check_outputs, working


@app.command()
def report(
    ctx: typer.Context,
    model_file: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that align --save or fit -o wrote.")],
    *,
    sets: Annotated[
        Path | None,
        option(DATA, "PATH", "File of gene sets (.gmt or .gmt.gz) to test on the factors of a model of fit.", "--sets"),
    ] = None,
    out: Annotated[Path, option(OUTPUT, "PATH", "The page (.html).", "--out", "-o")],
    title: Annotated[str | None, option(OUTPUT, "TEXT", "Title of the page. Default: the name of the model.")] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write the interactive report of a saved model, and print what it says first.

    A model of fit is fitted again without each of its folds, unless its file has these numbers.

    Example: covalign report ifa.covalign --sets h.gmt -o findings.html
    """
    with working(as_json):
        files = check_outputs({"--out": (out, PAGES)}, [model_file, sets], force=force)
        check_inputs(model=model_file)

        from covalign._core.files import write_text
        from covalign.persist.reader import opened
        from covalign.show.report import page, summary

        model = opened(model_file)[1] if sets is None else factor_model(model_file)
        facts = summary(model, sets)
        write_text(out, page(facts, model_file.stem if title is None else title))
        said = facts["conclusion"]
        fitting: Any = ctx.find_root().command
        flags = fitting.commands["fit" if "factors" in facts else "align"]  # a warning is about a new fit
        warned = (f"warning: {in_flags(text, flags)}" for text in said["warnings"])
        lines = [f"{said['headline']}.", *said["said"], *warned]
        reply(as_json, {"conclusion": said, "files": files}, *lines, *files)
