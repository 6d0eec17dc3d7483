"""How errors are worded: what is wrong, what was got, what to do, and the names that may have been meant.

>>> message("3 covariates need at least 3 latent dimensions", got=2, remedy="drop covariates or use a larger embedding")
'3 covariates need at least 3 latent dimensions, got 2: drop covariates or use a larger embedding.'
>>> message("Y has no column 'dos'", wrong=["dos"], known=["dose", "age"])
"Y has no column 'dos'. Did you mean 'dose'?"
>>> message("Nothing to write", remedy="Give an output file with -o")
'Nothing to write. Give an output file with -o.'
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

# Remedies in words of Python. The commands have other words for them.
BY_POSITION = "pass .to_numpy() to match rows by position"
GIVE_COVARIATES = "pass a table of covariates, or the names of columns of that file, as Y"
MATCH_PREFIX = "match them with covalign.covariates.match_rows(Z, Y, match='prefix')"
KEEP_FIRST = "drop all but one of them, or use match='first' to keep the first of each"
AS_NUMBERS = "use pandas.to_numeric, or .astype('category') if these are levels"
AS_CATEGORY = "if these are levels, use .astype('category')"
AS_LEVELS = "drop it, or use .astype('category') if these really are levels"
OTHER_COLUMNS = "convert it, or choose the others with columns="
DECLARE_FIRST = "declare another level first: pandas.Categorical(values, categories=[...])"
DECLARE_ALL = "declare all levels at the start with pandas.Categorical(values, categories=[...])"
TRANSPOSE = "pass the transposed table (.T)"
MORE_SWEEPS = "raise max_iter, or tol if this is close enough"


def message(
    problem: str, *, got: Any = None, remedy: str = "", wrong: Iterable[Any] = (), known: Iterable[Any] = ()
) -> str:
    """``problem, got GOT: remedy.``, then the ``known`` names nearest to the ``wrong`` ones as a question."""
    text = problem if got is None else f"{problem}, got {got}"
    if remedy:
        text += f"{'. ' if got is None else ': '}{remedy}"
    text = text if text.endswith((".", "?")) else f"{text}."
    question = did_you_mean(wrong, known)
    return f"{text} {question}" if question else text


def shown(value: Any, most: int = 60) -> str:
    """A value of a user as one short line.

    >>> shown("auto"), shown([1, 2])
    ("'auto'", '[1, 2]')
    """
    try:
        text = " ".join(ascii(value).split())
    except Exception:  # the repr of a user's class may raise anything
        text = ""
    return text if 0 < len(text) <= most else f"a {type(value).__name__}"


def listed(items: Iterable[Any], most: int = 5) -> str:
    """The first few items: ``'a', 'b' and 3 more``."""
    every = list(items)
    shown = ", ".join(repr(_short(str(item))) for item in every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most} more"


def counted(count: int, noun: str) -> str:
    """1 sample, 2,000 samples."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_words(items: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def nearest(name: Any, known: Iterable[Any], most: int) -> list[str]:
    """Known names that resemble this one, the most similar first; capitals do not count."""
    folded = {str(one).casefold(): str(one) for one in known}
    return [folded[match] for match in difflib.get_close_matches(str(name).casefold(), folded, most, 0.5)]


def did_you_mean(wrong: Iterable[Any], known: Iterable[Any], most: int = 2) -> str:
    """``Did you mean 'dose'?``, or nothing if no known name resembles a wrong one."""
    have = list(known)
    near = dict.fromkeys(match for name in wrong for match in nearest(name, have, most))
    return f"Did you mean {listed(near)}?" if near else ""
