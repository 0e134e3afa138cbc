"""One scan of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inbounds.regions import Geometry
from inbounds.store.grid import GridWindow


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

    name: str
    patient: str
    split: str
    first: int
    slices: int
    fit: GridWindow
    spacing: tuple[float, float, float]
    intensity: tuple[float, float]
    phase: str = ""
    truth: bool = True
    lost: int = 0
    group: str = ""

    @property
    def range(self) -> range:
        """The indices of its slices in the store's arrays."""
        return range(self.first, self.first + self.slices)

    def geometry(self, number: int | None) -> Geometry:
        """How one of its slices lies on the grid, or with `None` all of it."""
        slices = self.slices if number is None else None
        return Geometry(self.fit.original, slices, self.spacing, self.fit.scale, self.fit.point, self.intensity)


def read_record(entry: Mapping[str, Any]) -> Record:
    """A scan as `dataset.json` tells of it."""
    fit = entry["fit"] | {"original": tuple(entry["fit"]["original"]), "shape": tuple(entry["fit"]["shape"])}
    pairs = {name: tuple(entry[name]) for name in ("spacing", "intensity")}
    return Record(**{**entry, **pairs, "fit": GridWindow(**fit)})
