"""Rows of the store that have the size of a profile, and their means."""

from __future__ import annotations

from typing import Any

import numpy as np

from covalign.study.profiles import Profile
from covalign.study.results_store import Store


def rows(store: Store, experiment: str, profile: Profile) -> Any:
    """An experiment's rows at this profile's size; LookupError if there are none."""
    simulated, real = {"n": [profile.n], "budget": [profile.budget]}, {"k": [profile.real_k]}
    sizes: dict[str, dict[str, Any]] = {
        "methods": simulated,
        "runtime": simulated,
        "tcga": {**real, "budget": [profile.real_budget]},
        "consistency": {"n": profile.sizes},
        "inference": {"n": profile.inference_sizes},
    }
    frame = store.frame(experiment)
    for column, values in sizes.get(experiment, {}).items():
        frame = frame[frame[column].isin(values)] if column in frame else frame
    if frame.empty:
        raise LookupError(experiment)
    return frame


def at_setting(frame: Any, scenario: str, alpha: float, b: float) -> Any:
    """Rows of one simulated setting; settings are stored with six digits."""
    near = np.isclose(frame["alpha"], alpha, atol=1e-4) & np.isclose(frame["b"], b, atol=1e-4)
    return frame[(frame["scenario"] == scenario) & near]


def means(frame: Any, metric: str, by: list[str]) -> Any:
    """Mean of a metric over repetitions."""
    one = frame[frame["metric"] == metric]
    if one.empty:
        raise LookupError(metric)
    return one.groupby(by)["value"].mean()
