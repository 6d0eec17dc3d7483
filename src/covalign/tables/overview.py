"""What a study holds, before anything is fitted: samples, features and gaps of views, kinds of covariates."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from covalign._core.linalg import dense
from covalign.stream import is_source
from covalign.tables import covariates as coding
from covalign.tables.named_rows import Representation
from covalign.tables.table_columns import odd_cell
from covalign.tables.table_index import are_names

EXAMINED_BYTES = 2**28  # of a view on disk; the first rows stand for all
FAR = 6.0  # robust deviations beyond which a sample is outlying
ROMAN = {"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6}
UNUSABLE = ("identifier", "unusable", "constant")
# Texts that stand for a gap, in any column and among numbers.
MARK = r"\[.*\]|stage x|[-–—?.]+|unknown|not (?:available|applicable|reported|evaluated|known|done)"
MARK_AMONG_NUMBERS = rf"{MARK}|missing|none|null|unk|nd|n\.?[adk]\.?|[*/x]"
# Levels that end in a number have an order (stage i, grade 2, T1a), unless the number is a name (batch 2).
RANKED = r"(?P<stem>.*?)\s*\b(?:(?P<prefix>p?[TNG])?(?P<rank>[ivIV]+|\d+))(?P<part>[a-dA-D]?)"
NAMES = r"(?:batch|donor|patient|subject|plate|cluster|site|cent(?:er|re)|lane|run|sample|arm|ward|clone|chr\w*)\W*"


def of_view(view: Representation, samples: pd.Index | None) -> dict[str, Any]:
    """Size, samples in common with the covariates, gaps, whether these are counts, and outlying samples."""
    X = _examined(view)
    there = np.isfinite(X)
    counts = _are_counts(X[there])
    names = view.names
    common = view.n if names is None or samples is None else int(names.isin(samples).sum())
    return {
        **{"file": view.where, "samples": view.n, "features": int(view.data.shape[1]), "examined": len(X)},
        **{"in_common": common, "gaps": float(1 - there.mean()), "counts": counts},
        "empty_features": int((~there.any(axis=0)).sum()),
        "outlying": [str(i) if names is None else str(names[i]) for i in outlying(np.log1p(X) if counts else X)],
    }


def _examined(view: Representation) -> NDArray[np.float64]:
    if not is_source(view.data):
        return np.asarray(view.data, dtype=np.float64)
    parts: list[Any] = []
    for chunk in view.data.chunks():
        parts.append(np.asarray(dense(chunk), dtype=np.float64))
        if sum(part.nbytes for part in parts) > EXAMINED_BYTES:
            break
    return np.concatenate(parts)


def _are_counts(values: NDArray[np.float64]) -> bool:
    """Whole numbers from 0, some of them large."""
    return bool(len(values) and values.min() >= 0 and values.max() > 20 and (values == np.round(values)).all())


def outlying(X: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows far from all others: the mean square of their standardised values is far from the median, on a log scale."""
    there = np.isfinite(X)
    n = np.maximum(there.sum(axis=0), 1)
    centred = np.where(there, X - np.where(there, X, 0).sum(axis=0) / n, 0)
    scale = np.sqrt(np.square(centred).sum(axis=0) / n)
    squares = np.square(centred / np.where(scale > 0, scale, 1)).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    size = np.log(np.maximum(squares, 1e-12))
    apart = size - np.median(size)
    spread = 1.4826 * np.median(np.abs(apart))
    return np.flatnonzero(apart > FAR * spread) if spread > 0 else np.array([], dtype=np.intp)


def of_column(name: str, values: pd.Series) -> dict[str, Any]:
    """Kind, gaps and levels of a covariate, and why it cannot be used, if so."""
    gaps = int(values.isna().sum())
    facts: dict[str, Any] = {"kind": "unusable", "gaps": gaps, "levels": None, "why": None, "order": None}
    cell = None if types.is_numeric_dtype(values.dtype) else odd_cell(values)
    if cell is not None:
        return {**facts, "why": f"{cell[1]!r} in row {cell[0]!r} is no number: use na={cell[1]!r} if it marks a gap"}
    if are_names(values):
        return {**facts, "kind": "identifier", "why": "a different text in every row"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (column,) = coding.Encoding.learn(coding.as_frame(values.to_frame(name))).columns
    except ValueError as error:
        return {**facts, "why": str(error)}
    if values.nunique() < 2:
        return {**facts, "kind": "constant", "why": "the same value in all rows"}
    kind = {"binary": "two levels", "dummies": "category", "ordered": "ordered"}.get(column.kind, "number")
    levels = [str(level) for level in column.levels] or None
    return {**facts, "kind": kind, "levels": levels, "order": likely_order(levels or []), "columns": len(column.names)}


def is_mark_among_numbers(text: str) -> bool:
    """Whether a text among numbers seems to mark a gap."""
    return re.fullmatch(MARK_AMONG_NUMBERS, text, flags=re.IGNORECASE) is not None


def marks(table: pd.DataFrame) -> list[str]:
    """Texts that seem to mark gaps: among numbers, or as a level such as [Not Available]."""
    found: list[str] = []
    for name in table.columns:
        column = table[name]
        if types.is_numeric_dtype(column.dtype) or isinstance(column.dtype, pd.CategoricalDtype):
            continue
        texts = pd.Series(column.dropna().astype(str).unique())
        odd = texts[pd.to_numeric(texts, errors="coerce").isna()] if odd_cell(column) is not None else None
        if odd is not None and odd.str.fullmatch(MARK_AMONG_NUMBERS, case=False).all():
            found += odd.tolist()
        elif odd is None:
            found += texts[texts.str.fullmatch(MARK, case=False)].tolist()
    return list(dict.fromkeys(found))


def likely_order(levels: Sequence[str]) -> list[str] | None:
    """Three or more levels in the order of the Roman or other number at their ends; None where they have none.

    A letter after the number orders levels of the same number: stage II < stage IIA < stage IIB.
    """
    ends = [re.fullmatch(RANKED, level.strip()) for level in levels]
    if len(levels) < 3 or any(end is None for end in ends):
        return None
    ranks = {level: (_rank(end["rank"]), end["part"].lower()) for level, end in zip(levels, ends, strict=True) if end}
    stems = {f"{end['stem']} {end['prefix'] or ''}".casefold().strip() for end in ends if end is not None}
    if len(stems) > 1 or re.fullmatch(NAMES, next(iter(stems))) or len({*ranks.values()}) < len(ranks):
        return None
    return None if None in {rank for rank, _ in ranks.values()} else sorted(levels, key=lambda level: ranks[level])


def same_but_for_capitals(levels: Sequence[str]) -> list[str]:
    """Levels that differ in capitals or in blanks only, so they may be one."""
    plain = [re.sub(r"[\s_-]+", " ", level).casefold().strip() for level in levels]
    return [level for level, text in zip(levels, plain, strict=True) if plain.count(text) > 1]


def _rank(text: str) -> int | None:
    return int(text) if text.isdigit() else ROMAN.get(text.lower())
