"""Places for names beside points, without overlaps. Pure geometry: from boxes to corners."""

from __future__ import annotations

from typing import Any

import numpy as np

from covalign._core.linalg import Array

ANGLES = np.linspace(0, 2 * np.pi, 24, endpoint=False)
FORBIDDEN, ON_POINT, ON_LINE, CROSSING, RIVAL = 1e6, 60.0, 4.0, 40.0, 20.0  # in the unit of the boxes, as distances
ROUNDS = 3


def corners(
    anchors: Array, sizes: Array, points: Array, lines: Array, box: tuple[float, float, float, float], gap: float
) -> Array:
    """Lower left corners (m x 2) of labels of these sizes (m x 2), near their anchors (m x 2).

    Labels do not overlap and stay inside ``box`` (x0, y0, x1, y1) if possible. They avoid the points (q x 2), the lines
    drawn (given as points along them) and the lines to other anchors if that costs little. Each label in turn takes its
    best place given the others, several times.
    """
    m = len(anchors)
    found = np.full((m, 2), np.nan)
    order = np.argsort(-anchors[:, 1], kind="stable")
    for _ in range(ROUNDS):
        for i in order:
            others = np.array([j for j in range(m) if j != i and not np.isnan(found[j, 0])], dtype=int)
            tried = candidates(anchors[i], sizes[i], box, gap)
            cost = costs(tried, anchors[i], sizes[i], points, lines, gap)
            if len(others):
                cost += among(tried, anchors[i], sizes[i], found[others], anchors[others], sizes[others], gap)
            found[i] = tried[int(np.argmin(cost))]
    return found


def candidates(anchor: Array, size: Array, box: tuple[float, float, float, float], gap: float) -> Array:
    """Corners of a label all around its anchor, near and far."""
    reach = np.geomspace(2.0, 40, 24) * gap
    ring = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
    centres = anchor + (reach[:, None, None] * ring + ring * size / 2).reshape(-1, 2)
    corner = centres - size / 2
    low, high = np.array(box[:2]), np.array(box[2:]) - size
    return np.asarray(np.clip(corner, low, np.maximum(low, high)))


def costs(tried: Array, anchor: Array, size: Array, points: Array, lines: Array, gap: float) -> Array:
    """Distance from the anchor, and the points and lines that a label would cover."""
    away = np.linalg.norm(nearest(tried, size, anchor) - anchor, axis=1)
    on_points = covered(tried - gap / 2, size + gap, points)
    return np.asarray(away + ON_POINT * on_points + ON_LINE * covered(tried, size, lines))


def covered(corner: Array, size: Array, points: Array) -> Array:
    """How many points lie in each box (q x 2 corners, all of one size)."""
    x, y = (
        (points[:, axis] > corner[:, None, axis]) & (points[:, axis] < corner[:, None, axis] + size[axis])
        for axis in (0, 1)
    )
    return np.asarray((x & y).sum(axis=1), dtype=np.float64)


def among(tried: Array, anchor: Array, size: Array, corner: Array, anchors: Array, sizes: Array, gap: float) -> Array:
    """The cost of a label's overlap with labels that are placed already."""
    apart: Any = (tried[:, None] > corner + sizes + gap / 2) | (tried[:, None] + size + gap / 2 < corner)
    overlapping = ~apart.any(axis=2)
    ends = np.stack([nearest(c[None], s, a)[0] for c, s, a in zip(corner, sizes, anchors, strict=True)])
    mine = nearest(tried, size, anchor)
    crossing = cross(anchor, mine[:, None], anchors, ends)
    steps = np.linspace(0, 1, 9)[:, None, None]
    over = covered(tried, size, (anchors + steps * (ends - anchors)).reshape(-1, 2))  # the others' lines
    along = (anchor + steps * (mine - anchor))[:, :, None]
    under = ((along > corner) & (along < corner + sizes)).all(axis=3).any(axis=0).sum(axis=1)
    away, theirs = (np.linalg.norm(nearest(tried[:, None], size, a) - a, axis=2) for a in (anchor, anchors))
    rivals = np.minimum((theirs < away).sum(axis=1), 2)  # whose name it could be taken for
    return np.asarray(
        RIVAL * rivals + FORBIDDEN * overlapping.sum(axis=1) + CROSSING * (crossing.sum(axis=1) + (over > 0) + under)
    )


def nearest(corner: Array, size: Array, point: Array) -> Array:
    """The point of each label's box (q x 2 corners) that is nearest to ``point``."""
    return np.asarray(np.clip(point, corner, corner + size))


def cross(a: Array, b: Array, c: Array, d: Array) -> Array:
    """Whether the segments a-b and c-d cross, 1 or 0."""

    def side(p: Array, q: Array, r: Array) -> Array:
        along, to = q - p, r - p
        return np.asarray(along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0])

    return np.asarray((side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0), dtype=np.float64)


def spaced(wanted: Array, gap: float, low: float, high: float) -> Array:
    """Places on a line near the wanted ones, in their order, at least ``gap`` apart and from ``low`` to ``high``.

    Neighbours that are too near form a block around the mean of its wanted places. The gap is smaller where so many do
    not fit.
    """
    order = np.argsort(wanted, kind="stable")
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    blocks: list[tuple[float, int]] = []  # (mean of wanted place less the offset within the block, size)
    for place in wanted[order]:
        start, size = float(place), 1
        while blocks and blocks[-1][0] + blocks[-1][1] * gap > start:
            before, count = blocks.pop()
            start = (before * count + (start - count * gap) * size) / (count + size)
            size += count
            start = float(np.clip(start, low, high - (size - 1) * gap))
        blocks.append((float(np.clip(start, low, high - (size - 1) * gap)), size))
    found = np.empty(len(wanted))
    found[order] = [start + i * gap for start, size in blocks for i in range(size)]
    return found
