"""Competitive tests of sets of features: are the statistics of a set larger, or smaller, than those of all others?

Features of a set are often correlated, and so are their statistics; a test that takes them as independent finds sets
everywhere. CAMERA (Wu and Smyth, Nucleic Acids Research 2012) inflates the variance of a set's mean by
1 + (m - 1) rho, where rho is the mean correlation of its m features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from covalign._core.linalg import Array
from covalign.closed_form.measures import quotient

Members = NDArray[np.intp]  # positions of the features of a set


def indicator(sets: Sequence[Members], n_features: int) -> sparse.csr_array:
    """1 where a feature (row) is in a set (column)."""
    rows = np.concatenate([np.asarray(members, dtype=np.intp) for members in sets])
    columns = np.repeat(np.arange(len(sets)), [len(members) for members in sets])
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_features, len(sets)))


def mean_correlations(residuals: Callable[[], Iterable[Array]], sets: Sequence[Members]) -> tuple[Array, int]:
    """The mean correlation of the residuals of each set's features, and the most rows that a feature has.

    ``residuals`` are read twice, in chunks of rows, NaN where a cell is missing. With residuals e of mean square 1,
    rho = sum_n [(sum_d e_nd)^2 - sum_d e_nd^2] / sum_n [o_n^2 - o_n], o_n the number of the set's features that row n
    has: all pairs of features, each by the rows that have both, in O(N m). 0 for a set without a pair.
    """
    sums = [(np.nansum(chunk**2, axis=0), np.sum(~np.isnan(chunk), axis=0)) for chunk in residuals()]
    squares, counts = (np.sum(part, axis=0) for part in zip(*sums, strict=True))
    weight = quotient(1.0, np.sqrt(quotient(squares, counts)))
    A = indicator(sets, len(weight))
    alone = A.T @ np.where(weight > 0, counts, 0)
    products, pairs = -alone, -alone.copy()
    for chunk in residuals():
        there = ~np.isnan(chunk) & (weight > 0)
        products += np.sum((np.where(there, chunk * weight, 0.0) @ A) ** 2, axis=0)
        pairs += np.sum((there.astype(np.float64) @ A) ** 2, axis=0)
    return quotient(products, pairs), int(counts.max(initial=0))


def mean_test(values: Array, sets: Sequence[Members], correlation: Array, df: float) -> tuple[Array, Array]:
    """t and two-sided p of every set and column of ``values`` (features x K): set mean against the mean of all others.

    t = delta / sqrt(s^2 (VIF / m + 1 / (G - m))), VIF = 1 + (m - 1) max(rho, 0), s^2 pooled within set and others.
    """
    G, m = len(values), _sizes(sets)[:, None]
    mean, inside = values.mean(axis=0), (indicator(sets, G).T @ values) / m
    delta = G / (G - m) * (inside - mean)
    pooled = (np.sum((values - mean) ** 2, axis=0) - delta**2 * m * (G - m) / G) / max(G - 2, 1)
    inflation = 1 + (m - 1) * np.maximum(correlation, 0)[:, None]
    spread = np.sqrt(np.maximum(pooled, 0) * (inflation / m + 1 / (G - m)))
    t = quotient(delta, spread, np.nan)
    return t, 2 * stats.t.sf(np.abs(t), df)


def rank_test(values: Array, sets: Sequence[Members], correlation: Array, df: float) -> tuple[Array, Array]:
    """As ``mean_test``, from ranks: Wilcoxon's sum of ranks with the variance of correlated normal statistics.

    For ranks of normal variables with correlation rho within the set, Cov of two indicators x < y is arcsin / 2 pi
    (Barry, Nobel and Wright, Annals of Applied Statistics 2008).
    """
    G, m = len(values), _sizes(sets)[:, None]
    others, rho = G - m, np.maximum(correlation, 0)[:, None]
    ranks = stats.rankdata(values, axis=0)
    above = indicator(sets, G).T @ ranks - m * (G + 1) / 2
    pairs = np.pi / 2 + np.pi / 6 * (others - 1)
    pairs = pairs + (m - 1) * (others - 1) * np.arcsin(rho / 2) + (m - 1) * np.arcsin((rho + 1) / 2)
    variance = m * others * pairs / (2 * np.pi) * (1 - _ties(ranks))
    steps = np.sign(above) * np.maximum(np.abs(above) - 0.5, 0.0)  # a sum of ranks moves in steps of one
    t = quotient(steps, np.sqrt(np.maximum(variance, 0)), np.nan)
    return t, 2 * stats.t.sf(np.abs(t), df)


TESTS = {"camera": mean_test, "rank": rank_test}


def false_discovery_rates(p: Array) -> Array:
    """q of Benjamini and Hochberg, over the p that are known."""
    q, known = np.full(len(p), np.nan), ~np.isnan(p)
    if known.any():
        q[known] = stats.false_discovery_control(p[known])
    return q


def _sizes(sets: Sequence[Members]) -> Array:
    return np.array([len(members) for members in sets], dtype=np.float64)


def _ties(ranks: Array) -> Array:
    """sum (t^3 - t) / (G^3 - G) over groups of t equal values, of every column."""
    G = len(ranks)
    found = [np.unique(column, return_counts=True)[1].astype(float) for column in ranks.T]
    return np.array([np.sum(t**3 - t) for t in found]) / max(G**3 - G, 1)
