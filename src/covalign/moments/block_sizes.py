"""How many rows are summed together, and into how many buckets: functions of the columns, not of how rows arrive."""

from __future__ import annotations

import numpy as np

from covalign.stream.reduction import BLOCK_BYTES

MANY = 1024  # buckets, or groups


GROUPS_BYTES = 2**28  # for the sums of all groups


WIDE = 200  # columns of Z, from which fewer rows than columns are a reason to work in the space of the rows


BUCKETS_BYTES = 2**25  # for the sums of all buckets, where there are more buckets than folds


def is_wide(n: int, k: int) -> bool:
    """Whether n rows with k columns are better treated in the space of the rows."""
    return k >= WIDE and n <= 0.9 * k


def bucket_count(folds: int, columns: int, groups: int | None = None) -> int:
    """How many buckets the rows are sorted into, of which folds are packed: four a fold if their sums are small.

    It depends on the columns alone, so that rows get the same buckets however they arrive. Groups need many buckets
    (most of them empty), or several groups would share one: as many as there is memory for, if all groups have sums.
    """
    size = 8 * max(columns, 1) ** 2
    if folds == 1:
        return 1
    if groups is None:
        return int(np.clip(BUCKETS_BYTES // size, folds, max(folds, min(4 * folds, 64))))
    return MANY if groups * size <= GROUPS_BYTES else int(np.clip(GROUPS_BYTES // size, folds, MANY))


def block_bytes(buckets: int) -> int:
    """The size of the blocks of every bucket, so that those of all buckets need no more memory than five folds."""
    return BLOCK_BYTES if buckets <= 5 else 5 * BLOCK_BYTES // buckets


def block_rows(q: int, size: int | None = None) -> int:
    """Rows of q numbers in a block; a function of q alone, so that blocks are the same however rows arrive."""
    return int(np.clip((BLOCK_BYTES if size is None else size) // (8 * q), 64, 8192))
