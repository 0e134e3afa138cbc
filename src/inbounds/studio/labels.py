"""The labels of one scan, as what people did leaves them: an array, and how many there are of what and where."""

from __future__ import annotations

import sys
import zlib
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt8

from inbounds.scans.format import Shape
from inbounds.studio.raster import Flat

UNLABELLED = 255
REMEMBERED = 4_000_000
"""Voxels of which it is remembered what they were before, so that the last actions are taken back at once."""
FORGOTTEN = sys.maxsize
Values = UInt8[np.ndarray, " voxels"]


class Labels:
    """Which class each voxel has.

    Attributes:
        shape: Slices, rows and columns.
        last: The last action that labelled anything.
        along: How many voxels are labelled in each slice of each axis.
        classes: How many voxels have each value; the last are the unlabelled.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        # A class is kept as the next number, so that memory is taken only where somebody has labelled something.
        self._kept = np.zeros(shape, dtype=np.uint8)
        self.along = [np.zeros(side, dtype=np.int64) for side in shape]
        self.classes = np.zeros(256, dtype=np.int64)
        self.classes[UNLABELLED] = self._kept.size
        self.last = 0
        self._before: deque[tuple[int, Flat, Values]] = deque()
        self._room = REMEMBERED

    @property
    def array(self) -> UInt8[np.ndarray, "slices rows columns"]:
        """The classes, 255 where unlabelled: as large as the scan."""
        return self._kept - np.uint8(1)

    def picture(self, kept: UInt8[np.ndarray, "rows columns"]) -> UInt8[np.ndarray, "rows columns"]:
        """The classes in a view of `kept`."""
        return kept - np.uint8(1)

    @property
    def kept(self) -> UInt8[np.ndarray, "slices rows columns"]:
        """The classes plus 1, 0 where unlabelled: nothing is copied."""
        return self._kept

    def put(self, where: Flat, value: int | Values, action: int = 0) -> None:
        """Label voxels; 255 takes labels away. The action that does it may be taken back while it is the last."""
        before = self._kept.reshape(-1)[where]
        after = np.broadcast_to(np.asarray(value, dtype=np.uint8) + np.uint8(1), before.shape)
        changed = before != after
        where, before, after = where[changed], before[changed], after[changed]
        self._change(where, before, after)
        self._before.append((action, where, before))
        self._room -= len(where)
        while self._room < 0:
            self._room += len(self._before.popleft()[1])
        self.last = action

    def take_back(self, action: int) -> bool:
        """Undo the last action, if it is this one and what was there before is remembered; whether it was."""
        if not self._before or self._before[-1][0] != action:
            return False
        _, where, before = self._before.pop()
        self._room += len(where)
        self._change(where, self._kept.reshape(-1)[where], before)
        self.last = self._before[-1][0] if self._before else FORGOTTEN
        return True

    def _change(self, where: Flat, before: Values, after: Values) -> None:
        self._kept.reshape(-1)[where] = after
        self.classes += np.bincount(after - np.uint8(1), minlength=256)
        self.classes -= np.bincount(before - np.uint8(1), minlength=256)
        more = (after != 0).astype(np.int64) - (before != 0)
        for axis, place in enumerate(np.unravel_index(where, self.shape)):
            self.along[axis] += np.bincount(place, weights=more, minlength=self.shape[axis]).astype(np.int64)

    def fill(self, where: Flat, value: int, action: int = 0) -> None:
        """Label those of some voxels that are unlabelled."""
        self.put(where[self._kept.reshape(-1)[where] == 0], value, action)

    def voxels(self) -> tuple[Flat, Values]:
        """Every labelled voxel, and its class."""
        where = [self._labelled(number) for number in np.flatnonzero(self.along[0]).tolist()]
        everywhere = np.concatenate(where) if where else np.zeros(0, dtype=np.int64)
        return everywhere, self._kept.reshape(-1)[everywhere] - np.uint8(1)

    def in_slice(self, number: int) -> Int64[np.ndarray, " 256"]:
        """How many voxels of a slice have each value."""
        if not self.along[0][number]:  # as in most slices
            return np.bincount([UNLABELLED], weights=[self._kept[number].size], minlength=256).astype(np.int64)
        return np.bincount((self._kept[number] - np.uint8(1)).ravel(), minlength=256)

    def summary(self) -> dict[str, Any]:
        """What a list of scans says of the labels."""
        there = np.flatnonzero(self.classes[:UNLABELLED])
        return {
            "shape": list(self.shape),
            "classes": {str(value): int(self.classes[value]) for value in there.tolist()},
            "marks": [np.flatnonzero(counts).tolist() for counts in self.along],
        }

    def _labelled(self, number: int) -> Flat:
        size = self.shape[1] * self.shape[2]
        return np.flatnonzero(self._kept[number]).astype(np.int64) + number * size


NOTHING: Mapping[str, Any] = {"classes": {}, "marks": [[], [], []]}
"""The summary of a scan on which nobody has labelled anything."""


def pack(where: Flat, values: Values) -> bytes:
    """Voxels and their classes as runs, for a table: those of a painted mask take little room."""
    order = np.argsort(where, kind="stable")
    where, values = where[order], values[order]
    new = np.flatnonzero(np.diff(where, prepend=-2) != 1)
    new = np.union1d(new, np.flatnonzero(np.diff(values.astype(np.int16), prepend=-1)))
    lengths = np.diff(new, append=len(where))
    runs = np.stack([where[new], lengths, values[new].astype(np.int64)]).astype("<i8")
    return zlib.compress(runs.tobytes())


def unpack(packed: bytes) -> tuple[Flat, Values]:
    """What `pack` made of voxels and classes."""
    first, lengths, values = np.frombuffer(zlib.decompress(packed), dtype="<i8").astype(np.int64).reshape(3, -1)
    inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(first, lengths) + inside, np.repeat(values, lengths).astype(np.uint8)
