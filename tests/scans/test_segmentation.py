"""Segmentation objects: each voxel where it was found, told by pydicom frame by frame, dcmqi, and a validator."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813

from dicoms import PIXEL, PLANES, frames, places, pydicom, slices
from inbounds.errors import BadInput
from inbounds.scans.scan import header
from inbounds.scans.segmentation import coded, write_segmentation
from predicting import scene

pytest.importorskip("highdicom", reason="writes segmentation objects; not installed")

MASK = scene()
VOLUME = np.random.default_rng(0).integers(0, 3000, MASK.shape).astype(np.uint16)
CODES = coded(["LV=SCT:87878005:Left ventricle@SCT:91723000:Anatomical structure"], ["LV", "RV"])


def shuffled(path: Path, volume: np.ndarray, **how: str) -> Path:
    return frames(path.with_suffix(".dcm"), volume, order=[2, 0, 3, 1], **how)


SHAPES = {"slices": slices, "frames": shuffled}


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """One for each plane and shape, made once."""
    keys = [(plane, shape) for plane in PLANES for shape in SHAPES]
    return {key: made(tmp_path_factory.mktemp("seg"), key[0], SHAPES[key[1]]) for key in keys}


def made(folder: Path, plane: str = "axial", shape: Callable[..., Path] = slices, mask: np.ndarray = MASK) -> Path:
    scan = header(shape(folder / "scan", VOLUME, plane=plane))
    write_segmentation(mask, scan, CODES, folder / "mask.dcm")
    return folder / "mask.dcm"


def wanted(plane: str, value: int) -> np.ndarray:
    """The places in mm of a class's voxels, from what the series was written with; sorted."""
    s, r, c = np.nonzero(value == MASK)
    across, down = (np.array(axis, dtype=float) for axis in PLANES[plane])
    where = places(len(MASK), plane)[s] + c[:, None] * PIXEL[1] * across + r[:, None] * PIXEL[0] * down
    return ordered(where)


def ordered(where: np.ndarray) -> np.ndarray:
    return where[np.lexsort(np.round(where, 2).T)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("plane", PLANES)
def test_frames_placed_by_hand(objects: dict[tuple[str, str], Path], plane: str, shape: str) -> None:
    seg = pydicom.dcmread(objects[plane, shape])
    shared = seg.SharedFunctionalGroupsSequence[0]
    turn = np.array(shared.PlaneOrientationSequence[0].ImageOrientationPatient, float).reshape(2, 3)
    step = [float(value) for value in shared.PixelMeasuresSequence[0].PixelSpacing]
    found: dict[int, list[np.ndarray]] = {1: [], 2: []}
    for frame, own in zip(seg.pixel_array, seg.PerFrameFunctionalGroupsSequence, strict=True):
        r, c = np.nonzero(frame)
        place = np.array(own.PlanePositionSequence[0].ImagePositionPatient, float)
        value = int(own.SegmentIdentificationSequence[0].ReferencedSegmentNumber)
        found[value] += [place + c[:, None] * step[1] * turn[0] + r[:, None] * step[0] * turn[1]]
    for value, parts in found.items():
        np.testing.assert_allclose(ordered(np.concatenate(parts)), wanted(plane, value), atol=1e-3)


@pytest.mark.parametrize("plane", PLANES)
def test_read_by_dcmqi(tmp_path: Path, objects: dict[tuple[str, str], Path], plane: str) -> None:
    tool = shutil.which("segimage2itkimage", path=str(Path(sys.executable).parent)) or shutil.which("segimage2itkimage")
    if tool is None:
        pytest.skip("dcmqi's segimage2itkimage is not installed")
    (tmp_path / "out").mkdir()
    words = [tool, "--inputDICOM", objects[plane, "slices"], "--outputDirectory", tmp_path / "out", "-t", "nrrd"]
    subprocess.run([str(word) for word in words], check=True, capture_output=True)
    for value in (1, 2):
        image = sitk.ReadImage(str(tmp_path / "out" / f"{value}.nrrd"))
        there = np.argwhere(sitk.GetArrayFromImage(image) != 0)[:, ::-1]
        where = np.array([image.TransformIndexToPhysicalPoint([int(i) for i in voxel]) for voxel in there])
        np.testing.assert_allclose(ordered(where), wanted(plane, value), atol=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("plane", PLANES)
def test_valid(objects: dict[tuple[str, str], Path], plane: str, shape: str) -> None:
    if shutil.which("dciodvfy") is None:
        pytest.skip("the validator dciodvfy is not installed")
    done = subprocess.run(["dciodvfy", str(objects[plane, shape])], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if line.startswith("Error")] == []


def test_what_it_refers_to(objects: dict[tuple[str, str], Path]) -> None:
    seg = pydicom.dcmread(objects["axial", "slices"])
    assert (seg.PatientID, seg.StudyInstanceUID, seg.FrameOfReferenceUID) == ("H-4711", "1.2.3.4", "1.2.3.5")
    (series,) = seg.ReferencedSeriesSequence
    assert series.SeriesInstanceUID == "1.2.3.4.1"
    assert len(series.ReferencedInstanceSequence) == len(MASK)
    first, second = seg.SegmentSequence
    assert first.SegmentedPropertyTypeCodeSequence[0].CodeValue == "87878005"
    assert first.SegmentedPropertyCategoryCodeSequence[0].CodeMeaning == "Anatomical structure"
    named = second.SegmentedPropertyTypeCodeSequence[0]
    assert (named.CodeValue, named.CodingSchemeDesignator, named.CodeMeaning) == ("RV", "99INBOUNDS", "RV")


def test_an_empty_mask(tmp_path: Path) -> None:
    seg = pydicom.dcmread(made(tmp_path, mask=np.zeros_like(MASK)))
    assert not seg.pixel_array.any()
    assert len(seg.SegmentSequence) == 2


def test_a_series_that_says_too_little(tmp_path: Path) -> None:
    folder = slices(tmp_path / "scan", VOLUME)
    for file in folder.iterdir():
        head = pydicom.dcmread(file)
        del head.StudyInstanceUID
        head.save_as(file)
    with pytest.raises(BadInput, match=r"scan: no segmentation object can refer to this series \(.*StudyInstanceUID"):
        write_segmentation(MASK, header(folder), CODES, tmp_path / "mask.dcm")
    assert not (tmp_path / "mask.dcm").exists()


@pytest.mark.parametrize("text", ["LV", "LV=SCT:1", "LV=SCT::x", "LV=SCT:12345678901234567:x", "LV=A:1:b@C"])
def test_codes_that_are_none(text: str) -> None:
    with pytest.raises(BadInput, match="give CLASS=SCHEME:VALUE:MEANING"):
        coded([text], ["LV"])
    with pytest.raises(BadInput, match="there is no class 'x'; there are: LV"):
        coded(["x=SCT:1:y"], ["LV"])
