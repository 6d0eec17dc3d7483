"""Latent dimensions that answer to names."""

from covalign import regimes, simulate
from covalign.moments import Moments

__version__ = "0.1.0"
