"""Results as tidy rows: one file per experiment, appended unit by unit, so that finished work is never lost.

The rows of a unit are written at once and end with a row ``done``. After a crash, rows without it are ignored, and the
unit is run again.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pandas as pd

from covalign._core.files import locked
from covalign.study.profiles import Profile

COLUMNS = ["experiment", "method", "setting", "rep", "metric", "value"]
DONE = "done"


class Unit(NamedTuple):
    """The smallest piece of work: one method (or family fitted at once), one setting, one repetition."""

    experiment: str
    method: str
    setting: str  # "scenario=PN alpha=1 b=1 n=500"
    rep: int

    @property
    def at(self) -> dict[str, str]:
        """The setting as a dict."""
        return parsed(self.setting)


class Row(NamedTuple):
    """One number. ``method`` may be finer than the unit's: one iFA fit gives a row for every lambda."""

    method: str
    metric: str
    value: float


def setting(**values: object) -> str:
    """Settings as one readable string, numbers in their shortest form."""
    texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in values.items()}
    return " ".join(f"{name}={text}" for name, text in texts.items())


def parsed(text: str) -> dict[str, str]:
    """The settings in such a string."""
    return dict(pair.split("=", 1) for pair in text.split())


class Store:
    """A folder of CSV files."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, experiment: str) -> Path:
        """The file of an experiment."""
        return self.folder / f"{experiment}.csv"

    def append(self, unit: Unit, rows: Iterable[Row]) -> None:
        """Add a finished unit."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row in [*rows, Row(unit.method, DONE, 1.0)]:
            writer.writerow([unit.experiment, row.method, unit.setting, unit.rep, row.metric, repr(float(row.value))])
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.path(unit.experiment)) as file:
            _drop_unfinished(file)
            if file.seek(0, os.SEEK_END) == 0:
                file.write((",".join(COLUMNS) + "\n").encode())
            file.write(text.getvalue().encode())
            file.flush()
            os.fsync(file.fileno())

    def units(self, experiment: str) -> set[Unit]:
        """The finished units."""
        rows = self._rows(experiment)
        done = rows[rows["metric"] == DONE]
        return {Unit(experiment, *key) for key in zip(done["method"], done["setting"], done["rep"], strict=True)}

    def frame(self, experiment: str) -> pd.DataFrame:
        """The rows of finished units, with a column for each setting (numbers as numbers)."""
        rows = self._rows(experiment)
        whole = (rows["metric"] == DONE)[::-1].cummax()[::-1]  # rows after the last "done" are unfinished
        rows = rows[whole & (rows["metric"] != DONE)]
        rows = rows.drop_duplicates(COLUMNS[:-1], keep="last").reset_index(drop=True)
        settings = pd.DataFrame([parsed(text) for text in rows["setting"]], index=rows.index)
        for name in settings.columns:
            numbers = pd.to_numeric(settings[name], errors="coerce")
            if numbers.notna().equals(settings[name].notna()):
                settings[name] = numbers
        return pd.concat([rows, settings], axis=1)

    def _rows(self, experiment: str) -> pd.DataFrame:
        path = self.path(experiment)
        text = path.read_text() if path.exists() else ""
        text = text[: text.rfind("\n") + 1]  # an incomplete last line is ignored
        if not text:
            return pd.DataFrame(columns=COLUMNS).astype({"rep": int, "value": float})
        types = {"method": str, "setting": str, "rep": int, "metric": str, "value": float}
        return pd.read_csv(io.StringIO(text), dtype=types, keep_default_na=False, na_values={"value": ["nan"]})


class ReadOnce(Store):
    """A store whose files do not change while it is used: each is read once."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.folder)
        self._frames: dict[str, pd.DataFrame] = {}

    def frame(self, experiment: str) -> pd.DataFrame:
        """The rows of finished units."""
        if experiment not in self._frames:
            self._frames[experiment] = super().frame(experiment)
        return self._frames[experiment]


def _drop_unfinished(file: BinaryIO) -> None:
    """Cut the file after its last ``done`` row (or its header): what follows is unfinished."""
    file.seek(0)
    text = file.read()
    last = max(text.rfind(f",{DONE},1.0\n".encode()), 0)
    file.truncate(text.find(b"\n", last) + 1)


# -- rows of the size of a profile ------------------------------------------------------------------------------------


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
