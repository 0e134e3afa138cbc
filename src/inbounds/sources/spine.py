"""Vertebral bodies in T2 MR of the spine (Zenodo record 22304): `Img_NN.nii` with `Img_NN_Labels.nii`.

The scans are sagittal, 39x305x305; the experiments cut them axially. A slice is one index of the last axis, 305 rows
of 39 columns in this package's order. Sixty rows are cut off at either end, the columns are padded to the same 185, and
this square is resized to the grid. Four fifths of it are padding, and a narrower grid has as much less of it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from inbounds.sources.source import Source, beside, from_files, matching

NAME = "spine"
CLASSES = ("background", "vertebra")
VALIDATION = 0.25
_IMAGE = re.compile(r"Img_(\d+)\.nii(\.gz)?$")


def wanted(name: str) -> bool:
    """Which files of an archive are needed."""
    return name.startswith("Img_") and name.endswith((".nii", ".nii.gz"))


def sources(root: Path, *, reference: bool = True) -> list[Source]:
    """All scans below a folder; the last five of them validate."""
    files = matching(root, _IMAGE, "_Labels", "Img_01.nii; give the folder or zip of Zenodo record 22304")
    # Each vertebral body may have its own number; all are the same class.
    values = {0: 0} | dict.fromkeys(range(1, 256), 1)
    scans = [
        from_files(
            (file,), beside(file, f"{name}_Labels"), name=name, patient=name, classes=len(CLASSES), values=values
        )
        for name, file in files.items()
    ]
    if reference:
        last = {source.name for source in scans[-5:]} if len(scans) > 5 else set()
        scans = [replace(s, split="validation" if s.name in last else "train") for s in scans]
    return scans
