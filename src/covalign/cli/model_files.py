"""Files of fitted models that commands are given."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from covalign._core.messages import message

FactorModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A factor model: a file that fit -o wrote.", show_default=False)
]


def factor_model(path: Path) -> Any:
    """The factor model in a file; a model of another kind has no loadings."""
    from covalign.persist.reader import opened

    meta, model = opened(path)
    if meta["kind"] != "InformedFactorAnalysis":
        need, remedy = "This needs a factor model", "Fit one with covalign fit"
        raise ValueError(message(f"{need}, and {str(path)!r} has a {meta['kind']}", remedy=remedy))
    return model
