"""The methods that the paper compares with, with one interface.

``run(method, X, Y, n_factors)`` fits any of them; ``catalogue()`` lists them; ``absent()`` tells why one cannot run.

>>> from covalign import baselines
>>> [method.name for method in baselines.catalogue()][:3]
['iFA (no T)', 'PCA', 'MOFA']
"""

from covalign.study.baselines.ifa_methods import IFA, Aligned
from covalign.study.baselines.ivae import IVAE
from covalign.study.baselines.linear import PCA, PLS, BairSPCA, BarshanSPCA, YAsFactors
from covalign.study.baselines.method import Cost, Fitted, Method, Result, run
from covalign.study.baselines.peers import MOFA, MOFAFLEX, SOFA, MuVI

__all__ = [
    "IFA",
    "IVAE",
    "MOFA",
    "MOFAFLEX",
    "PCA",
    "PLS",
    "SOFA",
    "Aligned",
    "BairSPCA",
    "BarshanSPCA",
    "Cost",
    "Fitted",
    "Method",
    "MuVI",
    "Result",
    "YAsFactors",
    "catalogue",
    "run",
]


def catalogue() -> list[Method]:
    """Every method with default settings: iFA, then those of the paper in its order, then newer packages.

    >>> from covalign import baselines
    >>> [method.name for method in baselines.catalogue() if method.paired]
    ['iFA (no T)', 'SOFA (sf=0.1)', 'Y as factors', 'MOFA-FLEX']
    """
    paper: list[Method] = [PCA(), MOFA(), PLS(), BairSPCA(), BarshanSPCA(), IVAE(), SOFA(), YAsFactors()]
    return [IFA(), *paper, MOFAFLEX(), MuVI()]
