"""Reading and writing data larger than memory: one source of rows for every format, and one place to put results.

>>> import numpy as np
>>> from covalign.moments import Moments
>>> from covalign.stream import open_pairs
>>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
>>> Moments.from_batches(open_pairs(Z, Y).chunks()).n
100
"""

from covalign.stream.derived import Beside, Checked, Kept, beside
from covalign.stream.finite import checked, refuse_not_finite
from covalign.stream.formats import is_dask, is_elsewhere, open_rows
from covalign.stream.identity import fingerprint, identity
from covalign.stream.pairs import SourcePairs, Stream, open_pairs
from covalign.stream.prefetch import ahead, in_step, read
from covalign.stream.row_map import map_rows, write_rows
from covalign.stream.sink import Sink, open_sink
from covalign.stream.source import CHUNK_BYTES, Source, Table, is_source, recut

__all__ = [
    "CHUNK_BYTES",
    "Beside",
    "Checked",
    "Kept",
    "Sink",
    "Source",
    "SourcePairs",
    "Stream",
    "Table",
    "ahead",
    "beside",
    "checked",
    "fingerprint",
    "identity",
    "in_step",
    "is_dask",
    "is_elsewhere",
    "is_source",
    "map_rows",
    "open_pairs",
    "open_rows",
    "open_sink",
    "read",
    "recut",
    "refuse_not_finite",
    "write_rows",
]
