"""What every format reader gives back, and the checks that they share."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Shaped, UInt8

from inbounds.errors import BadInput
from inbounds.reading import open_file

_AT_ONCE = 1 << 24
HEARD: ContextVar[Callable[[float], object]] = ContextVar("heard", default=lambda _: None)
"""Hears, while a scan is read, which share of it is there."""
Voxels = Shaped[np.ndarray, "slices rows columns"]
Mask = UInt8[np.ndarray, "slices rows columns"]
Affine = Float[np.ndarray, "4 4"]
Shape = tuple[int, int, int]
Spacing = tuple[float, float, float]

PIECE = 1 << 21
# A deflate stream spends at least 2 bits on 258 bytes; bzip2 gets further on a file of zeros.
DEFLATE = 1032
BZIP2 = 50_000


@runtime_checkable
class Geometry(Protocol):
    """Where a scan's voxels lie, remembered in the terms of its own format so that a mask can be written back."""

    @property
    def affine(self) -> Affine | None:
        """From `(column, row, slice, 1)` to mm right, anterior, superior; `None` where the file says nothing."""

    def check(self, path: Path) -> None:
        """Refuse a name whose format cannot hold a mask of this scan."""

    def write(self, mask: Mask, path: Path) -> None:
        """Write a mask of the scan's shape, in the format that the name of a checked `path` says."""


@dataclass(frozen=True)
class Plain:
    """Voxels that lie in a file as they are, slice upon slice, so that one slice can be seen without reading all.

    Attributes:
        path: The file.
        offset: Where they begin.
        dtype: Of the file, with its order of bytes.
        scale: What a number is multiplied by, and what is added then.
    """

    path: Path
    offset: int
    dtype: np.dtype[Any]
    scale: tuple[float, float] = (1.0, 0.0)


@dataclass(frozen=True)
class Scan:
    """One scan: what it says about itself and, once they are read, its voxels.

    Attributes:
        path: The file or folder.
        shape: Slices, rows, columns.
        spacing: The distance in mm between neighbours along the same three axes.
        geometry: What a mask needs in order to lie exactly over the scan.
        files: Every file that is read for this scan, in the order of the slices where there are several.
        notes: Sentences about what was assumed, for a report.
        load: Reads the voxels. It takes whether they are labels, which matters where colours are indices.
        plain: Where the voxels lie, if they are not packed.
        voxels: What was read, if anything was.
        width: The most bytes that a voxel takes while they are read.
        series: Of DICOM, the series that it is.
        frames: Of DICOM in one file whose frames have places, the frame of each slice.
    """

    path: Path
    shape: Shape
    spacing: Spacing
    geometry: Geometry
    files: tuple[Path, ...]
    notes: tuple[str, ...]
    load: Callable[[bool], Voxels] = field(repr=False)
    plain: Plain | None = None
    voxels: Voxels | None = field(default=None, repr=False)
    width: int = 8
    series: str = ""
    frames: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The bytes of memory that reading it takes."""
        return math.prod(self.shape) * self.width

    @property
    def array(self) -> Voxels:
        """Slices, rows, columns, in the file's own type; float32 or float64 where the file rescales its values."""
        if self.voxels is None:
            raise ValueError(f"{self.path}: only the header was looked at; `read` or `read_labels` reads the voxels")
        return self.voxels


@contextmanager
def blaming(
    path: Path, what: str, *kinds: type[Exception], remedy: str = "copy or download it again"
) -> Iterator[None]:
    """Turn the errors that a library raises over a bad file into a `BadInput` with its last words."""
    try:
        yield
    except BadInput:
        raise
    except kinds as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise BadInput(f"{path}: {what} ({lines[-1][:200]}); {remedy}") from error


def library(name: str, path: Path) -> ModuleType:
    """Import a library that only some files need, at the time when one of them comes along."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BadInput(
            f"{path}: this format is read with {name}, which is not installed; pip install 'inbounds[data]'"
        ) from error


def opening(path: Path, count: int = 1024) -> bytes:
    """The first bytes of a file, which must exist, hold something, and not be a web page or a placeholder."""
    try:
        with open_file(path) as file:
            start = file.read(count)
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file; check the name") from None
    except BadInput:
        raise
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: the file cannot be opened ({error}); check the name and its permissions") from error
    if not start:
        raise BadInput(f"{path}: the file is empty (0 bytes); copy or download it again")
    if start.lstrip()[:9].lower().startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise BadInput(
            f"{path}: this is a web page saved under the name of a scan, often the login page of the site it came "
            "from; log in there and download it again"
        )
    if start.startswith(b"version https://git-lfs"):
        raise BadInput(f"{path}: this is a Git LFS placeholder, not the file itself; run `git lfs pull`")
    return start


def check_room(path: Path, promised: int, there: int, expansion: int = 1) -> None:
    """Refuse a header that promises more than its file can hold, before any memory is asked for."""
    if promised > there * expansion:
        how = "" if expansion == 1 else " compressed"
        raise BadInput(
            f"{path}: the header promises {promised:,} bytes of voxels, but there are only {there:,}{how} bytes of "
            "them; the file is cut short or its header is damaged: copy or download it again"
        )


def gather(read: Callable[[int], bytes], wanted: int) -> bytearray:
    """So many bytes of a stream, or as many as there are.

    They come by the piece: memory is taken for what is there, not for what a header promises.
    """
    got, hear = bytearray(), HEARD.get()
    while len(got) < wanted and (piece := read(min(_AT_ONCE, wanted - len(got)))):
        got += piece
        hear(len(got) / wanted)
    return got


def check_end(path: Path, promised: int, more: bytes) -> None:
    """Refuse a compressed stream that goes on where its header says that it ends; how far is not looked at."""
    if more:
        raise BadInput(
            f"{path}: the compressed data go on after the {promised:,} bytes of voxels that the header promises; the "
            "header is damaged or of another scan: export the scan again"
        )


def slabs(slices: int, pixels: int) -> Iterator[slice]:
    """The slices of a scan a few at a time, of so many pixels each: what is reckoned with is never held for all."""
    step = max(1, PIECE // max(1, pixels))
    return (slice(first, first + step) for first in range(0, slices, step))


def by(sizes: Sequence[int]) -> str:
    """Sizes as text: `256 x 256 x 10`."""
    return " x ".join(map(str, sizes))


def check_grid(path: Path, sizes: Sequence[int], steps: Sequence[float]) -> tuple[Shape, Spacing]:
    """From sizes and steps in file order (columns, rows, slices and further axes of size 1) to slices, rows, columns.

    Each step must be a positive number of mm.
    """
    listed = by(sizes)
    if len(sizes) < 2:
        raise BadInput(f"{path}: a file of {len(sizes)} dimensions ({listed}) is not an image; give one of 2 or 3")
    if min(sizes) < 1:
        raise BadInput(f"{path}: the header gives the size {listed}, which holds no voxels; export the scan again")
    if math.prod(sizes[3:]) > 1:
        raise BadInput(
            f"{path}: a {len(sizes)}-D file ({listed}); split it into its frames and give one 3-D file for each"
        )
    for step in steps[:3]:
        if not (math.isfinite(step) and step > 0):
            listed = " x ".join(f"{value:g}" for value in steps)
            raise BadInput(
                f"{path}: the voxel spacing is {listed} mm, and {step:g} cannot be right; correct the header or "
                "export the scan again"
            )
    columns, rows, slices = (*sizes, 1)[:3]
    column, row, between = (*map(float, steps), 1.0)[:3]
    return (slices, rows, columns), (between, row, column)
