"""The options of tables as one value: commands have them beside their own, and users see one flat list."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covalign.cli import options
from covalign.cli.reading_options import Reading, check_views, levels_of, most_of

if TYPE_CHECKING:
    from covalign.tables.representations import Study


@dataclass(frozen=True)
class TableOptions:
    """How rows are named, matched and read, and which of them belong together."""

    groups: options.Groups = None
    index: options.Index = None
    by_position: options.ByPosition = False
    transpose: options.Transpose = None
    match: options.MatchNames = options.Match.exact
    strip: options.Strip = None
    na: options.Na = None
    log: options.Log = None
    ordered: options.Ordered = None
    key: options.Key = None

    def reading(self, views: Sequence[str] | None = (), top_variable: Sequence[str] | None = None) -> Reading:
        """These options, checked. Without names of ``views`` there is one view, which only ``all`` can mean.

        None means that the names are in the file.
        """
        transpose, log = [*(self.transpose or ())], [*(self.log or ())]
        for flag, names in (("--transpose", transpose), ("--log", log)):
            check_views(flag, names, views)
        if self.strip is not None:
            from covalign._core.checks import check_pattern

            check_pattern("--strip", self.strip)
        most = dict(most_of(text) for text in top_variable or ())
        check_views("--top-variable", [*most], views)
        levels = dict(levels_of(text) for text in self.ordered or ())
        return Reading(transpose, self.match.value, self.strip, log, most, levels, self.by_position, [*(self.na or ())])

    def open(
        self,
        data: Path | None,
        paths: Mapping[str, Path],
        covariates: Path | None,
        asked: Reading,
        covariate: Sequence[str] | None,
        confounder: Sequence[str] | None = None,
    ) -> Study:
        """The data and covariates of these files."""
        from covalign.tables.representations import open_study

        roles = (covariate, confounder, self.index, self.key)
        return open_study(data, dict(paths), covariates, *roles, groups=self.groups, **asked.settings)


def flat(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the options of its parameter ``tables`` beside its own."""
    own = inspect.signature(command, eval_str=True).parameters
    theirs = inspect.signature(TableOptions, eval_str=True).parameters
    both = {n: p for name, one in own.items() for n, p in (theirs if name == "tables" else {name: one}).items()}

    @wraps(command)
    def run(**given: Any) -> Any:
        tables = TableOptions(**{field.name: given.pop(field.name) for field in fields(TableOptions)})
        return command(tables=tables, **given)

    vars(run)["__signature__"] = inspect.Signature(list(both.values()))
    run.__annotations__ = {name: one.annotation for name, one in both.items()}
    return run
