"""Fits that take less time, where it matters that code runs and not which numbers it gives."""

from __future__ import annotations

import pytest

from covalign.factor import supervision
from covalign.factor.inference import sweeps


def loosen(monkeypatch: pytest.MonkeyPatch, least: float = 0.1) -> None:
    """Let fits stop at a tolerance of at least this, with a fixed supervision."""
    fit = sweeps.fit

    def loose(problem, state, accelerate, max_iter, tol, **named):
        return fit(problem, state, accelerate, max_iter, max(tol, least), **named)

    monkeypatch.setattr(sweeps, "fit", loose)
    fix_supervision(monkeypatch)


def fix_supervision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``supervision="auto"`` be 1: its choice needs nine fits."""
    monkeypatch.setattr(supervision, "chosen", lambda model: supervision.WEIGHTS[0])
