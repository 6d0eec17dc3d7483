"""The methods of the comparison by name, and the expected time of each."""

from __future__ import annotations

from collections.abc import Iterable

from covalign.study import baselines
from covalign.study.baselines.method import Method

CLASSICAL = ("PCA", "PLS", "SPCA (Bair)", "SPCA (Barshan)", "Y as factors")
FAST = (*CLASSICAL, "MOFA", "iVAE")


def slow(scaling_factors: tuple[float, ...]) -> list[str]:
    """Methods that take a minute per fit."""
    return [*(f"SOFA (sf={sf:g})" for sf in scaling_factors), "MOFA-FLEX", "MuVI"]


def family(name: str) -> tuple[str, float] | None:
    """("iFA", lambda) or ("SOFA", scaling factor), or None."""
    for start, kind in (("iFA (lam=", "iFA"), ("SOFA (sf=", "SOFA")):
        if name.startswith(start):
            return kind, float(name.removeprefix(start).rstrip(")"))
    return None


def members(names: Iterable[str], kind: str) -> list[tuple[float, str]]:
    """(parameter, name) of the methods of a family, by rising parameter."""
    found = ((family(name), name) for name in set(names))
    return sorted((of[1], name) for of, name in found if of is not None and of[0] == kind)


def by_name(name: str) -> Method:
    """A method from its name."""
    kind, parameter = family(name) or ("", 0.0)
    if kind == "SOFA":
        return baselines.SOFA(scaling_factor=parameter)
    return {method.name: method for method in baselines.catalogue()}[name]


def expected_seconds(name: str) -> float:
    """The expected time of a fit of the paper's size, for the progress bar."""
    for start, seconds in (("SOFA", 45.0), ("MOFA-FLEX", 40.0), ("MuVI", 40.0), ("iVAE", 10.0), ("MOFA", 3.0)):
        if name.startswith(start):
            return seconds
    return 2.0 if name.startswith("iFA") else 0.5
