"""Simulated weak labels: what a person in a hurry would have marked on one slice.

Every strategy is a function `(truth, classes, rng, ...)` of a full label map `(H, W)`. It returns a label map of that
shape, with `UNLABELLED` (255) wherever nothing was marked. A mark of a class lies inside that class, a class in the
slice gets at least one pixel, and an absent one none. Only `box` marks background instead: the outside of the boxes.

Marks are simulated once, when a data set is annotated, and stored. Training never sees the truth they came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import ndimage, sparse  # type: ignore[import-untyped]
from scipy.sparse import csgraph  # type: ignore[import-untyped]

from inbounds.annotations.annotation import UNLABELLED

Labels: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

BACKGROUND = 0
"""The class that is everything else."""


def erosion(truth: Labels, classes: Sequence[int], rng: np.random.Generator, *, iterations: int = 10) -> Labels:  # noqa: ARG001
    """The core of each region: the mask eroded ten times, or as often as leaves something. Draws nothing.

    The authors' rule: a 3x3 square, `iterations` times, one time fewer while nothing is left; a mask that does not
    survive one erosion is kept whole. A pixel survives `n` erosions by a 3x3 square exactly if its chessboard distance
    to the outside, which begins at the border of the image, is more than `n`; so one distance transform suffices.

    Example:
        >>> truth = np.zeros((7, 7), np.uint8)
        >>> truth[1:6, 1:6] = 1  # 25 pixels survive two erosions as one
        >>> np.argwhere(erosion(truth, [1], np.random.default_rng(0)) == 1)
        array([[3, 3]])
    """
    if iterations < 0:
        raise ValueError(f"the number of erosions must be 0 or more, not {iterations}")
    label = _blank(truth)
    for k, mask, where in _regions(truth, classes):
        depth = ndimage.distance_transform_cdt(np.pad(mask, 1), metric="chessboard")[1:-1, 1:-1]
        label[where][depth > min(iterations, int(depth.max()) - 1)] = k
    return label


def disc(truth: Labels, classes: Sequence[int], rng: np.random.Generator, *, radius: float = 2.0) -> Labels:
    """One disc in each region, its centre drawn evenly from the region's pixels, cut at the region's border.

    A disc reaches `radius` pixels beyond its middle one to each side: 1, 9, 21, 37 and 69 pixels for the radii 0 to 4.
    The paper's text says "at most 4"; the authors' code uses 2, which fits the 0.02 % of pixels labelled in the paper.

    Example:
        >>> int((disc(np.ones((99, 99), np.uint8), [1], np.random.default_rng(0)) == 1).sum())
        21
    """
    label = _blank(truth)
    for k, mask, where in _regions(truth, classes):
        inside = np.argwhere(mask)
        label[where][mask & around(mask.shape, inside[rng.integers(len(inside))], radius)] = k
    return label


def centroid(truth: Labels, classes: Sequence[int], rng: np.random.Generator, *, radius: float = 0.0) -> Labels:  # noqa: ARG001
    """A click in the middle of each region: the pixel nearest to its centroid, or a disc around it. Draws nothing.

    Where the centroid lies outside its region, as in a crescent, the region's nearest pixel is taken; of several at the
    same distance the first in reading order. A disc is cut at the region's border.
    """
    label = _blank(truth)
    for k, mask, where in _regions(truth, classes):
        inside = np.argwhere(mask)
        nearest = inside[np.argmin(((inside - inside.mean(axis=0)) ** 2).sum(axis=1))]
        label[where][mask & around(mask.shape, nearest, radius)] = k
    return label


def scribble(
    truth: Labels,
    classes: Sequence[int],
    rng: np.random.Generator,
    *,
    share: float = 0.6,
    width: int = 2,
    distance: float = 3.0,
) -> Labels:
    """A stroke along the middle of each region, as a person would draw it.

    The stroke follows the cheapest path between two far ends of the region's largest part, where a step costs less the
    deeper it lies: across a disc, along a crescent, half way around a ring. A run of `share` of its length is kept,
    beginning at a random place, smoothed, and drawn `width` pixels wide. Background (0), if among the classes, gets a
    loose curve around everything else, `distance` pixels away or more where there is room.
    """
    if not 0 < share <= 1 or width < 1:
        raise ValueError(
            f"a stroke needs a share above 0 and up to 1 and a width of 1 or more, not {share} and {width}"
        )
    label = _blank(truth)
    for k, mask, where in _regions(truth, classes):
        if k == BACKGROUND:
            label[_loop(truth == k, rng, distance)] = k
            continue
        path = _middle_path(mask, rng)
        length = max(1, round(share * len(path)))
        first = int(rng.integers(len(path) - length + 1))
        path = path[first : first + length]
        smooth = ndimage.uniform_filter1d(path.astype(np.float64), size=min(7, length), axis=0, mode="nearest")
        stroke = np.zeros(mask.shape, dtype=bool)
        stroke[tuple(np.rint(smooth).astype(np.intp).T)] = True
        stroke = ndimage.binary_dilation(stroke, np.ones((width, width), dtype=bool)) & mask
        if not stroke.any():  # a bend so sharp that smoothing left the region
            stroke[tuple(path.T)] = True
        label[where][stroke] = k
    return label


def box(truth: Labels, classes: Sequence[int], rng: np.random.Generator, *, margin: int = 0) -> Labels:  # noqa: ARG001
    """Background outside the bounding boxes, one around each class, and nothing inside them. Draws nothing.

    A box is `margin` pixels wider on every side than the tightest one, within the image. Whatever lies outside all of
    them is background, be it of a class that was not asked for: boxes say where those that were asked for are not. A
    slice that shows none of them has no box and is background throughout.
    """
    label = np.full_like(_blank(truth), BACKGROUND)
    for k in classes:
        label[bounding_box(truth == k, margin)] = UNLABELLED
    return label


def background(
    truth: Labels,
    classes: Sequence[int],  # noqa: ARG001
    rng: np.random.Generator,
    *,
    distance: float = 3.0,
) -> Labels:
    """A loose curve around all regions of the truth, in `classes` or not, as `scribble` draws it.

    To add to marks of the other kinds, where something should say what is not a region. It keeps `distance` pixels or
    more where there is room; where there is none, the farthest pixel alone is marked.
    """
    label = _blank(truth)
    outside = truth == BACKGROUND
    if outside.any():
        label[_loop(outside, rng, distance)] = BACKGROUND
    return label


_STRATEGIES: tuple[Callable[..., Labels], ...] = (erosion, disc, centroid, scribble, box)
strategies = {draw.__name__: draw for draw in _STRATEGIES}


def _blank(truth: Labels) -> Labels:
    if truth.ndim != 2:
        raise ValueError(f"weak labels are simulated slice by slice: give a truth (H, W), not of shape {truth.shape}")
    return np.full(truth.shape, UNLABELLED, dtype=np.uint8)


def bounding_box(mask: Mask, margin: int = 0) -> tuple[slice, slice]:
    """The rows and columns of a mask's bounding box, inside the image; nothing for an empty mask."""
    if margin < 0:
        raise ValueError(f"a box can be wider than its region, by a margin of 0 or more, but not by {margin} pixels")
    if not mask.any():
        return slice(0, 0), slice(0, 0)
    rows, columns = (
        slice(max(0, side.start - margin), min(length, side.stop + margin))
        for side, length in zip(ndimage.find_objects(mask.astype(np.uint8))[0], mask.shape, strict=True)
    )
    return rows, columns


def _regions(truth: Labels, classes: Sequence[int]) -> Iterator[tuple[int, Mask, tuple[slice, slice]]]:
    """Each class that is present, its mask cut to its bounding box, and where that box lies."""
    for k in classes:
        mask = truth == k
        where = bounding_box(mask)
        if mask[where].size:
            yield k, mask[where], where


def around(shape: tuple[int, ...], centre: npt.NDArray[Any], radius: float) -> Mask:
    """The disc that reaches `radius` pixels beyond its centre: to less than `radius + 1/2` between pixel centres."""
    if radius < 0:
        raise ValueError(f"the radius of a disc must be 0 or more, not {radius}")
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    disc: Mask = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < (radius + 0.5) ** 2
    return disc


def _away(outside: Mask) -> npt.NDArray[np.float64]:
    """Distance to the nearest pixel that is not outside; where all are, nothing is near."""
    if outside.all():
        return np.full(outside.shape, np.inf)
    return np.asarray(ndimage.distance_transform_edt(outside), dtype=np.float64)


def _middle_path(mask: Mask, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Pixels `(length, 2)` from one end of the mask's largest part to another, keeping to the middle."""
    parts, count = ndimage.label(mask, np.ones((3, 3)))
    if count > 1:
        mask = parts == 1 + np.argmax(np.bincount(parts.ravel())[1:])
    pixels = np.argwhere(mask)
    number = np.full(np.add(mask.shape, 2), -1)
    number[1:-1, 1:-1][mask] = np.arange(len(pixels))
    depth = ndimage.distance_transform_edt(np.pad(mask, 1))[1:-1, 1:-1][mask]
    starts, ends, steps = [], [], []
    for dy, dx in ((0, 1), (1, -1), (1, 0), (1, 1)):
        there = number[pixels[:, 0] + 1 + dy, pixels[:, 1] + 1 + dx]
        here = np.flatnonzero(there >= 0)
        starts.append(here)
        ends.append(there[here])
        steps.append(np.full(len(here), np.hypot(dy, dx)))
    start, end, step = (np.concatenate(column) for column in (starts, ends, steps))
    size = (len(pixels), len(pixels))
    plain = sparse.csr_array((step, (start, end)), shape=size)
    deep = sparse.csr_array((step / np.minimum(depth[start], depth[end]) ** 2, (start, end)), shape=size)
    anywhere = int(rng.integers(len(pixels)))
    one = int(np.argmax(csgraph.dijkstra(plain, directed=False, indices=anywhere)))
    other = int(np.argmax(csgraph.dijkstra(plain, directed=False, indices=one)))
    _, previous = csgraph.dijkstra(deep, directed=False, indices=one, return_predecessors=True)
    path = [other]
    while path[-1] != one:
        path.append(int(previous[path[-1]]))
    return pixels[path]


def _loop(outside: Mask, rng: np.random.Generator, distance: float) -> Mask:
    """A wavy line around what is not outside, open on one side."""
    rows, columns = np.indices(outside.shape)
    inside = np.argwhere(~outside)
    middle = inside.mean(axis=0) if len(inside) else (np.array(outside.shape) - 1) / 2
    around = np.arctan2(rows - middle[0], columns - middle[1])
    away = _away(outside) if len(inside) else np.hypot(rows - middle[0], columns - middle[1])
    gap = distance + 1 + rng.uniform(0.02, 0.1) * min(outside.shape)
    gap = gap + (gap - distance - 1) * np.sin(rng.integers(2, 5) * around + rng.uniform(0, 2 * np.pi))
    open_ = (around - rng.uniform(-np.pi, np.pi)) % (2 * np.pi) < np.pi / 2
    line: Mask = outside & (np.abs(away - gap) <= 0.6) & ~open_
    if not line.any():
        line[np.unravel_index(np.argmax(np.where(outside, away, -1)), away.shape)] = True
    return line
