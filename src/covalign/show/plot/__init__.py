"""Figures of regimes, factors and fits. Every function takes the frame that a method returns, and returns Axes.

>>> import covalign as ca
>>> s = ca.simulate.scenario("PN", n_samples=100, n_factors=6)
>>> fa = ca.InformedFactorAnalysis(6).fit(s.X, s.Y)
>>> ax = ca.plot.variance_explained(fa.variance_explained(), title="What the factors explain")

Nothing is computed here, so a figure shows the numbers of its frame and can be drawn again from a saved one. With
``ax`` it goes into Axes of yours. Colours are Okabe and Ito's, which people with any common colour vision deficiency
can tell apart; what has a sign is on a diverging map with white at zero, and what is missing is grey.
"""

from covalign.show.plot.style import CATEGORY_COLOURS, FAINT, INK, REGIME_COLOURS, REGIME_LABELS, STYLE  # isort: skip  # first: names the extra
import matplotlib.pyplot as plt

from covalign.show.plot.dots import enrichment
from covalign.show.plot.fits import bound, missing, top_features
from covalign.show.plot.heatmaps import association, loadings, variance_explained
from covalign.show.plot.samples import factor_by_category, factors
from covalign.show.plot.tradeoffs import alignment, frontier, matrices

__all__ = [
    "CATEGORY_COLOURS",
    "FAINT",
    "INK",
    "REGIME_COLOURS",
    "REGIME_LABELS",
    "STYLE",
    "alignment",
    "association",
    "bound",
    "enrichment",
    "factor_by_category",
    "factors",
    "frontier",
    "loadings",
    "matrices",
    "missing",
    "plt",
    "top_features",
    "variance_explained",
]
