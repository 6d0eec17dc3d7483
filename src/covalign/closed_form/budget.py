"""What a map may do and what counts, in words of the user: a limit of coupling, weights, and uncoupled pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from covalign._core.checks import as_float, check_covariates, check_max_coupling, is_real
from covalign._core.messages import message, shown


class Budget(NamedTuple):
    """What is allowed and what counts: positions of covariates, weights with mean 1 (None: all equal)."""

    max_coupling: float = math.inf
    weights: tuple[float, ...] | None = None
    uncoupled: tuple[tuple[int, int], ...] = ()

    def packed(self) -> list[Any]:
        """As JSON, which has no infinity."""
        return [self.max_coupling if math.isfinite(self.max_coupling) else None, self.weights, self.uncoupled]

    @classmethod
    def unpacked(cls, saved: Any) -> Budget | None:
        """What ``packed`` made; None of None."""
        if saved is None:
            return None
        c, weights, pairs = saved
        weights = None if weights is None else tuple(weights)
        return cls(math.inf if c is None else c, weights, tuple((a, b) for a, b in pairs))


def asked(
    positions: Mapping[str, Sequence[int]], max_coupling: Any = None, weights: Any = None, uncoupled: Any = None
) -> Budget:
    """The budget in positions of covariates; a name may stand for several (the dummies of a category).

    >>> asked({"age": [0], "sex": [1, 2]}, 0.5, {"sex": 4}, [("age", "sex")])  # doctest: +ELLIPSIS
    Budget(max_coupling=0.5, weights=(0.333..., 1.333..., 1.333...), uncoupled=((0, 1), (0, 2)))
    """
    if max_coupling is None and not uncoupled:
        problem = "exact=True needs max_coupling= or uncoupled="
        raise ValueError(message(problem, remedy="Without a limit the best map is at(regime='strongest')"))
    count = 1 + max(at for some in positions.values() for at in some)
    c = math.inf if max_coupling is None else check_max_coupling(max_coupling)
    return Budget(c, _weights(weights, positions, count), _pairs(uncoupled, positions))


def _weights(weights: Any, positions: Mapping[str, Sequence[int]], count: int) -> tuple[float, ...] | None:
    if weights is None:
        return None
    if not isinstance(weights, Mapping):
        remedy = 'for example weights={"dose": 3}; other covariates have weight 1'
        raise ValueError(message("weights needs a dict of covariates and numbers", got=shown(weights), remedy=remedy))
    check_covariates(weights, positions)
    w = np.ones(count)
    for name, value in weights.items():
        if not is_real(value) or not 0 < as_float(value) < math.inf:
            problem = f"the weight of {name!r} needs a positive number"
            raise ValueError(message(problem, got=shown(value), remedy="leave a covariate out of weights for weight 1"))
        w[list(positions[name])] = as_float(value)
    return tuple((w / w.mean()).tolist())


def _pairs(uncoupled: Any, positions: Mapping[str, Sequence[int]]) -> tuple[tuple[int, int], ...]:
    several = isinstance(uncoupled, Iterable) and not isinstance(uncoupled, str | bytes | Mapping)
    several = several and getattr(uncoupled, "ndim", 1) > 0
    given = [] if uncoupled is None else list(uncoupled) if several else [uncoupled]
    found = set()
    for pair in given:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            remedy = 'for example uncoupled=[("age", "sex")]'
            raise ValueError(message("uncoupled needs pairs of covariates", got=shown(pair), remedy=remedy))
        check_covariates(pair, positions)
        a, b = (positions[name] for name in pair)
        if set(a) & set(b):
            raise ValueError(message("uncoupled needs pairs of two different covariates", got=shown(tuple(pair))))
        found |= {(min(i, j), max(i, j)) for i in a for j in b}
    return tuple(sorted(found))
