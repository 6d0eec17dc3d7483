"""Damaged and hostile copies of files: bytes, JSON fields and arrays changed at random, from a seed."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 3, 10**30, 0.5, -0.5, 1e300, float("nan"), float("inf")),
    *("", "x", "1", "tunable", "nan", [], {}, [1], [[1]], {"a": 1}, {"date": "x"}, "\ud800", "a" * 10_000),
]


def unpacked(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON and the arrays of a model file."""
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    return json.loads(arrays.pop("meta.json").tobytes()), arrays


def pack(path: Path, meta: Any, arrays: dict[str, Any]) -> Path:
    """A model file of this JSON (or these bytes) and these arrays."""
    text = meta if isinstance(meta, bytes) else json.dumps(meta).encode()
    with path.open("wb") as file:
        np.savez(file, **{"meta.json": np.frombuffer(text, np.uint8), **arrays})
    return path


def edited_json(rng: np.random.Generator, meta: Any) -> Any:
    """A copy with one random value replaced, removed or added."""
    whole = copy.deepcopy(meta)
    here, steps = whole, int(rng.integers(1, 5))
    for step in range(steps):
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        if not keys:
            break
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(here[key], dict | list) and step < steps - 1:
            here = here[key]
            continue
        action = int(rng.integers(4))
        if action == 0:
            del here[key]
        elif action == 1 and isinstance(here, list):
            here.append(here[key])
        elif action == 2 and isinstance(here[key], int | float):
            here[key] = here[key] * int(rng.integers(-3, 4)) + int(rng.integers(-2, 3))
        else:
            here[key] = VALUES[int(rng.integers(len(VALUES)))]
        break
    return whole


def edited_array(rng: np.random.Generator, array: np.ndarray) -> Any:
    """Another kind, shape or number."""
    made = [
        lambda: array.T[..., None],
        lambda: array[:-1] if array.ndim else array[None],
        lambda: array.reshape(-1),
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array.astype(str),
        lambda: array.astype(complex),
        lambda: (
            array.astype(np.int8) if array.dtype.kind != "f" else np.nan_to_num(array).clip(-100, 100).astype(np.int8)
        ),
        lambda: array.astype("M8[s]") if array.dtype.kind == "i" else array.astype(bool),
        lambda: np.zeros(0),
        lambda: np.float64(1.0),
        lambda: -array if array.dtype.kind in "if" else ~array if array.dtype.kind == "b" else array,
        lambda: array * 0,
        *(
            [
                lambda v=v: changed(rng, array, v)
                for v in (np.nan, np.inf, -np.inf, 1e308, -1e200, 1e-310, 0.0, -1.0, 1e9)
            ]
        ),
    ]
    with np.errstate(all="ignore"):
        return np.asarray(made[int(rng.integers(len(made)))]())


def changed(rng: np.random.Generator, array: np.ndarray, value: float) -> np.ndarray:
    """One entry replaced."""
    other = np.array(array)
    if other.size:
        limits = (
            None
            if other.dtype.kind == "f"
            else 0
            if other.dtype.kind == "b"
            else int(np.clip(np.nan_to_num(value), -9, 9))
        )
        other.reshape(-1)[int(rng.integers(other.size))] = value if limits is None else limits
    return other


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes cut off, changed, repeated, or all at random."""
    action = int(rng.integers(5))
    if action == 0:
        return data[: int(rng.integers(len(data)))]
    if action == 1:
        return rng.bytes(int(rng.integers(2000)))
    if action == 2:
        return data[:4] + rng.bytes(int(rng.integers(2000)))
    other = bytearray(data)
    for at in rng.integers(len(data), size=int(rng.integers(1, 20))):
        other[at] = int(rng.integers(256))
    at = int(rng.integers(len(data)))
    return bytes(other) if action == 3 else bytes(other[:at] + other[at // 2 :])


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    """A zip archive."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def npy_bytes(array: Any, **header: Any) -> bytes:
    """An ``.npy`` file whose header may say something else."""
    file = io.BytesIO()
    if not header:
        np.save(file, array)
        return file.getvalue()
    told = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape, **header}
    np.lib.format.write_array_header_1_0(file, told)
    return file.getvalue() + array.tobytes()
