"""The items to embed, in a fixed order: images of a folder or a CSV, Tiny-ImageNet's own layout, or texts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from covalign._core.data_errors import table_without_column
from covalign._core.files import data_not_found, path_to_read, unreadable_data
from covalign._core.messages import listed, message, shown
from covalign._core.paths import is_file, is_folder
from covalign.tables.table_files import csv_table

SUFFIXES = {
    *(".jpg", ".jpeg", ".jfif", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".avif"),
}
PATH_COLUMNS = ("path", "file", "filename", "image", "file_name")
AS_WRITTEN = ("wnid", "name", "label", "class")  # columns of names: 001 stays 001


@dataclass(frozen=True, eq=False)
class Items:
    """Names (not necessarily unique), contents (paths or texts), and a row of labels for each, indexed by the names."""

    names: list[str]
    contents: Sequence[Any]
    labels: pd.DataFrame

    def digests(self) -> list[bytes]:
        """16 bytes per item that change when the item changes: from a file's path, size and time, or from the text."""
        return [hashlib.blake2b(_identity(content), digest_size=16).digest() for content in self.contents]


def _identity(content: Any) -> bytes:
    if isinstance(content, str):
        return content.encode("utf-8", "surrogatepass")
    try:
        status = os.stat(content)
        seen = f"{status.st_size} {status.st_mtime_ns}"
    except OSError:
        seen = "absent"
    return os.fsencode(content) + b"\0" + seen.encode()


# -- images -----------------------------------------------------------------------------------------------------------


def list_images(
    source: Any, path_column: str | None = None, label_columns: Sequence[str] | None = None, root: Any = None
) -> Items:
    """The images of a folder (the class is the first subfolder), of a CSV of paths, or of Tiny-ImageNet's ``val``.

    A list of paths has no labels. Paths of a CSV are relative to ``root`` (the CSV's folder).
    """
    if isinstance(source, list | tuple):
        paths = [path_to_read(path, "an image") for path in source]
        return Items([str(path) for path in source], paths, _unlabelled(map(str, source)))
    source = path_to_read(source, "a folder of images, or a CSV of their paths")
    if is_folder(source):
        annotated = [folder for folder in (source / "val", source) if is_file(folder / "val_annotations.txt")]
        return _tiny_imagenet(annotated[0]) if annotated else _folder(source)
    if not is_file(source):
        raise data_not_found(source, "a folder of images, or a CSV of their paths")
    names, labels = _csv(source, PATH_COLUMNS if path_column is None else (path_column,), label_columns)
    root = source.parent if root is None else Path(root)
    return Items(names, [root / name for name in names], labels.set_axis(pd.Index(names, name="file")))


def _folder(folder: Path) -> Items:
    """All images below the folder, sorted by path, without hidden files and files with other suffixes."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        kept = (name for name in files if Path(name).suffix.lower() in SUFFIXES and not name.startswith("."))
        found += [Path(place, name).relative_to(folder) for name in kept]
    if not found:
        problem = f"{str(folder)!r} has no images (suffixes {' '.join(sorted(SUFFIXES))})"
        raise ValueError(message(problem, remedy="Correct the path, or list the files in a CSV with a column 'path'"))
    found.sort(key=lambda path: path.parts)
    names = [path.as_posix() for path in found]
    labels = _unlabelled(names)
    classes = [path.parts[0] if len(path.parts) > 1 else "" for path in found]
    if any(classes):
        labels["name"] = classes
    return Items(names, [folder / path for path in found], labels)


def _tiny_imagenet(val: Path) -> Items:
    """``images/`` in the order of val_annotations.txt; ``wnid``, and ``name``, the first of its names in words.txt."""
    table = _read(val / "val_annotations.txt", sep="\t", header=None, usecols=[0, 1], names=["file", "wnid"], dtype=str)
    words = next((file for file in (val.parent / "words.txt", val / "words.txt") if is_file(file)), None)
    if words is None:
        need = "the whole folder of Tiny-ImageNet: words.txt has the names of its classes"
        raise data_not_found(val.parent / "words.txt", need)
    known = _read(words, sep="\t", header=None, names=["wnid", "name"], dtype=str, quoting=3, index_col="wnid")["name"]
    name = _distinct(known.str.split(",").str[0].str.strip().reindex(table["wnid"].unique()))
    labels = table[["wnid"]].assign(name=table["wnid"].map(name)).set_axis(pd.Index(table["file"], name="file"))
    return Items(list(table["file"]), [val / "images" / file for file in table["file"]], labels)


def _distinct(name: pd.Series[str]) -> pd.Series[str]:
    """Class names made unique: the wnid replaces a missing name, and is added to a shared one (two are 'crane')."""
    wnid = name.index.to_series()
    name = name.fillna(wnid)
    return name.where(~name.duplicated(keep=False), name + " (" + wnid + ")")


# -- texts ------------------------------------------------------------------------------------------------------------


def list_texts(source: Any, text_column: str | None = None, label_columns: Sequence[str] | None = None) -> Items:
    """The texts of a CSV's column, the other columns as labels; or a list of texts, without labels."""
    if isinstance(source, list | tuple):
        names = [str(i) for i in range(len(source))]
        wrong = [text for text in source if not isinstance(text, str)]
        if wrong:
            problem, remedy = "source needs a list of texts", "drop what is no text"
            raise ValueError(message(problem, got=shown(wrong[0]), remedy=remedy))
        return Items(names, list(source), _unlabelled(names, "row"))
    file = path_to_read(source, "a CSV with a column of texts")
    if not is_file(file):
        raise data_not_found(file, "a CSV with a column of texts")
    texts, labels = _csv(file, ("text" if text_column is None else text_column,), label_columns)
    names = [str(i) for i in range(len(texts))]
    return Items(names, texts, labels.set_axis(pd.Index(names, name="row")))


# -- tables -----------------------------------------------------------------------------------------------------------


def _csv(file: Path, candidates: Sequence[str], label_columns: Sequence[str] | None) -> tuple[list[str], pd.DataFrame]:
    """The first of the candidate columns that the CSV has, and the columns of labels, by default all others.

    The column of contents and columns of names stay text; empty cells of all others are NaN.
    """
    columns = list(_read(file, nrows=0).columns)
    content = next((name for name in candidates if name in columns), candidates[0])
    for column in (content, *(label_columns or ())):
        if column not in columns:
            raise table_without_column(file.name, column, columns)
    table = csv_table(file, text=(content, *AS_WRITTEN))
    empty = list(table.index[table[content] == ""])
    if empty or table.empty:
        got = f"{len(empty)} empty cell(s), first at row {listed(empty, 3)}" if empty else "no rows"
        problem = f"every row of {str(file)!r} needs a {content!r}"
        raise ValueError(message(problem, got=got, remedy="fill them in, or drop the rows"))
    return list(table[content]), table[list(label_columns)] if label_columns else table.drop(columns=content)


def _read(file: Path, **options: Any) -> pd.DataFrame:
    try:
        table: pd.DataFrame = pd.read_csv(file, **options)
        return table
    except (ValueError, OSError, EOFError) as error:
        raise unreadable_data(file, "a table of comma-separated values", error) from error


def _unlabelled(names: Any, what: str = "file") -> pd.DataFrame:
    return pd.DataFrame(index=pd.Index(list(names), name=what, dtype=object))
