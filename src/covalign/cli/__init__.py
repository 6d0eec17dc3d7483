"""The command line: one file for each command, registered in the order of the help."""

# ruff: noqa: F401, I001 (imported for their commands, in the order of the help)

from covalign.cli import (
    command_check,
    command_align,
    command_fit,
    command_transform,
    command_frontier,
    command_compare,
    command_simulate,
    command_info,
    command_features,
    command_enrich,
    command_associations,
    command_report,
    command_reproduce,
    command_arena,
    command_embed,
)
from covalign.cli.application import app, main

__all__ = ["app", "main"]
