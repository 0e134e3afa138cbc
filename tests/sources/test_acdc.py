"""ACDC as a user downloads it."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np
import pytest

from archives import acdc, command, done, heart, nifti, noise, refused, snapshot, zipped
from inbounds.sources.acdc import CLASSES, reference_split, wanted
from inbounds.store.store import Store
from inbounds.store.verify import verify


@pytest.mark.parametrize("suffix", [".nii", ".nii.gz"])
def test_a_download_becomes_a_store(tmp_path: Path, suffix: str) -> None:
    acdc(tmp_path / "training", suffix=suffix)
    outcome = done("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--side", 64)
    assert "8 scans (4 train, 4 validation), 32 slices of 64x64" in outcome.out
    store = Store(tmp_path / "store")
    assert store.classes == CLASSES == ("background", "RV", "MYO", "LV")
    first, second = store.records[:2]
    assert (first.name, first.phase, second.phase) == ("patient001_frame01", "ED", "ES")
    assert {record.group for record in store.records} == {"DCM"}
    assert first.spacing == pytest.approx((10, 1.5, 1.5))
    assert {r.patient: r.split for r in store.records} == {
        "patient001": "train",
        "patient015": "train",
        "patient016": "validation",
        "patient020": "validation",
    }
    mask = heart()
    for record in store.records:
        stored = store.truth[record.first : record.range.stop]
        np.testing.assert_array_equal(stored, record.fit.label(mask, 0))
        np.testing.assert_array_equal(record.fit.back(stored), mask)
    scribble = store.label("scribble")[0]
    assert set(np.unique(scribble)) == {0, 1, 2, 3, 255}
    labelled = scribble != 255
    np.testing.assert_array_equal(scribble[labelled], store.truth[0][labelled])
    assert labelled.sum() == 8 * 36  # every fifth of 40 rows; 4 and the padding are unlabelled
    verdict = verify(store.path)
    assert verdict.problems == ()
    assert verdict.disagreements == {"scribble": 0}


def test_volumes_get_a_grid_and_a_distance_between_slices(tmp_path: Path) -> None:
    """As in a folder of one's own: by the files' spacing, unless somebody chooses."""
    acdc(tmp_path / "training")
    for number, apart in ((15, 5.0), (16, 8.0)):
        for file in (tmp_path / "training" / f"patient{number:03d}").glob("*.nii.gz"):
            if "_4d" not in file.name:
                array = np.asarray(nibabel.load(file).dataobj)
                nibabel.Nifti1Image(array, np.diag([1.25, 1.25, apart, 1])).to_filename(file)
    outcome = done("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--dimensions", 3)
    assert "grid: 48x48 pixels of 1.38 mm, the median of the files, cover every scan" in outcome.err
    assert "slices: 9 mm apart, the median of 5 to 10; --slice-spacing sets another" in outcome.err
    store = Store(tmp_path / "store")
    assert all(abs(record.grid_spacing[1] - 1.375) < 0.01 for record in store.records)
    assert {(record.slices, record.original_slices) for record in store.records} == {(4, 4), (2, 4)}
    by_hand = ["--dimensions", 3, "--side", 64, "--slice-spacing", 5]
    outcome = done("prepare", "acdc", tmp_path / "training", tmp_path / "by_hand", *by_hand)
    assert "grid:" not in outcome.err
    assert Store(tmp_path / "by_hand").shape == (64, 64)
    assert {record.slices for record in Store(tmp_path / "by_hand").records} == {8, 6, 4}


def test_folder_zip_and_folder_of_zips_give_the_same_bytes(tmp_path: Path) -> None:
    acdc(tmp_path / "training")
    zipped(tmp_path / "training", tmp_path / "training.zip")
    # The later patients come in the archive that sorts first.
    zipped(tmp_path / "training", tmp_path / "zips" / "a.zip", lambda file: "patient02" in file.parent.name)
    zipped(tmp_path / "training", tmp_path / "zips" / "b.zip", lambda file: "patient02" not in file.parent.name)
    stores = []
    for source in ("training", "training.zip", "zips"):
        done("prepare", "acdc", tmp_path / source, tmp_path / f"{source}.store", "--side", 48)
        stores.append(snapshot(tmp_path / f"{source}.store"))
    assert set(stores[0]) == {
        "dataset.json",
        "images.npy",
        "truth.npy",
        "annotations/scribble/labels.npy",
        "annotations/scribble/annotation.json",
    }
    assert stores[0] == stores[1] == stores[2]


def test_the_reference_split_is_the_last_five_of_each_group_of_twenty() -> None:
    held = [n for n in range(1, 101) if reference_split(f"patient{n:03d}") == "validation"]
    assert held == [*range(16, 21), *range(36, 41), *range(56, 61), *range(76, 81), *range(96, 101)]


def splits(store: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in Store(store).records:
        found.setdefault(record.patient, set()).add(record.split)
    return found


def test_random_splits_are_by_patient_seeded_and_in_proportion(tmp_path: Path) -> None:
    acdc(tmp_path / "training", range(1, 9), shape=(2, 24, 24))
    found = {}
    for name, seed in (("a", 1), ("again", 1), ("b", 2)):
        done(
            "prepare", "acdc", tmp_path / "training", tmp_path / name, "--side", 24, "--split", "random", "--seed", seed
        )
        found[name] = splits(tmp_path / name)
        assert sorted(map(tuple, found[name].values())) == [("train",)] * 6 + [("validation",)] * 2
    assert found["a"] == found["again"] != found["b"]


def test_a_split_by_scans_says_so(tmp_path: Path) -> None:
    """Every scan is its own patient: a leak, to be measured and not to be mistaken for anything else."""
    acdc(tmp_path / "training", range(1, 9), shape=(2, 24, 24))
    done("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--side", 24, "--split", "scans", "--seed", 3)
    made = Store(tmp_path / "store")
    assert made.name == "acdc split by scans"
    assert all(record.patient == record.name for record in made.records)
    sides = {record.name[:10]: set() for record in made.records}
    for record in made.records:
        sides[record.name[:10]].add(record.split)
    assert any(len(kinds) == 2 for kinds in sides.values())
    assert sum(record.split == "validation" for record in made.records) == 4


def test_a_test_split_takes_from_training_only(tmp_path: Path) -> None:
    acdc(tmp_path / "training", (1, 2, 3, 4, 5, 6, 16, 17), shape=(2, 24, 24))
    done("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--side", 24, "--test", 0.25)
    found = splits(tmp_path / "store")
    assert all(len(kinds) == 1 for kinds in found.values())
    assert {patient for patient, kinds in found.items() if kinds == {"validation"}} == {"patient016", "patient017"}
    assert sum(kinds == {"test"} for kinds in found.values()) == 2
    saying = ["6 patients to test on leave none of 6"]
    refused("prepare", "acdc", tmp_path / "training", tmp_path / "none", "--test", 0.75, saying=saying, folder=tmp_path)


@pytest.mark.parametrize("fit", ["pad", "resize"])
@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_fits_and_types(tmp_path: Path, fit: str, dtype: str) -> None:
    acdc(tmp_path / "training", (1,))
    words = ("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--side", 16, "--fit", fit, "--dtype", dtype)
    outcome = done(*words)
    store = Store(tmp_path / "store")
    assert store.images.dtype == dtype
    inside = heart()[:, 12:28, 10:26]  # 16 of 40 rows and of 36 columns, about the middle
    lost = int((heart() > 0).sum() - (inside > 0).sum())
    assert lost > 0
    assert [record.lost for record in store.records] == [lost if fit == "pad" else 0] * 2
    assert (f"{2 * lost} foreground pixels of the truth lie outside" in outcome.err) == (fit == "pad")
    if fit == "pad":
        assert store.images[:].min() == 0
        assert store.images[:].max() == (255 if dtype == "uint8" else 1)
        np.testing.assert_array_equal(store.truth[:4], inside)


def test_scans_zoomed_to_one_field_of_view(tmp_path: Path) -> None:
    acdc(tmp_path / "training", (1,))
    done("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--fit", "zoom")
    store = Store(tmp_path / "store")
    assert store.source["fit"] == "zoom"
    scale = 256 / 40  # the slices have 40 rows and 36 columns
    assert [record.lost for record in store.records] == [0, 0]
    assert (store.truth[:4] > 0).sum() == pytest.approx((heart() > 0).sum() * scale**2, rel=0.02)


def test_masks_may_be_packed_otherwise_than_their_scans(tmp_path: Path) -> None:
    acdc(tmp_path / "training", (1,))
    for mask in list(tmp_path.rglob("*_gt.nii.gz")):
        mask.unlink()
        nifti(mask.with_name(mask.name.removesuffix(".gz")), heart())
    done("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--side", 48)
    assert all(record.truth for record in Store(tmp_path / "store").records)


def test_scans_without_masks_and_without_info_are_fine(tmp_path: Path) -> None:
    acdc(tmp_path / "training", (1, 2))
    for file in (tmp_path / "training" / "patient001").iterdir():
        if "_gt" in file.name or "_scribble" in file.name or file.name == "Info.cfg":
            file.unlink()
    done("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--side", 48)
    store = Store(tmp_path / "store")
    assert [(r.truth, r.phase, r.group) for r in store.records] == [(False, "", "")] * 2 + [
        (True, "ED", "DCM"),
        (True, "ES", "DCM"),
    ]
    assert (store.truth[0] == 255).all()
    assert (store.label("scribble")[0] == 255).all()
    assert verify(store.path).problems == ()


def test_a_missing_mask_is_said_with_the_name_of_its_scan(tmp_path: Path) -> None:
    """Although there are scribbles; and where all are missing, that none was found."""
    acdc(tmp_path / "training", (1, 2))
    (mask,) = (tmp_path / "training" / "patient002").glob("*frame01_gt.nii.gz")
    mask.unlink()
    said = done("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--side", 48).err
    assert "training: 4 scans, 3 with a full mask" in said
    assert "Note: 1 scan (patient002_frame01) has no mask, where others have one" in said
    for mask in (tmp_path / "training").rglob("*_gt.nii.gz"):
        mask.unlink()
    said = done("prepare", "acdc", tmp_path / "training", tmp_path / "bare", "--side", 48).err
    assert "training: 4 scans, 0 with a full mask" in said


def test_the_whole_cycle_is_not_wanted() -> None:
    assert wanted("patient001_frame01.nii.gz")
    assert wanted("Info.cfg")
    assert not wanted("patient001_4d.nii.gz")


class TestRefused:
    def refuse(self, folder: Path, *saying: object) -> None:
        refused("prepare", "acdc", folder / "training", folder / "store", saying=saying, folder=folder)

    def test_no_scans(self, tmp_path: Path) -> None:
        nifti(tmp_path / "training" / "liver.nii.gz", noise((2, 8, 8)))
        self.refuse(tmp_path, tmp_path / "training", "no file named like patient001_frame01.nii.gz", "give the folder")

    def test_a_mask_without_its_scan(self, tmp_path: Path) -> None:
        acdc(tmp_path / "training", (1,))
        (tmp_path / "training" / "patient001" / "patient001_frame12.nii.gz").unlink()
        self.refuse(tmp_path, "patient001_frame12_gt.nii.gz: a mask without its scan", "download")

    def test_a_patient_twice(self, tmp_path: Path) -> None:
        acdc(tmp_path / "training" / "a", (1,))
        acdc(tmp_path / "training" / "b", (1,))
        twice = tmp_path / "training" / "b" / "patient001" / "patient001_frame01.nii.gz"
        self.refuse(tmp_path, twice, "same name", "Remove or rename")

    def test_info_that_is_no_text(self, tmp_path: Path) -> None:
        acdc(tmp_path / "training", (1,))
        (tmp_path / "training" / "patient001" / "Info.cfg").write_bytes(b"\xff\xfe\x00")
        self.refuse(tmp_path, "Info.cfg", "download it again or remove it")

    def test_a_class_too_many(self, tmp_path: Path) -> None:
        acdc(tmp_path / "training", (1,))
        mask = heart()
        mask[1, 2, 3] = 9
        file = nifti(tmp_path / "training" / "patient001" / "patient001_frame12_gt.nii.gz", mask)
        self.refuse(tmp_path, file, "label value 9 at (slice, row, column) (1, 2, 3)", "Name the classes")

    def test_mac_leftovers_are_passed_over(self, tmp_path: Path) -> None:
        acdc(tmp_path / "training", (1,))
        (tmp_path / "training" / "patient001" / "._patient001_frame12_gt.nii.gz").write_bytes(b"Mac OS X")
        assert command("prepare", "acdc", tmp_path / "training", tmp_path / "store", "--side", 48).code == 0
