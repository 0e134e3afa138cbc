"""Archives that are damaged, or set traps."""

from __future__ import annotations

import random
import stat
import zipfile
from pathlib import Path

from torture import mutate
from torture.bad import LONG, WORDS, Bad
from torture.process import Place

SCAN = "training/patient001/patient001_frame01.nii"
MEGABYTES = 300


def make(rng: random.Random, place: Place) -> Bad:
    """An archive, and the command that unpacks it."""
    archive = place.here / "acdc.zip"
    ways = (mutate.kind_of, _directory, _member, _bomb, _nested)
    way = rng.choice((*ways, *[mutate.file_of] * 2, *[_inside] * 2))
    what = way(rng, archive)
    source = "acdc.zip"
    if rng.randrange(4) == 0:
        (place.here / "zips").mkdir()
        if archive.exists() or archive.is_symlink():
            archive.rename(place.here / "zips" / "acdc.zip")
        source = "zips"
    return Bad(["prepare", "acdc", source, "made", "--side", "32"], ("acdc.zip", source, "patient"), what)


def _rewritten(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as members:
        return {name: members.read(name) for name in members.namelist()}


def _write(archive: Path, members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(archive, "w", how) as made:
        for name, content in members.items():
            made.writestr(name, content)


def _directory(rng: random.Random, archive: Path) -> str:
    """Wrong in the list of members at its end."""
    content = archive.read_bytes()
    end, what = mutate.bytes_of(rng, content[-600:])
    archive.write_bytes(content[:-600] + end)
    return f"at its end: {what}"


def _member(rng: random.Random, archive: Path) -> str:
    """A member that would land elsewhere, is a link, is there twice, or is encrypted."""
    members, way = _rewritten(archive), rng.randrange(4)
    name = rng.choice([*WORDS["members"], *(f"training/patient001/{word}.nii" for word in LONG)])
    if way == 0:
        _write(archive, {name: b"x", **members} if rng.random() < 0.5 else {**members, name: b"x"})
        return f"a member {name[:40]!r}"
    link = zipfile.ZipInfo(rng.choice((SCAN, "training/link.nii", "training/patient001")))
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "a") as made:
        if way == 1:
            made.writestr(link, "/etc/passwd")
            return f"{link.filename} is a link"
        if way == 2:
            made.writestr(SCAN, b"another")
            return f"{SCAN} is there twice"
        made.writestr(SCAN.upper(), b"another")
    return f"{SCAN} is there in capitals too"


def _bomb(rng: random.Random, archive: Path) -> str:
    """Zeros that are packed very tightly: few enough to be harmless, were they unpacked."""
    members = _rewritten(archive)
    how = rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    members[rng.choice((SCAN, "training/more.nii"))] = bytes(MEGABYTES * 2**20)
    _write(archive, members, how)
    return f"{MEGABYTES} MB of zeros in {archive.stat().st_size:,} bytes"


def _nested(rng: random.Random, archive: Path) -> str:
    """An archive in an archive, or no scan at all."""
    content = archive.read_bytes()
    ways = {"in another": {"acdc.zip": content}, "nothing in it": {}, "text in it": {"readme.txt": b"hello"}}
    what = rng.choice(list(ways))
    _write(archive, ways[what])
    return what


def _inside(rng: random.Random, archive: Path) -> str:
    """A member that is broken, while the archive is whole."""
    members = _rewritten(archive)
    name = rng.choice(list(members))
    members[name], what = mutate.bytes_of(rng, members[name], region=rng.choice((0, 400)))
    _write(archive, members, rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_LZMA)))
    return f"{name}: {what}"
