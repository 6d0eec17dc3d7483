"""Load saved models."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from covalign._core.messages import message
from covalign.exceptions import FileFormatError
from covalign.persist import archive as store
from covalign.persist.model_fields import CHECKS
from covalign.persist.schema import Fault

if TYPE_CHECKING:
    from covalign import InformedFactorAnalysis, LatentAligner

# Kind of model in a file -> the module of its class, imported when a file of that kind is read.
KINDS = {"LatentAligner": "covalign.aligner.latent", "InformedFactorAnalysis": "covalign.factor.informed"}


def load(path: Any) -> LatentAligner | InformedFactorAnalysis:
    """Load a saved model of either kind. It transforms, realigns and continues to fit as the original would.

    >>> import covalign as ca, tempfile, pathlib
    >>> data = ca.simulate.scenario("PN", n_samples=100)
    >>> aligner = ca.LatentAligner().fit(data.Z, data.Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     aligner.save(pathlib.Path(folder) / "model.covalign")
    ...     same = ca.load(pathlib.Path(folder) / "model.covalign")
    >>> bool((same.transform(data.Z) == aligner.transform(data.Z)).all())
    True
    """
    return opened(path)[1]


def opened(path: Any) -> tuple[dict[str, Any], LatentAligner | InformedFactorAnalysis]:
    """The header of a model's file, and the model."""
    meta, arrays = store.read(path)
    kind = meta.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        problem = f"{str(path)!r} holds a kind of model that this covalign does not know: {kind!r}"
        raise FileFormatError(message(problem, remedy="Update covalign"))
    try:
        with np.errstate(all="ignore"):  # of numbers that no fit has: the results are checked
            CHECKS[kind](meta, arrays)
            model = getattr(import_module(KINDS[kind]), kind)._restored(meta, arrays)
    except Fault as fault:
        raise store.wrong_field(path, fault.field, fault.why) from fault
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        AssertionError,
        RecursionError,
    ) as error:
        raise store.foreign_file(path) from error
    return meta, model
