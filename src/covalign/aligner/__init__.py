"""The regimes as a scikit-learn transformer."""

from covalign.aligner.latent import LatentAligner

__all__ = ["LatentAligner"]
