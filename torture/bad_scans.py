"""Scans that are broken, or lie, in every format; through the commands that read scans."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.scans.format import library
from torture import mutate
from torture.bad import LONG, WORDS, Bad
from torture.process import Place

FORMATS = {
    "nii": "a.nii",
    "nii.gz": "a.nii.gz",
    "mha": "a.mha",
    "mhd": "a.mhd",
    "mhd packed": "a.mhd",
    "nrrd": "a.nrrd",
    "nrrd packed": "a.nrrd",
    "nhdr": "a.nhdr",
    "tif": "a.tif",
    "png": "a",
    "dicom": "a",
}
"""The name of a scan in each of them; the last two are folders."""
TEXT = (".mha", ".mhd", ".nrrd", ".nhdr")
FIELDS = {
    **{f"dim[{n}]": (40 + 2 * n, "h") for n in range(8)},
    **{f"pixdim[{n}]": (76 + 4 * n, "f") for n in range(5)},
    "datatype": (70, "h"),
    "bitpix": (72, "h"),
    "vox_offset": (108, "f"),
    "slope": (112, "f"),
    "inter": (116, "f"),
    "xyzt_units": (123, "b"),
    "qform_code": (252, "h"),
    "sform_code": (254, "h"),
    "sizeof_hdr": (0, "i"),
    **{f"quaternion[{n}]": (256 + 4 * n, "f") for n in range(6)},
    **{f"srow[{n}]": (280 + 4 * n, "f") for n in range(12)},
}
"""The fields of a NIfTI header that say anything: where they are, and of what type."""
TYPES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024, 1280, 1536, 1792, 2048, 2304, 9999)


def write_formats(folder: Path) -> None:
    """The same small scan in every format, each in a folder of its own, and one that is always good."""
    itk = library("SimpleITK", folder)
    truth = np.zeros((4, 24, 20), np.int16)
    truth[:-1, 6:16, 5:14] = 1
    volume = (200 + 500 * truth + np.random.default_rng(0).integers(0, 90, truth.shape)).astype(np.int16)
    image = itk.GetImageFromArray(volume)
    image.SetSpacing((1.5, 1.5, 8.0))
    itk.WriteImage(image, str(_parent(folder / "good.nii.gz")), True)
    for name, scan in FORMATS.items():
        if name not in ("png", "dicom"):
            itk.WriteImage(image, str(_parent(folder / name / scan)), "packed" in name or name.endswith("gz"))
            continue
        for number, plane in enumerate(volume):
            made = itk.GetImageFromArray(plane.astype(np.uint16))
            if name == "dicom":
                _place(made, number)
            writer = itk.ImageFileWriter()
            writer.KeepOriginalImageUIDOn()
            writer.SetFileName(str(_parent(folder / name / scan / f"{number}.{name[:3]}".replace("dic", "dcm"))))
            writer.Execute(made)


def _parent(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _place(made: Any, number: int) -> None:
    """What a slice of a DICOM series says of itself."""
    made.SetSpacing((1.5, 1.5))
    series = "1.2.826.0.1.3680043.2.1125.1"
    tags = {"0008|0060": "MR", "0020|000d": "1.2.3.4", "0020|000e": series, "0020|0013": str(number)}
    tags |= {"0008|0018": f"{series}.{number}", "0020|0032": f"0\\0\\{8 * number}", "0020|0037": "1\\0\\0\\0\\1\\0"}
    for tag, value in tags.items():
        made.SetMetaData(tag, value)


def make(rng: random.Random, place: Place) -> Bad:
    """A broken scan beside a good one, and a command that reads it."""
    form = rng.choice(list(FORMATS))
    folder = place.here / "scans"
    (place.here / "formats" / form).rename(folder)
    (place.here / "formats" / "good.nii.gz").rename(folder / "good.nii.gz")
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.name != "good.nii.gz")
    file = rng.choice(files)
    ways: list[Callable[[random.Random, Path], str]] = [mutate.kind_of, mutate.file_of, _header]
    if file.suffix in TEXT:
        ways += [_text] * 4
    if file.name.startswith("a.nii"):
        ways += [_nifti] * 4 + [_voxels] * 2
    if file.suffix == ".gz":
        ways.append(_inside)
    if file.suffix == ".png":
        ways += [_picture] * 2
    what = rng.choice(ways)(rng, file)
    words = rng.choice(
        (
            ["prepare", "folder", "scans", "made", "--classes", "background,organ"],
            ["prepare", "add", "scans", "store", "--patient", ".+"],
            ["predict", "run", "scans", "--out", "made", "--no-doubt"],
            ["predict", "run", f"scans/{FORMATS[form]}", "--out", "made", "--no-doubt"],
        )
    )
    # A folder of slices is one scan: any of its files may be named, or it.
    codes = (0, 1, 2) if words[0] == "predict" else (0, 2)
    return Bad(words, ("scans/a", "scans", "good"), f"{form}, {what}", codes)


def _header(rng: random.Random, file: Path) -> str:
    return mutate.file_of(rng, file, region=400)


def _text(rng: random.Random, file: Path) -> str:
    """A line of a text header that says something else, is gone, or is there twice."""
    separator = b"=" if file.suffix in (".mha", ".mhd") else b":"
    head, mark, body = file.read_bytes().partition(b"LOCAL\n" if separator == b"=" else b"\n\n")
    lines = (head + mark).split(b"\n")
    number = rng.choice([n for n, line in enumerate(lines) if separator in line])
    key, value = lines[number].split(separator)[0].strip(), rng.choice(WORDS["header"] + LONG).encode()
    way = rng.randrange(6)
    if way == 0:
        del lines[number]
    elif way == 1:
        lines.insert(number, key + separator + b" " + value)
    else:
        lines[number] = key + separator + b" " + value
    file.write_bytes(b"\n".join(lines) + body)
    return f"{file.name}: {key.decode(errors='replace')[:40]} {('left out', 'twice')[way] if way < 2 else value[:40]!r}"


def _nifti(rng: random.Random, file: Path) -> str:
    """Some fields of the header that lie; the rest stays as it was."""
    packed = file.suffix == ".gz"
    content = bytearray(gzip.decompress(file.read_bytes()) if packed else file.read_bytes())
    said = []
    for name in rng.sample(sorted(FIELDS), rng.choice((1, 1, 2, 3))):
        offset, kind = FIELDS[name]
        if kind == "f":
            value: float = rng.choice([0.0, -1.0, 1e-30, 3e38, float("nan"), float("inf"), 0.5, 347.0, 1e9])
        else:
            size = 8 * struct.calcsize(kind)
            value = (
                rng.choice(TYPES) if name == "datatype" else rng.choice([0, -1, 1, 2, 7, 2 ** (size - 1) - 1, 20000])
            )
            value = min(value, 2 ** (size - 1) - 1)
        struct.pack_into("<" + kind, content, offset, value)
        said.append(f"{name} is {value:g}")
    if rng.randrange(8) == 0:
        content[:348] = content[:348][::-1]
        said.append("its header backwards")
    file.write_bytes(gzip.compress(bytes(content)) if packed else bytes(content))
    return f"{file.name}: {', '.join(said)}"


def _voxels(rng: random.Random, file: Path) -> str:
    """Voxels that are not finite, or all the same, or far too many."""
    packed = file.suffix == ".gz"
    content = bytearray(gzip.decompress(file.read_bytes()) if packed else file.read_bytes())
    values = np.full((4, 24, 20), 7, np.float32)
    what, sizes = rng.choice(["NaN", "infinite", "all the same", "huge", "many zeros"]), (20, 24, 4)
    if what == "many zeros":
        values, sizes = np.zeros((64, 512, 512), np.float32), (512, 512, 64)
    elif what != "all the same":
        values += np.arange(values.size, dtype=np.float32).reshape(values.shape)
        values[1, 2, 3] = {"NaN": np.nan, "infinite": -np.inf, "huge": 3e38}[what]
    struct.pack_into("<4h", content, 40, 3, *sizes)
    struct.pack_into("<2h", content, 70, 16, 32)
    made = bytes(content[:352]) + values.tobytes()
    file.write_bytes(gzip.compress(made, 9) if packed else made)
    return f"{file.name}: voxels that are {what}"


def _inside(rng: random.Random, file: Path) -> str:
    """Wrong inside of its compression, which is whole."""
    content, what = mutate.bytes_of(rng, gzip.decompress(file.read_bytes()), 400)
    file.write_bytes(gzip.compress(content))
    return f"{file.name}, inside: {what}"


def _picture(rng: random.Random, file: Path) -> str:
    """A PNG whose header lies, with the checksum that goes with it."""
    content = bytearray(file.read_bytes())
    sizes = rng.choice(((1, 1), (0, 20), (30000, 30000), (2**31 - 1, 2**31 - 1), (20, 25), (100000, 1)))
    struct.pack_into(">2I", content, 16, *sizes)
    content[24], content[25] = rng.choice((1, 8, 16, 16, 99)), rng.choice((0, 0, 2, 3, 6, 99))
    struct.pack_into(">I", content, 29, zlib.crc32(bytes(content[12:29])))
    file.write_bytes(content)
    return f"{file.name}: {sizes[0]} x {sizes[1]} by its header, {content[24]} bits, colours {content[25]}"
