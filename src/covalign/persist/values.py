"""Values as JSON and back: parameters, levels of categories, and the coding of tables.

A loaded level must equal the saved one, or new rows would not match it: text is not equal to a date. Types that JSON
does not have are therefore saved as a small object with the type, {"date": "2024-05-01"}.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from covalign.exceptions import CannotBeSavedError
from covalign.tables.column_coding import Column
from covalign.tables.confounders import Coding
from covalign.tables.covariates import Encoding


class Kind(NamedTuple):
    """A type that JSON does not have: how to write it, and how to read it."""

    type: type
    written: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _moment(saved: list[Any]) -> pd.Timestamp:
    clock, zone, unit = saved
    moment = pd.Timestamp(clock)
    return (moment if zone is None else moment.tz_localize("UTC").tz_convert(zone)).as_unit(unit)


def _clock(moment: pd.Timestamp) -> list[Any]:
    """Time in UTC, where no hour occurs twice, with the name of the time zone."""
    if moment.tz is None:
        return [moment.isoformat(), None, moment.unit]
    return [moment.tz_convert("UTC").tz_localize(None).isoformat(), str(moment.tz), moment.unit]


KINDS = {  # the first that fits counts: a Timestamp is also a date
    "timestamp": Kind(pd.Timestamp, _clock, _moment),
    "timedelta": Kind(pd.Timedelta, lambda t: [t.isoformat(), t.unit], lambda s: pd.Timedelta(s[0]).as_unit(s[1])),
    "period": Kind(pd.Period, lambda t: [t.ordinal, t.freqstr], lambda s: pd.Period(ordinal=s[0], freq=s[1])),
    "interval": Kind(
        pd.Interval,
        lambda i: [packed(i.left), packed(i.right), i.closed],
        lambda s: pd.Interval(unpacked(s[0]), unpacked(s[1]), s[2]),
    ),
    "datetime": Kind(datetime.datetime, lambda t: _clock(pd.Timestamp(t)), lambda s: _moment(s).to_pydatetime()),
    "date": Kind(datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "time": Kind(datetime.time, datetime.time.isoformat, datetime.time.fromisoformat),
    "decimal": Kind(decimal.Decimal, str, decimal.Decimal),
    "tuple": Kind(tuple, lambda t: [packed(item) for item in t], lambda s: tuple(map(unpacked, s))),
}


def packed(value: Any) -> Any:
    """The value as JSON, from which ``unpacked`` makes an equal value; an error if that is impossible."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    for name, kind in KINDS.items():
        if isinstance(value, kind.type) and value is not pd.NaT:
            return {name: kind.written(value)}
    what = type(value).__name__
    raise CannotBeSavedError(f"a model file holds text, numbers, flags, dates and intervals, got a {what}")


def unpacked(saved: Any) -> Any:
    """The value that was ``packed``."""
    if not isinstance(saved, dict):
        return saved
    ((name, written),) = saved.items()
    return KINDS[name].read(written)


def plain(value: Any) -> Any:
    """A parameter as JSON; as text if JSON does not have its type (a generator)."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def label(name: Any) -> Any:
    """The name of a row, ``packed`` if possible, else as text."""
    try:
        return packed(name)
    except CannotBeSavedError:
        return str(name)


def pack_coding(coding: Coding) -> dict[str, Any]:
    """The coding of covariates and confounders, as JSON."""
    return {
        "encoding": [_pack_column(column) for column in coding.covariates.columns],
        "confounders": [_pack_column(column) for column in coding.confounders.columns],
        "confounders_in_y": coding.named,
    }


def unpack_coding(meta: dict[str, Any]) -> Coding:
    """The coding that ``pack_coding`` packed."""
    return Coding(_encoding(meta["encoding"]), _encoding(meta["confounders"]), meta["confounders_in_y"])


def _pack_column(column: Column) -> list[Any]:
    try:
        return [column.source, column.kind, [packed(level) for level in column.levels], list(column.names)]
    except CannotBeSavedError as error:
        remedy = "fit with .astype(str) of this column, then save"
        raise CannotBeSavedError(f"{error} among the levels of {column.source!r}: {remedy}.") from None


def _encoding(saved: list[Any]) -> Encoding:
    return Encoding(
        tuple(Column(source, kind, tuple(map(unpacked, levels)), tuple(own)) for source, kind, levels, own in saved)
    )
