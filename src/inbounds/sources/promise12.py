"""PROMISE12: transversal T2 MR of the prostate, 50 cases as `CaseNN.mhd` with `CaseNN_segmentation.mhd`."""

from __future__ import annotations

import re
from pathlib import Path

from inbounds.sources.source import Source, from_files, matching

NAME = "promise12"
CLASSES = ("background", "prostate")
VALIDATION = 0.2
_CASE = re.compile(r"(Case\d+)\.mh[da]$")


def reference_split(case: str) -> str:
    """Cases 40 to 49 validate."""
    return "validation" if 40 <= int(case.removeprefix("Case")) <= 49 else "train"


def wanted(name: str) -> bool:
    """Which files of an archive are needed."""
    return name.startswith("Case") and name.endswith((".mhd", ".mha", ".raw", ".zraw"))


def sources(root: Path, *, reference: bool = True) -> list[Source]:
    """All cases below a folder, in the order of their names."""
    like = "Case00.mhd; give the folder with the unpacked archives, or with the zips"
    cases = []
    for case, file in matching(root, _CASE, "_segmentation", like).items():
        masks = (file.with_name(f"{case}_segmentation{end}") for end in (".mhd", ".mha"))
        labels = next((mask for mask in masks if mask.exists()), None)
        split = reference_split(case) if reference else ""
        cases.append(from_files((file,), labels, name=case, patient=case, classes=len(CLASSES), split=split))
    return cases
