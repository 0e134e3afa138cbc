"""A scan on its way into a store: what it is called, whose it is, and how its voxels are read when its turn comes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from jaxtyping import Shaped, UInt8

from inbounds.errors import BadInput
from inbounds.scans.format import Scan
from inbounds.scans.scan import filled, header, read_labels, same_geometry, stem
from inbounds.scans.series import PATIENT

GIVEN = "given"
"""The annotation that masks with unlabelled pixels are of, and complete ones beside them."""


@dataclass(frozen=True)
class Loaded:
    """The voxels of one scan.

    Attributes:
        image: As measured.
        spacing: In mm, between slices, rows and columns.
        truth: The full mask, or `None` where nobody drew one.
        weak: Labels given by people, by the name of the annotation they belong to; 255 where unlabelled.
        notes: Sentences for the report: what was assumed, what looks odd.
    """

    image: Shaped[np.ndarray, "channels slices rows columns"]
    spacing: tuple[float, float, float]
    truth: UInt8[np.ndarray, "slices rows columns"] | None
    weak: Mapping[str, UInt8[np.ndarray, "slices rows columns"]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Extent:
    """How large a scan is, by its headers alone.

    Attributes:
        shape: Slices, rows and columns.
        spacing: In mm, between them.
        channels: How many there are.
        size: The bytes of memory that reading it takes, masks included.
    """

    shape: tuple[int, int, int]
    spacing: tuple[float, float, float]
    channels: int
    size: int


@dataclass(frozen=True)
class Files:
    """The files of a scan; called, they are read.

    Attributes:
        name: What the scan is called.
        images: One file or folder a channel.
        labels: The label map, or `None`.
        weak: Labels given by people that are no truth: annotation name to file and its unlabelled value.
        values: From the values in the label files to classes.
    """

    name: str
    images: tuple[Path, ...]
    labels: Path | None
    weak: Mapping[str, tuple[Path, int]]
    values: Mapping[int, int]

    def __call__(self) -> Loaded:
        """Read the voxels."""
        try:
            loaded = self._read()
        except BadInput as error:
            raise BadInput(spoken(str(error), self.name, self.images)) from error
        return replace(loaded, notes=tuple(spoken(note, self.name, self.images) for note in loaded.notes))

    def _read(self) -> Loaded:
        from inbounds.annotations.annotation import UNLABELLED  # with which comes torch, and finding scans needs none

        scans = [read_image(header(file)) for file in self.images]
        notes = [note for scan in scans for note in scan.notes]

        def classes(file: Path, values: Mapping[int, int]) -> UInt8[np.ndarray, "slices rows columns"]:
            drawn = read_labels(file)
            notes.extend([*drawn.notes, *same_geometry(scans[0], drawn)])
            return _classes(file, drawn.array, values)

        truth = None if self.labels is None else classes(self.labels, self.values)
        given = {name: classes(file, {**self.values, empty: UNLABELLED}) for name, (file, empty) in self.weak.items()}
        return Loaded(stacked(scans), scans[0].spacing, truth, given, tuple(notes))


@dataclass(frozen=True)
class Source:
    """One scan to be prepared.

    Attributes:
        name: Unique in the data set.
        patient: Whose scan it is.
        load: Reads the voxels.
        split: The split it belongs to, if the data set says so.
        phase: Such as ED or ES.
        group: Such as the pathology.
        weak: The names of the annotations that people gave.
        truth: Whether there is a full mask.
        extent: How large it is, where that is known before it is read.
    """

    name: str
    patient: str
    load: Callable[[], Loaded]
    split: str = ""
    phase: str = ""
    group: str = ""
    weak: tuple[str, ...] = ()
    truth: bool = True
    extent: Extent | None = None


def from_files(
    images: tuple[Path, ...],
    labels: Path | None,
    *,
    name: str,
    patient: str,
    classes: int,
    values: Mapping[int, int] | None = None,
    weak: Mapping[str, tuple[Path, int]] | None = None,
    split: str = "",
    phase: str = "",
    group: str = "",
) -> Source:
    """A scan that lies in files: one image per channel and, if there are any, labels.

    Args:
        images: One file or folder per channel.
        labels: The label map, or `None`.
        name: What to call the scan.
        patient: Whose it is.
        classes: How many classes there are, background included.
        values: From the values in the label files to classes; as they are, if not given.
        weak: Labels given by people that are no truth: annotation name to file and its unlabelled value.
        split: The split it belongs to, if known.
        phase: Such as ED.
        group: Such as the pathology.
    """
    weak = dict(weak or {})
    try:
        heads, drawn = (
            [header(file) for file in files]
            for files in (images, [*([labels] if labels else []), *(file for file, _ in weak.values())])
        )
        for other in (*heads[1:], *drawn):
            same_geometry(heads[0], other)
    except BadInput as error:
        raise BadInput(spoken(str(error), name, images)) from error
    shape, several = heads[0].shape, 1 + (len(heads) > 1)
    size = several * sum(head.size for head in heads) + len(drawn) * math.prod(shape)
    extent = Extent(shape, heads[0].spacing, len(heads), size + max((head.size for head in drawn), default=0))
    load = Files(name, images, labels, weak, dict(values) if values else {k: k for k in range(classes)})
    return Source(name, patient, load, split, phase, group, tuple(weak), labels is not None, extent)


def spoken(text: str, name: str, files: Sequence[Path]) -> str:
    """What is told of a scan: where its folders may name a patient, its place is called by the name made for it."""
    if not re.match(PATIENT, name):
        return text
    told = text
    for place in (place for file in files for place in (file, file.parent)):
        told = told.replace(str(place), name)
    return told if told == text else f"{told} (--folder-names tells the folder)"


def by_name(files: Iterable[Path]) -> dict[str, Path]:
    """Scans by their names; two of the same name are refused, wherever they lie."""
    scans: dict[str, Path] = {}
    for file in files:
        name = stem(file)
        if name in scans:
            raise BadInput(
                f"{file}: the scan {scans[name]} has the same name: is a patient there twice? Remove or rename one"
            )
        scans[name] = file
    return scans


def matching(root: Path, name: re.Pattern[str], labels: str, like: str) -> dict[str, Path]:
    """The scans of an archive below a folder, in the order of their names; every mask must have its scan beside it.

    Args:
        root: The folder.
        name: What the file of a scan is called.
        labels: What stands behind that name in the file of its mask.
        like: A name, and what to give instead of a folder that has none like it.
    """
    scans = by_name(sorted((file for file in root.rglob("*") if name.match(file.name)), key=lambda file: file.name))
    if not scans:
        raise BadInput(f"{root}: no file named like {like}")
    for mask in sorted(root.rglob(f"*{labels}.*")):
        scan = mask.with_name(mask.name.replace(labels, ""))
        found = scans.get(stem(scan)) if name.match(scan.name) else mask
        if found is None or found.parent != mask.parent:
            raise BadInput(f"{mask}: a mask without its scan {scan.name}; download the archive again")
    return scans


def beside(scan: Path, name: str) -> Path | None:
    """The NIfTI file of this name in the scan's folder, packed or not."""
    return next((f for end in (".nii.gz", ".nii") if (f := scan.with_name(name + end)).is_file()), None)


def stacked(scans: Sequence[Scan]) -> Shaped[np.ndarray, "channels slices rows columns"]:
    """The channels of a scan as one array; that of a single channel is not copied."""
    return scans[0].array[None] if len(scans) == 1 else np.stack([scan.array for scan in scans])


def read_image(head: Scan) -> Scan:
    """One channel of a scan by its header; its voxels are numbers that a scanner may give."""
    scan, file = filled(head), head.path
    peak = max(abs(float(scan.array.min())), abs(float(scan.array.max())))
    if peak > 1e30:  # far beyond any scanner, and far enough from the end of the numbers to reckon with
        raise BadInput(f"{file}: voxels reach {peak:.3g}, which is no brightness; check the header's slope, or rescale")
    return scan


def _classes(file: Path, array: np.ndarray, values: Mapping[int, int]) -> UInt8[np.ndarray, "slices rows columns"]:
    """Label values as classes; a value that stands for none is refused."""
    present = np.unique(np.concatenate([np.unique(one) for one in array]))
    if unknown := [int(value) for value in present if int(value) not in values]:
        at = tuple(int(i) for i in np.unravel_index(int((array == unknown[0]).argmax()), array.shape))
        raise BadInput(
            f"{file}: label value {unknown[0]} at (slice, row, column) {at} stands for no class; known are "
            f"{', '.join(str(value) for value in values)}. Name the classes, or say which value means unlabelled"
        )
    classes = np.array([values[int(value)] for value in present], dtype=np.uint8)
    if array.dtype == np.uint8 and np.array_equal(classes, present):
        return array
    mapped = np.empty(array.shape, dtype=np.uint8)
    for one, drawn in zip(mapped, array, strict=True):
        one[:] = classes[np.searchsorted(present, drawn)]
    return mapped
