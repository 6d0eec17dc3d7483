"""Moments of (Z, Y), with and without gaps: exact, mergeable, from one pass over the rows."""

from covalign.moments.moments import Moments

__all__ = ["Moments"]
