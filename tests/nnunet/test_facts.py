"""Facts for nnU-Net, by hand; tests/nnunet/test_trainer.py has them read by the real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from archives import done, refused
from inbounds.nnunet.facts import FILE, read_facts
from nnunet.discs import SPACING, write_discs

NAME = "Dataset901_Discs"
PLANS = {
    "transpose_forward": [0, 1, 2],
    "configurations": {
        "2d": {"spacing": [3.0, 1.5], "batch_size": 2},
        "3d_fullres": {"spacing": [6.0, 1.5, 3.0]},
        "3d_cascade_fullres": {"inherits_from": "3d_fullres"},
    },
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two scans of four slices of 16x16, planned."""
    write_discs(tmp_path / "raw" / NAME, tmp_path / "sizes.csv", cases=2, side=16, slices=4)
    (tmp_path / "preprocessed" / NAME).mkdir(parents=True)
    for name in ("raw", "preprocessed"):
        monkeypatch.setenv(f"nnUNet_{name}", str(tmp_path / name))
    plan(tmp_path, PLANS)
    return tmp_path


def plan(place: Path, plans: object) -> None:
    (place / "preprocessed" / NAME / "nnUNetPlans.json").write_text(json.dumps(plans), encoding="utf-8")


def told(place: Path, table: str, *words: object):
    (place / "facts.csv").write_text(table, encoding="utf-8")
    done("nnunet", NAME, "--facts", place / "facts.csv", *words)
    return read_facts(place / "preprocessed" / NAME / FILE)


def test_sizes_are_those_of_each_spacing(place: Path) -> None:
    """A pixel of the original measures 1.5 x 1.5 mm, a voxel 6 mm more: in 2-D half of them remain, in 3-D too."""
    assert SPACING == (6.0, 1.5, 1.5)
    found = told(
        place,
        "case,slice,class,size_px,size_mm2,volume_ml,present\n"
        "case0,0,disc,20,,,\ncase0,1,disc,10-14,,,\ncase0,2,disc,,45,,\ncase0,3,disc,,,,0\n"
        "case1,,disc,,,1.35,\n",
        "--margin",
        "0.2",
    )
    assert (found.margin, found.classes) == (0.2, ["background", "disc"])
    slices = [found.rows("2d", "case0", at).get("disc") for at in range(4)]
    assert slices == [
        {"present": 1, "size": 10},
        {"present": 1, "size_min": 5, "size_max": 7},
        {"present": 1, "size": 10},
        {"present": 0},
    ]
    for name in ("3d_fullres", "3d_cascade_fullres"):
        assert found.rows(name, "case0", None)["disc"] == {"present": 1, "size_min": 25, "size_max": 27}
        assert found.rows(name, "case1", None)["disc"]["size"] == pytest.approx(50)  # 1350 mm3 of 27 mm3
    assert found.rows("2d", "case1", 0) == {}  # a volume says nothing of a slice
    assert found.rows("2d", "nobody", 0) == {}


def test_what_a_scan_lacks_its_slices_lack(place: Path) -> None:
    found = told(place, "case,slice,class,present,size_px\ncase0,,disc,0,\ncase1,2,disc,,5\n")
    assert found.rows("2d", "case0", 2) == {"disc": {"present": 0}}
    assert found.rows("3d_fullres", "case1", None) == {"disc": {"present": 1}}  # of three slices nobody has said


def test_as_tensors(place: Path) -> None:
    found = told(place, "case,slice,class,size_px\ncase0,0,disc,20\n")
    facts = found.tensors([found.rows("2d", "case0", 0), {}])
    assert {fact.shape for fact in facts.values()} == {(2, 2, 1)}
    assert facts["size"].isnan().flatten().tolist() == [True, False, True, True]
    assert facts["size"][0, 1] == 10
    assert facts["present"][0, 1] == 1
    assert facts["size"].dtype == torch.float32


def test_says_how_to_train(place: Path) -> None:
    said = done("nnunet", place / "raw" / NAME, "--facts", place / "sizes.csv").out
    assert "facts for 2d of 2 cases, 3d_fullres of 2 cases" in said
    (line,) = [line for line in said.splitlines() if line.startswith("export nnUNet_extTrainer=")]
    trainers = Path(line.partition("=")[2])
    assert [file.name for file in trainers.glob("*.py")] == ["nnUNetTrainerInbounds.py"]
    assert f"nnUNetv2_train {NAME} 2d 0 -tr nnUNetTrainerInbounds" in said
    answer = json.loads(done("nnunet", NAME, "--facts", place / "sizes.csv", "--json").out)
    assert answer["line"] == line


def test_scans_that_nnunet_turns(place: Path) -> None:
    """Slices along another axis than the file's are no slices of the table; whole scans are as they were."""
    plan(place, PLANS | {"transpose_forward": [2, 0, 1]})
    (place / "facts.csv").write_text("case,slice,class,volume_ml\ncase1,,disc,1.35\n", encoding="utf-8")
    outcome = done("nnunet", NAME, "--facts", place / "facts.csv")
    assert "2d cuts scans along another axis" in outcome.err
    found = read_facts(place / "preprocessed" / NAME / FILE)
    assert "2d" not in found.configurations
    assert found.rows("3d_fullres", "case1", None)["disc"]["size"] == pytest.approx(50)


def test_mistakes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ["--facts", place / "sizes.csv"]
    file = place / "preprocessed" / NAME / FILE
    refused("nnunet", "Dataset902", *table, saying=["Dataset902: there is no such data set", "$nnUNet_raw"])
    refused("nnunet", NAME, *table, "--plans", "Other", saying=["Other.json", "run nnUNetv2_plan_and_preprocess first"])
    (place / "bad.csv").write_text("case,slice,class,size_px\ncase0,9,disc,5\n", encoding="utf-8")
    refused("nnunet", NAME, "--facts", place / "bad.csv", saying=["bad.csv, line 2: slice 9 of case0"])
    (place / "bad.csv").write_text("case,slice,class,size_px\ncase0,1,disc,5000\n", encoding="utf-8")
    refused("nnunet", NAME, "--facts", place / "bad.csv", saying=["line 2", "5000 pixels is more than there are (256)"])
    refused("nnunet", place / "preprocessed" / NAME, *table, saying=["no raw data set of nnU-Net"])
    assert not file.exists()
    plan(place, {"configurations": {"2d": {"spacing": "1"}}, "transpose_forward": [0, 1, 2]})
    refused("nnunet", NAME, *table, saying=["nnUNetPlans.json: damaged", "plan and preprocess the data set again"])
    monkeypatch.delenv("nnUNet_preprocessed")
    refused("nnunet", NAME, *table, saying=["nnUNet_preprocessed is not set"])
    file.write_text('{"margin": 0.1}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"damaged .*write it again with: inbounds nnunet"):
        read_facts(file)
