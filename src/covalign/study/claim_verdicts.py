"""What a claim is: a statement, the function that checks it against the results in the store, and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pandas as pd

from covalign._core.messages import counted
from covalign.study.contenders import members
from covalign.study.profiles import Profile
from covalign.study.results_store import Store, rows

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "not measured"


class Answer(NamedTuple):
    """A sentence with the measured numbers, and the verdict that follows."""

    measured: str
    verdict: str


Check = Callable[[Store, Profile], Answer]
Found = tuple[str, list[bool]]  # the sentence, and whether each part of the statement holds


class Claim(NamedTuple):
    """A statement, its place in the paper, and the function that checks it."""

    name: str
    statement: str
    where: str
    check: Check


CLAIMS: dict[int, Claim] = {}  # by number


def claim(name: str, where: str, *experiments: str) -> Callable[[Callable[..., Found]], Check]:
    """Add a function of the rows of experiments to the claims. Its docstring is the statement."""

    def added(check: Callable[..., Found]) -> Check:
        def answer(store: Store, profile: Profile) -> Answer:
            measured, parts = check(*(rows(store, experiment, profile) for experiment in experiments))
            return Answer(measured, HOLDS if all(parts) else IN_PART if any(parts) else FAILS)

        CLAIMS[int(name[1:])] = Claim(name, " ".join((check.__doc__ or "").split()), where, answer)
        return answer

    return added


def spread(values: pd.Series) -> str:
    """Mean and standard deviation."""
    return f"{values.mean():.3f} ± {values.std():.3f}" if len(values) > 1 else f"{values.mean():.3f}"


def runs(frame: pd.DataFrame, *methods: str) -> str:
    """The number of repetitions of these methods."""
    each = frame[frame["method"].isin(methods)].groupby("method")["rep"].nunique()
    low, high = int(each.min()), int(each.max())
    return counted(high, "repetition") if low == high else f"{low} to {high} repetitions"


def along(frame: pd.DataFrame, kind: str = "iFA") -> list[str]:
    """The methods of a family by rising parameter; LookupError if there are none."""
    found = [name for _, name in members(frame["method"], kind)]
    if not found:
        raise LookupError(kind)
    return found
