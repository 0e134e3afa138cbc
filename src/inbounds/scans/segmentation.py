"""A mask as DICOM: a segmentation object that refers to the series it was drawn on, for archives and viewers.

It is made by highdicom in a process of its own, as headers of strangers are read there; the patient, the study and the
frame of reference are those of the series, and each slice of the mask names the image it lies over.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import inbounds
from inbounds.errors import BadInput
from inbounds.scans.format import Mask, Scan
from inbounds.scans.gdcm import MEMORY, PATIENCE
from inbounds.writing import workspace

_CHILD = Path(__file__).with_name("segmentation_child.py")
_BESIDE = ("typing_extensions", "packaging", "jpeg_ls")
"""What highdicom brings, which may lie elsewhere, as where environments share packages."""
_PRIVATE = "99INBOUNDS"


@dataclass(frozen=True)
class Code:
    """A term of a coding scheme, such as `SCT`, `10200004`, `Liver`."""

    scheme: str
    value: str
    meaning: str


@dataclass(frozen=True)
class Coded:
    """What a class is, in codes: a thing of a category."""

    kind: Code
    category: Code = Code("SCT", "85756007", "Tissue")


def coded(texts: Sequence[str], classes: Sequence[str]) -> dict[str, Coded]:
    """What a person says of classes; one that nobody coded is known by its name in a scheme of this program's own.

    Args:
        texts: `CLASS=SCHEME:VALUE:MEANING`, and if need be `@SCHEME:VALUE:MEANING` of the category behind it.
        classes: All there are.
    """
    codes = {name: Coded(Code(_PRIVATE, name[:16], name[:64])) for name in classes}
    for text in texts:
        name, _, rest = text.partition("=")
        parts = [tuple(part.strip() for part in code.split(":", 2)) for code in rest.split("@", 1)]
        if name.strip() not in codes:
            raise BadInput(f"--code {text}: there is no class {name.strip()!r}; there are: {', '.join(classes)}")
        for part in parts:
            lengths = [len(piece) for piece in part]
            if len(part) != 3 or not all(part) or lengths[0] > 16 or lengths[1] > 16 or lengths[2] > 64:
                raise BadInput(
                    f"--code {text}: give CLASS=SCHEME:VALUE:MEANING, such as 'liver=SCT:10200004:Liver', of up to 16, "
                    "16 and 64 characters, and the category behind it as @SCT:91723000:Anatomical structure"
                )
        codes[name.strip()] = Coded(*(Code(*part) for part in parts))
    return codes


def write_segmentation(mask: Mask, scan: Scan, codes: Mapping[str, Coded], path: Path) -> None:
    """Write a mask of a DICOM scan; its values 1, 2, ... are the classes in their order.

    Raises:
        BadInput: The headers lack what a segmentation must say, or highdicom is not there.
        OSError: The disk does not take it.
    """
    modules = [importlib.util.find_spec(name) for name in ("highdicom", "pydicom", "numpy", "PIL", *_BESIDE)]
    if None in modules[: -len(_BESIDE)]:
        raise BadInput("segmentation objects are written with highdicom: pip install 'inbounds[dicom]'")
    if scan.frames:
        stored = np.empty_like(mask)
        stored[list(scan.frames)] = mask
        mask = stored
    places = ((Path(str(one.origin)), bool(one.submodule_search_locations)) for one in modules if one)
    paths = dict.fromkeys(str(file.parents[package]) for file, package in places)
    size = mask.nbytes + sum(file.stat().st_size for file in scan.files)
    seconds = 2 * PATIENCE + size / 1e5
    with workspace(path) as space:
        part, drawn = space / path.name, space / "mask.npy"
        np.save(drawn, mask, allow_pickle=False)
        asked = {
            "paths": [*paths],
            "memory": 4 * MEMORY + 16 * size,
            "seconds": seconds,
            "files": [str(file) for file in scan.files],
            "mask": str(drawn),
            "out": str(part),
            "version": inbounds.__version__,
            "classes": [{"name": name, **asdict(code)} for name, code in codes.items()],
        }
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", str(_CHILD)],
                input=json.dumps(asked).encode(),
                capture_output=True,
                timeout=seconds,
                check=False,
            )
            wrong = json.loads(done.stdout or b'{"wrong": "the process that writes it was ended", "disk": false}')
        except subprocess.TimeoutExpired:
            wrong = {"wrong": "it takes too long", "disk": False}
        if wrong.get("disk"):
            raise OSError(
                f"{path}: the mask could not be written ({wrong['wrong']}); make room, or choose another place"
            )
        if "wrong" in wrong:
            raise BadInput(
                f"{scan.path}: no segmentation object can refer to this series ({wrong['wrong'][:300]}); leave "
                "--dicom-seg out, or export the series again with whole headers"
            )
        part.replace(path)
