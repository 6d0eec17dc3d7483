"""The eight metrics of the paper (and two of ours), of any method on any data."""

from __future__ import annotations

from collections.abc import Iterator

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


def plane(method: str, informed: Array, Y: Array) -> Iterator[Row]:
    """Where a method stands between alignment and independence."""
    yield Row(method, "alignment", metrics.alignment(informed, Y))
    yield Row(method, "coupling", metrics.coupling(informed))


def explained(method: str, views: dict[str, Array], informed: Array, factors: Array) -> Iterator[Row]:
    """Marginal share of an informed factor and joint share of all factors, averaged over features, then views."""
    each = [np.mean(metrics.variance_explained(X, informed)) for X in views.values()]
    total = [metrics.total_variance_explained(X, factors) for X in views.values()]
    yield Row(method, "variance", float(np.mean(each)))
    yield Row(method, "total variance", float(np.mean(total)))


def disentanglement(method: str, informed: Array, Y: Array) -> Iterator[Row]:
    """D, C, I, SAP and nSAP of the informed dimensions."""
    for name, value in metrics.dci(informed, Y)._asdict().items():
        yield Row(method, name, value)
    yield Row(method, "sap", metrics.sap(informed, Y))
    yield Row(method, "nsap", metrics.nsap(informed, Y))
