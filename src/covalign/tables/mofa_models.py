"""Factor models of other packages as tables: factors, loadings, groups. Nothing in a file is executed or unpickled.

Three layouts are read.

- HDF5 as mofapy2 writes it (names in ``views``, ``groups``, ``features`` and ``samples``; ``expectations/Z/GROUP`` is
  K x N, ``expectations/W/VIEW`` is K x D). ``covalign.InformedFactorAnalysis.to_mofa`` and MuVI's ``save_as_hdf5``
  write it, too, with the names of factors in ``factors/GROUP``.
- HDF5 as MOFA-FLEX 0.1 writes it: the same in ``mofaflex/state``. Its member ``mofaflex/pickle`` is ignored.
- A folder as MuVI's ``save`` writes it: ``metadata.json`` and ``params.npz``. Its ``structure.npz`` is a pickle and is
  ignored, so factors have the order of ``metadata.json`` where their names allow that.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from covalign._core.extras import optional
from covalign._core.files import data_not_found, path_to_read
from covalign._core.linalg import Array
from covalign._core.messages import listed, message
from covalign._core.paths import exists, is_file, is_folder
from covalign.exceptions import FileFormatError, MissingExtraError
from covalign.tables.table_files import npz_arrays

SUFFIXES = (".hdf5", ".h5")
READABLE = (
    "covalign reads HDF5 files of mofapy2, of MuVI's save_as_hdf5, of MOFA-FLEX 0.1 and of covalign's to_mofa, "
    "and folders of MuVI's save"
)
HEAP = b"GCOL\x01\x00\x00\x00"
SMALL_BYTES, MOST_COMPRESSED = 2**24, 2000  # gzip makes nothing smaller than by 1032
POSITIVE = {"relu": lambda x: np.maximum(x, 0), "softplus": lambda x: np.logaddexp(x, 0)}


@dataclass(frozen=True, eq=False)
class FactorModel:
    """Factors Z (samples x factors) and loadings (view -> features x factors) of a fitted model, with all names.

    ``groups`` has the group of every sample, ``metadata`` what the file says of samples besides (often no columns).

    >>> import pandas as pd
    >>> from covalign.bridges.datasets import FactorModel
    >>> Z = pd.DataFrame({"Factor1": [0.3, -0.3]}, index=["s1", "s2"])
    >>> W = {"rna": pd.DataFrame({"Factor1": [1.0]}, index=["TP53"])}
    >>> FactorModel(Z, W, pd.Series("group1", Z.index), pd.DataFrame(index=Z.index)).Z.shape
    (2, 1)
    """

    Z: pd.DataFrame
    loadings: dict[str, pd.DataFrame]
    groups: pd.Series
    metadata: pd.DataFrame


def is_model(path: Path) -> bool:
    """Whether a path is a factor model of another package, as far as its outermost names tell."""
    if is_folder(path):
        return _is_muvi(path)
    if path.suffix.lower() not in SUFFIXES:
        return False
    h5py = optional("h5py", "mofa")
    try:
        with h5py.File(path, "r") as file:
            return "mofaflex" in file or "expectations" in file
    except Exception:  # damaged bytes can raise any error; whoever reads the file says what is wrong with it
        return False


def read_model(path: Any) -> FactorModel:
    """The model in a file or folder; anything malformed is an error that names the file and the member."""
    path = path_to_read(path, "a factor model")
    if not exists(path):
        raise data_not_found(path, "a factor model (an HDF5 file, or a folder of MuVI)")
    if is_folder(path):
        if not _is_muvi(path):
            raise _unknown(path, "a folder without metadata.json and params.npz")
        return _from_muvi(path)
    h5py = optional("h5py", "mofa")
    with _member(path, "the file itself"):
        _check_heaps(path)
    with _member(path, "the file itself"), h5py.File(path, "r") as file:
        members = Members(file, path)
        if "mofaflex/state" in members:
            return _from_mofaflex(members)
        if "expectations/Z" in members and "expectations/W" in members:
            return _from_mofa(members)
        raise _unknown(path, f"an HDF5 file with {listed(file) or 'no members'}")


def _unknown(path: Path, got: str) -> FileFormatError:
    """The error for a file that is no factor model, or one of another layout."""
    return FileFormatError(message(f"{str(path)!r} is no factor model that can be read, got {got}", remedy=READABLE))


def malformed(path: Path, at: str, why: Any) -> FileFormatError:
    """The error for a member that is not what it has to be."""
    problem = f"{str(path)!r} is damaged or no factor model: {at} {why}"
    return FileFormatError(message(problem, remedy=f"Save the model again. {READABLE}"))


@contextmanager
def _member(path: Path, at: str) -> Iterator[None]:
    """A block that reads a member: its errors become ``malformed``."""
    try:
        yield
    except (FileFormatError, MissingExtraError):
        raise
    except Exception as error:  # damaged bytes can raise any error in a parser, and all mean the same
        raise malformed(
            path, at, f"cannot be read ({str(error).partition(chr(10))[0] or type(error).__name__})"
        ) from error


def _check_heaps(path: Path) -> None:
    """Refuse damaged heaps, where HDF5 keeps text: its library may walk through them without end.

    A heap is a signature, its size, and objects: a number, 6 bytes, a size, and data that fill whole words. Number 0 is
    free space, whose size counts these 16 bytes, too.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = content.find(HEAP)
        while start >= 0:
            here = start + 16
            end = start + int.from_bytes(content[start + 8 : here], "little")
            while here + 16 <= end <= len(content):
                number, size = struct.unpack_from("<H6xQ", content, here)
                step = size if number == 0 else 16 + -(-size // 8) * 8
                if step < 16:
                    break
                here += step
            if not end - 16 < here <= end <= len(content):
                raise malformed(path, "the file itself", f"has a damaged list of texts at byte {start}")
            start = content.find(HEAP, max(end, start + len(HEAP)))


def _length_of_texts(path: Path, found: Any) -> int:
    """Bytes of all texts of a dataset as it declares them; HDF5 would allocate them before it looks at any.

    Known of texts of any length in one piece, as mofapy2 writes them, and 0 for others.
    """
    at = found.id.get_offset()
    if at is None or found.dtype.kind != "O":
        return 0
    declared = np.dtype([("length", "<u4"), ("heap", "<u8"), ("number", "<u4")])
    return int(np.fromfile(path, declared, found.size, offset=at)["length"].sum(dtype=np.uint64))


# -- members of HDF5 files --------------------------------------------------------------------------------------------


class Members:
    """The members of an open HDF5 file, checked before they are read."""

    def __init__(self, file: Any, path: Path) -> None:
        self.file, self.path = file, path
        self._h5py = optional("h5py", "mofa")

    def __contains__(self, at: str) -> bool:
        """Whether there is such a member."""
        return self._find(at) is not None

    def keys(self, at: str) -> list[str]:
        """Names of the members of a group; none where there is no group."""
        group = self._find(at)
        return list(group) if isinstance(group, self._h5py.Group) else []

    def names(self, at: str) -> list[str]:
        """Distinct names, at least one: a dataset of text, or what anndata makes of text that may have gaps."""
        where = f"{at}/values" if f"{at}/values" in self else at
        names = self._text(where)
        repeated = [name for name, count in pd.Series(names).value_counts().items() if count > 1]
        if repeated:
            raise malformed(self.path, at, f"needs distinct names, got {listed(repeated)} more than once")
        if not names:
            raise malformed(self.path, at, "needs at least one name, got none")
        return names

    def numbers(self, at: str, shape: Sequence[int | None]) -> Array:
        """Finite numbers of this shape (None: any number of rows, at least 1)."""
        found = self._dataset(at)
        fits = len(found.shape) == len(shape) and all(
            have == need or (need is None and have > 0) for have, need in zip(found.shape, shape, strict=True)
        )
        if not fits or found.dtype.kind not in "fiu":
            need = " x ".join("K" if size is None else str(size) for size in shape)
            raise malformed(self.path, at, f"needs {need} numbers, got {found.dtype} of shape {found.shape}")
        with _member(self.path, at):
            values = np.asarray(found[()], dtype=np.float64)
        if not np.isfinite(values).all():
            raise malformed(self.path, at, "needs finite numbers, got NaN or infinity")
        return values

    def column(self, at: str, n: int) -> Array | list[str] | None:
        """n numbers (NaN where missing) or texts; None for anything else."""
        found = self._dataset(at)
        if found.shape != (n,):
            raise malformed(self.path, at, f"needs one value for each of {n} samples, got shape {found.shape}")
        if self._h5py.check_string_dtype(found.dtype) is not None:
            return self._text(at)
        with _member(self.path, at):
            return np.asarray(found[()]) if found.dtype.kind in "fiub" else None

    def _text(self, at: str) -> list[str]:
        found = self._dataset(at)
        if len(found.shape) != 1 or self._h5py.check_string_dtype(found.dtype) is None:
            raise malformed(self.path, at, f"needs a list of names, got {found.dtype} of shape {found.shape}")
        with _member(self.path, at):
            if _length_of_texts(self.path, found) > self.path.stat().st_size:
                raise malformed(self.path, at, "has texts longer than the file")
            return [str(name) for name in found.asstr()[()]]

    def _dataset(self, at: str) -> Any:
        """A dataset whose values are in this file, and not many more than its bytes can hold."""
        found = self._find(at)
        if found is None:
            raise malformed(self.path, at, "is missing")
        with _member(self.path, at):
            if not isinstance(found, self._h5py.Dataset) or found.shape is None:
                raise malformed(self.path, at, "needs values, got a group or nothing")
            if found.is_virtual or found.external:
                raise malformed(self.path, at, "refers to another file")
            declared = int(found.size) * found.dtype.itemsize
            if declared > SMALL_BYTES and declared > MOST_COMPRESSED * found.id.get_storage_size():
                raise malformed(self.path, at, f"declares {declared} bytes and has {found.id.get_storage_size()}")
        return found

    def _find(self, at: str) -> Any:
        """The member, or None. Links are not followed, because they can lead out of the file."""
        here = self.file
        with _member(self.path, at):
            for name in filter(None, at.split("/")):
                link = here.get(name, getlink=True) if isinstance(here, self._h5py.Group) else None
                if link is None:
                    return None
                if not isinstance(link, self._h5py.HardLink):
                    raise malformed(self.path, at, "is a link to another place")
                here = here[name]
        return here


# -- layouts ----------------------------------------------------------------------------------------------------------


def _from_mofa(members: Members) -> FactorModel:
    """The layout of mofapy2; files of its first versions have no lists of views and groups."""
    groups = members.names("groups/groups") if "groups" in members else members.keys("samples")
    views = members.names("views/views") if "views" in members else members.keys("features")
    if not groups or not views:
        raise malformed(members.path, "samples and features", "need at least one group and one view")
    samples = {group: members.names(f"samples/{group}") for group in groups}
    features = {view: members.names(f"features/{view}") for view in views}
    k = len(members.numbers(f"expectations/Z/{groups[0]}", (None, len(samples[groups[0]]))))
    stored = f"factors/{groups[0]}"
    factors = members.names(stored) if stored in members else [f"Factor{i + 1}" for i in range(k)]
    if len(factors) != k:
        raise malformed(members.path, stored, f"needs {k} names of factors, got {len(factors)}")
    Z = {group: members.numbers(f"expectations/Z/{group}", (k, len(samples[group]))).T for group in groups}
    W = {view: members.numbers(f"expectations/W/{view}", (k, len(features[view]))).T for view in views}
    return _model(factors, samples, features, Z, W, _metadata(members, samples))


def _metadata(members: Members, samples: Mapping[str, list[str]]) -> pd.DataFrame | None:
    """Columns that all groups have."""
    kept = [members.keys(f"samples_metadata/{group}") for group in samples]
    shared = [name for name in kept[0] if name not in ("sample", "group") and all(name in keys for keys in kept)]
    parts = []
    for group, names in samples.items():
        columns = {name: members.column(f"samples_metadata/{group}/{name}", len(names)) for name in shared}
        parts.append(
            pd.DataFrame({name: values for name, values in columns.items() if values is not None}, index=names)
        )
    return pd.concat(parts, join="inner")


def _from_mofaflex(members: Members) -> FactorModel:
    """The layout of MOFA-FLEX. With a spike-and-slab prior a value is its mean times its probability, as there."""
    state = "mofaflex/state"
    samples = {g: members.names(f"{state}/sample_names/{g}") for g in members.names(f"{state}/group_names")}
    features = {v: members.names(f"{state}/feature_names/{v}") for v in members.names(f"{state}/view_names")}
    factors = members.names(f"{state}/factor_names")

    def means(what: str, name: str, n: int) -> Array:
        values = members.numbers(f"{state}/{what}/mean/{name}", (len(factors), n))
        sparse = f"{state}/sparse_{what}_probabilities/{name}"
        return (values * members.numbers(sparse, values.shape) if sparse in members else values).T

    Z = {group: means("factors", group, len(names)) for group, names in samples.items()}
    W = {view: means("weights", view, len(names)) for view, names in features.items()}
    return _model(factors, samples, features, Z, W)


def _is_muvi(folder: Path) -> bool:
    return is_file(folder / "metadata.json") and is_file(folder / "params.npz")


def _from_muvi(folder: Path) -> FactorModel:
    """The layout of MuVI: posterior locations in the first order of the factors, each with positive loadings."""
    facts, params = folder / "metadata.json", folder / "params.npz"
    with _member(facts, "the file itself"):
        meta = json.loads(facts.read_bytes())
        views, samples = _texts(meta["view_names"]), _texts(meta["sample_names"])
        features = {view: _texts(meta["feature_names"][view]) for view in views}
        first, shown = _texts(meta["_old_factor_names"]), _texts(meta["factor_names"])
        positive = {view: bool(meta["nmf"][view]) for view in views}
        made_positive = POSITIVE.get(meta["pos_transform"]) if any(positive.values()) else None
        if any(positive.values()) and made_positive is None:
            raise malformed(facts, "pos_transform", f"needs {listed(POSITIVE)}, got {meta['pos_transform']!r}")
    with _member(params, "the file itself"):
        arrays = npz_arrays(params)
    Z = _located(arrays, params, "z", (len(samples), len(first)))
    W = {v: _located(arrays, params, f"w_{m}", (len(first), len(features[v]))).T for m, v in enumerate(views)}
    if made_positive is not None:
        Z, W = made_positive(Z), {view: made_positive(w) if positive[view] else w for view, w in W.items()}
    else:
        sign = _signs(np.vstack(list(W.values())))
        Z, W = Z * sign, {view: w * sign for view, w in W.items()}
    model = _model(first, {"group_0": samples}, features, {"group_0": Z}, W)
    if sorted(shown) != sorted(first):  # renamed: only the pickle has their order
        return model
    loadings = {view: frame[shown] for view, frame in model.loadings.items()}
    return FactorModel(model.Z[shown], loadings, model.groups, model.metadata)


def _signs(W: Array) -> Array:
    """MuVI's signs: the sum of the 100 largest loadings of a factor is positive."""
    top = np.argsort(-np.abs(W), axis=0, kind="stable")[:100]
    return np.where(np.take_along_axis(W, top, axis=0).sum(axis=0) > 0, 1.0, -1.0)


def _texts(values: Any) -> list[str]:
    """A list of distinct names in JSON."""
    if not isinstance(values, list) or not values or not all(isinstance(value, str | int | float) for value in values):
        raise ValueError("names need to be a list of text")
    names = [str(value) for value in values]
    if len(set(names)) < len(names):
        raise ValueError("names need to be distinct")
    return names


def _located(arrays: Mapping[str, Any], path: Path, site: str, shape: tuple[int, int]) -> Array:
    """The location of a variable. It is a real number, so pyro's unconstrained value is the same."""
    at = f"loc::{site}_unconstrained" if f"loc::{site}_unconstrained" in arrays else f"loc::{site}"
    values = arrays.get(at)
    if values is None:
        raise malformed(path, at, "is missing")
    if values.shape != shape or values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        need = " x ".join(map(str, shape))
        raise malformed(path, at, f"needs {need} finite numbers, got {values.dtype} of shape {values.shape}")
    return np.asarray(values, dtype=np.float64)


def _model(
    factors: list[str],
    samples: Mapping[str, list[str]],
    features: Mapping[str, list[str]],
    Z: Mapping[str, Array],
    W: Mapping[str, Array],
    metadata: pd.DataFrame | None = None,
) -> FactorModel:
    """Frames of all groups, one below the other, and of every view."""
    index = pd.Index([name for names in samples.values() for name in names], name="sample")
    groups = pd.Series(np.repeat(list(samples), [len(names) for names in samples.values()]), index, name="group")
    frame = pd.DataFrame(np.vstack([Z[group] for group in samples]), index, factors)
    loadings = {
        view: pd.DataFrame(W[view], pd.Index(names, name="feature"), factors) for view, names in features.items()
    }
    return FactorModel(
        frame, loadings, groups, pd.DataFrame(index=index) if metadata is None else metadata.set_axis(index)
    )
