"""What speaks against a mask where no truth can tell: numbers to sort by, so that the worst are looked at first."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import UInt8

REASONS = {
    "range": "its volume lies outside those of the training scans",
    "edge": "it touches the edge of what the run looks at",
    "pieces": "it is in several pieces",
    "mirrored": "mirrored images give another mask",
    "runs": "the runs give different masks",
}


PARTS = tuple(REASONS)


@dataclass(frozen=True)
class Doubt:
    """What speaks against the mask of a class: each part from 0, nothing, to 1; NaN where it is not known.

    Attributes:
        range: How far the volume lies outside the range seen in training, 1 minus its ratio to the nearer end: 0.5 for
            half the smallest or twice the largest, 1 for an empty mask where none was empty.
        edge: The share of the region's slices that touch the edge of the grid, where the scan goes on beyond it.
        pieces: The share of the voxels outside the largest connected piece.
        mirrored: 1 minus the DSC with the masks of the image mirrored left to right and upside down, on average.
        runs: 1 minus the DSC with the mask of each run by itself, on average, where several were asked.

    Example:
        >>> Doubt(range=0.5, pieces=0.2).total  # 1 - (1 - 0.5) * (1 - 0.2)
        0.6
    """

    range: float = math.nan
    edge: float = math.nan
    pieces: float = math.nan
    mirrored: float = math.nan
    runs: float = math.nan

    @property
    def total(self) -> float:
        """All parts in one number: 0 if all are 0, 1 if one of them is, and more with each part."""
        return float(1 - math.prod(1 - part for part in asdict(self).values() if not math.isnan(part)))

    @property
    def reason(self) -> str:
        """The largest part, in words."""
        parts = {name: part for name, part in asdict(self).items() if part > 0}  # which NaN is not
        return REASONS[max(parts, key=lambda name: parts[name])] if parts else ""


def outside(volume: float, seen: tuple[float, float]) -> float:
    """How far a volume lies outside a range, from 0 (inside) to 1.

    Example:
        >>> outside(5.0, (10.0, 20.0)), outside(15.0, (10.0, 20.0)), outside(80.0, (10.0, 20.0))
        (0.5, 0.0, 0.75)
    """
    low, high = seen
    if high == 0:  # nothing was found in training either
        return 1.0
    return 1 - volume / low if volume < low else 1 - high / volume if volume > high else 0.0


def disagreement(mask: UInt8[np.ndarray, "D H W"], others: UInt8[np.ndarray, "n D H W"], classes: int) -> list[float]:
    """1 minus the DSC between a mask and others, on average, for classes 1, 2, ...; NaN if there are no others.

    Two empty masks agree.
    """
    apart = np.full((len(others), classes), math.nan)
    for number, other in enumerate(others):
        for k in range(1, classes + 1):
            one, two = mask == k, other == k
            both = int(one.sum()) + int(two.sum())
            apart[number, k - 1] = 1 - 2 * int((one & two).sum()) / both if both else 0.0
    return apart.mean(axis=0).tolist() if len(others) else [math.nan] * classes


def in_pieces(mask: UInt8[np.ndarray, "D H W"], largest: UInt8[np.ndarray, "D H W"], classes: int) -> list[float]:
    """For classes 1, 2, ... the share of the voxels outside the largest piece; 0 for an empty mask."""
    counts = [(int((mask == k).sum()), int((largest == k).sum())) for k in range(1, classes + 1)]
    return [1 - kept / all_of_it if all_of_it else 0.0 for all_of_it, kept in counts]
