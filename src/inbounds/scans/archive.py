"""What a user downloaded, as a folder: a folder, a zip, or a folder of zips. Archives are not trusted."""

from __future__ import annotations

import lzma
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from inbounds.errors import BadInput
from inbounds.reading import regular
from inbounds.scans.data_file import FOLLOW
from inbounds.writing import workspace

RATIO = 200
"""Scans shrink two or three times, masks up to a few hundred; an archive that grows more than this in all is a trap."""
SMALL = 100 * 2**20
BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)
"""What reading a damaged zip may raise: a method of compression that is not known is a `RuntimeError` too, and a name
that is no text a `ValueError`."""


@contextmanager
def unpacked(source: Path, wanted: Callable[[str], bool], target: Path) -> Iterator[Path]:
    """The folder to look in. Zips are unpacked beside what is made of them, which is locked, and removed afterwards.

    Args:
        source: A folder, a zip file, or a folder that holds zips and no scans.
        wanted: Which members to unpack, by their file name; the others stay packed.
        target: What is made of them.

    Raises:
        BadInput: There is nothing there, or an archive is broken or harmful.
    """
    if not source.exists():
        raise BadInput(f"{source}: there is no such file or folder; check the name")
    if source.is_dir():
        if not any(source.iterdir()):
            raise BadInput(f"{source}: the folder is empty; give the one that holds the scans")
        archives = sorted(source.glob("*.zip"))
        if not archives or any(wanted(file.name) for file in source.rglob("*") if file.is_file()):
            yield source
            return
    elif zipfile.is_zipfile(regular(source)):
        archives = [source]
    else:
        raise BadInput(
            f"{source}: neither a folder nor a zip archive; download it again, or unpack it and give the folder"
        )
    with workspace(target) as folder:
        for archive in archives:
            _unpack(archive, folder / archive.stem, wanted)
        before = FOLLOW.set(False)  # whatever the person allows, an archive does not point to other files
        try:
            yield folder
        finally:
            FOLLOW.reset(before)


def _unpack(archive: Path, folder: Path, wanted: Callable[[str], bool]) -> None:
    try:
        with zipfile.ZipFile(regular(archive)) as members:
            chosen = [m for m in members.infolist() if not m.is_dir()]
            for member in chosen:
                _trust(archive, member)
            chosen = [m for m in chosen if wanted(PurePosixPath(m.filename).name)]
            grown, packed = sum(m.file_size for m in chosen), sum(m.compress_size for m in chosen)
            if grown > SMALL and grown > RATIO * max(packed, 1):
                raise BadInput(f"{archive}: {packed:,} bytes would become {grown:,}; no scans are packed that tightly")
            free = shutil.disk_usage(folder.parent).free
            if grown > free:
                raise BadInput(
                    f"{archive}: unpacking needs {grown:,} bytes, and {free:,} are free; make room or unpack it"
                )
            for member in chosen:
                target = folder / member.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                left = member.file_size
                with members.open(member) as packed_file, target.open("wb") as file:
                    while piece := packed_file.read(2**20):
                        left -= len(piece)
                        if left < 0:
                            raise BadInput(f"{archive}: {member.filename} is larger than it says; download it again")
                        file.write(piece)
    except BadInput:
        raise
    except BROKEN as error:
        raise BadInput(f"{archive}: a broken archive ({error}); download it again") from None
    except OSError as error:
        raise BadInput(f"{archive}: could not be unpacked ({error.strerror or error}); make room on the disk") from None


def _trust(archive: Path, member: zipfile.ZipInfo) -> None:
    name = PurePosixPath(member.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or (name.parts and ":" in name.parts[0]):
        raise BadInput(f"{archive}: the member {member.filename!r} would be written outside; do not trust this archive")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise BadInput(f"{archive}: the member {member.filename!r} is a link; do not trust this archive")
