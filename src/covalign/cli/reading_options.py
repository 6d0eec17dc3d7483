"""How tables are read, by the options of a command, and what of it a model file keeps."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from covalign._core.messages import listed, message
from covalign.cli.options import ALL, NONE, Match


class Reading(NamedTuple):
    """How tables are read, besides their paths: checked before any of them is opened."""

    transpose: list[str]
    match: str
    strip: str | None
    log: list[str]
    top_variable: dict[str, int]
    ordered: dict[str, list[str]]
    by_position: bool
    na: list[str]

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of ``open_study``."""
        from covalign.tables.name_rules import NameRule
        from covalign.tables.view_layout import Layout

        rule = NameRule(self.match, self.strip)
        layout = Layout(self.transpose, rule, self.log, self.top_variable, not self.by_position)
        return {"layout": layout, "ordered": self.ordered, "na": self.na}

    def for_later(self, views: Sequence[str], **more: Any) -> dict[str, Any]:
        """What a model file says of the reading, so that new rows of these views are read in the same way.

        ``more`` are facts beside the options of tables. What has its default is left out.
        """
        asked = {"transpose": self.transpose, "log": self.log}
        named = {flag: [view for view in views if view in some or ALL in some] for flag, some in asked.items()}
        match = None if self.match == Match.exact.value else self.match
        every = {**named, "match": match, "strip": self.strip, "na": self.na, **more}
        return {name: value for name, value in every.items() if value}

    def recalled(self, saved: Mapping[str, Any]) -> Reading:
        """The reading with what a model file says."""
        return self._replace(**{name: value for name, value in saved.items() if name in self._fields})


def some_or_none(names: Sequence[str] | None, views: Sequence[str] | None) -> list[str]:
    """The names of views; ``none`` means that there are none, unless a view is called so."""
    given = [*(names or ())]
    return [] if given == [NONE] and NONE not in (views or ()) else given


def said_of(saved: Mapping[str, Any]) -> str:
    """What a model file says of the reading, as flags."""
    from covalign.tables.representations import SINGLE

    named = {name: value if isinstance(value, list) else [value] for name, value in saved.items() if name != "columns"}
    named |= {name: [ALL] for name in ("transpose", "log") if named.get(name) == [SINGLE]}
    return shlex.join(word for name, values in named.items() for one in values for word in (f"--{name}", one))


def check_views(flag: str, names: Sequence[str], views: Sequence[str] | None) -> None:
    """Refuse names of views that are not there; ``all`` means every view."""
    wrong = [] if views is None else [name for name in names if name not in (*views, ALL)]
    if wrong and views is not None:
        need = f"{flag} needs the name of a view or all" if views else f"{flag} needs all if the data are one file"
        remedy = f"The views are {listed(views)}" if views else f"Write {flag} all"
        problem = f"{need}, got {listed(wrong)}"
        raise ValueError(message(problem, remedy=remedy, wrong=wrong, known=views))


def most_of(text: str) -> tuple[str, int]:
    name, sign, number = text.rpartition("=")
    if not (number.isdecimal() and int(number) > 0 and bool(name) == bool(sign)):
        remedy = "write for example 2000, or rna=2000"
        raise ValueError(message("--top-variable needs a number of features", got=repr(text), remedy=remedy))
    return name or ALL, int(number)


def levels_of(text: str) -> tuple[str, list[str]]:
    name, _, order = text.partition("=")
    levels = [level.strip() for level in order.split("<")]
    if not name or len(levels) < 2 or not all(levels) or len({*levels}) < len(levels):
        got, remedy = repr(text), "write for example 'stage=i<ii<iii<iv', in quotes"
        raise ValueError(message("--ordered needs NAME=A<B<C with distinct levels", got=got, remedy=remedy))
    return name.strip(), levels


def views_in(data: Path | None, paths: dict[str, Path]) -> list[str] | None:
    """The names of the views; none for one file of rows, None for a file of several views."""
    return None if data is not None and data.suffix.lower() == ".h5mu" else [*paths]
