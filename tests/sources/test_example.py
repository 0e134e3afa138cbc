"""The example folder: what a person would have, and nothing more."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from archives import done
from inbounds.scans.scan import read, read_labels
from inbounds.sources import phantom
from inbounds.sources.example import CLICKS, EVERY, write_example


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("example") / "hearts"
    write_example(phantom.sources(4, side=48), phantom.CLASSES, place, seed=3)
    return place


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def truths() -> dict[str, np.ndarray]:
    loaded = {source.name: source.load() for source in phantom.sources(4, side=48)}
    return {name: scan.truth for name, scan in loaded.items() if scan.truth is not None}


def test_only_new_scans_have_masks(folder: Path) -> None:
    names = {part: sorted(file.name for file in (folder / part).iterdir()) for part in ("scans", "new", "truth")}
    assert len(names["scans"]) == 6
    assert names["new"] == names["truth"] == ["phantom004_ED.nii.gz", "phantom004_ES.nii.gz"]


def test_scans_and_masks_lie_as_they_were(folder: Path) -> None:
    source = next(source for source in phantom.sources(4, side=48) if source.name == "phantom004_ED")
    loaded, scan = source.load(), read(folder / "new" / "phantom004_ED.nii.gz")
    np.testing.assert_array_equal(scan.array, loaded.image[0])
    assert scan.spacing == pytest.approx(loaded.spacing, rel=1e-6)
    np.testing.assert_array_equal(read_labels(folder / "truth" / "phantom004_ED.nii.gz").array, loaded.truth)


def test_clicks_lie_in_the_class_they_name_on_every_third_slice(folder: Path) -> None:
    truth, clicked = truths(), rows(folder / "clicks.csv")
    for click in clicked:
        mask = truth[click["case"]][int(click["slice"])]
        assert phantom.CLASSES[mask[int(click["row"]), int(click["column"])]] == click["class"]
    places = [(click["case"], int(click["slice"])) for click in clicked]
    assert {place % EVERY for _, place in places} == {EVERY // 2}
    assert {places.count(place) for place in places} == {CLICKS}
    assert {click["class"] for click in clicked} == set(phantom.CLASSES)


def test_sizes_are_about_right(folder: Path) -> None:
    truth = truths()
    for line in rows(folder / "sizes.csv"):
        size = (truth[line["case"]][int(line["slice"])] == phantom.CLASSES.index(line["class"])).sum()
        assert int(line["present"]) == (size > 0)
        assert abs(int(line["size_px"]) - size) <= 0.15 * size + 0.5


def test_the_command_writes_a_folder_that_can_be_used(tmp_path: Path) -> None:
    told = done("example", tmp_path / "hearts", "--patients", "4", "--side", "48").out
    assert "6 scans with clicks.csv and sizes.csv, and 2 new ones; classes: background,RV,MYO,LV" in told
    done("prepare", "folder", tmp_path / "hearts" / "scans", tmp_path / "store", "--classes", "background,RV,MYO,LV")
    done("annotate", tmp_path / "store", "--points", tmp_path / "hearts" / "clicks.csv", "--name", "clicks")
    done("facts", tmp_path / "store", "--import", tmp_path / "hearts" / "sizes.csv", "--name", "sizes")
