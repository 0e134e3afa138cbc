"""MetaImage: `.mhd` with its data file beside it, or `.mha` with the data inside.

The header is a page of text and the data a plain or deflated block, so both are read here. ITK's own reader hands back
half-read data as if they were whole and complains on the terminal only.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from inbounds.errors import BadInput
from inbounds.scans.data_file import EXPANSION, data_file, read_block
from inbounds.scans.format import Plain, Scan, Voxels, blaming, check_room, opening
from inbounds.scans.itk import ItkGeometry, check_geometry

SUFFIXES = (".mhd", ".mha")
_BYTES = {"CHAR": 1, "SHORT": 2, "INT": 4, "LONG": 4, "LONG_LONG": 8}
_WHOLE = {f"MET_{u.upper()}{name}": f"{u or 'i'}{size}" for name, size in _BYTES.items() for u in ("", "u")}
_TYPES = {**_WHOLE, "MET_FLOAT": "f4", "MET_DOUBLE": "f8"}


def header(path: Path) -> Scan:
    """Read the text header and look at the size of the data."""
    fields, end = _fields(path)
    count = int(_numbers(path, fields, ["NDims"], 1)[0])
    if not 1 <= count <= 10:
        raise BadInput(f"{path}: NDims is {count}; correct the header, which must describe a 2-D or 3-D scan")
    sizes = [int(size) for size in _numbers(path, fields, ["DimSize"], count)]
    dtype = _dtype(path, fields)
    steps = _numbers(path, fields, ["ElementSpacing", "ElementSize"], count, [1.0] * count)
    origin = _numbers(path, fields, ["Offset", "Position", "Origin"], count, [0.0] * count)
    # The file lists the direction of each axis in turn; ITK keeps them as the columns of a matrix.
    names, identity = ["TransformMatrix", "Rotation", "Orientation"], np.eye(count).ravel().tolist()
    matrix = np.reshape(_numbers(path, fields, names, count * count, identity), (count, count)).T
    geometry = ItkGeometry(tuple(sizes), tuple(steps), tuple(origin), tuple(matrix.ravel().tolist()))
    shape, spacing = check_geometry(path, geometry)
    notes: tuple[str, ...] = ()
    if not fields.keys() & {"ElementSpacing", "ElementSize"}:
        notes = (f"{path}: the header gives no ElementSpacing; taken as 1 mm",)
    name, skip = fields["ElementDataFile"], int(_numbers(path, fields, ["HeaderSize"], 1, [0.0])[0])
    inside = name.upper() == "LOCAL"
    data = path if inside else data_file(path, name, ".mha")
    packing = "zlib" if _true(fields, "CompressedData") else "raw"
    promised = math.prod(sizes) * dtype.itemsize
    offset = max(0, data.stat().st_size - promised) if skip == -1 else max(0, skip) + (end if inside else 0)
    check_room(data, promised, max(0, data.stat().st_size - offset), EXPANSION[packing])

    def load(_: bool) -> Voxels:
        return read_block(data, offset, packing, dtype, shape)

    plain = Plain(data, offset, dtype) if packing == "raw" else None
    width = dtype.itemsize * (1 if dtype.isnative else 2)
    return Scan(path, shape, spacing, geometry, tuple(dict.fromkeys((path, data))), notes, load, plain, width=width)


def _fields(path: Path) -> tuple[dict[str, str], int]:
    """The lines `key = value` up to `ElementDataFile`, which is always the last, and where they end."""
    start = opening(path, 1 << 16)
    fields: dict[str, str] = {}
    end = 0
    for line in start.splitlines(keepends=True):
        end += len(line)
        key, equals, value = line.decode("latin-1").partition("=")
        if equals:
            fields[key.strip()] = value.strip()
        if "ElementDataFile" in fields:
            return fields, end
    raise BadInput(
        f"{path}: this is not a MetaImage header (there is no line `ElementDataFile = ...`; it starts with "
        f"{start[:16]!r}); export the scan again"
    )


def _numbers(
    path: Path, fields: dict[str, str], names: list[str], count: int, default: list[float] | None = None
) -> list[float]:
    """The numbers under the first of several names for the same thing."""
    name = next((name for name in names if name in fields), None)
    if name is None and default is not None:
        return default
    if name is None:
        raise BadInput(f"{path}: the MetaImage header lacks {names[0]}; export the scan again")
    with blaming(path, f"{name} is {fields[name]!r}", ValueError, OverflowError, remedy="correct the header"):
        numbers = [float(word) for word in fields[name].split()]
        if len(numbers) != count:
            raise ValueError(f"{count} numbers expected")
        if name in ("NDims", "DimSize", "HeaderSize"):
            return [float(int(number)) for number in numbers]
        return numbers


def _true(fields: dict[str, str], *names: str) -> bool:
    return any(fields.get(name, "").lower()[:1] in ("t", "1") for name in names)


def _dtype(path: Path, fields: dict[str, str]) -> np.dtype[np.generic]:
    kind = fields.get("ElementType", "")
    channels = fields.get("ElementNumberOfChannels", "1")
    if channels != "1" or kind.endswith("_ARRAY"):
        raise BadInput(f"{path}: the voxels are colours or vectors of {channels} channels; save each channel as a scan")
    if kind not in _TYPES:
        raise BadInput(f"{path}: ElementType is {kind!r}; save the scan as one of {', '.join(_TYPES)}")
    if fields.get("BinaryData", "True").lower()[:1] == "f":
        raise BadInput(f"{path}: the voxels are written as text (BinaryData = False); save the scan in binary form")
    swapped = _true(fields, "BinaryDataByteOrderMSB", "ElementByteOrderMSB")
    return np.dtype((">" if swapped else "<") + _TYPES[kind])
