"""Which methods a comparison on somebody's own data has, by name, and what each can be asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from covalign._core import validation as errors
from covalign.study import baselines
from covalign.study.baselines.method import Method
from covalign.study.baselines.peers import Peer
from covalign.study.method_names import expected_seconds

LAMS = (0.0, 0.5, 1.0)
WIDEST = 4096  # dimensions of a representation that is turned as it is: the square of them is held in memory
SLOW = 30.0  # seconds a fit, as expected: SOFA, MOFA-FLEX and MuVI
FAMILIES = {"iFA": "iFA", "PCA, then": "aligner", "ridge, then": "aligner"}

# Methods whose factors a new sample has none of, as long as its covariates are not known.
NOT_PLACED = {
    "Y as factors": "its factors are the covariates themselves, so there is nothing to place without them",
    "iVAE": "its encoder needs the covariates of a sample",
}


def everything(representation: bool = False) -> list[Method]:
    """iFA in its regimes, principal components turned by T, and all others of the catalogue.

    Of a ``representation`` (one table of few enough dimensions to be turned as they are) also T without PCA before it.
    """
    ours: list[Method] = [baselines.IFA(), *(baselines.IFA(lam) for lam in LAMS), baselines.IFA(exclusive=True)]
    ours += [baselines.Aligned(lam) for lam in LAMS]
    ours += [baselines.Aligned(lam, components=False) for lam in LAMS] if representation else []
    return [*ours, *(method for method in baselines.catalogue() if not isinstance(method, baselines.IFA))]


def chosen(names: Iterable[str | Method] | None, representation: bool = False) -> list[Method]:
    """Those named, in any case: one by its name, a family by its first word ("iFA", "SPCA"), a setting by its number.

    >>> [method.name for method in chosen(["pca", "iFA (lam=0.9)", "SPCA"])]
    ['PCA', 'iFA (lam=0.9)', 'SPCA (Bair)', 'SPCA (Barshan)']
    """
    if names is None:
        return everything(representation)
    known = everything(representation=True)
    found: dict[str, Method] = {}
    unknown = []
    for wanted in names:
        those = _named(wanted, known) if isinstance(wanted, str) else [wanted]
        found |= {method.name: method for method in those}
        unknown += [] if those else [str(wanted)]
    if unknown:
        raise errors.unknown_methods(unknown, [method.name for method in known])
    return list(found.values())


def _named(wanted: str, known: list[Method]) -> list[Method]:
    name = wanted.strip().lower()
    exact = [method for method in known if method.name.lower() == name]
    family = [method for method in known if re.split(r" \(|, ", method.name.lower())[0] == name]
    return exact or family or _set(name)


def _set(name: str) -> list[Method]:
    """A method with a number of the caller's own."""
    made: dict[str, Callable[[float], Method | None]] = {
        r"ifa \(lam=([\d.]+)\)": lambda value: baselines.IFA(value) if value <= 1 else None,
        r"sofa \(sf=([\d.]+)\)": lambda value: baselines.SOFA(value) if value > 0 else None,
        r"pca, then t_([\d.]+)": lambda value: baselines.Aligned(value) if value <= 1 else None,
        r"ridge, then t_([\d.]+)": lambda value: baselines.Aligned(value, components=False) if value <= 1 else None,
    }
    for pattern, make in made.items():
        match = re.fullmatch(pattern, name)
        if match and match[1].count(".") <= 1 and match[1] != ".":
            method = make(float(match[1]))
            return [] if method is None else [method]
    return []


def is_slow(method: Method) -> bool:
    """Whether a fit is expected to take most of a minute."""
    return expected_seconds(method.name) > SLOW


def family(method: Method) -> str:
    """iFA, aligner (ours), package (a published one, run on its own) or classical."""
    ours = [kind for start, kind in FAMILIES.items() if method.name.startswith(start)]
    return ours[0] if ours else "package" if isinstance(method, Peer) else "classical"


def patient(method: Method, timeout: float | None) -> Method:
    """The method, stopped after ``timeout`` seconds a fit where it runs in a process of its own."""
    return replace(method, timeout=timeout) if isinstance(method, Peer) and timeout is not None else method
