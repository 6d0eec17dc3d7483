"""The command line: one file for each kind of command, registered in the order of the help."""

# ruff: noqa: F401, I001 (imported for their commands, in the order of the help)

from covalign.cli import base
from covalign.cli import aligning, factoring, transforming, frontiers, comparing, simulating, models
from covalign.cli import studying, embedding
from covalign.cli.base import app, main

__all__ = ["app", "main"]
