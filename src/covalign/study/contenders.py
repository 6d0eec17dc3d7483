"""The methods of the study and of a comparison on the user's data: names, settings, expected times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from covalign._core.messages import listed, message
from covalign.study import baselines
from covalign.study.baselines.method import Method
from covalign.study.baselines.peers import Peer

CLASSICAL = ("PCA", "PLS", "SPCA (Bair)", "SPCA (Barshan)", "Y as factors")
FAST = (*CLASSICAL, "MOFA", "iVAE")
LAMS = (0.0, 0.5, 1.0)
WIDEST = 4096  # dimensions of a representation that is transformed as it is: their square must fit into memory
SLOW = 30.0  # expected seconds of a fit: SOFA, MOFA-FLEX and MuVI
SECONDS = ("MOFA", "iVAE")  # a fit takes seconds: they have at most FEWER repetitions
FEWER = 5  # also of what needs a quiet machine, and of representations
FAMILIES = {"iFA": "iFA", "PCA, then": "aligner", "ridge, then": "aligner"}

# Methods that give no factors to a new sample whose covariates are unknown.
NOT_PLACED = {
    "Y as factors": "its factors are the covariates themselves",
    "iVAE": "its encoder needs the covariates of a sample",
}


def everything(representation: bool = False) -> list[Method]:
    """iFA in its regimes, T after principal components, and the other methods of the catalogue.

    For a ``representation`` (one table that is not too wide) also T without principal components.
    """
    ours: list[Method] = [baselines.IFA(), *(baselines.IFA(lam) for lam in LAMS), baselines.IFA(exclusive=True)]
    ours += [baselines.Aligned(lam) for lam in LAMS]
    ours += [baselines.Aligned(lam, components=False) for lam in LAMS] if representation else []
    return [*ours, *(method for method in baselines.catalogue() if not isinstance(method, baselines.IFA))]


def chosen(names: Iterable[str | Method] | None, representation: bool = False) -> list[Method]:
    """Methods by name (upper or lower case), by family ("iFA", "SPCA"), or by name and setting ("iFA (lam=0.9)").

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
        every = [method.name for method in known]
        remedy = f"The methods are {'; '.join(every)}"
        raise ValueError(message(f"There is no method {listed(unknown)}", remedy=remedy, wrong=unknown, known=every))
    return list(found.values())


def _named(wanted: str, known: list[Method]) -> list[Method]:
    name = wanted.strip().lower()
    exact = [method for method in known if method.name.lower() == name]
    family = [method for method in known if re.split(r" \(|, ", method.name.lower())[0] == name]
    return exact or family or _set(name)


def _set(name: str) -> list[Method]:
    """A method whose name includes a setting that the caller chose."""
    made: dict[str, Callable[[float], Method]] = {
        r"ifa \(lam=(.+)\)": baselines.IFA,
        r"sofa \(sf=(.+)\)": baselines.SOFA,
        r"pca, then t_(.+)": baselines.Aligned,
        r"ridge, then t_(.+)": partial(baselines.Aligned, components=False),
    }
    for pattern, make in made.items():
        match = re.fullmatch(pattern, name)
        if match and re.fullmatch(r"\d+\.?\d*|\.\d+", match[1]):
            value = float(match[1])
            return [make(value)] if (value > 0 if make is baselines.SOFA else value <= 1) else []
    return []


def slow(scaling_factors: tuple[float, ...]) -> list[str]:
    """Methods that take a minute per fit."""
    return [*(f"SOFA (sf={sf:g})" for sf in scaling_factors), "MOFA-FLEX", "MuVI"]


def repetitions(name: str, reps: int) -> int:
    """How many of the ``reps`` repetitions a method has: all, if a fit takes less than a second."""
    return min(reps, FEWER) if name in SECONDS else reps


def parameter(name: str) -> tuple[str, float] | None:
    """("iFA", lambda) or ("SOFA", scaling factor), or None."""
    match = re.fullmatch(r"(iFA|SOFA) \((?:lam|sf)=(.+)\)", name)
    return None if match is None else (match[1], float(match[2]))


def members(names: Iterable[str], kind: str) -> list[tuple[float, str]]:
    """(parameter, name) of the methods of a family, by rising parameter."""
    found = ((parameter(name), name) for name in set(names))
    return sorted((of[1], name) for of, name in found if of is not None and of[0] == kind)


def expected_seconds(name: str) -> float:
    """The expected time of a fit of the paper's size, for the progress bar."""
    for start, seconds in (("SOFA", 45.0), ("MOFA-FLEX", 40.0), ("MuVI", 40.0), ("iVAE", 10.0), ("MOFA", 3.0)):
        if name.startswith(start):
            return seconds
    return 2.0 if name.startswith("iFA") else 0.5


def is_slow(method: Method) -> bool:
    """Whether a fit is expected to take most of a minute."""
    return expected_seconds(method.name) > SLOW


def family(method: Method) -> str:
    """iFA, aligner (T), package (a published one, in its own process) or classical."""
    ours = [kind for start, kind in FAMILIES.items() if method.name.startswith(start)]
    return ours[0] if ours else "package" if isinstance(method, Peer) else "classical"


def patient(method: Method, timeout: float | None) -> Method:
    """The method with a time limit of ``timeout`` seconds for a fit, if it runs in its own process."""
    return replace(method, timeout=timeout) if isinstance(method, Peer) and timeout is not None else method
