"""The fits without each fold as arrays, and back: a saved model has held-out numbers without a new fit.

All left-out samples are in one table. A piece of it is the moments of (T_0 z, y) over samples with the same covariates
(``incomplete.Part``), a part is the pieces of a bucket or group, and a fold has several parts. Covariates that a piece
does not have are filled with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from covalign._core.linalg import Array
from covalign.closed_form.heldout import HeldOut, LeftOut
from covalign.closed_form.regimes import Polar
from covalign.exceptions import CannotHoldOutError
from covalign.factor.cross_validation import Judged
from covalign.moments.incomplete import IncompleteMoments, Part, Rows
from covalign.moments.moments import Moments
from covalign.tables.covariates import Encoding

MOST_NUMBERS = 10_000_000  # with more, a file would be large; its model is fitted again without each fold
PLACES = ("in_regimes", "plain")  # the fields of ``Judged``
SUMS = ("mean_z", "mean_y", "cov_z", "cov_zy", "cov_y")


class SavedFolds(NamedTuple):
    """What a file has of the fits without each fold."""

    folds: dict[str, list[LeftOut]]

    def judged(self, model: Any) -> Judged:
        """With the polar forms of the model itself, which follow from the rest of its file."""
        grouped = model._groups is not None
        wholes = {"in_regimes": model._polar(), "plain": model._plain_polar()}
        return Judged(*(HeldOut(wholes[at], self.folds[at], grouped) for at in PLACES))


def pack(found: Judged | SavedFolds | CannotHoldOutError | None, folds: int) -> tuple[Any, dict[str, Array]]:
    """JSON (None: nothing is known) and arrays."""
    if found is None:
        return None, {}
    if isinstance(found, CannotHoldOutError):
        return {"folds": folds, "why_not": str(found)}, {}
    of = found.folds if isinstance(found, SavedFolds) else {at: getattr(found, at).folds for at in PLACES}
    arrays = {f"held.{at}.{name}": values for at in PLACES for name, values in _table(of[at]).items()}
    if sum(array.size for array in arrays.values()) > MOST_NUMBERS:
        return None, {}
    return {"folds": folds, "why_not": None}, arrays


def unpack(
    saved: Mapping[str, Any] | None, arrays: Mapping[str, Array], encoding: Encoding
) -> dict[int, SavedFolds | CannotHoldOutError]:
    """By the number of folds, as the model keeps them."""
    if saved is None:
        return {}
    if saved["why_not"] is not None:
        return {saved["folds"]: CannotHoldOutError(saved["why_not"])}
    return {saved["folds"]: SavedFolds({at: _left_out(f"held.{at}.", arrays, encoding) for at in PLACES})}


def _table(folds: Sequence[LeftOut]) -> dict[str, Array]:
    """The arrays of ``unpack``."""
    p = len(folds[0].polar.M)
    parts = [(fold, part) for fold, of in enumerate(folds) for part in of.parts]
    pieces = [(i, at, m) for i, (_, part) in enumerate(parts) for at, m in _pieces(part)]
    has = np.zeros((len(pieces), p), dtype=bool)
    for row, (_, at, _) in zip(has, pieces, strict=True):
        row[list(at.columns)] = True
    inverses = [of.polar.M_inverse for of in folds]
    return {
        "T_0": np.array([of.polar.T_0 for of in folds]),
        "M": np.array([of.polar.M for of in folds]),
        "M_inverse": np.array([np.zeros((p, p)) if inverse is None else inverse for inverse in inverses]),
        "invertible": np.array([inverse is not None for inverse in inverses]),
        "n_train": np.array([of.n_train for of in folds]),
        "fold": np.array([fold for fold, _ in parts]),
        "part": np.array([i for i, _, _ in pieces]),
        "has": has,
        "counts": np.array([at.counts for _, at, _ in pieces]),
        "n": np.array([m.n or 0 for _, _, m in pieces]),
        **{
            name: np.array([_widened(name, m, row) for row, (_, _, m) in zip(has, pieces, strict=True)])
            for name in SUMS
        },
    }


def _pieces(part: Rows) -> list[tuple[Part, Moments]]:
    if isinstance(part, Moments):
        return [(Part(tuple(range(part.cov_zy.shape[1])), True), part)]
    return [*part.parts.items()]


def _widened(name: str, m: Moments, has: Array) -> Array:
    """Sums with zeros for the covariates that the piece does not have."""
    where, p = np.flatnonzero(has), len(has)
    k, values = len(m.mean_z), getattr(m, name)
    if name == "mean_y":
        at: Any = where
        wide = np.zeros(p)
    elif name in ("cov_zy", "cov_y"):
        rows = np.arange(k) if name == "cov_zy" else where
        at, wide = np.ix_(rows, where), np.zeros((k if name == "cov_zy" else p, p))
    else:
        return np.asarray(values)
    wide[at] = values
    return wide


def _left_out(prefix: str, arrays: Mapping[str, Array], encoding: Encoding) -> list[LeftOut]:
    found = {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}
    parts: list[dict[Part, Moments]] = [{} for _ in found["fold"]]
    names = tuple(encoding.names)
    for i, part in enumerate(found["part"]):
        where = np.flatnonzero(found["has"][i])
        mean_z, mean_y, cov_z, cov_zy, cov_y = (found[name][i] for name in SUMS)
        sums = mean_z, mean_y[where], cov_z, cov_zy[:, where], cov_y[np.ix_(where, where)]
        at = Part(tuple(where.tolist()), bool(found["counts"][i]))
        parts[part][at] = Moments(int(found["n"][i]), *sums, tuple(names[c] for c in where))
    rows = [_rows(pieces, encoding.blocks, names) for pieces in parts]
    known = np.ones(len(names), dtype=bool)
    return [
        LeftOut(
            _polar(found["T_0"][fold], M, found["M_inverse"][fold] if found["invertible"][fold] else None, names),
            [part for part, of in zip(rows, found["fold"], strict=True) if of == fold],
            known,
            int(found["n_train"][fold]),
        )
        for fold, M in enumerate(found["M"])
    ]


def _rows(pieces: dict[Part, Moments], blocks: Any, names: tuple[str, ...]) -> Rows:
    complete = Part(tuple(range(len(names))), True)
    return pieces[complete] if [*pieces] == [complete] else IncompleteMoments(pieces, blocks, names)


def _polar(T_0: Array, M: Array, M_inverse: Array | None, names: tuple[str, ...]) -> Polar:
    """What held-out numbers need of a polar form: its whitening, which maps rows, is not saved."""
    null = np.empty((len(M), 0))
    if M_inverse is None:  # the combinations of covariates that M maps to 0
        values, vectors = np.linalg.eigh((M + M.T) / 2)
        null = vectors[:, values <= 1e-9 * max(float(values[-1]), 0.0)]
    return Polar(T_0, M, M_inverse, null, np.empty((0, len(M))), None, names)  # type: ignore[arg-type]  # as said above
