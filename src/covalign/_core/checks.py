"""Checks of arguments that several rooms share: ``check_x`` returns the value, or raises."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from covalign._core.messages import listed, message, shown

MOST_FOLDS = 10_000  # each has sums of its own
MOST_PERMUTATIONS = 10**7
REGIMES = ("independent", "tunable", "strongest", "exclusive")


def check_lam(lam: Any) -> float:
    """A mixing weight in [0, 1]."""
    return check_number(lam, "lam needs a number between 0 (independent) and 1 (strongest)", "choose one in [0, 1]", 1)


def listed_lams(lams: Any) -> list[Any]:
    """One lambda, or several, as a list; ``check_lam`` refuses what is no number."""
    if isinstance(lams, np.ndarray):
        return list(np.atleast_1d(lams).tolist())
    return list(lams) if isinstance(lams, Iterable) and not isinstance(lams, str | bytes | Mapping) else [lams]


def check_regime(regime: Any) -> str:
    """The name of a regime."""
    return check_choice("regime", regime, REGIMES)


def check_shrinkage(shrinkage: Any) -> float | None:
    """A weight in [0, 1], or None for ``"auto"``."""
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return None
    return check_number(shrinkage, 'shrinkage needs "auto" or a number in [0, 1]', 'use "auto" if in doubt', 1)


def check_ridge(shrinkage: Any) -> float:
    """A weight in [0, 1]."""
    return check_number(shrinkage, "shrinkage needs a number in [0, 1]", "0 is the exact solution on these rows", 1)


def check_folds(folds: Any) -> int:
    """A number of folds."""
    return check_count("folds", folds, least=2, most=MOST_FOLDS, remedy="5 is a good choice")


def too_many_folds(folds: int, most: str) -> ValueError:
    """More folds than rows, or than there can be."""
    return ValueError(message(f"folds needs {most}", got=folds, remedy="5 is a good choice"))


def check_max_coupling(budget: Any) -> float:
    """An upper limit for the coupling."""
    return check_number(budget, "max_coupling needs a number >= 0", "0 asks for independent dimensions", np.inf)


def check_permutations(count: Any) -> int:
    """A number of permutations."""
    return check_count("n_permutations", count, remedy="999 is a good choice", most=MOST_PERMUTATIONS)


def is_real(value: Any) -> bool:
    """A number; flags are none, nor are spans of time, which numpy counts among whole numbers."""
    return isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)


def is_whole(value: Any) -> bool:
    """A whole number of any kind."""
    return isinstance(value, Integral) and is_real(value)


def check_count(what: str, value: Any, least: int = 1, remedy: str = "choose one", most: int | None = None) -> int:
    """A whole number of at least ``least``, as a Python int, which no product of counts can overflow."""
    whole = is_whole(value)
    if whole and int(value) >= least and (most is None or int(value) <= most):
        return int(value)
    limit = f"from {least} to {most}" if whole and most is not None and int(value) > most else f"of at least {least}"
    raise ValueError(message(f"{what} needs a whole number {limit}", got=shown(value), remedy=remedy))


def check_flag(what: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, bool | np.bool_) or (is_whole(value) and int(value) in (0, 1)):
        return bool(value)
    raise ValueError(message(f"{what} needs True or False", got=shown(value), remedy="choose one of them"))


def check_choice(what: str, value: Any, known: Sequence[str]) -> str:
    """One of some names."""
    if isinstance(value, str) and value in known:
        return value
    raise not_one_of(what, value, known)


def check_random_state(state: Any) -> np.random.Generator:
    """A generator of random numbers. An old RandomState seeds a new generator, and moves on by doing so."""
    if isinstance(state, np.random.RandomState):
        return np.random.default_rng(state.randint(2**32, size=4, dtype=np.uint32))
    try:
        if isinstance(state, bool | np.bool_):
            raise TypeError
        return np.random.default_rng(state)
    except Exception:  # an object of a user's class may raise anything
        problem = "random_state needs a whole number of at least 0, a numpy Generator or None"
        raise ValueError(message(problem, got=shown(state), remedy="any whole number will do")) from None


def check_seed(state: Any) -> Any:
    """A seed that scikit-learn takes: small whole numbers and a RandomState as they are, one drawn from others."""
    drawn = check_random_state(state) if not isinstance(state, np.random.RandomState) else None
    small = is_whole(state) and int(state) < 2**32
    return state if drawn is None else int(state) if small else int(drawn.integers(2**32))


def check_text(what: str, value: Any, remedy: str) -> str:
    """Text that can be written to a file; as a plain str, which JSON takes."""
    if isinstance(value, str) and "\0" not in value and (value.isascii() or _is_writable(value)):
        return str(value)
    zero = isinstance(value, str) and "\0" in value
    got = "a zero byte" if zero else "half a character (a lone surrogate)" if isinstance(value, str) else shown(value)
    raise ValueError(message(f"{what} needs text", got=got, remedy=remedy))


def _is_writable(text: str) -> bool:
    try:
        return text.encode() is not None
    except UnicodeEncodeError:
        return False


def check_selection(what: str, value: Any) -> list[Any]:
    """One name or position, or several, as a list that is not empty."""
    single = isinstance(value, str) or is_whole(value)
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    items = [value] if single else list(value) if several and getattr(value, "ndim", 1) == 1 else []
    if items and all(isinstance(item, str) or is_real(item) for item in items):
        return items
    raise ValueError(message(f"{what} needs a name, or a list of names", got=shown(value), remedy="None means all"))


def check_positions(what: str, value: Any, count: int) -> list[int]:
    """Positions of columns among ``count``, as a list."""
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    items = list(value) if several and getattr(value, "ndim", 1) == 1 else [value]
    if all(is_whole(item) and 0 <= item < count for item in items):
        return [int(item) for item in items]
    raise ValueError(message(f"{what} needs positions from 0 to {count - 1}", got=shown(value), remedy="pass a list"))


def check_flags(**flags: Any) -> None:
    """Refuse what is neither True nor False; the arguments have the names of the flags."""
    for name, value in flags.items():
        check_flag(name, value)


def check_pattern(what: str, pattern: str) -> None:
    """Refuse text that is no regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        got, remedy = f"{pattern!r} ({error})", "write for example '-01A$'"
        raise ValueError(message(f"{what} needs a regular expression", got=got, remedy=remedy)) from None


def not_one_of(what: str, got: Any, known: Sequence[str]) -> ValueError:
    """``got`` is none of the known names."""
    problem = f"{what} needs one of {', '.join(known)}"
    wrong = [got] if isinstance(got, str) else []
    return ValueError(message(problem, got=shown(got), remedy="use one of these names", wrong=wrong, known=known))


def check_number(value: Any, problem: str, remedy: str, most: float, least: float = 0) -> float:
    """A number from ``least`` to ``most``; ``problem`` is the sentence for anything else."""
    if is_real(value) and least <= as_float(value) <= most:
        return as_float(value)
    raise ValueError(message(problem, got=shown(value), remedy=remedy))


def as_float(value: Any) -> float:
    """The number as a float; infinity for a whole number that no float can hold."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def check_covariates(names: Iterable[Any], known: Iterable[str]) -> None:
    """Refuse names that are no covariates of a model."""
    have = list(dict.fromkeys(known))
    wrong = [name for name in names if not (isinstance(name, str) and name in have)]
    if wrong:
        remedy = f"Its covariates are {listed(have, 10)}"
        raise ValueError(
            message(f"this model has no covariate {listed(wrong)}", remedy=remedy, wrong=wrong, known=have)
        )


def check_chunk_rows(rows: Any) -> int:
    """A number of rows in a chunk."""
    return check_count("chunk_rows", rows, remedy="leave it out to have it chosen")


def check_missing(missing: Any) -> str:
    """What to do with rows whose covariates are incomplete: "pairs", "drop" or "raise"."""
    if isinstance(missing, str) and missing in ("pairs", "raise", "drop"):
        return missing
    raise ValueError(message("missing needs 'pairs', 'raise' or 'drop'", got=shown(missing), remedy="use one of these"))
