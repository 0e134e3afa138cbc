"""A scan on its way to a mask: its header, then its slices on the run's grid, then what networks see in these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped, UInt8
from torch import Tensor

from inbounds.inference.doubt import shared
from inbounds.scans.format import Scan, Spacing
from inbounds.store.grid import GridWindow

SMALL = 256 << 20
"""Bytes: a scan that needs less, all told, may be read while others are segmented, and share batches with them."""


@dataclass(frozen=True)
class Due:
    """A scan of which only the header was read.

    Attributes:
        name: What messages call it.
        fit: Where its slices lie on the grid.
        spacing: Of slices, rows and columns in mm, along the axes of the run.
        slices: How many it has; on the grid there may be another number.
        load: Reads its voxels, as the run's store would have them.
        classes: How many there are, without the background.
        keep: Whether probabilities are kept.
        needed: The bytes that segmenting it takes.
        notes: Sentences about it.
        header: Of its file; `None` for an array.
    """

    name: str
    fit: GridWindow
    spacing: Spacing
    slices: int
    load: Callable[[], Shaped[np.ndarray, "grid_slices channels H W"]]
    classes: int
    keep: bool = False
    needed: int = 0
    notes: tuple[str, ...] = ()
    header: Scan | None = None

    @property
    def small(self) -> bool:
        """Whether it may be read before its turn."""
        return self.needed < SMALL

    def read(self) -> OnGrid:
        """Go on with its voxels."""
        return OnGrid(self, self.load())


class OnGrid:
    """A scan on the grid, and what has been found in its slices so far.

    Attributes:
        due: What its header says.
        stored: Its slices, as the run's store would have them.
        mask: Of these slices, in the scan's own rows and columns.
        probabilities: The same, where they are kept.
        agreed: What the mask shares with those of the mirrored scan, and of each of several runs.
        failure: Why nothing can be found.
    """

    def __init__(self, due: Due, stored: Shaped[np.ndarray, "slices channels H W"]) -> None:
        self.due, self.stored = due, stored
        self.mask = np.zeros((len(stored), *due.fit.original), dtype=np.uint8)
        shape = (due.classes + 1, *self.mask.shape)
        self.probabilities = np.zeros(shape, dtype=np.float16) if due.keep else None
        self.agreed: list[np.ndarray] = []
        self.failure: Exception | None = None

    @property
    def bytes(self) -> int:
        """What it takes by itself."""
        kept = 0 if self.probabilities is None else self.probabilities.nbytes
        return self.stored.nbytes + self.mask.nbytes + kept

    def put(self, first: int, probs: Float[Tensor, "n K H W"], masks: UInt8[np.ndarray, "all n H W"]) -> None:
        """What was found in some slices, from `first` on: the mask, and those it is compared with."""
        some, fit = slice(first, first + len(probs)), self.due.fit
        # What is in the scan's own size is never held for all classes at once.
        self.mask[some] = fit.back(masks[0])
        self.agreed.append(shared(masks[0], masks[1:], self.due.classes))
        if self.probabilities is not None:
            for k, plane in enumerate(probs.half().cpu().numpy().swapaxes(0, 1)):
                self.probabilities[k, some] = fit.back(plane, outside=int(k == 0))


def joined(scans: Sequence[OnGrid]) -> Shaped[np.ndarray, "slices channels H W"]:
    """The slices of several scans on one grid, one scan behind the other; those of a single one are not copied."""
    return scans[0].stored if len(scans) == 1 else np.concatenate([one.stored for one in scans])


def shared_out(scans: Sequence[OnGrid], first: int, count: int) -> list[tuple[OnGrid, int, slice]]:
    """Whose slices those of a batch are, `count` from `first` on: the scan, the slice it begins with, where it lies.

    Example:
        Of two scans of 3 slices, a batch of 4 from slice 2 on has one of the first, from its slice 2, and three of the
        other, from its slice 0.
    """
    shares, begin = [], 0
    for one in scans:
        end = begin + len(one.stored)
        low, high = max(first, begin), min(first + count, end)
        if low < high:
            shares.append((one, low - begin, slice(low - first, high - first)))
        begin = end
    return shares
