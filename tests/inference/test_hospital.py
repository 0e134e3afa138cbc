"""From the archive of a hospital to masks: patients, studies and series at once, and nobody's name told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from archives import command, done, refused, snapshot
from dicoms import pydicom, slices
from inbounds.networks.build import networks
from inbounds.scans.scan import read_labels
from inbounds.store.store import Store
from predicting import NAME, by_brightness, made_run, scan_of, scene

WANTED = scene()
SCAN = scan_of(WANTED, np.uint16)
PATIENTS = {"Doe^Jane": ["20260102", "20260303"], "Roe^Jim": ["20260404"]}
TOLD = ("doe", "jane", "roe", "jim", "h-4711", "19600229")


@pytest.fixture(autouse=True)
def _network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(networks, NAME, by_brightness)


def archive(root: Path) -> Path:
    number = 0
    for patient, studies in PATIENTS.items():
        for study in studies:
            number += 1
            about = {"PatientName": patient, "PatientID": f"{patient}-H-4711", "StudyInstanceUID": f"1.5.{number}"}
            folder = root / patient.replace("^", "_") / study
            slices(folder / "T2", SCAN, SeriesInstanceUID=f"1.5.{number}.2", SeriesNumber=2, **about)
            scout = {"SeriesInstanceUID": f"1.5.{number}.1", "SeriesNumber": 1, "SeriesDescription": "scout"}
            slices(folder / "scout", SCAN[:2], **scout, **about)
    return root


def names_nobody(text: str) -> None:
    assert [word for word in TOLD if word in text.lower()] == []


def test_patients_are_predicted_at_once(tmp_path: Path) -> None:
    run, root = made_run(tmp_path / "run").path, archive(tmp_path / "archive")
    broken = root / "Roe_Jim" / "20260404" / "T2" / "IM2"
    where = pydicom.dcmread(broken)
    where.ImagePositionPatient = [0, 0, 500]
    where.save_as(broken)
    outcome = command("predict", run, root, "--out", tmp_path / "out")
    assert outcome.code == 1
    names_nobody((outcome.out + outcome.err).replace(str(tmp_path), ""))
    masks = sorted((tmp_path / "out").glob("*.nii.gz"))
    assert len(masks) == 2
    assert len({mask.name.split("-")[0] for mask in masks}) == 1
    for mask in masks:
        np.testing.assert_array_equal(read_labels(mask).array, WANTED)
    assert "Failed: p" in outcome.err
    assert "add the missing slices" in outcome.err
    for name, content in snapshot(tmp_path / "out").items():
        names_nobody(name + ("" if name.endswith(".gz") else content.decode().replace(str(tmp_path), "")))
    about = json.loads((tmp_path / "out" / "predictions.json").read_text(encoding="utf-8"))
    assert sorted(about["series"].values()) == ["1.5.1.2", "1.5.2.2"]


def test_another_series_and_names_that_are_asked_for(tmp_path: Path) -> None:
    run, root = made_run(tmp_path / "run").path, archive(tmp_path / "archive")
    done("predict", run, root, "--out", tmp_path / "out", "--series", "T2*", "--folder-names")
    assert sorted(mask.name for mask in (tmp_path / "out").glob("*.nii.gz")) == [
        "Doe_Jane-20260102-T2.nii.gz",
        "Doe_Jane-20260303-T2.nii.gz",
        "Roe_Jim-20260404-T2.nii.gz",
    ]


def test_prepare_takes_the_same_tree(tmp_path: Path) -> None:
    root = archive(tmp_path / "archive")
    outcome = done("prepare", "folder", root, tmp_path / "store", "--side", 32, "--validation", 0.5)
    names_nobody((outcome.out + outcome.err).replace(str(tmp_path), ""))
    store = Store(tmp_path / "store")
    assert sorted(sum(r.patient == each for r in store.records) for each in {r.patient for r in store.records}) == [
        1,
        2,
    ]
    assert len({r.split for r in store.records}) == 2
    names_nobody((tmp_path / "store" / "dataset.json").read_text(encoding="utf-8"))
    more = archive(tmp_path / "more" / "archive")
    refused("prepare", "add", more, tmp_path / "store", saying=["names must differ"])


def test_masks_as_dicom(tmp_path: Path) -> None:
    pytest.importorskip("highdicom", reason="writes segmentation objects; not installed")
    run = made_run(tmp_path / "run").path
    slices(tmp_path / "scans" / "a", SCAN)
    code = "LV=SCT:87878005:Left ventricle"
    done("predict", run, tmp_path / "scans", "--out", tmp_path / "out", "--dicom-seg", "--code", code)
    seg = pydicom.dcmread(tmp_path / "out" / "a.dcm")
    assert [one.SegmentLabel for one in seg.SegmentSequence] == ["LV", "RV"]
    numbers = [one.SegmentIdentificationSequence[0] for one in seg.PerFrameFunctionalGroupsSequence]
    counts = np.bincount([int(one.ReferencedSegmentNumber) for one in numbers])
    assert counts.tolist() == [0, 2, 1]
    assert seg.pixel_array.sum() == np.count_nonzero(WANTED)
    refused("predict", run, tmp_path / "scans", "--out", tmp_path / "x", "--code", code, saying=["--dicom-seg"])
    refused(
        "predict", run, tmp_path / "scans", "--out", tmp_path / "x", "--dicom-seg", "--code", "liver=1",
        saying=["no class 'liver'; there are: LV, RV"], folder=tmp_path,
    )  # fmt: skip
