"""The slices of a scan at another distance than its file has them, and along another axis than its last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float32, Shaped

from inbounds.scans.format import Spacing
from inbounds.sources.source import Extent, Loaded

AXES = (1, 2, 3)
"""Of a file, as its format counts them: columns, rows and slices, if it is sliced along its last."""
ALIKE = 0.01
"""Distances that differ by no more than this share are left as they are."""


def count(slices: int, distance: float, wanted: float | None) -> int:
    """How many slices a scan has once they are so many mm apart; as many as before where that is nearly so.

    Example:
        >>> count(20, 3.0, 1.5), count(20, 3.0, 3.01), count(1, 3.0, 50.0)
        (40, 20, 1)
    """
    if wanted is None or abs(distance - wanted) <= ALIKE * wanted:
        return slices
    return max(1, round(slices * distance / wanted))


def between(
    image: Shaped[np.ndarray, "channels slices rows columns"], some: slice, slices: int
) -> Shaped[np.ndarray, "channels some rows columns"]:
    """Some slices of a scan that is brought to so many: interpolated linearly, and smoothed first where they are fewer.

    Example:
        >>> between(np.array([0.0, 2.0]).reshape(1, 2, 1, 1), slice(0, 4), 4).ravel()
        array([0. , 0.5, 1.5, 2. ], dtype=float32)
    """
    have = image.shape[1]
    if have == slices:
        return image[:, some]
    reach = max(1.0, have / slices)
    made: Float32[np.ndarray, "channels some rows columns"]
    numbers = range(*some.indices(slices))
    made = np.zeros((len(image), len(numbers), *image.shape[2:]), dtype=np.float32)
    for place, number in enumerate(numbers):
        at = (number + 0.5) * have / slices - 0.5
        near = np.arange(max(0, int(np.ceil(at - reach))), min(have - 1, int(np.floor(at + reach))) + 1)
        weights = np.maximum(0, 1 - np.abs(near - at) / reach)
        for one, weight in zip(near, weights / weights.sum(), strict=True):
            made[:, place] += np.float32(weight) * image[:, one]
    return made


def turned(
    array: Shaped[np.ndarray, "*channels slices rows columns"], axis: int
) -> Shaped[np.ndarray, "*channels a b c"]:
    """An array whose slices lie along another axis of its file; rows and columns keep their order."""
    return np.moveaxis(array, -axis, -3)


def turned_back(
    array: Shaped[np.ndarray, "*channels a b c"], axis: int
) -> Shaped[np.ndarray, "*channels slices rows columns"]:
    """The way back."""
    return np.moveaxis(array, -3, -axis)


def turned_sides(sides: tuple[int, int, int], axis: int) -> tuple[int, int, int]:
    """Slices, rows and columns along another axis."""
    first, *others = sides[-axis], *(side for place, side in enumerate(sides) if place != 3 - axis)
    return first, others[0], others[1]


def turned_spacing(spacing: Spacing, axis: int) -> Spacing:
    """What voxels measure between slices, rows and columns along another axis."""
    first, *others = spacing[-axis], *(step for place, step in enumerate(spacing) if place != 3 - axis)
    return first, others[0], others[1]


def turned_extent(extent: Extent, axis: int) -> Extent:
    """How large a scan is along another axis."""
    return replace(extent, shape=turned_sides(extent.shape, axis), spacing=turned_spacing(extent.spacing, axis))


def turned_scan(loaded: Loaded, axis: int) -> Loaded:
    """A scan with its masks along another axis."""
    if axis == AXES[-1]:
        return loaded
    return replace(
        loaded,
        image=turned(loaded.image, axis),
        spacing=turned_spacing(loaded.spacing, axis),
        truth=None if loaded.truth is None else turned(loaded.truth, axis),
        weak={name: turned(label, axis) for name, label in loaded.weak.items()},
    )
