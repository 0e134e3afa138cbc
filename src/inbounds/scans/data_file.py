"""The voxels that a header of text speaks of: in which file they lie, and reading them no further than it says.

A header is somebody else's words. What it names is read only beside it or below, unless the person who starts the
program says that data may lie elsewhere; and what it compressed is inflated only to the size that it promises.
"""

from __future__ import annotations

import bz2
import gzip
import math
import zlib
from collections.abc import Callable
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path
from typing import Protocol

import numpy as np

from inbounds.errors import BadInput
from inbounds.reading import open_file, regular
from inbounds.scans.format import BZIP2, DEFLATE, Shape, Voxels, blaming, check_end, check_room, gather

FOLLOW = ContextVar("follow", default=False)
"""Whether data files may lie elsewhere than beside their headers or below."""


def data_file(path: Path, name: str, whole: str) -> Path:
    """The file beside a header that holds its voxels; `whole` is the suffix of a file that holds both."""
    if name.upper().startswith("LIST") or "%" in name:
        raise BadInput(f"{path}: the slices lie in separate files ({name}); save the scan as a single {whole} file")
    data = path.parent / name
    outside = name.startswith(("//", "\\\\"))  # a name of this kind may ask another computer
    if not FOLLOW.get() and (outside or not _within(path.parent, data)):
        raise BadInput(
            f"{path}: its data file {name!r} lies outside the folder of the header; put it beside the header, or allow "
            "that with --follow if you trust where this header comes from"
        )
    if not name or not _there(data):
        raise BadInput(f"{path}: its data file {name!r} is missing; put it beside the header under exactly that name")
    return data


def _within(folder: Path, data: Path) -> bool:
    try:
        return data.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a ring of links, or no name at all: there is no such file
        return True


def _there(data: Path) -> bool:
    try:
        return regular(data).is_file()
    except OSError:
        return False


class _Stream(Protocol):
    def read(self, count: int, /) -> bytes: ...


class _Zlib:
    """A stream of zlib, or of gzip, by the piece."""

    def __init__(self, file: BufferedReader) -> None:
        self.file, self.inflate = file, zlib.decompressobj(wbits=47)

    def read(self, count: int, /) -> bytes:
        while not self.inflate.eof:
            packed = self.inflate.unconsumed_tail or self.file.read(1 << 16)
            if piece := self.inflate.decompress(packed, count):
                return piece
            if not packed:
                raise zlib.error("the stream stops early")
        return b""


_UNPACKED: dict[str, Callable[[BufferedReader], _Stream]] = {
    "raw": lambda file: file,
    "zlib": _Zlib,
    "gzip": lambda file: gzip.GzipFile(fileobj=file),
    "bzip2": bz2.BZ2File,
}
EXPANSION = {"raw": 1, "zlib": DEFLATE, "gzip": DEFLATE, "bzip2": BZIP2}
"""How data may be compressed, and how far they expand at most."""


def read_block(
    data: Path, offset: int, packing: str, dtype: np.dtype[np.generic], shape: Shape, before: int = 0
) -> Voxels:
    """Voxels that lie one after the other, `before` bytes of something else before them in a compressed stream.

    Such a stream must end with the last of them.
    """
    wanted = math.prod(shape) * dtype.itemsize
    with blaming(data, "the data are cut short or damaged", OSError, EOFError, zlib.error), open_file(data) as file:
        file.seek(offset)
        stream = _UNPACKED[packing](file)
        if before:
            stream.read(before)
        voxels = gather(stream.read, wanted)
        check_room(data, wanted, len(voxels))
        if packing != "raw":
            check_end(data, wanted, stream.read(1))  # where there is nothing more, this compares the checksum
    return np.frombuffer(voxels, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
