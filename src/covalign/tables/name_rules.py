"""Row names that are not written alike: one begins with the other, or a pattern has to be removed.

A barcode such as ``TCGA-AB-1234-01A`` begins with the patient ``TCGA-AB-1234``. Capitals and punctuation do not count
(R writes ``TCGA.AB.1234``), and a number is never cut in two: ``s10`` does not begin with ``s1``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from covalign._core.checks import check_pattern, check_text
from covalign._core.messages import KEEP_FIRST, MATCH_PREFIX, listed, message, shown

MATCHES = ("exact", "prefix", "first")


class NameRule(NamedTuple):
    """How row names are compared.

    ``match`` is ``"exact"``, ``"prefix"`` (names match if one begins with the other), or ``"first"``: as prefix, and
    of several rows with the same name the first is kept. ``strip`` is removed from all names before.
    """

    match: str = "exact"
    strip: str | None = None


EXACT = NameRule()


def check_rule(rule: NameRule) -> NameRule:
    """The rule, if it is one."""
    if not isinstance(rule.match, str) or rule.match not in MATCHES:
        raise ValueError(message(f"match needs to be one of {listed(MATCHES)}", got=shown(rule.match)))
    if rule.strip is not None:
        check_pattern("strip", check_text("strip", rule.strip, "it is a regular expression, for example '-01A$'"))
    return rule


def stripped(names: pd.Index, rule: NameRule, where: str) -> pd.Index:
    """The names without the pattern of the rule; none may become empty."""
    if rule.strip is None:
        return names
    found: pd.Index = pd.Index([re.sub(rule.strip, "", str(name)) for name in names], dtype=object)
    empty = found == ""
    if empty.any():
        problem, got = (
            f"strip={rule.strip!r} needs to leave a part of every row name",
            f"nothing of {names[empty][0]!r}",
        )
        raise ValueError(message(problem, got=f"{got} in {where}", remedy="use a narrower pattern"))
    return found


def roots(names: pd.Index, others: pd.Index) -> pd.Index:
    """Every name, or the longest of the other names that it begins with. A name that is among the others stays."""
    known = {_folded(other): other for other in reversed([*others])}
    same = set(others)
    return pd.Index([name if name in same else _root(str(name), known) or name for name in names], dtype=object)


def shortened(names: pd.Index, others: pd.Index) -> pd.Index:
    """As ``roots``, but a name that is among the others in another spelling stays, too."""
    pairs = zip(names, roots(names, others), strict=True)
    found: pd.Index = pd.Index([n if _folded(n) == _folded(root) else root for n, root in pairs], dtype=object)
    return found


def likeness(names: pd.Index, others: pd.Index) -> tuple[str, str] | None:
    """A name that begins with one of the others, and that one; None where no name does."""
    known = {_folded(other): str(other) for other in others}
    pairs = ((str(name), _root(str(name), known)) for name in names)
    return next(((name, root) for name, root in pairs if root is not None and root != name), None)


def resemblance(names: pd.Index, others: pd.Index) -> str:
    """The remedy where names of one table begin with names of the other; nothing where they do not."""
    pair = likeness(names, others) or likeness(others, names)
    return "" if pair is None else f"{pair[0]!r} begins with {pair[1]!r}, so {MATCH_PREFIX}"


def unified(names: pd.Index, others: pd.Index, rule: NameRule) -> tuple[pd.Index, pd.Index]:
    """Both sets of names by the rule: where one begins with the other, the shorter takes its place.

    Of two spellings of a name that differ in capitals and punctuation, the one among the others is used.
    """
    if rule.match == "exact":
        return names, others
    others = shortened(others, names)
    return roots(names, others), others


def kept(names: pd.Index, written: pd.Index, rule: NameRule, where: str) -> np.ndarray:
    """Which rows to keep. Rows that have become the same are refused, or the first of them is kept."""
    again = np.asarray(names.duplicated())
    if not again.any() or rule.match == "first" or names.equals(written):
        return ~again if rule.match == "first" else np.ones(len(names), dtype=bool)
    name = names[again][0]
    rows = listed(written[np.asarray(names == name)], 3)
    problem = f"every sample needs one row of {where}, and {int(again.sum())} rows share the name of another"
    raise ValueError(message(problem, got=f"{rows} for {str(name)!r}", remedy=KEEP_FIRST))


def _folded(name: object) -> str:
    return re.sub(r"[\W_]+", "-", str(name)).casefold()


def _root(name: str, known: dict[str, str]) -> str | None:
    """The longest known name that this one begins with."""
    return next((known[cut] for cut in _cuts(_folded(name)) if cut in known), None)


def _cuts(text: str) -> Iterator[str]:
    """Beginnings of a text, the longest first, that end between a number, a word and punctuation."""
    yield text
    for i in range(len(text) - 1, 0, -1):
        before, after = text[i - 1], text[i]
        if before != "-" and (
            before.isdigit() != after.isdigit() or after == "-" or before.isalpha() != after.isalpha()
        ):
            yield text[:i]
