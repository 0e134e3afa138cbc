"""Whether arrays are what they were when they were made: looked at when they are read, each scan's part once."""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.errors import BadInput
from inbounds.reading import open_file
from inbounds.store.record import Record


def checksum(file: Path) -> str:
    """The SHA-256 of a file."""
    with open_file(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(array: np.ndarray) -> str:
    """The SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


@dataclass(frozen=True)
class Sums:
    """What a file of a store should be.

    Attributes:
        said: The file that says so.
        whole: The SHA-256 of all of it.
        blocks: That of each scan's part; none in a store of 0.1.
        records: The scans.
        remedy: What a person can do about a file that is otherwise.
    """

    said: Path
    whole: str
    blocks: Sequence[str]
    records: Sequence[Record]
    remedy: str

    def differing(self, block: Callable[[Record], str]) -> str:
        """The first scan whose part has another checksum; nothing if there is none."""
        pairs = zip(self.records, self.blocks, strict=True) if self.blocks else ()
        return next((record.name for record, expected in pairs if block(record) != expected), "")

    def changed(self, file: Path, scan: str = "") -> BadInput:
        """The refusal of a file."""
        what = f"the part of {scan} was changed" if scan else "it was changed"
        return BadInput(f"{file}: its checksum differs from {self.said.name}: {what}; {self.remedy}")


class Images:
    """The slices `(N, channels, H, W)` of a store: indexed as an array is, and mapped into memory.

    Before the first slice of a scan is handed out, all of the scan is compared with its checksum. Where a store has
    checksums of whole files alone, all of the file is.
    """

    def __init__(self, file: Path, array: np.ndarray, sums: Sums) -> None:
        self.file, self.array, self.sums = file, array, sums
        self.shape, self.dtype, self.nbytes = array.shape, array.dtype, array.nbytes
        self.owner = np.repeat(np.arange(len(sums.records)), [record.slices for record in sums.records])
        self.sound = np.zeros(len(sums.records), dtype=bool)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Any:
        self.check(index[0] if isinstance(index, tuple) else index)
        return self.array[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self[:], dtype=dtype, copy=copy)

    def read(self, row: int, into: np.ndarray) -> None:
        """One slice, whose scan is checked, by a single request of the disk; other threads go on meanwhile."""
        if self.descriptor is None:
            into[...] = self.array[row]
            return
        view, done = into.view(np.uint8).data.cast("B"), 0
        first: int = self.array.offset + row * len(view)  # type: ignore[attr-defined]  # of a memory map
        while done < len(view):
            count = os.preadv(self.descriptor, [view[done:]], first + done)
            if not count:
                raise BadInput(f"{self.file}: it ends before slice {row}; make it again")
            done += count

    @cached_property
    def descriptor(self) -> int | None:
        """The open file; nothing where a system cannot read at a place."""
        if not hasattr(os, "preadv"):
            return None
        opened = os.open(self.file, os.O_RDONLY)
        weakref.finalize(self, os.close, opened)
        return opened

    def check(self, rows: Any) -> None:
        """Refuse slices that are not as they were written."""
        if self.sound.all():
            return
        if not self.sums.blocks:
            if checksum(self.file) != self.sums.whole:
                raise self.sums.changed(self.file)
            self.sound[:] = True
            return
        for scan in np.unique(self.owner[rows]):
            record = self.sums.records[scan]
            if not self.sound[scan] and self.block(record) != self.sums.blocks[scan]:
                raise self.sums.changed(self.file, record.name)
            self.sound[scan] = True

    def block(self, record: Record) -> str:
        """The checksum of a scan's slices."""
        return digest(self.array[record.span])
