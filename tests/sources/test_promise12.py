"""PROMISE12 as a user downloads it: three zips of uncompressed MetaImages at mixed sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import SimpleITK as sitk  # noqa: N813

from archives import done, promise12, refused, snapshot, zipped
from inbounds.scans.scan import read_labels
from inbounds.sources.promise12 import reference_split
from inbounds.store.store import Store

CASES = (3, 17, 38, 39, 40, 49)


def test_three_zips_are_the_folder(tmp_path: Path) -> None:
    promise12(tmp_path / "cases", CASES)
    assert not list(tmp_path.rglob("*.zraw"))
    for part in range(3):
        mine = {f"Case{case:02d}" for case in CASES[part::3]}
        zipped(tmp_path / "cases", tmp_path / "zips" / f"Part{part}.zip", lambda file, mine=mine: file.name[:6] in mine)
    for source in ("cases", "zips"):
        done("prepare", "promise12", tmp_path / source, tmp_path / f"{source}.store", "--side", 64)
    assert snapshot(tmp_path / "cases.store") == snapshot(tmp_path / "zips.store")
    store = Store(tmp_path / "zips.store")
    assert store.classes == ("background", "prostate")
    assert [r.name for r in store.records] == [f"Case{case:02d}" for case in CASES]
    assert [r.split for r in store.records] == ["train"] * 4 + ["validation"] * 2
    assert len({r.fit.original for r in store.records}) > 2
    for record in store.records:
        assert record.spacing == pytest.approx((3.6, 0.5, 0.625))
        assert (record.fit.height, record.fit.width) == record.fit.original  # stretched: nothing is cut off
        mask = read_labels(tmp_path / "cases" / f"{record.name}_segmentation.mhd").array
        np.testing.assert_array_equal(record.fit.back(store.truth[record.first : record.range.stop]), mask)


def test_the_reference_split() -> None:
    assert [n for n in range(50) if reference_split(f"Case{n:02d}") == "validation"] == [*range(40, 50)]


def test_a_random_split_is_four_to_one(tmp_path: Path) -> None:
    promise12(tmp_path / "cases", range(10))
    done("prepare", "promise12", tmp_path / "cases", tmp_path / "store", "--side", 16, "--split", "random")
    store = Store(tmp_path / "store")
    assert sum(record.split == "validation" for record in store.records) == 2
    assert store.name == "promise12 split at random"  # so that results of one split are not taken for the other's


def test_a_missing_mask_is_said_and_one_in_the_other_kind_of_file_found(tmp_path: Path) -> None:
    promise12(tmp_path / "cases", (3, 4))
    for file in tmp_path.rglob("Case03_segmentation.*"):
        file.unlink()
    mask = sitk.ReadImage(tmp_path / "cases" / "Case04_segmentation.mhd")
    for file in tmp_path.rglob("Case04_segmentation.*"):
        file.unlink()
    sitk.WriteImage(mask, tmp_path / "cases" / "Case04_segmentation.mha")
    said = done("prepare", "promise12", tmp_path / "cases", tmp_path / "store", "--side", 64).err
    assert "cases: 2 scans, 1 with a full mask" in said
    assert "Note: 1 scan (Case03) has no mask, where others have one" in said


@pytest.mark.parametrize(
    ("harm", "saying"),
    [
        (lambda root: (root / "Case03.raw").unlink(), ["Case03.raw", "missing", "put it beside"]),
        (lambda root: (root / "Case03.raw").write_bytes(bytes(7)), ["Case03.raw", "cut short", "download it again"]),
        (lambda root: (root / "Case03.mhd").unlink(), ["Case03_segmentation.mhd: a mask without its scan", "download"]),
        (lambda root: promise12(root / "again", [3]), ["Case03.mhd", "same name", "Remove or rename"]),
        (lambda root: [f.unlink() for f in root.iterdir() if f.name[-3:] == "mhd"], ["no file named like Case00.mhd"]),
    ],
    ids=["no data", "cut short", "orphan", "twice", "no headers"],
)
def test_refused(tmp_path: Path, harm: object, saying: list[str]) -> None:
    promise12(tmp_path / "cases", (3, 4))
    harm(tmp_path / "cases")  # type: ignore[operator]
    refused("prepare", "promise12", tmp_path / "cases", tmp_path / "store", saying=saying, folder=tmp_path)
