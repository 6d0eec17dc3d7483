"""Columns of survival: times, and whether the event had happened by then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from covalign._core.messages import listed, message

# Names of columns: a time, and whether the event happened.
ENDPOINT = r"(?:os|pfs|dfs|rfs|efs|dss|pfi|dfi|ttt|surv\w*|death|dead|follow\w*|relapse|recurrence|progression)"
TIME = r"(?:time|days?|weeks?|months?|years?)"
EVENT = r"dead|died|death|deceased|event|(?:vital|survival)[-_. ]?status"
BETWEEN = r"[-_. ]*(?:to|until)?[-_. ]*(?:last[-_. ]*)?"  # of days_to_last_follow_up
# Words for an event and for none, also after the number that cBioPortal writes (1:DECEASED).
HAPPENED = (
    r"(?:1\s*:\s*)?(?:dead|died|deceased|death|event|yes|true|relapsed?|recurred|recurrence|progressed|progression)"
)
NOT_SO = r"(?:0\s*:\s*)?(?:alive|living|censored|none|no|false|no event|disease ?free)"


def event_numbers(column: pd.Series) -> pd.Series:
    """1 where the event happened, 0 where it did not, NaN where nobody knows; words are known, in any capitals."""
    if types.is_numeric_dtype(column.dtype):
        return column.astype(np.float64)
    text = column.dropna().astype(str).str.strip()
    known = pd.to_numeric(text, errors="coerce").astype(np.float64)
    known = known.mask(text.str.fullmatch(HAPPENED, case=False), 1.0).mask(text.str.fullmatch(NOT_SO, case=False), 0.0)
    if known.isna().any():
        column_of = f"in column {str(column.name)!r}"
        need = f"events need 1 (it happened) and 0 (it did not), or words such as dead and alive, {column_of}"
        raise ValueError(message(need, got=listed(text[known.isna()].unique(), 3), remedy="recode this column"))
    return known.reindex(column.index)


def likely_survival(known: Mapping[str, Mapping[str, Any]], table: pd.DataFrame) -> tuple[str, str] | None:
    """A column of times and one of events that look like survival, from their names; some times are without event.

    ``known`` has the kind of every column.
    """
    pattern = rf"(?:.*{BETWEEN})?(?:{ENDPOINT}{BETWEEN}{TIME}|{TIME}{BETWEEN}{ENDPOINT})"
    times = [name for name, facts in known.items() if facts["kind"] == "number" and _is_named(pattern, name)]
    status = rf"(?:.*[-_. ])?(?:{EVENT})|{ENDPOINT}(?:[-_. ](?:status|event|cens\w*))?"
    for event in (name for name in known if _is_named(status, name)):
        try:
            happened = event_numbers(table[event])
        except ValueError:
            continue
        for time in times:  # days_to_death is known of the dead only
            if set(happened[table[time].notna()].dropna().unique()) == {0, 1}:
                return time, event
    return None


def _is_named(pattern: str, name: str) -> bool:
    return re.fullmatch(pattern, name, flags=re.IGNORECASE) is not None
