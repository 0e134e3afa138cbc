"""DICOM as hospitals leave it: patients, studies and series in folders of any depth. Which are scans, and their names.

A series is taken by its folder or, where that holds several, by one of its files. Names never tell who somebody is
unless that is asked for: what lies deeper than a folder's own folders is called `pPATIENT-sNUMBER-SERIES`, of which
the first and the last part are digests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from inbounds.errors import BadInput, some
from inbounds.scans.dicom import is_dicom, series_in
from inbounds.scans.gdcm import Gdcm, Information

PATIENT = "^(p[0-9a-f]{8})-s"
"""Finds the patient in a name that was made here."""
_NO_SCAN = ("SEG", "RTDOSE", "RTPLAN", "RTSTRUCT", "PR", "SR", "KO", "REG", "DOC")
"""Modalities that are made of scans."""


@dataclass(frozen=True)
class Wanted:
    """What a person says of series and names.

    Attributes:
        series: Which series, by number, description or UID, with `*` and `?`; by default the one with most slices.
        names: Whether scans are called as their folders are, whoever these name.
    """

    series: str = ""
    names: bool = False


ANY = Wanted()


@dataclass(frozen=True)
class Series:
    """One series.

    Attributes:
        path: What stands for it.
        head: Of its first file.
        slices: How many there are.
        label: What its folder is called, below the one that the person gave.
    """

    path: Path
    head: Information
    slices: int
    label: str

    @property
    def words(self) -> str:
        """What to call it by, and how large it is."""
        about = f" {self.head.about!r}" if self.head.about else ""
        return f"{self.head.number or self.head.series}{about} ({self.slices} slices)"

    def fits(self, pattern: str) -> bool:
        """Whether a person means this one."""
        known = (self.head.number, self.head.about, self.head.series)
        return any(fnmatchcase(name.casefold(), pattern.casefold()) for name in known if name)


@dataclass(frozen=True)
class Taken:
    """The scans of a tree.

    Attributes:
        scans: By name.
        notes: Which series were taken where there were others.
    """

    scans: dict[str, Path]
    notes: tuple[str, ...]


def holds_dicom(folder: Path) -> bool:
    """Whether there is DICOM in a folder, at any depth."""
    return any(is_dicom(file) for below in _folders(folder) for file in _files(below))


def take(root: Path, folders: Sequence[Path], wanted: Wanted, *, deep: bool = False) -> Taken:
    """The series that are scans, and what they are called.

    Args:
        root: What the person gave.
        folders: Where they lie directly; of each, one series is taken unless the person asks for more.
        wanted: What the person says.
        deep: Look in the folders' folders too, and take one series of each study.

    Raises:
        BadInput: It cannot be decided which series is meant; all such places are named at once.
    """
    groups: dict[tuple[str, ...], list[Series]] = {}
    lost: list[str] = []
    with Gdcm(root) as gdcm:
        for top in folders:
            for folder in _folders(top) if deep else [top]:
                for one in _series(root, folder, gdcm, lost):
                    key = (one.head.patient, one.head.study) if deep else (str(folder),)
                    groups.setdefault(key, []).append(one)
    scans: dict[str, Path] = {}
    notes = [f"files that cannot be read as DICOM, and are of no series, are left out: {some(lost)}"] if lost else []
    wrong: list[str] = []
    for group in groups.values():
        chosen = [one for one in group if one.fits(wanted.series)] if wanted.series else _largest(group)
        where = _name(group[0], "", deep, wanted)
        others = "; ".join(one.words for one in group if one not in chosen)
        if not chosen:
            wrong.append(f"{where} has no series {wanted.series!r}, but {others}")
        elif len(chosen) > 1 and not wanted.series:
            wrong.append(f"{where} has {len(chosen)} series of equal size: {'; '.join(one.words for one in chosen)}")
        elif others and not wanted.series:
            notes.append(f"{where}: series {chosen[0].words} is taken, not {others}; --series takes another")
        for one in chosen:
            name = _name(one, f"-s{one.head.number or '0'}" if len(chosen) > 1 else "", deep, wanted)
            if name in scans:
                wrong.append(f"{name} lies in two folders: put its files into one, or remove what is there twice")
            scans[name] = one.path
    if wrong:
        raise BadInput(
            f"{len(wrong)} of {len(groups)} places leave open which DICOM series is meant: {'. '.join(wrong[:20])}"
            f"{'. ...' * (len(wrong) > 20)}. Say which with --series and its number or name, such as --series 'T2*'"
        )
    return Taken(scans, tuple(notes))


def _series(root: Path, folder: Path, gdcm: Gdcm, lost: list[str]) -> Iterator[Series]:
    """The series directly in a folder that may be scans; files that cannot be read and are beside none are lost."""
    if not any(is_dicom(file) or file.suffix.lower() == ".dcm" for file in _files(folder)):
        return
    found, bad = series_in(folder, gdcm)
    lost += [f"{file.name} ({why})" for file, why in bad.items() if not found]
    for files in found.values():
        first, head = next(iter(files.items()))
        if head.modality in _NO_SCAN:
            continue
        slices = sum(head.size[2] for head in files.values())
        whole = len(found) == 1 or bad  # a damaged slice is told by whoever reads them all
        label = "-".join(folder.relative_to(root).parts) or folder.resolve().name
        yield Series(folder if whole else first, head, slices, label)


def _largest(group: Sequence[Series]) -> list[Series]:
    most = max(one.slices for one in group)
    return [one for one in group if one.slices == most]


def _name(one: Series, more: str, deep: bool, wanted: Wanted) -> str:
    """What a scan is called: as its folder, where that is the person's own word for it and tells nobody's name."""
    if wanted.names or not (deep or one.head.tells[0]):
        return one.label + more
    series = sha256(one.head.series.encode(errors="replace")).hexdigest()[:6]
    number = one.head.number if one.head.number.isdecimal() else "0"
    return f"p{one.head.patient}-s{number}-{series}"


def _folders(folder: Path) -> Iterator[Path]:
    """A folder and all below it, in the order of their names; links are not followed."""
    for place, below, _ in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        yield Path(place)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
