"""Files that nobody should trust, made small: pipes, headers that point elsewhere, archives and streams that grow."""

from __future__ import annotations

import bz2
import os
import signal
import socket
import stat
import struct
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fails if what is inside takes longer, even where it waits for a pipe; Windows has neither."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_: object) -> None:
        raise AssertionError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def small(size: int = 1 << 25) -> Iterator[None]:
    """Fails if Python takes more memory at any time, or somebody takes long."""
    tracemalloc.start()
    try:
        with within(20):
            yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


def pipe(path: Path) -> Path:
    """A named pipe that nobody writes to."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes in folders")
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


def dead_socket(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A socket that nobody listens at; its name is given from within its folder, as such names must be short."""
    monkeypatch.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    return path


def device(path: Path) -> Path:
    """A link to zeros without end."""
    path.symlink_to("/dev/zero")
    return path


def zip_of(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    """An archive of members that may have any name, or the same."""
    with zipfile.ZipFile(path, "w", how) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in members:
            file.writestr(name, content)
    return path


def one_for_many(path: Path, name: str, content: bytes, count: int) -> Path:
    """An archive whose directory gives the same packed bytes out as many members."""
    zip_of(path, *((name.format(number), content if number == 0 else b"") for number in range(count)))
    with zipfile.ZipFile(path) as file:
        first, *others = file.infolist()
    whole = bytearray(path.read_bytes())
    at = whole.index(b"PK\1\2")
    for _ in others:  # from the record of one member to that of the next: checksum, sizes, and where it begins
        after = whole.index(b"PK\1\2", at + 4)
        whole[after + 16 : after + 28] = whole[at + 16 : at + 28]
        at = after
    path.write_bytes(whole)
    assert first.compress_size < path.stat().st_size
    return path


def member(name: str, kind: int = stat.S_IFREG) -> zipfile.ZipInfo:
    """The head of a member that says what kind of file it is: a link, a pipe."""
    made = zipfile.ZipInfo(name)
    made.external_attr = (kind | 0o777) << 16
    return made


VOXELS = np.random.default_rng(0).integers(-500, 500, (4, 5, 6)).astype("<i2")


def metaimage(path: Path, data: str, packed: bool = False, more: str = "") -> Path:
    """A header of MetaImage that says where its voxels are."""
    lines = ["NDims = 3", "DimSize = 6 5 4", "ElementType = MET_SHORT", "ElementSpacing = 0.5 0.75 3"]
    lines += [f"CompressedData = {packed}", *filter(None, more.split("\n")), f"ElementDataFile = {data}"]
    path.write_text("\n".join(lines) + "\n")
    return path


def nrrd(path: Path, data: str = "", encoding: str = "raw", more: str = "", content: bytes = b"") -> Path:
    """A header of NRRD that says where its voxels are, or has them behind it."""
    lines = ["NRRD0005", "type: short", "dimension: 3", "sizes: 6 5 4", "endian: little", f"encoding: {encoding}"]
    lines += [*filter(None, more.split("\n")), *([f"data file: {data}"] if data else [])]
    path.write_bytes("\n".join(lines).encode() + b"\n\n" + content)
    return path


def grown(encoding: str, start: bytes = b"", size: int = 1 << 28) -> bytes:
    """Zeros by the gigabyte, compressed, after a beginning of one's own."""
    packer = (
        bz2.BZ2Compressor() if encoding == "bzip2" else zlib.compressobj(9, wbits={"zlib": 15, "gzip": 31}[encoding])
    )
    pieces = [packer.compress(start), *(packer.compress(bytes(1 << 24)) for _ in range(size >> 24)), packer.flush()]
    return b"".join(pieces)


def tiff(path: Path, pages: int, side: int, tile: int = 0) -> Path:
    """Pages of zeros that all are packed in the same few bytes."""
    packed = zlib.compress(bytes(min(side, 4096) ** 2), 9)
    place = {322: tile, 323: tile, 324: 8, 325: len(packed)} if tile else {273: 8, 278: side, 279: len(packed)}
    tags = sorted(({256: side, 257: side, 258: 8, 259: 8, 262: 1, 277: 1} | place).items())
    content = [b"II*\0", struct.pack("<I", 8 + len(packed)), packed]
    first, length = 8 + len(packed), 2 + 12 * len(tags) + 4
    entries = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    for number in range(1, pages + 1):
        content += [entries, struct.pack("<I", first + number * length if number < pages else 0)]
    path.write_bytes(b"".join(content))
    return path


def dicom(path: Path, plane: np.ndarray, place: float = 0.0, compress: bool = False) -> Path:
    """A slice of a series."""
    made = sitk.GetImageFromArray(plane)
    tags = {"0008|0060": "MR", "0008|0018": f"1.2.9.{place:g}", "0020|000d": "1.2", "0020|000e": "1.2.9"}
    for tag, value in (tags | {"0020|0032": f"0\\0\\{place:g}", "0020|0037": "1\\0\\0\\0\\1\\0"}).items():
        made.SetMetaData(tag, value)
    writer = sitk.ImageFileWriter()
    writer.SetImageIO("GDCMImageIO")
    writer.KeepOriginalImageUIDOn()
    writer.SetUseCompression(compress)
    writer.SetFileName(str(path))
    writer.Execute(made)
    return path


def dicom_series(folder: Path) -> Path:
    """The voxels, slice by slice."""
    folder.mkdir()
    for number, plane in enumerate(VOXELS):
        dicom(folder / "written", plane, number).rename(folder / f"{number}.dcm")
    return folder


def greedy_dicom(path: Path) -> Path:
    """A picture of 20 x 30 pixels whose compressed part says that it has 2 147 483 647 in each direction."""
    content = bytearray(dicom(path, np.arange(600, dtype=np.int16).reshape(20, 30), compress=True).read_bytes())
    sizes = content.index(b"\xff\x4f\xff\x51") + 8  # of the image, then of its only tile
    content[sizes : sizes + 8] = content[sizes + 16 : sizes + 24] = b"\x7f\xff\xff\xff" * 2
    path.write_bytes(content)
    return path
