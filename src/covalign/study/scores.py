"""The eight metrics of the paper (and two of ours), of any method on any data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from covalign._core.linalg import Array
from covalign.closed_form import metrics
from covalign.study.results_store import Row

LABELS = {
    "alignment": r"mean alignment  corr$(\tilde z_p, y_p)$",
    "coupling": r"coupling  $\|\mathrm{corr}(\tilde z) - I\|_F^2$",
    "variance": "variance explained\nper informed factor",
    "disentanglement": "disentanglement D",
    "completeness": "completeness C",
    "informativeness": "informativeness I",
    "sap": "SAP",
    "nsap": "normalised SAP",
}


def in_sample(
    method: str, views: dict[str, Array], Y: Array, informed: Array, factors: Array, seconds: float
) -> Iterator[Row]:
    """All metrics on the fitted rows, and seconds."""
    yield from plane(method, informed, Y)
    yield from explained(method, views, informed, factors)
    yield from disentanglement(method, informed, Y)
    yield Row(method, "seconds", seconds)


def plane(method: str, informed: Any, Y: Any = None) -> Iterator[Row]:
    """Alignment and coupling, of rows or of one Moments."""
    yield Row(method, "alignment", metrics.alignment(informed, Y))
    yield Row(method, "coupling", metrics.coupling(informed))


def explained(method: str, views: dict[str, Array], informed: Array, factors: Array) -> Iterator[Row]:
    """Marginal share of an informed factor and joint share of all factors, averaged over features, then views."""
    each = [np.mean(metrics.variance_explained(X, informed)) for X in views.values()]
    total = [metrics.total_variance_explained(X, factors) for X in views.values()]
    yield Row(method, "variance", float(np.mean(each)))
    yield Row(method, "total variance", float(np.mean(total)))


def disentanglement(method: str, informed: Any, Y: Any = None) -> Iterator[Row]:
    """D, C, I, SAP and nSAP of the informed dimensions, of rows or of one Moments."""
    for name, value in metrics.dci(informed, Y)._asdict().items():
        yield Row(method, name, value)
    yield Row(method, "sap", metrics.sap(informed, Y))
    yield Row(method, "nsap", metrics.nsap(informed, Y))
