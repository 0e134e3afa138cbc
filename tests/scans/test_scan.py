"""Scans in every format, masks that overlay them, and files that are not what they should be."""

from __future__ import annotations

import gzip
import math
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from archives import full_disk
from inbounds.scans.itk import ItkGeometry
from inbounds.scans.scan import (
    SUFFIXES,
    BadInput,
    header,
    is_scan,
    read,
    read_labels,
    same_geometry,
    stem,
    write_mask,
)

SHARED = Path(__file__).parents[3] / "shared" / "data"
VOLUME = np.random.default_rng(0).integers(-500, 500, (4, 5, 6)).astype(np.int16)
MASK = (VOLUME > 200).astype(np.uint8) * 3


def turn(*angles: float) -> np.ndarray:
    """A rotation about the three axes in turn."""
    matrix = np.eye(3)
    for axis, angle in enumerate(angles):
        i, j = [other for other in range(3) if other != axis]
        step = np.eye(3)
        step[i, i] = step[j, j] = math.cos(angle)
        step[i, j], step[j, i] = -math.sin(angle), math.sin(angle)
        matrix = matrix @ step
    return matrix


def placed(matrix: np.ndarray, offset: tuple[float, float, float] = (-31.5, 12.25, 7.0)) -> np.ndarray:
    affine = np.eye(4)
    affine[:3, :3], affine[:3, 3] = matrix, offset
    return affine


ZOOM = np.diag([0.5, 0.75, 3.0])
AFFINES = {
    "plain": placed(ZOOM),
    "flipped": placed(ZOOM @ np.diag([-1, 1, -1])),
    "permuted": placed(ZOOM[[2, 0, 1]]),
    "oblique": placed(turn(0.3, -0.7, 1.1) @ ZOOM),
    "oblique and left-handed": placed(turn(0.3, -0.7, 1.1) @ ZOOM @ np.diag([1, -1, 1])),
    "sheared": placed(np.array([[0.5, 0.2, 0.1], [0, 0.75, 0.4], [0, 0, 3.0]])),
}


def nifti(
    path: Path, array: np.ndarray = VOLUME, affine: np.ndarray | None = None, kind: type = nib.Nifti1Image
) -> Path:
    kind(array.T, placed(ZOOM) if affine is None else affine).to_filename(path)
    return path


def image(array: np.ndarray = VOLUME, direction: np.ndarray | None = None) -> sitk.Image:
    made = sitk.GetImageFromArray(array, isVector=False)
    axes = array.ndim
    made.SetSpacing((0.5, 0.75, 3.0, 1.0)[:axes])
    made.SetOrigin((-31.5, 12.25, 7.0, 0.0)[:axes])
    if direction is not None:
        made.SetDirection(direction.ravel().tolist())
    return made


def itk(path: Path, array: np.ndarray = VOLUME, direction: np.ndarray | None = None, compress: bool = False) -> Path:
    sitk.WriteImage(image(array, direction), str(path), compress)
    return path


def ras(made: sitk.Image) -> np.ndarray:
    """The affine by asking ITK where four voxels lie, as an oracle for our own."""
    points = [made.TransformIndexToPhysicalPoint(index) for index in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))]
    corner, *others = np.array(points) * (-1, -1, 1)
    return placed(np.column_stack([other - corner for other in others]), tuple(corner))


def series(
    folder: Path,
    volume: np.ndarray = VOLUME,
    uid: str = "1.2.826.0.1.3680043.2.1125.1",
    places: np.ndarray | None = None,
    tags: dict[str, str] | None = None,
    name: str = "slice{}.dcm",
) -> Path:
    """A DICOM series of oblique slices, 3 mm apart, whose names do not sort by position."""
    folder.mkdir(exist_ok=True)
    matrix = turn(0.3, -0.2, 0.5)
    for index, plane in enumerate(volume):
        made = sitk.GetImageFromArray(plane)
        made.SetSpacing((0.5, 0.75))
        place = np.array([5.0, -7.0, 11.0]) + 3.0 * index * matrix[:, 2] if places is None else places[index]
        orientation = [*matrix[:, 0], *matrix[:, 1]]
        values = {
            "0008|0060": "MR",
            "0008|0018": f"{uid}.{index}",
            "0020|000d": "1.2.3.4",
            "0020|000e": uid,
            "0020|0013": str(index),
            "0020|0032": "\\".join(f"{value:.9f}" for value in place),
            "0020|0037": "\\".join(f"{value:.9f}" for value in orientation),
        }
        for tag, value in (values | (tags or {})).items():
            made.SetMetaData(tag, value)
        writer = sitk.ImageFileWriter()
        writer.SetImageIO("GDCMImageIO")
        writer.KeepOriginalImageUIDOn()
        writer.SetFileName(str(folder / "written"))
        writer.Execute(made)
        (folder / "written").rename(folder / name.format(len(volume) - index))
    return folder


def png(path: Path, array: np.ndarray, **options: object) -> Path:
    path.parent.mkdir(exist_ok=True)
    Image.fromarray(array).save(path, **options)
    return path


class TestNames:
    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_every_suffix_is_known_and_stripped_whole(self, suffix: str) -> None:
        path = Path("folder") / f"case.v2{suffix.upper()}"
        assert is_scan(path)
        assert stem(path) == "case.v2"

    def test_other_files_are_no_scans(self, tmp_path: Path) -> None:
        text = tmp_path / "Info.cfg"
        text.write_text("ED: 1")
        assert not is_scan(text)
        assert not is_scan(tmp_path)
        assert not is_scan(tmp_path / "._case.nii.gz")
        with pytest.raises(BadInput, match=r"Info\.cfg: not a scan by its name; known are .*\.mhd"):
            read(text)
        with pytest.raises(BadInput, match="neither pictures nor DICOM"):
            read(tmp_path)

    def test_folders_of_slices_are_scans(self, tmp_path: Path) -> None:
        assert is_scan(series(tmp_path / "series.1"))
        assert stem(tmp_path / "series.1") == "series.1"
        assert is_scan(png(tmp_path / "pictures" / "1.png", np.eye(4, dtype=np.uint8)).parent)
        assert not is_scan(nifti(tmp_path / "scan.nii").parent)


class TestNifti:
    @pytest.mark.parametrize("name", ["scan.nii", "scan.nii.gz"])
    @pytest.mark.parametrize("kind", [nib.Nifti1Image, nib.Nifti2Image])
    @pytest.mark.parametrize("affine", AFFINES.values(), ids=AFFINES.keys())
    def test_a_mask_overlays_its_scan(self, tmp_path: Path, affine: np.ndarray, kind: type, name: str) -> None:
        path = nifti(tmp_path / name, affine=affine, kind=kind)
        scan = read(path)
        np.testing.assert_array_equal(scan.array, VOLUME)
        assert scan.array.dtype == np.int16
        assert scan.spacing == pytest.approx(nib.load(path).header.get_zooms()[::-1])
        np.testing.assert_allclose(scan.geometry.affine, affine, atol=1e-5)
        write_mask(MASK, scan, tmp_path / f"mask_{name}")
        before, after = nib.load(path), nib.load(tmp_path / f"mask_{name}")
        assert type(after) is kind
        np.testing.assert_array_equal(after.affine, before.affine)
        np.testing.assert_array_equal(np.asarray(after.dataobj), MASK.T)
        assert after.get_data_dtype() == np.uint8
        for field in ("sform_code", "qform_code", "pixdim", "dim", "xyzt_units", "srow_x", "quatern_b"):
            np.testing.assert_array_equal(after.header[field], before.header[field])
        np.testing.assert_array_equal(read_labels(tmp_path / f"mask_{name}").array, MASK)

    def test_both_affines_and_their_codes_survive(self, tmp_path: Path) -> None:
        made = nib.Nifti1Image(VOLUME.T, None)
        made.set_sform(AFFINES["sheared"], 4)
        made.set_qform(AFFINES["oblique"], 1)
        made.to_filename(tmp_path / "scan.nii")
        write_mask(MASK, read(tmp_path / "scan.nii"), tmp_path / "mask.nii")
        after = nib.load(tmp_path / "mask.nii")
        assert (int(after.header["sform_code"]), int(after.header["qform_code"])) == (4, 1)
        np.testing.assert_array_equal(after.get_sform(), made.get_sform())
        np.testing.assert_array_equal(after.get_qform(), made.get_qform())

    def test_a_file_without_orientation_gets_none(self, tmp_path: Path) -> None:
        nib.Nifti1Image(VOLUME.T, None).to_filename(tmp_path / "scan.nii")
        scan = read(tmp_path / "scan.nii")
        assert scan.geometry.affine is None
        write_mask(MASK, scan, tmp_path / "mask.nii")
        after = nib.load(tmp_path / "mask.nii").header
        assert (int(after["sform_code"]), int(after["qform_code"])) == (0, 0)

    def test_other_byte_order(self, tmp_path: Path) -> None:
        big = nib.Nifti1Image(VOLUME.T, AFFINES["oblique"], nib.Nifti1Header(endianness=">"))
        big.header.set_data_dtype(">i2")
        big.to_filename(tmp_path / "scan.nii")
        scan = read(tmp_path / "scan.nii")
        np.testing.assert_array_equal(scan.array, VOLUME)
        assert scan.array.dtype.isnative
        write_mask(MASK, scan, tmp_path / "mask.nii.gz")
        np.testing.assert_array_equal(nib.load(tmp_path / "mask.nii.gz").affine, nib.load(tmp_path / "scan.nii").affine)

    @pytest.mark.parametrize(
        ("sizes", "shape"), [((6, 5), (1, 5, 6)), ((6, 5, 4, 1), (4, 5, 6)), ((6, 5, 4, 1, 1), (4, 5, 6))]
    )
    def test_axes_of_one_voxel_are_kept_in_the_mask(
        self, tmp_path: Path, sizes: tuple[int, ...], shape: tuple[int, ...]
    ) -> None:
        array = VOLUME[: shape[0]]
        nib.Nifti1Image(array.T.reshape(sizes), placed(ZOOM)).to_filename(tmp_path / "scan.nii")
        scan = read(tmp_path / "scan.nii")
        np.testing.assert_array_equal(scan.array, array)
        write_mask(MASK[: shape[0]], scan, tmp_path / "mask.nii")
        assert nib.load(tmp_path / "mask.nii").shape == sizes

    @pytest.mark.parametrize(
        ("stored", "dtype"), [(np.int16, np.float32), (np.int32, np.float64), (np.float64, np.float64)]
    )
    def test_rescaled_values(self, tmp_path: Path, stored: type, dtype: type) -> None:
        path = nifti(tmp_path / "scan.nii", VOLUME.astype(stored))
        raw = bytearray(path.read_bytes())
        raw[112:120] = struct.pack("<ff", 0.5, -1024)
        path.write_bytes(raw)
        scan = read(path)
        assert scan.array.dtype == dtype
        np.testing.assert_array_equal(scan.array, VOLUME * 0.5 - 1024)
        np.testing.assert_array_equal(scan.array, nib.load(path).get_fdata().T)
        write_mask(MASK, scan, tmp_path / "mask.nii")
        np.testing.assert_array_equal(nib.load(tmp_path / "mask.nii").get_fdata(), MASK.T)

    @pytest.mark.parametrize(("unit", "factor"), [("mm", 1), ("micron", 0.001), ("meter", 1000), ("unknown", 1)])
    def test_spacing_is_in_mm(self, tmp_path: Path, unit: str, factor: float) -> None:
        made = nib.Nifti1Image(VOLUME.T, placed(ZOOM))
        made.header.set_xyzt_units(unit)
        made.to_filename(tmp_path / "scan.nii")
        assert header(tmp_path / "scan.nii").spacing == pytest.approx((3 * factor, 0.75 * factor, 0.5 * factor))

    def test_a_spacing_of_zero_is_unknown_and_noted(self, tmp_path: Path) -> None:
        path = patched(nifti(tmp_path / "scan.nii"), 88, "<f", 0.0)
        scan = read(path)
        assert scan.spacing == pytest.approx((1.0, 0.75, 0.5))
        assert "spacing of 0" in scan.notes[0]
        assert "taken as 1 mm" in scan.notes[0]

    def test_a_spacing_that_contradicts_the_affine_is_noted(self, tmp_path: Path) -> None:
        assert read(nifti(tmp_path / "scan.nii")).notes == ()
        scan = read(patched(tmp_path / "scan.nii", 80, "<fff", 1, 1, 1))
        assert scan.spacing == (1.0, 1.0, 1.0)
        assert "spacing [1.0, 1.0, 1.0] differs from its affine's [0.5, 0.75, 3.0]" in scan.notes[0]

    def test_the_content_decides_about_compression(self, tmp_path: Path) -> None:
        plain, packed = nifti(tmp_path / "a.nii"), nifti(tmp_path / "b.nii.gz")
        (tmp_path / "c.nii.gz").write_bytes(plain.read_bytes())
        (tmp_path / "d.nii").write_bytes(packed.read_bytes())
        np.testing.assert_array_equal(read(tmp_path / "c.nii.gz").array, VOLUME)
        np.testing.assert_array_equal(read(tmp_path / "d.nii").array, VOLUME)

    def test_the_same_mask_gives_the_same_bytes(self, tmp_path: Path) -> None:
        scan = read(nifti(tmp_path / "scan.nii.gz"))
        write_mask(MASK, scan, tmp_path / "one.nii.gz")
        write_mask(MASK, scan, tmp_path / "two.nii.gz")
        assert (tmp_path / "one.nii.gz").read_bytes() == (tmp_path / "two.nii.gz").read_bytes()

    def test_bytes_before_the_voxels_are_skipped(self, tmp_path: Path) -> None:
        made = nib.Nifti1Image(VOLUME.T, placed(ZOOM))
        made.header.extensions.append(nib.nifti1.Nifti1Extension("comment", b"a note that takes some room"))
        made.to_filename(tmp_path / "scan.nii.gz")
        np.testing.assert_array_equal(read(tmp_path / "scan.nii.gz").array, VOLUME)


DIRECTIONS = {
    "plain": np.eye(3),
    "flipped": np.diag([-1.0, 1.0, -1.0]),
    "permuted": np.eye(3)[[2, 0, 1]],
    "oblique": turn(0.3, -0.7, 1.1),
}


class TestItk:
    @pytest.mark.parametrize("suffix", [".mhd", ".mha", ".nrrd", ".nhdr"])
    @pytest.mark.parametrize("compress", [False, True])
    @pytest.mark.parametrize("direction", DIRECTIONS.values(), ids=DIRECTIONS.keys())
    def test_a_mask_overlays_its_scan(self, tmp_path: Path, direction: np.ndarray, compress: bool, suffix: str) -> None:
        path = itk(tmp_path / f"scan{suffix}", VOLUME, direction, compress)
        made = sitk.ReadImage(str(path))
        scan = read(path)
        np.testing.assert_array_equal(scan.array, VOLUME)
        assert scan.array.dtype == np.int16
        assert scan.spacing == pytest.approx((3.0, 0.75, 0.5))
        np.testing.assert_allclose(scan.geometry.affine, ras(made), atol=1e-9)
        write_mask(MASK, scan, tmp_path / f"mask{suffix}")
        after = sitk.ReadImage(str(tmp_path / f"mask{suffix}"))
        np.testing.assert_array_equal(sitk.GetArrayFromImage(after), MASK)
        assert after.GetSpacing() == pytest.approx(made.GetSpacing())
        assert after.GetOrigin() == pytest.approx(made.GetOrigin())
        assert after.GetDirection() == pytest.approx(made.GetDirection())
        write_mask(MASK, scan, tmp_path / "mask.nii.gz")
        np.testing.assert_allclose(nib.load(tmp_path / "mask.nii.gz").affine, ras(made), atol=1e-4)
        np.testing.assert_array_equal(sitk.GetArrayFromImage(sitk.ReadImage(str(tmp_path / "mask.nii.gz"))), MASK)
        assert same_geometry(scan, read_labels(tmp_path / "mask.nii.gz")) == []

    @pytest.mark.parametrize("suffix", [".mha", ".mhd", ".nrrd"])
    @pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
    def test_types_are_kept(self, tmp_path: Path, suffix: str, dtype: str) -> None:
        array = (VOLUME % 100).astype(dtype)
        path = itk(tmp_path / f"scan{suffix}", array)
        assert read(path).array.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(read(path).array, array)

    @pytest.mark.parametrize("suffix", [".mha", ".nrrd"])
    @pytest.mark.parametrize("lead", [(), (1,)])
    def test_two_and_four_dimensions(self, tmp_path: Path, suffix: str, lead: tuple[int, ...]) -> None:
        array = VOLUME[None] if lead else VOLUME[0]
        scan = read(itk(tmp_path / f"scan{suffix}", array))
        slices = VOLUME if lead else VOLUME[:1]
        np.testing.assert_array_equal(scan.array, slices)
        write_mask(MASK[: len(slices)], scan, tmp_path / f"mask{suffix}")
        assert sitk.ReadImage(str(tmp_path / f"mask{suffix}")).GetSize() == array.shape[::-1]

    def test_formats_agree(self, tmp_path: Path) -> None:
        paths = [itk(tmp_path / name, direction=DIRECTIONS["oblique"]) for name in ("a.mha", "a.nrrd", "a.nii.gz")]
        first, *others = [read(path) for path in paths]
        for other in others:
            np.testing.assert_array_equal(other.array, first.array)
            assert same_geometry(first, other) == []

    def test_a_sheared_scan_gives_a_sheared_nifti_mask(self, tmp_path: Path) -> None:
        matrix = np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]])
        path = itk(tmp_path / "scan.mha", direction=matrix)
        write_mask(MASK, read(path), tmp_path / "mask.nii.gz")
        after = nib.load(tmp_path / "mask.nii.gz")
        np.testing.assert_allclose(after.affine, ras(sitk.ReadImage(str(path))), atol=1e-5)
        assert int(after.header["qform_code"]) == 0

    def test_metaimage_written_by_others(self, tmp_path: Path) -> None:
        """Big-endian data behind a foreign header, old names for the fields, and gzip where zlib is usual."""
        head = (
            "NDims = 3\r\nDimSize = 6 5 4\r\nElementType = MET_SHORT\r\nElementSize = 0.5 0.75 3\r\n"
            "Position = 1 2 3\r\nRotation = 0 1 0 -1 0 0 0 0 1\r\nElementByteOrderMSB = True\r\n"
        )
        content = VOLUME.astype(">i2").tobytes()
        (tmp_path / "foreign.bin").write_bytes(b"foreign header" + content)
        (tmp_path / "packed.gz").write_bytes(gzip.compress(content))
        for name, more in {
            "counted.mhd": "HeaderSize = 14\r\nElementDataFile = foreign.bin\r\n",
            "last.mhd": "HeaderSize = -1\r\nElementDataFile = foreign.bin\r\n",
            "packed.mhd": "CompressedData = True\r\nElementDataFile = packed.gz\r\n",
        }.items():
            (tmp_path / name).write_text(head + more, newline="")
            scan = read(tmp_path / name)
            np.testing.assert_array_equal(scan.array, VOLUME)
            assert scan.array.dtype.isnative
            assert scan.spacing == (3.0, 0.75, 0.5)
            # The first file axis runs along +y (posterior), the second along -x, that is to the right.
            np.testing.assert_allclose(scan.geometry.affine[:3], [[0, 0.75, 0, -1], [-0.5, 0, 0, -2], [0, 0, 3, 3]])

    def test_metaimage_without_spacing_is_noted(self, tmp_path: Path) -> None:
        path = edited(itk(tmp_path / "scan.mha"), b"ElementSpacing = 0.5 0.75 3\n", b"")
        assert read(path).spacing == (1.0, 1.0, 1.0)
        assert "no ElementSpacing" in read(path).notes[0]


class TestDicom:
    def test_a_series_is_read_in_order_of_position(self, tmp_path: Path) -> None:
        scan = read(series(tmp_path / "series"))
        np.testing.assert_array_equal(scan.array, VOLUME)
        assert scan.spacing == pytest.approx((3.0, 0.75, 0.5))
        assert header(tmp_path / "series").shape == VOLUME.shape
        reader = sitk.ImageSeriesReader()
        reader.SetFileNames(reader.GetGDCMSeriesFileNames(str(tmp_path / "series")))
        np.testing.assert_allclose(scan.geometry.affine, ras(reader.Execute()), atol=1e-5)

    @pytest.mark.parametrize("name", ["mask.nii.gz", "mask.nrrd", "mask.mha"])
    def test_a_mask_lies_in_the_same_place(self, tmp_path: Path, name: str) -> None:
        scan = read(series(tmp_path / "series"))
        write_mask(MASK, scan, tmp_path / name)
        mask = read_labels(tmp_path / name)
        np.testing.assert_array_equal(mask.array, MASK)
        np.testing.assert_allclose(mask.geometry.affine, scan.geometry.affine, atol=1e-4)
        matrix = turn(0.3, -0.2, 0.5)
        last = np.array([5.0, -7.0, 11.0]) + 9.0 * matrix[:, 2] + 4 * 0.75 * matrix[:, 1] + 5 * 0.5 * matrix[:, 0]
        np.testing.assert_allclose(mask.geometry.affine @ (5, 4, 3, 1), [-last[0], -last[1], last[2], 1], atol=1e-4)

    def test_a_mask_in_dicom_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"mask\.dcm.*name it \.nii\.gz"):
            write_mask(MASK, read(series(tmp_path / "series")), tmp_path / "mask.dcm")

    def test_rescale_slope_is_applied(self, tmp_path: Path) -> None:
        even = VOLUME // 2 * 2
        scan = read(series(tmp_path / "series", even, tags={"0028|1053": "2", "0028|1052": "-1024"}))
        np.testing.assert_array_equal(scan.array, even)

    def test_slices_may_have_slopes_of_their_own(self, tmp_path: Path) -> None:
        matrix = turn(0.3, -0.2, 0.5)
        for index, slope in enumerate(("1", "0.5", "2")):
            place = np.array([[0.0, 0, 0] + 3.0 * index * matrix[:, 2]])
            stored = {"0028|0100": "16", "0028|0101": "16", "0028|0102": "15", "0028|0103": "1"}
            tags = {"0028|1053": slope, "0028|1052": "0", "0008|0018": f"1.2.{index}"} | stored
            plane = np.arange(30.0).reshape(1, 5, 6) * float(slope)
            series(tmp_path / "series", plane, places=place, tags=tags, name=f"{index}.dcm")
        scan = read(tmp_path / "series")
        np.testing.assert_allclose(scan.array, np.arange(30).reshape(5, 6) * np.array([1, 0.5, 2])[:, None, None])

    def test_one_file_stands_for_its_series(self, tmp_path: Path) -> None:
        series(tmp_path / "both", VOLUME, uid="1.2.3")
        series(tmp_path / "both", VOLUME[:2, :3], uid="1.2.4", name="other{}.dcm")
        np.testing.assert_array_equal(read(tmp_path / "both" / "slice2.dcm").array, VOLUME)
        np.testing.assert_array_equal(read(tmp_path / "both" / "other1.dcm").array, VOLUME[:2, :3])
        with pytest.raises(BadInput, match=r"2 series \(1\.2\.[34], 1\.2\.[34]\); give one file"):
            read(tmp_path / "both")

    def test_a_single_slice(self, tmp_path: Path) -> None:
        scan = read(series(tmp_path / "series", VOLUME[:1]) / "slice1.dcm")
        np.testing.assert_array_equal(scan.array, VOLUME[:1])

    def test_files_without_a_suffix(self, tmp_path: Path) -> None:
        folder = series(tmp_path / "series", name="IM{}")
        (folder / "notes.txt").write_text("seen by a radiologist")
        assert is_scan(folder)
        assert is_scan(folder / "IM1")
        np.testing.assert_array_equal(read(folder).array, VOLUME)
        np.testing.assert_array_equal(read(folder / "IM1").array, VOLUME)

    def test_a_missing_slice(self, tmp_path: Path) -> None:
        (series(tmp_path / "series") / "slice3.dcm").unlink()
        with pytest.raises(
            BadInput, match=r"3 mm apart, but 6 mm between slice\d\.dcm and slice\d\.dcm; add the missing"
        ):
            header(tmp_path / "series")

    def test_uneven_slices_are_noted(self, tmp_path: Path) -> None:
        normal = turn(0.3, -0.2, 0.5)[:, 2]
        scan = read(series(tmp_path / "series", places=np.outer([0, 3.1, 6.2, 9.0], normal)))
        assert scan.spacing[0] == pytest.approx(3.0)
        assert "2.8 to 3.1 mm apart" in scan.notes[0]

    def test_several_phases_in_one_series(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="lie at the same position; if these are several phases"):
            read(series(tmp_path / "series", places=np.outer([0, 0, 3, 3], turn(0.3, -0.2, 0.5)[:, 2])))

    def test_a_damaged_slice_is_named(self, tmp_path: Path) -> None:
        folder = series(tmp_path / "series")
        last = folder / "slice4.dcm"
        last.write_bytes(last.read_bytes()[:-20])
        with pytest.raises(BadInput, match=r"slice4\.dcm: this slice cannot be read"):
            read(folder)
        with pytest.raises(BadInput, match=r"slice4\.dcm: this cannot be read as a DICOM image"):
            read(last)
        last.write_bytes(b"")
        with pytest.raises(BadInput, match=r"slice4\.dcm: the file is empty"):
            read(folder)

    def test_slices_of_two_sizes_or_orientations(self, tmp_path: Path) -> None:
        series(tmp_path / "sizes", VOLUME)
        far = np.array([[50.0, 0.0, 0.0]])
        series(tmp_path / "sizes", VOLUME[:1, :3], places=far, tags={"0008|0018": "1.9"}, name="scout.dcm")
        with pytest.raises(BadInput, match="keep one series of equal slices"):
            read(tmp_path / "sizes")
        series(tmp_path / "turned", VOLUME)
        tags = {"0008|0018": "1.9", "0020|0037": r"1\0\0\0\0\1"}
        series(tmp_path / "turned", VOLUME[:1], places=far, tags=tags, name="scout.dcm")
        with pytest.raises(BadInput, match="it is oriented differently"):
            read(tmp_path / "turned")

    def test_no_dicom_inside(self, tmp_path: Path) -> None:
        (tmp_path / "a.dcm").write_text("not DICOM, and long enough to be something")
        with pytest.raises(BadInput, match="no DICOM series can be read"):
            read(tmp_path)


class TestPictures:
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    @pytest.mark.parametrize("suffix", [".png", ".tif"])
    def test_one_picture_is_one_slice(self, tmp_path: Path, suffix: str, dtype: type) -> None:
        plane = (np.arange(30).reshape(5, 6) * (1 if dtype is np.uint8 else 2000)).astype(dtype)
        scan = read(png(tmp_path / f"scan{suffix}", plane))
        np.testing.assert_array_equal(scan.array, plane[None])
        assert scan.array.dtype == dtype
        assert scan.spacing == (1.0, 1.0, 1.0)
        assert scan.geometry.affine is None
        write_mask(MASK[:1], scan, tmp_path / f"mask{suffix}")
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / f"mask{suffix}")), MASK[0])

    @pytest.mark.parametrize("suffix", [".png", ".tiff"])
    def test_a_folder_is_a_volume_in_natural_order(self, tmp_path: Path, suffix: str) -> None:
        folder = tmp_path / "scan"
        for number in (1, 2, 10, 11):
            png(folder / f"slice{number}{suffix}", np.full((5, 6), number, dtype=np.uint8))
        (folder / "notes.txt").write_text("not a slice")
        (folder / f"._slice1{suffix}").write_bytes(b"left by another system")
        scan = read(folder)
        assert scan.array[:, 0, 0].tolist() == [1, 2, 10, 11]
        write_mask(MASK, scan, tmp_path / "mask")
        assert {file.name for file in (tmp_path / "mask").iterdir()} == {f"slice{n}{suffix}" for n in (1, 2, 10, 11)}
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "mask" / f"slice10{suffix}")), MASK[2])
        np.testing.assert_array_equal(read_labels(tmp_path / "mask").array, MASK)
        with pytest.raises(BadInput, match="the scan is a folder of pictures"):
            write_mask(MASK, scan, tmp_path / "mask.png")

    @pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_deflate"])
    def test_pages_of_a_tiff_are_slices(self, tmp_path: Path, compression: str) -> None:
        volume = (VOLUME + 500).astype(np.uint16)
        pages = [Image.fromarray(plane) for plane in volume]
        pages[0].save(tmp_path / "scan.tif", save_all=True, append_images=pages[1:], compression=compression)
        scan = read(tmp_path / "scan.tif")
        np.testing.assert_array_equal(scan.array, volume)
        write_mask(MASK, scan, tmp_path / "mask.tif")
        np.testing.assert_array_equal(read_labels(tmp_path / "mask.tif").array, MASK)
        with pytest.raises(BadInput, match=r"name it \.tif$"):
            write_mask(MASK, scan, tmp_path / "mask.png")

    def test_equal_channels_are_gray(self, tmp_path: Path) -> None:
        plane = np.arange(30, dtype=np.uint8).reshape(5, 6)
        np.testing.assert_array_equal(read(png(tmp_path / "a.png", np.dstack([plane] * 3))).array[0], plane)

    def test_a_palette_is_for_show_in_labels_only(self, tmp_path: Path) -> None:
        picture = Image.fromarray(np.array([[0, 1], [2, 1]], dtype=np.uint8), mode="L").convert("P")
        picture.putpalette([0, 0, 0, 90, 90, 90, 200, 200, 200])
        picture.save(tmp_path / "a.png")
        assert read_labels(tmp_path / "a.png").array.tolist() == [[[0, 1], [2, 1]]]
        assert read(tmp_path / "a.png").array.tolist() == [[[0, 90], [200, 90]]]

    def test_one_bit_is_zero_and_one(self, tmp_path: Path) -> None:
        labels = read_labels(png(tmp_path / "a.png", np.eye(3) > 0))
        np.testing.assert_array_equal(labels.array[0], np.eye(3))

    @pytest.mark.parametrize("suffix", [".png", ".tif"])
    def test_opaque_pictures_are_read(self, tmp_path: Path, suffix: str) -> None:
        plane = (np.arange(30).reshape(5, 6) * 8).astype(np.uint8)
        for mode in ("RGBA", "LA") if suffix == ".png" else ("RGBA",):
            Image.fromarray(plane).convert(mode).save(tmp_path / f"{mode}{suffix}")
            for found in (read(tmp_path / f"{mode}{suffix}"), read_labels(tmp_path / f"{mode}{suffix}")):
                np.testing.assert_array_equal(found.array, plane[None])

    def test_a_transparent_entry_of_a_palette(self, tmp_path: Path) -> None:
        """Of a label map, colours and transparency are for show; of a picture they are not."""
        indices = np.array([[0, 1], [2, 1]], dtype=np.uint8)
        picture = Image.fromarray(indices)
        picture.putpalette([value for value in (0, 80, 160) for _ in range(3)])
        picture.save(tmp_path / "a.png")
        np.testing.assert_array_equal(read(tmp_path / "a.png").array[0], indices * 80)
        picture.save(tmp_path / "b.png", transparency=0)
        np.testing.assert_array_equal(read_labels(tmp_path / "b.png").array[0], indices)
        with pytest.raises(BadInput, match="transparent in places, first in row 0, column 0"):
            read(tmp_path / "b.png")

    def test_colour_and_transparency_are_refused(self, tmp_path: Path) -> None:
        colour = np.zeros((2, 3, 3), dtype=np.uint8)
        colour[1, 2] = (9, 8, 7)
        with pytest.raises(BadInput, match=r"row 1, column 2 is \[9, 8, 7\]\); save it in shades of gray"):
            read(png(tmp_path / "a.png", colour))
        clear = np.full((2, 3, 4), 9, dtype=np.uint8)
        clear[..., 3] = 255
        clear[1, 2, 3] = 7
        with pytest.raises(
            BadInput, match=r"transparent in places, first in row 1, column 2; save it without an alpha"
        ):
            read(png(tmp_path / "b.png", clear))
        with pytest.raises(BadInput, match="mode is CMYK"):
            header(cmyk(tmp_path / "c.tif"))

    def test_slices_that_do_not_fit_together(self, tmp_path: Path) -> None:
        png(tmp_path / "sizes" / "1.png", np.eye(4, dtype=np.uint8))
        png(tmp_path / "sizes" / "2.png", np.eye(5, dtype=np.uint8))
        with pytest.raises(BadInput, match=r"2\.png: page 1 of the scan is 5 x 5 pixels, the first is 4 x 4"):
            header(tmp_path / "sizes")
        png(tmp_path / "depths" / "1.png", np.eye(4, dtype=np.uint8))
        png(tmp_path / "depths" / "2.png", np.eye(4, dtype=np.uint16))
        with pytest.raises(BadInput, match="slice 1 holds uint16 numbers, slice 0 uint8"):
            read(tmp_path / "depths")
        pages = [Image.fromarray(plane.astype(np.uint8)) for plane in MASK]
        (tmp_path / "pages").mkdir()
        pages[0].save(tmp_path / "pages" / "1.tif", save_all=True, append_images=pages[1:])
        with pytest.raises(BadInput, match="cannot hold a file of several pages"):
            header(tmp_path / "pages")


def cmyk(path: Path) -> Path:
    Image.new("CMYK", (4, 4)).save(path)
    return path


def patched(path: Path, offset: int, form: str, *values: float) -> Path:
    """Overwrite bytes of an uncompressed file."""
    content = bytearray(path.read_bytes())
    struct.pack_into(form, content, offset, *values)
    path.write_bytes(content)
    return path


def edited(path: Path, old: bytes, new: bytes) -> Path:
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))
    return path


def cut(path: Path, count: int) -> Path:
    path.write_bytes(path.read_bytes()[:-count])
    return path


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def without(path: Path, name: str) -> Path:
    (path.parent / name).unlink()
    return path


def short(path: Path, name: str, count: int) -> Path:
    cut(path.parent / name, count)
    return path


def noise() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 255, (40, 40)).astype(np.uint8)


def with_nan(array: np.ndarray) -> np.ndarray:
    array = array.astype(np.float32)
    array[1, 2, 3] = np.nan
    return array


PAGE = b"\n<!DOCTYPE html><html><title>Log in</title></html>"
DIMS, TYPE, STEP, OFFSET, SROW, CODE, MAGIC = 42, 70, 80, 108, 280, 254, 344

# Whatever is wrong here can be seen without reading voxels, so `header` says the same.
BAD_HEADERS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda d: d / "a.nii.gz", "no such file"),
    "missing, no suffix": (lambda d: d / "patient", "no such file or folder"),
    "missing mhd": (lambda d: d / "a.mhd", "no such file"),
    "empty": (lambda d: written(d / "a.nii.gz", b""), r"empty \(0 bytes\)"),
    "empty mha": (lambda d: written(d / "a.mha", b""), r"empty \(0 bytes\)"),
    "empty png": (lambda d: written(d / "a.png", b""), r"empty \(0 bytes\)"),
    "folder named as a scan": (lambda d: (d / "a.nii.gz").mkdir() or d / "a.nii.gz", "neither pictures nor DICOM"),
    "login page": (lambda d: written(d / "a.nii.gz", PAGE), "web page.*log in there and download"),
    "login page mha": (lambda d: written(d / "a.mha", PAGE), "web page"),
    "login page nrrd": (lambda d: written(d / "a.nrrd", PAGE), "web page"),
    "login page png": (lambda d: written(d / "a.png", PAGE), "web page"),
    "login page dcm": (lambda d: written(d / "a.dcm", PAGE), "web page"),
    "placeholder": (lambda d: written(d / "a.nii.gz", b"version https://git-lfs.github.com"), "git lfs pull"),
    "no NIfTI": (lambda d: written(d / "a.nii", bytes(400)), "not a NIfTI file"),
    "gzip of something else": (lambda d: written(d / "a.nii.gz", gzip.compress(b"x" * 99)), "not a NIfTI file"),
    "gzip head only": (lambda d: written(d / "a.nii.gz", gzip.compress(b"x" * 999)[:15]), "cut short or damaged"),
    "magic": (lambda d: patched(nifti(d / "a.nii"), MAGIC, "4s", b"abc\0"), r"magic is b'abc"),
    "pair": (lambda d: patched(nifti(d / "a.nii"), MAGIC, "4s", b"ni1\0"), r"separate \.img file"),
    "type": (lambda d: patched(nifti(d / "a.nii"), TYPE, "<h", 77), "header is damaged .*77"),
    "complex": (lambda d: nifti(d / "a.nii", VOLUME.astype(np.complex64)), "voxels are complex"),
    "colour": (lambda d: patched(nifti(d / "a.nii"), TYPE, "<hh", 128, 24), "voxels are colour"),
    "four dimensions": (
        lambda d: nifti(d / "a.nii", np.stack([VOLUME] * 2)),
        r"a 4-D file \(6 x 5 x 4 x 2\); split it",
    ),
    "one dimension": (lambda d: nifti(d / "a.nii", VOLUME[0, 0]), "1 dimensions"),
    "no voxels": (lambda d: patched(nifti(d / "a.nii"), DIMS, "<h", 0), "holds no voxels"),
    "terabytes": (
        lambda d: patched(nifti(d / "a.nii"), DIMS, "<hhh", *[32767] * 3),
        "promises 70,362,301,923,326 bytes",
    ),
    "cut": (lambda d: cut(nifti(d / "a.nii"), 1), "promises 240 bytes of voxels, but there are only 239"),
    "negative spacing": (lambda d: patched(nifti(d / "a.nii"), STEP, "<f", -1), "0.75 x 3 mm, and -1 cannot be right"),
    "NaN spacing": (lambda d: patched(nifti(d / "a.nii"), STEP, "<f", math.nan), "nan cannot be right"),
    "infinite spacing": (lambda d: patched(nifti(d / "a.nii"), STEP, "<f", math.inf), "inf cannot be right"),
    "NaN affine": (lambda d: patched(nifti(d / "a.nii"), SROW, "<f", math.nan), "affine.* holds NaN"),
    "offset": (lambda d: patched(nifti(d / "a.nii"), OFFSET, "<f", 100), "begin at byte 100"),
    "NaN offset": (lambda d: patched(nifti(d / "a.nii"), OFFSET, "<f", math.nan), "header is damaged"),
    "no MetaImage": (lambda d: written(d / "a.mha", b"hello\nworld"), "not a MetaImage header"),
    "no raw": (
        lambda d: without(itk(d / "a.mhd"), "a.raw"),
        r"a\.mhd: its data file 'a\.raw' is missing; put it beside",
    ),
    "no zraw": (lambda d: without(itk(d / "a.mhd", compress=True), "a.zraw"), "data file 'a.zraw' is missing"),
    "short raw": (lambda d: short(itk(d / "a.mhd"), "a.raw", 1), r"a\.raw: .* promises 240 .* only 239"),
    "short mha": (lambda d: cut(itk(d / "a.mha"), 1), "promises 240 .* only 239"),
    "mha dims": (lambda d: edited(itk(d / "a.mha"), b"= 6 5 4", b"= 6 5 99999999999"), "promises 5,999"),
    "mha packed dims": (
        lambda d: edited(itk(d / "a.mha", compress=True), b"= 6 5 4", b"= 6 500 4000"),
        "compressed bytes",
    ),
    "mha negative dims": (lambda d: edited(itk(d / "a.mha"), b"= 6 5 4", b"= 6 -5 4"), "6 x -5 x 4, which holds no"),
    "mha no data file": (lambda d: edited(itk(d / "a.mha"), b"DataFile =", b"DataFile -"), "not a MetaImage header"),
    "mha missing dims": (lambda d: edited(itk(d / "a.mha"), b"DimSize", b"DimSite"), "lacks DimSize"),
    "mha word for a number": (lambda d: edited(itk(d / "a.mha"), b"= 6 5 4", b"= 6 5 x"), "DimSize is '6 5 x'"),
    "mha two numbers": (lambda d: edited(itk(d / "a.mha"), b"= 6 5 4", b"= 6 5"), "3 numbers expected"),
    "mha axes": (lambda d: edited(itk(d / "a.mha"), b"NDims = 3", b"NDims = 99"), "NDims is 99"),
    "mha type": (lambda d: edited(itk(d / "a.mha"), b"MET_SHORT", b"MET_SHIRT"), "ElementType is 'MET_SHIRT'"),
    "mha text": (lambda d: edited(itk(d / "a.mha"), b"BinaryData = True", b"BinaryData = False"), "written as text"),
    "mha zero spacing": (lambda d: edited(itk(d / "a.mha"), b"0.5 0.75 3", b"0.5 0 3"), "and 0 cannot be right"),
    "mha negative spacing": (lambda d: edited(itk(d / "a.mha"), b"0.5 0.75 3", b"0.5 -1 3"), "and -1 cannot be right"),
    "mha NaN spacing": (lambda d: edited(itk(d / "a.mha"), b"0.5 0.75 3", b"0.5 nan 3"), "and nan cannot be right"),
    "mha NaN origin": (lambda d: edited(itk(d / "a.mha"), b"-31.5 12.25 7", b"-31.5 nan 7"), "origin or orient"),
    "mha flat": (lambda d: edited(itk(d / "a.mha"), b"1 0 0 0 1 0 0 0 1", b"1 0 0 1 0 0 0 0 1"), "two axes coincide"),
    "mha colour": (lambda d: rgb(d / "a.mha"), "colours or vectors of 3 channels"),
    "mha 4-D": (lambda d: itk(d / "a.mha", np.stack([VOLUME] * 2)), "a 4-D file"),
    "mhd list": (lambda d: edited(itk(d / "a.mhd"), b"= a.raw", b"= LIST"), "separate files"),
    "mhd names a folder": (lambda d: edited(itk(d / "a.mhd"), b"= a.raw", b"= ."), "'.' is missing"),
    "mhd with a zero byte": (lambda d: edited(itk(d / "a.mhd"), b"= a.raw", b"= a\0.raw"), "is missing"),
    "no NRRD": (lambda d: written(d / "a.nrrd", b"hello\nworld"), "not an NRRD file"),
    "nrrd dims": (lambda d: edited(itk(d / "a.nrrd"), b"sizes: 6 5 4", b"sizes: 6 5 999999999"), "promises 59,"),
    "nrrd zero dims": (
        lambda d: edited(itk(d / "a.nrrd"), b"sizes: 6 5 4", b"sizes: 6 5 0"),
        "6 x 5 x 0, which holds no",
    ),
    "nrrd zero spacing": (
        lambda d: edited(itk(d / "a.nrrd"), b"(0,0,3)", b"(0,0,0)"),
        "cannot be right|coincide|damaged",
    ),
    "nrrd colour": (lambda d: rgb(d / "a.nrrd"), "colours or vectors of 3 channels"),
    "nrrd 4-D": (lambda d: itk(d / "a.nrrd", np.stack([VOLUME] * 2)), "a 4-D file"),
    "nrrd complex": (lambda d: itk(d / "a.nrrd", VOLUME.astype(np.complex64)), "complex|vectors of 2 channels"),
    "nhdr no data": (lambda d: without(itk(d / "a.nhdr"), "a.raw"), "data file 'a.raw' is missing"),
    "nhdr short data": (lambda d: short(itk(d / "a.nhdr"), "a.raw", 1), "promises 240 .* only 239"),
    "nhdr list": (lambda d: edited(itk(d / "a.nhdr"), b": a.raw", b": LIST"), "separate files"),
    "no PNG": (lambda d: written(d / "a.png", b"hello, world"), "picture cannot be read"),
    "PNG promises": (lambda d: patched(png(d / "a.png", MASK[0]), 16, ">II", 9000, 9000), "cannot be read|promises"),
}

# These show only in the voxels.
BAD_VOXELS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "cut gzip": (lambda d: cut(nifti(d / "a.nii.gz"), 30), "cut short or damaged .*copy or download it again"),
    "gzip without its checksum": (lambda d: cut(nifti(d / "a.nii.gz"), 4), "cut short or damaged"),
    "gzip of too little": (
        lambda d: written(d / "a.nii.gz", gzip.compress(nifti(d / "b.nii").read_bytes()[:-9])),
        "promises 240 bytes of voxels, but there are only 231",
    ),
    "short zraw": (lambda d: short(itk(d / "a.mhd", compress=True), "a.zraw", 9), r"a\.zraw: .*cut short or damaged"),
    "zraw of too little": (
        lambda d: zraw(d, zlib.compress(VOLUME.tobytes()[:-2])),
        r"a\.zraw: the header promises 240 .* only 238",
    ),
    "zraw that is none": (lambda d: zraw(d, b"hello" * 20), r"a\.zraw: .*damaged"),
    "cut nrrd": (lambda d: cut(itk(d / "a.nrrd", compress=True), 30), "cut short or damaged"),
    "cut png": (lambda d: cut(png(d / "a.png", VOLUME[0].astype(np.uint8)), 30), "picture cannot be read"),
    "damaged tif": (lambda d: cut(png(d / "a.tif", noise(), compression="tiff_lzw"), 900), "picture cannot be read"),
    "NaN": (
        lambda d: nifti(d / "a.nii", with_nan(VOLUME)),
        r"1 voxels are NaN or infinite, the first at .*\(1, 2, 3\)",
    ),
    "NaN mha": (lambda d: itk(d / "a.mha", with_nan(VOLUME)), r"1 voxels are NaN"),
    "infinity": (lambda d: nifti(d / "a.nii", np.where(VOLUME > 0, np.inf, VOLUME)), "NaN or infinite"),
    "overflow": (
        lambda d: patched(nifti(d / "a.nii", VOLUME.astype(np.float32)), 112, "<ff", 3e38, 0),
        "NaN or infinite",
    ),
    "constant": (lambda d: nifti(d / "a.nii", np.full_like(VOLUME, 7)), "every voxel is 7: nothing to learn from"),
    "constant png": (lambda d: png(d / "a.png", np.full((4, 4), 7, np.uint8)), "every voxel is 7"),
}


def rgb(path: Path) -> Path:
    made = sitk.GetImageFromArray(np.stack([VOLUME] * 3, axis=-1), isVector=True)
    sitk.WriteImage(made, str(path))
    return path


def zraw(folder: Path, content: bytes) -> Path:
    path = itk(folder / "a.mhd", compress=True)
    (folder / "a.zraw").write_bytes(content)
    return path


class TestBadInput:
    @pytest.mark.parametrize("case", [*BAD_HEADERS, *BAD_VOXELS])
    def test_the_file_the_value_and_the_remedy_are_named(
        self, tmp_path: Path, case: str, capfd: pytest.CaptureFixture[str]
    ) -> None:
        make, message = (BAD_HEADERS | BAD_VOXELS)[case]
        path = make(tmp_path)
        capfd.readouterr()
        with pytest.raises(BadInput, match=message) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path.with_suffix('')}")
        assert ";" in str(caught.value)
        if case in BAD_HEADERS:
            with pytest.raises(BadInput, match=message):
                header(path)
            with pytest.raises(BadInput, match=message):
                read_labels(path)
        assert capfd.readouterr().err == ""

    @pytest.mark.parametrize("name", ["a.nii", "a.mha", "a.nrrd", "a.dcm", "a.png"])
    def test_a_missing_library_is_named(self, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        makers = {
            "a.nii": (nifti, "nibabel"),
            "a.mha": (itk, "SimpleITK"),
            "a.nrrd": (itk, "SimpleITK"),
            "a.dcm": (lambda path: series(tmp_path / "s", VOLUME[:1]) / "slice1.dcm", "SimpleITK"),
            "a.png": (lambda path: png(path, MASK[0]), "PIL.Image"),
        }
        make, module = makers[name]
        path = make(tmp_path / name)
        monkeypatch.setitem(sys.modules, module, None)
        if name in ("a.mha", "a.nrrd"):
            scan = read(path)  # needs nothing but NumPy; only writing needs ITK
            with pytest.raises(BadInput, match=r"SimpleITK.*pip install 'inbounds\[data\]'"):
                write_mask(MASK, scan, tmp_path / "mask.mha")
        else:
            with pytest.raises(BadInput, match=rf"{module}.*pip install 'inbounds\[data\]'"):
                header(path)

    @given(st.lists(st.tuples(st.integers(0, 351), st.integers(0, 255)), min_size=1, max_size=4), st.booleans())
    def test_flipped_bytes_in_a_nifti_header(
        self, tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[int, int]], packed: bool
    ) -> None:
        folder = tmp_path_factory.mktemp("fuzz")
        content = bytearray(nifti(folder / "a.nii").read_bytes())
        for where, value in flips:
            content[where] = value
        path = (
            written(folder / "b.nii.gz", gzip.compress(content, mtime=0))
            if packed
            else written(folder / "b.nii", content)
        )
        reads_or_refuses(path, folder / "mask.nii")

    @pytest.mark.parametrize("name", ["a.mhd", "a.mha", "a.nrrd"])
    @given(
        flips=st.lists(
            st.tuples(st.floats(0, 0.999), st.one_of(st.sampled_from(b"0123456789-.e \n="), st.integers(0, 255))),
            min_size=1,
            max_size=3,
        ),
        compress=st.booleans(),
    )
    def test_flipped_bytes_in_a_text_header(
        self, tmp_path_factory: pytest.TempPathFactory, name: str, flips: list[tuple[float, int]], compress: bool
    ) -> None:
        folder = tmp_path_factory.mktemp("fuzz")
        path = itk(folder / name, compress=compress)
        content = bytearray(path.read_bytes())
        end = content.find(b"\n\n") if name == "a.nrrd" else content.find(b"\n", content.find(b"ElementDataFile"))
        for where, value in flips:
            content[int(where * end)] = value
        path.write_bytes(content)
        reads_or_refuses(path, folder / f"mask{path.suffix}")


def reads_or_refuses(path: Path, target: Path) -> None:
    """What can be read holds a sane number of voxels, and can have a mask; all else is a `BadInput`."""
    try:
        scan = read(path)
    except BadInput:
        return
    assert scan.array.size <= 240 * 1032
    assert header(path).shape == scan.shape
    assert all(math.isfinite(step) and step > 0 for step in scan.spacing)
    write_mask(np.zeros(scan.shape, np.uint8), scan, target)
    assert same_geometry(scan, read_labels(target)) == []


class TestLabels:
    @pytest.mark.parametrize(
        ("values", "dtype"),
        [((0, 3), np.uint8), ((0, 255), np.uint8), ((-1, 3), np.int16), ((0, 256), np.int16), ((0, 70000), np.int32)],
    )
    @pytest.mark.parametrize("stored", [np.int32, np.float32, np.float64])
    def test_whole_numbers_of_any_type(
        self, tmp_path: Path, values: tuple[int, int], dtype: type, stored: type
    ) -> None:
        array = np.where(VOLUME > 0, *values).astype(stored)
        labels = read_labels(itk(tmp_path / "a.mha", array))
        assert labels.array.dtype == dtype
        np.testing.assert_array_equal(labels.array, array)

    def test_labels_may_be_constant(self, tmp_path: Path) -> None:
        assert not read_labels(nifti(tmp_path / "a.nii", np.zeros_like(VOLUME))).array.any()

    def test_a_scale_factor_may_miss_by_a_little(self, tmp_path: Path) -> None:
        path = patched(nifti(tmp_path / "a.nii", (VOLUME > 0) * np.uint8(255)), 112, "<ff", 0.00392156, 0)
        np.testing.assert_array_equal(read_labels(path).array, VOLUME > 0)

    @pytest.mark.parametrize("value", [0.5, math.nan, math.inf, 2.998])
    def test_anything_else_is_refused_at_its_place(self, tmp_path: Path, value: float) -> None:
        array = MASK.astype(np.float32)
        array[1, 2, 3] = value
        with pytest.raises(BadInput, match=rf"a label is {value:g} at \(slice, row, column\) \(1, 2, 3\)"):
            read_labels(nifti(tmp_path / "a.nii", array))

    def test_enormous_labels_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="labels run from 0 to 1000000"):
            read_labels(nifti(tmp_path / "a.nii", np.where(VOLUME > 0, 1e30, 0)))


class TestSameGeometry:
    def test_shapes_must_agree(self, tmp_path: Path) -> None:
        scan, other = read(nifti(tmp_path / "a.nii")), read(nifti(tmp_path / "b.nii", VOLUME[:3]))
        with pytest.raises(BadInput, match=r"b\.nii: its shape .* \(3, 5, 6\) differs from \(4, 5, 6\) of .*a\.nii"):
            same_geometry(scan, other)

    def test_spacing_and_place(self, tmp_path: Path) -> None:
        scan = read(nifti(tmp_path / "a.nii"))
        assert same_geometry(scan, header(nifti(tmp_path / "b.nii", MASK))) == []
        (place,) = same_geometry(scan, header(nifti(tmp_path / "c.nii", affine=placed(ZOOM, (-31.5, 12.25, 9)))))
        assert "corners lie up to 2 mm away" in place
        (flipped,) = same_geometry(scan, header(nifti(tmp_path / "d.nii", affine=AFFINES["flipped"])))
        assert "corners lie" in flipped
        spacing, _ = same_geometry(scan, header(nifti(tmp_path / "e.nii", affine=placed(ZOOM * 1.5))))
        assert "the spacing (4.5, 1.125, 0.75) mm differs from (3.0, 0.75, 0.5) mm" in spacing

    def test_pictures_have_no_place(self, tmp_path: Path) -> None:
        scan = header(nifti(tmp_path / "a.nii", VOLUME[:1], placed(np.eye(3))))
        assert same_geometry(scan, header(png(tmp_path / "a.png", MASK[0]))) == []


class TestWriting:
    def test_the_scan_itself_is_never_replaced(self, tmp_path: Path) -> None:
        path = nifti(tmp_path / "a.nii")
        with pytest.raises(BadInput, match="would replace the scan itself"):
            write_mask(MASK, read(path), path)
        folder = png(tmp_path / "p" / "1.png", VOLUME[0].astype(np.uint8)).parent
        with pytest.raises(BadInput, match="would replace the scan itself"):
            write_mask(MASK[:1], read(folder), folder)

    def test_a_full_folder_is_kept_and_an_empty_one_used(self, tmp_path: Path) -> None:
        scan = read(png(tmp_path / "p" / "1.png", VOLUME[0].astype(np.uint8)).parent)
        (tmp_path / "mask").mkdir()
        write_mask(MASK[:1], scan, tmp_path / "mask")
        with pytest.raises(BadInput, match="exists and is not empty"):
            write_mask(MASK[:1], scan, tmp_path / "mask")

    def test_folders_are_made_and_masks_replaced(self, tmp_path: Path) -> None:
        scan, target = read(nifti(tmp_path / "a.nii")), tmp_path / "new" / "deep" / "mask.nii.gz"
        write_mask(np.zeros_like(MASK), scan, target)
        write_mask(MASK, scan, target)
        np.testing.assert_array_equal(read_labels(target).array, MASK)
        assert list(target.parent.iterdir()) == [target]

    def test_a_header_will_do(self, tmp_path: Path) -> None:
        write_mask(MASK, header(nifti(tmp_path / "a.nii")), tmp_path / "mask.nii")
        np.testing.assert_array_equal(read_labels(tmp_path / "mask.nii").array, MASK)

    def test_the_format_must_fit(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"mask\.mha: .*name it \.nii\.gz or \.nii"):
            write_mask(MASK, read(nifti(tmp_path / "a.nii")), tmp_path / "mask.mha")
        with pytest.raises(BadInput, match=rf"^{tmp_path}/mask\.png: .*name it \.nii\.gz, "):
            write_mask(MASK, read(itk(tmp_path / "a.mha")), tmp_path / "mask.png")
        assert sorted(file.name for file in tmp_path.iterdir()) == ["a.mha", "a.nii"]

    def test_shape_must_fit(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"must be uint8 of shape \(4, 5, 6\), not uint8 of \(3, 5, 6\)"):
            write_mask(MASK[:3], read(nifti(tmp_path / "a.nii")), tmp_path / "mask.nii")

    @pytest.mark.parametrize("name", ["mask.nii.gz", "mask.nrrd", "mask.mha"])
    def test_a_full_disk_is_an_error_that_names_the_mask(self, tmp_path: Path, name: str) -> None:
        mask = np.random.default_rng(0).integers(0, 200, (20, 50, 50)).astype(np.uint8)
        scan = read(itk(tmp_path / "scan.mha", mask))
        with (
            full_disk(4096),
            pytest.raises(OSError, match=rf"^{tmp_path}/{name}: the mask could not be written .*make room"),
        ):
            write_mask(mask, scan, tmp_path / name)
        assert [file.name for file in tmp_path.iterdir()] == ["scan.mha"]

    @pytest.mark.parametrize("name", ["mask.mha", "mask.mhd"])
    def test_a_half_written_mask_never_bears_its_name(
        self, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full disk cuts what ITK writes, and ITK does not say so."""
        scan = read(itk(tmp_path / "scan.mha"))
        write_mask(MASK, scan, tmp_path / name)
        before = {file: file.read_bytes() for file in tmp_path.iterdir()}
        whole = ItkGeometry.write

        def half(self: ItkGeometry, mask: np.ndarray, path: Path) -> None:
            whole(self, mask, path)
            for file in path.parent.iterdir():
                file.write_bytes(file.read_bytes()[: -file.stat().st_size // 4])

        monkeypatch.setattr(ItkGeometry, "write", half)
        with pytest.raises(OSError, match="could not be written in full; make room"):
            write_mask(1 - MASK // 3, scan, tmp_path / name)
        assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


class TestRealData:
    @pytest.mark.parametrize(
        ("image", "labels", "shape", "dtype", "classes"),
        [
            (
                "acdc/patient001/patient001_frame01.nii.gz",
                "acdc/patient001/patient001_frame01_gt.nii.gz",
                None,
                np.uint8,
                [0, 1, 2, 3],
            ),
            ("promise12/Case00.mhd", "promise12/Case00_segmentation.mhd", (32, 128, 128), np.int16, [0, 1]),
            ("spine/Img_02.nii.gz", "spine/Img_02_Labels.nii.gz", (305, 305, 39), np.uint8, [0, 1]),
        ],
    )
    def test_a_case_of_each_set(
        self, tmp_path: Path, image: str, labels: str, shape: tuple[int, ...] | None, dtype: type, classes: list[int]
    ) -> None:
        if not (SHARED / image).exists():
            pytest.skip(f"needs {image} in the folder `shared/data` beside the repository")
        scan, truth = read(SHARED / image), read_labels(SHARED / labels)
        assert shape in (None, scan.shape)
        assert scan.array.dtype == dtype
        assert np.unique(truth.array).tolist() == classes
        assert same_geometry(scan, truth) == []
        target = tmp_path / Path(labels).name
        write_mask(truth.array, scan, target)
        assert same_geometry(scan, read_labels(target)) == []
        np.testing.assert_array_equal(read_labels(target).array, truth.array)
