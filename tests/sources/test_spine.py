"""The spine set as a user downloads it: 23 uncompressed patients, vertebrae numbered 1 to 7."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archives import done, nifti, noise, refused, snapshot, zipped
from inbounds.store.grid import GridWindow
from inbounds.store.store import Store

SHAPE = (3, 305, 39)  # few slices; the other two sides are the real ones
AFFINE = np.diag([2, 1.25, 1.25, 1])


def vertebrae() -> np.ndarray:
    mask = np.zeros(SHAPE, np.uint8)
    for number in range(1, 8):
        mask[1, 50 + 25 * number : 65 + 25 * number, 10:30] = number
    return mask


@pytest.fixture(scope="module")
def download(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("spine") / "22304"
    for number in range(1, 24):
        nifti(root / f"Img_{number:02d}.nii", noise(SHAPE, number), AFFINE)
        nifti(root / f"Img_{number:02d}_Labels.nii", vertebrae(), AFFINE)
    return root


@pytest.fixture(scope="module")
def store(download: Path) -> Store:
    done("prepare", "spine", download, download.parent / "store")
    return Store(download.parent / "store")


def test_the_last_five_of_23_validate(store: Store) -> None:
    assert [r.split for r in store.records] == ["train"] * 18 + ["validation"] * 5
    assert store.records[-1].name == "Img_23"
    assert store.records[0].spacing == pytest.approx((1.25, 1.25, 2))


def test_volumes_are_as_the_files_have_them(download: Path) -> None:
    path = download.parent / "volumes"
    outcome = done("prepare", "spine", download, path, "--dimensions", 3)
    assert "slices: 1.25 mm apart, as in all files" in outcome.err
    made = Store(path)
    assert made.dimensions == 3
    assert made.shape == (256, 64)  # pixels of 1.49 mm, as there may be no more of them along a side
    assert {record.slices for record in made.records} == {3}
    assert made.records[0].lost == 0


def test_slices_are_axial_and_vertebrae_one_class(store: Store) -> None:
    """Sixty rows less at either end, columns padded to the same 185, resized: each step done by hand."""
    square = np.zeros((3, 185, 185), np.uint8)
    square[:, :, 73:112] = vertebrae()[:, 60:245] > 0
    nearest = ((np.arange(256) + 0.5) * 185 / 256).astype(int)
    assert store.classes == ("background", "vertebra")
    np.testing.assert_array_equal(store.truth[:3], square[:, nearest[:, None], nearest])
    outside = vertebrae()[:, 245:].astype(bool).sum() + vertebrae()[:, :60].astype(bool).sum()
    assert store.records[0].lost == outside


def test_a_zip_gives_the_same_bytes(download: Path, store: Store, tmp_path: Path) -> None:
    done("prepare", "spine", zipped(download, tmp_path / "22304.zip"), tmp_path / "store")
    assert snapshot(tmp_path / "store") == snapshot(store.path)


def test_random_split(download: Path, tmp_path: Path) -> None:
    done("prepare", "spine", download, tmp_path / "store", "--split", "random", "--side", 16, "--seed", 3)
    held = [r.name for r in Store(tmp_path / "store").records if r.split == "validation"]
    assert len(held) == 6  # a quarter of 23
    assert held != [f"Img_{n}" for n in range(18, 24)]


def test_few_rows_are_not_cut() -> None:
    assert (GridWindow.axial((100, 39), (256, 256)).top, GridWindow.axial((100, 39), (256, 256)).height) == (0, 100)
    assert (GridWindow.axial((305, 39), (256, 256)).top, GridWindow.axial((305, 39), (256, 256)).left) == (60, -73)


def test_a_narrow_grid_leaves_out_padding_alone(download: Path, store: Store, tmp_path: Path) -> None:
    done("prepare", "spine", download, tmp_path / "narrow", "--columns", 96)
    narrow = Store(tmp_path / "narrow")
    assert narrow.shape == (256, 96)
    assert narrow.records[0].lost == store.records[0].lost
    assert narrow.truth[1].sum() == pytest.approx(store.truth[1].sum(), rel=0.02)  # pixels measure the same
    assert narrow.records[0].fit.scale == pytest.approx(store.records[0].fit.scale, rel=0.01)


def test_masks_may_be_packed_otherwise_and_orphans_are_refused(tmp_path: Path) -> None:
    nifti(tmp_path / "spine" / "Img_01.nii", noise(SHAPE))
    nifti(tmp_path / "spine" / "Img_01_Labels.nii.gz", vertebrae())
    done("prepare", "spine", tmp_path / "spine", tmp_path / "store", "--side", 16)
    assert Store(tmp_path / "store").records[0].truth
    nifti(tmp_path / "spine" / "Img_03.nii", noise(SHAPE))
    said = done("prepare", "spine", tmp_path / "spine", tmp_path / "two", "--side", 16).err
    assert "Note: 1 scan (Img_03) has no mask, where others have one" in said
    nifti(tmp_path / "spine" / "Img_02_Labels.nii", vertebrae())
    saying = ["Img_02_Labels.nii: a mask without its scan", "download"]
    refused("prepare", "spine", tmp_path / "spine", tmp_path / "other", saying=saying, folder=tmp_path)


def test_twice_and_nothing(tmp_path: Path) -> None:
    for name in ("a/Img_01.nii", "b/Img_01.nii.gz"):
        nifti(tmp_path / "spine" / name, noise(SHAPE))
    saying = ["b/Img_01.nii.gz", "a/Img_01.nii", "same name"]
    refused("prepare", "spine", tmp_path / "spine", tmp_path / "store", saying=saying, folder=tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "readme.txt").write_text("nothing")
    saying = ["no file named like Img_01.nii"]
    refused("prepare", "spine", tmp_path / "other", tmp_path / "store", saying=saying, folder=tmp_path)
