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
    plain = 0 < len(text) <= most and not text.startswith("<")  # "<function f at 0x7f...>" helps nobody
    return text if plain else kind_of(value)


def kind_of(value: Any) -> str:
    """``an int``, ``a dict``, ``None``."""
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def text_of(item: Any) -> str:
    """A name as text; objects without a text of their own are told by their kind."""
    try:
        text = str(item)
    except Exception:  # as in ``shown``
        text = ""
    return text if isinstance(item, str) or text[:1] not in ("", "<") else kind_of(item)


def listed(items: Iterable[Any], most: int = 5) -> str:
    """The first few items: ``'a', 'b' and 3 more``."""
    every = list(items)
    first = ", ".join(repr(_short(text_of(item))) for item in every[:most])
    return first if len(every) <= most else f"{first} and {len(every) - most} more"


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
    folded = {text_of(one).casefold(): text_of(one) for one in known}
    wanted = text_of(name).casefold()[:200]
    return [folded[match] for match in difflib.get_close_matches(wanted, folded, most, 0.5)]


def did_you_mean(wrong: Iterable[Any], known: Iterable[Any], most: int = 2) -> str:
    """``Did you mean 'dose'?``, or nothing if no known name resembles a wrong one."""
    have = list(known)
    near = dict.fromkeys(match for name in wrong for match in nearest(name, have, most))
    return f"Did you mean {listed(near)}?" if near else ""
