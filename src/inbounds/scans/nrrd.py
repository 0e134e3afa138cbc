"""NRRD, attached (`.nrrd`) or with its data beside it (`.nhdr`).

The header is a page of text and the data a plain or compressed block, so both are read here. Teem, which reads them for
ITK, looks for data wherever a header points, and inflates whatever it finds there.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from inbounds.errors import BadInput
from inbounds.reading import open_file
from inbounds.scans.data_file import EXPANSION, data_file, read_block
from inbounds.scans.format import Plain, Scan, Voxels, blaming, by, check_room, opening
from inbounds.scans.itk import ItkGeometry, check_geometry

SUFFIXES = (".nrrd", ".nhdr")
_HEADER = 1 << 24
"""Bytes of the longest header: segmentations say much about each region."""
_TYPES = {
    "i1": ("signed char", "int8"),
    "u1": ("uchar", "unsigned char", "uint8"),
    "i2": ("short", "short int", "signed short", "signed short int", "int16"),
    "u2": ("ushort", "unsigned short", "unsigned short int", "uint16"),
    "i4": ("int", "signed int", "int32"),
    "u4": ("uint", "unsigned int", "uint32"),
    "i8": ("longlong", "long long", "long long int", "signed long long", "signed long long int", "int64"),
    "u8": ("ulonglong", "unsigned long long", "unsigned long long int", "uint64"),
    "f4": ("float",),
    "f8": ("double",),
}
_DTYPES = {name: kind for kind, names in _TYPES.items() for word in names for name in (word, f"{word}_t")}
_PACKINGS = {"raw": "raw", "gzip": "gzip", "gz": "gzip", "bzip2": "bzip2", "bz2": "bzip2"}
_ALIASES = {"datafile": "data file", "lineskip": "line skip", "byteskip": "byte skip", "axismins": "axis mins"}
_ALIASES |= {"axismaxs": "axis maxs", "centers": "centerings"}
_TURNS = {
    "right-anterior-superior": (-1.0, -1.0),
    "ras": (-1.0, -1.0),
    "left-anterior-superior": (1.0, -1.0),
    "las": (1.0, -1.0),
}
"""What turns the first two axes of a space to left and posterior; the axes of others are taken as they are."""


def header(path: Path) -> Scan:
    """Read the text header, and look at the size of the data."""
    fields, end = _fields(path)
    with blaming(
        path, "the NRRD header is damaged", ValueError, OverflowError, KeyError, remedy="export the scan again"
    ):
        count = int(fields["dimension"])
        sizes = [int(word) for word in fields["sizes"].split()]
        if count != len(sizes) or not sizes:
            raise ValueError(f"the dimension is {count}, the sizes are {by(sizes)}")
        kinds = fields.get("kinds", "").lower().split() or ["domain"] * count
        for size, kind in zip(sizes, kinds, strict=True):
            if kind not in ("domain", "space", "time", "???", "none"):
                raise BadInput(
                    f"{path}: the voxels are colours or vectors of {size} channels (an axis of the kind {kind!r}); "
                    "save each channel as a scan"
                )
        geometry = _geometry(fields, sizes)
        skips = int(fields.get("line skip", "0")), int(fields.get("byte skip", "0"))
    shape, spacing = check_geometry(path, geometry)
    dtype = _dtype(path, fields)
    packing = _PACKINGS.get(fields.get("encoding", "").lower(), "")
    if not packing or (packing != "raw" and skips[1]) or skips[0]:
        raise BadInput(
            f"{path}: the encoding is {fields.get('encoding')!r}, after {skips[0]} lines and {skips[1]} bytes of "
            "something else; save the scan as raw or gzip, with nothing before the voxels"
        )
    name = fields.get("data file")
    data = path if name is None else data_file(path, name, ".nrrd")
    promised, there = math.prod(sizes) * dtype.itemsize, data.stat().st_size
    begin = end if name is None else 0
    offset = max(begin, there - promised) if skips[1] == -1 else begin + max(0, skips[1])
    check_room(data, promised, max(0, there - offset), EXPANSION[packing])

    def load(_: bool) -> Voxels:
        return read_block(data, offset, packing, dtype, shape)

    plain = Plain(data, offset, dtype) if packing == "raw" else None
    width = dtype.itemsize * (1 if dtype.isnative else 2)
    return Scan(path, shape, spacing, geometry, tuple(dict.fromkeys((path, data))), (), load, plain, width=width)


def _fields(path: Path) -> tuple[dict[str, str], int]:
    """The lines `field: value` up to one that is empty, and where they end; `key:=value` and comments are not read."""
    start = opening(path)
    if not start.startswith(b"NRRD"):
        raise BadInput(f"{path}: this is not an NRRD file (it starts with {start[:8]!r}); export the scan again")
    fields: dict[str, str] = {}
    with open_file(path) as file:
        file.readline(_HEADER)
        while line := file.readline(_HEADER).decode("latin-1").rstrip("\r\n"):
            key, separator, value = line.partition(":")
            if file.tell() >= _HEADER:
                raise BadInput(f"{path}: the header has no end; export the scan again")
            if separator and not value.startswith("=") and not line.startswith("#"):
                name = key.strip().lower()
                name = _ALIASES.get(name, name)
                if name in fields:
                    raise BadInput(f"{path}: the header says twice what its {name} is; export the scan again")
                fields[name] = value.strip()
        return fields, file.tell()


def _geometry(fields: dict[str, str], sizes: list[int]) -> ItkGeometry:
    """Where the voxels lie: by directions in a named space, or by spacings and where each axis begins."""
    count = len(sizes)
    steps, origin, direction, flip = np.ones(count), np.zeros(count), np.eye(count), np.ones(count)
    flip[:2] = _TURNS.get(fields.get("space", "").lower(), (1.0, 1.0))[:count]
    if "space directions" in fields:
        vectors = re.findall(r"none|\([^()]*\)", fields["space directions"].lower())
        for axis, vector in enumerate(_whole(vectors, count)):
            if vector != "none":
                direction[:, axis] = flip * _vector(vector, count)
        steps = np.linalg.norm(direction, axis=0)
        direction = np.divide(direction, steps, out=np.eye(count), where=steps > 0)
    elif "spacings" in fields:
        steps = _numbers(fields["spacings"], count)
        steps = np.where(np.isnan(steps), 1.0, steps)
        if "axis mins" in fields:
            centred = fields.get("centerings", "cell").lower().split()
            first = np.resize([0.0 if word == "node" else 0.5 for word in centred], count) * steps
            first += _numbers(fields["axis mins"], count)
            origin = first if np.isfinite(first).all() else origin
    if "(" in fields.get("space origin", ""):
        origin = flip * _vector(fields["space origin"], count)
    return ItkGeometry(tuple(sizes), *(tuple(part.ravel().tolist()) for part in (steps, origin, direction)))


def _numbers(text: str, count: int) -> np.ndarray:
    return np.array([float(word) for word in _whole(text.split(), count)])


def _vector(text: str, count: int) -> np.ndarray:
    return np.array([float(word) for word in _whole(text.strip().strip("()").split(","), count)])


def _whole(words: list[str], count: int) -> list[str]:
    if len(words) != count:
        raise ValueError(f"{len(words)} numbers or directions for {count} axes: {' '.join(words)[:100]}")
    return words


def _dtype(path: Path, fields: dict[str, str]) -> np.dtype[np.generic]:
    kind = _DTYPES.get(fields.get("type", "").lower())
    if kind is None:
        raise BadInput(
            f"{path}: the voxels are of the type {fields.get('type')!r}; save the scan as whole or real numbers"
        )
    order = fields.get("endian", "" if kind[1] != "1" else "little").lower()
    if order not in ("little", "big"):
        raise BadInput(f"{path}: the header gives the endian {order!r}, neither little nor big; export the scan again")
    return np.dtype((">" if order == "big" else "<") + kind)
