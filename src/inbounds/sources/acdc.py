"""ACDC 2017: cine cardiac MR of 100 patients at end diastole and end systole.

`patientNNN/patientNNN_frameMM.nii.gz` with `..._gt.nii.gz` (0 background, 1 RV, 2 myocardium, 3 LV) and, where there
are any, expert scribbles `..._scribble.nii.gz` (the same classes, 4 = unlabelled). The whole cycle `*_4d.nii.gz` is
ignored.
"""

from __future__ import annotations

import re
from pathlib import Path

from inbounds.reading import read_written
from inbounds.sources.source import Source, beside, from_files, matching

NAME = "acdc"
CLASSES = ("background", "RV", "MYO", "LV")
VALIDATION = 0.25
_FRAME = re.compile(r"(patient\d+)_frame(\d+)\.nii(\.gz)?$")


def reference_split(patient: str) -> str:
    """The patients of the five groups of twenty are split alike: the last five of each validate."""
    return "validation" if (int(patient.removeprefix("patient")) - 1) % 20 >= 15 else "train"


def wanted(name: str) -> bool:
    """Which files of an archive are needed: not the whole cycle, which is by far the largest."""
    return name == "Info.cfg" or (name.endswith((".nii", ".nii.gz")) and "_4d" not in name)


def sources(root: Path, *, reference: bool = True) -> list[Source]:
    """All scans below a folder, in the order of their names."""
    like = "patient001_frame01.nii.gz; give the folder or zip of the ACDC training set"
    return [_source(file, reference) for file in matching(root, _FRAME, "_gt", like).values()]


def _source(file: Path, reference: bool) -> Source:
    match = _FRAME.match(file.name)
    assert match
    patient, frame = match[1], match[2]
    stem = f"{patient}_frame{frame}"
    scribble = beside(file, f"{stem}_scribble")
    info = _info(file.with_name("Info.cfg"))
    return from_files(
        (file,),
        beside(file, f"{stem}_gt"),
        name=stem,
        patient=patient,
        classes=len(CLASSES),
        weak={"scribble": (scribble, 4)} if scribble else None,
        split=reference_split(patient) if reference else "",
        phase={info.get("ED"): "ED", info.get("ES"): "ES"}.get(str(int(frame)), ""),
        group=info.get("Group", ""),
    )


def _info(file: Path) -> dict[str, str]:
    """`Info.cfg`: lines such as `ED: 1` and `Group: DCM`."""
    if not file.is_file():
        return {}
    lines = read_written(file, 1 << 20, "download it again or remove it").splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
