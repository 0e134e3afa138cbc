"""What a network finds in a scan: the mask in the scan's own voxels, and how large and where each class is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float16, UInt8

from inbounds.inference.doubt import Doubt, outside
from inbounds.scans.format import Scan, Spacing, slabs
from inbounds.scans.scan import write_mask
from inbounds.store.grid import GridWindow
from inbounds.writing import file_aside

BACKGROUND = "background"


@dataclass(frozen=True)
class Region:
    """One class in one scan.

    Attributes:
        name: The class.
        value: Its value in the mask.
        voxels: How many it has.
        volume_ml: Their volume, by the spacing that the scan states.
        centroid: Slice, row and column of its centre of mass in the scan's own voxels, where the middle of the first
            voxel is (0, 0, 0); NaN for a class that is absent.
        note: A sentence if a part of it may be missing.
        doubt: What speaks against it, where that was asked for.
    """

    name: str
    value: int
    voxels: int
    volume_ml: float
    centroid: tuple[float, float, float]
    note: str = ""
    doubt: Doubt | None = None


@dataclass(frozen=True)
class Prediction:
    """What a network finds in one scan.

    Attributes:
        mask: In the scan's own voxels: 0 is background, 1, 2, ... are the classes of the run in its order.
        regions: Class 1, class 2, ...
        spacing: Of slices, rows and columns, in mm.
        notes: Sentences about the whole scan, such as a spacing that had to be assumed.
        probabilities: Of the background and each class, where they were asked for. Each voxel has those of the grid
            pixel it lies in; what the run does not look at is background with certainty. The mask was decided before
            they were rounded to half precision.
        header: Of the file it was read from (its first channel); `None` for an array.
    """

    mask: UInt8[np.ndarray, "slices rows columns"]
    regions: tuple[Region, ...]
    spacing: Spacing
    notes: tuple[str, ...] = ()
    probabilities: Float16[np.ndarray, "K slices rows columns"] | None = None
    header: Scan | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        """What the values 0, 1, 2, ... of the mask stand for."""
        return (BACKGROUND, *(region.name for region in self.regions))

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that is worth knowing about this prediction: of the scan, and of single classes."""
        return (*self.notes, *(region.note for region in self.regions if region.note))

    def write(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the mask exactly over its scan, in a format that `inbounds.scans.scan` allows for it.

        A folder of pictures takes the place of one that is there already only with `overwrite`.
        """
        if self.header is None:
            raise ValueError("this prediction was made from an array: there is no file whose geometry it could have")
        write_mask(self.mask, self.header, path, overwrite=overwrite)

    def write_probabilities(self, path: Path) -> None:
        """Write a NumPy `.npz` with `probabilities` (K, slices, rows, columns), `classes`, `spacing` and `affine`.

        The affine takes (column, row, slice, 1) to mm right, anterior, superior; it is left out where the scan does not
        say where it lies.
        """
        if self.probabilities is None:
            raise ValueError("probabilities were not kept; predict with probabilities=True")
        arrays: dict[str, Any] = {"classes": np.array(self.classes), "spacing": np.array(self.spacing)}
        affine = None if self.header is None else self.header.geometry.affine
        if affine is not None:
            arrays["affine"] = affine
        with file_aside(path) as part, part.open("wb") as stream:
            np.savez_compressed(stream, probabilities=self.probabilities, **arrays)


def regions(
    mask: UInt8[np.ndarray, "slices rows columns"],
    classes: Sequence[str],
    spacing: Spacing,
    fit: GridWindow,
    doubts: Sequence[Doubt] = (),
    seen: Mapping[str, tuple[float, float]] | None = None,
) -> tuple[Region, ...]:
    """Measure each class of a mask.

    Args:
        mask: In the scan's own voxels.
        classes: The names of its values 1, 2, ...
        spacing: In mm.
        fit: The window that the network looked at.
        doubts: Of each class what is known already, if it is asked for; here its size and its place are added.
        seen: The least and the most volume of a class in training, in ml.

    Example:
        Two voxels side by side, in slice 0, row 3, columns 4 and 5, each 8 x 1 x 1.25 mm: 0.02 ml at (0, 3, 4.5).
    """
    measured = []
    for value, name in enumerate(classes, start=1):
        counts = [np.zeros(side, dtype=np.int64) for side in mask.shape]  # of each slice, row and column
        touching = 0
        for some in slabs(len(mask), mask[0].size):
            inside = mask[some] == value
            counts[0][some] = inside.sum(axis=(1, 2))
            counts[1] += inside.sum(axis=(0, 2))
            counts[2] += inside.sum(axis=(0, 1))
            touching += int(_touching(inside, fit).sum())
        voxels = int(counts[0].sum())
        volume = voxels * math.prod(spacing) / 1000
        centroid = (_centre(counts[0], voxels), _centre(counts[1], voxels), _centre(counts[2], voxels))
        note, doubt = _note(name, touching, voxels, len(mask), fit) if fit.crops else "", None
        if doubts:
            there = max(1, int(np.count_nonzero(counts[0])))
            size = outside(volume, seen[name]) if seen and name in seen else math.nan
            doubt = replace(doubts[value - 1], range=size, edge=touching / there)
        measured.append(Region(name, value, voxels, volume, centroid, note, doubt))
    return tuple(measured)


def _centre(counts: np.ndarray, voxels: int) -> float:
    return float(counts @ np.arange(len(counts)) / voxels) if voxels else math.nan


def _touching(inside: np.ndarray, fit: GridWindow) -> np.ndarray:
    """In which slices a region reaches a border of the window beyond which the scan goes on."""
    bottom, right = fit.top + fit.height, fit.left + fit.width
    rows, columns = fit.original
    above_and_below = [fit.top] * (fit.top > 0) + [bottom - 1] * (bottom < rows)
    beside = [fit.left] * (fit.left > 0) + [right - 1] * (right < columns)
    return np.logical_or(inside[:, above_and_below].any(axis=(1, 2)), inside[:, :, beside].any(axis=(1, 2)))


def _note(name: str, touching: int, voxels: int, slices: int, fit: GridWindow) -> str:
    """A warning if a class is not there or reaches such a border."""
    rows, columns = fit.original
    if not voxels:
        seen = f"{min(fit.height, rows)} x {min(fit.width, columns)}"
        return f"{name} was not found; of {rows} x {columns} pixels the run looks at {seen} in the middle only"
    if not touching:
        return ""
    return (
        f"{name} reaches the border of the {fit.height} x {fit.width} pixels that the run looks at, in "
        f"{touching} of {slices} slices, and the slices have {rows} x {columns}: a part may be missing"
    )
