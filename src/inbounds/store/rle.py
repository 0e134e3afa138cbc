"""Label maps as runs of equal values: a hundredth of the size, memory-mapped, read slice by slice.

A label map is mostly one value. Flattened slice after slice, it is kept as the length and the value of each run; a run
never crosses from one scan into the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from inbounds.errors import BadInput
from inbounds.memory import require
from inbounds.reading import regular
from inbounds.store.blocks import Sums, checksum, digest
from inbounds.store.record import Record

RUN = np.dtype([("length", "<u4"), ("value", "u1")])


def open_array(file: Path) -> np.ndarray:
    """An `.npy` file, memory-mapped; what is written to it in memory never reaches the disk."""
    regular(file)
    try:
        array = np.lib.format.open_memmap(file, mode="c")
        size = file.stat().st_size
    except Exception as error:  # a damaged header makes NumPy raise token, syntax and type errors too
        raise BadInput(f"{file}: cannot be read ({error}); make it again") from None
    if array.offset + array.nbytes != size:
        raise BadInput(f"{file}: {size} bytes long, and {array.offset + array.nbytes} by its header; make it again")
    return array


def encode(label: UInt8[np.ndarray, "n *space"]) -> np.ndarray:
    """The runs of some slices."""
    flat = label.reshape(-1)
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    runs = np.empty(len(starts), dtype=RUN)
    runs["length"], runs["value"] = np.diff(starts, append=flat.size), flat[starts]
    return runs


class Labels:
    """Label maps `(N, *space)` in a file. `labels[i]` and `labels[i:j]` give arrays, `labels[:]` all of them.

    As all runs are read to find any, the whole file is compared with its checksum first, where that is told.
    """

    def __init__(self, file: Path, shape: tuple[int, ...], sums: Sums | None = None) -> None:
        self.file, self.shape, self.sums = file, shape, sums
        runs = open_array(file)
        if runs.dtype != RUN or runs.ndim != 1:
            raise BadInput(f"{file}: not a file of label runs; make it again")
        self.values, self.ends = runs["value"], np.cumsum(runs["length"], dtype=np.int64)
        if len(runs) == 0 or self.ends[-1] != math.prod(shape):
            raise BadInput(f"{file}: its runs do not add up to {shape} pixels; make it again")
        if sums and checksum(file) != sums.whole:
            raise sums.changed(file, sums.differing(self.block))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int | slice) -> np.ndarray:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step != 1:
                raise ValueError(f"labels are read in steps of 1, not {step}")
            return self._decode(first, max(first, last))
        if not -len(self) <= index < len(self):
            raise IndexError(f"slice {index} of {len(self)}")
        array: np.ndarray = self._decode(index % len(self), index % len(self) + 1)[0]
        return array

    def block(self, record: Record) -> str:
        """The checksum of a scan's runs."""
        lengths, values = self._runs(record.first, record.range.stop)
        runs = np.empty(len(lengths), dtype=RUN)
        runs["length"], runs["value"] = lengths, values
        return digest(runs)

    def _decode(self, first: int, last: int) -> np.ndarray:
        lengths, values = self._runs(first, last)
        return np.repeat(values, lengths).reshape(-1, *self.shape[1:])

    def _runs(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The lengths and values of the runs of some slices."""
        pixels = math.prod(self.shape[1:])
        what = f"{self.file}: reading {last - first:,} label maps"
        require((last - first) * pixels, what, "the store is damaged, or its scans are too large for this machine")
        begin, end = first * pixels, last * pixels
        here = slice(int(np.searchsorted(self.ends, begin, side="right")), int(np.searchsorted(self.ends, end)) + 1)
        ends = np.clip(self.ends[here], begin, end)
        return ends - np.concatenate([[begin], ends[:-1]]), self.values[here]


@contextmanager
def array_file(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Iterator[Callable[[np.ndarray], None]]:
    """Write an `.npy` file piece by piece along its first axis; `shape` is that of one row.

    Plain writes rather than a memory map, because a full disk then raises an error instead of killing the process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = 0
    with path.open("wb") as stream:

        def header() -> None:
            # NumPy pads this header so that a first axis of any length can be written over it.
            described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows, *shape)}
            np.lib.format.write_array_header_1_0(stream, described)

        def append(piece: np.ndarray) -> None:
            nonlocal rows
            if piece.shape[1:] != shape or piece.dtype != dtype:
                raise ValueError(f"{path}: a piece {piece.dtype} of {piece.shape} does not fit rows {dtype} of {shape}")
            stream.write(np.ascontiguousarray(piece).data)
            rows += len(piece)

        header()
        yield append
        stream.seek(0)
        header()


@contextmanager
def labels_file(path: Path) -> Iterator[Callable[[np.ndarray], None]]:
    """Write label maps `(n, *space)` piece by piece as runs."""
    with array_file(path, RUN, ()) as append:
        yield lambda label: append(encode(label))
