"""Gene sets: read from GMT files or dicts, and matched with the names of features."""

from __future__ import annotations

import gzip
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covalign._core.files import data_not_found, reading
from covalign._core.messages import kind_of, listed, message, shown, text_of
from covalign._core.paths import exists

NEED = "a file of gene sets (.gmt or .gmt.gz)"


class Matched(NamedTuple):
    """A set and the features that it names."""

    members: NDArray[np.intp]  # positions of features
    given: int  # distinct names in the set
    unmatched: list[str]


def gene_sets(sets: Any) -> dict[str, list[str]]:
    """Names of every set: from a dict name -> names, or from the path of a GMT file."""
    if isinstance(sets, str | os.PathLike):
        return read_gmt(Path(sets))
    if not isinstance(sets, Mapping):
        remedy = "pass {'set': ['gene', ...]} or 'h.all.gmt'"
        need = "gene_sets needs a dict of sets, or the path of a GMT file"
        raise ValueError(message(need, got=kind_of(sets), remedy=remedy))
    if not sets:
        raise ValueError(message("gene_sets needs at least one set", got="none", remedy="pass {'set': ['gene', ...]}"))
    return {str(name): _distinct(name, names) for name, names in sets.items()}


def read_gmt(path: Path) -> dict[str, list[str]]:
    """The sets of a GMT file: a set on each line, its name, a description and its genes, separated by tabs."""
    if not exists(path):
        raise data_not_found(path, NEED)
    with reading(path, NEED):
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.name.lower().endswith(".gz") else raw).decode("utf-8-sig")
    found: dict[str, list[str]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, *fields = [field.strip() for field in line.split("\t")]
        where = f"line {number} of {str(path)!r}"
        if not name or len(fields) < 2:
            need = f"{where} needs the name of a set, a description and genes, separated by tabs"
            remedy = "download the GMT file again, or mend this line"
            raise ValueError(message(need, got=repr(line[:60]), remedy=remedy))
        if name in found:
            got = f"{name!r} a second time in {where}"
            raise ValueError(message("gene sets need distinct names", got=got, remedy="rename one of the two"))
        found[name] = _distinct(name, fields[1:])
    if not found:
        need = f"{str(path)!r} needs at least one gene set"
        raise ValueError(message(need, got="an empty file", remedy="download the GMT file again"))
    return found


def matched(sets: Mapping[str, list[str]], features: Iterable[str]) -> dict[str, Matched]:
    """The features of every set: those of the same name, else those whose name differs only in capitals."""
    exact, folded = defaultdict(list), defaultdict(list)
    for i, feature in enumerate(features):
        exact[feature].append(i)
        folded[feature.casefold()].append(i)
    found = {}
    for name, names in sets.items():
        hits = [exact.get(one) or folded.get(one.casefold(), []) for one in names]
        members = np.array(sorted({i for hit in hits for i in hit}), dtype=np.intp)
        found[name] = Matched(members, len(names), [one for one, hit in zip(names, hits, strict=True) if not hit])
    return found


def nothing_matches(sets: Mapping[str, list[str]], features: Mapping[str, Iterable[str]]) -> ValueError:
    """The error for gene sets none of whose names is a feature."""
    theirs = list(dict.fromkeys(one for names in sets.values() for one in names))
    ours = "; ".join(f"{listed(names, 3)} in view {view!r}" for view, names in features.items())
    remedy = "give both the same kind of names (symbols, Ensembl or Entrez numbers), and name the columns of X so"
    need = "gene sets need names of features"
    return ValueError(message(need, got=f"{listed(theirs, 3)} in the sets and {ours}", remedy=remedy))


def _distinct(name: Any, names: Any) -> list[str]:
    if isinstance(names, str | bytes) or not isinstance(names, Iterable) or getattr(names, "ndim", 1) != 1:
        got, remedy = f"{shown(names)} in set {str(name)!r}", "pass a list of names"
        raise ValueError(message("a gene set needs several names", got=got, remedy=remedy))
    return [name for name in dict.fromkeys(map(text_of, names)) if name]
