"""A user's own data, in the folders that people and tools leave behind.

| layout | images | labels |
|---|---|---|
| flat | `images/NAME.nii.gz` (or folders of slices or of DICOM files) | `labels/NAME.nii.gz`, or in `masks/` |
| nnU-Net raw | `imagesTr/NAME_0000.nii.gz`, `_0001` ... | `labelsTr/NAME.nii.gz`, classes in `dataset.json` |
| Decathlon | `imagesTr/NAME.nii.gz` | `labelsTr/NAME.nii.gz`, classes in `dataset.json` |
| nothing else | scans directly in the folder, or DICOM at any depth | none |

Each picture that lies directly in such a folder is a scan, and each folder of pictures in it is one, slice by slice.

A case may lack labels. Labels may be weak: nnU-Net's `ignore`, or any value that is said to mean unlabelled. All labels
then make up the annotation `given`, complete ones beside weak ones; only complete ones are truth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from inbounds.described import Described, read_json
from inbounds.errors import BadInput, each, nearest
from inbounds.scans.dicom import is_dicom
from inbounds.scans.scan import is_scan, is_series, read_labels, stem
from inbounds.scans.series import ANY, PATIENT, Taken, Wanted, holds_dicom, take
from inbounds.sources.source import GIVEN, Source, by_name, from_files

_CHANNEL = re.compile(r"(.+)_(\d{4})$")
_NUMBER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True)
class Layout:
    """What a folder holds.

    Attributes:
        kind: `flat`, `nnU-Net`, `Decathlon` or `scans`.
        images: By case, one file or folder per channel.
        labels: By case.
        classes: Names by value, if the folder says so.
        unlabelled: The value that means nobody has said, if the folder says so.
        patient: A regular expression that finds the patient in the names, if these were made here.
        notes: Sentences on what was taken where there was a choice.
    """

    kind: str
    images: dict[str, tuple[Path, ...]]
    labels: dict[str, Path]
    classes: dict[int, str]
    unlabelled: int | None
    patient: str = ""
    notes: tuple[str, ...] = ()


def recognise(root: Path, wanted: Wanted = ANY) -> Layout:
    """Find the scans and their labels."""
    if not root.is_dir():
        raise BadInput(f"{root}: there is no such folder; check the name")
    if (root / "imagesTr").is_dir():
        images = _scans(root / "imagesTr")
        nnunet = bool(images) and all(_CHANNEL.match(name) for name in images)
        cases = channels(images) if nnunet else _single(images)
        classes, ignore = _class_names(root / "dataset.json")
        labels = _scans(root / "labelsTr") if (root / "labelsTr").is_dir() else {}
        return Layout("nnU-Net" if nnunet else "Decathlon", cases, labels, classes, ignore)
    if (root / "images").is_dir():
        images = _scans(root / "images")
        return Layout("flat", _single(images), _labels(root, images), {}, None)
    if not (there := dicom_in(root, wanted)).scans:
        return Layout("scans", _single(_scans(root)), {}, {}, None)
    others = {name: file for name, file in _scans(root).items() if not is_series(file)}
    if twice := there.scans.keys() & others.keys():
        raise BadInput(f"{root}: two scans are called {min(twice)!r}; rename one")
    made = PATIENT if all(re.match(PATIENT, name) for name in there.scans) and not others else ""
    cases = _single(dict(sorted((there.scans | others).items())))
    return Layout("scans", cases, {}, {}, None, made, there.notes)


def dicom_in(root: Path, wanted: Wanted = ANY) -> Taken:
    """The DICOM series in a folder: those of its own folders, or of deeper ones, a patient's and a study's."""
    inside = [folder for folder in sorted(root.iterdir()) if folder.is_dir() and not folder.name.startswith(".")]
    direct = [folder for folder in inside if is_scan(folder) and is_series(folder)]
    own = is_scan(root) and is_series(root)
    if any(holds_dicom(below) for top in inside for below in top.iterdir() if below.is_dir()) or (own and direct):
        return take(root, [root], wanted, deep=True)
    return take(root, [root] if own else direct, wanted) if own or direct else Taken({}, ())


def left_out(layout: Layout, root: Path, names: Sequence[str]) -> Layout:
    """What a folder holds, but for some of its scans."""
    for name in names:
        if name not in layout.images:
            raise BadInput(f"{root}: there is no scan {name!r} to leave out; {nearest(name, layout.images)}")
    images = {name: files for name, files in layout.images.items() if name not in names}
    return replace(layout, images=images, labels={name: f for name, f in layout.labels.items() if name not in names})


def sources(
    layout: Layout,
    root: Path,
    *,
    classes: Sequence[str] = (),
    values: Mapping[int, str] | None = None,
    unlabelled: int | None = None,
    patient: str = "",
) -> tuple[list[Source], tuple[str, ...]]:
    """The scans of a folder, and the names of their classes.

    Args:
        layout: What the folder holds.
        root: The folder, for messages.
        classes: Names for the label values 0, 1, 2, ...; taken from `dataset.json` or made up if not given.
        values: Names by label value instead, that of the background first; values may share a name.
        unlabelled: The label value that means nobody has said.
        patient: A regular expression whose first group, or whole match, within a scan's name is the patient; by default
            every scan is a patient of its own.
    """
    if not layout.images:
        raise BadInput(
            f"{root}: no scans found; known are .nii.gz, .mhd, .mha, .nrrd, DICOM and pictures, in images/ or not"
        )
    if orphans := sorted(set(layout.labels) - set(layout.images)):
        near = ", ".join(sorted(layout.images)[:3])
        raise BadInput(
            f"{layout.labels[orphans[0]]}: labels without their scan; scans are called {near} ...: the names must agree"
        )
    ignore = unlabelled if unlabelled is not None else layout.unlabelled
    named = values or {value: layout.classes[value] for value in sorted(layout.classes)}
    told = tuple(dict.fromkeys(named.values()))
    names = tuple(classes) or told or _seen(layout, ignore)
    if ignore is not None and values and ignore in values:
        raise BadInput(f"{root}: the value {ignore} means unlabelled, and {values[ignore]!r} too; correct one of them")
    numbers = {value: told.index(name) for value, name in named.items()} or None
    if classes and numbers and len(classes) != len(numbers):
        raise BadInput(f"{root}: {len(classes)} class names given, but dataset.json has {len(numbers)}")
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        raise BadInput(
            f"{root}: the classes {', '.join(names)!r} cannot be used; name the background first, then at least one "
            "class, each differently"
        )

    def source(name: str) -> Source:
        labels = layout.labels.get(name)
        given = {GIVEN: (labels, ignore)} if labels is not None and ignore is not None else None
        if labels is not None and ignore is not None and (read_labels(labels).array == ignore).any():
            labels = None  # weak labels are no truth
        whose = patient_of(name, patient)
        return from_files(
            layout.images[name], labels, name=name, patient=whose, classes=len(names), values=numbers, weak=given
        )

    return each(source, layout.images), names


def channels(images: dict[str, Path]) -> dict[str, tuple[Path, ...]]:
    """Scans called `NAME_0000`, `NAME_0001`, ... by case, in the order of their channels; other names are left out."""
    cases: dict[str, dict[int, Path]] = {}
    for name, file in images.items():
        if match := _CHANNEL.match(name):
            cases.setdefault(match[1], {})[int(match[2])] = file
    for name, files in cases.items():
        if sorted(files) != list(range(len(files))):
            missing = min(set(range(max(files) + 1)) - set(files))
            raise BadInput(f"{next(iter(files.values())).parent}: case {name} has no channel {missing:04d}")
    return {name: tuple(files[k] for k in sorted(files)) for name, files in cases.items()}


def probable_patient(names: Sequence[str]) -> str:
    """A regular expression that finds the patient, where names look as if patients had several scans; else nothing.

    All names begin alike up to a number, the patient's, and some numbers come several times. There must be enough of
    them not to be years or sites.

    Example:
        >>> probable_patient(["patient001_ED", "patient001_ES", "patient002_ED", "patient002_ES"])
        '^(patient[0-9]+)'
        >>> probable_patient(["patient001", "patient002"])
        ''
    """
    pattern = ""
    for text in re.findall(r"([^0-9]*)[0-9]+", names[0] if names else ""):
        pattern += re.escape(text) + "[0-9]+"
        matches = [re.match(rf"({pattern})(?![0-9A-Za-z])", name) for name in names]
        patients = {match[1] for match in matches if match}
        many = len(patients) >= 4 or 1 < len(patients) >= len(names) / 4
        if all(matches) and len(patients) < len(names) and many:
            return f"^({pattern})"
    return ""


def patient_of(name: str, pattern: str) -> str:
    """The patient in a scan's name; the name itself if there is no pattern."""
    if not pattern:
        return name
    try:
        match = re.search(pattern, name)
    except re.error as error:
        raise BadInput(f"{pattern!r} is no regular expression ({error}); for instance: '^(patient[0-9]+)'") from None
    if not match:
        raise BadInput(f"{name}: no patient found in this name by {pattern!r}")
    return match[1] if match.groups() else match[0]


def _scans(folder: Path) -> dict[str, Path]:
    files = sorted(folder.iterdir())
    if any(is_dicom(file) for file in files if file.is_file()):
        if whole := [f for f in files if f.is_file() and is_scan(f) and not is_series(f)]:
            raise BadInput(
                f"{folder}: the folder holds slices as well as whole scans such as {whole[0].name}; keep them in "
                "different folders, or give the files"
            )
        return {stem(folder): folder}
    return by_name(file for file in files if is_scan(file))


def _labels(root: Path, images: Mapping[str, Path]) -> dict[str, Path]:
    """The labels beside `images/`; masks may be called as their scans, with `_mask` behind."""
    there = [folder for name in ("labels", "masks") if (folder := root / name).is_dir()]
    if len(there) > 1:
        raise BadInput(f"{root}: there are labels/ and masks/; leave one of them in the folder")
    found = _scans(there[0]) if there else {}
    bare = {name: name if name in images else name.removesuffix("_mask") for name in found}
    if len(set(bare.values())) < len(bare):
        raise BadInput(f"{there[0]}: a scan has two masks there, one of them called NAME_mask; remove one")
    return {bare[name]: file for name, file in found.items()}


def _single(images: dict[str, Path]) -> dict[str, tuple[Path, ...]]:
    return {name: (file,) for name, file in images.items()}


class _Dataset(Described):
    """What is read of `dataset.json`."""

    labels: dict[str, int | str | list[Any]] = Field(default_factory=dict)


def _class_names(file: Path) -> tuple[dict[int, str], int | None]:
    """Class names by value. nnU-Net writes `name: value`, the Decathlon `value: name`; `ignore` is no class."""
    classes: dict[int, str] = {}
    if not file.is_file():
        return classes, None
    for key, value in read_json(file, _Dataset, "correct or remove it").labels.items():
        if isinstance(value, list):
            raise BadInput(f"{file}: region-based labels ({key}: {value}) are not supported; list plain values")
        text, name = (key, str(value)) if _NUMBER.fullmatch(key) else (str(value), key)
        if not _NUMBER.fullmatch(text):
            raise BadInput(f"{file}: 'labels' must map names to values, and {key!r} is {value!r}; correct it")
        if (number := int(text)) in classes:
            raise BadInput(f"{file}: both {classes[number]!r} and {name!r} have the value {number}; correct one")
        classes[number] = name
    ignore = next((value for value, name in classes.items() if name == "ignore"), None)
    if ignore is not None:
        del classes[ignore]
    if classes and min(classes) != 0:
        raise BadInput(f"{file}: the lowest value in 'labels' is {min(classes)}; it must be 0, the background")
    return classes, ignore


def _seen(layout: Layout, ignore: int | None) -> tuple[str, ...]:
    """Names for classes nobody named: as many as the largest value in the labels."""
    highest = 1
    for file in layout.labels.values():
        values = [int(value) for value in np.unique(read_labels(file).array) if int(value) != ignore]
        highest = max(highest, *values) if values else highest
        if highest > 250:
            raise BadInput(f"{file}: a label value of {highest}; name the classes, or say which value means unlabelled")
    return ("background", *(f"class{value}" for value in range(1, highest + 1)))
