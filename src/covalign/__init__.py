"""Linear maps that align the dimensions of a representation with covariates, in closed form.

>>> import covalign as ca
>>> data = ca.simulate.scenario("PN", n_samples=1000)
>>> aligner = ca.LatentAligner(lam=0.5).fit(data.Z, data.Y)
>>> aligner.transform(data.Z).shape
(1000, 5)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from covalign import exceptions
    from covalign.aligner.latent import LatentAligner
    from covalign.aligner.nested_frontier import cross_validated_frontier
    from covalign.bridges import datasets, embed, scverse
    from covalign.closed_form import metrics, regimes, simulate
    from covalign.factor.informed import InformedFactorAnalysis
    from covalign.moments.moments import Moments
    from covalign.moments.principal_components import principal_components
    from covalign.persist.reader import load
    from covalign.show import plot, report
    from covalign.stream.formats import open_rows
    from covalign.study import baselines
    from covalign.tables import covariates
    from covalign.tables.table_files import read_table

__version__ = "0.1.0"

__all__ = [
    "InformedFactorAnalysis",
    "LatentAligner",
    "Moments",
    "baselines",
    "covariates",
    "cross_validated_frontier",
    "datasets",
    "embed",
    "exceptions",
    "load",
    "metrics",
    "open_rows",
    "plot",
    "principal_components",
    "read_table",
    "regimes",
    "report",
    "scverse",
    "simulate",
]

# The module of each public name. It is imported when the name is first used: some need an extra, others take seconds.
HOMES = {
    "InformedFactorAnalysis": "covalign.factor.informed",
    "LatentAligner": "covalign.aligner.latent",
    "Moments": "covalign.moments.moments",
    "cross_validated_frontier": "covalign.aligner.nested_frontier",
    "load": "covalign.persist.reader",
    "open_rows": "covalign.stream.formats",
    "principal_components": "covalign.moments.principal_components",
    "read_table": "covalign.tables.table_files",
}
MODULES = {
    "baselines": "covalign.study.baselines",
    "covariates": "covalign.tables.covariates",
    "datasets": "covalign.bridges.datasets",
    "embed": "covalign.bridges.embed",
    "exceptions": "covalign.exceptions",
    "metrics": "covalign.closed_form.metrics",
    "plot": "covalign.show.plot",
    "regimes": "covalign.closed_form.regimes",
    "report": "covalign.show.report",
    "scverse": "covalign.bridges.scverse",
    "simulate": "covalign.closed_form.simulate",
}


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return import_module(MODULES[name])
    if name in HOMES:
        return getattr(import_module(HOMES[name]), name)
    raise AttributeError(f"module 'covalign' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
