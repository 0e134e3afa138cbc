"""What a scan takes on its way into a store or to a mask, worked out from its headers before any of it is read."""

from __future__ import annotations

import math

import numpy as np

from inbounds.memory import require
from inbounds.scans.format import PIECE, by
from inbounds.sources.source import Extent
from inbounds.store.grid import GridWindow


def preparing(extent: Extent, fit: GridWindow, masks: int, slices: int | None = None) -> int:
    """The bytes that preparing a scan takes.

    For each voxel those of the file's own type, one for each mask, and once more those of a mask's file; for each pixel
    on the grid two, if there are masks; and for a few slices at a time what they need on their way. On the grid there
    may be another number of slices.
    """
    grid = (slices or extent.shape[0]) * math.prod(fit.shape)
    return extent.size + 2 * grid * bool(masks) + _passing(fit, extent.channels)


def predicting(extent: Extent, fit: GridWindow, dtype: str, kept: int) -> int:
    """The bytes that segmenting a scan takes, beside the network and what passes through it.

    For each pixel on the grid and channel those of the run's type. For each voxel first those of the file's own type,
    and when these are let go three: for the mask, its largest pieces, and one of them on its way. And two more for each
    voxel and class where probabilities are kept.
    """
    voxels = math.prod(extent.shape)
    grid = extent.shape[0] * extent.channels * math.prod(fit.shape) * np.dtype(dtype).itemsize
    return grid + max(extent.size + _passing(fit, extent.channels), (3 + 2 * kept) * voxels)


def stored(slices: int, channels: int, fit_shape: tuple[int, int], dtype: str) -> int:
    """The bytes that slices take in a store; labels take next to nothing."""
    return slices * channels * math.prod(fit_shape) * np.dtype(dtype).itemsize


def check_memory(needed: int, name: str, extent: Extent, fit: GridWindow) -> None:
    """Refuse a scan that needs more memory than there is, and say which of its numbers is the reason."""
    slices, *sides = extent.shape
    what = f"{name}: a scan of {slices:,} slices of {by(sides)} pixels, on a grid of {by(fit.shape)},"
    remedy = "a smaller grid (--side) needs less, and so does a scan that is cut or resampled"
    if fit.height * fit.width > 4 * max(math.prod(sides), math.prod(fit.shape)):
        height, width = extent.spacing[1:]
        remedy = (
            f"of its pixels the grid would cover {fit.height:,} x {fit.width:,}, since they measure {height:g} x "
            f"{width:g} mm: is that in metres? `prepare folder --spacing Z,Y,X` says what they are, --pixel what the "
            "grid's are"
        )
    require(needed, what, remedy)


def _passing(fit: GridWindow, channels: int) -> int:
    """What a few slices take at once: as float64 while they are scaled, as float32 in the window and on the grid."""
    count = max(1, PIECE // fit.pixels)
    each = 28 * math.prod(fit.original) + 4 * fit.height * fit.width + 16 * math.prod(fit.shape)
    return count * channels * each
