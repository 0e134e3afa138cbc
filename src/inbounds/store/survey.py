"""A look at scans before they are prepared: which grid covers them, and which brightness shows a body in CT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, Shaped

from inbounds.errors import each
from inbounds.progress import Track
from inbounds.scans.format import Spacing
from inbounds.sources.source import Source
from inbounds.store.depth import ALIKE, AXES, turned_scan, turned_spacing
from inbounds.store.grid import LONGER, Shape

LARGEST = 256
"""The longest side of a grid that is chosen: one of twice as many pixels takes four times as long to train on."""
STEP = 16
"""Sides are a multiple of this, so that networks can halve them."""
UNLIKE = 1.5
"""Scans whose pixels, or the longer sides of whose slices, differ by more than this factor are pointed out."""
LOST: Spacing = (1.0, 1.0, 1.0)
"""What files say that know nothing of mm, or that lost it."""
AIR, BODY, BONE = -900, -300, 3071
"""Hounsfield units: air lies below the first, the body from the second to the last."""


@dataclass(frozen=True)
class Seen:
    """What a scan looks like.

    Attributes:
        shape: Rows and columns of its slices.
        middle: How many of them, about the middle of a slice, hold all that is not empty.
        spacing: In mm, between slices, rows and columns, if it is known.
        body: For CT, how many voxels have each of the Hounsfield units of a body.
    """

    shape: Shape
    middle: Shape
    spacing: Spacing | None
    body: Int64[np.ndarray, " units"] | None


class Grid(NamedTuple):
    """A grid that was chosen: its shape, how slices are brought to it, what a pixel measures, and why."""

    shape: Shape
    fitting: str
    pixel: float | None
    why: str


def choose(
    sources: Sequence[Source],
    *,
    grid: bool = True,
    window: bool = True,
    spacing: Spacing | None = None,
    axis: int = AXES[-1],
    track: Track[Source] = iter,
) -> tuple[Grid | None, tuple[float, float] | None]:
    """Look at all scans and choose a grid, and for CT a window, where they are asked for.

    Args:
        sources: The scans, once they are split: what trains decides on the window.
        grid: Whether to choose a grid.
        window: Whether to look for a window.
        spacing: In mm, whatever the files say.
        axis: Along which files are sliced.
        track: Wraps the scans, for a progress bar.
    """
    if not grid and not (window and look(sources[0]).body is not None):
        return None, None
    seen = each(lambda source: look(source, spacing, axis), track(sources))
    training = [one for one, source in zip(seen, sources, strict=True) if source.split == "train"]
    return choose_grid(seen) if grid else None, choose_window(training or seen) if window else None


def distance(
    sources: Sequence[Source], spacing: Spacing | None = None, axis: int = AXES[-1]
) -> tuple[float | None, str]:
    """How far apart the slices of volumes shall be, and why: the median of the files, or as they are."""
    known = [spacing or (source.extent.spacing if source.extent else LOST) for source in sources]
    apart = [turned_spacing(steps, axis)[0] for steps in known if spacing or steps != LOST]
    if len(apart) < len(sources):
        return None, "slices: as the files have them, as not all say how far apart they are (--slice-spacing)"
    median = float(f"{np.median(apart):.5g}")
    if all(abs(one - median) <= ALIKE * median for one in apart):
        return None, f"slices: {median:g} mm apart, as in all files"
    said = f"slices: {median:g} mm apart, the median of {min(apart):g} to {max(apart):g}; --slice-spacing sets another"
    return median, said


def look(source: Source, spacing: Spacing | None = None, axis: int = AXES[-1]) -> Seen:
    """Look at a scan, whose voxels measure so much whatever its file says."""
    loaded = source.load()
    loaded = turned_scan(loaded if spacing is None else replace(loaded, spacing=spacing), axis)
    _, _, rows, columns = loaded.image.shape
    known = None if loaded.spacing == LOST and spacing is None else loaded.spacing
    return Seen((rows, columns), reach(loaded.image), known, hounsfield(loaded.image))


def reach(image: Shaped[np.ndarray, "channels slices rows columns"]) -> Shape:
    """How many rows and columns, about the middle of a slice, hold every voxel that is not the darkest of its channel.

    Example:
        >>> image = np.zeros((1, 1, 6, 8))
        >>> image[0, 0, 2, 6] = 1  # one row above the middle; two columns to the right of it
        >>> reach(image)
        (2, 6)
    """
    shown = np.zeros(image.shape[2:], dtype=bool)
    for channel in image:
        least = channel.min()
        for one in channel:
            shown |= one != least
    sides = []
    for axis in (0, 1):
        where = np.flatnonzero(shown.any(axis=1 - axis))
        sides.append(max(shown.shape[axis] - 2 * int(where[0]), 2 * int(where[-1]) + 2 - shown.shape[axis]))
    return sides[0], sides[1]


def hounsfield(image: Shaped[np.ndarray, "channels slices rows columns"]) -> Int64[np.ndarray, " units"] | None:
    """The counts of a body's Hounsfield units, if this is CT: one channel of whole numbers, with air around a body."""
    if len(image) > 1 or image.min() > AIR:
        return None
    body, air = np.zeros(BONE - BODY + 1, dtype=np.int64), 0
    for one in image[0]:
        if one.dtype.kind == "f" and (one != np.rint(one)).any():
            return None
        body += np.bincount(one[(one >= BODY) & (one <= BONE)].astype(np.int64) - BODY, minlength=len(body))
        air += int(np.count_nonzero((one <= AIR) & (one > AIR - 200)))
    return body if body.any() and air >= 0.01 * image.size else None


def choose_window(seen: Sequence[Seen]) -> tuple[float, float] | None:
    """Where all scans are CT: from the 1st to the 99th percentile of their bodies, to the next ten."""
    counts = [scan.body for scan in seen if scan.body is not None]
    if len(counts) < len(seen):
        return None
    share = np.cumsum(np.sum(counts, axis=0))
    low, high = np.searchsorted(share, (0.01 * share[-1], 0.99 * share[-1])) + BODY
    return 10.0 * math.floor(low / 10), 10.0 * math.floor(high / 10 + 1)


def choose_grid(seen: Sequence[Seen]) -> Grid:
    """A grid that covers what every scan shows, of at most `LARGEST` pixels along a side.

    Where files say what a pixel measures, those of the grid measure the same for all scans: the median, or as much more
    as the limit demands. Where they do not, pixels stay as they are, unless that makes the grid too large or scans
    differ by more than `UNLIKE`: then the longer side of each takes as many pixels as that of any other.
    """
    longest = np.array([max(scan.shape) for scan in seen])
    middle, whole = (np.array(sizes) for sizes in zip(*((scan.middle, scan.shape) for scan in seen), strict=True))
    least, most, cover = longest.min(), longest.max(), "cover every scan"
    pixel, fitting = None, "pad"
    if any(scan.spacing for scan in seen):
        sizes = np.array([(scan.spacing or LOST)[1:] for scan in seen])
        median = float(np.median(sizes.min(axis=1)))
        pixel = float(f"{max(median, (middle * sizes).max() / LARGEST):.5g}")
        factor = sizes / pixel
        why = f"of {pixel:.3g} mm, the median of the files, {cover}"
        if pixel > 1.0001 * median:
            why = f"of {pixel:.3g} mm {cover}; of {median:.3g} mm, the median, more than {LARGEST} would be needed"
    elif most <= min(LARGEST, UNLIKE * least):
        factor, why = np.ones((len(seen), 1)), f"as the files have them {cover}"
    else:
        factor, fitting = LONGER / longest[:, None], "zoom"
        why = (
            f"{cover}, each zoomed to {LONGER} along its longer side ({least} to {most}): no file says what it measures"
        )
    shape = _sides(middle * factor)
    if shape != _sides(whole * factor):
        why += "; borders that are empty in every scan are left out"
    return Grid(shape, fitting, pixel, f"grid: {shape[0]}x{shape[1]} pixels {why}")


def _sides(sizes: np.ndarray) -> Shape:
    """The sides that hold so many rows and columns, but for what rounding adds to them."""
    rows, columns = (STEP * math.ceil((size - 0.01) / STEP) for size in sizes.max(axis=0).tolist())
    return rows, columns
