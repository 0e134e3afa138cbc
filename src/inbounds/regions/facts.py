"""How people write down a statistic, and what becomes of it when its image is fitted to a grid or augmented."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from inbounds.regions.region import suffixes
from inbounds.regions.scans import Scans

Points: TypeAlias = Float[Tensor, "n P 2"]


@dataclass(frozen=True)
class Geometry:
    """How a slice lies on the grid; or a whole scan, if `slices` says how many it has.

    `shape` are the original rows and columns, `spacing` is in mm between slices, rows and columns, `scale` are grid
    pixels per original pixel, `point` takes a position to the grid, `intensity` is that of the grid's black and white,
    `deep` are slices of the grid per original slice.
    """

    shape: tuple[int, int]
    slices: int | None
    spacing: tuple[float, float, float]
    scale: tuple[float, float]
    point: Callable[[float, float], tuple[float, float]]
    intensity: tuple[float, float]
    deep: float = 1.0


@dataclass(frozen=True)
class Motion:
    """What augmentation does to each image: an orthogonal `turn` and a `factor` about its middle, a `shift` in pixels.

    Brightness is multiplied by `gain`, then `offset` is added. `sides` are the images' rows and columns.
    """

    sides: tuple[int, int]
    turn: Float[Tensor, "n 2 2"]
    shift: Float[Tensor, "n 2"]
    factor: Float[Tensor, " n"]
    gain: Float[Tensor, " n"]
    offset: Float[Tensor, " n"]

    def each(self, scans: Scans) -> Motion:
        """That of each slice, where this is that of each scan."""
        return Motion(self.sides, *map(scans.each, (self.turn, self.shift, self.factor, self.gain, self.offset)))

    def still(self) -> Motion:
        """The same about the origin, as differences of positions move."""
        return Motion((1, 1), self.turn, torch.zeros_like(self.shift), self.factor, self.gain, self.offset)

    def middle(self) -> Float[Tensor, " 2"]:
        """The middle of the images."""
        return torch.stack([self.turn.new_full((), (side - 1) / 2) for side in self.sides])

    def points(self, points: Points) -> Points:
        """Where points (row, column) end up."""
        middle = self.middle()
        return turned(self.turn, points - middle) * self.factor[:, None, None] + middle + self.shift[:, None, :]

    def boxes(self, low: Points, high: Points) -> tuple[Points, Points]:
        """The smallest upright boxes around what lay between two corners; NaN is an open side, and may open others."""
        middle, turn = self.middle(), self.turn[:, None]
        ends = (low.nan_to_num(-torch.inf) - middle, high.nan_to_num(torch.inf) - middle)
        terms = torch.stack([torch.where(turn.abs() < 1e-6, 0, turn * end[..., None, :]) for end in ends])
        sides = (terms.amin(dim=0).sum(dim=-1), terms.amax(dim=0).sum(dim=-1))
        low, high = (side * self.factor[:, None, None] + middle + self.shift[:, None, :] for side in sides)
        return torch.where(low.isinf(), torch.nan, low), torch.where(high.isinf(), torch.nan, high)


def turned(matrix: Float[Tensor, "n 2 2"], points: Points) -> Points:
    """Written out, because a matrix product may be rounded to half precision, which moves pixels."""
    return (matrix[:, None] * points[..., None, :]).sum(dim=-1)


@dataclass(frozen=True)
class FactColumns:
    """The columns in which people give a statistic, and how the fact follows its image.

    Attributes:
        names: One column for each component, in units of the original file.
        units: Other columns for a statistic of one component: from their numbers to those of the first column. NaN
            where a unit says nothing, such as an area of a whole scan.
        to_grid: From numbers of the original file to those on the grid, one for each component. NaN is unknown.
        from_grid: The way back, by which a simulation writes down what it measures on the grid; not asked for size,
            centroid and mean intensity, which it measures with their errors.
        moved: The fact of an augmented image.
        moved_range: Likewise both ends of a range; by default each as the fact, which suits what keeps the order of
            numbers and does not mix components.
        refused: Why a component cannot have this value; nothing where it can.
        channels: There is a component for each channel of the image; people give that of the first.

    Example:
        >>> FactColumns(("elongation",)).names  # a ratio, which neither a grid nor augmentation changes
        ('elongation',)
    """

    names: tuple[str, ...]
    units: Mapping[str, Callable[[float, Geometry], float]] = field(default_factory=dict, hash=False)
    to_grid: Callable[[Sequence[float], Geometry], Sequence[float]] = lambda values, _: values
    from_grid: Callable[[Sequence[float], Geometry], Sequence[float]] = lambda values, _: values
    moved: Callable[[Tensor, Motion], Tensor] = lambda fact, _: fact
    moved_range: Callable[[Tensor, Tensor, Motion], tuple[Tensor, Tensor]] | None = None
    refused: Callable[[int, float, Geometry], str] = lambda *_: ""
    channels: bool = False

    def read(self, column: str, number: float, geometry: Geometry) -> tuple[int, float]:
        """Which component a column gives, and its number in the unit of the first."""
        if column in self.units:
            return 0, self.units[column](number, geometry)
        return self.names.index(column), number

    def follow(self, facts: Mapping[str, Tensor], name: str, motion: Motion) -> dict[str, Tensor]:
        """Those of the facts that are on a statistic, and on its range, for augmented images."""
        now: dict[str, Tensor] = {}
        for of in suffixes(facts):
            value, *ends = (f"{one}{of}" for one in (name, *range_of(name)))
            known = {one: facts[one] for one in (value, *ends) if one in facts}
            now |= {one: self.moved(fact, motion) for one, fact in known.items()}
            if self.moved_range is not None and known.keys() - {value}:
                unknown = torch.full_like(next(iter(known.values())), torch.nan)
                low, high = (known.get(end, unknown) for end in ends)
                now |= zip(ends, self.moved_range(low, high, motion), strict=True)
        return now


def range_of(name: str) -> tuple[str, str]:
    """What the ends of a range are called, of a column or a fact: `size_min`, `size_max`."""
    return f"{name}_min", f"{name}_max"
