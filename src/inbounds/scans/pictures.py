"""PNG and TIFF in shades of gray: one picture, a TIFF of several pages, or a folder with a picture for each slice.

Such files say nothing reliable about millimetres: the spacing is 1.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from inbounds.errors import BadInput
from inbounds.scans.format import DEFLATE, Mask, Scan, Voxels, blaming, by, check_room, library, opening

SUFFIXES = (".png", ".tif", ".tiff")
PIXELS = 1 << 27
"""Of one picture, at most: twice what is largest in radiology. Pillow looks at the first page only."""
PAGES = 10_000
_TILE_WIDTH, _TILE_LENGTH = 322, 323  # the numbers of TIFF
_BYTES = {"RGB": 3, "RGBA": 4, "I": 4, "F": 4, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}
_ALPHA = ("LA", "PA", "RGBA")
_GRAY = ("1", "L", "P", "RGB", "I", "F", "I;16", "I;16L", "I;16B", "I;16N")


@dataclass(frozen=True)
class PictureGeometry:
    """The names of a folder's pictures, in the order of the slices; none for a single file."""

    names: tuple[str, ...]
    slices: int

    @property
    def affine(self) -> None:
        """Pictures do not say where they lie."""
        return

    def check(self, path: Path) -> None:
        """The mask of a folder is a folder; that of several pages is a TIFF; that of one picture either format."""
        suffix = path.suffix.lower()
        if self.names and suffix in SUFFIXES:
            raise BadInput(f"{path}: the scan is a folder of pictures, and so is its mask; give the name of a folder")
        if not self.names and (suffix not in SUFFIXES or (suffix == ".png" and self.slices > 1)):
            raise BadInput(f"{path}: the mask of a picture is one too; name it .tif{' or .png' * (self.slices == 1)}")

    def write(self, mask: Mask, path: Path) -> None:
        """Write a picture, a TIFF of several pages, or a folder of pictures with the names of the scan's."""
        images = [library("PIL.Image", path).fromarray(np.ascontiguousarray(plane)) for plane in mask]
        if self.names:
            path.mkdir()
            for name, image in zip(self.names, images, strict=True):
                image.save(path / name, format=_format(name))
        elif _format(path.name) == "PNG":
            images[0].save(path, format="PNG")
        else:
            images[0].save(path, format="TIFF", save_all=True, append_images=images[1:], compression="tiff_deflate")


def natural(path: Path) -> list[tuple[int, int | str]]:
    """Sorts `slice2` before `slice10`."""
    parts = re.split(r"(\d+)", path.name.lower())
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def header(path: Path) -> Scan:
    """Look at the size and mode of every picture."""
    files, names = [path], tuple[str, ...]()
    if path.is_dir():
        inside = (file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith("."))
        files = sorted(inside, key=natural)
        names = tuple(file.name for file in files)
    if not files:
        raise BadInput(f"{path}: the folder holds no PNG or TIFF pictures; give the folder that holds the slices")
    pages, size, width = 0, None, 1
    for file in files:
        with _picture(file) as picture:
            for number, page in enumerate(_pages(file, picture)):
                if names and number:
                    raise BadInput(f"{file}: a folder of slices cannot hold a file of several pages; give it as a scan")
                size = size or page.size
                if page.size != size:
                    raise BadInput(
                        f"{file}: page {pages} of the scan is {by(page.size)} pixels, the first is {by(size)}; all "
                        "slices of a scan have one size: remove what is no slice, or give each picture as a scan"
                    )
                pages, width = pages + 1, max(width, _BYTES.get(page.mode, 1))
    columns, rows = size or (0, 0)
    load = partial(_load, path, tuple(files))
    geometry = PictureGeometry(names, pages)
    return Scan(path, (pages, rows, columns), (1.0, 1.0, 1.0), geometry, tuple(files), (), load, width=2 * width)


@contextmanager
def _picture(path: Path) -> Iterator[Any]:
    """Open a picture; what Pillow thinks of a bad one becomes a `BadInput`."""
    opening(path)
    pillow = library("PIL.Image", path)
    # Pillow reports damage as almost any exception, and warns of large pictures, whose size is checked here.
    with warnings.catch_warnings(), blaming(path, "the picture cannot be read", Exception):
        warnings.simplefilter("ignore")
        try:
            opened = pillow.open(path, formats=[_format(path.name)])
        except pillow.DecompressionBombError:
            raise _too_large(path) from None
        with opened as picture:
            yield picture


def _too_large(path: Path) -> BadInput:
    return BadInput(f"{path}: a picture of more than {PIXELS:,} pixels; scale it down, or cut it into parts")


def _format(name: str) -> str:
    return "PNG" if name.lower().endswith(".png") else "TIFF"


def _pages(path: Path, picture: Any) -> Iterator[Any]:
    """Each page in turn, once its mode and size are known to be possible."""
    if picture.format == "PNG" and getattr(picture, "n_frames", 1) > 1:
        raise BadInput(f"{path}: an animated PNG; save each frame as a picture")
    promised, there = 0, path.stat().st_size
    for number in range(PAGES + 1):
        try:
            picture.seek(number)  # where pages end is known at the end: a file may say that there are any number
        except EOFError:
            return
        if number == PAGES:
            raise BadInput(f"{path}: more than {PAGES:,} pages; save the scan as several files")
        mode = picture.mode
        if mode not in (*_GRAY, *_ALPHA):
            raise BadInput(f"{path}: the picture's mode is {mode}; save it in shades of gray, with 8 or 16 bits")
        columns, rows = picture.size
        tags = getattr(picture, "tag_v2", {})
        if max(columns * rows, tags.get(_TILE_WIDTH, 0) * tags.get(_TILE_LENGTH, 0)) > PIXELS:
            raise _too_large(path)
        promised += columns * rows // 8
        check_room(path, promised, there, DEFLATE)  # of all pages so far, which may share what they are packed in
        yield picture


def _load(path: Path, files: tuple[Path, ...], labels: bool) -> Voxels:
    planes = []
    for file in files:
        with _picture(file) as picture, _muted():
            planes += [_plane(file, page, labels) for page in _pages(file, picture)]
    odd = next((number for number, plane in enumerate(planes) if plane.dtype != planes[0].dtype), None)
    if odd is not None:
        raise BadInput(
            f"{path}: slice {odd} holds {planes[odd].dtype} numbers, slice 0 {planes[0].dtype}; save all slices "
            "with the same depth"
        )
    return np.stack(planes)


@contextmanager
def _muted() -> Iterator[None]:
    """Closes the terminal's error stream to libtiff, which writes about a damaged file past Python."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no such stream
        yield
        return
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _plane(path: Path, picture: Any, labels: bool) -> Shaped[np.ndarray, "rows columns"]:
    """One slice. In a label map the colours of a palette are only for show: its indices are the labels."""
    if labels and picture.mode in ("P", "PA"):
        picture = picture.getchannel(0)
    elif picture.mode == "P" or picture.mode in _ALPHA or "transparency" in picture.info:
        if any(raw in str(picture.tile) for raw in ("16B", "16L", "16N")):
            raise BadInput(f"{path}: 16 bits with an alpha channel are not read; save it in shades of gray without")
        picture = picture.convert("RGBA")
        if (seen := np.asarray(picture)[..., 3]).min() < 255:
            row, column = np.argwhere(seen < 255)[0]
            raise BadInput(
                f"{path}: the picture is transparent in places, first in row {row}, column {column}; save it without "
                "an alpha channel"
            )
        picture = picture.convert("RGB")
    array = np.asarray(picture)
    if array.ndim == 3:
        if (array != array[..., :1]).any():
            row, column = np.argwhere((array != array[..., :1]).any(axis=-1))[0]
            raise BadInput(
                f"{path}: a colour picture (the pixel in row {row}, column {column} is {array[row, column].tolist()}); "
                "save it in shades of gray, or each channel as a picture of its own"
            )
        array = array[..., 0]
    if array.dtype == bool:
        array = array.astype(np.uint8)
    return np.array(array, dtype=array.dtype.newbyteorder("="))
