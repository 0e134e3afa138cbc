"""How the slices of a scan lie on the store's grid, there and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float, Shaped, UInt8
from pydantic import ConfigDict, Field

Shape = tuple[int, int]
Side = Annotated[int, Field(ge=1, le=1_000_000)]
"""Pixels, of a slice as it came or of a window in it."""
MOST_SIDE = 8192
GridSide = Annotated[int, Field(ge=1, le=MOST_SIDE)]
Place = Annotated[int, Field(ge=-1_000_000, le=1_000_000)]
LONGER = 256
"""Pixels along the longer side of a slice once it is zoomed."""
CUT = 60
"""Rows that an axial cut of the spine leaves out at either end."""


@dataclass(frozen=True)
class GridWindow:
    """A window cut from the original slice (what lies outside it is zero), resized to the store's grid.

    Zero-padding, centre-cropping, zooming and stretching are all of this kind. Positions are pixel centres: the middle
    of pixel `i` lies at `i + 0.5` pixel widths from the edge.

    Attributes:
        original: Rows and columns of the slice as it came.
        top: First row of the window, in original pixels; negative where the slice is padded.
        left: First column, likewise.
        height: Rows of the window, in original pixels.
        width: Columns of the window.
        shape: Rows and columns of the store's grid.

    Example:
        >>> GridWindow.pad((216, 256), (256, 256))
        GridWindow(original=(216, 256), top=-20, left=0, height=256, width=256, shape=(256, 256))
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)

    original: tuple[Side, Side]
    top: Place
    left: Place
    height: Side
    width: Side
    shape: tuple[GridSide, GridSide]

    @classmethod
    def pad(cls, original: Shape, shape: Shape) -> GridWindow:
        """Zero-pad what is too small and centre-crop what is too large; pixels keep their size."""
        top, left = ((have - want) // 2 for have, want in zip(original, shape, strict=True))
        return cls(original, top, left, *shape, shape)

    @classmethod
    def resize(cls, original: Shape, shape: Shape) -> GridWindow:
        """Stretch the slice to the grid, each axis by itself."""
        return cls(original, 0, 0, *original, shape)

    @classmethod
    def zoom(cls, original: Shape, shape: Shape) -> GridWindow:
        """Enlarge or shrink the slice until its longer side has 256 pixels, then pad or crop; pixels stay square.

        For scans that show the same part of the body with more or fewer pixels.

        Example:
            >>> GridWindow.zoom((512, 428), (160, 160))
            GridWindow(original=(512, 428), top=96, left=54, height=320, width=320, shape=(160, 160))
        """
        return cls.metric(original, shape, (1.0, 1.0), max(original) / LONGER)

    @classmethod
    def metric(cls, original: Shape, shape: Shape, spacing: tuple[float, float], pixel: float) -> GridWindow:
        """Resample the slice until a pixel measures `pixel` mm along both axes, then pad or crop.

        Args:
            original: Rows and columns of the slice as it came.
            shape: Rows and columns of the store's grid.
            spacing: What its pixels measure in mm, along rows and columns.
            pixel: What those of the grid shall measure.

        Example:
            >>> GridWindow.metric((512, 428), (160, 160), (0.7, 0.7), 1.4).scale
            (0.5, 0.5)
        """
        height, width = (max(1, round(side * pixel / has)) for side, has in zip(shape, spacing, strict=True))
        return cls(original, (original[0] - height) // 2, (original[1] - width) // 2, height, width, shape)

    @classmethod
    def axial(cls, original: Shape, shape: Shape) -> GridWindow:
        """The middle of an axial slice of the spine, `CUT` rows less at either end; columns to the grid's share.

        Example:
            >>> GridWindow.axial((305, 39), (256, 96))
            GridWindow(original=(305, 39), top=60, left=-15, height=185, width=69, shape=(256, 96))
        """
        rows, columns = original
        height = rows - 2 * CUT if rows > 3 * CUT else rows
        width = max(1, round(height * shape[1] / shape[0]))
        return cls(original, (rows - height) // 2, -((width - columns) // 2), height, width, shape)

    @property
    def scale(self) -> tuple[float, float]:
        """Grid pixels per original pixel, along rows and columns."""
        return self.shape[0] / self.height, self.shape[1] / self.width

    @property
    def crops(self) -> bool:
        """Whether the window leaves out any part of the slice."""
        return not self.covers(self.original)

    def covers(self, middle: Shape) -> bool:
        """Whether so many rows and columns about the middle of the slice lie in the window."""
        rows, columns = ((have - want) // 2 for have, want in zip(self.original, middle, strict=True))
        inside = self.top <= rows and self.left <= columns
        return inside and self.top + self.height >= rows + middle[0] and self.left + self.width >= columns + middle[1]

    @property
    def pixels(self) -> int:
        """The most that a slice has on its way: as it came, in the window, and on the grid."""
        return max(self.original[0] * self.original[1], self.height * self.width, self.shape[0] * self.shape[1])

    @property
    def area(self) -> float:
        """What one original pixel measures on the grid."""
        return self.scale[0] * self.scale[1]

    def image(self, slices: Float[np.ndarray, "n rows columns"]) -> Float[np.ndarray, "n H W"]:
        """Slices on the grid, interpolated linearly (smoothed first where they shrink)."""
        window = self._cut(slices.astype(np.float32, copy=False), 0)
        if (self.height, self.width) == self.shape:
            return window
        resized = torch.nn.functional.interpolate(
            torch.from_numpy(window)[:, None], size=self.shape, mode="bilinear", align_corners=False, antialias=True
        )
        return resized.squeeze(1).numpy()

    def label(self, slices: UInt8[np.ndarray, "n rows columns"], outside: int) -> UInt8[np.ndarray, "n H W"]:
        """Label maps on the grid: each grid pixel takes the class of the original pixel its centre lies in."""
        if (self.height, self.width) == self.shape:
            return self._cut(slices, outside)
        (rows, into_rows), (columns, into_columns) = (
            _inside(first + nearest(n, of), have)
            for n, first, of, have in zip(
                self.shape, (self.top, self.left), (self.height, self.width), self.original, strict=True
            )
        )
        label = np.full((len(slices), *self.shape), outside, dtype=slices.dtype)
        label[:, into_rows, into_columns] = slices[:, rows[:, None], columns]
        return label

    def back(self, slices: Shaped[np.ndarray, "n H W"], outside: int = 0) -> Shaped[np.ndarray, "n rows columns"]:
        """Label maps, or probabilities, from the grid onto the original slices; what was cut off becomes `outside`."""
        inner, outer = self._overlap()
        rows, columns = (
            nearest(n, of, some) for n, of, some in zip((self.height, self.width), self.shape, outer, strict=True)
        )
        full = np.full((len(slices), *self.original), outside, dtype=slices.dtype)
        full[:, inner[0], inner[1]] = slices[:, rows[:, None], columns]
        return full

    def lost(self, slices: UInt8[np.ndarray, "n rows columns"]) -> int:
        """How many foreground pixels the window leaves out."""
        inner, _ = self._overlap()
        lost = 0
        for one in slices:
            foreground = (one != 0) & (one != 255)
            lost += int(np.count_nonzero(foreground)) - int(np.count_nonzero(foreground[inner]))
        return lost

    def point(self, row: float, column: float) -> tuple[float, float]:
        """A position in original pixels, on the grid."""
        return (row + 0.5 - self.top) * self.scale[0] - 0.5, (column + 0.5 - self.left) * self.scale[1] - 0.5

    def point_back(self, row: float, column: float) -> tuple[float, float]:
        """A position on the grid, in original pixels."""
        return (row + 0.5) / self.scale[0] - 0.5 + self.top, (column + 0.5) / self.scale[1] - 0.5 + self.left

    def _overlap(self) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
        """The part of the original inside the window, in original and in window pixels."""
        inner, outer = [], []
        for start, length, have in zip((self.top, self.left), (self.height, self.width), self.original, strict=True):
            first, last = max(start, 0), min(start + length, have)
            inner.append(slice(first, max(first, last)))
            outer.append(slice(first - start, max(first, last) - start))
        return (inner[0], inner[1]), (outer[0], outer[1])

    def _cut(self, slices: np.ndarray, outside: int) -> np.ndarray:
        inner, outer = self._overlap()
        window = np.full((len(slices), self.height, self.width), outside, dtype=slices.dtype)
        window[:, outer[0], outer[1]] = slices[:, inner[0], inner[1]]
        return window


def nearest(count: int, of: int, some: slice = slice(None)) -> np.ndarray:
    """For each of `count` pixels across, or for some of them, which of `of` pixels across its centre lies in."""
    return ((np.arange(*some.indices(count)) * 2 + 1) * of) // (2 * count)


def _inside(places: np.ndarray, count: int) -> tuple[np.ndarray, slice]:
    """Those of some rising places that lie among `count` pixels, and where they stand."""
    first, last = np.searchsorted(places, (0, count)).tolist()
    return places[first:last], slice(first, last)
