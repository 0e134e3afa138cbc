"""NRRD, attached (`.nrrd`) or with its data beside it (`.nhdr`), through SimpleITK."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

from inbounds.errors import BadInput
from inbounds.scans.format import BZIP2, DEFLATE, Scan, Voxels, blaming, check_room, opening
from inbounds.scans.itk import ItkGeometry, check_geometry, data_file, reader_of, toolkit

SUFFIXES = (".nrrd", ".nhdr")
_EXPANSION = {"raw": 1, "bz2": BZIP2, "bzip2": BZIP2}


def header(path: Path) -> Scan:
    """Read the header, and look at the size of the data."""
    data, expansion = _data(path)
    reader = reader_of(path, "NrrdImageIO")
    with blaming(path, "the NRRD header is damaged", RuntimeError, remedy="export the scan again"):
        reader.ReadImageInformation()
    if reader.GetNumberOfComponents() != 1:
        channels = reader.GetNumberOfComponents()
        raise BadInput(f"{path}: the voxels are colours or vectors of {channels} channels; save each channel as a scan")
    geometry = ItkGeometry(reader.GetSize(), reader.GetSpacing(), reader.GetOrigin(), reader.GetDirection())
    shape, spacing = check_geometry(path, geometry)
    check_room(data, math.prod(geometry.size) * width(path, reader), data.stat().st_size, expansion)
    return Scan(path, shape, spacing, geometry, tuple(dict.fromkeys((path, data))), (), partial(_load, path, shape))


def width(path: Path, reader: Any) -> int:
    """The bytes of one voxel; complex numbers are refused."""
    name = str(toolkit(path).GetPixelIDValueAsString(reader.GetPixelID()))
    words = name.split("-bit ")
    if "complex" in name or len(words) != 2 or not words[0].isdigit():
        raise BadInput(f"{path}: the voxels are of the type {name!r}; save the scan as whole or real numbers")
    return int(words[0]) // 8


def _data(path: Path) -> tuple[Path, int]:
    """The file that holds the voxels, and how far its encoding may expand."""
    start = opening(path, 1 << 16)
    if not start.startswith(b"NRRD"):
        raise BadInput(f"{path}: this is not an NRRD file (it starts with {start[:8]!r}); export the scan again")
    fields: dict[str, str] = {}
    for line in start.decode("latin-1").splitlines():
        if not line:
            break
        key, _, value = line.partition(":")
        fields[key.strip().lower()] = value.strip()
    expansion = _EXPANSION.get(fields.get("encoding", "").lower(), DEFLATE)
    name = fields.get("data file", fields.get("datafile"))
    return path if name is None else data_file(path, name, ".nrrd"), expansion


def _load(path: Path, shape: tuple[int, int, int], _labels: bool) -> Voxels:
    with blaming(path, "the data are cut short or damaged", RuntimeError):
        image = reader_of(path, "NrrdImageIO").Execute()
    array: Voxels = toolkit(path).GetArrayFromImage(image).reshape(shape)
    return array
