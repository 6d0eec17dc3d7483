"""Reading models back."""

from __future__ import annotations

from typing import Any

from covalign import _store as store
from covalign import _validation as errors
from covalign.factor.model import InformedFactorAnalysis
from covalign.factor.storage import KIND


def load(path: Any) -> InformedFactorAnalysis:
    """A model as it was saved: it transforms, realigns and goes on fitting to the same numbers."""
    meta, arrays = store.read(path)
    if meta.get("kind") != KIND:
        raise errors.unknown_model(path, meta.get("kind"))
    try:
        return InformedFactorAnalysis._restored(meta, arrays)
    except (KeyError, TypeError, IndexError) as error:
        raise errors.foreign_file(path) from error
