"""Every command as a program calls it: one JSON object on stdout, all else on stderr, exit codes as without."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import inbounds
from archives import acdc, command, flat_folder, nifti, noise, promise12
from inbounds.cli.shared import answer
from inbounds.runs.table import COLUMNS
from inbounds.store.store import Store
from training_runs import SMALL

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def asked(*words: object, code: int = 0) -> dict[str, Any]:
    """What a command prints with `--json`, strictly read."""
    outcome = command(*words, "--json")
    assert outcome.code == code, outcome.err
    content: dict[str, Any] = json.loads(outcome.out, parse_constant=pytest.fail)
    return content


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, hearts: Store) -> Path:
    path = tmp_path_factory.mktemp("json") / "run"
    words = ["--store", hearts.path, "--annotation", "disc", "--classes", "LV", "--run", path]
    small = [part for change in [*SMALL, "training.epochs=1"] for part in ("--set", change)]
    content = asked("train", "tags", *words, *small)
    assert content == {"runs": [{"run": str(path), "models": {"last": 1, "best": 1}, "failure": None}]}
    return path


@pytest.fixture
def store(tmp_path: Path, hearts: Store) -> Path:
    return Path(shutil.copytree(hearts.path, tmp_path / "store"))


def test_what_is_not_finite_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    answer(True, "words", path=Path("a") / "b", value=float("nan"), values=[1.5, float("inf")])
    assert json.loads(capsys.readouterr().out) == {"path": str(Path("a") / "b"), "value": None, "values": [1.5, None]}
    answer(False, "words", value=1)
    assert capsys.readouterr().out == "words\n"


def test_prepare(tmp_path: Path) -> None:
    target = tmp_path / "phantom"
    assert asked("prepare", "phantom", target, "--patients", 4, "--side", 48) == {
        "store": str(target),
        "scans": 8,
        "split": {"train": 6, "validation": 2},
        "slices": Store(target).slices,
        "shape": [48, 48],
        "truth_pixels_lost": 0,
        "notes": [],
    }
    for name, source in (
        ("acdc", acdc(tmp_path / "acdc", (1, 16))),
        ("promise12", promise12(tmp_path / "promise12", (3, 49))),
        ("folder", flat_folder(tmp_path / "folder")),
    ):
        more = ("--classes", "background,RV,MYO,LV") if name == "folder" else ()
        content = asked("prepare", name, source, tmp_path / f"{name}-store", "--side", 16, *more)
        assert content["scans"] == len(Store(tmp_path / f"{name}-store").records) == sum(content["split"].values())
    assert content["truth_pixels_lost"] > 0
    image, label = noise((3, 305, 39)), noise((3, 305, 39)) % 8
    for number in (1, 22):
        nifti(tmp_path / "spine" / f"Img_{number:02d}.nii", image)
        nifti(tmp_path / "spine" / f"Img_{number:02d}_Labels.nii", label.astype("uint8"))
    assert asked("prepare", "spine", tmp_path / "spine", tmp_path / "spine-store", "--columns", 96)["shape"] == [
        256,
        96,
    ]


def test_annotate_and_facts(tmp_path: Path, store: Path) -> None:
    content = asked("annotate", store, "--strategy", "centroid", "--name", "points", "--classes", "LV")
    assert (content["annotation"], content["strategy"]) == ("points", "centroid")
    assert 0 < content["labelled_share_by_class"]["LV"] < 0.01
    case = Store(store).records[0].name
    (tmp_path / "clicks.csv").write_text(f"case,slice,row,column,class\n{case},2,20,20,LV\n")
    content = asked("annotate", store, "--points", tmp_path / "clicks.csv", "--name", "clicks")
    assert content == {"store": str(store), "annotation": "clicks", "clicks": 1, "ignored": [], "notes": []}
    form = tmp_path / "form.csv"
    content = asked("facts", store, "--template", form)
    assert content == {"store": str(store), "written": str(form), "rows": len(Store(store).empty_facts().rows)}
    form.write_text(f"case,slice,class,size_px\n{case},2,LV,120\n")
    content = asked("facts", store, "--import", form, "--name", "form")
    assert content == {
        "store": str(store),
        "facts": "form",
        "rows": 1,
        "ignored": [],
        "notes": [],
    }


def test_looking_at_a_store(tmp_path: Path, store: Path) -> None:
    assert asked("info", store)["scans"] == 8
    content = asked("verify", store)
    assert (content["problems"], content["store"]) == ([], str(store))
    assert "images.npy: checksum, and those of 8 scans" in content["checks"]
    (store / "annotations" / "disc" / "labels.npy").write_bytes(b"other")
    assert "labels.npy" in asked("verify", store, code=1)["problems"][0]
    picture = tmp_path / "preview.png"
    assert asked("preview", store, "--out", picture, "--scans", 1, "--annotations", "full")["written"] == str(picture)
    assert picture.is_file()


def test_recipes() -> None:
    content = asked("recipes")["recipes"]
    assert list(content) == list(inbounds.recipes)
    assert content["individual"]["settings"] == {"relative": 0.1, "weight": 0.05, "classes": None}
    assert content["individual"]["known"]


def test_evaluate(run: Path) -> None:
    content = asked("evaluate", run, "--no-surfaces")
    folder = Path(content.pop("written"))
    assert content == json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert content["metrics"]["dsc_volume"]["LV"]["n"] == 2
    for table in (folder / "cases.csv", run / "metrics.csv"):
        assert table.read_text(encoding="utf-8").splitlines()[0] == ",".join(COLUMNS)


def test_predict(tmp_path: Path, run: Path) -> None:
    scan, out = nifti(tmp_path / "scans" / "new.nii.gz", noise((2, 48, 60))), tmp_path / "masks"
    (tmp_path / "scans" / "bad.nii.gz").write_bytes(b"nothing")
    content = asked("predict", run, scan.parent, "--out", out, code=1)
    assert content["masks"] == {"new": str(out / "new.nii.gz")}
    assert list(content["failures"]) == ["bad"]
    assert (content["classes"], content["model"], content["written"]) == ({"1": "LV"}, "best", str(out))
    assert all(warning.startswith("new: ") for warning in content["warnings"])


def test_report(tmp_path: Path, run: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy", ignore=shutil.ignore_patterns("evaluation")))
    content = asked("report", copy, "--out", tmp_path / "report")
    page = str(tmp_path / "report" / "index.html")
    assert content == {"written": page, "split": "validation", "runs": [str(copy)], "evaluated": 2}
    assert asked("report", copy, "--out", tmp_path / "report")["evaluated"] == 0


def test_export(tmp_path: Path, run: Path) -> None:
    pytest.importorskip("onnxscript")
    file = tmp_path / "network.onnx"
    assert asked("export", run, "--onnx", file) == {"run": str(run), "written": str(file)}


def test_a_failed_run_is_told_with_its_reason(tmp_path: Path, hearts: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inbounds.cli.runs._train", lambda runs, *_: {runs[0].path: "the loss was not finite"})
    words = ["train", "tags", "--store", hearts.path, "--annotation", "disc", "--run", tmp_path / "run"]
    failed = {"run": str(tmp_path / "run"), "models": {}, "failure": "the loss was not finite"}
    assert asked(*words, code=1) == {"runs": [failed]}
