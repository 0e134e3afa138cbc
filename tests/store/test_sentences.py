"""Sentences of reports: what fits a pattern whole becomes a fact, and everything else is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inbounds.errors import BadInput
from inbounds.store.facts import Fact
from inbounds.store.grid import GridWindow
from inbounds.store.record import Record
from inbounds.store.sentences import Sentences, read_sentences

CLASSES = ("background", "RV", "LV")
FIT = GridWindow.pad((200, 200), (64, 64))
ED = Record("patient001_ED", "patient001", "train", 0, 10, FIT, (8.0, 1.0, 1.0), (0.0, 1.0))
CASES = {
    record.name: record
    for record in (
        ED,
        replace(ED, name="patient001_ES"),
        replace(ED, name="patient002_frame01", patient="patient002", phase="ED"),
        replace(ED, name="patient002_frame12", patient="patient002", phase="ES"),
        replace(ED, name="liver7", patient="liver7"),
    )
}


def heard(tmp_path: Path, report: str, case: str = "patient001", number: str = "", **words: str) -> Sentences:
    file = tmp_path / "reports.csv"
    file.write_text(f'case,slice,report\n{case},{number},"{report}"\n')
    return read_sentences(file, CLASSES, CASES, words)


@pytest.mark.parametrize(
    ("report", "wanted"),
    [
        (
            "LV EDV 142 ml, ESV 61 ml",
            [("patient001_ED", "LV", {"volume_ml": 142}), ("patient001_ES", "LV", {"volume_ml": 61})],
        ),
        (
            "The left ventricle has an end-diastolic volume of 1,42 l; RV ESV: ~80 cc.",
            [("patient001_ED", "LV", {"volume_ml": 1420}), ("patient001_ES", "RV", {"volume_ml": 80})],
        ),
        ("LV EDV = 140-150 ml.", [("patient001_ED", "LV", {"volume_ml_min": 140, "volume_ml_max": 150})]),
        ("LV EDV 120 +/- 10 ml", [("patient001_ED", "LV", {"volume_ml_min": 110, "volume_ml_max": 130})]),
        ("rv end-systolic volume is at least 50 cm3", [("patient001_ES", "RV", {"volume_ml_min": 50})]),
        (
            "LV ESV < 60 ml and RV EDV up to 90000 mm3",
            [("patient001_ES", "LV", {"volume_ml_max": 60}), ("patient001_ED", "RV", {"volume_ml_max": 90})],
        ),
    ],
)
def test_what_is_understood(tmp_path, report, wanted) -> None:
    found = heard(tmp_path, report, **{"left ventricle": "LV"})
    facts = [(fact.case, CLASSES[fact.klass], dict(fact.known)) for fact in found.facts]
    assert facts == [(case, klass, pytest.approx(known)) for case, klass, known in wanted]
    assert found.not_understood == []


def test_scans_and_slices(tmp_path) -> None:
    assert heard(tmp_path, "LV EDV 100 ml", "patient002").facts.rows[0].case == "patient002_frame01"
    assert heard(tmp_path, "LV ESV 50 ml", "patient002_frame01").facts.rows[0].case == "patient002_frame12"
    assert heard(tmp_path, "LV volume 50 ml", "patient001_ES").facts.rows[0].case == "patient001_ES"
    assert heard(tmp_path, "LV 50 ml", "liver7").facts.rows[0] == Fact("liver7", None, 2, None, {"volume_ml": 50})
    area = heard(tmp_path, "LV area 4 cm2", "liver7", "3").facts.rows[0]
    assert area == Fact("liver7", 3, 2, None, {"size_mm2": 400})


def test_presence(tmp_path) -> None:
    found = heard(tmp_path, "No RV; LV is present", "liver7")
    assert [(fact.klass, fact.present) for fact in found.facts] == [(1, False), (2, True)]
    assert heard(tmp_path, "the RV not seen", "liver7").not_understood  # `the` might be anything there
    assert [fact.present for fact in heard(tmp_path, "RV was not visible", "liver7").facts] == [False]


@pytest.mark.parametrize(
    ("report", "case", "reason"),
    [
        ("LV EF 57 %", "patient001", "no number with a unit that is known"),
        ("LV EDV 142", "patient001", "no number with a unit"),
        ("LV EDV index 71 ml", "patient001", "nothing is known of 'index'"),
        ("LV EDV 71 ml/m2", "patient001", "no number with a unit"),
        ("previous LV EDV 71 ml", "patient001", "nothing is known of 'previous'"),
        ("EDV 142 ml", "patient001", "no class is named; there are: RV, LV"),
        ("LV volume 142 ml", "patient001", "of 2 scans of patient001 2 could be meant; name the scan"),
        ("LV EDV 142 ml", "liver7", "of 1 scans of liver7 none is known to be at ED"),
        ("LV EDV 142 ml", "patient009", "no case 'patient009'"),
        ("LV EDV 142000 ml", "patient001", "is more than there are"),
        ("LV area 4 cm2", "liver7", "which a whole scan does not have"),
        ("no pericardial effusion", "liver7", "no number with a unit"),
        ("LV not dilated", "liver7", "no number with a unit"),
    ],
)
def test_what_is_not_understood_is_named_and_never_guessed(tmp_path, report, case, reason) -> None:
    found = heard(tmp_path, report, case)
    assert found.facts.rows == ()
    (one,) = found.not_understood
    assert reason in one.reason
    assert (one.part, one.where.endswith("line 2")) == (report, True)


def test_what_was_said_otherwise_before_is_named(tmp_path) -> None:
    found = heard(tmp_path, "LV EDV 142 ml, LV EDV 140 ml, LV EDV 142 ml")
    assert [one.reason for one in found.heard] == ["", "volume_ml was said to be 142 before", ""]
    assert len(found.facts.rows) == 1
    assert [one.reason for one in heard(tmp_path, "no RV, RV 3 ml", "liver7").heard][1]


def test_a_word_for_no_class_is_refused(tmp_path) -> None:
    with pytest.raises(BadInput, match="the word 'heart' stands for no class 'LVV'; did you mean 'LV'"):
        heard(tmp_path, "", heart="LVV")
