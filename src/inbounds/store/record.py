"""One scan of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from inbounds.described import Count, Name
from inbounds.regions import Geometry
from inbounds.store.grid import GridWindow, nearest

SPLITS = ("train", "validation", "test")
Length = Annotated[float, Field(gt=0, le=1e6)]
Short = Annotated[str, StringConstraints(max_length=255)]


def _known(split: str) -> str:
    if split not in SPLITS:
        raise ValueError(f"a split is none of {', '.join(SPLITS)}")
    return split


@dataclass(frozen=True)
class Record:
    """One scan in a store: where its slices are and how they relate to the file they came from.

    Attributes:
        name: Names the scan, and is the `case` of the facts.
        patient: Whose scan it is. All scans of a patient are in the same split.
        split: `train`, `validation` or `test`.
        first: Index of its first slice in the store's arrays.
        slices: How many it has. Slice `i` of the scan is slice `i` of the original file, unless `depth` is given.
        fit: How its slices lie on the grid.
        spacing: In mm, between slices, rows and columns of the original.
        intensity: The original brightness of the store's black and of its white.
        phase: Such as ED or ES, if known.
        truth: Whether its truth is known.
        lost: How many foreground pixels of the truth the fit cut off.
        group: Such as the pathology, if known.
        depth: How many slices the original has, where they were brought to another distance.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    name: Name
    patient: Short
    split: Annotated[str, AfterValidator(_known)]
    first: Count
    slices: Annotated[int, Field(ge=1, le=1_000_000)]
    fit: GridWindow
    spacing: tuple[Length, Length, Length]
    intensity: tuple[float, float]
    phase: Short = ""
    truth: bool = True
    lost: Count = 0
    group: Short = ""
    depth: Annotated[int, Field(ge=1, le=1_000_000)] | None = None

    @property
    def original_slices(self) -> int:
        """How many slices the original has."""
        return self.slices if self.depth is None else self.depth

    @property
    def grid_spacing(self) -> tuple[float, float, float]:
        """In mm, between slices, rows and columns of the grid."""
        between, height, width = self.spacing
        down, across = self.fit.scale
        return between * self.original_slices / self.slices, height / down, width / across

    @property
    def voxel(self) -> float:
        """Voxels of the grid per voxel of the original."""
        return self.fit.area * self.slices / self.original_slices

    def nearest(self) -> list[int]:
        """For each slice of the original, the one of the scan in which its middle lies."""
        return list(map(int, nearest(self.original_slices, self.slices)))

    def showing(self, number: int) -> list[int]:
        """The slices of the scan whose middle lies in a slice of the original; the nearest, if there is none."""
        found = [at for at, of in enumerate(nearest(self.slices, self.original_slices).tolist()) if of == number]
        return found or [self.nearest()[number]]

    @property
    def range(self) -> range:
        """The indices of its slices in the store's arrays."""
        return range(self.first, self.first + self.slices)

    @property
    def span(self) -> slice:
        """The same, to take them."""
        return slice(self.first, self.first + self.slices)

    def geometry(self, number: int | None) -> Geometry:
        """How one of its slices lies on the grid, or with `None` all of it."""
        slices = self.original_slices if number is None else None
        deep = 1.0 if number is not None else self.slices / self.original_slices
        how = self.fit.original, slices, self.spacing, self.fit.scale, self.fit.point, self.intensity
        return Geometry(*how, deep)
