"""DICOM as scanners write it: whole headers, patients with names, several series, compressed, slices or frames."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pydicom = pytest.importorskip("pydicom", reason="DICOM is written with pydicom, which is not installed")

MR, ENHANCED_MR = "1.2.840.10008.5.1.4.1.1.4", "1.2.840.10008.5.1.4.1.1.4.1"
PIXEL, APART = (0.75, 0.5), 3.0
"""Between rows and between columns; between slices."""
ANGLE = 0.4
PLANES = {
    "axial": ((1, 0, 0), (0, 1, 0)),
    "sagittal": ((0, 1, 0), (0, 0, -1)),
    "oblique": ((math.cos(ANGLE), math.sin(ANGLE), 0), (-0.6 * math.sin(ANGLE), 0.6 * math.cos(ANGLE), -0.8)),
}
"""The directions in which columns and rows grow."""


def normal(plane: str) -> np.ndarray:
    return np.cross(*PLANES[plane])


def places(count: int, plane: str) -> np.ndarray:
    placed: np.ndarray = np.array([-20.0, 5.0, 40.0]) + APART * np.arange(count)[:, None] * normal(plane)
    return placed


def _head(kind: str, uid: str, array: np.ndarray, tags: dict[str, Any]) -> Any:
    head = pydicom.Dataset()
    head.file_meta = pydicom.dataset.FileMetaDataset()
    head.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    head.file_meta.MediaStorageSOPClassUID = head.SOPClassUID = kind
    head.file_meta.MediaStorageSOPInstanceUID = head.SOPInstanceUID = uid
    head.PatientName, head.PatientID, head.PatientBirthDate, head.PatientSex = "Doe^Jane", "H-4711", "19600229", "F"
    head.StudyInstanceUID, head.SeriesInstanceUID, head.FrameOfReferenceUID = "1.2.3.4", "1.2.3.4.1", "1.2.3.5"
    head.StudyDate, head.StudyTime, head.StudyID, head.AccessionNumber = "20260102", "101500", "7", "A7"
    head.ReferringPhysicianName, head.Manufacturer, head.PositionReferenceIndicator = "", "Maker", ""
    head.Modality, head.SeriesNumber, head.SeriesDescription, head.InstanceNumber = "MR", 3, "T2 TSE", 1
    head.SpecificCharacterSet, head.ImageType = "ISO_IR 192", ["ORIGINAL", "PRIMARY", "M", "ND"]
    head.Rows, head.Columns, head.SamplesPerPixel, head.PhotometricInterpretation = *array.shape[-2:], 1, "MONOCHROME2"
    head.BitsAllocated, head.BitsStored, head.HighBit, head.PixelRepresentation = (
        16,
        16,
        15,
        int(array.dtype.kind == "i"),
    )
    for name, value in tags.items():
        setattr(head, name, value)
    return head


def _save(head: Any, array: np.ndarray, path: Path, syntax: str | None) -> None:
    head.PixelData = np.ascontiguousarray(array).tobytes()
    head["PixelData"].VR = "OW"
    if syntax:
        head.compress(syntax)
    path.parent.mkdir(parents=True, exist_ok=True)
    head.save_as(path, enforce_file_format=True)


def slices(
    folder: Path,
    volume: np.ndarray,
    *,
    plane: str = "axial",
    where: np.ndarray | None = None,
    name: str = "IM{}",
    syntax: str | None = None,
    **tags: Any,
) -> Path:
    """A series of a file for each slice, whose names do not sort by position."""
    uid = tags.get("SeriesInstanceUID", "1.2.3.4.1")
    for index, (array, place) in enumerate(
        zip(volume, places(len(volume), plane) if where is None else where, strict=True)
    ):
        head = _head(MR, f"{uid}.{index + 1}", array, {"InstanceNumber": index + 1} | tags)
        head.ImagePositionPatient = [round(float(value), 6) for value in place]
        head.ImageOrientationPatient = [round(float(value), 6) for axis in PLANES[plane] for value in axis]
        head.PixelSpacing, head.SliceThickness = list(PIXEL), APART
        _save(head, array, folder / name.format(len(volume) - index), syntax)
    return folder


def frames(
    path: Path,
    volume: np.ndarray,
    *,
    plane: str = "axial",
    order: list[int] | None = None,
    slope: list[float] | None = None,
    syntax: str | None = None,
    where: np.ndarray | None = None,
    **tags: Any,
) -> Path:
    """One enhanced object, its frames in any order."""
    order = list(range(len(volume))) if order is None else order
    uid = tags.get("SeriesInstanceUID", "1.2.3.4.1")
    head = _head(ENHANCED_MR, f"{uid}.1", volume, {"NumberOfFrames": len(volume)} | tags)
    shared, head.PerFrameFunctionalGroupsSequence = pydicom.Dataset(), []
    _group(
        shared, "PlaneOrientation", ImageOrientationPatient=[round(float(v), 6) for axis in PLANES[plane] for v in axis]
    )
    _group(shared, "PixelMeasures", PixelSpacing=list(PIXEL), SliceThickness=APART)
    head.SharedFunctionalGroupsSequence = [shared]
    where = places(len(volume), plane) if where is None else where
    for frame in order:
        own = pydicom.Dataset()
        _group(own, "PlanePosition", ImagePositionPatient=[round(float(value), 6) for value in where[frame]])
        _group(own, "FrameContent", InStackPositionNumber=frame + 1, StackID="1", DimensionIndexValues=[frame + 1])
        if slope:
            _group(own, "PixelValueTransformation", RescaleSlope=slope[frame], RescaleIntercept=0, RescaleType="US")
        head.PerFrameFunctionalGroupsSequence.append(own)
    _save(head, volume[order], path, syntax)
    return path


def _group(holder: Any, name: str, **tags: Any) -> None:
    inside = pydicom.Dataset()
    for tag, value in tags.items():
        setattr(inside, tag, value)
    setattr(holder, f"{name}Sequence", [inside])
