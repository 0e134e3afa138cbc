"""Training from the page: ordinary commands in a program of their own."""

from __future__ import annotations

import csv
import json
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archives import command, done
from inbounds.scans.scan import read_labels
from inbounds.studio.job import last_words
from inbounds.studio.results import read_results
from studios import Page, about, act, click, ids, opened, row, scans

HEARTS = ("background", "RV", "MYO", "LV")


def hearts(folder: Path, patients: int = 4) -> Path:
    """Generated hearts of 48 x 48 pixels, with the clicks and sizes that go with them."""
    done("example", folder, "--patients", patients, "--side", 48)
    return folder / "scans"


def bring(client: Page, folder: Path) -> None:
    """Click what the example clicks, and type a few of its sizes."""
    numbers = ids(client)
    with (folder / "clicks.csv").open(encoding="utf-8") as file:
        for line in [line for line in csv.DictReader(file) if line["case"] in numbers]:
            place = [float(line[name]) for name in ("slice", "row", "column")]
            click(client, numbers[line["case"]], place, HEARTS.index(line["class"]))
    with (folder / "sizes.csv").open(encoding="utf-8") as file:
        for line in list(csv.DictReader(file))[:12]:
            size = float(line["size_px"])
            told = {"size": {"low": round(0.9 * size), "high": round(1.1 * size) + 1, "unit": "px"}} if size else {}
            told |= {"present": bool(size), "slice": int(line["slice"]), "class": HEARTS.index(line["class"])}
            act(client, "fact", scan=numbers[line["case"]], **told)


def wait(client: Page, *states: str, seconds: float = 300) -> dict[str, Any]:
    until = time.monotonic() + seconds
    while (told := client.get("/api/project").json()["training"])["state"] not in states:
        assert time.monotonic() < until, told
        assert told["state"] in ("preparing", "training", "predicting"), told
        time.sleep(0.2)
    return dict(told)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if not file.name.startswith("."))


def repeat(client: Page, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Export, and call the commands that were exported, where they lie."""
    told = client.post("/api/export", json={"who": "Ana"}).json()
    folder = Path(told["folder"])
    lines = (folder / "commands.txt").read_text(encoding="utf-8").splitlines()
    assert lines == told["commands"]
    with monkeypatch.context() as there:
        there.chdir(folder)
        for line in lines:
            outcome = command(*shlex.split(line)[1:])
            assert outcome.code in ((0, 1) if " predict " in line else (0,)), outcome  # 1: a scan is broken
    return folder


def test_a_training_from_clicks_to_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped once, gone on with by another server, with a broken scan among the good ones."""
    root = hearts(tmp_path / "hearts")
    for file in sorted(root.iterdir())[3:]:
        file.unlink()
    whole = next(root.iterdir()).read_bytes()
    (root / "broken.nii.gz").write_bytes(whole[: len(whole) // 2])
    (root / "empty.nii.gz").write_bytes(b"")
    (root / "gone.nii.gz").write_bytes(whole)
    with opened(root, tmp_path / "project", HEARTS) as client:
        (root / "gone.nii.gz").unlink()
        act(client, "rescan")
        assert client.post("/api/train", json={"who": "Ana", "minutes": 1}).json()["error"].startswith("nothing is lab")
        bring(client, tmp_path / "hearts")
        told = client.get("/api/project").json()
        assert told["missing"] == []
        begun = client.post("/api/train", json={"who": "Ana", "minutes": 0.02})
        assert begun.json()["state"] == "preparing", begun.text
        assert client.post("/api/train", json={"who": "Ben", "minutes": 1}).status_code == 409
        assert client.post("/api/train/stop", json={"who": "Ana"}).json()["state"] == "stopped"
    with opened(root, tmp_path / "project", HEARTS) as client:
        assert client.post("/api/train/resume", json={"who": "Ana"}).status_code == 200
        told = wait(client, "done")
        assert [shlex.split(line)[1] for line in told["commands"]] == [
            "prepare",
            "annotate",
            "facts",
            "train",
            "predict",
        ]
        assert told["epoch"] == told["epochs"] >= 1
        assert len(told["curves"]["loss"]) == told["epochs"]
        assert told["words"][0].startswith("known: ")
        noted = json.loads((tmp_path / "project/trainings/001/job.json").read_text(encoding="utf-8"))
        assert "damaged" in noted["left_out"]["broken"]
        assert "0 bytes" in noted["left_out"]["empty"]
        assert "damaged" in row(client, "broken")["error"]
        good = [one for one in client.get("/api/project").json()["scans"] if not one["error"]]
        assert all(one["predicted"] and 0 <= one["doubt"] <= 1 for one in good)
        assert all(set(one["volumes"]) == set(HEARTS[1:]) for one in good)
        # a mask is shown as it lies in the file
        name = good[0]["name"]
        mask = read_labels(tmp_path / f"project/trainings/001/masks/{name}.nii.gz").array
        plane = about(client, ids(client)[name])["planes"][0]
        seen = client.get(f"/api/scans/{ids(client)[name]}/mask/0/3").content
        picture = np.frombuffer(seen, np.uint8).reshape(plane["rows"], plane["columns"])
        steps = [-1 if plane["flip"][axis] else 1 for axis in ("down", "across")]
        assert np.array_equal(picture, mask[3][:: steps[0], :: steps[1]])
        act(client, "accept", scan=ids(client)[name], accepted=True)
        assert row(client, name)["accepted"]
        client.post("/api/undo", json={"who": "Ana"})
        assert not row(client, name)["accepted"]
        assert client.post("/api/train/resume", json={"who": "Ana"}).status_code == 409
        assert client.post("/api/train/stop", json={"who": "Ana"}).status_code == 409
        # whoever calls the exported commands gets masks of the same scans
        folder = repeat(client, monkeypatch)
        assert names(folder / "trainings" / "001" / "masks") == names(folder / "masks")


@pytest.mark.slow
def test_a_second_training_goes_on_from_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is made once, weights are those of the last run, and a class's value need not be its place."""
    root = hearts(tmp_path / "hearts", 8)
    with opened(root, tmp_path / "project", HEARTS) as client:
        bring(client, tmp_path / "hearts")
        client.post("/api/train", json={"who": "Ana", "minutes": 0.5})
        first = wait(client, "done")
        name = next(iter(ids(client)))
        act(client, "accept", scan=ids(client)[name], accepted=True)
        client.post("/api/train", json={"who": "Ana", "minutes": 0.5})
        second = wait(client, "done")
        assert second["number"] == 2
        assert "--from" in second["commands"][3]
        assert not (tmp_path / "project/trainings/002/store").exists()
        assert second["curves"]["labels"][0][1] < first["curves"]["labels"][0][1]
        assert not row(client, name)["accepted"]  # another mask
        assert (tmp_path / "project/trainings/001/masks/predictions.csv").is_file()
        folder = repeat(client, monkeypatch)
        assert names(folder / "trainings") == ["001", "002"]
        assert not (folder / "trainings/002/store").exists()
        assert names(folder / "trainings/002/masks") == names(folder / "masks")


def test_a_failure_is_told_by_the_commands_own_last_sentence(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    with opened(root) as client:
        click(client, ids(client)["one"], (0, 3, 3), 1)
        for file in root.iterdir():
            file.write_bytes(file.read_bytes()[:200])
        client.post("/api/train", json={"who": "Ana", "minutes": 1})
        told = wait(client, "failed", "done")
        assert told["state"] == "failed"
        assert "damaged" in told["sentence"]
        assert "Traceback" not in told["sentence"]


def test_a_job_whose_computer_was_switched_off_can_be_gone_on_with(tmp_path: Path) -> None:
    root = scans(tmp_path / "scans")
    with opened(root) as client:
        work = tmp_path / "scans-studio/trainings/001"
        work.mkdir(parents=True)
        about = {"state": "training", "number": 1, "sentence": "", "commands": [], "words": [], "pid": 1}
        (work / "job.json").write_text(json.dumps(about))
        told = client.get("/api/project").json()["training"]
        assert (told["state"], told["number"]) == ("stopped", 1)
        assert "interrupted" in told["sentence"]
        (work / "job.json").write_text("{")
        told = client.get("/api/project").json()["training"]
        assert told["state"] == "failed"
        assert "train again" in told["sentence"]


def test_tables_hold_every_labelled_voxel_and_no_contradiction(tmp_path: Path) -> None:
    from inbounds.studio.tables import write_tables

    with opened(scans(tmp_path / "scans")) as client:
        number = ids(client)["two"]
        click(client, number, (2, 10, 10), 1, radius=2)
        click(client, number, (4, 7, 5), 2, plane=1)  # in a coronal picture
        act(client, "fact", scan=number, slice=2, present=False, **{"class": 1})
        act(client, "fact", scan=number, slice=3, present=False, **{"class": 1})
        act(client, "fact", scan=number, slice=None, size={"low": 0.5, "high": None, "unit": "ml"}, **{"class": 2})
        act(client, "fact", scan=number, slice=1, size={"low": 7, "high": 7, "unit": "mm2"}, **{"class": 2})
        assert write_tables(client.studio.project, tmp_path) == (6, 3)
        with (tmp_path / "clicks.csv").open(encoding="utf-8") as file:
            clicks = {
                (line["case"], line["slice"], line["row"], line["column"], line["class"])
                for line in csv.DictReader(file)
            }
        ring = {("two", "2", str(r), str(c), "LV") for r, c in ((9, 10), (11, 10), (10, 9), (10, 10), (10, 11))}
        assert clicks == ring | {("two", "4", "7", "5", "RV")}
        with (tmp_path / "sizes.csv").open(encoding="utf-8") as file:
            told = [{name: cell for name, cell in line.items() if cell} for line in csv.DictReader(file)]
        assert told == [
            {"case": "two", "slice": "1", "class": "RV", "size_mm2": "7"},
            {"case": "two", "slice": "3", "class": "LV", "present": "0"},
            {"case": "two", "class": "RV", "volume_ml_min": "0.5"},
        ]


def test_last_words_are_those_of_the_error(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text("preparing: 1 of 4\nError: scan: it is damaged; copy it again\n\n")
    assert last_words(file) == "scan: it is damaged; copy it again"
    file.write_text("preparing: 1 of 4\n")
    assert last_words(file) == "preparing: 1 of 4"
    assert last_words(file, 18) == ""


def test_doubts_are_told_in_sentences(tmp_path: Path) -> None:
    head = "case,class,doubt,volume_ml,size_px,range,edge,pieces,mirrored,runs,note"
    lines = [head, "one,LV,0.6,12.5,100,0.5,0.2,0,0,,", "one,RV,0.1,3,20,0.1,0,0,0,,header says 1 mm"]
    (tmp_path / "predictions.csv").write_text("\n".join(lines) + "\n")
    results = read_results(tmp_path / "predictions.csv", 3, {"background": 0, "LV": 4, "RV": 2})
    found = results.of("one")
    assert (found.doubt, found.volumes) == (0.6, {4: 12.5, 2: 3.0})
    assert found.flags == ("LV: its volume lies outside those of the training scans", "header says 1 mm")
    assert np.array_equal(results.shown(np.array([[0, 1, 2]], np.uint8)), [[0, 4, 2]])
    assert not results.of("two").predicted
