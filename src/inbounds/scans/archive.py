"""What a user downloaded, as a folder: a folder, a zip, or a folder of zips. Archives are not trusted."""

from __future__ import annotations

import re
import shutil
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from inbounds.errors import BadInput
from inbounds.reading import open_file, regular
from inbounds.scans.data_file import FOLLOW
from inbounds.writing import workspace

RATIO = 200
"""Scans shrink two or three times, masks up to a few hundred; an archive that grows more than this in all is a trap."""
SMALL = 100 * 2**20
_END = 22 + 2**16
"""Bytes at the end of a zip in which its last record lies."""
_UNWRITABLE = re.compile(r'[<>:"|?*\x00-\x1f]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)', re.IGNORECASE)
_PART, _NAME = 255, 1000
"""Bytes of a file's or a folder's name, and letters of all of them together."""
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError)
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
            _unpack(archive, folder / archive.name, wanted)
        before = FOLLOW.set(False)  # whatever the person allows, an archive does not point to other files
        try:
            yield folder
        finally:
            FOLLOW.reset(before)


def _unpack(archive: Path, folder: Path, wanted: Callable[[str], bool]) -> None:
    try:
        with zipfile.ZipFile(_whole(archive)) as members:
            chosen = _chosen(archive, members, wanted)
            grown, packed = sum(m.file_size for m in chosen.values()), sum(m.compress_size for m in chosen.values())
            if packed > archive.stat().st_size:
                raise BadInput(f"{archive}: its members share their bytes, to grow the more; do not trust this archive")
            if grown > SMALL and grown > RATIO * max(packed, 1):
                raise BadInput(f"{archive}: {packed:,} bytes would become {grown:,}; no scans are packed that tightly")
            free = shutil.disk_usage(folder.parent).free
            if grown > free:
                raise BadInput(
                    f"{archive}: unpacking needs {grown:,} bytes, and {free:,} are free; make room or unpack it"
                )
            for name, member in chosen.items():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                left = member.file_size
                with members.open(member) as packed_file, target.open("xb") as file:
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


def _whole(archive: Path) -> Path:
    """An archive that is not one of several parts, as the record at its end says."""
    with open_file(archive) as file:
        file.seek(max(0, archive.stat().st_size - _END))
        end = file.read()
    record = end[max(0, end.rfind(b"PK\5\6")) :]
    if record[4:8] not in (bytes(4), b"\xff" * 4):
        raise BadInput(
            f"{archive}: this is one part of several; put them together, or unpack them yourself, and give the folder"
        )
    return archive


def _chosen(
    archive: Path, members: zipfile.ZipFile, wanted: Callable[[str], bool]
) -> dict[PurePosixPath, zipfile.ZipInfo]:
    """What to unpack, and where to. A member that leads out speaks against an archive even where it is not needed."""
    listed = [member for member in members.infolist() if not (member.filename and member.is_dir())]
    everything = {member: _place(archive, member) for member in listed}
    chosen: dict[PurePosixPath, zipfile.ZipInfo] = {}
    files: set[str] = set()
    folders: set[str] = set()
    for member, place in everything.items():
        if not wanted(place.name):
            continue
        what = f"{archive}: the member {member.filename[:200]!r}"
        yourself = "unpack it yourself, and give the folder"
        parts_fit = all(len(part.encode()) <= _PART and not _UNWRITABLE.search(part) for part in place.parts)
        if not parts_fit or len(str(place)) > _NAME:
            raise BadInput(f"{what} has a name that not every system can write; {yourself}")
        if member.flag_bits & 1:
            raise BadInput(f"{what} is encrypted; {yourself}")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadInput(f"{what} is packed in an unusual way; {yourself}")
        # As a system sees them that ignores capitals and how accents are written.
        file, *above = [unicodedata.normalize("NFC", str(path)).casefold() for path in (place, *place.parents[:-1])]
        if file in files or file in folders or not files.isdisjoint(above):
            raise BadInput(f"{what} and another would be written to the same place; do not trust this archive")
        files.add(file)
        folders.update(above)
        chosen[place] = member
    return chosen


def _place(archive: Path, member: zipfile.ZipInfo) -> PurePosixPath:
    """Where a member goes, with the separators of any system; a plain file, below the folder of the archive."""
    place = PurePosixPath(member.filename.replace("\\", "/"))
    what = f"{archive}: the member {member.filename[:200]!r}"
    if place.is_absolute() or ".." in place.parts or not place.parts or ":" in place.parts[0]:
        raise BadInput(f"{what} would be written outside; do not trust this archive")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise BadInput(f"{what} is {'a link' if kind == stat.S_IFLNK else 'no plain file'}; do not trust this archive")
    return place
