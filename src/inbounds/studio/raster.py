"""Which voxels a stroke of a brush labels, and which a box leaves out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int64

from inbounds.errors import BadInput
from inbounds.scans.format import Shape, Spacing

Voxel = Sequence[float]
Flat = Int64[np.ndarray, " voxels"]
"""Voxels by their place in the array, row upon row, in ascending order."""
PIECE = 8.0
"""Long lines are cut into pieces of so many voxels, so that no more is looked at than lies about them."""
AT_ONCE = 1 << 22
MOST = 1 << 29
"""Distances that are computed at once, and for one stroke."""


def stroke(points: Sequence[Voxel], through: int, radius: float, shape: Shape, spacing: Spacing) -> Flat:
    """The voxels of one slice of an axis whose centres lie within `radius` mm of a line, and those it passes through.

    Args:
        points: The corners of the line, in voxels; a single one is a click.
        through: The axis that the slice lies across; all points lie in the same slice.
        radius: In mm, measured within the slice; with 0, the voxels that the line passes through.
        shape: Of the scan.
        spacing: In mm.
    """
    number, down, across = _slice_of(points, through, shape)
    mm, sides = np.array([spacing[down], spacing[across]]), np.array([shape[down], shape[across]])
    line = np.array([(point[down], point[across]) for point in points], dtype=np.float64)
    # Nothing is looked at but what lies about the line.
    low = np.floor(line.min(axis=0) - radius / mm).clip(0, sides).astype(int)
    high = (np.ceil(line.max(axis=0) + radius / mm) + 1).clip(low, sides).astype(int)
    drawn = np.zeros(high - low, dtype=bool)
    line -= low
    if radius > 0:
        _within(drawn, line, radius, mm)
    row, column = passed(line)
    inside = (row >= 0) & (row < drawn.shape[0]) & (column >= 0) & (column < drawn.shape[1])
    drawn[row[inside], column[inside]] = True
    if not drawn.any():
        place = ", ".join(f"{value:g}" for value in points[0])
        raise BadInput(f"(slice, row, column) {place} lies outside the scan, which has {' x '.join(map(str, shape))}")
    return _flat(drawn, number, through, shape, low)


def outside(corners: Sequence[Voxel], through: int, shape: Shape) -> tuple[Flat, int, int]:
    """The voxels of a slice outside a box, corners included in the box; how many lie inside; and which slice it is."""
    number, down, across = _slice_of(corners, through, shape)
    out = np.ones((shape[down], shape[across]), dtype=bool)
    ends = [sorted(math.floor(corner[axis] + 0.5) for corner in corners) for axis in (down, across)]
    (top, bottom), (left, right) = ends
    out[max(0, top) : max(0, bottom + 1), max(0, left) : max(0, right + 1)] = False
    inside = int(out.size - out.sum())
    if not inside:
        raise BadInput("the box lies outside the scan; draw it on the image")
    return _flat(out, number, through, shape, np.zeros(2, dtype=int)), inside, number


def passed(line: Float[np.ndarray, "points 2"]) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
    """Rows and columns of the pixels that a line passes through; a pixel reaches from -0.5 to just below +0.5."""
    begin, step = line[:-1], np.diff(line, axis=0)
    cuts = [np.zeros((len(step), 1)), np.ones((len(step), 1))]
    most = np.abs(np.floor(line[1:] + 0.5) - np.floor(begin + 0.5)).max(axis=0, initial=0).astype(int) + 1
    for axis in range(2):
        low = np.floor(np.minimum(begin[:, axis], line[1:, axis]) + 0.5)
        border = low[:, None] + np.arange(most[axis]) + 0.5
        with np.errstate(divide="ignore", invalid="ignore"):
            at = (border - begin[:, axis, None]) / step[:, axis, None]
        cuts.append(np.where(np.isfinite(at), at.clip(0, 1), 1.0))
    at = np.sort(np.concatenate(cuts, axis=1), axis=1)
    middles = (at[:, 1:] + at[:, :-1]) / 2
    places = begin[:, None] + middles[..., None] * step[:, None]
    everything = np.concatenate([places[np.diff(at, axis=1) > 1e-12], line])
    pixels = np.unique(np.floor(everything + 0.5).astype(np.int64), axis=0)
    return pixels[:, 0], pixels[:, 1]


def _within(
    drawn: Bool[np.ndarray, "rows columns"],
    line: Float[np.ndarray, "points 2"],
    radius: float,
    mm: Float[np.ndarray, " 2"],
) -> None:
    """Mark the pixels whose centres lie within a radius in mm of a line; `mm` is what a pixel measures."""
    begin, end = _pieces(line)
    low = np.floor(np.minimum(begin, end) - radius / mm).clip(0, None).astype(int)
    high = np.ceil(np.maximum(begin, end) + radius / mm).astype(int).clip(None, np.array(drawn.shape) - 1)
    seen = (high >= low).all(axis=1)
    begin, end, low, high = begin[seen], end[seen], low[seen], high[seen]
    if not len(begin):
        return
    sides = (high - low).max(axis=0) + 1
    area = int(sides.prod())
    if area * len(begin) > MOST:
        raise BadInput(f"{len(line)} points are too many for a brush of {radius:g} mm; draw it in parts")
    for first in range(0, len(begin), count := max(1, AT_ONCE // area)):
        part = slice(first, first + count)
        row, column = (low[part, axis, None] + np.arange(sides[axis]) for axis in range(2))
        step = (end[part] - begin[part]) * mm
        length = (step**2).sum(axis=1)
        y = (row - begin[part, 0, None])[:, :, None] * mm[0]
        x = (column - begin[part, 1, None])[:, None, :] * mm[1]
        along = y * step[:, 0, None, None] + x * step[:, 1, None, None]
        along = (along / np.where(length > 0, length, 1)[:, None, None]).clip(0, 1)
        square = (y - along * step[:, 0, None, None]) ** 2 + (x - along * step[:, 1, None, None]) ** 2
        piece, i, j = np.nonzero(square <= radius**2 * (1 + 1e-12))
        i, j = row[piece, i], column[piece, j]
        there = (i < drawn.shape[0]) & (j < drawn.shape[1])
        drawn[i[there], j[there]] = True


def _pieces(line: Float[np.ndarray, "points 2"]) -> tuple[Float[np.ndarray, "n 2"], Float[np.ndarray, "n 2"]]:
    """Both ends of the pieces of a line, none of which is long; of a single point, the point twice."""
    if len(line) == 1:
        return line, line
    step = np.diff(line, axis=0)
    counts = np.ceil(np.abs(step).max(axis=1) / PIECE).astype(int).clip(1, None)
    which = np.repeat(np.arange(len(step)), counts)
    number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin, end = ((number + ahead) / counts[which] for ahead in (0, 1))
    return line[which] + begin[:, None] * step[which], line[which] + end[:, None] * step[which]


def _slice_of(points: Sequence[Voxel], through: int, shape: Shape) -> tuple[int, int, int]:
    """The slice in which points lie, and the axes that run down and across it."""
    numbers = {math.floor(point[through] + 0.5) for point in points}
    if len(numbers) > 1:
        raise BadInput(
            f"the points lie in slices {', '.join(map(str, sorted(numbers)[:5]))}; draw in one slice at a time"
        )
    number = numbers.pop()
    if not 0 <= number < shape[through]:
        raise BadInput(f"slice {number} is not there: the scan has slices 0 to {shape[through] - 1} along this axis")
    down, across = (axis for axis in range(3) if axis != through)
    return number, down, across


def _flat(
    drawn: Bool[np.ndarray, "rows columns"], number: int, through: int, shape: Shape, corner: Int64[np.ndarray, " 2"]
) -> Flat:
    """Where in the array what was drawn lies, whose first pixel is a corner of the slice's part that was looked at."""
    places = [axis + first for axis, first in zip(np.nonzero(drawn), corner, strict=True)]
    places.insert(through, np.full_like(places[0], number))
    flat: Flat = np.ravel_multi_index(tuple(places), shape).astype(np.int64)
    return flat
