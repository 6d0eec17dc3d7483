"""The loop over batches. Threads open images, ahead of the model if the model runs on its own device."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from covalign._core.messages import listed, message
from covalign._core.progress import Progress
from covalign.bridges.embed.inputs import Items
from covalign.bridges.embed.journal import Log
from covalign.bridges.embed.pictures import BrokenImageError

AHEAD = 2  # batches that may wait for the model; 0 on a CPU, where threads would compete with the model


def compute(
    items: Items, digests: list[bytes], encoder: Any, log: Log, batch_size: int, workers: int, ahead: int = AHEAD
) -> dict[str, str]:
    """Compute the rows that ``log`` does not have; returns the names of items that cannot be opened, and why."""
    todo = _order(items, {digest: i for i, digest in reversed(list(enumerate(digests))) if digest not in log}.values())
    broken: dict[str, str] = {}
    left = len(todo)
    with Progress(len(digests), "embedding", len(digests) - left) as bar:
        for part, results in _prepared(items.contents, todo, encoder.prepare, batch_size, workers, ahead):
            opened, inputs = _opened(items, part, results, broken)
            left -= len(part)
            if opened:
                rows = encoder(inputs)
                _refuse_not_finite(items, opened, rows)
                log.append([digests[i] for i in opened], rows, left)
            bar.advance(len(part), f"embedding, {len(broken)} broken" if broken else "embedding")
    return broken


def _order(items: Items, todo: Any) -> list[int]:
    """Texts sorted by length, so that little is padded; images in their order."""
    numbers = sorted(todo)
    if numbers and isinstance(items.contents[numbers[0]], str):
        return sorted(numbers, key=lambda i: -len(items.contents[i]))
    return numbers


def _prepared(
    contents: Sequence[Any], todo: list[int], prepare: Any, batch_size: int, workers: int, ahead: int
) -> Iterator[tuple[list[int], list[Future[Any]]]]:
    """Batches of item numbers, with the futures of their inputs."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="covalign-embed")
    try:
        waiting: deque[tuple[list[int], list[Future[Any]]]] = deque()
        for start in range(0, len(todo), batch_size):
            part = todo[start : start + batch_size]
            waiting.append((part, [pool.submit(prepare, contents[i]) for i in part]))
            if len(waiting) > ahead:
                yield waiting.popleft()
        yield from waiting
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _opened(
    items: Items, part: list[int], results: list[Future[Any]], broken: dict[str, str]
) -> tuple[list[int], list[Any]]:
    """The items of a batch that can be opened; the others are added to ``broken``."""
    opened, inputs = [], []
    for i, result in zip(part, results, strict=True):
        try:
            inputs.append(result.result())
            opened.append(i)
        except BrokenImageError as error:
            broken[items.names[i]] = str(error)
    return opened, inputs


def _refuse_not_finite(items: Items, numbers: list[int], rows: Any) -> None:
    wrong = ~np.isfinite(rows).all(axis=1)
    if wrong.any():
        names = listed((items.names[i] for i, bad in zip(numbers, wrong, strict=True) if bad), 3)
        remedy = "Use dtype='float32' (float16 overflows in some models), or check the weights"
        raise ValueError(message(f"the model gives NaN or infinity for {names}", remedy=remedy))
