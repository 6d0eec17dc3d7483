"""Metrics of a representation: paired correlations, independence, variance explained, disentanglement.

Each metric takes arrays or DataFrames with one row per sample, or a single ``Moments`` of both in their place
(``association`` takes uncoded covariates and needs the rows). Rows are matched by index if both tables have one, else
by position.

>>> import covalign as ca
>>> s = ca.simulate.scenario("PN", n_samples=200)
>>> bool(0 < ca.metrics.alignment(s.Z, s.Y) < 1)
True
"""

from covalign.closed_form.metrics.alignment import alignment
from covalign.closed_form.metrics.association import association
from covalign.closed_form.metrics.coupling import coupling
from covalign.closed_form.metrics.dci import DCI, dci
from covalign.closed_form.metrics.matching import Matching, match
from covalign.closed_form.metrics.sap import nsap, sap
from covalign.closed_form.metrics.variance import total_variance_explained, variance_explained

__all__ = [
    "DCI",
    "Matching",
    "alignment",
    "association",
    "coupling",
    "dci",
    "match",
    "nsap",
    "sap",
    "total_variance_explained",
    "variance_explained",
]
