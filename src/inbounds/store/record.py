"""One scan of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints

from inbounds.described import Count, Name
from inbounds.regions import Geometry
from inbounds.store.grid import GridWindow

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
        slices: How many it has. Slice `i` of the scan is slice `i` of the original file.
        fit: How its slices lie on the grid.
        spacing: In mm, between slices, rows and columns of the original.
        intensity: The original brightness of the store's black and of its white.
        phase: Such as ED or ES, if known.
        truth: Whether its truth is known.
        lost: How many foreground pixels of the truth the fit cut off.
        group: Such as the pathology, if known.
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
        slices = self.slices if number is None else None
        return Geometry(self.fit.original, slices, self.spacing, self.fit.scale, self.fit.point, self.intensity)
