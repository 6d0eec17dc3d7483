"""Data larger than memory: one source of rows for every format, one pass over rows, and files for results.

>>> import numpy as np
>>> from covalign.stream import in_step, open_rows
>>> Z, Y = np.random.default_rng(0).normal(size=(2, 100, 3))
>>> [len(z) for z, y in in_step([open_rows(Z, chunk_rows=60), open_rows(Y)])]
[60, 40]
"""

from covalign.stream.batches import Batch, Batches, is_batches
from covalign.stream.derived import Beside, Checked, Kept, beside
from covalign.stream.finite import checked, refuse_not_finite
from covalign.stream.formats import is_dask, is_elsewhere, open_rows
from covalign.stream.identity import fingerprint, identity
from covalign.stream.prefetch import ahead, in_step, read
from covalign.stream.row_map import map_rows, write_rows
from covalign.stream.sink import open_sink
from covalign.stream.source import CHUNK_BYTES, Source, is_source, recut

__all__ = [
    "CHUNK_BYTES",
    "Batch",
    "Batches",
    "Beside",
    "Checked",
    "Kept",
    "Source",
    "ahead",
    "beside",
    "checked",
    "fingerprint",
    "identity",
    "in_step",
    "is_batches",
    "is_dask",
    "is_elsewhere",
    "is_source",
    "map_rows",
    "open_rows",
    "open_sink",
    "read",
    "recut",
    "refuse_not_finite",
    "write_rows",
]
