"""Slices that stay on the disk, read by threads before they are asked for."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int, Shaped, UInt8
from torch import Tensor

from inbounds.store.blocks import Images
from inbounds.store.rle import Labels

THREADS = 4
"""They wait for the disk most of the time."""
AHEAD = 8
"""Batches that are on their way at once."""


class Held(NamedTuple):
    """Slices in memory, as stored, and their labels."""

    images: Shaped[Tensor, "B channels *space"]
    labels: UInt8[Tensor, "B *space"]


class LabelMaps:
    """Label maps that are kept as runs, and drawn when they are asked for, with the values that are trained on.

    Args:
        maps: Where each scan's are.
        rows: Of each slice, its row there.
        tables: What becomes of each value.
    """

    def __init__(self, maps: Sequence[Labels], rows: Int[np.ndarray, " n"], table: UInt8[np.ndarray, " 256"]) -> None:
        self.maps, self.rows, self.table = maps, rows, table
        self.shape = (len(rows), *maps[0].shape[1:])
        self.device = torch.device("cpu")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Tensor | slice) -> UInt8[Tensor, "B *space"]:
        places = range(len(self))[index] if isinstance(index, slice) else index.tolist()
        made = np.empty((len(places), *self.shape[1:]), dtype=np.uint8)
        for into, place in zip(made, places, strict=True):
            np.take(self.table, self.maps[place][int(self.rows[place])], out=into)
        return torch.from_numpy(made)

    def split(self, size: int) -> Iterator[UInt8[Tensor, "B *space"]]:
        """All of them in order, so many at a time."""
        for first in range(0, len(self), size):
            yield self[slice(first, first + size)]


def read(images: Images, rows: Int[np.ndarray, " B"], *, pinned: bool) -> Shaped[Tensor, "B channels *space"]:
    """Some slices, checked, in memory from which a GPU can fetch them by itself."""
    images.check(rows)
    kind = torch.from_numpy(np.empty(0, dtype=images.dtype)).dtype
    made = torch.empty((len(rows), *images.shape[1:]), dtype=kind, pin_memory=pinned)
    for into, row in zip(made.numpy(), rows.tolist(), strict=True):
        images.read(row, into)
    return made


class Ahead:
    """Batches in an order that is known beforehand.

    Args:
        images: Where slices are.
        labels: Their label maps.
        rows: The row of each slice in `images`.
        pinned: Whether a GPU will fetch them.
    """

    def __init__(self, images: Images, labels: LabelMaps | Tensor, rows: Int[Tensor, " n"], *, pinned: bool) -> None:
        self.images, self.labels, self.rows, self.pinned = images, labels, rows, pinned
        self.threads = ThreadPoolExecutor(min(THREADS, 2 * (os.cpu_count() or 1)), thread_name_prefix="ahead")
        self.due: Iterator[Tensor] = iter(())
        self.coming: deque[Future[Held]] = deque()

    def begin(self, order: Iterable[Tensor]) -> None:
        """Forget what was on its way, and read these next: the positions of each batch."""
        while self.coming:
            self.coming.popleft().cancel()
        self.due = iter(order)
        for _ in range(AHEAD):
            self._ask()

    def next(self) -> Held:
        """The next batch."""
        held = self.coming.popleft().result()
        self._ask()
        return held

    def _ask(self) -> None:
        index = next(self.due, None)
        if index is not None:
            self.coming.append(self.threads.submit(self.read, index))

    def read(self, index: Int[Tensor, " B"]) -> Held:
        """Slices by position, now."""
        labels = self.labels[index]
        images = read(self.images, self.rows[index].numpy(), pinned=self.pinned)
        return Held(images, labels.pin_memory() if self.pinned else labels)
