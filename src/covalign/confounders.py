"""Covariates that are not of interest (batch, age): coded, matched to the rows, and regressed out of everything else.

What is regressed out of x is its least-squares fit on [1 C] over the rows that have x; C itself may not have gaps. Any
coding of a category spans the same space as any other, so a dummy too many does no harm, nor does a constant column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from covalign import _validation as errors
from covalign import covariates
from covalign._linalg import Array, range_eigh
from covalign.covariates import Encoding


def separated(Y: Any, confounders: Any) -> tuple[Any, Any]:
    """Y and the table of confounders, which may also be given as names of columns of Y, then taken out of it."""
    names = [confounders] if isinstance(confounders, str) else confounders
    if not (isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names)):
        return Y, confounders
    columns = [str(column) for column in getattr(Y, "columns", [])]
    absent = [name for name in names if name not in columns]
    if absent and not isinstance(confounders, str) and len(names) == len(Y):
        return Y, pd.Series(list(names), name="confounder")  # a label for every row, not names
    if absent:
        raise errors.columns_missing(absent, columns)
    frame = Y.set_axis(columns, axis=1)
    rest = frame.drop(columns=names)
    if rest.shape[1] == 0:
        raise errors.only_confounders(names)
    return rest, frame[names]


def learn(confounders: Any) -> Encoding:
    """How the confounders are coded; refused where they have gaps."""
    frame = as_frame(confounders)
    for name in frame.columns[frame.isna().any(axis=0)]:
        raise errors.missing_confounder(name, int(frame[name].isna().sum()))
    return Encoding.learn(frame)


def as_frame(confounders: Any) -> pd.DataFrame:
    """A table with names; c0, c1, ... where it has none."""
    frame = covariates.as_frame(confounders)
    nameless = not hasattr(confounders, "columns") and getattr(confounders, "name", None) is None
    return frame.set_axis([f"c{i}" for i in range(frame.shape[1])], axis=1) if nameless else frame


def table(encoding: Encoding, confounders: Any, index: pd.Index | None, n: int) -> Array:
    """The coded confounders (n x q) of rows: matched by index where both have one, else by position."""
    if confounders is None:
        raise errors.confounders_needed([column.source for column in encoding.columns])
    frame = as_frame(confounders)
    if index is not None and hasattr(confounders, "index") and not frame.index.equals(index):
        if not frame.index.is_unique:
            raise errors.duplicated_rows(list(frame.index[frame.index.duplicated()].unique()))
        absent = index.difference(frame.index, sort=False)
        if len(absent):
            raise errors.rows_without_confounders(list(absent))
        frame = frame.loc[index]
    if len(frame) != n:
        raise errors.lengths_differ(n, len(frame))
    coded = encoding.apply(frame)
    for name in coded.columns[coded.isna().any(axis=0)]:
        raise errors.missing_confounder(name, int(coded[name].isna().sum()))
    return coded.to_numpy()


def coefficients(C: Array, M: Array) -> tuple[Array, Array]:
    """Intercepts a (D) and slopes B (q x D) of M on [1 C], every column by the rows that have it (NaN where missing).

    The smallest of all solutions where several fit: a confounder nobody varies in, or one dummy too many, gets nothing.
    """
    centre = C.mean(axis=0)
    spread = C.std(axis=0)
    A = (C - centre) / np.where(spread > 0, spread, 1.0)
    A = np.column_stack([np.ones(len(A)), A])
    seen = ~np.isnan(M)
    if seen.all():
        solved = np.asarray(np.linalg.lstsq(A, M, rcond=1e-10)[0])
    else:
        q = A.shape[1]
        outer = (A[:, :, None] * A[:, None, :]).reshape(len(A), q * q)
        products = (seen.T.astype(np.float64) @ outer).reshape(-1, q, q)
        right = np.where(seen, M, 0.0).T @ A
        solved = np.empty((q, M.shape[1]))
        for d, (S, r) in enumerate(zip(products, right, strict=True)):
            values, vectors = range_eigh(S)
            solved[:, d] = (vectors / values) @ (vectors.T @ r)
    slopes = solved[1:] / np.where(spread > 0, spread, 1.0)[:, None]
    return solved[0] - centre @ slopes, slopes
