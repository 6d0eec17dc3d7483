"""Latent dimensions that answer to names: alignment of any representation with observed covariates, in closed form.

>>> import covalign as ca
>>> data = ca.simulate.scenario("PN", n_samples=1000)
>>> aligner = ca.LatentAligner(lam=0.5).fit(data.Z, data.Y)
>>> aligner.transform(data.Z).shape
(1000, 5)
"""

from importlib import import_module
from typing import Any

from covalign import covariates, metrics, regimes, simulate
from covalign.aligner import LatentAligner
from covalign.factor import InformedFactorAnalysis
from covalign.heldout import cross_validated_frontier
from covalign.io import load
from covalign.moments import Moments

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
    "load",
    "metrics",
    "plot",
    "regimes",
    "report",
    "scverse",
    "simulate",
]


LAZY = (
    "baselines",
    "datasets",
    "embed",
    "plot",
    "report",
    "scverse",
)  # plot needs matplotlib, an extra, and scverse anndata; the others are not needed to begin


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return import_module(f"covalign.{name}")
    raise AttributeError(f"module 'covalign' has no attribute {name!r}")
