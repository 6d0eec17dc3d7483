"""Figures of regimes. Tidy frames in, Axes out; nothing is computed here.

Colours are Okabe and Ito's, which people with any common colour vision deficiency can tell apart; matrices use a
diverging map with white at zero.
"""

from covalign.plot.style import FAINT, INK, REGIME_COLOURS, REGIME_LABELS  # isort: skip  # first: names the extra
import matplotlib.pyplot as plt

from covalign.plot.regimes import alignment, frontier, matrices

__all__ = ["FAINT", "INK", "REGIME_COLOURS", "REGIME_LABELS", "alignment", "frontier", "matrices", "plt"]
