"""Who wins how often: means over repetitions, Bradley-Terry strengths, and their spread over data sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from covalign._core.linalg import Array
from covalign.study.arena.bouts import FAILURE
from covalign.study.results_store import Store

DRAWS, LEVEL = 400, 0.9
TIE = 0.005  # areas closer than this count as half a win for each: about the spread between repetitions
FEW = 0.5  # of the data sets
PRIOR = 0.5  # games, half of them won, of every method against a method of average strength: keeps strengths finite


class Results(NamedTuple):
    """What page and figure are made from."""

    wide: pd.DataFrame  # numbers by data, condition, method
    failed: pd.DataFrame
    data: pd.DataFrame  # sizes of data sets
    areas: pd.DataFrame  # complete data: data sets x methods
    ranks: pd.DataFrame


def results(store: Store) -> Results:
    """Numbers, failures, sizes and ranks."""
    wide = numbers(store)
    areas = table_of(wide, "complete")
    data = pd.read_csv(store.folder / "data.csv").set_index("data")
    return Results(wide, failures(store), data, areas.reindex(ordered(areas.index, data)), standings(areas))


def ordered(names: Iterable[str], data: pd.DataFrame) -> list[str]:
    """Data sets by number of cells."""
    cells = dict(zip(data.index, data["samples"] * data["features"], strict=True))
    return sorted(names, key=lambda name: cells[name])


def numbers(store: Store) -> pd.DataFrame:
    """Mean over repetitions, one row for data, condition and method, one column for each metric, and their number.

    A repetition has its own folds and hidden cells, so only repetitions that all methods of a data set have count.
    """
    frame = store.frame("arena")
    frame = shared(frame[~frame["metric"].str.startswith(FAILURE)])
    by = ["data", "condition", "method"]
    wide: pd.DataFrame = frame.pivot_table(index=by, columns="metric", values="value", aggfunc="mean")
    return wide.assign(reps=frame.groupby(by)["rep"].nunique()).reset_index()


def shared(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of repetitions that all methods of a data set and condition have."""
    case = [frame["data"], frame["condition"]]
    methods = frame["method"].groupby(case).transform("nunique")
    there = frame["method"].groupby([*case, frame["rep"]]).transform("nunique")
    return frame[there == methods]


def failures(store: Store) -> pd.DataFrame:
    """Method, data, condition and the reason of every failure."""
    frame = store.frame("arena")
    failed = frame[frame["metric"].str.startswith(FAILURE)]
    reasons = failed["metric"].str.removeprefix(FAILURE)
    return failed.assign(reason=reasons)[["method", "data", "condition", "rep", "reason"]]


def table_of(wide: pd.DataFrame, condition: str, metric: str = "area") -> pd.DataFrame:
    """A metric of a condition: data sets x methods, NaN where a method has no number."""
    some = wide[(wide["condition"] == condition) & wide[metric].notna()]
    return some.pivot_table(index="data", columns="method", values=metric)


def standings(areas: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Methods by the share of games that they are expected to win against all others (data sets are games).

    Methods with a number on less than half of the data sets come last: their rank would be that of a few games.
    """
    scores = areas.to_numpy()
    share = expected_wins(wins(scores))
    rng = np.random.default_rng(seed)
    draws = np.stack([expected_wins(wins(scores[rng.integers(len(scores), size=len(scores))])) for _ in range(DRAWS)])
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    behind = areas.rsub(areas.max(axis=1), axis=0)
    made = pd.DataFrame(
        {
            "method": areas.columns,
            "wins": share,
            "low": low,
            "high": high,
            "behind": behind.mean().to_numpy(),
            "best": (behind <= TIE).sum().to_numpy(),
            "data": areas.notna().sum().to_numpy(),
        }
    )
    made["few"] = made["data"] < FEW * len(areas)
    return made.sort_values(["few", "wins"], ascending=[True, False], kind="stable").reset_index(drop=True)


def wins(scores: Array) -> Array:
    """W_ij: how often i beats j, over the data sets where both have a number; a tie is half a win."""
    gap = scores[:, :, None] - scores[:, None, :]
    won = np.where(np.abs(gap) <= TIE, 0.5, (gap > 0).astype(float))
    return np.asarray(np.where(np.isnan(gap), 0.0, won).sum(axis=0) * (1 - np.eye(scores.shape[1])))


def strengths(W: Array, steps: int = 100) -> Array:
    """Bradley-Terry: p(i beats j) = s_i / (s_i + s_j); the s of largest likelihood, by Newton steps in log s.

    Every method also has PRIOR games against a method of strength 1, half of them won.
    """
    log_s, games = np.zeros(len(W)), W + W.T
    for _ in range(steps):
        p = 1 / (1 + np.exp(log_s - log_s[:, None]))  # p_ij
        p_prior = 1 / (1 + np.exp(-log_s))
        gradient = W.sum(axis=1) + PRIOR / 2 - (games * p).sum(axis=1) - PRIOR * p_prior
        weight = games * p * (1 - p)
        curvature = np.diag(weight.sum(axis=1) + PRIOR * p_prior * (1 - p_prior)) - weight
        step = np.linalg.solve(curvature, gradient)
        log_s = log_s + np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-10:
            break
    return np.exp(log_s)


def expected_wins(W: Array) -> Array:
    """The mean over opponents of the probability to win."""
    s = strengths(W)
    share = s[:, None] / (s[:, None] + s)
    return np.asarray((share.sum(axis=1) - 0.5) / max(len(s) - 1, 1))
