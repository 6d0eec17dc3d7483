"""A function of rows, computed a chunk at a time: as an array, or in a file that an interrupted run resumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from covalign.stream.identity import fingerprint, identity
from covalign.stream.prefetch import in_step
from covalign.stream.sink import Sink, open_sink
from covalign.stream.source import Source


def map_rows(
    function: Callable[..., Any],
    sources: Sequence[Source],
    columns: int,
    dtype: Any,
    *,
    out: Any = None,
    names: Sequence[Any] | None = None,
    key: Any = None,
    overwrite: bool = False,
) -> Any:
    """``function(start, *parts)`` of every chunk of the sources, which are read in step; ``start`` is its first row.

    Returns an array or, with ``out``, writes to this path as ``open_sink`` does, and returns the path. A later call
    resumes the work of an interrupted one if neither the rows nor the ``key`` have changed; the key holds all else that
    decides the result.
    """
    shape = (sources[0].shape[0], columns)
    if out is None:
        result = np.empty(shape, dtype=dtype)
        at = 0
        for parts in in_step(sources):
            result[at : at + parts[0].shape[0]] = function(at, *parts)
            at += parts[0].shape[0]
        return result
    same = fingerprint([identity(source) for source in sources], key)
    with open_sink(out, shape, dtype, names, key=same, overwrite=overwrite) as sink:
        write_rows(function, sources, sink)
    return out


def write_rows(function: Callable[..., Any], sources: Sequence[Source], sink: Sink) -> int:
    """Write ``function(start, *parts)`` of every chunk that the sink lacks; returns how many rows were computed.

    A resumed run cuts chunks at the same rows as an uninterrupted one, so that the results are equal bit by bit: matrix
    products may round differently for other numbers of rows.
    """
    rows, n = min(source.chunk_rows for source in sources), sources[0].shape[0]
    first = at = sink.start - sink.start % rows if sink.start < n else n
    for parts in in_step(sources, rows, first) if first < n else ():
        result = function(at, *parts)
        sink.write(result[max(0, sink.start - at) :])
        at += parts[0].shape[0]
    return at - first
