"""What users are told: rows in files, streams and clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

from covalign._core.validation.base import some
from covalign.exceptions import DiskFullError, NotFiniteError, TargetExistsError

ROW_SOURCES = (
    "an array or DataFrame, a scipy sparse matrix, a numpy.memmap, a torch tensor, a zarr array, a dask array or "
    "DataFrame, an AnnData, an HDF5 dataset, or a path to .npy, .npz, .zarr, .parquet (file or folder) or .h5ad"
)


def unknown_source(name: str, got: Any) -> ValueError:
    return ValueError(f"{name} needs {ROW_SOURCES}, got {type(got).__name__}: convert it to one of these.")


def unknown_suffix(name: str, path: Any) -> ValueError:
    return ValueError(f"{name} needs {ROW_SOURCES}, got the path {str(path)!r}: rename or convert the file.")


def source_without_rows(where: str, shape: Sequence[Any]) -> ValueError:
    return ValueError(
        f"{where} needs at least one row and one column, got shape {tuple(shape)}: check that the data were written."
    )


def truncated_file(path: Any, need: int, got: int) -> ValueError:
    return ValueError(
        f"{str(path)!r} needs {need} bytes according to its header, got {got}: the file is truncated, copy or write it "
        "again."
    )


def pickled_file(path: Any) -> ValueError:
    return ValueError(
        f"{str(path)!r} needs plain numbers, got pickled objects, which are never loaded because they can run code: "
        "save the array with a numeric dtype."
    )


def which_array(where: Any, key: Any, have: Iterable[Any]) -> ValueError:
    got = "no key" if key is None else f"key={key!r}"
    return ValueError(
        f"{str(where)!r} needs the name of one of its arrays, got {got}: pass key= with one of "
        f"{some(have, 10) or 'none (it holds no array)'}."
    )


def key_without_meaning(name: str, key: Any) -> ValueError:
    return ValueError(
        f"{name} needs no key=, got {key!r}: a key names an array within an .npz, .zarr or .h5ad; leave it out here."
    )


def empty_folder(path: Any) -> ValueError:
    return ValueError(f"a folder with .parquet files is needed, got {str(path)!r}, which has none: correct the path.")


def column_not_numeric(where: str, column: Any, kind: Any) -> ValueError:
    return ValueError(
        f"{where} needs numbers in every column, got {kind} in column {str(column)!r}: convert it, or choose the "
        "others with columns=."
    )


def repeated_columns(where: str, names: Iterable[Any]) -> ValueError:
    return ValueError(f"{where} needs distinct column names, got {some(names)} more than once: rename or drop them.")


def schema_changed(file: Any, column: Any, need: Any, got: Any) -> ValueError:
    return ValueError(
        f"{str(file)!r} needs column {str(column)!r} to be {need} as in the first file of the folder, got {got}: write "
        "the file again with the same columns, or choose common ones with columns=."
    )


def lists_differ(file: Any, column: Any, need: int, got: Any) -> ValueError:
    return ValueError(
        f"{str(file)!r} needs lists of {need} numbers in column {str(column)!r} as in its first row, got {got} in "
        "another: drop such rows, or pad the lists."
    )


def columns_not_there(where: str, wrong: Iterable[Any], known: Iterable[Any]) -> ValueError:
    return ValueError(f"columns= needs columns of {where} ({some(known, 8)}), got {some(wrong)}: correct the names.")


def columns_without_names(where: str, wrong: Iterable[Any], width: int) -> ValueError:
    return ValueError(
        f"columns= needs positions from 0 to {width - 1}, since {where} has no column names, got {some(wrong)}: "
        "pass whole numbers."
    )


def not_finite_at(what: str, value: Any, row: int, column: int, name: Any = None, label: Any = None) -> NotFiniteError:
    number = "NaN" if value != value else value
    of_row = f"row {row}" if label is None else f"row {row} ({str(label)!r})"
    of_column = f"column {column}" if name is None else f"column {str(name)!r}"
    error = NotFiniteError(
        f"{what} needs finite numbers, got {number} in {of_row}, {of_column}: drop or impute such rows first."
    )
    error.row, error.column, error.value = row, column, value
    return error


def by_columns(where: str) -> str:
    return (
        f"{where} is sparse and stored by columns, so its rows cannot be read a chunk at a time: its nonzero values "
        "are loaded at once. Store it by rows (csr) to keep memory small."
    )


def check_chunk_rows(rows: Any) -> int:
    """A number of rows in a chunk."""
    if isinstance(rows, Integral) and not isinstance(rows, bool) and int(rows) >= 1:
        return int(rows)
    raise ValueError(f"chunk_rows needs a whole number of at least 1, got {rows!r}: leave it out to have it chosen.")


def check_start(start: Any, n: int) -> int:
    """A row to begin at."""
    if isinstance(start, Integral) and not isinstance(start, bool) and 0 <= int(start) <= n:
        return int(start)
    raise ValueError(f"start needs a row from 0 to {n}, got {start!r}: 0 reads everything.")


def not_a_stream(got: Any) -> ValueError:
    return ValueError(
        f"rows without Y need an iterable of (Z, Y) batches, got {type(got).__name__}: pass Y, or yield pairs."
    )


def not_a_pair(batch: int, got: Any) -> ValueError:
    return ValueError(f"every batch needs to be a pair (Z, Y), got {type(got).__name__} in batch {batch}: yield pairs.")


def batch_columns_differ(batch: int, what: str, need: int, got: int) -> ValueError:
    return ValueError(
        f"{what} needs {need} columns in every batch as in the first, got {got} in batch {batch}: yield the same "
        "columns every time."
    )


def batch_names_differ(batch: int, what: str, need: Sequence[Any], got: Sequence[Any]) -> ValueError:
    pairs = [(a, b) for a, b in zip(need, got, strict=True) if a != b]
    return ValueError(
        f"{what} needs the columns of the first batch in the same order, got {str(pairs[0][1])!r} in place of "
        f"{str(pairs[0][0])!r} in batch {batch}: reorder or rename the columns."
    )


def batch_lengths_differ(batch: int, n_z: int, n_y: int) -> ValueError:
    return ValueError(
        f"Z and Y need the same number of rows (samples), got {n_z} and {n_y} in batch {batch}: yield one row of "
        "covariates per row of Z."
    )


def stream_used_up() -> ValueError:
    return ValueError(
        "a stream of batches can be read once, and it was: pass a new generator, or something that can be read again "
        "(a list of batches, or a path)."
    )


def unknown_sink(path: Any) -> ValueError:
    return ValueError(
        f"results can be written to .npy, .zarr or .parquet, got the path {str(path)!r}: choose one of these suffixes."
    )


def target_exists(path: Any, remedy: str = "pass overwrite=True") -> TargetExistsError:
    return TargetExistsError(
        f"a path without a file is needed for results, got {str(path)!r}, which exists: choose another, or {remedy}."
    )


def folder_in_the_way(option: str, path: Any) -> ValueError:
    return ValueError(
        f"{option} needs a name that no folder has, got {str(path)!r}, which is one: choose another, or remove the "
        "folder yourself (only files are replaced)."
    )


def being_written(path: Any) -> ValueError:
    return ValueError(
        f"results need one writer at a time, got a second one for {str(path)!r}: wait for the other, or choose another "
        "path."
    )


def sink_shape(path: Any, shape: Any) -> ValueError:
    return ValueError(f"results in {str(path)!r} need a shape of rows and columns, both at least 1, got {shape}.")


def sink_names(path: Any, need: int, names: Sequence[Any]) -> ValueError:
    return ValueError(
        f"results in {str(path)!r} need {need} distinct column names, got {some(names)} ({len(names)}): pass one name "
        "a column."
    )


def sink_rows_differ(path: Any, need: tuple[Any, ...], got: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"rows written to {str(path)!r} need shape (at most {need[0]}, {need[1]}), got {got}: pass shape= of all rows "
        "to open_sink, and write no more than that."
    )


def rows_missing(path: Any, need: int, got: int) -> ValueError:
    return ValueError(
        f"{str(path)!r} needs {need} rows, got {got} before it was closed: nothing was put there; write the rest (the "
        "same call goes on where this one stopped)."
    )


def disk_full(path: Any, need: int, free: int | None, done: int) -> DiskFullError:
    room = "" if free is None else f", {free} are free"
    return DiskFullError(
        f"{str(path)!r} needs about {need} bytes more on its disk{room}: the disk is full or a size limit was reached. "
        f"Make room and call again with the same arguments: it goes on at row {done}."
    )


def partitions_differ(n_z: int, n_y: int) -> ValueError:
    return ValueError(
        f"Z and Y in dask need the same partitions, got {n_z} and {n_y}: repartition one like the other "
        "(Y.repartition(divisions=Z.divisions)), or pass Y from memory."
    )


def partition_lengths_differ(partition: int, n_z: int, n_y: int) -> ValueError:
    return ValueError(
        f"Z and Y need the same number of rows in every partition, got {n_z} and {n_y} in partition {partition}: cut "
        "both in the same way, or pass Y from memory."
    )


def levels_unknown(column: str) -> ValueError:
    return ValueError(
        f"a covariate in dask needs a type that says its levels, got text or unknown categories in column {column!r}: "
        "use Y.categorize() first, or pass Y from memory."
    )


def no_scheduler(address: str, why: str) -> ValueError:
    return ValueError(
        f"a dask scheduler is needed at {address!r}, got no answer ({why}): start one with  dask scheduler, workers "
        "with  dask worker ADDRESS, and pass the address it prints (tcp://host:8786)."
    )


def no_workers(address: str) -> ValueError:
    return ValueError(
        f"the dask cluster at {address!r} needs at least one worker, got none: start them with  dask worker {address}."
    )
