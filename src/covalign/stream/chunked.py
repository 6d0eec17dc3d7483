"""Chunked arrays on disk: zarr (formats 2 and 3) and HDF5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from covalign._core.extras import optional
from covalign._core.files import unreadable_data
from covalign.stream.source import Table, no_key, which_array


class ZarrRows(Table):
    """A zarr array. Its attribute ``names``, if there is one, names the columns."""

    def __init__(self, array: Any, where: str, **options: Any) -> None:
        self._array = array
        root = getattr(array.store, "root", None)  # of a store that is a folder
        self.origin = None if root is None else Path(root) / array.path
        names = array.attrs.get("names")
        if isinstance(names, list | tuple) and len(array.shape) == 2 and len(names) == array.shape[1]:
            options.setdefault("names", names)
        super().__init__(where, array.shape, array.dtype, unit=max(1, (array.chunks or (1,))[0]), **options)

    def _read(self, start: int, stop: int) -> Any:
        return self._array[start:stop]


class HdfRows(Table):
    """A dense HDF5 dataset. The file stays open as long as this is in use."""

    def __init__(self, dataset: Any, where: str, **options: Any) -> None:
        self._dataset, self.origin, self.layout = dataset, dataset.file.filename, dataset.name
        super().__init__(where, dataset.shape, dataset.dtype, unit=(dataset.chunks or (1,))[0], **options)

    def flush(self) -> None:
        """Write changes to the file; HDF5 keeps them in memory until then."""
        self._dataset.file.flush()

    def _read(self, start: int, stop: int) -> Any:
        return self._dataset[start:stop]


def from_zarr(path: Path, key: str | None, **options: Any) -> Table:
    """Rows of a zarr array in a folder, or of the array called ``key`` in a group."""
    zarr = optional("zarr", "zarr")
    try:
        node = zarr.open(str(path), mode="r")
    except (ValueError, KeyError, OSError) as error:  # damaged metadata, or none
        raise unreadable_data(path, "a zarr array", error) from error
    return open_node(node, key, str(path), **options)


def open_node(node: Any, key: str | None, where: str, **options: Any) -> Table:
    """Rows of a zarr array, or of the array ``key`` of a zarr group."""
    if not hasattr(node, "array_keys"):
        if key is not None:
            raise no_key(where, key)
        return ZarrRows(node, where, **options)
    have = sorted(node.array_keys())
    if key is None and len(have) == 1:
        (key,) = have
    if key is None or key not in node or hasattr(node[key], "array_keys"):
        raise which_array(where, key, have)
    return ZarrRows(node[key], f"{where}/{key}", **options)
