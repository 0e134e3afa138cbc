"""A user's own folder: what is recognised, what survives the way through a store, and what is refused."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from archives import command, done, flat_folder, heart, nifti, noise, refused
from inbounds.batches.samples import load
from inbounds.scans.scan import read, write_mask
from inbounds.sources.folder import probable_patient, recognise, sources
from inbounds.store.grid import GridWindow
from inbounds.store.prepare import Plan, prepare
from inbounds.store.store import Store

SHAPE = (4, 40, 36)


def into(folder: Path, *words: object) -> Store:
    done("prepare", "folder", folder / "data", folder / "store", "--side", 48, *words)
    return Store(folder / "store")


class TestLayouts:
    def test_flat(self, tmp_path: Path) -> None:
        flat_folder(tmp_path / "data")
        (tmp_path / "data" / "labels" / "d.nii.gz").unlink()
        store = into(tmp_path, "--classes", "background, RV, MYO, LV", "--validation", 0.5)
        assert store.classes == ("background", "RV", "MYO", "LV")
        assert [(r.name, r.truth) for r in store.records] == [("a", True), ("b", True), ("c", True), ("d", False)]
        assert sorted(r.split for r in store.records) == ["train", "train", "validation", "validation"]
        np.testing.assert_array_equal(store.records[0].fit.back(store.truth[:4]), heart())
        assert (store.truth[12] == 255).all()

    def test_scans_may_be_left_out_by_name(self, tmp_path: Path) -> None:
        flat_folder(tmp_path / "data")
        (tmp_path / "data" / "images" / "b.nii.gz").write_bytes(b"")
        assert [r.name for r in into(tmp_path, "--without", "b", "--without", "d").records] == ["a", "c"]
        refused("prepare", "folder", tmp_path / "data", tmp_path / "other", "--without", "x", saying=["no scan 'x'"])

    def test_grey_values_are_classes(self, tmp_path: Path) -> None:
        """Masks of pictures, as painting programs leave them: any value for any class."""
        for number, name in enumerate("abc"):
            for folder, array in (("images", noise((40, 36), number).astype(np.uint8)), ("masks", heart()[0])):
                (tmp_path / "data" / folder).mkdir(parents=True, exist_ok=True)
                painted = np.array([4, 29, 76, 76], np.uint8)[array] if folder == "masks" else array
                suffix = "_mask" if folder == "masks" else ""
                Image.fromarray(painted).save(tmp_path / "data" / folder / f"{name}{suffix}.png")
        words = ["--values", "29=disc, 76=vertebra", "--background-value", 4]
        store = into(tmp_path, *words)
        assert store.classes == ("background", "disc", "vertebra")
        np.testing.assert_array_equal(store.records[0].fit.back(store.truth[:1])[0], np.minimum(heart()[0], 2))
        for folder in ("images", "masks"):
            for file in sorted((tmp_path / "data" / folder).iterdir()):
                target = tmp_path / "more" / folder / f"x{file.name}"
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, target)
        done("prepare", "add", tmp_path / "more", tmp_path / "store")
        assert Store(tmp_path / "store").truth.shape[0] == 6

    def test_labels_and_masks_beside_each_other(self, tmp_path: Path) -> None:
        flat_folder(tmp_path / "data", "ab")
        shutil.copytree(tmp_path / "data" / "labels", tmp_path / "data" / "masks")
        refused("prepare", "folder", tmp_path / "data", tmp_path / "store", saying=["there are labels/ and masks/"])

    def test_everything_that_is_wrong_is_said_at_once(self, tmp_path: Path) -> None:
        flat_folder(tmp_path / "data")
        images = tmp_path / "data" / "images"
        (images / "a.nii.gz").write_bytes(b"")
        nifti(images / "c.nii.gz", noise((3, 40, 36)))
        saying = ["(1) ", "a.nii.gz: the file is empty", "(2) ", "c.nii.gz: its shape"]
        refused("prepare", "folder", tmp_path / "data", tmp_path / "store", saying=saying, folder=tmp_path)
        flat_folder(tmp_path / "other")
        for name in "bd":
            nifti(tmp_path / "other" / "labels" / f"{name}.nii.gz", 9 * heart())
        words = ["--classes", "background,RV,MYO,LV", "--side", 48]
        saying = ["(1) ", "b.nii.gz: label value 9", "(2) ", "d.nii.gz: label value 9"]
        refused("prepare", "folder", tmp_path / "other", tmp_path / "store", *words, saying=saying, folder=tmp_path)

    def test_classes_nobody_named(self, tmp_path: Path) -> None:
        flat_folder(tmp_path / "data")
        assert into(tmp_path).classes == ("background", "class1", "class2", "class3")

    def test_nnunet_with_two_channels_and_an_ignore_label(self, tmp_path: Path) -> None:
        root = tmp_path / "data"
        weak = np.where(np.arange(40)[:, None] % 4 == 0, heart(), 9)
        for name, labels in (("heart_1", heart()), ("heart_2", weak)):
            for channel in (0, 1):
                nifti(root / "imagesTr" / f"{name}_{channel:04d}.nii.gz", noise(SHAPE, channel) * (1 + channel))
            nifti(root / "labelsTr" / f"{name}.nii.gz", np.where(labels == 3, 7, labels).astype(np.uint8))
        nifti(root / "imagesTs" / "heart_3_0000.nii.gz", noise(SHAPE))  # not for training, hence not read
        labels = {"background": 0, "RV": 1, "MYO": 2, "LV": 7, "ignore": 9}
        (root / "dataset.json").write_text(json.dumps({"channel_names": {"0": "T1", "1": "T2"}, "labels": labels}))
        store = into(tmp_path, "--validation", 0)
        assert store.source["from"] == "nnU-Net"
        assert store.images.shape == (8, 2, 48, 48)
        assert store.classes == ("background", "RV", "MYO", "LV")
        assert [(r.name, r.truth) for r in store.records] == [("heart_1", True), ("heart_2", False)]
        np.testing.assert_array_equal(store.records[0].fit.back(store.truth[:4]), heart())
        given = store.records[1].fit.back(store.label("given")[4:], outside=255)
        np.testing.assert_array_equal(given, np.where(weak == 9, 255, weak))

    def test_decathlon(self, tmp_path: Path) -> None:
        root = tmp_path / "data"
        nifti(root / "imagesTr" / "heart_1.nii.gz", noise(SHAPE))
        nifti(root / "labelsTr" / "heart_1.nii.gz", (heart() == 3).astype(np.uint8))
        (root / "imagesTr" / "._heart_1.nii.gz").write_bytes(b"Mac OS X")
        (root / "dataset.json").write_text(json.dumps({"labels": {"0": "background", "1": "left atrium"}}))
        store = into(tmp_path)
        assert store.source["from"] == "Decathlon"
        assert store.classes == ("background", "left atrium")
        assert store.truth[:4].sum() == (heart() == 3).sum()

    def test_plain_scans_without_labels(self, tmp_path: Path) -> None:
        nifti(tmp_path / "data" / "a.nii", noise(SHAPE))
        sitk.WriteImage(sitk.GetImageFromArray(noise(SHAPE)), str(tmp_path / "data" / "b.mha"))
        sitk.WriteImage(sitk.GetImageFromArray(noise(SHAPE)), str(tmp_path / "data" / "c.nrrd"))
        (tmp_path / "data" / "notes.txt").write_text("not a scan")
        store = into(tmp_path, "--classes", "background,LV")
        assert [r.name for r in store.records] == ["a", "b", "c"]
        np.testing.assert_array_equal(store.images[:4], store.images[4:8])
        np.testing.assert_array_equal(store.images[:4], store.images[8:])
        assert not store.has_truth
        assert store.annotations == []

    def test_dicom_series(self, tmp_path: Path) -> None:
        for patient in ("p1", "p2"):
            for index, plane in enumerate(noise((3, 20, 24))):
                image = sitk.GetImageFromArray(plane)
                image.SetSpacing((0.5, 0.75))
                tags = {
                    "0008|0060": "MR",
                    "0020|000e": f"1.2.3.{patient[1]}",
                    "0020|0032": f"0\\0\\{3 * index}",
                    "0020|0037": "1\\0\\0\\0\\1\\0",
                }
                for tag, value in tags.items():
                    image.SetMetaData(tag, value)
                file = tmp_path / "data" / "images" / patient / f"{9 - index}.dcm"
                file.parent.mkdir(parents=True, exist_ok=True)
                writer = sitk.ImageFileWriter()
                writer.KeepOriginalImageUIDOn()
                writer.SetFileName(str(file))
                writer.Execute(image)
            nifti(tmp_path / "data" / "labels" / f"{patient}.nii.gz", np.ones((3, 20, 24), np.uint8))
        store = into(tmp_path)
        assert [(r.name, r.slices) for r in store.records] == [("p1", 3), ("p2", 3)]
        assert store.records[0].spacing == pytest.approx((3, 0.75, 0.5))
        assert store.truth[:].sum() == 2 * 3 * 20 * 24

    def test_pictures(self, tmp_path: Path) -> None:
        for index, (plane, mask) in enumerate(zip(noise(SHAPE) // 16, heart(), strict=True)):
            for folder, array in (("images", plane), ("labels", mask)):
                file = tmp_path / "data" / folder / "case" / f"slice{index}.png"
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(array.astype(np.uint8)).save(file)
        store = into(tmp_path)
        assert [(r.name, r.slices) for r in store.records] == [("case", 4)]
        np.testing.assert_array_equal(store.records[0].fit.back(store.truth[:]), heart())

    def test_patients_by_pattern(self, tmp_path: Path) -> None:
        flat_folder(tmp_path / "data", ["p1_ED", "p1_ES", "p2_ED", "p2_ES"])
        store = into(tmp_path, "--patient", "^(p[0-9])_", "--validation", 0.5)
        assert [r.patient for r in store.records] == ["p1", "p1", "p2", "p2"]
        assert {r.split for r in store.records[:2]} != {r.split for r in store.records[2:]}
        assert len({r.split for r in store.records[:2]}) == 1


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["patient001_ED", "patient001_ES", "patient002_ED"], "^(patient[0-9]+)"),
        (["sub-01_ses-1", "sub-01_ses-2", "sub-02_ses-1", "sub-02_ses-2"], r"^(sub\-[0-9]+)"),
        ([f"trial7_{n}_{phase}" for n in range(4) for phase in "ab"], "^(trial[0-9]+_[0-9]+)"),
        ([f"{n}.{slice_}" for n in range(5) for slice_ in range(30)], "^([0-9]+)"),
        ([f"scan_{year}_{n:03d}" for year in (2023, 2024) for n in range(20)], ""),
        (["patient1", "patient2", "patient10"], ""),
        (["1a", "1b", "2a"], ""),
        (["a_1", "b_1", "b_2"], ""),
        (["one", "two"], ""),
        ([], ""),
    ],
)
def test_names_that_look_like_several_scans_of_a_patient(names: list[str], pattern: str) -> None:
    assert probable_patient(names) == pattern


def test_the_grid_is_chosen_and_said(tmp_path: Path) -> None:
    """Pixels of 1 and 1.5 mm on 44 x 40 and 60 x 36: 90 mm and 54 mm, 72 x 43 pixels of the median, 1.25 mm."""
    nifti(tmp_path / "data" / "a.nii.gz", noise((2, 44, 40)), np.diag([1, 1, 5, 1]))
    nifti(tmp_path / "data" / "b.nii.gz", noise((2, 60, 36)), np.diag([1.5, 1.5, 5, 1]))
    words = ("prepare", "folder", tmp_path / "data", tmp_path / "store", "--classes", "background,LV")
    said = "grid: 80x48 pixels of 1.25 mm, the median of the files, cover every scan; --fit, --side and --pixel choose"
    assert said in done(*words).err
    store = Store(tmp_path / "store")
    assert (store.shape, store.source) == ((80, 48), {"from": "scans", "fit": "pad", "pixel": 1.25})
    assert not any(record.fit.crops for record in store.records)
    assert "grid:" not in done(*words[:3], tmp_path / "other", *words[4:], "--side", 48).err
    assert Store(tmp_path / "other").source == {"from": "scans", "fit": "pad"}


def test_pictures_are_zoomed_where_they_differ(tmp_path: Path) -> None:
    for name, shape in (("a", (300, 200)), ("b", (100, 90))):
        (tmp_path / "data").mkdir(exist_ok=True)
        Image.fromarray((noise(shape) // 16).astype(np.uint8)).save(tmp_path / "data" / f"{name}.png")
    words = ("prepare", "folder", tmp_path / "data", tmp_path / "store", "--classes", "background,LV")
    said = done(*words).err
    assert "grid: 256x240 pixels cover every scan, each zoomed to 256 along its longer side (100 to 300)" in said
    assert "2 scans (a, b) have a spacing of exactly 1 mm, as if it was lost" in said
    assert Store(tmp_path / "store").source == {"from": "scans", "fit": "zoom"}
    said = done(*words[:3], tmp_path / "other", *words[4:], "--spacing", "3,0.5,0.5").err
    assert "grid: 256x176 pixels of 0.586 mm cover every scan; of 0.5 mm, the median, more than 256 would be" in said
    assert Store(tmp_path / "other").records[1].spacing == (3, 0.5, 0.5)
    assert "exactly 1 mm" not in said


class TestWeakLabels:
    @pytest.mark.parametrize(("value", "dtype"), [(4, np.uint8), (0, np.uint8), (-1, np.int16), (70_000, np.int32)])
    def test_any_value_may_mean_unlabelled(self, tmp_path: Path, value: int, dtype: type) -> None:
        weak = heart().astype(np.int64)
        weak[:, ::2] = value
        flat_folder(tmp_path / "data", labels=weak.astype(dtype))
        store = into(tmp_path, "--unlabelled", value, "--validation", 0.25)
        given = store.records[0].fit.back(store.label("given")[:4], outside=255)
        np.testing.assert_array_equal(given, np.where(weak == value, 255, weak))
        assert store.classes == ("background", "class1", "class2", "class3")

    def test_a_store_without_truth_can_be_trained_on(self, tmp_path: Path) -> None:
        for seed, name in enumerate("abcd"):
            nifti(tmp_path / "data" / f"{name}.nii.gz", noise(SHAPE, seed))
        store = into(tmp_path, "--classes", "background,LV")
        clicks = tmp_path / "clicks.csv"
        clicks.write_text("case,slice,row,column,class\na,1,20,18,LV\nb,2,5,6,background\nc,0,1,1,LV\nd,0,1,1,LV\n")
        done("annotate", store.path, "--points", clicks, "--name", "clicks")
        samples = load(store, "clicks", facts="clicks")
        assert len(samples) == 3 * 4
        assert int((samples.labels != 255).sum()) == 3
        saying = ["weak labels are simulated from the truth", "--points"]
        refused("annotate", store.path, "--strategy", "disc", "--name", "x", saying=saying, folder=tmp_path)


def turned(flips: tuple[int, int, int]) -> np.ndarray:
    a, b = 0.4, -0.3
    about_z = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    about_x = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    affine = np.eye(4)
    affine[:3, :3] = about_z @ about_x @ np.diag([0.7, 0.9, 5.0]) @ np.diag(flips)
    affine[:3, 3] = (-30, 12, 7)
    return affine


@pytest.mark.parametrize("fit", ["pad", "resize"])
@pytest.mark.parametrize("flips", [(1, 1, 1), (-1, 1, 1), (1, -1, -1)])
def test_a_mask_comes_back_exactly_over_its_scan(tmp_path: Path, flips: tuple[int, int, int], fit: str) -> None:
    affine = turned(flips)
    mask = np.random.default_rng(0).integers(0, 4, SHAPE).astype(np.uint8)
    scan = nifti(tmp_path / "data" / "images" / "a.nii.gz", noise(SHAPE), affine)
    drawn = nifti(tmp_path / "data" / "labels" / "a.nii.gz", mask, affine)
    store = into(tmp_path, "--fit", fit)
    record = store.records[0]
    assert record.spacing == pytest.approx((5.0, 0.9, 0.7))
    write_mask(record.fit.back(store.truth[:]), read(scan), tmp_path / "back.nii.gz")
    before, after = nib.load(drawn), nib.load(tmp_path / "back.nii.gz")
    np.testing.assert_array_equal(np.asarray(after.dataobj), np.asarray(before.dataobj))
    np.testing.assert_array_equal(after.affine, nib.load(scan).affine)
    assert after.header.get_zooms() == pytest.approx((0.7, 0.9, 5.0))


def test_resampled_to_one_size_of_pixels(tmp_path: Path) -> None:
    nifti(tmp_path / "data" / "images" / "a.nii.gz", noise(SHAPE), turned((1, 1, 1)))
    store = into(tmp_path, "--pixel", "0.9")
    assert store.records[0].fit.scale == pytest.approx((1.0, 0.7 / 0.9), rel=0.02)
    saying = ["--pixel 0.9 says how slices are resampled, and so does --fit zoom: give --fit pad"]
    words = ("prepare", "folder", tmp_path / "data", tmp_path / "other", "--pixel", "0.9", "--fit", "zoom")
    refused(*words, saying=saying, folder=tmp_path)


def whole(root: Path) -> Path:
    return root / "images" / "a.nii.gz"


def image(root: Path, array: np.ndarray) -> None:
    nifti(root / "images" / "a.nii.gz", array)


def mask(root: Path, array: np.ndarray) -> None:
    nifti(root / "labels" / "a.nii.gz", array)


def truncate(root: Path) -> None:
    whole(root).write_bytes(whole(root).read_bytes()[:-2000])


def empty(root: Path) -> None:
    shutil.rmtree(root)
    root.mkdir()


def odd_name(root: Path) -> None:
    """A name in the encoding of an old system."""
    file = root / "images" / os.fsdecode(b"scan\xff.nii.gz")
    try:
        file.write_bytes((root / "images" / "a.nii.gz").read_bytes())
    except OSError:
        pytest.skip("this file system has no such names")


BAD: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "truncated gzip": (truncate, ["images/a.nii.gz", "download it again"]),
    "login page": (
        lambda root: whole(root).write_text("<!DOCTYPE html><html><title>Log in</title>"),
        ["images/a.nii.gz", "web page", "log in"],
    ),
    "packed login page": (
        lambda root: whole(root).write_bytes(gzip.compress(b"<html>Log in</html>" * 50)),
        ["images/a.nii.gz", "not a NIfTI file", "convert"],
    ),
    "no bytes": (lambda root: whole(root).write_bytes(b""), ["images/a.nii.gz", "empty", "download it again"]),
    "another shape": (
        lambda root: mask(root, heart((4, 40, 35))),
        ["labels/a.nii.gz", "(4, 40, 35) differs from (4, 40, 36)", "export it again"],
    ),
    "mask without scan": (lambda root: whole(root).unlink(), ["labels/a.nii.gz", "labels without their scan", "agree"]),
    "unknown value": (
        lambda root: mask(root, np.full(SHAPE, 4, np.uint8)),
        ["labels/a.nii.gz", "label value 4 at (slice, row, column) (0, 0, 0)", "Name the classes"],
    ),
    "probabilities": (
        lambda root: mask(root, np.full(SHAPE, 0.5, np.float32)),
        ["labels/a.nii.gz", "0.5", "not a whole number", "give a label map"],
    ),
    "NaN": (
        lambda root: image(root, np.where(np.arange(36) == 3, np.nan, noise(SHAPE)).astype(np.float32)),
        ["images/a.nii.gz", "160 voxels are NaN", "(0, 0, 3)", "replace them"],
    ),
    "constant": (
        lambda root: image(root, np.full(SHAPE, 7, np.int16)),
        ["images/a.nii.gz", "every voxel is 7", "check"],
    ),
    "no brightness": (
        lambda root: image(root, noise(SHAPE).astype(np.float64) * 1e300),
        ["images/a.nii.gz", "no brightness", "rescale"],
    ),
    "4-D": (lambda root: image(root, noise((3, *SHAPE))), ["images/a.nii.gz", "4-D", "split it into its frames"]),
    "same name twice": (
        lambda root: nifti(root / "images" / "a.nii", noise(SHAPE)),
        ["images/a.nii", "same name", "Remove or rename"],
    ),
    "name that is no text": (
        odd_name,
        ["images: the name 'scan\\udcff.nii.gz' is not text in UTF-8", "rename the file"],
    ),
    "empty folder": (empty, ["data: no scans found", "known are .nii.gz"]),
    "no scans": (lambda root: [file.unlink() for file in root.rglob("*.gz")], ["data: no scans found"]),
    "missing folder": (shutil.rmtree, ["data: there is no such folder", "check the name"]),
}


@pytest.mark.parametrize(("harm", "saying"), BAD.values(), ids=BAD)
def test_bad_files_are_refused(tmp_path: Path, harm: Callable[[Path], object], saying: list[str]) -> None:
    flat_folder(tmp_path / "data", "ab")
    harm(tmp_path / "data")
    words = ("prepare", "folder", tmp_path / "data", tmp_path / "store", "--side", 48)
    refused(*words, "--classes", "background,RV,MYO,LV", saying=saying, folder=tmp_path)


@pytest.mark.parametrize(
    ("words", "saying"),
    [
        (["--patient", "("], ["'('", "no regular expression", "for instance"]),
        (["--patient", "^p[0-9]"], ["a: no patient found", "'^p[0-9]'"]),
        (["--classes", "background,LV,LV,RV"], ["data", "LV, LV", "each differently"]),
        (["--classes", "heart"], ["data", "name the background first"]),
        (["--classes", "background,LV\r=1,RV,MYO"], ["the class 'LV\\r=1'", "rename it"]),
        (["--classes", "background,,LV,RV"], ["data", "name the background first"]),
        (["--validation", "0.5", "--test", "0.5"], ["2 patients cannot be split into 1 and 1"]),
        (["--window", "240,-160"], ["--window 240,-160: give the brightness of black and a higher one"]),
        (["--values", "29"], ["--values 29: '29' is no value and class, such as 29=disc"]),
        (["--values", "1=a,1=b"], ["--values 1=a,1=b: 1 is 'a' already"]),
        (["--values", "1=a", "--classes", "b,a"], ["leave --classes out"]),
        (["--values", "1=a", "--unlabelled", "1"], ["the value 1 means unlabelled, and 'a' too"]),
        (["--background-value", "4"], ["goes with --values"]),
        (["--window", "240"], ["--window 240"]),
        (["--window", "0,wide"], ["--window 0,wide"]),
        (["--spacing", "1.4"], ["--spacing 1.4: give mm between slices, rows and columns, such as 8,1.25,1.25"]),
        (["--spacing", "8,0,1.4"], ["--spacing 8,0,1.4"]),
        (["--spacing", "8,inf,1.4"], ["--spacing 8,inf,1.4"]),
        (["--split", "nowhere.csv"], ["nowhere.csv: cannot be read", "check the name"]),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, words: list[str], saying: list[str]) -> None:
    flat_folder(tmp_path / "data", "ab")
    refused("prepare", "folder", tmp_path / "data", tmp_path / "store", *words, saying=saying, folder=tmp_path)


@pytest.mark.parametrize(
    ("described", "saying"),
    [
        ("[" * 100_000, ["lie too deep in each other", "correct or remove it"]),
        ("{", ["damaged", "correct or remove it"]),
        ("[]", ["damaged", "it should be an object", "correct or remove it"]),
        ('{"labels": ["background", "LV"]}', ["labels is ['background', 'LV']", "correct or remove it"]),
        ('{"labels": {"background": 0, "LV": 1e400}}', ["1e400", "too large a number", "correct or remove it"]),
        ('{"labels": {"background": 0, "whole": [1, 2]}}', ["region-based labels", "list plain values"]),
        (r'{"labels": {"background": 0, "LV": "\u00b2"}}', ["'labels' must map names to values", "'LV' is"]),
        ('{"labels": {"LV": 1}}', ["the lowest value in 'labels' is 1", "the background"]),
        ('{"labels": {"background": 0, "LV": 1, "RV": 1}}', ["both 'LV' and 'RV' have the value 1"]),
    ],
)
def test_bad_descriptions_are_refused(tmp_path: Path, described: str, saying: list[str]) -> None:
    nifti(tmp_path / "data" / "imagesTr" / "a_0000.nii.gz", noise(SHAPE))
    (tmp_path / "data" / "dataset.json").write_text(described)
    words = ("prepare", "folder", tmp_path / "data", tmp_path / "store")
    refused(*words, saying=["dataset.json", *saying], folder=tmp_path)


def test_a_missing_channel_is_refused(tmp_path: Path) -> None:
    for name in ("a_0000", "a_0001", "b_0001"):
        nifti(tmp_path / "data" / "imagesTr" / f"{name}.nii.gz", noise(SHAPE))
    words = ("prepare", "folder", tmp_path / "data", tmp_path / "store")
    refused(*words, saying=["imagesTr", "case b has no channel 0000"], folder=tmp_path)
    (tmp_path / "data" / "imagesTr" / "b_0001.nii.gz").rename(tmp_path / "data" / "imagesTr" / "b_0000.nii.gz")
    refused(*words, saying=["b: 1 channels", "2"], folder=tmp_path)


SIDE = 24
SIZES = st.tuples(st.integers(1, 3), st.integers(2, 30), st.integers(2, 30))
TYPES = st.sampled_from([np.uint8, np.int16, np.uint16, np.int32, np.float32, np.float64])


@given(
    st.data(), SIZES, TYPES, st.tuples(*[st.floats(0.1, 20)] * 3), st.sampled_from([GridWindow.pad, GridWindow.resize])
)
def test_any_volume_goes_through_and_back(
    data: st.DataObject, shape: tuple[int, int, int], dtype: type, steps: tuple[float, float, float], fit: object
) -> None:
    values = data.draw(st.lists(st.integers(0, 250), min_size=1, max_size=5, unique=True))
    labels = data.draw(arrays.arrays(np.uint8, shape, elements=st.sampled_from(values)))
    low, high = (0, 255) if dtype is np.uint8 else (0, 60_000) if dtype is np.uint16 else (-30_000, 30_000)
    voxels = data.draw(arrays.arrays(np.int64, shape, elements=st.integers(low, high)))
    voxels.flat[0], voxels.flat[-1] = low, high  # never constant
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        affine = np.diag([*steps[::-1], 1])
        nifti(root / "data" / "images" / "a.nii", voxels.astype(dtype), affine)
        nifti(root / "data" / "labels" / "a.nii", labels, affine)
        found, classes = sources(recognise(root / "data"), root)
        assert len(classes) == max(1, labels.max()) + 1
        plan = Plan("any", classes, (SIDE, SIDE), fit, "any")  # type: ignore[arg-type]
        store = prepare(found, root / "store", plan).store
        record = store.records[0]
        np.testing.assert_array_equal(store.truth[:], record.fit.label(labels, 0))
        assert record.spacing == pytest.approx(steps, rel=1e-5)
        assert record.fit.original == shape[1:]
        if fit == GridWindow.pad:  # a method is another object each time it is asked for
            inner, outer = record.fit._overlap()
            before = voxels[:, inner[0], inner[1]].ravel()
            after = store.images[:, 0, outer[0], outer[1]].ravel().astype(int)
            order = np.argsort(before, kind="stable")
            assert (np.diff(after[order]) >= 0).all(), "what was brighter is not darker"
            assert record.lost + (record.fit.back(store.truth[:]) > 0).sum() == (labels > 0).sum()
        elif max(shape[1:]) <= SIDE:
            np.testing.assert_array_equal(record.fit.back(store.truth[:]), labels)


HEADER = st.lists(st.tuples(st.integers(0, 347), st.integers(0, 255)), min_size=1, max_size=4)
FIELDS = st.sampled_from(
    [
        (40, "<8h"),
        (70, "<h"),
        (72, "<h"),
        (76, "<8f"),
        (108, "<f"),
        (112, "<2f"),
        (252, "<2h"),
        (256, "<6f"),
        (280, "<4f"),
    ]
)
ODD = st.sampled_from([0, -1, 1, 2, 4, 7, 255, 30_000, -30_000])


@settings(max_examples=60)
@given(st.data(), st.sampled_from(["images", "labels"]), st.booleans())
def test_no_header_gives_a_traceback(data: st.DataObject, which: str, packed: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder, array in (("images", noise((2, 5, 6))), ("labels", heart((2, 5, 6)))):
            nifti(root / "data" / folder / "a.nii", array)
        file = root / "data" / which / "a.nii"
        content = bytearray(file.read_bytes())
        if data.draw(st.booleans()):
            for at, value in data.draw(HEADER):
                content[at] = value
        else:
            at, form = data.draw(FIELDS)
            numbers = list(struct.unpack_from(form, content, at))
            special = [float("nan"), float("inf"), 1e38, -1e-38] if "f" in form else [32767, 5]
            numbers[data.draw(st.integers(0, len(numbers) - 1))] = data.draw(ODD | st.sampled_from(special))
            struct.pack_into(form, content, at, *numbers)
        file.write_bytes(content)
        if packed:
            file.with_name("a.nii.gz").write_bytes(gzip.compress(content))
            file.unlink()
        outcome = command("prepare", "folder", root / "data", root / "store", "--side", 16)
        assert outcome.code in (0, 2)
        if outcome.code == 2:
            assert outcome.err.splitlines()[-1].startswith("Error: ")
            assert "a.nii" in outcome.err.splitlines()[-1]
            assert [entry.name for entry in root.iterdir()] == ["data"]
        else:
            assert Store(root / "store").images.shape[1:] == (1, 16, 16)


def test_names_that_look_like_formulas_come_back(tmp_path: Path) -> None:
    """From a folder into tables and back; no table has a formula in it."""
    names = ("=1+1", "-a", "@b", "a;=c")
    for name in names:
        nifti(tmp_path / "data" / f"{name}.nii.gz", noise(SHAPE))
    into(tmp_path, "--classes", "background,+LV")
    file = tmp_path / "sizes.csv"
    done("facts", tmp_path / "store", "--template", file)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if re.search(r"(^|[,;])[=+@-]", line)]
    file.write_text("\n".join([lines[0], *(line.replace("'+LV,,", "'+LV,1,") for line in lines[1:])]), encoding="utf-8")
    done("facts", tmp_path / "store", "--import", file, "--name", "sizes")
    facts = Store(tmp_path / "store").facts("sizes")
    assert {(fact.case, fact.present) for fact in facts} == {(name, True) for name in names}


def test_a_folder_whose_name_is_no_text_is_only_a_place(tmp_path: Path) -> None:
    """What is printed and written says where, with escapes for what is no text."""
    place = tmp_path / os.fsdecode(b"m\xfcller")
    try:
        place.mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    nifti(place / "a.nii.gz", noise(SHAPE))
    nifti(place / "b.nii.gz", noise(SHAPE))
    words = [sys.executable, "-m", "inbounds", "prepare", "folder", place, place / "store", "--side", "48"]
    told = subprocess.run(words, capture_output=True, check=False)
    assert (told.returncode, b"Traceback" in told.stderr) == (0, False), told.stderr
    assert rb"m\udcfcller" in told.stdout
    assert (Store(place / "store").slices, Store(place / "store").name) == (2 * SHAPE[0], "m?ller")
