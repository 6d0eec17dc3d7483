"""The command line: one file for each kind of command, registered in the order of the help."""

from covalign.cli import base, models, simulating, studying, embedding  # noqa: F401, I001 (the order of the help)
from covalign.cli.base import app, main

__all__ = ["app", "main"]
