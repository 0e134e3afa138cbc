"""What speaks against a mask where no truth can tell: numbers to sort by, so that the worst are looked at first."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Int64, UInt8

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


def shared(
    mask: UInt8[np.ndarray, "D H W"], others: UInt8[np.ndarray, "n D H W"], classes: int
) -> Int64[np.ndarray, "n K 2"]:
    """What a mask shares with others, for classes 1, 2, ...: the voxels that both have, and those of either, added up.

    The numbers of parts of a scan add up to those of the scan.
    """
    counts = np.zeros((len(others), classes, 2), dtype=np.int64)
    for number, other in enumerate(others):
        for k in range(1, classes + 1):
            one, two = mask == k, other == k
            counts[number, k - 1] = np.count_nonzero(one & two), np.count_nonzero(one) + np.count_nonzero(two)
    return counts


def apart(counts: Int64[np.ndarray, "n K 2"]) -> list[float]:
    """From what a mask shares with others, 1 minus the DSC with them, on average, for classes 1, 2, ...

    NaN if there are no others. Two empty masks agree.
    """
    each = [[1 - 2 * both / either if either else 0.0 for both, either in other] for other in counts.tolist()]
    return np.mean(each, axis=0).tolist() if each else [math.nan] * counts.shape[1]


def in_pieces(mask: UInt8[np.ndarray, "D H W"], largest: UInt8[np.ndarray, "D H W"], classes: int) -> list[float]:
    """For classes 1, 2, ... the share of the voxels outside the largest piece; 0 for an empty mask."""
    found, kept = np.zeros((2, 256), dtype=np.int64)
    for one, its in zip(mask, largest, strict=True):
        found += np.bincount(one.reshape(-1), minlength=256)
        kept += np.bincount(its.reshape(-1), minlength=256)
    return [float(1 - kept[k] / found[k]) if found[k] else 0.0 for k in range(1, classes + 1)]
