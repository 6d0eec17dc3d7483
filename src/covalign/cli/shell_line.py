"""Command lines that a user can copy, with the arguments of the present one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import Enum
from typing import Any

import typer

from covalign.cli.options import DATA, METHOD

REGIME = ("regime", "lam", "max_coupling", "exact", "weight", "uncoupled")  # options that choose the regime


def again(ctx: typer.Context, name: str, panels: Sequence[str] = (DATA,), without: Sequence[str] = ()) -> str:
    """The command line ``covalign name`` with the same arguments, and the same options of some panels."""
    words: list[str] = []
    for param in ctx.command.params:
        value: Any = ctx.params.get(str(param.name))
        is_option = param.param_type_name == "option"
        if is_option and (getattr(param, "rich_help_panel", None) not in panels or param.name in without):
            continue
        if is_option and _plain(value) == _plain(param.default):
            continue
        if value is False and param.secondary_opts:  # --all-levels is the opposite of --drop-first
            words.append(param.secondary_opts[0])
        if value in (None, False, [], ()):
            continue
        first = [max(param.opts, key=len)] if is_option else []
        for one in value if isinstance(value, list | tuple) else [value]:
            words += first if one is True else [*first, _plain(one)]
    return line(name, *words)


def line(*words: Any) -> str:
    """A command line to copy."""
    return shlex.join(["covalign", *map(str, words)])


def refit(ctx: typer.Context) -> str:
    """The command line that fits the same model, without its regime: the report shows one for every regime."""
    return again(ctx, str(ctx.info_name), (DATA, METHOD), REGIME)


def _plain(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)
