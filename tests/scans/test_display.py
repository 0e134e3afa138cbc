"""What lies where on a screen, against what nibabel and SimpleITK make of the same orientation."""

from __future__ import annotations

import math
from itertools import permutations, product
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813

from inbounds.scans.display import STORED, Plane, planes_of
from inbounds.scans.format import Scan
from inbounds.scans.scan import read

SIDES = (3, 4, 5)
VOXELS = np.random.default_rng(0).permutation(math.prod(SIDES)).reshape(SIDES).astype(np.int16)
ALL = list(product(permutations(range(3)), product((1, -1), repeat=3)))
ENDINGS = [".nii", ".nii.gz", ".mha", ".nrrd"]


def affine_of(order: tuple[int, ...], signs: tuple[int, ...], tilt: float = 0.0) -> np.ndarray:
    """The file's axes (column, row, slice) run along these axes of the body, towards R, A, S or away."""
    affine = np.eye(4)
    affine[:3, :3] = 0
    for axis, (body, sign, step) in enumerate(zip(order, signs, (1.5, 2.0, 4.0), strict=True)):
        affine[body, axis] = sign * step
    turned = np.eye(4)
    turned[:2, :2] = [[math.cos(tilt), -math.sin(tilt)], [math.sin(tilt), math.cos(tilt)]]
    affine = turned @ affine
    affine[:3, 3] = (-20, 11, 7)
    return affine


def write(affine: np.ndarray, path: Path) -> Scan:
    if ".nii" in path.name:
        nib.Nifti1Image(VOXELS.T, affine).to_filename(path)
        return read(path)
    image = sitk.GetImageFromArray(VOXELS)
    steps = np.linalg.norm(affine[:3, :3], axis=0)
    to_left = np.diag([-1.0, -1.0, 1.0])
    image.SetSpacing(steps.tolist())
    image.SetDirection((to_left @ affine[:3, :3] / steps).ravel().tolist())
    image.SetOrigin((to_left @ affine[:3, 3]).tolist())
    sitk.WriteImage(image, str(path))
    return read(path)


def planes(scan: Scan) -> tuple[Plane, ...]:
    return planes_of(scan.shape, scan.spacing, scan.geometry.affine)


def shown(scan: Scan, name: str) -> list[np.ndarray]:
    plane = next(one for one in planes(scan) if one.name == name)
    return [plane.picture(scan.array, n) for n in range(plane.count)]


def same(mine: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    """The same pictures; through the scan they may be in either order."""
    return any(len(mine) == len(order) and all(map(np.array_equal, mine, order)) for order in (theirs, theirs[::-1]))


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_orientation_is_shown_as_radiologists_look(ending: str, tmp_path: Path) -> None:
    for order, signs in ALL:
        scan = write(affine_of(order, signs), tmp_path / f"scan{ending}")
        canonical = np.asarray(nib.as_closest_canonical(nib.Nifti1Image(VOXELS.T, scan.geometry.affine)).dataobj)
        right, anterior, superior = canonical.shape
        axial = [canonical[::-1, ::-1, k].T for k in range(superior)]
        coronal = [canonical[::-1, j, ::-1].T for j in range(anterior)]
        sagittal = [canonical[i, ::-1, ::-1].T for i in range(right)]
        assert same(shown(scan, "axial"), axial), (order, signs)
        assert same(shown(scan, "coronal"), coronal), (order, signs)
        assert same(shown(scan, "sagittal"), sagittal), (order, signs)


def test_letters_are_those_of_nibabel() -> None:
    for order, signs in ALL:
        affine = affine_of(order, signs)
        codes = nib.aff2axcodes(affine)[::-1]  # of slices, rows, columns
        for plane in planes_of(SIDES, (4.0, 2.0, 1.5), affine):
            left, right, top, bottom = plane.letters
            towards_right, towards_bottom = codes[plane.across], codes[plane.down]
            assert (left if plane.flip_across else right) == towards_right
            assert (top if plane.flip_down else bottom) == towards_bottom
            assert {left, right} in ({"R", "L"}, {"A", "P"})
            assert (top, bottom) in (("A", "P"), ("S", "I"))
            assert plane.name == {"S": "axial", "I": "axial", "A": "coronal", "P": "coronal"}.get(
                codes[plane.through], "sagittal"
            )


@pytest.mark.parametrize("tilt", [0.0, 0.5, -0.6])
def test_axial_pictures_are_those_of_simpleitk(tilt: float, tmp_path: Path) -> None:
    """A scan that lies obliquely counts as the nearest upright one."""
    for number, (order, signs) in enumerate(ALL):
        scan = write(affine_of(order, signs, tilt), tmp_path / f"scan{number}.mha")
        turned = sitk.GetArrayFromImage(sitk.DICOMOrient(sitk.ReadImage(str(scan.path)), "LPS"))
        assert same(shown(scan, "axial"), list(turned)), (order, signs)


def test_planes_are_in_the_order_of_the_axes_and_keep_the_numbers_of_slices() -> None:
    for order, signs in ALL:
        made = planes_of(SIDES, (4.0, 2.0, 1.5), affine_of(order, signs))
        assert [plane.through for plane in made] == [0, 1, 2]
        assert [plane.count for plane in made] == list(SIDES)
        for plane in made:
            assert set(plane.picture(VOXELS, 1).flat) == set(VOXELS.take(1, axis=plane.through).flat)


def test_dicom_is_shown_as_it_says_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / "series"
    folder.mkdir()
    for number, place in enumerate(np.linspace(0, 8, SIDES[0])):
        image = sitk.GetImageFromArray(VOXELS[number][None])
        image.SetSpacing((1.5, 2.0, 4.0))
        for tag, value in {
            "0008|0060": "MR",
            "0020|000e": "1.2.3.4",
            "0020|000d": "1.2.3",
            "0020|0032": f"0\\0\\{place:g}",
            "0020|0037": "1\\0\\0\\0\\1\\0",
            "0020|0013": str(number + 1),
            "0008|0018": f"1.2.3.4.{number + 1}",
        }.items():
            image.SetMetaData(tag, value)
        writer = sitk.ImageFileWriter()
        writer.KeepOriginalImageUIDOn()
        writer.SetFileName(str(folder / f"{number}.dcm"))
        writer.Execute(image)
    scan = read(folder)
    plane = planes(scan)[0]
    assert (plane.name, plane.letters) == ("axial", ("R", "L", "A", "P"))
    assert np.array_equal(plane.picture(scan.array, 1), VOXELS[1])


def test_pictures_are_shown_as_they_are_stored(tmp_path: Path) -> None:
    from PIL import Image

    file = tmp_path / "one.png"
    Image.fromarray(VOXELS[0].astype(np.uint8)).save(file)
    scan = read(file)
    made = planes(scan)
    assert tuple(plane.name for plane in made) == STORED
    assert all(plane.letters == (None,) * 4 for plane in made)
    assert np.array_equal(made[0].picture(scan.array, 0), VOXELS[0])


def test_nifti_without_orientation_is_shown_as_it_is_stored(tmp_path: Path) -> None:
    image = nib.Nifti1Image(VOXELS.T, None)
    image.header["sform_code"] = image.header["qform_code"] = 0
    image.to_filename(tmp_path / "scan.nii")
    assert tuple(plane.name for plane in planes(read(tmp_path / "scan.nii"))) == STORED
